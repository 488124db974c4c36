package gitops

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

func TestReadQuickstart(t *testing.T) {
	w, err := index.ReadFolder("../examples/quickstart")
	require.NoError(t, err)
	require.Empty(t, problems(w))
	require.Len(t, w.Environments, 1)
	env := w.Environments[0]
	require.Equal(t, []string{"shop/checkout"}, names(env))
	d := env.Deployments[0]
	require.Equal(t, "workers/shop/checkout.yaml", d.SpecPath)
	require.Equal(t, "localhost:7233", d.Connection.Spec.HostPort)
	require.Equal(t, "deploy/demo/shop/checkout", d.Record.Dir)
	require.Len(t, env.Policies, 2)
	require.Len(t, env.Data, 1)
}

// pointerOfLFS is what Git holds of a file in Git LFS.
const pointerOfLFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

func TestReadCases(t *testing.T) {
	base := map[string]string{"workers/connection.yaml": connectionYAML}
	cases := []struct {
		name     string
		files    map[string]string
		names    []string
		problems []string // each is a part of one problem, in order
		check    func(t *testing.T, e rollout.EnvironmentWorld)
	}{
		{name: "specs anywhere but in the output", files: map[string]string{
			"a/x.yaml": specYAML("shop", "x", "i:1"), "b/y.json": `{"kind":"List","apiVersion":"v1","items":[]}`,
			"deploy/shop/x/leftover.yaml": specYAML("shop", "z", "i:1"),
		}, names: []string{"shop/x"}, problems: []string{"deploy/shop/x/leftover.yaml:1: TemporalWorkerDeployment z has no effect here"}},
		{name: "foreign files are let be", files: map[string]string{"chart.yaml": "{{ not yaml", "cm.yaml": "kind: ConfigMap\napiVersion: v1\n"}},
		{name: "two specs of one name, no record: neither is used", files: map[string]string{
			"a.yaml": specYAML("shop", "x", "i:1"), "b.yaml": specYAML("shop", "x", "i:2"),
		}, names: []string{"shop/x"}, problems: []string{"a.yaml:1: metadata.name: shop/x is also the name of the spec in b.yaml", "b.yaml:1: metadata.name: shop/x is also"},
			check: func(t *testing.T, e rollout.EnvironmentWorld) { require.Nil(t, e.Deployments[0].Spec) }},
		{name: "two specs of one name: the recorded path keeps it", files: map[string]string{
			"a.yaml": specYAML("shop", "x", "i:1"), "b.yaml": specYAML("shop", "x", "i:2"),
			"deploy/shop/x/routing.yaml": routingYAML("x", "b.yaml"),
		}, names: []string{"shop/x"}, problems: []string{"a.yaml:1: metadata.name"},
			check: func(t *testing.T, e rollout.EnvironmentWorld) { require.Equal(t, "b.yaml", e.Deployments[0].SpecPath) }},
		{name: "no namespace", files: map[string]string{"a.yaml": strings.Replace(specYAML("shop", "x", "i:1"), ", namespace: shop", "", 1)},
			problems: []string{"a.yaml:1: metadata.namespace: is required"}},
		{name: "a spec with an error holds its deployment", files: map[string]string{"a.yaml": strings.Replace(specYAML("shop", "x", "i:1"), "AllAtOnce", "AllAtOne", 1)},
			names: []string{"shop/x"}, problems: []string{"a.yaml:6: spec.rollout.strategy"},
			check: func(t *testing.T, e rollout.EnvironmentWorld) {
				require.Nil(t, e.Deployments[0].Spec)
				require.Equal(t, rollout.InvalidSpec, e.Deployments[0].Problems[0].Reason)
			}},
		{name: "a recorded spec whose file is no YAML any more", files: map[string]string{
			"a.yaml": "apiVersion: temporal.io/v1alpha1\nkind: [\n", "deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml"),
		}, names: []string{"shop/x"}, problems: []string{"a.yaml:"},
			check: func(t *testing.T, e rollout.EnvironmentWorld) { require.NotEmpty(t, e.Deployments[0].Problems) }},
		{name: "a recorded spec that went to Git LFS", files: map[string]string{"a.yaml": pointerOfLFS, "model.bin": pointerOfLFS, "deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml")},
			names: []string{"shop/x"}, problems: []string{"a.yaml:1: the file is in Git LFS, which is not read"},
			check: func(t *testing.T, e rollout.EnvironmentWorld) { require.Nil(t, e.Deployments[0].Spec) }},
		{name: "a record whose spec is gone", files: map[string]string{"deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml")},
			names: []string{"shop/x"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
				require.Nil(t, e.Deployments[0].Spec)
				require.Empty(t, e.Deployments[0].Problems)
				require.NotNil(t, e.Deployments[0].Record.Routing)
			}},
		{name: "a record that is retired, and whose spec is gone", files: map[string]string{
			"deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml") + "  retire: {current: Keep, by: me, at: \"2026-01-01T00:00:00Z\"}\n",
			"deploy/shop/x/status.yaml":  specYAML("shop", "x", "i:1") + "status: {}\n",
		}, names: []string{"shop/x"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			d := e.Deployments[0]
			require.Equal(t, "i:1", d.Spec.Spec.Template.FirstImage)
			require.Nil(t, d.Spec.Status)
			require.Nil(t, d.LastConnection, "the spec's")
			require.Empty(t, d.SpecPath)
			require.Equal(t, "localhost:7233", d.Connection.Spec.HostPort)
		}},
		{name: "a record whose spec is gone, with a status, and that nobody retired", files: map[string]string{
			"deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml"), "deploy/shop/x/status.yaml": specYAML("shop", "x", "i:1") + "status: {}\n",
		}, names: []string{"shop/x"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			require.Nil(t, e.Deployments[0].Spec)
			require.Equal(t, "localhost:7233", e.Deployments[0].Connection.Spec.HostPort, "the last good spec's")
		}},
		{name: "an invalid spec beside a status", files: map[string]string{
			"a.yaml": strings.Replace(specYAML("shop", "x", "i:1"), "AllAtOnce", "AllAtOne", 1), "deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml"),
			"deploy/shop/x/status.yaml": specYAML("shop", "x", "i:1") + "status: {}\n",
		}, names: []string{"shop/x"}, problems: []string{"a.yaml:6: spec.rollout.strategy"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			require.Nil(t, e.Deployments[0].Spec)
			require.Equal(t, "localhost:7233", e.Deployments[0].Connection.Spec.HostPort)
			require.Equal(t, "i:1", e.Deployments[0].Record.Status.Spec.Template.FirstImage)
		}},
		{name: "an invalid spec beside a status: the recorded connection is the one that counts", files: map[string]string{
			"a.yaml": "apiVersion: temporal.io/v1alpha1\nkind: [\n", "b.yaml": strings.NewReplacer("name: temporal,", "name: other,", "localhost", "other").Replace(connectionYAML),
			"deploy/shop/x/routing.yaml": strings.Replace(routingYAML("x", "a.yaml"), "  desired:", "  connection: {name: other, spec: {hostPort: \"was:7233\"}}\n  desired:", 1),
			"deploy/shop/x/status.yaml":  specYAML("shop", "x", "i:1") + "status: {}\n",
		}, names: []string{"shop/x"}, problems: []string{"a.yaml:"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			require.Equal(t, "other:7233", e.Deployments[0].Connection.Spec.HostPort)
			require.Equal(t, "was:7233", e.Deployments[0].Record.Routing.Spec.Connection.Spec.HostPort)
		}},
		{name: "a spec whose connection is gone names none", files: map[string]string{
			"a.yaml": strings.Replace(specYAML("shop", "x", "i:1"), "connectionRef: {name: temporal}", "connectionRef: {name: gone}", 1), "deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml"),
			"deploy/shop/x/status.yaml": specYAML("shop", "x", "i:1") + "status: {}\n",
		}, names: []string{"shop/x"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			require.Nil(t, e.Deployments[0].Connection)
			require.Equal(t, "localhost:7233", e.Deployments[0].LastConnection.Spec.HostPort)
		}},
		{name: "a spec that names another connection than the record", files: map[string]string{
			"a.yaml": specYAML("shop", "x", "i:1"), "b.yaml": strings.NewReplacer("name: temporal,", "name: other,", "localhost", "other").Replace(connectionYAML),
			"deploy/shop/x/routing.yaml": strings.Replace(routingYAML("x", "a.yaml"), "  desired:", "  connection: {name: other, spec: {hostPort: \"was:7233\"}}\n  desired:", 1),
		}, names: []string{"shop/x"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			require.Equal(t, "localhost:7233", e.Deployments[0].Connection.Spec.HostPort)
			require.Equal(t, "other:7233", e.Deployments[0].LastConnection.Spec.HostPort)
		}},
		{name: "a record that cannot be read", files: map[string]string{
			"a.yaml": specYAML("shop", "x", "i:1"), "deploy/shop/x/routing.yaml": strings.Replace(routingYAML("x", "a.yaml"), "{current:", "{currennt:", 1),
		}, names: []string{"shop/x"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			require.Contains(t, e.Deployments[0].Record.RoutingProblem.Message, "deploy/shop/x/routing.yaml:8: spec.desired.currennt: unknown field (did you mean current?)")
		}},
		{name: "a record without its routing.yaml", files: map[string]string{
			"a.yaml": specYAML("shop", "x", "i:1"), "deploy/shop/x/versions/v1/deployment.yaml": "kind: Deployment\n",
		}, names: []string{"shop/x"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			require.Contains(t, e.Deployments[0].Record.RoutingProblem.Message, "is missing beside other files")
		}},
		{name: "names that could collide", files: map[string]string{
			"a.yaml": specYAML("shop", "x", "i:1"), "b.yaml": specYAML("shop", "x-y", "i:1"), "c.yaml": specYAML("shop", "xy", "i:1"),
			"deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml"), "deploy/shop/x-y/routing.yaml": routingYAML("x-y", "b.yaml"),
			"deploy/shop/xy/routing.yaml": routingYAML("xy", "c.yaml"),
		}, names: []string{"shop/x", "shop/x-y", "shop/xy"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			require.Equal(t, []string{"x-y-v1"}, e.Deployments[0].TakenNames)
			require.Equal(t, []string{"x-v1"}, e.Deployments[1].TakenNames)
			require.Empty(t, e.Deployments[2].TakenNames)
		}},
		{name: "rollouts of the others", files: map[string]string{
			"a.yaml": specYAML("shop", "x", "i:1"), "b.yaml": specYAML("shop", "y", "i:1"), "c.yaml": specYAML("shop", "z", "i:1"), "d.yaml": specYAML("shop", "w", "i:1"),
			"deploy/shop/x/routing.yaml": ramps(routingYAML("x", "a.yaml")), "deploy/shop/y/routing.yaml": routingYAML("y", "b.yaml"),
			"deploy/shop/z/routing.yaml": strings.Replace(routingYAML("z", "c.yaml"), "current", "currennt", 1),
			"deploy/shop/w/routing.yaml": ramps(routingYAML("w", "d.yaml")),
		}, names: []string{"shop/w", "shop/x", "shop/y", "shop/z"}, check: func(t *testing.T, e rollout.EnvironmentWorld) {
			w := rollout.InProgress{Deployment: rollout.Name{Namespace: "shop", Name: "w"}, BuildID: "v2"}
			x := rollout.InProgress{Deployment: rollout.Name{Namespace: "shop", Name: "x"}, BuildID: "v2"}
			unread := rollout.InProgress{Deployment: rollout.Name{Namespace: "shop", Name: "z"}}
			for i, want := range [][]rollout.InProgress{{x, unread}, {w, unread}, {w, x, unread}, {w, x}} {
				require.Equal(t, want, e.Deployments[i].Rollouts, e.Deployments[i].Deployment)
			}
		}},
		{name: "too large", files: map[string]string{"big.yaml": "# temporal.io\n" + strings.Repeat("x", tree.MaxFileSize)}, problems: []string{"big.yaml: is larger than"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{}
			for k, v := range base {
				files[k] = v
			}
			for k, v := range c.files {
				files[k] = v
			}
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: files, Links: map[string]string{"link.yaml": "workers/connection.yaml"}})
			inGit := read(t, open(t, r))
			onDisk, err := index.ReadFolder(writeFolder(t, files))
			require.NoError(t, err)
			for where, w := range map[string]rollout.World{"in Git": inGit, "on disk": onDisk} {
				require.Equal(t, c.names, names(w.Environments[0]), where)
				got := problems(w)
				require.Len(t, got, len(c.problems), "%s: %v", where, got)
				for i, want := range c.problems {
					require.Contains(t, got[i], want, where)
				}
				if c.check != nil {
					c.check(t, w.Environments[0])
				}
			}
		})
	}
}

func writeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o644))
	}
	return dir
}

func TestReadConfigProblems(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no Config":   {"a: 1\n", "rampart.yaml: holds no Config"},
		"two Configs": {twoEnvironments + "---\n" + twoEnvironments, "holds a second Config"},
		"another":     {connectionYAML, "holds a TemporalConnection"},
		"misspelled":  {strings.ReplaceAll(twoEnvironments, "specs:", "spec:"), "did you mean specs"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := index.ReadFolder(writeFolder(t, map[string]string{layout.Config: c.text}))
			require.NoError(t, err)
			require.Empty(t, w.Environments, "nothing is done by a configuration that is wrong")
			require.Contains(t, strings.Join(problems(w), "\n"), c.want)
		})
	}
}

func TestReadTwoEnvironments(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{
		layout.Config: twoEnvironments, "policies/a.rego": "package rampart.rollout\n", "policies/data.yaml": "a: 1\n",
		"staging/a.yaml": strings.Replace(specYAML("shop", "x", "i:1"), ", namespace: shop", "", 1), "prod/a.yaml": specYAML("shop", "x", "i:1"),
		"shared/c.yaml": connectionYAML, "staging/b.yaml": strings.Replace(specYAML("shop", "y", "i:1"), "name: temporal", "name: own", 1),
		"staging/c.yaml": strings.Replace(connectionYAML, "name: temporal, namespace: shop", "name: own", 1),
	}})
	w := read(t, open(t, r))
	require.Empty(t, problems(w))
	require.Equal(t, []string{"shop/x", "shop/y"}, names(w.Environments[0]))
	require.Equal(t, v1alpha1.ObjectMeta{Name: "own", Namespace: "shop"}, w.Environments[0].Deployments[1].Connection.Metadata,
		"the environment's default, by which its credentials are found")
	require.Nil(t, w.Environments[0].Deployments[0].Connection, "connections are the environment's own")
	require.Equal(t, "shop", w.Environments[0].Deployments[0].Spec.Metadata.Namespace, "the environment's default")
	require.NotNil(t, w.Environments[1].Deployments[0].Connection)
	require.Empty(t, w.Environments[1].Base, "its branch does not exist yet")
	require.Equal(t, []rollout.TextFile{{Path: "policies/a.rego", Text: "package rampart.rollout\n"}}, w.Environments[1].Policies)
}

