package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// batches says what became of the batch jobs of a plan.
type batches struct{ started, failed bool }

// startBatches starts the batch jobs of a plan, after the push. A job that the namespace has no room for does not count
// as a failure: the record says that it is to run, and the next cycle tries again.
func (r *Reconciler) startBatches(ctx context.Context, d *rollout.Decision, report *Report) (out batches) {
	for _, b := range d.Plan.Batches {
		log := r.Log.With("deployment", d.Plan.Deployment.String(), "buildID", b.BuildID, "job", b.Job.JobID)
		switch err := r.Versions.StartBatch(ctx, plan.Look(d.Snapshot).Subject(), b); {
		case err == nil:
			out.started = true
			log.InfoContext(ctx, "started batch job", "stage", string(b.Job.Stage), "workflows", b.Job.Open)
		case errors.Is(err, rollout.ErrBatchBusy):
			log.InfoContext(ctx, "batch job waits", "error", err)
		default:
			r.notDone(ctx, d, report, fmt.Errorf("evacuate version %s: %w", b.BuildID, err))
			out.failed = true
		}
	}
	return out
}
