package gitops

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

// forked is a history with a branch that was merged. Only some of its commits touch a file or the folder dir.
func forked(t *testing.T) (r *gittest.Repo, touched []string) {
	t.Helper()
	r = gittest.NewBareRepo(t)
	first := r.Commit(gittest.Commit{Write: map[string]string{"file": "1", "other": "1"}, Message: "first"})
	r.Commit(gittest.Commit{Write: map[string]string{"other": "2"}, Message: "other"})
	side := r.Commit(gittest.Commit{Branch: "side", Parent: "main", Write: map[string]string{"dir/a": "1"}, Message: "side"})
	onMain := r.Commit(gittest.Commit{Write: map[string]string{"file": "2"}, Message: "on main"})
	r.Git("update-ref", "refs/heads/tree", r.Commit(gittest.Commit{Branch: "tree", Parent: "main", Write: map[string]string{"dir/a": "1"}, Message: "tree"}))
	merge := r.Git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "-m", "merge", "-p", "main", "-p", "side", "tree^{tree}")
	r.Git("update-ref", "refs/heads/main", merge)
	deleted := r.Commit(gittest.Commit{Delete: []string{"file"}, Message: "deleted", When: time.Now().Add(time.Hour)})
	return r, []string{deleted, onMain, side, first}
}

func commits(ts []Touch) []string {
	var out []string
	for _, x := range ts {
		out = append(out, x.Commit)
	}
	return out
}

// onBoth asks a repository and a clone of it.
func onBoth(t *testing.T, r *gittest.Repo, test func(t *testing.T, ask func(HistoryQuery) ([]Touch, error))) {
	t.Helper()
	t.Run("repository", func(t *testing.T) {
		repo := open(t, r)
		test(t, func(q HistoryQuery) ([]Touch, error) {
			got, err := repo.Touches(t.Context(), q)
			require.Nil(t, got.Cut)
			return got.Touches, err
		})
	})
	t.Run("clone", func(t *testing.T) {
		c := clone(t, r)
		test(t, func(q HistoryQuery) ([]Touch, error) {
			got, err := c.Touches(t.Context(), q)
			require.Nil(t, got.Cut)
			return got.Touches, err
		})
	})
}

func clone(t *testing.T, r *gittest.Repo, args ...string) *Clone {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	r.Git(append(append([]string{"clone", "--quiet"}, args...), r.URL(), dir)...)
	c, err := OpenClone(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestTouchesLeaveMergesOut(t *testing.T) {
	r, want := forked(t)
	onBoth(t, r, func(t *testing.T, ask func(HistoryQuery) ([]Touch, error)) {
		got, err := ask(HistoryQuery{Paths: []string{"file", "dir"}})
		require.NoError(t, err)
		require.Equal(t, want, commits(got), "neither the merge nor what touched another file")
		require.Equal(t, Touch{Commit: want[2], Author: "A Person", When: got[2].When, Message: "side", Paths: []string{"dir"}}, got[2])

		got, err = ask(HistoryQuery{Paths: []string{"file", "dir"}, Most: 2})
		require.NoError(t, err)
		require.Equal(t, want[:2], commits(got))

		got, err = ask(HistoryQuery{Paths: []string{"file", "dir"}, Most: 3})
		require.NoError(t, err)
		require.Equal(t, want[:3], commits(got), "what waits for its parents when enough is found is compared all the same")

		all, err := ask(HistoryQuery{Paths: []string{"file"}})
		require.NoError(t, err)
		require.Equal(t, []string{want[0], want[1], want[3]}, commits(all))
		got, err = ask(HistoryQuery{Paths: []string{"file"}, Since: all[1].When})
		require.NoError(t, err)
		require.Equal(t, []string{want[0], want[1]}, commits(got), "a commit at that time counts")

		got, err = ask(HistoryQuery{Paths: []string{"nothing"}})
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestTouchesOfABranch(t *testing.T) {
	r, want := forked(t)
	onBoth(t, r, func(t *testing.T, ask func(HistoryQuery) ([]Touch, error)) {
		got, err := ask(HistoryQuery{Branch: "side", Paths: []string{"dir"}})
		require.NoError(t, err)
		require.Equal(t, []string{want[2]}, commits(got))
	})
	got, err := open(t, r).Touches(t.Context(), HistoryQuery{Branch: "rendered", Paths: []string{"dir"}})
	require.NoError(t, err)
	require.Empty(t, got.Touches, "an output branch that is not there yet")
}

// A folder of a clone stands for itself.
func TestTouchesBelowAFolder(t *testing.T) {
	r := gittest.NewBareRepo(t)
	want := r.Commit(gittest.Commit{Write: map[string]string{"team/a/file": "1", "file": "1"}})
	r.Commit(gittest.Commit{Write: map[string]string{"file": "2"}})
	root := clone(t, r)
	c, err := OpenClone(filepath.Join(root.dir, "team", "a"))
	require.NoError(t, err)
	got, err := c.Touches(t.Context(), HistoryQuery{Paths: []string{"file"}})
	require.NoError(t, err)
	require.Equal(t, []string{want}, commits(got.Touches))
	require.Equal(t, []string{"file"}, got.Touches[0].Paths)
	require.NoError(t, c.Close())
}

// A shallow repository begins with what it has, and it is said where.
func TestTouchesWhereHistoryIsShallow(t *testing.T) {
	r := gittest.NewBareRepo(t)
	for _, v := range []string{"1", "2", "3"} {
		r.Commit(gittest.Commit{Write: map[string]string{"file": v}, Message: v})
	}
	shallow := clone(t, r, "--depth=2", "--bare")
	server := open(t, gittest.OpenRepo(t, shallow.dir))
	for name, ask := range map[string]func(context.Context, HistoryQuery) (Touched, error){"clone": shallow.Touches, "server": server.Touches} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t.Context(), HistoryQuery{Paths: []string{"file", "none"}})
			require.NoError(t, err)
			require.Len(t, got.Touches, 2)
			require.Equal(t, []string{"file"}, got.Touches[1].Paths)
			require.Equal(t, &Tip{Commit: got.Touches[1].Commit, When: got.Touches[1].When}, got.Cut)

			got, err = ask(t.Context(), HistoryQuery{Paths: []string{"file"}, Most: 1})
			require.NoError(t, err)
			require.Nil(t, got.Cut, "there is no need to look further")
		})
	}
}

var _ paths = (*git.Mirror)(nil)
