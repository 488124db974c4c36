package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Resolve turns a proposal and policy's verdicts on it into what is done now.
func (v *View) Resolve(p rollout.Proposal, verdicts rollout.Verdicts) rollout.Plan {
	r, s := &resolver{View: v, p: p, verdicts: verdicts, state: p.State}, v.s
	for _, a := range p.Actions {
		if a.Kind == rollout.Continue { // first: they bear on the raises, and what policy turns back is barred
			r.sortContinue(a, verdicts.Of(a.ID))
		}
	}
	for _, a := range p.Actions {
		r.sort(a)
	}
	r.oneWrite()
	r.oneMove()
	r.oneJob()
	r.noteWaits()
	plan := rollout.Plan{
		Deployment: s.Deployment, Environment: s.Environment, Dir: s.Record.Dir, Target: p.Target, Row: p.Row,
		Actions: r.taken, Held: r.held, Verdicts: verdicts, Spec: s.Spec, Connection: r.connection,
		PolicyHash: verdicts.PolicyDigest, SecondRead: r.secondRead, NextDue: earlier(p.NextDue, r.heldUntil()),
	}
	r.calls(&plan)
	r.record(&plan)
	plan.Remove = plan.Record != nil && r.ended()
	r.askPeople(&plan)
	plan.Approving = r.approverAsk()
	r.status(&plan)
	plan.Summary = r.summary()
	plan.Settled = r.settled(&plan)
	return plan
}

// resolver sorts actions into those that are carried out and those that are held.
type resolver struct {
	*View
	p          rollout.Proposal
	verdicts   rollout.Verdicts
	state      rollout.State
	taken      []rollout.Action
	held       []rollout.Held
	secondRead bool
	// quiet are builds whose traffic may stay but not grow: policy holds them.
	quiet map[string]rollout.Verdict
	// adopt says that the routing as it is becomes the desired one.
	adopt bool
	// fell says how traffic was lowered outside of Git, "" if it was not.
	fell string
	// proposals are stages of evacuations that wait for a person, notes what there is to say of others, lines what the
	// commit says of them.
	proposals []rollout.Action
	notes     []note
	lines     []string
}

func (r *resolver) sort(a rollout.Action) {
	verdict := r.verdicts.Of(a.ID)
	switch {
	case a.Kind == rollout.Continue:
	case a.Evacuation != nil:
		r.sortEvacuation(a, verdict)
	case a.Kind == rollout.DriftAction && a.Drift.Kind == rollout.DriftRouting:
		r.sortRoutingDrift(a, verdict)
	case a.Kind == rollout.DriftAction:
		r.sortManifestDrift(a, verdict)
	case a.Lowers():
		r.taken = append(r.taken, a)
	case a.Kind.Removes():
		r.sortRemoval(a, verdict)
	case a.Kind == rollout.Restore || a.Kind == rollout.SetAsideKind:
		r.taken = append(r.taken, a)
	case verdict.Effect == rollout.RollbackEffect && a.Raises() && a.Kind != rollout.Unroute:
		by, why := strictest(verdict)
		r.taken = append(r.taken, r.turnBack(a.BuildID, rollout.CauseVerdict, by, why))
		r.blocked(rollout.RolledBack, fmt.Sprintf("%s was turned back by %s: %s", a.BuildID, by, why))
	default:
		r.sortOther(a, verdict)
	}
}

