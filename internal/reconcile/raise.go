package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// raise starts gates and moves traffic up, after the push: only what is in Git reaches Temporal. Each Temporal
// namespace does it beside the others; a cycle waits for them as it does in assess.
func (r *Reconciler) raise(ctx context.Context, env rollout.EnvironmentWorld, decisions []*rollout.Decision,
	a assessed, report *Report) error {
	if !env.Unrecorded && !r.confirmed(ctx, env, decisions, report) {
		report.note(decisions...)
		return fmt.Errorf("the specs changed while %s was pushed: %w", env.Environment.Output.Branch, rollout.ErrMoved)
	}
	report.Decisions, report.LookedAt = append(report.Decisions, decisions...), report.LookedAt+len(decisions)
	if env.Unrecorded { // traffic was lowered, and its record cannot be read
		report.note(decisions...)
		return nil
	}
	groups := r.raising(env, decisions, a)
	r.start(ctx, groups)
	over, end := r.Groups.waiting()
	defer end()
	wait(over, r.running.awaited(groups))
	report.merge(r.collect(env.Environment.Name, func(g *group) bool { return g.raises }, nil), r)
	return nil
}

// raising divides decisions by the Temporal namespaces in which they are carried out, those first whose worker
// deployments waited longest.
func (r *Reconciler) raising(env rollout.EnvironmentWorld, decisions []*rollout.Decision,
	a assessed) (groups []*group) {
	decisions = slices.Clone(decisions)
	slices.SortStableFunc(decisions, func(x, y *rollout.Decision) int {
		return byTurn(a.since[x.Snapshot.Deployment], a.since[y.Snapshot.Deployment])
	})
	hash := resync.NewConnectionHash()
	for _, d := range decisions {
		key := keyOfGroup(d.Snapshot, hash)
		key.raises = true
		at := slices.IndexFunc(groups, func(g *group) bool { return g.groupKey == key })
		if at < 0 {
			g := &group{groupKey: key, env: env, undivided: r.proposes(env.Environment), report: newReport()}
			at, groups = len(groups), append(groups, g)
		}
		groups[at].decisions = append(groups[at].decisions, d)
		if a.waiting[d.Snapshot.Deployment] {
			groups[at].wait(d.Snapshot.Deployment)
		}
	}
	return groups
}

// carryOut starts what a decision starts, and moves its traffic up. It reports whether any of that was done.
func (r *Reconciler) carryOut(ctx context.Context, g *group, d *rollout.Decision) (done bool) {
	failed, report := false, &g.report
	if g.over() || g.isWithdrawn(d.Snapshot.Deployment) || ctx.Err() != nil {
		g.postpone(d.Snapshot.Deployment, r.Now())
		return false
	}
	for _, g := range d.Plan.Gates {
		if err := r.Versions.StartGate(ctx, plan.Look(d.Snapshot).Subject(), g); err != nil {
			r.notDone(ctx, d, report, fmt.Errorf("start gate %s on %s: %w", g.Gate.WorkflowType, g.TaskQueue, err))
			failed = true
		} else {
			done = true
		}
	}
	if raises(d) && r.tooOld(d) {
		r.Log.InfoContext(ctx, "not raised on old facts", "deployment", d.Plan.Deployment.String())
		report.problems[keyOf(d)] = r.staleFacts("pushed")
		g.postpone(d.Snapshot.Deployment, r.Now())
		return done
	}
	if d.Plan.Raise != nil {
		err := r.Router.Raise(ctx, plan.Look(d.Snapshot).Subject(), *d.Plan.Raise)
		if r.absence.noteSet(d, *d.Plan.Raise, err); err != nil {
			r.notDone(ctx, d, report, fmt.Errorf("raise traffic: %w", err))
			failed = true
		} else {
			r.Log.InfoContext(ctx, "raised traffic", "deployment", d.Plan.Deployment.String(), "row", d.Plan.Row)
			done = true
		}
	}
	batches := r.startBatches(ctx, d, report)
	if !failed && !batches.failed && d.Plan.Row != "" {
		report.healed[keyOf(d)] = len(d.Plan.Deletions) == 0
	}
	return done || batches.started
}

