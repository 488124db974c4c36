package pullrequest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// asked counts how often a forge was asked for pull requests; it has one that is open.
type asked struct {
	forge.None
	times int
}

func (a *asked) List(context.Context, forge.Filter) ([]forge.PullRequest, error) {
	a.times++
	return []forge.PullRequest{{Number: 1, State: forge.StateOpen, HeadCommit: "c"}}, nil
}

// A forge is not asked about a pull request again so soon, unless somebody says that something happened there.
func TestLookAgain(t *testing.T) {
	now, on := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), &asked{}
	d := New(Config{Forge: on, Now: func() time.Time { return now }, LookEvery: 10 * time.Second})
	e := &environment{files: map[rollout.Name]*file{}}
	d.environments["prod"] = e
	look := func() int {
		l := &look{Manager: d, environment: e}
		pull, err := l.pull(t.Context(), rollout.Name{Namespace: "shop", Name: "checkout"}, gitops.Proposed{Tip: "c"}, now)
		require.NoError(t, err)
		require.Equal(t, int64(1), pull.Number)
		return on.times
	}
	require.Equal(t, []int{1, 1}, []int{look(), look()})
	d.LookAgain()
	require.Equal(t, []int{2, 2}, []int{look(), look()})
	now = now.Add(10 * time.Second)
	require.Equal(t, 3, look())
}