// sortOther takes what policy and the spec's verdict allow.
func (r *resolver) sortOther(a rollout.Action, verdict rollout.Verdict) {
	if a.Reconnects() {
		r.sortReconnect(a, verdict)
		return
	}
	verdict = combine(verdict, r.verdicts.Spec)
	if a.IsRaise() {
		if q, ok := r.quiet[a.BuildID]; ok {
			verdict = combine(verdict, q)
		}
		if r.s.Environment.Approval.Mode == v1alpha1.PullRequest {
			verdict = combine(verdict, rollout.Verdict{Effect: rollout.RequireApproval, Findings: []rollout.Finding{{
				Package: "rampart", Rule: "approval.mode", Effect: rollout.RequireApproval,
				Message: fmt.Sprintf("environment %s wants every raise approved", r.s.Environment.Name)}}})
		}
	}
	if queues := r.leaves(a); len(queues) > 0 {
		verdict, a.Approved = combine(r.unapproved(queues), verdict), false
	}
	switch {
	case verdict.Effect.Strictness() >= rollout.HoldEffect.Strictness():
		_, why := strictest(verdict)
		r.holds(a, verdict, rollout.PolicyHold, why)
	// what has no traffic yet
	case verdict.Effect == rollout.RequireApproval && !a.Approved && a.Kind != rollout.CreateVersion:
		_, why := strictest(verdict)
		r.holds(a, verdict, rollout.AwaitingApproval, r.sayWhoApproves(a, fmt.Sprintf("%s: %s", a.Reason, why)))
	default:
		r.taken = append(r.taken, a)
	}
}

// holds keeps an action from being carried out. For the target that is what there is to say.
func (r *resolver) holds(a rollout.Action, verdict rollout.Verdict, reason rollout.Reason, why string) {
	r.held = append(r.held, rollout.Held{Action: a, Verdict: verdict})
	if r.isTarget(a.BuildID) || a.Kind == rollout.Unroute {
		r.blocked(reason, why)
	}
}

// blocked says why the target does not go on. A spec that cannot be used stays what there is to say first.
func (r *resolver) blocked(reason rollout.Reason, why string) {
	if r.unusable != nil {
		r.state = r.beside(why)
		return
	}
	r.state = rollout.State{Reason: reason, Message: why, Stalled: true}
}

// sortContinue takes traffic back from a version that policy has turned against.
func (r *resolver) sortContinue(a rollout.Action, verdict rollout.Verdict) {
	switch {
	case verdict.Effect == rollout.HoldEffect:
		if r.quiet == nil {
			r.quiet = map[string]rollout.Verdict{}
		}
		r.quiet[a.BuildID] = verdict
		return
	case verdict.Effect != rollout.RollbackEffect:
		return
	}
	by, why := strictest(verdict)
	move := r.turnBack(a.BuildID, rollout.CauseVerdict, by, why)
	if !r.actual.HasRamp || a.BuildID != r.actual.Ramping {
		back := r.predecessor()
		if !r.mayReturn(back) || r.canTakeBack(back).answer != rollout.Yes {
			r.holds(a, verdict, rollout.PolicyHold, fmt.Sprintf("%s wants %s turned back (%s), but no version before "+
				"it can take its traffic", by, a.BuildID, why))
			return
		}
		move = r.rollback(back, rollout.CauseVerdict, why)
		move.Bar = by
	}
	r.taken = append(r.taken, move)
	if r.isTarget(a.BuildID) {
		r.blocked(rollout.RolledBack, fmt.Sprintf("%s was turned back by %s: %s", a.BuildID, by, why))
	}
}

// sortRoutingDrift answers drift of the routing. It never raises: what is lower than desired is adopted and held,
// whatever policy says; what is higher is reverted, adopted or held as policy says.
func (r *resolver) sortRoutingDrift(a rollout.Action, verdict rollout.Verdict) {
	answer := verdict.Drift
	if verdict.Effect.Strictness() >= rollout.HoldEffect.Strictness() || answer == "" {
		answer = rollout.DriftHold
	}
	switch {
	case a.Drift.Direction == rollout.DriftLower:
		r.adopt, r.fell = true, a.Reason
		r.taken = append(r.taken, a)
		r.blocked(rollout.ManualHold, a.Reason)
	case answer == rollout.DriftHold:
		r.heldDrift(a, verdict, "")
	case answer == rollout.DriftAdopt:
		r.adoptRouting(a)
	default:
		r.revertRouting(a, verdict)
	}
}