// tooOld reports whether what a decision was made on is too old by now to raise on it.
func (r *Reconciler) tooOld(d *rollout.Decision) bool {
	return r.Now().Sub(d.Snapshot.Observation.At) > r.Limits.FactMaxAge
}

// staleFacts says that traffic was not raised on old facts, when the commit of the raise was made or pushed.
func (r *Reconciler) staleFacts(commitWas string) *rollout.Problem {
	return &rollout.Problem{Reason: rollout.StaleFacts, Message: fmt.Sprintf("not raised: when its commit was %s, "+
		"what was seen of Temporal was more than %s old; it is decided again by newer facts", commitWas,
		r.Limits.FactMaxAge)}
}

// raises reports whether a decision raises traffic, or moves workflows to another version.
func raises(d *rollout.Decision) bool { return d.Plan.Raise != nil || len(d.Plan.Batches) > 0 }

// confirmed reads the specs' branch again where the output is on another one: the push did not compare it.
func (r *Reconciler) confirmed(ctx context.Context, env rollout.EnvironmentWorld, decisions []*rollout.Decision,
	report *Report) (ok bool) {
	if env.Environment.Output.Branch == "" {
		return true
	}
	specs := map[string]string{}
	for _, d := range decisions {
		if raises(d) {
			for _, f := range d.Snapshot.SpecFiles() {
				specs[f.Path] = f.Blob
			}
		}
	}
	if len(specs) == 0 {
		return true
	}
	release, err := r.repository.take(ctx)
	if err != nil {
		return false
	}
	defer release()
	r.patiently(ctx, report, func() { ok, err = r.Committer.Confirm(ctx, specs) })
	if err != nil {
		r.Log.WarnContext(ctx, "the specs' branch could not be read again: traffic is not raised", "error", err)
	}
	return ok && err == nil
}

// coarse is an error whose words are for the log alone: Git gets what kind of failure it is.
type coarse interface {
	error
	Coarse() string
}

// notDone notes that a call failed, and reports whether that is a failure. A call that came too late, or that Temporal
// was too busy for, does not count as one: the next cycle decides again.
func (r *Reconciler) notDone(ctx context.Context, d *rollout.Decision, report *Report, err error) (failed bool) {
	if errors.Is(err, rollout.ErrStale) {
		r.Log.InfoContext(ctx, "the routing moved meanwhile: the plan is discarded", "deployment",
			d.Plan.Deployment.String(), "error", err)
		return false
	}
	if errors.Is(err, rollout.ErrBusy) {
		r.Log.WarnContext(ctx, "Temporal is too busy: decided again in the next cycle", "deployment",
			d.Plan.Deployment.String(), "error", err)
		return false
	}
	message := err.Error()
	var hidden coarse
	if errors.As(err, &hidden) {
		message = hidden.Coarse()
		r.Log.ErrorContext(ctx, "call to Temporal failed", "deployment", d.Plan.Deployment.String(), "error", err)
	}
	r.fail(ctx, d, report, rollout.Problem{Reason: rollout.PlanExecutionFailed, Message: message})
	return true
}

// fail notes that a plan was not carried out, for the report and the next status.
func (r *Reconciler) fail(ctx context.Context, d *rollout.Decision, report *Report, p rollout.Problem) {
	report.problems[keyOf(d)] = &p
	report.Failures[d.Plan.Deployment.String()] = p.Message
	r.Log.ErrorContext(ctx, "plan not carried out", "deployment", d.Plan.Deployment.String(), "reason",
		string(p.Reason), "error", p.Message)
}

// propose brings what is proposed to people in line with what was decided.
func (r *Reconciler) propose(ctx context.Context, env rollout.EnvironmentWorld, decisions []*rollout.Decision,
	report *Report) {
	if r.Proposer == nil {
		return
	}
	release, err := r.repository.take(ctx)
	if err != nil {
		return
	}
	defer release()
	if r.Proposer.Propose(ctx, env, decisions) {
		report.Again, report.NextDue = true, earlier(report.NextDue, r.Now())
	}
}
