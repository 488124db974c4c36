package gitops

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// openFilled opens a repository whose mirror has all objects already: git gives no pack of some that contradict each
// other, other servers do.
func openFilled(t *testing.T, r *gittest.Repo) *Repository {
	t.Helper()
	first := open(t, r)
	require.NoError(t, first.mirror.Close())
	dirs, err := filepath.Glob(filepath.Join(first.cfg.CacheDir, "mirror", "*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	objects := r.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
	r.GitInput([]byte(objects+"\n"), "pack-objects", "-q", filepath.Join(dirs[0], "objects", "pack", "pack"))
	refs := fmt.Sprintf("%s refs/heads/main\n", r.Tip("main"))
	require.NoError(t, os.WriteFile(filepath.Join(dirs[0], "packed-refs"), []byte(refs), 0o600))
	repo, err := Open(first.cfg)
	require.NoError(t, err)
	first.mirror = repo.mirror // it is closed with the first one
	return repo
}

// Objects that are not what the entries that name them say. Each is the repository's own fault: it stops what it is
// in, and does not make the bot fetch everything anew.
func TestOddObjects(t *testing.T) {
	testneed.Plain(t)
	tree := func(r *gittest.Repo) string { return r.Git("rev-parse", "main:deploy") }
	commit := func(r *gittest.Repo) string { return r.Tip("main") }
	blob := func(r *gittest.Repo) string { return blobOf(r, "kind: Nothing\n") }
	only := func(entry string, of func(*gittest.Repo) string) func(*gittest.Repo) string {
		return func(r *gittest.Repo) string { return rawEntries(r, entry, of(r)) }
	}
	raw := func(content string) func(*gittest.Repo) string {
		return func(r *gittest.Repo) string {
			return r.GitInput([]byte(content), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
		}
	}
	large := func(r *gittest.Repo) string {
		entry := func(i int) string { return fmt.Sprintf("100644 %07d\x00%s", i, strings.Repeat("h", 20)) }
		var all strings.Builder
		for i := range git.MaxTree/len(entry(0)) + 1 {
			all.WriteString(entry(i))
		}
		return raw(all.String())(r)
	}
	checkout, other := []string{"shop/checkout"}, []string{"shop/checkout", "shop/other"}
	for name, c := range map[string]struct {
		path        string
		Tree        func(*gittest.Repo) string
		says        string
		deployments []string // of environment a
	}{
		"a tree as a spec":             {"a/x", only("100644 x.yaml", tree), "a/x/x.yaml: cannot be read as a file (object", checkout},
		"a commit as a spec":           {"a/x", only("100644 x.yaml", commit), "expected a blob, found a commit)", checkout},
		"a tree as a policy":           {"policies/x", only("100644 x.rego", tree), "policies/x/x.rego: cannot be read as a file (object", checkout},
		"a tree as a routing":          {"deploy/a/shop/other", only("100644 routing.yaml", tree), "deploy/a/shop/other/routing.yaml: cannot be read as a file (object", other},
		"a tree as the root file":      {"deploy/a", only("100644 kustomization.yaml", tree), "deploy/a/kustomization.yaml: cannot be read as a file (object", checkout},
		"a blob as a folder of specs":  {"a/x", only("40000 y", blob), "a/x/y: it cannot be read as a folder (object", nil},
		"a commit as one":              {"a/x", only("40000 y", commit), "expected a tree, found a commit)", nil},
		"a blob as all specs":          {".", nil, "a: it cannot be read as a folder (object", nil},
		"a blob as a namespace":        {"deploy/a", only("40000 shop", blob), "deploy/a/shop: it cannot be read as a folder (object", nil},
		"a blob as a record":           {"deploy/a/shop", only("40000 other", blob), "deploy/a/shop/other: it cannot be read as a folder (object", nil},
		"a blob as a folder in one":    {"deploy/a/shop/other", only("40000 versions", blob), "deploy/a/shop/other/versions: it cannot be read as a folder (object", nil},
		"a blob as policies":           {"policies", only("40000 x", blob), "policies/x: it cannot be read as a folder (object", nil},
		"a mode of many bits":          {"a/x", only("7777777777777 y", blob), "a/x: it cannot be read as a folder (object", nil},
		"a mode that is none":          {"a/x", only("9 y", blob), "a/x: it cannot be read as a folder (object", nil},
		"a tree that is cut":           {"a/x", raw("100644 y.yaml\x00short"), "a/x: it cannot be read as a folder (object", nil},
		"a tree that is something":     {"a/x", raw("kind: Nothing\n"), "a/x: it cannot be read as a folder (object", nil},
		"a large folder":               {"a/x", large, "a/x: a folder is larger than 33554432 bytes", nil},
		"a large folder in the output": {"deploy/a/shop/x", large, "deploy/a/shop/x: a folder is larger than 33554432 bytes", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			first := r.Commit(gittest.Commit{Write: map[string]string{layout.Config: twoApart, "a/c.yaml": specYAML("shop", "checkout", "x"),
				"b/c.yaml": specYAML("shop", "cart", "x"), "deploy/a/x": "", "deploy/b/shop/cart/routing.yaml": routingYAML("cart", "b/c.yaml"), "policies/ok.rego": "package rampart.rollout\n"}})
			if c.Tree != nil {
				with(r, c.path, "040000", "tree", c.Tree(r))
			} else {
				root := rawEntries(r, "40000 a", blob(r), "40000 b", r.Git("rev-parse", "main:b"), "40000 deploy", tree(r), "100644 "+layout.Config, r.Git("rev-parse", "main:"+layout.Config))
				r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "-p", "main", "-m", "hostile", root))
			}
			repo := openFilled(t, r)
			w := read(t, repo)
			require.Len(t, w.Environments, 2)
			a, b := w.Environments[0], w.Environments[1]
			require.Contains(t, strings.Join(problems(rollout.World{Environments: w.Environments[:1]}), "\n"), c.says)
			requireReadable(t, a, c.deployments, strings.HasPrefix(c.path, "deploy/"))
			require.Equal(t, []string{"shop/cart"}, names(b), "the other environment goes on")
			require.Empty(t, b.Problems)
			survey, _, err := repo.Survey(t.Context())
			require.NoError(t, err)
			require.Equal(t, a.Problems, survey.World.Environments[0].Problems)
			require.Len(t, survey.World.Environments[1].Entries, 1)

			origins, err := repo.Origins(t.Context(), b.Deployments)
			require.NoError(t, err)
			require.Equal(t, first, origins[0].Commit, "history is searched through it")
			put := func(env rollout.EnvironmentWorld, file string) error {
				_, err := repo.Commit(t.Context(), rollout.Commit{Environment: env.Environment, Base: env.Base, Message: "rampart: try",
					Changes: []rollout.FileChange{{Path: file, Data: "ours"}}})
				return err
			}
			if strings.HasPrefix(c.path, "deploy/a") && c.deployments == nil {
				at, _, _ := strings.Cut(c.says, ": ")
				var unwritable *rollout.UnwritableError
				require.ErrorAs(t, put(a, at+"/x.yaml"), &unwritable)
				require.Equal(t, at, unwritable.Path)
			}
			if err = put(b, "deploy/b/x.yaml"); err != nil { // git, not the bot
				var rejected *git.RejectedError
				require.ErrorAs(t, err, &rejected)
			}
			_, err = repo.mirror.Fetch(t.Context(), "main")
			require.NoError(t, err)
			require.Zero(t, repo.mirror.Filled(), "nothing is fetched anew")
		})
	}
}

