package gitops

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// The common ancestor is one that git merge-base finds, whatever the history and its clocks.
func TestMergeBaseIsGits(t *testing.T) {
	repo := gittest.NewBareRepo(t)
	tree := repo.GitInput(nil, "mktree")
	made := 0
	rapid.Check(t, func(rt *rapid.T) {
		var commits []string
		for i := range rapid.IntRange(2, 12).Draw(rt, "commits") {
			text, parents := "tree "+tree+"\n", ""
			for range rapid.IntRange(0, min(i, 3)).Draw(rt, "parents") {
				if p := rapid.SampledFrom(commits).Draw(rt, "parent"); !strings.Contains(parents, p) {
					parents += "parent " + p + "\n"
				}
			}
			who := fmt.Sprintf("A <a@b> %d +0000", 1_700_000_000+rapid.IntRange(0, 20).Draw(rt, "when"))
			made++
			text += fmt.Sprintf("%sauthor %s\ncommitter %s\n\n%d\n", parents, who, who, made)
			commits = append(commits, repo.GitInput([]byte(text), "hash-object", "-t", "commit", "-w", "--stdin"))
		}
		a, b := rapid.SampledFrom(commits).Draw(rt, "a"), rapid.SampledFrom(commits).Draw(rt, "b")
		clone, err := OpenClone(repo.Dir)
		require.NoError(rt, err)
		defer func() { require.NoError(rt, clone.Close()) }()
		got, err := clone.mergeBase(t.Context(), plumbing.NewHash(a), plumbing.NewHash(b))
		want, found := repo.Try("merge-base", "--all", a, b)
		var none *NoMergeBaseError
		if !found {
			require.ErrorAs(rt, err, &none)
			return
		}
		require.NoError(rt, err)
		require.Contains(rt, strings.Fields(want), got.String())
	})
}

// A tree of a few files at a few paths, so that sides meet.
func drawTree(rt *rapid.T, label string) map[string]string {
	out := map[string]string{}
	for _, file := range []string{"a", "b", "c/a", "c/b", "c/d/a", "e"} {
		if text := rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, label+" "+file); text != "" {
			out[file] = text + " in " + file + "\n"
		}
	}
	return out
}

// Where Git merges without looking into a file, the merge is Git's; a file that both sides changed is the change's, and
// a conflict.
func TestMergedTreeIsGits(t *testing.T) {
	repo := gittest.NewBareRepo(t)
	repo.Git("config", "merge.renames", "false")
	made := 0
	rapid.Check(t, func(rt *rapid.T) {
		trees := [3]map[string]string{drawTree(rt, "fork"), drawTree(rt, "base"), drawTree(rt, "head")}
		made++
		var names [3]string
		for i, files := range trees {
			names[i] = fmt.Sprintf("t%d-%d", made, i)
			parent := "none"
			if i > 0 {
				parent = names[0]
			}
			var gone []string
			for file := range trees[0] {
				if _, kept := files[file]; !kept && i > 0 {
					gone = append(gone, file)
				}
			}
			repo.Commit(gittest.Commit{Branch: names[i], Parent: parent, Write: files, Delete: gone})
		}
		m := mergedOf(t, repo, names)
		listed, err := index.Below(m, ".", m.Root())
		require.NoError(rt, err)
		got := map[string]string{}
		for file, hash := range listed {
			data, err := m.Read(file, hash)
			require.NoError(rt, err)
			got[file] = string(data)
		}
		printed, _ := repo.Try("merge-tree", "--write-tree", "--name-only", names[1], names[2]) // fails where there are conflicts
		merged := repo.Files(strings.Fields(printed)[0])
		for _, file := range []string{"a", "b", "c/a", "c/b", "c/d/a", "e"} {
			fork, base, head := trees[0][file], trees[1][file], trees[2][file]
			if fork != base && fork != head && base != head {
				require.True(rt, m.conflicts[file], file)
				require.Equal(rt, head, got[file], file)
				continue
			}
			require.False(rt, m.conflicts[file], file)
			require.Equal(rt, merged[file], got[file], file)
		}
	})
}

