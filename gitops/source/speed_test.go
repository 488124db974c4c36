package source

import "testing"

// BenchmarkProcess is one chart after the other in one process, and in a process each.
func BenchmarkProcess(b *testing.B) {
	in, _, err := Collect(chartOf("a: 1\n"), Folder{Kind: Helm, Marker: "c/Chart.yaml"})
	if err != nil {
		b.Fatal(err)
	}
	k, _, err := Collect(files{"k/kustomization.yaml": "resources: [w.yaml]\nnamespace: a\n", "k/w.yaml": worker}, Folder{Kind: Kustomize, Marker: "k/kustomization.yaml"})
	if err != nil {
		b.Fatal(err)
	}
	for name, of := range map[string]Input{"Helm": in, "Kustomize": k} {
		b.Run(name, func(b *testing.B) {
			p := process(b)
			for b.Loop() {
				if _, err := p.Build(of); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"AndStart", func(b *testing.B) {
			p := process(b)
			for b.Loop() {
				if _, err := p.Build(of); err != nil {
					b.Fatal(err)
				}
				p.Close()
			}
		})
	}
}