// A commit with a large message is known by the beginning of it.
func TestLargeMessage(t *testing.T) {
	testneed.Plain(t)
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:1")}})
	message := "subject\n\n" + strings.Repeat("\u00e9", 40<<20)
	commit := r.GitInput([]byte(message), "commit-tree", "-p", "main", r.Git("rev-parse", "main^{tree}"))
	r.Git("update-ref", "refs/heads/main", commit)
	repo := open(t, r)
	w := read(t, repo)
	require.Equal(t, commit, w.Git.Commit)
	require.LessOrEqual(t, len(w.Git.Message), git.MaxMessage)
	require.True(t, strings.HasPrefix(message, w.Git.Message) && len(w.Git.Message) > git.MaxMessage-4)
	require.Equal(t, []string{"shop/a"}, names(w.Environments[0]))

	clone, err := OpenClone(r.Dir)
	require.NoError(t, err)
	info, err := clone.Commit(plumbing.NewHash(commit))
	require.NoError(t, err)
	require.Equal(t, w.Git.Message, info.Message)
	require.NoError(t, clone.Close())
}

// previewed reads a clone as the preview does.
func previewed(t *testing.T, r *gittest.Repo) rollout.World {
	t.Helper()
	tree, err := openCommit(r.Dir, "main")
	require.NoError(t, err)
	w, err := index.NewReader().Read(tree, in(tree), rollout.GitContext{})
	require.NoError(t, err)
	return w
}

