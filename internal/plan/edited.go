package plan

import (
	"fmt"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// An edit of the desired routing by a person is answered by one of these rows, and then held until the person resumes.
// Downward it is applied at once. Upward it is a wish, which waits for the target's workers and is judged like any raise. What
// is neither is refused: routing.yaml is put back.

func (v *view) editReason() string { return "routing.yaml was edited: " + describe(v.desired) }

// editedDone answers an edit that is what Temporal has: it was applied, or somebody made it there.
func editedDone(v *view) (outcome, bool) {
	if !v.edited || v.lost() != "" || !v.desired.SameTraffic(v.actual) {
		return outcome{}, false
	}
	return stalled(rollout.ManualHold, "%s", v.editReason()), true
}

func editedDown(v *view) (outcome, bool) {
	if !v.edited || v.direction(v.actual, v.desired) != rollout.DriftLower {
		return outcome{}, false
	}
	a, ok := v.lowering(v.desired, v.editReason())
	if !ok {
		return outcome{}, false
	}
	if a.Kind == rollout.Rollback {
		if e := v.canTakeBack(a.BuildID); e.answer != rollout.Yes {
			return stalled(rollout.ManualHold, "%s, but %s", a.Reason, e.why), true
		}
	}
	return stalled(rollout.ManualHold, "%s", a.Reason).with(a)
}

func editedRefused(v *view) (outcome, bool) {
	if !v.edited || v.lost() != "" {
		return outcome{}, false
	}
	why := "that is neither less traffic nor more for it"
	if bar := v.targetBar(); bar != nil {
		why = "it was turned back: " + bar.Reason
	} else if v.s.ByOther {
		why = fmt.Sprintf("raises in %s are approved by somebody other than who asked, by approving what is proposed", v.s.Environment.Name)
	} else if v.wish() {
		return outcome{}, false
	}
	return stalled(rollout.ManualHold, "%s. The spec asks for %s; %s, so routing.yaml is put back", v.editReason(), v.target.BuildID, why), true
}

// wish reports whether an edit asks for more traffic for the target, and for nothing else.
func (v *view) wish() bool {
	id, d := v.target.BuildID, v.desired
	if d.Current == id {
		return !d.HasRamp && v.actual.Current != id
	}
	return d.Current == v.actual.Current && d.HasRamp && d.Ramping == id && d.Percentage > v.actual.Share(id)
}

// editedUp takes an upward edit of routing.yaml as a wish: it is judged like any ramp, one step at most.
func editedUp(v *view) (outcome, bool) {
	if !v.edited {
		return outcome{}, false
	}
	if g := v.pointGate(); g != nil {
		if o, fits := gateOutcome(v, g); fits {
			return o, true
		}
	}
	if c := v.targetCanary(); c != nil {
		if why := v.missing(c); why != "" {
			return say(rollout.StaleFacts, "%s", why), true
		}
	}
	if o, fits := firstVersion(v); fits {
		for i := range o.actions {
			o.actions[i].Approved, o.actions[i].Cause = v.desired.Current == v.target.BuildID, rollout.CausePerson
		}
		return o, true
	}
	want := v.desired.Share(v.target.BuildID)
	a := v.promote("routing.yaml was edited to promote it")
	if step := v.stepAfter(v.actual.Share(v.target.BuildID)); step != nil && float32(step.RampPercentage) <= want {
		a = v.ramp(step.RampPercentage)
	} else if want < 100 {
		a = v.ramp(percent(want))
	}
	a.Approved, a.Cause = true, rollout.CausePerson
	return say(rollout.Ramping, "routing.yaml was edited: %s", a.Reason).with(a)
}

// answered reports whether this plan settles an edit: what was asked for is done or refused. Until then it waits in Git, also while
// there is no routing that it could be about.
func (r *resolver) answered() bool {
	if !r.edited || r.foreign() || r.lost() != "" {
		return false
	}
	if r.unusable != nil {
		move := r.move()
		return move != nil && move.Row == "edited-down"
	}
	switch r.p.Row {
	case "edited-done", "edited-refused":
		return true
	case "edited-down":
		return r.move() != nil
	case "edited-up":
		// A raise is settled once it is seen.
		for _, a := range r.p.Actions {
			if a.Raises() {
				return r.move() == nil
			}
		}
		return r.p.State.Reason == rollout.GateHasFailed || r.p.State.Reason == rollout.RolledBack
	}
	return false
}
