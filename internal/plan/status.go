package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// status builds the status that explains the plan. It holds no clock and no counter that moves by itself.
func (r *resolver) status(plan *rollout.Plan) {
	if plan.Record == nil {
		return
	}
	switch last := recordedSpec(r.s); {
	case r.unusable == nil && !r.away():
	case last != nil: // the last that could be used is kept
		plan.Spec = last
	case r.spec != nil:
		plan.Spec = r.spec
	}
	if plan.Spec == nil {
		return
	}
	if f := r.s.Failure; f != nil && r.state.Reason != rollout.RolloutComplete {
		r.blocked(f.Reason, f.Message)
		if f.Reason == rollout.StaleFacts { // it is tried again at once
			r.state.Stalled = false
		}
	}
	st := &v1alpha1.WorkerDeploymentStatus{ManagerIdentity: r.obs.ManagerIdentity, Conditions: r.conditions()}
	if plan.Review != nil && r.state.Reason == rollout.AwaitingApproval {
		for i := range st.Conditions {
			st.Conditions[i].Message += ". " + r.howToApprove(plan.Review.Proposal)
		}
	}
	st.Decision = r.decision()
	if plan.Review != nil {
		st.Decision.PullRequest = plan.Review.Proposal.PullRequest
	}
	r.shownVersions(st, plan.Record.Versions)
	st.UnusableTemplates = r.s.UnusableTemplates()
	st.OlderServer, st.Pods, st.LeftBehind = r.olderServer(), r.shownPods(), r.shownLeft(plan.Record)
	if c := r.connection; c != nil {
		ref := c.Ref()
		st.ObservedConnectionRef = &v1alpha1.ConnectionRef{Kind: cmp.Or(ref.Kind, v1alpha1.KindConnection),
			Name: ref.Name}
	}
	for _, o := range r.obs.Versions {
		if rollout.FindVersion(plan.Record.Versions, o.BuildID) == nil {
			st.UnrecordedVersions = append(st.UnrecordedVersions, o.BuildID)
		}
	}
	slices.Sort(st.UnrecordedVersions)
	plan.Status = st
}

// howToApprove says what a person does to approve what waits for that.
func (r *resolver) howToApprove(p rollout.ReviewedProposal) string {
	what := "the branch " + rollout.ProposalBranch(r.s.Environment.Name, r.s.Deployment)
	if p.PullRequest != "" {
		what = p.PullRequest
	}
	return fmt.Sprintf("To approve it, merge %s, or: rampart approve %s", what, r.s.Deployment)
}

// routed is the routing that the status tells of. What lowers traffic is done by the time of the commit. A ramp may be
// told of before it is made, but never that a version became current.
func (r *resolver) routed() rollout.RoutingConfig {
	if move := r.move(); move != nil && (move.Lowers() || move.Kind == rollout.Ramp) {
		return r.actual.AfterMove(*move)
	}
	return r.actual
}

func (r *resolver) routedStatus(buildID string) rollout.VersionStatus {
	to := r.routed()
	was := r.View.status(buildID)
	switch {
	case !r.readable():
	case to.Current == buildID:
		return rollout.StatusCurrent
	case to.HasRamp && to.Ramping == buildID:
		return rollout.StatusRamping
	case was == rollout.StatusCurrent || was == rollout.StatusRamping:
		return rollout.StatusDraining
	}
	return was
}

func (r *resolver) shownGates(buildID string) []v1alpha1.GateStatus {
	if r.target == nil || buildID != r.target.BuildID {
		return nil
	}
	var out []v1alpha1.GateStatus
	for _, seen := range r.obs.Gates {
		g := r.gateRun(seen.WorkflowID)
		if g.State != rollout.GateMissing && g.State != rollout.GateUnread {
			out = append(out, v1alpha1.GateStatus{WorkflowID: g.WorkflowID, RunID: g.RunID, Status: string(g.State),
				TaskQueue: g.TaskQueue})
		}
	}
	return out
}

