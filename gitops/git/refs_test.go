package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

const beside = "refs/rampart/log"

// appendTo commits one file on top of a ref beside the branches.
func appendTo(t *testing.T, m *Mirror, tip Tip, data string) (Hash, error) {
	t.Helper()
	tip.Branch = beside
	return m.Push(soon(t), stage(t, m, commitOn(tip, put("entry", data))))
}

func TestRefsBesideTheBranches(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		main := r.Commit(gittest.Commit{Write: first})
		dir := t.TempDir()
		m := openAt(t, dir, w)
		_, err := m.Fetch(t.Context(), beside)
		var none *NoBranchError
		require.ErrorAs(t, err, &none)
		requireSame(t, &NoBranchError{URL: none.URL, Branch: beside, Branches: []string{"main"}}, none)

		one, err := appendTo(t, m, Tip{}, "1")
		require.NoError(t, err)
		require.Equal(t, one.String(), r.Git("rev-parse", beside))
		require.Equal(t, main, r.Tip("main"))
		requireSame(t, map[string]string{"entry": "1"}, r.Files(beside))
		tip := fetch(t, m, beside)
		require.Equal(t, "none", moveOf(tip))

		other := openMirror(t, w)
		theirs, err := appendTo(t, other, fetch(t, other, beside), "2")
		require.NoError(t, err)
		_, err = appendTo(t, m, tip, "ours")
		var moved *MovedError
		require.ErrorAs(t, err, &moved)
		requireSame(t, &MovedError{Branch: beside, Expected: one, Actual: theirs}, moved)
		require.NoError(t, m.Close())

		refs, err := os.ReadFile(filepath.Join(dir, refsFile))
		require.NoError(t, err)
		require.Contains(t, string(refs), one.String()+" "+beside+"\n", "as git names it")
		again := openAt(t, dir, w)
		now := fetch(t, again, beside)
		requireSame(t, Tip{Branch: beside, Commit: theirs, Tree: now.Tree, Previous: one}, now)
		require.Equal(t, "first", moveOf(fetch(t, again, "main")), "a branch and a ref are told apart")
		r.Fsck()
	})
}

func TestRefsThatAreNone(t *testing.T) {
	r := gittest.NewBareRepo(t)
	m := openFile(t, r)
	for _, name := range []string{"refs/", "refs/rampart/../x", "refs/rampart/a b", "refs/heads/main"} {
		_, err := m.Fetch(t.Context(), name)
		require.ErrorContains(t, err, fmt.Sprintf("branch %q", name))
		_, err = m.Stage(CommitRequest{Branch: name, Message: "x", Author: bot, Committer: bot, Changes: []Change{put("x", "1")}})
		require.ErrorContains(t, err, fmt.Sprintf("branch %q", name))
	}
}

// History is fetched as it is needed: a fetch brings the tip alone.
func TestHistoryGoesBack(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		const n = 70 // more than the first step brings
		r.Commits(n, func(i int) gittest.Commit { return gittest.Commit{Write: map[string]string{"x": fmt.Sprint(i)}} })
		want := strings.Fields(r.Git("rev-list", "main"))
		m := openMirror(t, w)
		tip := fetch(t, m, "main")
		var got []string
		require.NoError(t, m.History(t.Context(), tip, func(c CommitInfo) (bool, error) {
			got = append(got, c.Hash.String())
			return len(got) < 3, nil
		}))
		require.Equal(t, want[:3], got, "it ends where visit says so")
		require.False(t, m.store.has(plumbing.NewHash(want[n-1])), "no more is fetched than is needed")

		got = nil
		require.NoError(t, m.History(t.Context(), tip, func(c CommitInfo) (bool, error) {
			got = append(got, c.Hash.String())
			e, ok, err := m.Lookup(c.Tree, "x")
			require.True(t, ok)
			require.NoError(t, err)
			require.NoError(t, m.Bring(t.Context(), []Hash{e.Hash}))
			data, err := m.Blob(e.Hash, 10)
			require.Equal(t, fmt.Sprint(n-len(got)), string(data))
			return true, err
		}))
		require.Equal(t, want, got)

		stop := errors.New("stop")
		require.Equal(t, stop, m.History(t.Context(), tip, func(CommitInfo) (bool, error) { return true, stop }))
	})
}

func TestHistoryOfATipThatIsGone(t *testing.T) {
	r := gittest.NewBareRepo(t)
	for i := range 3 {
		r.Commit(gittest.Commit{Write: map[string]string{"x": fmt.Sprint(i)}})
	}
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	r.Commit(gittest.Commit{Parent: "none", Write: map[string]string{"x": "new"}})
	r.Git("reflog", "expire", "--expire=now", "--all")
	r.Git("gc", "--quiet", "--prune=now")
	fetch(t, m, "main")
	var moved *MovedError
	require.ErrorAs(t, m.History(t.Context(), tip, func(CommitInfo) (bool, error) { return true, nil }), &moved)
}
