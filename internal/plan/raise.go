package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func (v *View) ramp(to float64) rollout.Action {
	a := rollout.Action{Kind: rollout.Ramp, BuildID: v.target.BuildID, From: v.targetShare(), To: to,
		Steps: len(v.steps())}
	for i, s := range v.steps() {
		if float32(s.RampPercentage) == float32(to) {
			a.Step = i + 1
		}
	}
	a.Reason = fmt.Sprintf("ramp %s from %s to %s", a.BuildID, rollout.Percent(a.From), rollout.Percent(to))
	return a
}

func (v *View) promote(reason string) rollout.Action {
	return rollout.Action{Kind: rollout.Promote, BuildID: v.target.BuildID, From: v.targetShare(), To: 100,
		Steps: len(v.steps()), Reason: reason}
}

// targetShare is the target's share as a person would write it.
func (v *View) targetShare() float64 { return rollout.AsWritten(v.actual.Share(v.target.BuildID)) }

func (v *View) steps() []v1alpha1.RolloutStep {
	if v.spec.Spec.Rollout.Strategy != v1alpha1.Progressive {
		return nil
	}
	return v.spec.Spec.Rollout.Steps
}

func (v *View) targetRamps() bool { return v.actual.HasRamp && v.actual.Ramping == v.target.BuildID }

// stepAfter is the first step above a share, nil if there is none.
func (v *View) stepAfter(share float32) *v1alpha1.RolloutStep {
	return find(v.steps(), func(s *v1alpha1.RolloutStep) bool { return float32(s.RampPercentage) > share })
}

// stepAt is the index of the highest step not above the target's ramp, -1 if there is none.
func (v *View) stepAt() int {
	at := -1
	for i, s := range v.steps() {
		if float32(s.RampPercentage) <= v.actual.Percentage {
			at = i
		}
	}
	return at
}

func manual(v *View) (outcome, bool) {
	if v.spec.Spec.Rollout.Strategy != v1alpha1.Manual {
		return outcome{}, false
	}
	if v.targetRamps() {
		return say(rollout.Ramping,
			"%s gets %s of new workflows; the strategy is Manual: a person sets ramp and current version",
			v.target.BuildID, rollout.Percent(v.targetShare())), true
	}
	return say(rollout.WaitingForPromotion, "%s is ready; the strategy is Manual: a person makes it current",
		v.target.BuildID), true
}

func gated(v *View) (outcome, bool) {
	g := v.pointGate()
	if g == nil {
		return outcome{}, false
	}
	return gateOutcome(v, g)
}

// gateOutcome starts, awaits or gives up on a gate; it does not fit once the gate has passed.
func gateOutcome(v *View, g *rollout.GateSpec) (outcome, bool) {
	r := v.gate(g)
	switch r.state {
	case rollout.GateCompleted:
		return outcome{}, false
	case rollout.GateMissing:
		return say(rollout.GateIsRunning, "gate %s runs on %s", g.WorkflowType, g.BuildID).with(rollout.Action{
			Kind: rollout.StartGate, BuildID: g.BuildID, Gate: g, Queues: r.missing, Reason: r.message})
	case rollout.GateRunning:
		return say(rollout.GateIsRunning, "gate %s runs on %s", g.WorkflowType, g.BuildID), true
	case rollout.GateUnread:
		return say(rollout.StaleFacts, "%s", r.message), true
	}
	if g.OnFailure == v1alpha1.GateRollback && !r.nowhere {
		return stalled(rollout.RolledBack, "%s was turned back: %s", g.BuildID, r.message).with(
			v.turnBack(g.BuildID, rollout.CauseGate, "gate "+g.WorkflowType, r.message))
	}
	if r.nowhere {
		return gateNowhere(v, r), true
	}
	return stalled(rollout.GateHasFailed, "%s: push another build", r.message), true
}

// gateNowhere waits for a workflow task queue as long as for workers: a worker may register its task queues one after
// the other.
func gateNowhere(v *View, r gateResult) outcome {
	if deadline, _ := v.pollerDeadline(); !v.now.After(deadline) {
		o := say(rollout.WaitingForPollers, "%s", r.message)
		o.due = deadline
		return o
	}
	return stalled(rollout.GateHasFailed, "%s", r.message)
}

// turnBack takes a build's traffic, if it has any, and bars it.
func (v *View) turnBack(buildID string, cause rollout.Cause, by, reason string) rollout.Action {
	return rollout.Action{Kind: rollout.ResetRamp, BuildID: buildID, From: v.share(buildID), Cause: cause, Bar: by,
		Reason: reason}
}

func firstVersion(v *View) (outcome, bool) {
	if v.actual.Current != "" || v.targetRamps() {
		return outcome{}, false
	}
	e := v.unversioned(v.target.BuildID)
	switch e.answer {
	case rollout.No:
		a := v.promote("there is no current version, and no unversioned worker on its task queues")
		return say(rollout.WaitingForPromotion, "%s becomes the first current version", a.BuildID).with(a)
	case rollout.Yes:
		return outcome{}, false
	}
	return say(rollout.StaleFacts, "%s", e.why), true
}

func allAtOnce(v *View) (outcome, bool) {
	if v.spec.Spec.Rollout.Strategy != v1alpha1.AllAtOnce {
		return outcome{}, false
	}
	a := v.promote("the strategy is AllAtOnce")
	return say(rollout.WaitingForPromotion, "%s becomes the current version", a.BuildID).with(a)
}

// ramping says where the rollout stands, in words that do not move by themselves.
func (v *View) ramping(share float64) outcome {
	return say(rollout.Ramping, "%s gets %s of new workflows", v.target.BuildID, rollout.Percent(share))
}

func firstStep(v *View) (outcome, bool) {
	if v.targetRamps() {
		return outcome{}, false
	}
	a := v.ramp(v.steps()[0].RampPercentage)
	return v.ramping(a.To).with(a)
}

func notAStep(v *View) (outcome, bool) {
	at := v.stepAt()
	if at >= 0 && float32(v.steps()[at].RampPercentage) == v.actual.Percentage {
		return outcome{}, false
	}
	a := v.ramp(v.steps()[max(at, 0)].RampPercentage)
	if a.To > a.From {
		if o, fits := evidenceHeld(v); fits {
			return o, true
		}
	}
	return v.ramping(a.To).with(a)
}

func pause(v *View) (outcome, bool) {
	since := v.actual.PercentageChangedAt
	if since.IsZero() {
		return say(rollout.StaleFacts, "Temporal does not say when the ramp changed last"), true
	}
	due := v.pauseEnd()
	if v.now.After(due) {
		return outcome{}, false
	}
	o := v.ramping(v.targetShare())
	o.due = due
	return o, true
}

func (v *View) pauseEnd() time.Time {
	return v.actual.PercentageChangedAt.Add(v.steps()[v.stepAt()].PauseDuration.Duration)
}

func nextStep(v *View) (outcome, bool) {
	at := v.stepAt()
	if at+1 >= len(v.steps()) {
		return outcome{}, false
	}
	a := v.ramp(v.steps()[at+1].RampPercentage)
	return v.ramping(a.To).with(a)
}

func lastStep(v *View) (outcome, bool) {
	a := v.promote("the last step is done")
	return say(rollout.Ramping, "%s becomes the current version", a.BuildID).with(a)
}

// list names at most ten things.
func list(names []string) string {
	if n := len(names); n > 10 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:10], ", "), n-10)
	}
	return strings.Join(names, ", ")
}
