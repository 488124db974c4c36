package reconcile

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
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
	for range firstCycles {
		require.NotZero(t, collections(Report{}))
	}
	require.Zero(t, collections(Report{LookedAt: manyDecisions - 1}))
	require.NotZero(t, collections(Report{LookedAt: manyDecisions}))
}