// in says that all outputs are in one tree.
func in(t tree.Tree) func(v1alpha1.Environment) (tree.Tree, string, error) {
	return func(v1alpha1.Environment) (tree.Tree, string, error) { return t, "", nil }
}

// Names that git never makes do not count. An entry with one is read by neither the bot nor the preview, leads nowhere,
// and is reported. Modes are what they are to git.
func TestHostileNames(t *testing.T) {
	const judges = "package rampart.rollout\n"
	evil := func(r *gittest.Repo) string { return blobOf(r, judges+"# evil\n") }
	spec := func(r *gittest.Repo) string { return blobOf(r, specYAML("shop", "other", "x")) }
	folder := func(r *gittest.Repo) string { return r.Git("rev-parse", "main:deploy/b/shop/cart") }
	specs := func(r *gittest.Repo) string { return rawEntries(r, "100644 o.yaml", spec(r)) }
	stray := func(dir, name string) string {
		return fmt.Sprintf("%s: has an entry %q that is there twice, or is a path or .git: it is left out; write the folder anew with git", dir, name)
	}
	for name, c := range map[string]struct {
		path    string
		entries []any // modes with names, and what is there
		says    string
		more    []string // worker deployments and policies beside what is there
	}{
		"a policy above":              {"policies/a-team", []any{"100644 ../ok.rego", evil}, stray("policies/a-team", "../ok.rego"), nil},
		"a policy by a path":          {"policies", []any{"100644 a-team/ok.rego", evil, "100644 ok.rego", "main:policies/ok.rego"}, stray("policies", "a-team/ok.rego"), nil},
		"a policy twice":              {"policies", []any{"100644 ok.rego", "main:policies/ok.rego", "100644 ok.rego", evil}, stray("policies", "ok.rego"), nil},
		"a policy that is a folder":   {"policies", []any{"100644 ok.rego", "main:policies/ok.rego", "100644 ok.rego-", evil, "40000 ok.rego", specs}, stray("policies", "ok.rego"), nil},
		"policies above":              {"policies/a-team", []any{"40000 ..", "main:policies"}, stray("policies/a-team", ".."), nil},
		"policies here":               {"policies/a-team", []any{"40000 .", "main:policies"}, stray("policies/a-team", "."), nil},
		"a spec of the other":         {"a/x", []any{"100644 ../../b/o.yaml", spec}, stray("a/x", "../../b/o.yaml"), nil},
		"specs in .git":               {"a/x", []any{"40000 .git", specs}, stray("a/x", ".git"), nil},
		"specs in .GIT":               {"a/x", []any{"40000 .GIT", specs}, stray("a/x", ".GIT"), nil},
		"a record above":              {"deploy/a/shop", []any{"40000 ..", folder}, stray("deploy/a/shop", ".."), nil},
		"a record here":               {"deploy/a/shop", []any{"40000 .", folder}, stray("deploy/a/shop", "."), nil},
		"a record of .git":            {"deploy/a/shop", []any{"40000 .git", folder}, stray("deploy/a/shop", ".git"), nil},
		"a namespace above":           {"deploy/a", []any{"40000 ..", "main:deploy/b/shop"}, stray("deploy/a", ".."), nil},
		"a spec of an old repository": {"a/x", []any{"100664 o.yaml", spec}, "", []string{"shop/other"}},
		"an executable spec":          {"a/x", []any{"100775 o.yaml", spec}, "", []string{"shop/other"}},
		"an old policy":               {"policies", []any{"100664 ok.rego", "main:policies/ok.rego"}, "", nil},
		"an old record":               {"deploy/a/shop/other", []any{"100664 routing.yaml", func(r *gittest.Repo) string { return blobOf(r, routingYAML("other", "a/o.yaml")) }}, "", []string{"shop/other"}},
		"a folder with a mode":        {"a/x", []any{"40755 y", specs}, "", []string{"shop/other"}},
		"a link with a mode":          {"policies/x", []any{"120777 l.rego", evil}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: map[string]string{layout.Config: twoApart, "a/c.yaml": specYAML("shop", "checkout", "x"),
				"b/c.yaml": specYAML("shop", "cart", "x"), "deploy/a/x": "", "deploy/b/shop/cart/routing.yaml": routingYAML("cart", "b/c.yaml"), "policies/ok.rego": judges}})
			var entries []string
			for _, e := range c.entries {
				switch e := e.(type) {
				case func(*gittest.Repo) string:
					entries = append(entries, e(r))
				case string:
					if strings.HasPrefix(e, "main:") {
						e = r.Git("rev-parse", e)
					}
					entries = append(entries, e)
				}
			}
			with(r, c.path, "040000", "tree", rawEntries(r, entries...))
			repo := openFilled(t, r)
			bot, person := read(t, repo), previewed(t, r)
			survey, _, err := repo.Survey(t.Context())
			require.NoError(t, err)
			for _, w := range []rollout.World{bot, person} {
				a := w.Environments[0]
				require.Equal(t, append([]string{"shop/checkout"}, c.more...), names(a))
				require.Equal(t, []rollout.TextFile{{Path: "policies/ok.rego", Text: judges}}, a.Policies)
				require.Contains(t, strings.Join(problems(rollout.World{Environments: w.Environments[:1]}), "\n"), c.says)
				require.Equal(t, bot.Environments[0].Problems, a.Problems)
				require.Equal(t, bot.Environments[0].PolicyProblems, a.PolicyProblems)
				require.Equal(t, []string{"shop/cart"}, names(w.Environments[1]))
				for _, d := range a.Deployments {
					require.NoError(t, git.CheckPath(d.Record.Dir))
					require.True(t, d.Record.RoutingProblem == nil && strings.HasPrefix(d.Record.Dir, "deploy/a/shop/"), d.Record.Dir)
				}
			}
			require.Equal(t, bot.Environments[0].Problems, survey.World.Environments[0].Problems)
			require.Equal(t, bot.Environments[0].Policies, survey.World.Environments[0].Policies)
			require.Len(t, survey.World.Environments[0].Entries, 1+len(c.more))
		})
	}
}

