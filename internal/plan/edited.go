package plan

import (
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// An edit of the desired routing by a person is answered by one of these rows, and then held until the person resumes.
// Downward it is applied at once. Upward it is a wish, which waits for the target's workers and is judged like any
// raise. What is neither is refused: routing.yaml is put back.

// edit is what the desired routing in Git says, compared with what the bot wrote there last. Look finds it, once.
//
// Two things are no values of it. A raise that is written down and not carried out (committed) is about one action, and
// may be so beside editNone and editOutdated. Whether a proposal waits on (undecided) is known once policy has judged.
type edit string

const (
	// editNone: what the bot wrote. It also stands for what cannot be compared.
	editNone edit = ""
	// editOpen: a person changed it, and was not answered yet.
	editOpen edit = "open"
	// editMerged: the bot's proposal was merged. That approves it, and asks for nothing else.
	editMerged edit = "merged"
	// editWithdrawn: a proposal that waited no more was merged. It is put back, and approves nothing.
	editWithdrawn edit = "withdrawn"
	// editOutdated: a proposal for another template than the spec has was merged. It is put back.
	editOutdated edit = "outdated"
)

// isPutBack reports whether the desired routing becomes again what the bot decided: what was merged asks for nothing
// beside the rows.
func (e edit) isPutBack() bool { return e == editMerged || e == editWithdrawn || e == editOutdated }

// findEdit compares the desired routing with what the bot wrote last, and with what it proposed.
func (v *View) findEdit() edit {
	p, d, asked := v.rec.Proposal, v.rec.Decided, v.rec.Desired.TemplateHash
	if v.rec.Basis == nil || d == nil || !v.readable() {
		return editNone
	}
	changed := !desiredConfig(*d).SameTraffic(v.desired)
	update := p != nil && p.Kind == v1alpha1.ProposeUpdate // which leaves traffic as it is, and changes the template
	merged := editMerged
	if p != nil && p.Withdrawn {
		merged = editWithdrawn
	}
	switch {
	case update && !changed && asked == p.TemplateHash:
		return merged
	case !changed:
		return editNone
	case !update && p != nil && desiredConfig(proposed(*p, *d)).SameTraffic(v.desired) &&
		(asked == "" || asked == p.TemplateHash):
		return merged
	case asked != "" && v.target != nil && asked != v.target.TemplateHash:
		return editOutdated
	}
	return editOpen
}

func (v *View) editReason() string { return "routing.yaml was edited: " + describe(v.desired) }

// editedDone answers an edit that is what Temporal has: it was applied, or somebody made it there.
func editedDone(v *View) (outcome, bool) {
	if v.edit != editOpen || v.lost() != "" || !v.desired.SameTraffic(v.actual) {
		return outcome{}, false
	}
	return stalled(rollout.ManualHold, "%s", v.editReason()), true
}

func editedDown(v *View) (outcome, bool) {
	if v.edit != editOpen || v.direction(v.actual, v.desired) != rollout.DriftLower {
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

func editedRefused(v *View) (outcome, bool) {
	if v.edit != editOpen || v.lost() != "" {
		return outcome{}, false
	}
	why := "that is neither less traffic nor more for it"
	if bar := v.targetBar(); bar != nil {
		why = "it was turned back: " + bar.Reason
	} else if v.s.ByOther {
		why = fmt.Sprintf("raises in %s are approved by somebody other than who asked, by approving what is proposed",
			v.s.Environment.Name)
	} else if v.wish() {
		return outcome{}, false
	}
	return stalled(rollout.ManualHold, "%s. The spec asks for %s; %s, so routing.yaml is put back", v.editReason(),
		v.target.BuildID, why), true
}

// wish reports whether an edit asks for more traffic for the target, and for nothing else.
func (v *View) wish() bool {
	id, d := v.target.BuildID, v.desired
	if d.Current == id {
		return !d.HasRamp && v.actual.Current != id
	}
	return d.Current == v.actual.Current && d.HasRamp && d.Ramping == id && d.Percentage > v.actual.Share(id)
}

// editedUp takes an upward edit of routing.yaml as a wish: it is judged like any ramp, one step at most.
func editedUp(v *View) (outcome, bool) {
	if v.edit != editOpen {
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
		a = v.ramp(rollout.AsWritten(want))
	}
	a.Approved, a.Cause = true, rollout.CausePerson
	return say(rollout.Ramping, "routing.yaml was edited: %s", a.Reason).with(a)
}

// answered reports whether this plan settles an edit: what was asked for is done or refused. Until then it waits in
// Git, also while there is no routing that it could be about.
func (r *resolver) answered() bool {
	if r.edit != editOpen || r.foreign() || r.lost() != "" {
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