// memoryTree is a tree of files in memory, hashed as Git does.
type memoryTree map[string]string

func (m memoryTree) Root() string { return m.hash(".") }

// hash of a directory is that of all that is below it.
func (m memoryTree) hash(dir string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if dir == "." || strings.HasPrefix(name, dir+"/") {
			fmt.Fprintf(&b, "%s %s\n", name, hashOf(m[name]))
		}
	}
	return hashOf(b.String())
}

func (m memoryTree) List(dir, _ string) ([]tree.Entry, error) {
	var out []tree.Entry
	for _, name := range slices.Sorted(maps.Keys(m)) {
		rest, ok := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			rest, ok = name, true
		}
		if !ok {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		e := tree.Entry{Name: first, Kind: tree.IsFile, Hash: hashOf(m[name])}
		if deeper {
			e = tree.Entry{Name: first, Kind: tree.IsFolder, Hash: m.hash(path.Join(dir, first))}
		}
		if n := len(out); n == 0 || out[n-1].Name != first {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m memoryTree) Read(file, _ string) ([]byte, error) { return []byte(m[file]), nil }

// Reading on top of what was read before gives what reading anew gives, whatever changed.
func TestReadAgainIsReadAnew(t *testing.T) {
	paths := []string{"a/x.yaml", "a/b/y.yaml", "a/b/c/z.yaml", "w.yaml", "deploy/shop/x/routing.yaml", "deploy/shop/y/routing.yaml",
		"deploy/shop/x/status.yaml", "workers/connection.yaml", "x-pdb.yaml", "y-pdb.yaml",
		"far/f.yaml", "far/g.yaml", "far/connection.yaml", "deploy/far/f/routing.yaml", "deploy/far/g/routing.yaml", "cluster/connection.yaml", "cluster/second.yaml"}
	content := func(path string, n int) string {
		switch {
		case strings.HasPrefix(path, "deploy/far"):
			return strings.ReplaceAll(routingYAML(strings.Split(path, "/")[2], "far/"+[]string{"f", "g"}[n%2]+".yaml"), "shop", "far")
		case path == "far/connection.yaml":
			return strings.ReplaceAll(connectionYAML, "shop", "far")
		case strings.HasPrefix(path, "cluster/"):
			return strings.Replace(clusterConnectionYAML, "cluster:", []string{"one:", "another:"}[n%2], 1)
		case strings.HasPrefix(path, "far/"):
			spec := specYAML("far", []string{"f", "g", "shop"}[n%3], "i:"+string(rune('0'+n)))
			return []string{spec, byCluster(spec)}[n/3%2]
		case strings.HasSuffix(path, "routing.yaml"):
			return routingYAML(strings.Split(path, "/")[2], paths[n%4])
		case strings.HasSuffix(path, "connection.yaml"):
			return connectionYAML
		case strings.HasSuffix(path, "pdb.yaml"):
			return templateYAML("pdb", []string{"x", "y", "nobody"}[n%3])
		}
		return specYAML("shop", strings.TrimSuffix(filepath.Base(path), ".yaml"), "i:"+string(rune('0'+n)))
	}
	rapid.Check(t, func(rt *rapid.T) {
		files := memoryTree{"keep": "x"}
		read := func(r *index.Reader) rollout.World {
			w, err := r.Read(files, func(v1alpha1.Environment) (tree.Tree, string, error) { return files, "base", nil }, rollout.GitContext{})
			require.NoError(rt, err)
			return w
		}
		var again index.Reader
		surveys := index.NewReader().AsIndex()
		for range rapid.IntRange(1, 6).Draw(rt, "commits") {
			for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(paths), 0, 4, rapid.ID[string]).Draw(rt, "paths") {
				if _, exists := files[p]; exists && rapid.Bool().Draw(rt, "delete") {
					delete(files, p)
					continue
				}
				files[p] = content(p, rapid.IntRange(0, 9).Draw(rt, "content"))
			}
			if diff := cmp.Diff(read(new(index.Reader)), read(&again), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(v1alpha1.Document{})); diff != "" {
				rt.Fatalf("reading again differs from reading anew:\n%s", diff)
			}
			survey := read(surveys)
			for range rapid.IntRange(0, 2).Draw(rt, "more surveys") { // what was decoded has an index entry then
				survey = read(surveys)
			}
			for i := range survey.Environments {
				var err error
				env := &survey.Environments[i]
				env.Deployments, err = surveys.Surveyed().Load(t.Context(), surveys.Surveyed().Snapshots(env.Environment.Name, env.Entries))
				require.NoError(rt, err)
				env.Entries = nil
			}
			if diff := cmp.Diff(read(new(index.Reader)), survey, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(v1alpha1.Document{})); diff != "" {
				rt.Fatalf("what a survey says, loaded, differs from reading anew:\n%s", diff)
			}
		}
	})
}

// identified is what worker deployments are compared by, read in full or not.
func identified(all []*rollout.IndexEntry) []*rollout.IndexEntry {
	out := slices.Clone(all)
	for i, k := range all {
		if s := k.Full; s != nil {
			out[i] = &rollout.IndexEntry{Deployment: s.Deployment, SpecPath: s.SpecPath, SpecBlob: s.Git.SpecBlob, Connection: s.Connection,
				LastConnection: s.LastConnection, ConnectionPath: s.ConnectionPath, Dir: s.Record.Dir, Tree: s.Record.Tree}
		}
	}
	return out
}

// A survey of a settled fleet decodes nothing anew. Whatever moves then, it says what a first one says.
func TestSurveyOfASettledFleet(t *testing.T) {
	testneed.Plain(t)
	far := func(text string) string { return strings.ReplaceAll(text, "shop", "far") }
	settled := memoryTree{"x.yaml": specYAML("shop", "x", "i:1"), "y.yaml": byCluster(specYAML("shop", "y", "i:1")), "c.yaml": connectionYAML, "cluster.yaml": clusterConnectionYAML,
		"far/f.yaml": specYAML("far", "f", "i:1"), "far/g.yaml": specYAML("far", "g", "i:1"), "far/c.yaml": far(connectionYAML),
		"deploy/shop/x/routing.yaml": routingYAML("x", "x.yaml"), "deploy/shop/y/routing.yaml": routingYAML("y", "y.yaml"),
		"deploy/far/f/routing.yaml": far(routingYAML("f", "far/f.yaml")), "deploy/far/g/routing.yaml": far(routingYAML("g", "far/g.yaml"))}
	for what, change := range map[string]memoryTree{
		"nothing":     {},
		"a spec":      {"x.yaml": specYAML("shop", "x", "i:2")},
		"a spec goes": {"far/g.yaml": ""},
		"another file has a connection of the name":           {"z.yaml": strings.Replace(connectionYAML, "localhost", "another", 1)},
		"another file has the same connection":                {"a.yaml": connectionYAML},
		"a connection moves":                                  {"c.yaml": "", "z.yaml": connectionYAML},
		"the file that a record says was another's is broken": {"x.yaml": "apiVersion: temporal.io/v1alpha1\nkind: [\n", "z.yaml": specYAML("shop", "x", "i:1")},
		"a spec is renamed":                                   {"x.yaml": specYAML("shop", "z", "i:1")},
		"a spec comes":                                        {"far/h.yaml": specYAML("far", "h", "i:1")},
		"a spec moves away":                                   {"far/g.yaml": specYAML("shop", "g", "i:1")},
		"a second one":                                        {"far/h.yaml": specYAML("far", "g", "i:1")},
		"a spec is broken":                                    {"far/g.yaml": specYAML("far", "g", "i:1") + "  more: 1\n"},
		"a record":                                            {"deploy/shop/x/routing.yaml": routingYAML("x", "y.yaml")},
		"a record goes":                                       {"deploy/far/g/routing.yaml": ""},
		"a record comes":                                      {"deploy/far/h/routing.yaml": far(routingYAML("h", "far/h.yaml"))},
		"a connection":                                        {"far/c.yaml": strings.Replace(far(connectionYAML), "localhost", "elsewhere", 1)},
		"a connection goes":                                   {"c.yaml": ""},
		"a spec names the ClusterConnection":                  {"far/f.yaml": byCluster(specYAML("far", "f", "i:1"))},
		"a ClusterConnection":                                 {"cluster.yaml": anotherCluster},
		"a ClusterConnection becomes the namespace's":         {"cluster.yaml": "", "c.yaml": "", "z.yaml": connectionYAML},
		"a second ClusterConnection":                          {"z.yaml": anotherCluster},
		"a record of the ClusterConnection":                   {"deploy/shop/x/routing.yaml": ofCluster(recordedConnection(routingYAML("x", "x.yaml"), "cluster.yaml", "cluster:7233"))},
		"a ClusterConnection goes":                            {"cluster.yaml": ""},
		"a template":                                          {"pdb.yaml": templateYAML("pdb", "x")},
		"a namespace goes":                                    {"deploy/far/f/routing.yaml": "", "deploy/far/g/routing.yaml": "", "far/f.yaml": "", "far/g.yaml": ""},
		"a namespace comes":                                   {"new.yaml": specYAML("new", "x", "i:1")},
	} {
		t.Run(what, func(t *testing.T) {
			files := maps.Clone(settled)
			read := func(r *index.Reader) rollout.World {
				w, err := r.Read(files, func(v1alpha1.Environment) (tree.Tree, string, error) { return files, "base", nil }, rollout.GitContext{})
				require.NoError(t, err)
				return w
			}
			surveys := index.NewReader().AsIndex()
			for range 2 {
				read(surveys)
			}
			for _, entry := range read(surveys).Environments[0].Entries {
				require.Nil(t, entry.Full, entry.Deployment)
			}
			for name, text := range change {
				if files[name] = text; text == "" {
					delete(files, name)
				}
			}
			want, first := read(index.NewReader()), index.NewReader().AsIndex()
			for range 3 {
				survey := read(surveys)
				env := &survey.Environments[0]
				require.Equal(t, identified(read(first).Environments[0].Entries), identified(env.Entries))
				var err error
				env.Deployments, err = surveys.Surveyed().Load(t.Context(), surveys.Surveyed().Snapshots("default", env.Entries))
				require.NoError(t, err)
				env.Entries = nil
				require.Empty(t, cmp.Diff(want, survey, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(v1alpha1.Document{})))
			}
		})
	}
}

// A survey after one in which an environment was given up finds what a first survey finds.
func TestSurveyAfterOneThatWasGivenUp(t *testing.T) {
	files := memoryTree{"x.yaml": specYAML("shop", "z", "i:1"), "y.yaml": specYAML("shop", "a", "i:1"), "c.yaml": connectionYAML,
		"deploy/shop/z/routing.yaml": routingYAML("z", "x.yaml"), "deploy/shop/a/routing.yaml": routingYAML("a", "y.yaml")}
	read := func(r *index.Reader) rollout.EnvironmentWorld {
		w, err := r.Read(files, func(v1alpha1.Environment) (tree.Tree, string, error) { return files, "base", nil }, rollout.GitContext{})
		require.NoError(t, err)
		return w.Environments[0]
	}
	surveys := index.NewReader().AsIndex()
	for range 3 {
		require.Len(t, read(surveys).Entries, 2)
	}
	bomb := "deploy/shop/z/" + strings.Repeat("deeper/", tree.MaxPath/7) + "x"
	files[bomb] = "x"
	given := read(surveys)
	require.Empty(t, given.Entries)
	require.Contains(t, given.Problems[0].String(), "nested deeper")
	delete(files, bomb)
	files["deploy/shop/a/status.yaml"] = "a: 1\n" // else the folders' hashes are those of before
	first := index.NewReader().AsIndex()
	for range 2 {
		require.Equal(t, identified(read(first).Entries), identified(read(surveys).Entries))
	}
}
