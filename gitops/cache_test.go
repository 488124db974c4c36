package gitops

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/diskcache"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

// Each process begins with what the one before knew of files, without a mirror, on a server that leaves out blobs.
// Whatever was done to the repository in between, it reads what a process reads that knows nothing, in few requests.
func TestSurveyWithFilesOfAnEarlierProcess(t *testing.T) {
	r := gittest.NewBareRepo(t)
	files := manyWorkers(6)
	config := func(specs string) string {
		return `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: default, specs: ` + specs + `, output: {path: clusters/a/deploy}, namespace: shop, policies: ["policies/**/*.rego"]}
`
	}
	for name, text := range files { // everything a level deeper, and in folders of its own
		delete(files, name)
		switch filepath.Dir(name) {
		case ".":
			files["apps/"+name[:len(name)-len(filepath.Ext(name))]+"/prod/"+name] = text
		default:
			files["clusters/a/"+name] = text
		}
	}
	files["rampart.yaml"] = config(`["apps/**/*.yaml"]`)
	files["apps/other/README"], files["apps/w02/prod/second.yaml"] = "none of ours", specYAML("shop", "second", "i:1")
	r.Commit(gittest.Commit{Write: files})
	served := filters(t, r)
	kept := diskcache.File{Path: filepath.Join(t.TempDir(), "cached"), Key: "v"}

	w, deploy := "apps/w01/prod/", "clusters/a/deploy/shop/"
	for _, step := range []struct {
		what   string
		commit gittest.Commit
	}{
		{what: "nothing"},
		{what: "a spec", commit: gittest.Commit{Write: map[string]string{w + "w01.yaml": specYAML("shop", "w01", "i:2")}}},
		{what: "a record", commit: gittest.Commit{Write: map[string]string{deploy + "w02/status.yaml": "a: 1\n", deploy + "w02/versions/v2/deployment.yaml": "# new\n"}}},
		{what: "a new one", commit: gittest.Commit{Write: map[string]string{"apps/new/dev/x.yaml": specYAML("shop", "new", "i:1"),
			deploy + "new/routing.yaml": routingYAML("new", "apps/new/dev/x.yaml")}}},
		{what: "another namespace", commit: gittest.Commit{Write: map[string]string{"apps/far/x.yaml": specYAML("far", "far", "i:1"),
			"clusters/a/deploy/far/far/routing.yaml": routingYAML("far", "apps/far/x.yaml")}}},
		{what: "one less", commit: gittest.Commit{Delete: []string{"apps/w03/prod/w03.yaml"}}},
		{what: "a link", commit: gittest.Commit{Links: map[string]string{w + "link.yaml": "w01.yaml", "apps/a.yaml": "w01"}}},
		{what: "a file beside folders", commit: gittest.Commit{Write: map[string]string{"apps/w04.yaml": "a: 1\n", "apps/w04-x/y.yaml": "a: 2\n"}}},
		{what: "a folder that moved", commit: gittest.Commit{Delete: []string{"apps/w05/prod/w05.yaml"},
			Write: map[string]string{"apps/moved/prod/w05.yaml": files["apps/w05/prod/w05.yaml"]}}},
		{what: "policies", commit: gittest.Commit{Write: map[string]string{"policies/a/b/c.rego": "package rampart.spec\n"}}},
		{what: "a folder becomes a file", commit: gittest.Commit{Delete: []string{"apps/other/README"}, Write: map[string]string{"apps/other": "x"}}},
		{what: "other globs", commit: gittest.Commit{Write: map[string]string{"rampart.yaml": config(`["apps/*/prod/*.yaml", "apps/*/*.yaml"]`)}}},
		{what: "nothing again"},
	} {
		t.Run(step.what, func(t *testing.T) {
			if step.commit.Write != nil || step.commit.Delete != nil || step.commit.Links != nil {
				r.Commit(step.commit)
			}
			packs := served.packs.Load()
			repo := served.open(t)
			kept.Parts = []diskcache.Part{repo}
			require.NoError(t, kept.Load())
			all, load := surveyOf(t, repo)
			require.LessOrEqual(t, served.packs.Load()-packs, int64(6), "one for all that moved of a kind")
			loaded, err := load(t.Context(), all)
			require.NoError(t, err)
			want := read(t, open(t, r))
			require.Empty(t, cmp.Diff(withoutManifests(want.Environments[0].Deployments), loaded))
			require.Equal(t, want.Problems, repo.survey.last.Problems)
			require.NoError(t, kept.Save())
		})
	}
}
