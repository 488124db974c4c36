package reconcile

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory is given back after the first cycles and after large ones, and not in between: each time costs a collection.
func TestRest(t *testing.T) {
	var r Reconciler
	collections := func(done Report) uint32 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.Rest(t.Context(), done)
		runtime.ReadMemStats(&after)
		return after.NumForcedGC - before.NumForcedGC
	}
	for range firstCycles {
		require.NotZero(t, collections(Report{}))
	}
	require.Zero(t, collections(Report{Decisions: make([]Decision, manyDecisions-1)}))
	require.NotZero(t, collections(Report{Decisions: make([]Decision, manyDecisions)}))
}
