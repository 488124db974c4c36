package git

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

func TestForcePushIsNoticed(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		one := r.Commit(gittest.Commit{Write: map[string]string{"x": "1"}})
		m := openMirror(t, w)
		tip := fetch(t, m, "main")
		require.Equal(t, one, tip.Commit.String())

		two := r.Commit(gittest.Commit{Parent: one + "~1", Write: map[string]string{"x": "2"}})
		forced := fetch(t, m, "main")
		requireSame(t, Tip{Branch: "main", Commit: plumbing.NewHash(two), Tree: treeOf(r, two), Previous: tip.Commit, Rewritten: true, Before: tip.Commit}, forced)
		requireSame(t, r.Files("main"), readAll(t, m, forced.Tree))
		requireSame(t, []string{"+ x 100644"}, diffOf(t, m, tip.Tree, forced.Tree))

		r.Git("update-ref", "refs/heads/main", one)
		require.Equal(t, "rewritten", moveOf(fetch(t, m, "main")), "back to what the mirror has")
		_, err := m.Push(t.Context(), stage(t, m, commitOn(forced, put("ours", "1"))))
		var moved *MovedError
		require.ErrorAs(t, err, &moved)
	})
}

func TestForcePushWhoseOldHistoryIsGone(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		m := openMirror(t, w)
		old := fetch(t, m, "main")
		require.Len(t, readAll(t, m, old.Tree), len(first))
		for i := range 5 {
			parent := ""
			if i == 0 {
				parent = "none"
			}
			r.Commit(gittest.Commit{Parent: parent, Write: map[string]string{"brand": fmt.Sprint("new", i)}})
		}
		r.Git("reflog", "expire", "--expire=now", "--all")
		r.Git("gc", "--quiet", "--prune=now")
		tip := fetch(t, m, "main")
		require.Equal(t, "rewritten", moveOf(tip))
		requireSame(t, map[string]string{"brand": "new4"}, readAll(t, m, tip.Tree))
		c, err := m.Commit(tip.Commit)
		require.NoError(t, err)
		require.False(t, m.store.has(c.Parents[0]), "fetched anew at depth 1")
		require.Len(t, readAll(t, m, old.Tree), len(first), "what was there stays readable")
		r.Commit(gittest.Commit{Write: map[string]string{"brand": "newer"}})
		require.Equal(t, "forward", moveOf(fetch(t, m, "main")))
		require.NoError(t, m.Close())
		mirrorFsck(t, m.dir)
	})
}

func TestFindInHistory(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: map[string]string{"old/a.yaml": "v1", "keep": "0"}})
		r.Commit(gittest.Commit{Write: map[string]string{"old/a.yaml": "v2"}})
		deleted := r.Commit(gittest.Commit{Delete: []string{"old/a.yaml"}})
		r.Commits(100, func(i int) gittest.Commit { // beyond the first deepening
			return gittest.Commit{Write: map[string]string{"keep": fmt.Sprint(i)}}
		})
		m := openMirror(t, w)
		tip := fetch(t, m, "main")

		found, ok, err := m.FindInHistory(t.Context(), tip, Wanted{Path: "old/a.yaml"})
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, r.Git("rev-parse", deleted+"~1"), found.Commit.String())
		data, err := m.Blob(found.Entry.Hash, 100)
		require.NoError(t, err)
		require.Equal(t, "v2", string(data))

		found, ok, err = m.FindInHistory(t.Context(), tip, Wanted{Path: "old"})
		require.NoError(t, err)
		require.True(t, ok && found.Entry.IsDir())
		_, ok, err = m.FindInHistory(t.Context(), tip, Wanted{Path: "never/was"})
		require.NoError(t, err)
		require.False(t, ok)
		require.Empty(t, m.state.shallow, "all of history is here now")

		s := stage(t, m, commitOn(tip, put("old/a.yaml", string(data))))
		_, err = m.Push(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, "v2", r.Files("main")["old/a.yaml"])
		require.NoError(t, m.Close())
		mirrorFsck(t, m.dir)
	})
}

