package reconcile

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

type prefetcher struct {
	completed, forgot int
	last              string
}

func (c *prefetcher) Complete(context.Context) { c.completed, c.last = c.completed+1, "complete" }
func (c *prefetcher) Forget()                  { c.forgot, c.last = c.forgot+1, "forget" }

// Memory is given back after the first cycles and after large ones, and not in between: each time costs a collection.
func TestRest(t *testing.T) {
	var c prefetcher
	r := Reconciler{Planner: &Planner{}, Prefetcher: &c}
	collections := func(done Report) uint32 {
		var before, after runtime.MemStats
		was := c
		runtime.ReadMemStats(&before)
		r.Rest(t.Context(), done)
		runtime.ReadMemStats(&after)
		require.Equal(t, was.completed+1, c.completed)
		forgot := was.forgot != c.forgot
		require.Equal(t, before.NumForcedGC != after.NumForcedGC, forgot)
		require.Equal(t, forgot, c.last == "forget", "what came is forgotten as well")
		return after.NumForcedGC - before.NumForcedGC
	}
	report := Report{World: rollout.World{Environments: make([]rollout.EnvironmentWorld, 1)}}
	for range firstCycles {
		require.NotZero(t, collections(report))
	}
	report.LookedAt = manyDecisions - 1
	require.Zero(t, collections(report))
	report.LookedAt = manyDecisions
	require.NotZero(t, collections(report))

	was := c
	r.Rest(t.Context(), Report{})
	require.Equal(t, was, c, "the repository could not be read: it is not asked")
}