// revertRouting lowers the routing to what was there. Where no version was current then there is nothing to go back to:
// what is there is taken as it is.
func (r *resolver) revertRouting(a rollout.Action, verdict rollout.Verdict) {
	to := r.revertTo()
	if to.Current == "" && r.actual.Current != "" {
		a.Reason += ": it is taken as it is, since no version was current before"
		r.adoptRouting(a)
		return
	}
	move, ok := r.lowering(to, a.Reason)
	e := no("there is no way back to %s that only lowers", describe(to))
	if ok && move.Kind == rollout.Rollback {
		e = r.canTakeBack(move.BuildID)
	} else if ok {
		e = yes()
	}
	if e.answer != rollout.Yes {
		r.heldDrift(a, verdict, ": not reverted, since "+e.why)
		return
	}
	move.Row = a.Row
	r.taken = append(r.taken, a, move)
}

// adoptRouting makes the routing as it is the desired one.
func (r *resolver) adoptRouting(a rollout.Action) {
	r.adopt = true
	r.taken = append(r.taken, a)
	if r.unusable == nil {
		r.state = rollout.State{Reason: rollout.RoutingDrift, Message: a.Reason}
	}
}

// heldDrift leaves a drift to a person, and says what they can do.
func (r *resolver) heldDrift(a rollout.Action, verdict rollout.Verdict, why string) {
	r.held = append(r.held, rollout.Held{Action: a, Verdict: verdict})
	why += fmt.Sprintf(". To keep it, write it into spec.desired of routing.yaml; to undo it, set %s in Temporal as %s",
		describe(r.desired), r.s.Environment.ManagerIdentity)
	r.state.Message += why
	if r.state.Meanwhile != "" {
		r.state.Meanwhile += why
	}
}

func (r *resolver) sortManifestDrift(a rollout.Action, verdict rollout.Verdict) {
	held := verdict.Effect.Strictness() >= rollout.HoldEffect.Strictness() || verdict.Drift == rollout.DriftHold ||
		verdict.Drift == ""
	if missing := a.Drift.Actual == ""; missing || !held {
		r.taken = append(r.taken, a)
		return
	}
	r.held = append(r.held, rollout.Held{Action: a, Verdict: verdict})
}

// sortRemoval takes a removal only on the evidence of two reads.
func (r *resolver) sortRemoval(a rollout.Action, verdict rollout.Verdict) {
	if verdict.Effect.Strictness() >= rollout.HoldEffect.Strictness() ||
		verdict.Effect == rollout.RequireApproval && !a.Approved {
		r.held = append(r.held, rollout.Held{Action: a, Verdict: verdict})
		return
	}
	first := r.s.FirstRead
	if first == nil {
		r.secondRead = true
		return
	}
	rec := r.recorded(a.BuildID)
	if rec == nil || first.Problem != nil || first.Exists == "" || !first.At.Before(r.obs.At) || !r.idle(first, rec) ||
		r.statusIn(first, a.BuildID) != r.statusIn(r.obs, a.BuildID) ||
		unpinned(first, a.BuildID).answer != rollout.Yes {
		return
	}
	if a.Kind == rollout.DeleteVersion && r.pollersGone(first, a.BuildID).answer != rollout.Yes {
		return
	}
	r.taken = append(r.taken, a)
}

// oneMove keeps one move of traffic: taking back goes before giving, and the first one wins.
func (r *resolver) oneMove() {
	lowers := slices.ContainsFunc(r.taken, rollout.Action.Lowers)
	seen := false
	r.taken = slices.DeleteFunc(r.taken, func(a rollout.Action) bool {
		if !a.Routes() {
			return false
		}
		drop := seen || lowers && a.Raises()
		seen = seen || !drop
		return drop
	})
	for i := range r.taken {
		r.taken[i].ID = actionID(r.taken[i])
	}
}

// move is the action that moves traffic, nil for none.
func (r *resolver) move() *rollout.Action {
	return find(r.taken, func(a *rollout.Action) bool { return a.Routes() })
}

