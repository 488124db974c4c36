package reconcile

import (
	"context"
	"fmt"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// lower takes traffic back, before anything is committed. A plan whose lowering did not work is not true: in its place is
// one that changes nothing, and says why.
//
// What is raised is safe from another bot's or a person's commit in between: the push compares the branch first. What is lowered goes to
// Temporal before that. So where the routing is one that the record does not know, which may be since somebody else committed it and
// carried it out after the record was read, the record is looked at again first.
func (r *Reconciler) lower(ctx context.Context, env rollout.EnvironmentWorld, decisions []*Decision, report *Report) []*Decision {
	if r.blind {
		decisions = r.allowedBlind(ctx, decisions)
	}
	var out, known, unknown []*Decision
	for _, d := range decisions {
		switch {
		case d.Plan.Lower == nil:
			out = append(out, d)
		case plan.Knows(d.Snapshot) || plan.TurnsBack(d.Plan):
			known = append(known, d)
		default:
			unknown = append(unknown, d)
		}
	}
	out = append(out, r.takeBack(ctx, env, known, report)...)
	return append(out, r.takeBack(ctx, env, r.unchanged(ctx, unknown), report)...)
}

// takeBack makes the calls that lower, and gives the decisions whose calls were made, and what stands for those whose
// calls failed.
func (r *Reconciler) takeBack(ctx context.Context, env rollout.EnvironmentWorld, decisions []*Decision,
	report *Report) []*Decision {
	var out []*Decision
	for _, d := range decisions {
		r.forget(d)
		err := r.Router.Lower(ctx, SubjectOf(d.Snapshot), *d.Plan.Lower)
		if r.noteSet(d, *d.Plan.Lower, err); err != nil {
			if r.notDone(ctx, d, report, fmt.Errorf("take traffic back: %w", err)) && !r.blind {
				out = append(out, r.notLowered(ctx, env, d))
			}
			continue
		}
		r.Log.InfoContext(ctx, "took traffic back", "deployment", d.Plan.Deployment.String(), "row", d.Plan.Row)
		r.made(report, Made{Decision: d, Done: true}) // whatever becomes of the commit
		out = append(out, d)
	}
	return out
}

// notLowered decides again for a worker deployment whose traffic could not be taken back, as if it could not be read:
// all stays as it is, and the status says why.
func (r *Reconciler) notLowered(ctx context.Context, env rollout.EnvironmentWorld, d *Decision) *Decision {
	s := d.Snapshot
	s.Failure = nil
	s.Observation = rollout.Observation{At: s.Observation.At, Problem: r.failures[d.Plan.Deployment]}
	again := Decide(ctx, r.JudgeFor(env), s)
	r.tell(ctx, again)
	return again
}

// unchanged are the decisions whose specs and records are still what they were made on, now that Temporal was read. The others are decided
// again in the next try, or cycle. A repository that is away holds nothing up.
func (r *Reconciler) unchanged(ctx context.Context, decisions []*Decision) []*Decision {
	if len(decisions) == 0 || r.Source == nil {
		return decisions
	}
	read, err := r.survey(ctx)
	if err != nil {
		r.Log.WarnContext(ctx, "the repository could not be read again: traffic is taken back on what was known of it", "error", err)
		return decisions
	}
	hash, now := connectionHash(), map[string][]*rollout.Known{}
	for _, env := range read.World.Environments {
		now[env.Environment.Name] = env.Known
	}
	var out []*Decision
	for _, d := range decisions {
		known := now[d.Snapshot.Environment.Name]
		at, ok := rollout.KnownAt(known, d.Snapshot.Deployment)
		if !ok || inputsOfKnown(known[at], sharedInputs{}, hash) != inputsOf(&d.Snapshot, sharedInputs{}, hash) {
			r.Log.InfoContext(ctx, "the repository moved meanwhile: the plan is discarded", "deployment", d.Plan.Deployment.String())
			continue
		}
		out = append(out, d)
	}
	return out
}
