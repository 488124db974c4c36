package git

import (
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// A branch of its own is made, made anew on another commit, found and deleted, each by what it was expected to be.
func TestBranchesOfTheirOwn(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		m := openMirror(t, w)
		tip := fetch(t, m, "main")
		none := Hash{}
		propose := func(tip Tip, content string, expected *Hash) (Hash, error) {
			req := commitOn(tip, put("asked", content))
			req.Branch, req.Expected = "rampart/prod/a", expected
			return m.Push(t.Context(), stage(t, m, req))
		}
		one, err := propose(tip, "1", &none)
		require.NoError(t, err)
		require.Equal(t, one.String(), r.Tip("rampart/prod/a"))
		_, err = propose(tip, "2", &none)
		var moved *MovedError
		require.ErrorAs(t, err, &moved)
		requireSame(t, &MovedError{Branch: "rampart/prod/a", Expected: none, Actual: one}, moved)

		r.Commit(gittest.Commit{Write: map[string]string{"more": "1"}})
		two, err := propose(fetch(t, m, "main"), "2", &one)
		require.NoError(t, err)
		require.Equal(t, "2", r.Files("rampart/prod/a")["asked"])
		require.Equal(t, r.Tip("main"), r.Git("rev-parse", "rampart/prod/a^"), "on the newer commit, without the one before")

		there, err := m.Branches(t.Context(), "rampart/prod/")
		require.NoError(t, err)
		require.Equal(t, map[string]Hash{"rampart/prod/a": two}, there)
		require.ErrorAs(t, m.Delete(t.Context(), "rampart/prod/a", one), &moved)
		require.Equal(t, two, moved.Actual)
		require.NoError(t, m.Delete(t.Context(), "rampart/prod/a", two))
		require.NoError(t, m.Delete(t.Context(), "rampart/prod/a", two), "it is gone already")
		there, err = m.Branches(t.Context(), "rampart/")
		require.NoError(t, err)
		require.Empty(t, there)
		require.NotEqual(t, plumbing.ZeroHash, fetch(t, m, "main").Commit)
		r.Git("fsck", "--full")
	})
}

// A server that keeps its branches says so.
func TestBranchThatMayNotBeDeleted(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		tip := r.Commit(gittest.Commit{Branch: "rampart/a", Parent: "main", Write: map[string]string{"x": "1"}})
		r.Git("config", "receive.denyDeletes", "true")
		m := openMirror(t, w)
		var rejected *RejectedError
		require.ErrorAs(t, m.Delete(t.Context(), "rampart/a", plumbing.NewHash(tip)), &rejected)
		require.Equal(t, "rampart/a", rejected.Branch)
		require.Equal(t, tip, r.Tip("rampart/a"))
	})
}
