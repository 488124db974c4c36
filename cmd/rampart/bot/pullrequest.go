package bot

import (
	"context"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/sim"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// proposalTitle is the title of what a decision proposes.
func proposalTitle(d *rollout.Decision) string { return proposalReport(d).Title() }

// proposalBody gives what a proposal says to people: what was decided, the rules that passed, and how the rollout goes
// on when all goes well. What cannot be told of the last two is left out.
func proposalBody(j *cmdutil.Judges) func(context.Context, rollout.EnvironmentWorld, *rollout.Decision) string {
	return func(ctx context.Context, env rollout.EnvironmentWorld, d *rollout.Decision) string {
		r, engine := proposalReport(d), j.Engine(env)
		r.Explanation, r.Timetable = explained(ctx, engine, d), simulated(ctx, engine, d)
		return r.Body()
	}
}

// commitText is title and body of the pull request for a commit that a branch does not take.
func commitText(env v1alpha1.Environment, branch, message string) (title, body string) {
	r := report.OutputReport{Environment: env.Name, Branch: branch, Message: message}
	return r.Title(), r.Body()
}

func proposalReport(d *rollout.Decision) report.ProposalReport {
	return report.ProposalReport{Snapshot: d.Snapshot, Proposal: d.Proposal, Plan: d.Plan, Asked: d.Plan.Review.Held,
		Scope: d.Plan.Review.Scope}
}

// explained says rule by rule why policy says what it says of what is proposed.
func explained(ctx context.Context, engine *sandbox.Engine, d *rollout.Decision) *rollout.Explanation {
	document, err := policy.NewDocument(plan.Look(d.Snapshot).JudgedBy(), d.Proposal)
	if err != nil {
		return nil
	}
	x, err := engine.Explain(ctx, document, d.Plan.Review.Held.Action.ID)
	if err != nil {
		return nil
	}
	return &x
}

// simulated plays the rollout on from where it stands.
func simulated(ctx context.Context, engine *sandbox.Engine, d *rollout.Decision) *rollout.Timetable {
	if kind := d.Plan.Review.Held.Action.Kind; kind != rollout.Ramp && kind != rollout.Promote {
		return nil // a timetable is of a rollout
	}
	world := v1alpha1.DefaultSimulation()
	world.At = v1alpha1.NewTime(d.Snapshot.Now)
	t, err := sim.Run(ctx, sim.Input{Snapshot: d.Snapshot, World: world, Judge: engine, Next: sim.NextNothing})
	if err != nil {
		return nil
	}
	return &t
}
