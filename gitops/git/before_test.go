package git

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// What a branch had before it was rewritten is found, in the next run, too; and no more of its history than was asked
// for.
func TestRecent(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		r.Commits(20, func(i int) gittest.Commit {
			return gittest.Commit{Write: map[string]string{"n": fmt.Sprint(i)}, Message: fmt.Sprint("old ", i)}
		})
		seen := func(m *Mirror, tip Tip, how Recency, last string) (out []string) {
			require.NoError(t, m.Recent(t.Context(), tip, how, func(c CommitInfo) (bool, error) {
				out = append(out, c.Message)
				return c.Message != last, nil
			}))
			return out
		}
		dir := t.TempDir()
		m := openAt(t, dir, w)
		tip := fetch(t, m, "main")
		require.Zero(t, tip.Before)
		require.Equal(t, []string{"old 19"}, seen(m, tip, Recency{Most: 5, Here: true}, ""), "what is here")
		require.Equal(t, []string{"old 19", "old 19", "old 18", "old 17", "old 16", "old 15"}, seen(m, tip, Recency{Most: 5}, ""))
		require.Equal(t, []string{"old 19", "old 18"}, seen(m, tip, Recency{Most: 5}, "old 18"))

		r.Commit(gittest.Commit{Parent: "none", Write: map[string]string{"another": "history"}, Message: "new 0"})
		forced := fetch(t, m, "main")
		require.Equal(t, tip.Commit, forced.Before)
		require.Equal(t, []string{"old 19", "old 18", "new 0"}, seen(m, forced, Recency{Most: 2}, ""))
		require.Equal(t, []string{"old 19"}, seen(m, forced, Recency{Most: 2}, "old 19"))
		require.NoError(t, m.Close())

		m = openAt(t, dir, w)
		again := fetch(t, m, "main")
		require.Equal(t, "none", moveOf(again))
		require.Equal(t, tip.Commit, again.Before, "it outlasts the run")
		broken := errors.New("broken")
		require.ErrorIs(t, m.Recent(t.Context(), again, Recency{Most: 2}, func(CommitInfo) (bool, error) { return false, broken }), broken)
		r.Commit(gittest.Commit{Write: map[string]string{"n": "x"}, Message: "new 1"})
		require.Equal(t, tip.Commit, fetch(t, m, "main").Before, "until it is rewritten again")
		require.NoError(t, m.Close())
		mirrorFsck(t, m.dir)
	})
}