// calls says what Temporal is asked for.
func (r *resolver) calls(plan *rollout.Plan) {
	for _, a := range r.taken {
		switch a.Kind {
		case rollout.SignalWorkflows, rollout.MoveWorkflows, rollout.CancelWorkflows, rollout.TerminateWorkflows:
			plan.Batches = append(plan.Batches, rollout.BatchStart{BuildID: a.BuildID, Job: *a.Evacuation,
				Identity: r.s.Environment.ManagerIdentity})
		case rollout.StartGate:
			for _, q := range a.Queues {
				plan.Gates = append(plan.Gates, rollout.GateStart{Gate: *a.Gate, TaskQueue: q})
			}
		case rollout.DeleteVersion:
			if !slices.ContainsFunc(r.s.Deletions, func(d rollout.Deletion) bool { return d.BuildID == a.BuildID }) {
				plan.Deletions = append(plan.Deletions, a.BuildID)
			}
		}
	}
	a := r.move()
	if a == nil {
		return
	}
	call := rollout.RoutingCall{Basis: r.actual, Token: r.obs.ConflictToken, Claim: rollout.ClaimHeld,
		Identity: r.s.Environment.ManagerIdentity}
	if r.obs.ManagerIdentity == "" {
		call.Claim = rollout.ClaimNeeded
	}
	clear := rollout.RoutingStep{Kind: rollout.ClearRamp}
	switch a.Kind {
	case rollout.Ramp:
		call.Steps = []rollout.RoutingStep{{Kind: rollout.SetRamp, BuildID: a.BuildID, Percentage: float32(a.To)}}
	case rollout.ResetRamp:
		if r.actual.HasRamp {
			call.Steps = []rollout.RoutingStep{clear}
		}
	case rollout.Promote, rollout.Rollback:
		if r.actual.HasRamp && r.actual.Ramping != a.BuildID {
			call.Steps = append(call.Steps, clear)
		}
		call.Steps = append(call.Steps, rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: a.BuildID})
	case rollout.Unroute:
		call.Steps = []rollout.RoutingStep{{Kind: rollout.SetCurrent}}
	}
	if a.Bar != "" && a.Cause != rollout.CauseBarred {
		id := r.barred(*a)
		call.TurnedBack = map[string]string{id: markText(max(r.attempt(id), 1), a.Reason)}
	}
	switch {
	case a.Raises():
		if a.Kind != rollout.Unroute {
			call.LeavesBehind = r.callLeaves(a.BuildID)
			if said := r.sayLeft(a.BuildID); said != "" {
				r.lines = append(r.lines, said)
			}
		}
		plan.Raise = &call
	case len(call.Steps) > 0:
		plan.Lower = &call
	}
}

// barred is the build that a lowering action turns back.
func (r *resolver) barred(a rollout.Action) string {
	if a.Kind == rollout.Rollback {
		return r.actual.Current
	}
	return a.BuildID
}

// settled reports whether only a person, a changed routing, or time changes the answer. Drainage, pollers and counts
// show in no list: as long as another version waits for one of them there is more to look at.
func (r *resolver) settled(plan *rollout.Plan) bool {
	complete := r.state.Reason == rollout.RolloutComplete && len(r.held) == 0
	if len(r.taken) > 0 || plan.SecondRead || !complete && !r.frozen() {
		return false
	}
	return !slices.ContainsFunc(r.rec.Versions, func(ver v1alpha1.RecordedVersion) bool {
		other := ver.BuildID != r.target.BuildID && ver.BuildID != r.actual.Current
		return other && (r.needed(&ver) != "" || r.mayGo(&ver) || r.evacuating(&ver))
	})
}

// frozen reports whether policy holds all that there is to do, and says until when, and nothing that has traffic is
// judged. What is retired is looked at in every cycle: it has no target, and its versions go one by one.
func (r *resolver) frozen() bool {
	return r.target != nil && r.state.Reason == rollout.PolicyHold && r.p.Canary == nil &&
		!slices.ContainsFunc(r.held, func(h rollout.Held) bool {
			return until(h.Verdict, r.now).IsZero()
		})
}

