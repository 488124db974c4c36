package gitops

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

const twoApart = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: a, specs: ["a/**"], output: {path: deploy/a}, policies: ["policies/**/*.rego"]}
    - {name: b, specs: ["b/**"], output: {path: deploy/b}}
`

// with adds a tree or blob at a path to a commit, as somebody who builds objects by hand.
func with(r *gittest.Repo, path, mode, kind, hash string) {
	parts := strings.Split(path, "/")
	name := parts[len(parts)-1]
	line := fmt.Sprintf("%s %s %s\t%s\x00", mode, kind, hash, name)
	for i := len(parts) - 1; i >= 0; i-- {
		dir := strings.Join(parts[:i], "/")
		var kept []string
		listed := ""
		if dir == "" || r.Git("ls-tree", "-d", "main", dir) != "" {
			listed = r.Git("ls-tree", "-z", "main:"+dir)
		}
		for old := range strings.SplitSeq(listed, "\x00") {
			if old != "" && !strings.HasSuffix(old, "\t"+parts[i]) {
				kept = append(kept, old+"\x00")
			}
		}
		tree := r.GitInput([]byte(strings.Join(kept, "")+line), "mktree", "-z", "--missing")
		if i > 0 {
			line = fmt.Sprintf("040000 tree %s\t%s\x00", tree, parts[i-1])
			continue
		}
		commit := r.Git("commit-tree", "-p", "main", "-m", "hostile", tree)
		r.Git("update-ref", "refs/heads/main", commit)
	}
}

// bomb is a tree of ten to the power of levels files, in a few objects.
func bomb(r *gittest.Repo, levels int) string {
	at := "100644 blob " + r.GitInput([]byte("kind: Nothing\n"), "hash-object", "-w", "--stdin")
	tree := ""
	for range levels {
		lines := ""
		for i := range 10 {
			lines += fmt.Sprintf("%s\tf%d.yaml\n", at, i)
		}
		tree = r.GitInput([]byte(lines), "mktree")
		at = "040000 tree " + tree
	}
	return tree
}

// wide is a tree of n folders that are all the same one.
func wide(r *gittest.Repo, n int, of string) string {
	lines := ""
	for i := range n {
		lines += fmt.Sprintf("040000 tree %s\tn%03d\n", of, i)
	}
	return r.GitInput([]byte(lines), "mktree")
}

// rawTree is a tree of folders as git would not make it: names and hashes in turn.
func rawTree(r *gittest.Repo, folders ...string) string {
	var entries []string
	for i := 0; i < len(folders); i += 2 {
		entries = append(entries, "40000 "+folders[i], folders[i+1])
	}
	return rawEntries(r, entries...)
}

// rawEntries is a tree of anything: modes with names, and hashes, in turn.
func rawEntries(r *gittest.Repo, entries ...string) string {
	var raw []byte
	for i := 0; i < len(entries); i += 2 {
		hash, err := hex.DecodeString(entries[i+1])
		if err != nil {
			panic(err)
		}
		raw = append(append(raw, entries[i]+"\x00"...), hash...)
	}
	return r.GitInput(raw, "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
}

// blobOf writes a blob.
func blobOf(r *gittest.Repo, content string) string {
	return r.GitInput([]byte(content), "hash-object", "-w", "--stdin")
}

// deep is a tree of so many folders within each other.
func deep(r *gittest.Repo, levels int) string {
	at := "100644 blob " + r.GitInput([]byte("x"), "hash-object", "-w", "--stdin")
	in := ""
	for range levels {
		name := strings.Repeat("d", 200)
		in = r.GitInput([]byte(at+"\t"+name+"\n"), "mktree")
		at = "040000 tree " + in
	}
	return in
}

// numbered are a worker deployment and those that wide makes.
func numbered(n int) []string {
	out := []string{"shop/checkout"}
	for i := range n {
		out = append(out, fmt.Sprintf("shop/n%03d", i))
	}
	return out
}

// What somebody who may push to one environment's folders tries with the shape of what is pushed. It is said what is
// wrong with it, nothing of it is decided where that is not known, and the other environment goes on.
func TestHostileTrees(t *testing.T) {
	testneed.Plain(t)
	large := func(r *gittest.Repo) string {
		return r.GitInput([]byte(strings.Repeat("x: y\n", tree.MaxFileSize/5+1)), "hash-object", "-w", "--stdin")
	}
	for name, c := range map[string]struct {
		path, mode, kind string
		object           func(*gittest.Repo) string
		says             string
		deployments      []string // of environment a
	}{
		"a bomb among specs":   {"a/x", "040000", "tree", func(r *gittest.Repo) string { return bomb(r, 9) }, "more than 500000 files", nil},
		"a bomb in the output": {"deploy/a/shop/x", "040000", "tree", func(r *gittest.Repo) string { return bomb(r, 9) }, "more than 500000 files", nil},
		"a bomb of records": {"deploy/a", "040000", "tree", func(r *gittest.Repo) string {
			empty := r.GitInput(nil, "mktree")
			return wide(r, 800, wide(r, 800, empty))
		}, "more than 500000 files", nil},
		"a namespace twice": {"deploy/a", "040000", "tree", func(r *gittest.Repo) string {
			shop := r.Git("rev-parse", "main:deploy/b/shop")
			return rawTree(r, "shop", shop, "shop", shop)
		}, `deploy/a: has an entry "shop" that is there twice`, []string{"shop/cart", "shop/checkout"}},
		"a record twice": {"deploy/a/shop", "040000", "tree", func(r *gittest.Repo) string {
			cart := r.Git("rev-parse", "main:deploy/b/shop/cart")
			return rawTree(r, "cart", cart, "cart", cart)
		}, `deploy/a/shop: has an entry "cart" that is there twice`, []string{"shop/cart", "shop/checkout"}},
		"a path as a namespace": {"deploy/a", "040000", "tree", func(r *gittest.Repo) string {
			return rawTree(r, "../b/shop", r.Git("rev-parse", "main:deploy/b/shop"))
		}, `deploy/a: has an entry "../b/shop" that is there twice, or is a path`, []string{"shop/checkout"}},
		"deep specs":    {"a/x", "040000", "tree", func(r *gittest.Repo) string { return deep(r, 30) }, "nested deeper than a path of 4096 bytes", nil},
		"a deep record": {"deploy/a/shop/x", "040000", "tree", func(r *gittest.Repo) string { return deep(r, 30) }, "nested deeper", nil},
		"a huge spec":   {"a/huge.yaml", "100644", "blob", large, "a/huge.yaml: is larger than 1048576 bytes", []string{"shop/checkout"}},
		"a huge policy": {"policies/huge.rego", "100644", "blob", large, "policies/huge.rego: is larger than", []string{"shop/checkout"}},
		"a huge record": {"deploy/a/shop/other/routing.yaml", "100644", "blob", large, "deploy/a/shop/other/routing.yaml: is larger than", []string{"shop/checkout", "shop/other"}},
		"many huge records": {"deploy/a/shop", "040000", "tree", func(r *gittest.Repo) string {
			return wide(r, 18, r.GitInput([]byte("100644 blob "+large(r)+"\trouting.yaml\n"), "mktree"))
		}, "deploy/a/shop/n017/routing.yaml: is larger than", numbered(18)},
		"many records with much in them": {"deploy/a/shop", "040000", "tree", func(r *gittest.Repo) string {
			return wide(r, 60, wide(r, 95, wide(r, 95, r.GitInput(nil, "mktree"))))
		}, "more than 500000 files", nil},
		"a submodule of specs":  {"a/sub", "160000", "commit", func(*gittest.Repo) string { return strings.Repeat("1", 40) }, "", []string{"shop/checkout"}},
		"a submodule as record": {"deploy/a/shop", "160000", "commit", func(*gittest.Repo) string { return strings.Repeat("1", 40) }, "", []string{"shop/checkout"}},
		"a link to secrets": {"a/link.yaml", "120000", "blob", func(r *gittest.Repo) string {
			return r.GitInput([]byte("/etc/passwd"), "hash-object", "-w", "--stdin")
		}, "", []string{"shop/checkout"}},
		"a link as output": {"deploy/a/shop", "120000", "blob", func(r *gittest.Repo) string {
			return r.GitInput([]byte("../b/shop"), "hash-object", "-w", "--stdin")
		}, "", []string{"shop/checkout"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: map[string]string{layout.Config: twoApart, "a/c.yaml": specYAML("shop", "checkout", "x"),
				"b/c.yaml": specYAML("shop", "cart", "x"), "a/t.yaml": connectionYAML, "deploy/a/x": "", "deploy/b/shop/cart/routing.yaml": routingYAML("cart", "b/c.yaml"), "policies/ok.rego": "package rampart.rollout\n"}})
			with(r, c.path, c.mode, c.kind, c.object(r))
			repo := open(t, r)
			w, err := repo.Read(t.Context())
			require.NoError(t, err)
			require.Len(t, w.Environments, 2)
			said := ""
			for _, p := range w.Environments[0].Problems {
				said += p.String() + "\n"
			}
			require.Contains(t, said, c.says)
			for _, s := range w.Environments[0].Deployments {
				if s.Deployment.Name == "other" {
					require.NotNil(t, s.Record.RoutingProblem)
				}
			}
			requireReadable(t, w.Environments[0], c.deployments, strings.HasPrefix(c.path, "deploy/"))
			require.Len(t, w.Environments[1].Deployments, 1, "the other environment goes on")
			times := 1
			if c.deployments != nil { // later surveys have more index entries
				times = 3
			}
			for range times {
				again, err := repo.Read(t.Context())
				require.NoError(t, err)
				require.Equal(t, len(w.Environments[0].Problems), len(again.Environments[0].Problems))
				survey, _, err := repo.Survey(t.Context())
				require.NoError(t, err)
				require.Equal(t, w.Environments[0].Problems, survey.World.Environments[0].Problems)
				var surveyed []string
				for _, k := range survey.World.Environments[0].Entries {
					surveyed = append(surveyed, k.Deployment.String())
				}
				require.Equal(t, names(w.Environments[0]), surveyed)
				r.Commit(gittest.Commit{Write: map[string]string{"elsewhere": strings.Repeat("x", len(r.Git("rev-list", "main")))}})
			}
		})
	}
}

// requireReadable: an environment has these worker deployments. nil: it cannot be read, and is as it was in the commit
// before, or at least its specs are.
func requireReadable(t *testing.T, e rollout.EnvironmentWorld, deployments []string, inRecords bool) {
	t.Helper()
	if deployments != nil {
		require.Equal(t, deployments, names(e))
		return
	}
	require.Equal(t, []string{"shop/checkout"}, names(e), "as in the commit before")
	require.NotNil(t, e.Unusable)
	require.Equal(t, rollout.InvalidConfiguration, e.Unusable.Reason)
	require.Contains(t, e.Unusable.Message, "traffic only goes down, by what could be read last")
	require.Equal(t, inRecords, e.Unrecorded)
	for _, d := range e.Deployments {
		require.Equal(t, e.Unusable, d.EnvironmentProblem)
	}
}

// Where a commit of the bot's would go to through what somebody put in its way.
func TestHostileOutputs(t *testing.T) {
	write := func(path string) []rollout.FileChange { return []rollout.FileChange{{Path: path, Data: "ours"}} }
	link := func(target string) func(*gittest.Repo) string {
		return func(r *gittest.Repo) string { return r.GitInput([]byte(target), "hash-object", "-w", "--stdin") }
	}
	file := link("x")
	for name, c := range map[string]struct {
		path, mode, kind string
		object           func(*gittest.Repo) string
		changes          []rollout.FileChange
		problem          git.PathProblem
	}{
		"a link in place of the folder":      {"deploy/a/shop", "120000", "blob", link("../../b"), write("deploy/a/shop/x.yaml"), git.PathIsSymlink},
		"a link in place of the file":        {"deploy/a/x.yaml", "120000", "blob", link("/etc/cron.d/x"), write("deploy/a/x.yaml"), git.PathIsSymlink},
		"a submodule in place of the folder": {"deploy/a/shop", "160000", "commit", func(*gittest.Repo) string { return strings.Repeat("1", 40) }, write("deploy/a/shop/x.yaml"), git.PathIsSubmodule},
		"a file in place of the folder":      {"deploy/a/shop", "100644", "blob", file, write("deploy/a/shop/x.yaml"), git.PathUnderFile},
		"the same name in capitals":          {"deploy/a/SHOP", "100644", "blob", file, write("deploy/a/shop/x.yaml"), git.PathCollision},
		"the same file in capitals":          {"deploy/a/X.yaml", "100644", "blob", file, write("deploy/a/x.yaml"), git.PathCollision},
		"the same name, composed":            {"deploy/a/cafe\u0301", "100644", "blob", file, write("deploy/a/caf\u00e9"), git.PathCollision},
		"the same name, with a long s":       {"deploy/a/\u017fhop", "100644", "blob", file, write("deploy/a/shop"), git.PathCollision},
		"the same name, with a joiner":       {"deploy/a/sh\u200dop", "100644", "blob", file, write("deploy/a/shop"), git.PathCollision},
		"the output folder in capitals":      {"deploy/A", "100644", "blob", file, write("deploy/a/x"), ""}, // deploy/a is there already
		".git":                               {"x", "100644", "blob", file, write("deploy/a/.git/config"), git.PathDotGit},
		".GIT.":                              {"x", "100644", "blob", file, write("deploy/a/.GIT./config"), git.PathDotGit},
		"git~1":                              {"x", "100644", "blob", file, write("deploy/a/git~1/config"), git.PathDotGit},
		".g\u200cit":                         {"x", "100644", "blob", file, write("deploy/a/.g\u200cit/config"), git.PathDotGit},
		"..":                                 {"x", "100644", "blob", file, write("deploy/a/../b/x"), git.PathComponent},
		"a backslash":                        {"x", "100644", "blob", file, write(`deploy/a\..\b`), git.PathCharacter},
		"two of ours":                        {"x", "100644", "blob", file, append(write("deploy/a/y"), write("deploy/a/Y")...), git.PathCollision},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: map[string]string{layout.Config: twoApart, "deploy/a/keep": "", "a/c.yaml": specYAML("shop", "checkout", "x")}})
			with(r, c.path, c.mode, c.kind, c.object(r))
			before := r.Tip("main")
			repo := open(t, r)
			w, err := repo.Read(t.Context())
			require.NoError(t, err)
			_, err = repo.Commit(t.Context(), rollout.Commit{Environment: w.Environments[0].Environment, Base: w.Environments[0].Base,
				Changes: c.changes, Message: "rampart: try"})
			if c.problem == "" {
				require.NoError(t, err)
				return
			}
			var refused *git.PathError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.problem, refused.Problem)
			var unwritable *rollout.UnwritableError
			require.ErrorAs(t, err, &unwritable, "whose it is can be left out")
			require.True(t, slices.ContainsFunc(c.changes, func(f rollout.FileChange) bool {
				return f.Path == unwritable.Path || strings.HasPrefix(f.Path, unwritable.Path+"/")
			}), unwritable.Path)
			require.Equal(t, before, r.Tip("main"))
		})
	}
}
