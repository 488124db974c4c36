package source

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/confined"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// TestMain is the process of a Process, too.
func TestMain(m *testing.M) { testneed.Main(m, confined.Serving("serve", Serve)) }

func process(t testing.TB) *Process {
	t.Helper()
	p := &Process{Process: confined.Self("serve")}
	t.Cleanup(p.Close)
	return p
}

// files is a tree in memory. What is written as -> and a path is a link.
type files map[string]string

func (f files) Find(name string) (Entry, bool, error) {
	if name == "." {
		return Entry{Kind: IsFolder}, true, nil
	}
	entries, err := f.List(path.Dir(name))
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == path.Base(name) })
	if at < 0 {
		return Entry{}, false, err
	}
	return entries[at], true, err
}

func (f files) List(dir string) ([]Entry, error) {
	var out []Entry
	for name, text := range f {
		rest, ok := below(dir, name)
		if !ok {
			continue
		}
		first, _, folder := strings.Cut(rest, "/")
		e := Entry{Name: first, Kind: IsFile}
		switch {
		case folder:
			e.Kind = IsFolder
		case strings.HasPrefix(text, "->"):
			e.Kind = IsOther
		}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out, nil
}

func (f files) Read(all []File) error {
	for i := range all {
		all[i].Data = []byte(f[all[i].Path])
	}
	return nil
}

// built builds a folder in a process, and gives its texts by the files that they are of.
func built(t *testing.T, f files, folder Folder) (map[string]string, Output) {
	t.Helper()
	in, _, err := Collect(f, folder)
	require.NoError(t, err)
	out, err := process(t).Build(in)
	require.NoError(t, err)
	texts := map[string]string{}
	for _, p := range out.Parts {
		texts[p.File] = string(p.Text)
	}
	return texts, out
}

const worker = `apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata:
  name: checkout
spec:
  replicas: 2
`

// Bases elsewhere in the repository count, and what was read is named: not what is beside it.
func TestKustomizeReadsBasesAndNamesThem(t *testing.T) {
	testneed.Plain(t) // the process may take too little memory for the race detector
	texts, out := built(t, files{
		"workers/base/kustomization.yaml": "resources: [worker.yaml]\n",
		"workers/base/worker.yaml":        worker,
		"workers/base/README.md":          "# read by people\n",
		"workers/prod/kustomization.yaml": "resources: [../base]\nnamespace: shop\npatches:\n  - path: patch.yaml\n",
		"workers/prod/patch.yaml":         "apiVersion: temporal.io/v1alpha1\nkind: TemporalWorkerDeployment\nmetadata: {name: checkout}\nspec: {replicas: 3}\n",
		"workers/dev/kustomization.yaml":  "resources: [../base]\n",
	}, Folder{Kind: Kustomize, Marker: "workers/prod/kustomization.yaml"})
	require.Equal(t, map[string]string{"workers/prod/kustomization.yaml": `apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata:
  name: checkout
  namespace: shop
spec:
  replicas: 3
`}, texts)
	require.Equal(t, []string{"workers/base/kustomization.yaml", "workers/base/worker.yaml", "workers/prod/kustomization.yaml", "workers/prod/patch.yaml"}, out.Used)
}

// A chart is rendered with its values and those that are named, in their order. Its charts/ count, NOTES.txt and what
// .helmignore leaves out do not.
func TestHelmRendersAChartWithItsValues(t *testing.T) {
	testneed.Plain(t) // the process may take too little memory for the race detector
	f := files{
		"charts/checkout/Chart.yaml":                        "apiVersion: v2\nname: worker\nversion: 1.0.0\ndependencies: [{name: common, version: 1.0.0}]\n",
		"charts/checkout/values.yaml":                       "replicas: 1\nimage: {name: checkout, tag: v1}\n",
		"charts/checkout/values-prod.yaml":                  "replicas: 3\n",
		"charts/checkout/README.md":                         "# read by people\n",
		"charts/checkout/.helmignore":                       "templates/old\n",
		"charts/checkout/templates/NOTES.txt":               "Thank you, {{ .Release.Name }}",
		"charts/checkout/templates/_helpers.tpl":            `{{ define "image" }}{{ .Values.image.name }}:{{ .Values.image.tag }}{{ end }}`,
		"charts/checkout/templates/empty.yaml":              "{{ if false }}nothing{{ end }}\n",
		"charts/checkout/templates/old/broken.yaml":         "{{ nothing }}",
		"charts/checkout/templates/worker.yaml":             "name: {{ .Release.Name }}\nnamespace: {{ .Release.Namespace }}\nreplicas: {{ .Values.replicas }}\nimage: {{ include \"image\" . }}\nkeys: {{ keys .Values.image | toJson }}\nof: {{ .Capabilities.KubeVersion }}\n",
		"charts/checkout/charts/common/Chart.yaml":          "apiVersion: v2\nname: common\nversion: 1.0.0\n",
		"charts/checkout/charts/common/templates/more.yaml": "from: {{ .Chart.Name }}\n",
		"values/image.yaml":                                 "image: {tag: v2}\n",
	}
	texts, out := built(t, f, Folder{Kind: Helm, Marker: "charts/checkout/Chart.yaml", Values: []string{"values-prod.yaml", "/values/image.yaml"}, Namespace: "shop"})
	require.Equal(t, map[string]string{
		"charts/checkout/charts/common/templates/more.yaml": "from: common\n",
		"charts/checkout/templates/worker.yaml":             "name: checkout\nnamespace: shop\nreplicas: 3\nimage: checkout:v2\nkeys: [\"name\",\"tag\"]\nof: v1.34.0\n",
	}, texts)
	require.NotContains(t, out.Used, "charts/checkout/README.md")
	require.Subset(t, out.Used, []string{"charts/checkout/Chart.yaml", "charts/checkout/values.yaml", "charts/checkout/values-prod.yaml", "values/image.yaml",
		"charts/checkout/charts/common/templates/more.yaml"})

	f["charts/checkout/templates/file.yaml"] = `text: {{ .Files.Get "README.md" | quote }}`
	_, out = built(t, f, Folder{Kind: Helm, Marker: "charts/checkout/Chart.yaml", Values: []string{"values-prod.yaml"}})
	require.Contains(t, out.Used, "charts/checkout/README.md")
}

// with is a tree with other files.
func (f files) with(more files) files {
	out := files{}
	for _, all := range []files{f, more} {
		for name, text := range all {
			out[name] = text
		}
	}
	return out
}

// chartOf is a chart with one template.
func chartOf(template string) files {
	return files{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/values.yaml": "count: 1\n", "c/templates/a.yaml": template}
}

// What cannot be built says where, what and what to do. Nothing is asked for anywhere, and nothing outside of the tree
// is read.
func TestErrors(t *testing.T) {
	testneed.Plain(t) // the process may take too little memory for the race detector
	secret := t.TempDir() + "/secret.json"
	require.NoError(t, os.WriteFile(secret, []byte(`{"const": "secret"}`), 0o600))
	p := process(t)
	kustomization := func(text string) files {
		return files{"k/kustomization.yaml": text, "k/worker.yaml": worker, "other/worker.yaml": worker, "link": "->k"}
	}
	for _, c := range []struct {
		name string
		files
		want string
	}{
		{"remote base", kustomization("resources:\n- worker.yaml\n- https://github.com/a/b//c?ref=main\n"), `k/kustomization.yaml:3: resources[1]: "https://github.com/a/b//c?ref=main" is in another place`},
		{"remote base, short", kustomization("resources: [github.com/a/b]\n"), `k/kustomization.yaml:1: resources[0]: "github.com/a/b" is in another place`},
		{"remote base, though there is such a folder", kustomization("bases: ['git@host:a/b']\n").with(files{"k/git@host:a/b/kustomization.yaml": ""}), `bases[0]: "git@host:a/b" is in another place`},
		{"remote component", kustomization("components: ['ssh://a/b']\n"), `components[0]: "ssh://a/b" is in another place`},
		{"remote patch", kustomization("resources: [worker.yaml]\npatches:\n- path: https://a/b.yaml\n"), `k/kustomization.yaml:3: patches[0]: "https://a/b.yaml" is in another place`},
		{"remote file of a generator", kustomization("configMapGenerator:\n- name: a\n  files: [b=https://a/b]\n"), `k/kustomization.yaml:3: configMapGenerator[1]: "b=https://a/b" is in another place`},
		{"out of the repository", kustomization("resources: [../../other]\n"), `k/kustomization.yaml:1: resources[0]: "../../other" leads out of the repository`},
		{"absolute", kustomization("resources: [/etc/passwd]\n"), `resources[0]: "/etc/passwd" leads out of the repository`},
		{"missing", kustomization("resources: [../base]\n"), `k/kustomization.yaml:1: resources[0]: "../base" is not there`},
		{"file outside", kustomization("resources: [../other/worker.yaml]\n"), `resources[0]: "../other/worker.yaml" is a file outside of the kustomization's folder`},
		{"link", kustomization("resources: [../link]\n"), `resources[0]: "../link" is a symbolic link or a submodule`},
		{"link within", kustomization("resources: [worker.yaml]\n").with(files{"k/b.yaml": "->worker.yaml"}), `k/b.yaml: is a symbolic link or a submodule`},
		{"charts", kustomization("helmCharts: [{name: a}]\n"), `k/kustomization.yaml:1: helmCharts: charts are not inflated`},
		{"charts, in other letters", kustomization("HelmCharts: [{name: a}]\n"), `HelmCharts: charts are not inflated`},
		{"generators", kustomization("generators: [worker.yaml]\n"), `generators: plugins are not run`},
		{"transformers", kustomization("transformers: [worker.yaml]\n"), `transformers: plugins are not run`},
		{"validators", kustomization("validators: [worker.yaml]\n"), `validators: plugins are not run`},
		{"schema", kustomization("openapi: {path: worker.yaml}\n"), `openapi: a schema is not read`},
		{"in a base", kustomization("resources: [../other]\n").with(files{"other/kustomization.yaml": "resources: [https://a/b]\n"}), `other/kustomization.yaml:1: resources[0]: "https://a/b" is in another place`},
		{"two kustomizations", kustomization("").with(files{"k/kustomization.yml": ""}), `one folder has one kustomization`},
		{"no YAML", kustomization("resources: [\n"), `k/kustomization.yaml: cannot be built: `},
		{"unknown field", kustomization("resource: [worker.yaml]\n"), `k/kustomization.yaml: cannot be built: invalid Kustomization`},
		{"base without a kustomization", kustomization("resources: [../other]\n"), `k/kustomization.yaml: cannot be built: `},
		{"patch outside", kustomization("resources: [worker.yaml]\npatches: [{path: ../other/worker.yaml}]\n"), `k/kustomization.yaml: cannot be built: `},
		{"much", kustomization("resources: [worker.yaml]\n").with(files{"k/a": strings.Repeat("a", maxInput)}), `k/kustomization.yaml: has more than 8388608 bytes of files`},
		{"includes itself", kustomization("resources: [.]\n"), `cycle detected`},
		{"includes itself by another", kustomization("resources: [../other]\n").with(files{"other/kustomization.yaml": "resources: [../k]\n"}), `cycle detected`},

		{"no chart", chartOf("").with(files{"c/Chart.yaml": "name: [\n"}), `c/Chart.yaml: is not a chart that can be loaded: `},
		{"syntax", chartOf("a: 1\nb: {{ if }}\n"), `c/Chart.yaml: cannot be rendered: parse error at (c/templates/a.yaml:2): missing value for if`},
		{"missing value", chartOf("a: 1\nb: {{ required \"image is needed\" .Values.image }}\n"), `c/Chart.yaml: cannot be rendered: execution error at (c/templates/a.yaml:2:6): image is needed`},
		{"lookup", chartOf(`{{ lookup "v1" "Secret" "a" "b" }}`), `lookup is not there: charts are rendered without a cluster`},
		{"name", chartOf(`{{ getHostByName "localhost" }}`), `getHostByName is not there`},
		{"chance", chartOf(`{{ tpl "{{ randAlphaNum 8 }}" . }}`), `randAlphaNum is not there: it would give something else each time`},
		{"time", chartOf(`{{ now | date "2006" }}`), `now is not there`},
		{"variables", chartOf(`{{ env "PATH" }}`), `function "env" not defined`},
		{"dependency", chartOf("").with(files{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: redis, version: 1.0.0, repository: 'https://a'}]\n"}),
			`c/Chart.yaml: dependencies: redis: not in charts/, and nothing is fetched`},
		{"library", chartOf("").with(files{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\ntype: library\n"}), `c/Chart.yaml: type: is a library`},
		{"values", chartOf("").with(files{"c/values.schema.json": `{"properties": {"count": {"type": "string"}}}`}), `values of c: `},
		{"schema at an address", chartOf("").with(files{"c/values.schema.json": `{"$ref": "http://localhost:1/a.json"}`}), `http://localhost:1/a.json is in another place`},
		{"schema in a file", chartOf("").with(files{"c/values.schema.json": `{"$ref": "file://` + secret + `"}`}), `is in another place`},
		{"much of it", chartOf(`{{ range until 20000 }}a: "` + strings.Repeat("a", 80) + "\"\n{{ end }}"), `c/Chart.yaml: builds 1720000 bytes of objects, and at most 1048576 are read`},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := Folder{Kind: Kustomize, Marker: "k/kustomization.yaml"}
			if _, ok := c.files["c/Chart.yaml"]; ok {
				folder = Folder{Kind: Helm, Marker: "c/Chart.yaml"}
			}
			in, _, err := Collect(c.files, folder)
			if err == nil {
				_, err = p.Build(in)
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			var is *Error
			require.True(t, errors.As(err, &is))
			require.False(t, is.Bounds)
		})
	}
}

// Values files are those that the environment names, and are there.
func TestValuesFileIsMissing(t *testing.T) {
	testneed.Plain(t) // the process may take too little memory for the race detector
	_, stands, err := Collect(chartOf(""), Folder{Kind: Helm, Marker: "c/Chart.yaml", Values: []string{"values-prod.yaml"}})
	require.EqualError(t, err, "c/Chart.yaml: c/values-prod.yaml, which helm.values of the environment names, is not a file here: add it (it may be empty), or take it out of helm.values")
	require.Equal(t, []At{{"c", ""}, {"c/values-prod.yaml", ""}}, stands, "it is looked at again once the file is there")
}

// What never ends, or takes all memory there is, is ended, says so, and the next folder is built.
func TestBombs(t *testing.T) {
	testneed.Plain(t) // the process may take too little memory for the race detector
	p := process(t)
	deep := files{"k/kustomization.yaml": "resources: [../b0x, ../b0y]\n"}
	for i := range 24 { // each doubles what the next one has
		for _, side := range []string{"x", "y"} {
			name := string(rune('0'+i%10)) + string(rune('a'+i/10))
			next := string(rune('0'+(i+1)%10)) + string(rune('a'+(i+1)/10))
			text := "namePrefix: " + side + "-\nresources: [../b" + next + "x, ../b" + next + "y]\n"
			if i == 23 {
				text = "namePrefix: " + side + "-\nresources: [w.yaml]\n"
			}
			if i == 0 {
				name = "0"
			}
			deep["b"+name+side+"/kustomization.yaml"], deep["b"+name+side+"/w.yaml"] = text, worker
		}
	}
	for _, c := range []struct {
		name string
		files
		want string
	}{
		{"a loop", chartOf(`{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}`), `cannot be built: it takes longer than 2s`},
		{"a list", chartOf(`{{ range until 4000000000 }}{{ end }}`), `384 MiB`},
		{"a text", chartOf(`{{ $a := repeat 1000000 "a" }}{{ range until 4000 }}{{ $a }}{{ end }}`), `384 MiB`},
		{"include", chartOf(`{{ define "a" }}{{ include "a" . }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), `cannot be`},
		{"recursion", chartOf(`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`), `cannot be`},
		{"tpl", chartOf(`{{ define "a" }}{{ tpl "{{ include \"a\" . }}" . }}{{ end }}{{ include "a" . }}`), `cannot be`},
		{"bases that double", deep, `cannot be built: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := Folder{Kind: Kustomize, Marker: "k/kustomization.yaml"}
			if _, ok := c.files["c/Chart.yaml"]; ok {
				folder = Folder{Kind: Helm, Marker: "c/Chart.yaml"}
			}
			in, _, err := Collect(c.files, folder)
			require.NoError(t, err)
			p.Time = 2 * time.Second
			if c.want == "384 MiB" {
				p.Time = 14 * time.Second // on a busy machine it takes a while to fill the memory
			}
			began := time.Now()
			_, err = p.Build(in)
			require.ErrorContains(t, err, c.want)
			require.Less(t, time.Since(began), 15*time.Second)
			t.Log(err)
			in, _, err = Collect(chartOf("a: {{ .Values.count }}\n"), Folder{Kind: Helm, Marker: "c/Chart.yaml"})
			require.NoError(t, err)
			out, err := p.Build(in)
			require.NoError(t, err)
			require.Equal(t, "a: 1\n", string(out.Parts[0].Text))
		})
	}
}

// A process that was ended is begun again.
func TestProcessBeginsAgain(t *testing.T) {
	testneed.Plain(t) // the process may take too little memory for the race detector
	p := process(t)
	in, _, err := Collect(chartOf("a: 1\n"), Folder{Kind: Helm, Marker: "c/Chart.yaml"})
	require.NoError(t, err)
	_, err = p.Build(in)
	require.NoError(t, err)
	p.Close()
	require.False(t, p.Running())
	_, err = p.Build(in)
	require.NoError(t, err, "the next one begins another process")
}
