package reconcile

import (
	"context"
	"slices"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DecideAll decides for the worker deployments of one environment, in the order of their names.
func DecideAll(ctx context.Context, judge Judge, snapshots []rollout.Snapshot) []*rollout.Decision {
	return Admit(ctx, judge, decideEach(ctx, judge, snapshots))
}

// DecideFor decides for one of the worker deployments of an environment as it is decided beside the others. It has to
// be one of them.
func DecideFor(ctx context.Context, judge Judge, snapshots []rollout.Snapshot, name rollout.Name) *rollout.Decision {
	all := DecideAll(ctx, judge, snapshots)
	return all[slices.IndexFunc(all, func(d *rollout.Decision) bool { return d.Snapshot.Deployment == name })]
}

// Admit lets rollouts start one after the other. Each was decided on by what is recorded, which shows none that starts
// in the same cycle; so those that start beside another are decided again, in the order of decisions, and see the ones
// before them that do.
func Admit(ctx context.Context, judge Judge, decisions []*rollout.Decision) []*rollout.Decision {
	var admitted []rollout.InProgress
	out := slices.Clone(decisions)
	for i, d := range decisions {
		if _, ok := starting(d); !ok {
			continue
		}
		if len(admitted) > 0 && !d.Acted {
			s := d.Snapshot
			s.Rollouts = together(s.Rollouts, admitted)
			d = Decide(ctx, judge, s)
			out[i] = d
		}
		if r, ok := starting(d); ok {
			admitted = append(admitted, r)
		}
	}
	return out
}

// starting is the rollout that a decision begins; false: none.
func starting(d *rollout.Decision) (rollout.InProgress, bool) {
	for _, a := range d.Plan.Actions {
		if d.Snapshot.Starts(a) {
			return rollout.InProgress{Deployment: d.Plan.Deployment, BuildID: a.BuildID, Since: d.Snapshot.Now}, true
		}
	}
	return rollout.InProgress{}, false
}

// together are rollouts that are recorded and those that start, sorted by name. One that is recorded and not made yet
// is both.
func together(recorded, starting []rollout.InProgress) []rollout.InProgress {
	out := slices.Concat(recorded, starting)
	byName := func(a, b rollout.InProgress) int { return a.Deployment.Compare(b.Deployment) }
	slices.SortStableFunc(out, byName)
	return slices.CompactFunc(out, func(a, b rollout.InProgress) bool { return byName(a, b) == 0 })
}