func mergedOf(t *testing.T, repo *gittest.Repo, names [3]string) mergedTree {
	t.Helper()
	clone, err := OpenClone(repo.Dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, clone.Close()) })
	var trees [3]gitTree
	for i, name := range names {
		_, trees[i], err = clone.tipOf(name)
		require.NoError(t, err)
	}
	return newMergedTree(t.Context(), trees[1], trees[0], trees[2])
}

const mergeConfig = "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments: [{name: prod, specs: [\"specs/**\"], output: {path: out}, namespace: shop}]\n"

func mergeRepo(t *testing.T) *gittest.Repo {
	repo := gittest.NewBareRepo(t)
	repo.Commit(gittest.Commit{Write: map[string]string{"rampart.yaml": mergeConfig, "specs/connection.yaml": connectionYAML,
		"specs/cart.yaml": specYAML("shop", "cart", "cart:v1"), "out/shop/cart/routing.yaml": routingYAML("cart", "specs/cart.yaml")}})
	return repo
}

func readMerge(t *testing.T, repo *gittest.Repo, head string) *Merge {
	t.Helper()
	m, err := ReadMerge(t.Context(), MergeQuery{Dir: repo.Dir, Base: "main", Head: head})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// What a change brings is bounded like everything that is read. That holds for a file, a tree of too many files, a
// folder that is too large, names that lead elsewhere, links. What else it changes is read.
func TestReadMergeOfAHostileChange(t *testing.T) {
	testneed.Plain(t)
	repo := mergeRepo(t)
	repo.Git("update-ref", "refs/heads/attack", repo.Tip("main"))
	repo.Commit(gittest.Commit{Branch: "attack", Write: map[string]string{"specs/large.yaml": strings.Repeat("# x\n", tree.MaxFileSize/4+1),
		"specs/cart.yaml": specYAML("shop", "cart", "cart:v2")},
		Links: map[string]string{"specs/passwd.yaml": "/etc/passwd", "specs/self": "../specs"}, Modules: map[string]string{"specs/module": repo.Tip("main")}})
	m := readMerge(t, repo, "attack")
	require.Equal(t, []string{"prod/shop/cart"}, namesOf(m))
	require.Equal(t, "cart:v2", m.After.Environments[0].Deployments[0].Spec.Spec.Template.FirstImage)
	require.Equal(t, "cart:v1", m.Before.Environments[0].Deployments[0].Spec.Spec.Template.FirstImage)
	require.Contains(t, strings.Join(problems(m.After), "\n"), "specs/large.yaml: is larger than")

	// A name that leads out of its folder: no git writes it, and the server is not asked to look.
	blob := repo.GitInput([]byte(specYAML("shop", "evil", "evil:v1")), "hash-object", "-w", "--stdin")
	inner := repo.GitInput([]byte("100644 evil.yaml\x00"+rawHash(blob)), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
	outer := repo.GitInput([]byte("40000 ..\x00"+rawHash(inner)), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
	specs := repo.GitInput([]byte("040000 tree "+outer+"\ta\n"), "mktree")
	top := repo.GitInput([]byte("040000 tree "+specs+"\tspecs\n"), "mktree")
	repo.Git("update-ref", "refs/heads/dots", repo.Git("commit-tree", "-p", "main", "-m", "dots", top))
	require.NotContains(t, namesOf(readMerge(t, repo, "dots")), "prod/shop/evil")

	repo.Git("update-ref", "refs/heads/bomb", repo.Tip("main"))
	tree := "040000 tree " + bomb(repo, 7)
	top = repo.GitInput([]byte(tree+"\tspecs\n"), "mktree")
	repo.Git("update-ref", "refs/heads/bomb", repo.Git("commit-tree", "-p", "main", "-m", "bomb", top))
	m = readMerge(t, repo, "bomb")
	require.Contains(t, strings.Join(problems(m.After), "\n"), "there are more than 500000 files and folders: nothing of the environment is decided")
	require.NotEmpty(t, m.Before.Environments[0].Deployments, "the base is what it was")
}

func rawHash(s string) string {
	h := plumbing.NewHash(s)
	return string(h[:])
}

func namesOf(m *Merge) []string {
	var out []string
	for _, env := range m.After.Environments {
		for _, n := range names(env) {
			out = append(out, path.Join(env.Environment.Name, n))
		}
	}
	return out
}

// A person who stops it does not wait for a tree of any size.
func TestReadMergeStops(t *testing.T) {
	repo := mergeRepo(t)
	repo.Git("update-ref", "refs/heads/change", repo.Tip("main"))
	repo.Commit(gittest.Commit{Branch: "change", Write: map[string]string{"specs/cart.yaml": specYAML("shop", "cart", "cart:v2")}})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	_, err := ReadMerge(ctx, MergeQuery{Dir: repo.Dir, Base: "main", Head: "change"})
	require.ErrorIs(t, err, context.Canceled)
	m := readMerge(t, repo, "change")
	merged := m.after.(mergedTree)
	merged.ctx = ctx
	_, err = merged.List(".", merged.Root())
	require.ErrorIs(t, err, context.Canceled)
	_, err = readAt(merged, "specs/cart.yaml")
	require.ErrorIs(t, err, context.Canceled)
}

// The same change is read the same way twice.
func TestReadMergeTwice(t *testing.T) {
	repo := mergeRepo(t)
	repo.Git("update-ref", "refs/heads/change", repo.Tip("main"))
	for i := range 20 {
		repo.Commit(gittest.Commit{Branch: "change", Write: map[string]string{fmt.Sprintf("specs/w%d.yaml", i): specYAML("shop", fmt.Sprintf("w%d", i), "w:v1")}})
	}
	repo.Commit(gittest.Commit{Write: map[string]string{"specs/w7.yaml": specYAML("shop", "w7", "w:v2"), "specs/other.yaml": specYAML("shop", "other", "w:v2")}})
	a, b := readMerge(t, repo, "change"), readMerge(t, repo, "change")
	require.Equal(t, a.After, b.After)
	require.Equal(t, []string{"specs/w7.yaml"}, a.Conflicts)
	require.Len(t, namesOf(a), 22)
	require.Equal(t, "main:", a.BasePrefix())
	text, err := a.Read("specs/w7.yaml")
	require.NoError(t, err)
	require.Contains(t, text, "w:v1")
	text, err = a.ReadBase("specs/w7.yaml")
	require.NoError(t, err)
	require.Contains(t, text, "w:v2")
	_, err = a.Read("specs")
	require.ErrorContains(t, err, "there is no such file")
}

// An output branch that a clone does not have is named, whichever way the clone is read.
func TestOutputBranchThatACloneLacks(t *testing.T) {
	repo := mergeRepo(t)
	config := strings.Replace(mergeConfig, "output: {path: out}", "output: {path: out, branch: made}", 1)
	repo.Commit(gittest.Commit{Write: map[string]string{"rampart.yaml": config}})
	repo.Commit(gittest.Commit{Branch: "change", Parent: "main", Write: map[string]string{"specs/other.yaml": specYAML("shop", "other", "o:1")}})
	require.Equal(t, []string{"made"}, readMerge(t, repo, "change").Absent)
	clone, err := OpenClone(repo.Dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, clone.Close()) }()
	tip, found, err := clone.Published("main")
	require.NoError(t, err)
	require.True(t, found)
	_, absent, err := clone.ReadAt(t.Context(), tip)
	require.NoError(t, err)
	require.Equal(t, []string{"made"}, absent)

	repo.Commit(gittest.Commit{Branch: "made", Parent: "main", Write: map[string]string{"README.md": "the bot's"}})
	require.Empty(t, readMerge(t, repo, "change").Absent)
}