// What a merge leaves out of a folder that both sides changed is what the change brings there, and takes nothing else's
// place.
func TestMergeTakesNoOtherEntrysPlace(t *testing.T) {
	r := gittest.NewBareRepo(t)
	const judges = "package rampart.rollout\n"
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: twoApart, "a/c.yaml": specYAML("shop", "checkout", "x"), "policies/ok.rego": judges}})
	fork := r.Tip("main")
	evil := blobOf(r, judges+"# evil\n")
	with(r, "policies", "040000", "tree", rawEntries(r, "100644 ../a/c.yaml", evil, "100644 more.rego", blobOf(r, judges),
		"100644 ok.rego", r.Git("rev-parse", "main:policies/ok.rego"), "100644 ok.rego", evil))
	r.Git("update-ref", "refs/heads/change", r.Tip("main"))
	r.Git("update-ref", "refs/heads/main", fork)
	r.Commit(gittest.Commit{Write: map[string]string{"policies/base.rego": judges}})
	m, err := ReadMerge(t.Context(), MergeQuery{Dir: r.Dir, Base: "main", Head: "change"})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	a := m.Own.Environments[0]
	require.Equal(t, []rollout.TextFile{{Path: "policies/base.rego", Text: judges}, {Path: "policies/more.rego", Text: judges}, {Path: "policies/ok.rego", Text: judges}}, a.Policies)
	said := strings.Join(problems(m.Own), "\n")
	require.Contains(t, said, `policies: has an entry "../a/c.yaml" that is there twice, or is a path or .git`)
	require.Contains(t, said, `policies: has an entry "ok.rego" that is there twice, or is a path or .git`)
	require.Equal(t, []string{"shop/checkout"}, names(a))
}