// conditions follow the in-cluster controller's: Ready once the target is seen to be current; Progressing while the
// rollout goes on. Reconciling and Stalled are for kstatus: what is blocked is stalled, so that nothing waits for it
// until a time-out.
func (r *resolver) conditions() []v1alpha1.Condition {
	ready := r.state.Reason == rollout.RolloutComplete && !r.state.Stalled
	blocked := r.state.Stalled
	truth := func(yes bool) v1alpha1.ConditionStatus {
		if yes {
			return v1alpha1.True
		}
		return v1alpha1.False
	}
	now := v1alpha1.NewTime(r.now)
	cond := func(kind string, yes bool) v1alpha1.Condition {
		return v1alpha1.Condition{Type: kind, Status: truth(yes), Reason: string(r.state.Reason),
			Message: r.state.Message, LastTransitionTime: now}
	}
	progressing := !ready && !blocked || r.slow()
	return []v1alpha1.Condition{
		cond(v1alpha1.ConditionReady, ready),
		cond(v1alpha1.ConditionProgressing, progressing),
		cond(v1alpha1.ConditionReconciling, !ready && !blocked),
		cond(v1alpha1.ConditionStalled, blocked),
	}
}

// slow reports a version that waits for its workers past the deadline: stalled, and still going on.
func (r *resolver) slow() bool { return r.state.Stalled && r.state.Reason == rollout.WaitingForPollers }

// decision explains where the rollout stands. It is the same right after a step was committed and while its pause
// lasts, so that a pause costs no commit.
func (r *resolver) decision() *v1alpha1.Decision {
	d := &v1alpha1.Decision{Verdict: string(rollout.Allow), Meanwhile: r.state.Meanwhile}
	if r.s.Spec != nil {
		d.SpecDigest = r.s.Spec.Digest()
	} else if was := r.s.Record.LastStatus(); was != nil && was.Decision != nil {
		d.SpecDigest = was.Decision.SpecDigest
	}
	if due := r.nextStep(); !due.IsZero() && r.state.Reason == rollout.Ramping {
		d.NextStepAt = new(v1alpha1.NewTime(due))
	}
	if held := r.heldForTarget(); held != nil {
		d.Action, d.To, d.Verdict = string(held.Action.Kind), goal(held.Action), string(held.Verdict.Effect)
		d.From = rollout.Percent(held.Action.From)
		for _, f := range held.Verdict.Findings {
			if f.Effect.Strictness() >= rollout.RequireApproval.Strictness() && f.Waived == "" {
				d.Rules = append(d.Rules, f.Rule)
				d.Reasons = append(d.Reasons, f.Text())
			}
		}
		slices.Sort(d.Rules)
		d.Rules = slices.Compact(d.Rules)
		slices.Sort(d.Reasons)
		d.Reasons = slices.Compact(d.Reasons)
		return d
	}
	d.Reasons = []string{r.state.Message}
	if r.target != nil {
		d.Action, d.To = r.standing()
	}
	return d
}

func (r *resolver) heldForTarget() *rollout.Held {
	return find(r.held, func(h *rollout.Held) bool { return r.isTarget(h.Action.BuildID) })
}

// nextStep is when the pause of the step is over that the target is at, or is given now.
func (r *resolver) nextStep() time.Time {
	if move := r.move(); move != nil && move.Kind == rollout.Ramp && move.Step > 0 {
		return r.now.Add(r.steps()[move.Step-1].PauseDuration.Duration)
	}
	return r.p.Due
}

// standing names the last move towards the target, made or seen. What takes traffic from it leaves nothing to name: the
// reasons say what happened.
func (r *resolver) standing() (action, to string) {
	if move := r.move(); move != nil && move.BuildID == r.target.BuildID && move.Kind != rollout.ResetRamp {
		return string(move.Kind), goal(*move)
	}
	switch routed := r.routed(); {
	case r.state.Reason == rollout.RolloutComplete:
		return string(rollout.Promote), "current"
	case routed.HasRamp && routed.Ramping == r.target.BuildID:
		return string(rollout.Ramp), rollout.Percent(rollout.AsWritten(routed.Percentage))
	}
	return "", ""
}

func goal(a rollout.Action) string {
	switch a.Kind {
	case rollout.Ramp:
		return rollout.Percent(a.To)
	case rollout.Promote, rollout.Rollback:
		return "current"
	}
	return ""
}
