package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestUnmatchedPatterns: what is held, and what is a warning only.
func TestUnmatchedPatterns(t *testing.T) {
	const head = "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n    - name: prod\n      output: {path: deploy}\n      "
	for name, tc := range map[string]struct {
		lists         string
		held, warning []string
	}{
		"all there":         {lists: "specs: [w/a.yaml]\n      policies: [p/gold.rego, \"p/*.rego\"]\n      data: [p/data.yaml]\n"},
		"a misspelled path": {lists: "specs: [w/a.yaml]\n      policies: [p/gold.rego]\n      data:\n        - p/data.yaml\n        - p/dat.yaml\n", held: []string{"Error rampart.yaml:11: data: p/dat.yaml matches no file"}},
		"a folder":          {lists: "specs: [w/a.yaml]\n      policies: [p]\n", held: []string{`Error rampart.yaml:8: policies: p is a folder, and matches no file: for all files below it write "p/**"`}},
		"a folder, slash":   {lists: "specs: [w/a.yaml]\n      policies: [p/]\n", held: []string{`Error rampart.yaml:8: policies: p/ is a folder, and matches no file: for all files below it write "p/**"`}},
		"a folder missing":  {lists: "specs: [w/a.yaml]\n      policies: [q/gold.rego]\n", held: []string{"Error rampart.yaml:8: policies: q/gold.rego matches no file"}},
		"wildcards":         {lists: "specs: [w/a.yaml]\n      policies: [\"q/*.rego\"]\n      data: [\"p/{x,y}.yaml\"]\n", warning: []string{"Warning rampart.yaml:8: policies: q/*.rego matches no file", "Warning rampart.yaml:9: data: p/{x,y}.yaml matches no file"}},
		"specs":             {lists: "specs: [w, \"w/*.yml\", w/a.yaml]\n", warning: []string{`Warning rampart.yaml:7: specs: w is a folder, and matches no file: for all files below it write "w/**"`, "Warning rampart.yaml:7: specs: w/*.yml matches no file"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{layout.Config: head + tc.lists, "w/a.yaml": specYAML("shop", "a", "i:1"), "p/gold.rego": "package gold", "p/data.yaml": "a: 1"}
			w, err := index.ReadFolder(writeFolder(t, files))
			require.NoError(t, err)
			require.Empty(t, w.Problems)
			require.Empty(t, cmp.Diff(tc.held, said(w.Environments[0].PolicyProblems)))
			require.Empty(t, cmp.Diff(tc.warning, said(w.Environments[0].Problems)))
			w, err = index.ReadFolder(writeFolder(t, files), index.SomeFiles())
			require.NoError(t, err)
			require.Empty(t, w.Environments[0].PolicyProblems, "of some files nothing is known to be missing")
		})
	}
	w, err := index.ReadFolder(t.TempDir())
	require.NoError(t, err)
	require.Empty(t, problems(w), "nobody wrote the default patterns")
}

func said(problems []v1alpha1.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, string(p.Severity)+" "+p.String())
	}
	slices.Sort(out)
	return out
}

// TestLinksAreNotFollowed: a link in the place of a policy holds what policies judge, in a folder and in a commit;
// others are a warning.
func TestLinksAreNotFollowed(t *testing.T) {
	const config = "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n    - name: prod\n      output: {path: deploy}\n" +
		"      specs: [\"w/**\"]\n      policies: [\"p/*.rego\", \"q/**/*.rego\"]\n      data: [p/data.yaml]\n"
	dir := writeFolder(t, map[string]string{layout.Config: config, "w/a.yaml": specYAML("shop", "a", "i:1"), "p/gold.rego": "package gold", "q/gold.rego": "package gold2",
		"shared/s.rego": "package shared", "shared/data.yaml": "a: 1"})
	for link, to := range map[string]string{"p/s.rego": "../shared/s.rego", "p/README": "../shared", "p/data.yaml": "../shared/data.yaml", "q/sub": "../shared", "w/b.yaml": "a.yaml"} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	const why = " is a symbolic link or a submodule, and is not followed: put a file there"
	held := []string{"Error rampart.yaml:8: policies: p/s.rego" + why, "Error rampart.yaml:9: data: p/data.yaml matches no file", "Error rampart.yaml:9: data: p/data.yaml" + why}
	warned := []string{"Warning rampart.yaml:7: specs: w/b.yaml" + why, "Warning rampart.yaml:8: policies: q/sub" + why}
	inFolder, err := index.ReadFolder(dir)
	require.NoError(t, err)
	r := gittest.NewBareRepo(t)
	r.Git("--work-tree", dir, "add", "--all")
	tree := strings.TrimSpace(r.Git("write-tree"))
	r.Git("update-ref", "refs/heads/main", strings.TrimSpace(r.Git("commit-tree", "-m", "links", tree)))
	inCommit := read(t, open(t, r))
	for name, w := range map[string]rollout.World{"folder": inFolder, "commit": inCommit} {
		require.ElementsMatch(t, held, said(w.Environments[0].PolicyProblems), name)
		require.ElementsMatch(t, warned, said(w.Environments[0].Problems), name)
		require.Len(t, w.Environments[0].Deployments, 1, name)
	}
}