func TestFindInHistoryThroughAMerge(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a": "1"}})
	r.Commit(gittest.Commit{Branch: "side", Parent: "main", Write: map[string]string{"only/here": "s"}})
	r.Commit(gittest.Commit{Write: map[string]string{"a": "2"}})
	merge := r.Git("commit-tree", "-m", "merge, without the side's file", "-p", "main", "-p", "side", r.Tip("main")+"^{tree}")
	r.Git("update-ref", "refs/heads/main", merge)
	m := openFile(t, r)
	found, ok, err := m.FindInHistory(t.Context(), fetch(t, m, "main"), Wanted{Path: "only/here"})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, r.Tip("side"), found.Commit.String())
}

func TestHistoryOfABranchThatWasRewrittenMeanwhile(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a": "1"}})
	r.Commit(gittest.Commit{Write: map[string]string{"a": "2"}})
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	r.Commit(gittest.Commit{Parent: "none", Write: map[string]string{"b": "1"}})
	r.Git("reflog", "expire", "--expire=now", "--all")
	r.Git("gc", "--quiet", "--prune=now")
	_, _, err := m.FindInHistory(t.Context(), tip, Wanted{Path: "gone"})
	var moved *MovedError
	require.ErrorAs(t, err, &moved)
	require.Equal(t, tip.Commit, moved.Expected)
}

func TestManyCommitsWhileAway(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	m := openFile(t, r)
	before := fetch(t, m, "main")
	r.Commits(30, func(i int) gittest.Commit {
		return gittest.Commit{Write: map[string]string{fmt.Sprintf("f%d", i): strings.Repeat("x", i)}}
	})
	after := fetch(t, m, "main")
	require.Equal(t, "forward", moveOf(after))
	require.Len(t, diffOf(t, m, before.Tree, after.Tree), 30)
}

func TestIncrementThatIsTooLargeIsFetchedAnew(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	m := openFile(t, r)
	m.store.limits.increment = 10
	fetch(t, m, "main")
	r.Commits(12, func(i int) gittest.Commit { return gittest.Commit{Write: map[string]string{"f": fmt.Sprint(i)}} })
	tip := fetch(t, m, "main")
	require.Equal(t, "unknown", moveOf(tip))
	c, err := m.Commit(tip.Commit)
	require.NoError(t, err)
	require.False(t, m.store.has(c.Parents[0]))
	requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
}

// A file that somebody changed is brought back as it was, not as it is.
func TestFindInHistoryByBlob(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": "as it was\n"}})
	want := plumbing.NewHash(r.Git("rev-parse", "main:a.yaml"))
	for i := range 3 {
		r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": fmt.Sprintf("changed %d\n", i)}})
	}
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	_, err := m.Blob(want, 100)
	var missing *MissingObjectError
	require.ErrorAs(t, err, &missing, "the mirror begins shallow")
	found, ok, err := m.FindInHistory(t.Context(), tip, Wanted{Path: "a.yaml", Blob: want})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, found.Entry.Hash)
	text, err := m.Blob(want, 100)
	require.NoError(t, err)
	require.Equal(t, "as it was\n", string(text))
	_, ok, err = m.FindInHistory(t.Context(), tip, Wanted{Path: "a.yaml", Blob: plumbing.NewHash(strings.Repeat("ab", 20))})
	require.NoError(t, err)
	require.False(t, ok)
}

