package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// lower lowers traffic, before anything is committed. A plan whose lowering failed is not
// true: in its place is one that changes nothing, and says why.
//
// A raise is safe from another bot's or a person's commit in between, since the push compares the branch first.
// Lowering goes to Temporal before that. So where the record does not know the routing, perhaps since somebody else
// committed and carried out another one after the record was read, the record is read again first.
func (r *Reconciler) lower(ctx context.Context, g *group, decisions []*rollout.Decision) []*rollout.Decision {
	if g.blind {
		decisions = r.allowedBlind(ctx, g, decisions)
	} else {
		r.absence.noteSeen(decisions)
	}
	var out, known, unknown []*rollout.Decision
	for _, d := range decisions {
		switch {
		case d.Plan.Lower == nil:
			out = append(out, d)
		case g.blind || plan.Look(d.Snapshot).Knows() || plan.TurnsBack(d.Plan):
			known = append(known, d)
		default:
			unknown = append(unknown, d)
		}
	}
	out = append(out, r.lowerEach(ctx, g, known)...)
	same := r.unchanged(ctx, unknown)
	if len(same) < len(unknown) {
		g.report.more(r.Now())
	}
	return append(out, r.lowerEach(ctx, g, same)...)
}

// lowerEach makes the calls that lower, and gives the decisions whose calls succeeded, and what stands for the others.
func (r *Reconciler) lowerEach(ctx context.Context, g *group, decisions []*rollout.Decision) []*rollout.Decision {
	var out []*rollout.Decision
	for _, d := range decisions {
		if g.over() {
			g.postpone(d.Snapshot.Deployment, r.Now())
			continue
		}
		err := r.Router.Lower(ctx, plan.Look(d.Snapshot).Subject(), *d.Plan.Lower)
		if r.absence.noteSet(d, *d.Plan.Lower, err); err != nil {
			if r.notDone(ctx, d, &g.report, fmt.Errorf("take traffic back: %w", err)) && !g.blind {
				out = append(out, r.notLowered(ctx, g, d))
			}
			continue
		}
		r.Log.InfoContext(ctx, "took traffic back", "deployment", d.Plan.Deployment.String(), "row", d.Plan.Row)
		d.Acted = true
		g.report.did(d) // whatever becomes of the commit
		out = append(out, d)
	}
	return out
}

// notLowered decides again for a worker deployment whose traffic could not be lowered, as if it could not be read. All
// stays as it is, and the status says why.
func (r *Reconciler) notLowered(ctx context.Context, g *group, d *rollout.Decision) *rollout.Decision {
	s := d.Snapshot
	s.Failure = nil
	s.Observation = rollout.Observation{At: s.Observation.At, Problem: g.report.problems[keyOf(d)]}
	again := Decide(ctx, g.judge, s)
	r.tell(ctx, again)
	return again
}

// lockPatience is how long lowering waits for the repository that others use.
const lockPatience = 5 * time.Second

// unchanged gives the decisions whose specs and records are still those of the tip. The others are decided again in the
// next cycle. A repository that is away stops no lowering.
func (r *Reconciler) unchanged(ctx context.Context, decisions []*rollout.Decision) []*rollout.Decision {
	if len(decisions) == 0 {
		return decisions
	}
	soon, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	tip, err := r.tip(soon)
	if err != nil {
		r.Log.WarnContext(ctx, "the repository could not be read again: traffic is lowered by what was read before",
			"error", err)
		return decisions
	}
	hash := resync.NewConnectionHash()
	var out []*rollout.Decision
	for _, d := range decisions {
		if row := tip.row(keyOf(d)); row == nil ||
			resync.InputsOfEntry(row, resync.Shared{}, hash) != resync.InputsOf(&d.Snapshot, resync.Shared{}, hash) {
			r.Log.InfoContext(ctx, "the repository moved meanwhile: the plan is discarded", "deployment",
				d.Plan.Deployment.String())
			continue
		}
		out = append(out, d)
	}
	return out
}
