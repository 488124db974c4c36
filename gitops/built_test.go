package gitops

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/signature"
	"github.com/rampart-gitops/rampart/gitops/source"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// counting builds in this process, and counts.
type counting struct {
	builds int
	// ends makes builds take too much.
	ends bool
}

func (c *counting) Build(in source.Input) (source.Output, error) {
	c.builds++
	if c.ends {
		return source.Output{}, &source.Error{File: in.Marker, Message: "cannot be built: it takes longer than 5s", Bounds: true}
	}
	return source.Build(in)
}

func (*counting) Close() {}

const overlays = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: prod, specs: ["overlays/prod", "plain/**"], output: {path: out/prod}, namespace: shop}
    - {name: charts, specs: ["charts/*"], helm: {values: [values-prod.yaml]}, output: {path: out/charts}, namespace: shop}
`

func sources() map[string]string {
	return map[string]string{
		layout.Config:                      overlays,
		"base/kustomization.yaml":          "resources: [a.yaml, connection.yaml]\n",
		"base/a.yaml":                      specYAML("shop", "a", "a:1"),
		"base/connection.yaml":             connectionYAML,
		"base/README.md":                   "for people\n",
		"overlays/prod/kustomization.yaml": "resources: [../../base]\npatches: [{path: patch.yaml}]\n",
		"overlays/prod/patch.yaml":         "apiVersion: temporal.io/v1alpha1\nkind: TemporalWorkerDeployment\nmetadata: {name: a, namespace: shop}\nspec: {replicas: 2}\n",
		"plain/b.yaml":                     specYAML("shop", "b", "b:1"),
		"charts/c/Chart.yaml":              "apiVersion: v2\nname: c\nversion: 1.0.0\n",
		"charts/c/values.yaml":             "tag: 1\n",
		"charts/c/values-prod.yaml":        "tag: 2\n",
		"charts/c/templates/c.yaml":        specYAML("shop", "c", "c:{{ .Values.tag }}"),
		"charts/c/templates/t.yaml":        connectionYAML,
		"out/prod/shop/a/routing.yaml":     routingYAML("a", "overlays/prod/kustomization.yaml"),
		"out/charts/shop/c/routing.yaml":   routingYAML("c", "charts/c/Chart.yaml"),
	}
}

func deployment(t *testing.T, w rollout.World, name string) rollout.Snapshot {
	t.Helper()
	for _, env := range w.Environments {
		for _, d := range env.Deployments {
			if d.Deployment.Name == name {
				return d
			}
		}
	}
	t.Fatalf("no %s in the world", name)
	return rollout.Snapshot{}
}

// What a folder builds counts. A change of any of its files is a change of the spec, and the commit of that change
// asked for it. What did not move is not built again.
func TestFoldersAreBuilt(t *testing.T) {
	r, b := gittest.NewBareRepo(t), &counting{}
	r.Commit(gittest.Commit{Write: sources()})
	repo := open(t, r)
	repo.whole.reader.Use(index.BuildWith(b))
	repo.survey.reader.Use(index.BuildWith(b))
	w := read(t, repo)
	require.Empty(t, problems(w))
	require.Equal(t, 2, b.builds)
	a, c := deployment(t, w, "a"), deployment(t, w, "c")
	require.Equal(t, int32(2), *a.Spec.Spec.Replicas)
	require.Equal(t, "overlays/prod/kustomization.yaml", a.SpecPath)
	require.Equal(t, a.SpecPath, a.ConnectionPath)
	require.Equal(t, "charts/c/Chart.yaml", c.SpecPath)
	var paths []string
	for _, f := range a.Git.Inputs {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"base/a.yaml", "base/connection.yaml", "base/kustomization.yaml", "overlays/prod/kustomization.yaml", "overlays/prod/patch.yaml"}, paths)
	require.Empty(t, a.Git.Beside)

	r.Commit(gittest.Commit{Write: map[string]string{"plain/b.yaml": specYAML("shop", "b", "b:2"), "other": "1"}})
	again := deployment(t, read(t, repo), "a")
	require.Equal(t, 2, b.builds, "nothing that it was built from moved")
	require.Equal(t, a.Git.SpecBlob, again.Git.SpecBlob)

	r.Commit(gittest.Commit{Write: map[string]string{"base/README.md": "for others\n"}})
	require.Equal(t, a.Git.SpecBlob, deployment(t, read(t, repo), "a").Git.SpecBlob, "no file that it is made of")

	base := r.Commit(gittest.Commit{Write: map[string]string{"base/a.yaml": specYAML("shop", "a", "a:2")}, Message: "base"})
	values := r.Commit(gittest.Commit{Write: map[string]string{"charts/c/values-prod.yaml": "tag: 3\n"}, Message: "values", When: gittest.Epoch.Add(-24 * time.Hour)})
	r.Commit(gittest.Commit{Write: map[string]string{"other": "2"}})
	w = read(t, repo)
	a, c = deployment(t, w, "a"), deployment(t, w, "c")
	require.NotEqual(t, again.Git.SpecBlob, a.Git.SpecBlob)
	require.Contains(t, fmt.Sprint(a.Spec.Spec.Template), "a:2")
	require.Contains(t, fmt.Sprint(c.Spec.Spec.Template), "c:3")
	origins, err := repo.Origins(t.Context(), []rollout.Snapshot{a, c})
	require.NoError(t, err)
	require.Equal(t, base, origins[0].Commit)
	require.Equal(t, values, origins[1].Commit, "the last on the branch, whatever time it claims")
	require.Equal(t, a.Git.Inputs, origins[0].Inputs)
	files := map[string]string{}
	for _, f := range a.SpecFiles() {
		files[f.Path] = f.Blob
	}
	ok, err := repo.Confirm(t.Context(), files)
	require.NoError(t, err)
	require.True(t, ok)
	r.Commit(gittest.Commit{Write: map[string]string{"base/a.yaml": specYAML("shop", "a", "a:3")}})
	ok, err = repo.Confirm(t.Context(), files)
	require.NoError(t, err)
	require.False(t, ok, "a base moved")
}

// Which of several commits is the last is known without a walk over the history between them.
func TestOriginOfManyFilesWalksNoHistory(t *testing.T) {
	const history = 1000
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: sources()})
	base := r.Commit(gittest.Commit{Write: map[string]string{"base/a.yaml": specYAML("shop", "a", "a:2")}, When: gittest.Epoch.Add(-24 * time.Hour)})
	others := func(i int) gittest.Commit { return gittest.Commit{Write: map[string]string{"other": fmt.Sprint(i)}} }
	r.Commits(history, others)
	repo := open(t, r)
	repo.whole.reader.Use(index.BuildWith(&counting{}))
	origin := func() string {
		t.Helper()
		a := deployment(t, read(t, repo), "a")
		got, err := repo.Origins(t.Context(), []rollout.Snapshot{a})
		require.NoError(t, err)
		require.Less(t, testing.AllocsPerRun(3, func() { _, _ = repo.Origins(t.Context(), []rollout.Snapshot{a}) }), float64(history))
		return got[0].Commit
	}
	require.Equal(t, base, origin())
	patch := r.Commit(gittest.Commit{Write: map[string]string{"overlays/prod/patch.yaml": "# more\n" + sources()["overlays/prod/patch.yaml"]}})
	require.Equal(t, patch, origin(), "it came after what is known")
	r.Commits(10, others)
	require.Equal(t, patch, origin())
	again := r.Commit(gittest.Commit{Write: map[string]string{"base/a.yaml": specYAML("shop", "a", "a:3")}})
	require.Equal(t, again, origin())
	kustomization := r.Commit(gittest.Commit{Write: map[string]string{"base/kustomization.yaml": "# more\n" + sources()["base/kustomization.yaml"]}})
	r.Commits(10, others)
	require.Equal(t, kustomization, origin())
}

// A survey has entries of a folder that did not move, and builds nothing to say what it holds. What is loaded is
// what was built.
func TestSurveyOfFolders(t *testing.T) {
	r, b := gittest.NewBareRepo(t), &counting{}
	all := sources()
	all["plain/connection.yaml"] = connectionYAML
	delete(all, "charts/c/templates/t.yaml") // one object, which has an entry
	r.Commit(gittest.Commit{Write: all})
	repo := open(t, r)
	repo.survey.reader.Use(index.BuildWith(b))
	var survey rollout.Survey
	var load func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error)
	for i := range 3 {
		var err error
		survey, load, err = repo.Survey(t.Context())
		require.NoError(t, err)
		r.Commit(gittest.Commit{Write: map[string]string{"other": fmt.Sprint(i)}})
	}
	env := survey.World.Environments[1]
	require.Equal(t, "charts", env.Environment.Name)
	snapshots := survey.Snapshots("charts", env.Entries)
	require.True(t, snapshots[0].Partial)
	require.NotEmpty(t, snapshots[0].Git.Inputs)
	snapshots, err := load(t.Context(), snapshots)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(snapshots[0].Spec.Spec.Template), "c:2")
	require.NotEmpty(t, snapshots[0].Git.Inputs)
	require.Equal(t, 2, b.builds)
}

// A spec is signed if all files that it was built from are.
func TestSignatureCoversWhatAFolderIsBuiltFrom(t *testing.T) {
	a := rollout.Snapshot{SpecPath: "k/kustomization.yaml", Git: rollout.GitContext{Inputs: []rollout.FileAt{{Path: "base/a.yaml", Blob: "01"}, {Path: "k/kustomization.yaml", Blob: "02"}}}}
	repo := &Repository{cfg: Config{Signers: &signature.Signers{}}}
	files := repo.besideOf(a)
	require.Len(t, files, 2)
	repo.origins = map[git.Wanted]rollout.GitContext{files[0]: {Signed: rollout.No}, files[1]: {Signed: rollout.Yes, Signer: "ada"}}
	require.Equal(t, rollout.No, repo.signedWith(rollout.GitContext{Signed: rollout.Yes, Signer: "ada"}, files).Signed)
	repo.origins[files[0]] = repo.origins[files[1]]
	require.Equal(t, rollout.GitContext{Signed: rollout.Yes, Signer: "ada"}, repo.signedWith(rollout.GitContext{Signed: rollout.Yes, Signer: "ada"}, files))
}

// A folder that cannot be built never looks like one without its specs: they cannot be used, and the others can.
func TestFolderThatCannotBeBuilt(t *testing.T) {
	for _, c := range []struct {
		name   string
		change gittest.Commit
		of     string
		want   string
	}{
		{"remote base", gittest.Commit{Write: map[string]string{"base/kustomization.yaml": "resources:\n- a.yaml\n- https://example.com/a\n"}}, "a",
			`base/kustomization.yaml:3: resources[1]: "https://example.com/a" is in another place`},
		{"base gone", gittest.Commit{Delete: []string{"base/kustomization.yaml", "base/a.yaml", "base/connection.yaml", "base/README.md"}}, "a",
			`overlays/prod/kustomization.yaml:1: resources[0]: "../../base" is not there`},
		{"template", gittest.Commit{Write: map[string]string{"charts/c/templates/c.yaml": "{{ if }}"}}, "c", `charts/c/Chart.yaml: cannot be rendered`},
		{"values gone", gittest.Commit{Delete: []string{"charts/c/values-prod.yaml"}}, "c", `charts/c/values-prod.yaml, which helm.values`},
		{"spec that is wrong", gittest.Commit{Write: map[string]string{"charts/c/values-prod.yaml": "tag: \"1\\\"\\n  wrong: \\\"\"\n"}}, "c", `charts/c/templates/c.yaml: `},
		{"another kind, which cannot be built", gittest.Commit{Delete: []string{"charts/c/Chart.yaml"}, Write: map[string]string{"charts/c/kustomization.yaml": "resources: [../x]\n"}}, "c",
			`charts/c/kustomization.yaml:1: resources[0]: "../x" is not there`},
		{"two kinds", gittest.Commit{Write: map[string]string{"charts/c/kustomization.yaml": "resources: []\n"}}, "c", `is beside kustomization.yaml`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: sources()})
			r.Commit(c.change)
			repo := open(t, r)
			repo.whole.reader.Use(index.BuildWith(&counting{}))
			w := read(t, repo)
			require.Contains(t, strings.Join(problems(w), "\n"), c.want)
			broken := deployment(t, w, c.of)
			require.Nil(t, broken.Spec)
			require.NotEmpty(t, broken.Problems, "else its spec would look deleted")
			require.Contains(t, broken.Problems[0].Message, c.want)
			require.Equal(t, rollout.InvalidSpec, broken.Problems[0].Reason)
			other := deployment(t, w, map[string]string{"a": "c", "c": "a"}[c.of])
			require.NotNil(t, other.Spec)
			require.Empty(t, other.Problems)
		})
	}
}

// Where the folder of a plain spec becomes one that cannot be built, its spec does not look deleted either.
func TestPlainSpecInAFolderThatCannotBeBuilt(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: overlays, "plain/b/b.yaml": specYAML("shop", "b", "b:1"), "plain/b/connection.yaml": connectionYAML,
		"out/prod/shop/b/routing.yaml": routingYAML("b", "plain/b/b.yaml")}})
	repo := open(t, r)
	repo.whole.reader.Use(index.BuildWith(&counting{}))
	require.NotNil(t, deployment(t, read(t, repo), "b").Spec)
	r.Commit(gittest.Commit{Write: map[string]string{"plain/b/kustomization.yaml": "resources: [https://example.com/b]\n"}})
	b := deployment(t, read(t, repo), "b")
	require.Nil(t, b.Spec)
	require.NotEmpty(t, b.Problems)
	require.Contains(t, b.Problems[0].Message, "is in another place")
}

// A folder that took too much is not built in each reading, and again after a while: the machine may have been busy.
func TestFolderThatTakesTooMuchIsBuiltLater(t *testing.T) {
	r, b, now := gittest.NewBareRepo(t), &counting{ends: true}, gittest.Epoch
	r.Commit(gittest.Commit{Write: sources()})
	repo := open(t, r)
	repo.cfg.Now = func() time.Time { return now }
	repo.whole.reader.Use(index.BuildWith(b))
	require.NotEmpty(t, deployment(t, read(t, repo), "a").Problems)
	builds := b.builds
	r.Commit(gittest.Commit{Write: map[string]string{"other": "1"}})
	require.NotEmpty(t, deployment(t, read(t, repo), "a").Problems)
	require.Equal(t, builds, b.builds)
	b.ends, now = false, now.Add(buildPause)
	a := deployment(t, read(t, repo), "a")
	require.Empty(t, a.Problems)
	require.NotNil(t, a.Spec)
}

// Without what builds folders, or where none is named, nothing is built.
func TestFoldersThatAreNotNamed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/kustomization.yaml", []byte("resources: [https://example.com/a]\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/a.yaml", []byte(specYAML("shop", "a", "a:1")+"---\n"+connectionYAML), 0o600))
	w, err := index.ReadFolder(dir)
	require.NoError(t, err)
	require.Empty(t, problems(w), "the default names files, and no folder")
	require.NotNil(t, deployment(t, w, "a").Spec)
}

// One spec in three ways is the same objects.
func TestThreeWays(t *testing.T) {
	var plain rollout.Snapshot
	for _, way := range []string{"plain", "kustomize", "helm"} {
		w, err := index.ReadFolder("../examples/sources/"+way, index.BuildWith(&counting{}))
		require.NoError(t, err)
		require.Empty(t, problems(w))
		require.Len(t, w.Environments[0].Deployments, 1)
		d := w.Environments[0].Deployments[0]
		if way == "plain" {
			plain = d
		}
		require.Equal(t, plain.Spec.Spec, d.Spec.Spec, way)
		require.Equal(t, plain.Spec.Digest(), d.Spec.Digest())
		require.Equal(t, plain.Connection, d.Connection)
	}
}