func TestIntroduced(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		root := r.Commit(gittest.Commit{Write: map[string]string{"always": "1", "specs/a": "1", "specs/b": "1"}})
		a := r.Commit(gittest.Commit{Write: map[string]string{"specs/a": "2"}})
		r.Commit(gittest.Commit{Write: map[string]string{"specs/b": "2"}})
		b := r.Commit(gittest.Commit{Write: map[string]string{"specs/b": "1"}}) // as it was once
		r.Commits(100, func(i int) gittest.Commit {                             // beyond the first deepening
			return gittest.Commit{Write: map[string]string{"status": fmt.Sprint(i)}}
		})
		m := openMirror(t, w)
		tip := fetch(t, m, "main")
		blob := func(path string) Wanted {
			e, ok, err := m.Lookup(tip.Tree, path)
			require.NoError(t, err)
			require.True(t, ok)
			return Wanted{path, e.Hash}
		}
		wants := []Wanted{blob("always"), blob("specs/a"), blob("specs/b"), blob("status")}
		since := func(earlier string) ([]string, bool) {
			found, _, known, err := m.IntroducedSince(tip, plumbing.NewHash(earlier), wants)
			require.NoError(t, err)
			var paths []string
			for want := range found {
				paths = append(paths, want.Path)
			}
			slices.Sort(paths)
			return paths, known
		}
		if _, err := m.Commit(plumbing.NewHash(b)); err != nil {
			_, known := since(a)
			require.False(t, known, "the mirror begins shallow")
		}
		found, err := m.Introduced(t.Context(), tip, append(wants, Wanted{"status", wants[0].Blob}, Wanted{"nosuch", wants[0].Blob}))
		require.NoError(t, err)
		got := map[string]string{}
		for want, c := range found {
			got[want.Path] = c.Hash.String()
		}
		require.Equal(t, map[string]string{"always": root, "specs/a": a, "specs/b": b, "status": tip.Commit.String()}, got)

		for earlier, want := range map[string][]string{tip.Commit.String(): nil, b: {"status"}, a: {"specs/b", "status"}, root: {"specs/a", "specs/b", "status"}} {
			paths, known := since(earlier)
			require.True(t, known)
			require.Equal(t, want, paths)
		}

		again, err := m.Introduced(t.Context(), fetch(t, m, "main"), wants[:1])
		require.NoError(t, err)
		require.Len(t, again, 1)
	})
}

func TestHistoryOfAShallowServer(t *testing.T) {
	full := gittest.NewBareRepo(t)
	full.Commit(gittest.Commit{Write: map[string]string{"gone": "1", "old": "1"}})
	full.Commit(gittest.Commit{Delete: []string{"gone"}})
	for i := range 4 {
		full.Commit(gittest.Commit{Write: map[string]string{"keep": fmt.Sprint(i)}})
	}
	dir := filepath.Join(t.TempDir(), "shallow.git")
	full.Git("clone", "-q", "--bare", "--depth", "3", full.URL(), dir)
	r := gittest.OpenRepo(t, dir)
	m := openFile(t, r)
	tip := fetch(t, m, "main")

	visited := 0
	for range 2 {
		visited = 0
		require.NoError(t, m.History(t.Context(), tip, func(CommitInfo) (bool, error) { visited++; return true, nil }))
		require.Equal(t, 3, visited, "it ends where the server's does")
	}
	_, ok, err := m.FindInHistory(t.Context(), tip, Wanted{Path: "gone"})
	require.NoError(t, err)
	require.False(t, ok)
	keep, old := Wanted{"keep", hashOf(r.Git("rev-parse", "main:keep"))}, Wanted{"old", hashOf(r.Git("rev-parse", "main:old"))}
	found, err := m.Introduced(t.Context(), tip, []Wanted{keep, old})
	require.NoError(t, err)
	require.Equal(t, tip.Commit, found[keep].Hash)
	require.NotContains(t, found, old, "who gave it its content is not known")

	r.Commit(gittest.Commit{Write: map[string]string{"keep": "more"}})
	require.NoError(t, m.History(t.Context(), tip, func(CommitInfo) (bool, error) { return true, nil }), "the branch still leads to the tip")
	r.Commit(gittest.Commit{Parent: "none", Write: map[string]string{"new": "1"}})
	m = openFile(t, r)
	old2 := fetch(t, m, "main")
	require.NoError(t, m.History(t.Context(), old2, func(CommitInfo) (bool, error) { return true, nil }))
}
