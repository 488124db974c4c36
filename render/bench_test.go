package render

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// BenchmarkFiles is a plan that creates one version: Deployment, routing, status and kustomization.
func BenchmarkFiles(b *testing.B) {
	s := newScene(b, checkoutSpec, mutualTLS("temporal-client"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Files(s.plan, s.record); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFilesUnchanged is a plan that asks for what is there.
func BenchmarkFilesUnchanged(b *testing.B) {
	s := newScene(b, checkoutSpec, mutualTLS("temporal-client"))
	s.commit()
	require.Empty(b, s.commit())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Files(s.plan, s.record); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEdit scales a version down, which reads its manifest.
func BenchmarkEdit(b *testing.B) {
	s := newScene(b, checkoutSpec, mutualTLS("temporal-client"))
	s.commit()
	data, w := s.manifest(), rollout.VersionWrite{Replicas: replicas(0), Guard: v1alpha1.GuardOff}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := editManifest(data, edit{w.Replicas, w.Guard, nil}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkYAML encodes a manifest of 80 lines, beside what is usual.
func BenchmarkYAML(b *testing.B) {
	s := newScene(b, checkoutSpec, withServerName(mutualTLS("temporal-client"), "temporal.internal"))
	s.plan.Environment.WorkerEnv = v1alpha1.EnvWithLegacyNames
	s.commit()
	m, err := parseManifest(s.manifest())
	require.NoError(b, err)
	for _, e := range []struct {
		name   string
		encode func(any) ([]byte, error)
	}{{"ours", YAML}, {"sigs.k8s.io", yaml.Marshal}} {
		b.Run(e.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.encode(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