// heldUntil is when the first of what policy holds may be held no more; zero: it does not say.
func (r *resolver) heldUntil() time.Time {
	var first time.Time
	for _, h := range r.held {
		first = earlier(first, until(h.Verdict, r.now))
	}
	return first
}

// until is when a verdict changes by itself; zero: not by itself, or at an unknown time.
func until(v rollout.Verdict, now time.Time) time.Time {
	var first time.Time
	for _, f := range v.Findings {
		switch {
		case f.Waived != "" || f.Effect.Strictness() < rollout.RequireApproval.Strictness():
		case !f.Until.After(now):
			return time.Time{}
		default:
			first = earlier(first, f.Until)
		}
	}
	return first
}

func (r *resolver) summary() []string {
	var out []string
	for _, a := range r.taken {
		if line := headline(a); line != "" {
			out = append(out, line)
		}
	}
	out = append(out, r.lines...)
	if len(out) == 0 {
		out = append(out, fmt.Sprintf("%s: %s", r.state.Reason, r.state.Message))
	}
	return out
}

func headline(a rollout.Action) string {
	switch a.Kind {
	case rollout.CreateVersion:
		return "create " + a.BuildID
	case rollout.UpdateVersion:
		return fmt.Sprintf("update %s in place (%s)", a.BuildID, strings.ToLower(string(a.Update)))
	case rollout.ScaleVersion:
		return "scale " + a.BuildID
	case rollout.UpdateResources:
		return fmt.Sprintf("update objects of %s: %s", a.BuildID, rollout.SayResources(a.Resources))
	case rollout.Restore:
		return "restore " + a.BuildID
	case rollout.StartGate:
		return fmt.Sprintf("start gate %s on %s", a.Gate.WorkflowType, a.BuildID)
	case rollout.Ramp:
		return fmt.Sprintf("ramp %s at %s", a.BuildID, rollout.Percent(a.To))
	case rollout.Promote:
		return "promote " + a.BuildID
	case rollout.ResetRamp:
		return fmt.Sprintf("take traffic back from %s: %s", orUnversioned(a.BuildID), a.Reason)
	case rollout.Rollback:
		return fmt.Sprintf("roll back to %s: %s", orUnversioned(a.BuildID), a.Reason)
	case rollout.DriftAction:
		return fmt.Sprintf("drift: %s", a.Reason)
	case rollout.Unroute:
		return fmt.Sprintf("take new workflows from %s: %s", a.BuildID, a.Reason)
	case rollout.ScaleDown:
		return "scale down " + a.BuildID
	case rollout.RemoveFiles:
		return "remove " + a.BuildID
	case rollout.SetAsideKind:
		return "set aside " + a.BuildID
	case rollout.SignalWorkflows, rollout.MoveWorkflows, rollout.CancelWorkflows, rollout.TerminateWorkflows:
		return evacuationHeadline(a)
	}
	return ""
}

// combine gives the stricter of two verdicts, with the findings of both. A verdict that is missing is a hold.
func combine(a, b rollout.Verdict) rollout.Verdict {
	if b.Effect == "" {
		b.Effect = rollout.HoldEffect
	}
	out := a
	if b.Effect.Strictness() > a.Effect.Strictness() {
		out.Effect = b.Effect
	}
	out.Findings = slices.Concat(a.Findings, b.Findings)
	return out
}

// strictest names the rule that decided, and its message.
func strictest(v rollout.Verdict) (rule, message string) {
	best := -1
	for _, f := range v.Findings {
		if n := f.Effect.Strictness(); n > best && f.Waived == "" {
			best, rule, message = n, f.Rule, f.Text()
		}
	}
	if best < 0 {
		return "policy", "policy gave no reason"
	}
	return rule, message
}
