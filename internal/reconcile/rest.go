package reconcile

import (
	"context"
	"runtime/debug"
)

// manyDecisions is how many worker deployments a cycle looks at that leaves much behind.
const manyDecisions = 1000

// firstCycles leave much behind too: the first one holds what it decoded until the next has index entries of that.
const firstCycles = 3

// Rest is for the time between two cycles. After one that could not read the repository it does nothing. What is still
// on the server comes, of what is needed once it is away. Then the system gets the memory back that the first cycles
// took, or one that looked at many: the next ones need a fraction of it, and the runtime would keep the rest for
// minutes.
func (r *Reconciler) Rest(ctx context.Context, done Report) {
	if len(done.World.Environments) == 0 {
		return
	}
	release, err := r.repository.take(ctx)
	if err != nil {
		return
	}
	defer release()
	if r.Prefetcher != nil {
		r.Prefetcher.Complete(ctx)
	}
	if r.rested < firstCycles || done.LookedAt >= manyDecisions {
		r.rested++
		if r.Prefetcher != nil {
			r.Prefetcher.Forget()
		}
		debug.FreeOSMemory()
	}
}
