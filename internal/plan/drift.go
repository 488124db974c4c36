package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// routingDrift compares the routing as it is with the desired one and the basis of the last decision. A routing that is
// neither was made by somebody else. Nil: no drift. A routing.yaml that a person edited does not count as drift.
func (v *View) routingDrift() *rollout.Drift {
	if v.rec.Basis == nil || v.edit == editOpen || v.lost() != "" || v.actual.SameTraffic(v.desired) || v.unmoved() {
		return nil
	}
	d := &rollout.Drift{
		Kind: rollout.DriftRouting, Direction: rollout.DriftLower,
		Recorded: describe(v.desired), Actual: describe(v.actual),
	}
	if len(v.driftRaised()) > 0 {
		d.Direction = rollout.DriftHigher
	}
	if d.Direction == rollout.DriftLower && v.takenBack() || v.byHand() {
		return nil
	}
	return d
}

// driftRaised are the versions that have more traffic than is desired. The one that was current when that was decided,
// and still is, is left out: it only kept the traffic that was to go to another one.
func (v *View) driftRaised() []string {
	return slices.DeleteFunc(v.raised(v.desired, v.actual), func(id string) bool {
		return id == v.actual.Current && id == v.seenCurrent() && v.rec.Basis != nil && id == v.rec.Basis.Current
	})
}

// Knows reports whether the record knows the routing as observed. It knows the desired one, the one that the bot
// decided last, and the one that it decided on.
func (v *View) Knows() bool {
	if v.rec.Basis == nil { // nothing was decided yet
		return false
	}
	return v.actual.SameTraffic(v.desired) || v.actual.SameTraffic(basisConfig(*v.rec.Basis)) ||
		v.rec.Decided != nil && v.actual.SameTraffic(desiredConfig(*v.rec.Decided))
}

// TurnsBack reports whether a plan takes traffic back from a version because of what was found out about it, not
// because of what Git says.
func TurnsBack(p rollout.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a rollout.Action) bool {
		return a.Lowers() && a.Cause == rollout.CauseVerdict
	})
}

// takenBack reports whether lower traffic than desired is what the spec, or a bar, wants by now. One of our own
// retreats may have been made and not committed, since the bot died or somebody else pushed.
func (v *View) takenBack() bool {
	if v.target == nil {
		return false
	}
	done := v.target.BuildID == v.actual.Current && !v.actual.HasRamp
	return done || v.newSpec() || v.targetBar() != nil
}

// byHand reports whether traffic is a person's to move, and only versions that the spec asks for got more of it. A
// version that the spec asked for when the record was written counts too. A move back to an earlier version is held all
// the same. While a person holds the worker deployment, what is moved waits for the end of the hold.
func (v *View) byHand() bool {
	if h := v.hold(); v.target == nil || v.spec.Spec.Rollout.Strategy != v1alpha1.Manual ||
		h != nil && h.Kind == v1alpha1.HoldManual {
		return false
	}
	raised := v.driftRaised()
	if len(raised) == 0 {
		return v.actual.Current == v.desired.Current || v.actual.Current == ""
	}
	asked := []string{v.target.BuildID}
	if was := v.rec.Target; was != nil {
		asked = append(asked, was.BuildID)
	}
	return !slices.ContainsFunc(raised, func(id string) bool { return !slices.Contains(asked, id) })
}

// direction says whether traffic went down or up from one routing to another.
func (v *View) direction(from, to rollout.RoutingConfig) rollout.DriftDirection {
	if len(v.raised(from, to)) > 0 {
		return rollout.DriftHigher
	}
	return rollout.DriftLower
}

// raised are the versions that get more traffic from one routing to another. The one that was current is left out, and
// so is one that becomes current again and was so before that one.
func (v *View) raised(from, to rollout.RoutingConfig) []string {
	var out []string
	for _, id := range []string{to.Current, to.Ramping} {
		back := id == to.Current && v.stoodBefore(id, from.Current)
		if id != "" && id != from.Current && to.Share(id) > from.Share(id) && !back {
			out = append(out, id)
		}
	}
	return out
}

// lowering is the action that takes traffic down from what is to another routing. Not every routing can be reached by
// one that only lowers.
func (v *View) lowering(to rollout.RoutingConfig, reason string) (rollout.Action, bool) {
	from := v.actual
	switch {
	case to.Current != from.Current:
		return v.rollback(to.Current, rollout.CausePerson, reason), v.stoodBefore(to.Current, from.Current)
	case !to.HasRamp:
		return rollout.Action{Kind: rollout.ResetRamp, BuildID: from.Ramping, From: v.share(from.Ramping),
			Cause: rollout.CausePerson, Reason: reason}, from.HasRamp
	}
	a := v.ramp(rollout.AsWritten(to.Percentage))
	a.Cause, a.Reason = rollout.CausePerson, reason
	return a, v.targetRamps() && to.Ramping == from.Ramping && to.Percentage < from.Percentage
}

// wantedBack is the version that traffic has to go back to, "" for none: its workers have to be there first.
func (v *View) wantedBack() string {
	switch {
	case v.target == nil:
	case v.turnedBack():
		return v.predecessor()
	case v.edit == editOpen && v.direction(v.actual, v.desired) == rollout.DriftLower:
		if v.desired.Current != v.actual.Current {
			return v.desired.Current
		}
	case v.routingDrift() != nil:
		if to := v.revertTo(); to.Current != v.actual.Current {
			return to.Current
		}
	}
	return ""
}

// revertTo is the routing that a drift is reverted to: the desired one, or what that was decided on, if it never came
// to be. A ramp that is gone is not made again.
func (v *View) revertTo() rollout.RoutingConfig {
	to := v.desired
	if to.Current != "" && lastPromotion(v.promotions, to.Current) < 0 {
		return rollout.RoutingConfig{Current: v.rec.Basis.Current}
	}
	if to.HasRamp && to.Ramping != v.actual.Ramping {
		return rollout.RoutingConfig{Current: to.Current}
	}
	return to
}

func describe(c rollout.RoutingConfig) string {
	current := "current " + orUnversioned(c.Current)
	if !c.HasRamp {
		return current
	}
	return fmt.Sprintf("%s, %s ramping at %s", current, orUnversioned(c.Ramping),
		rollout.Percent(rollout.AsWritten(c.Percentage)))
}

func orUnversioned(id string) string { return cmp.Or(id, "unversioned") }

// manifestDrift lists the files of versions that are not what the bot wrote: changed or missing.
func (v *View) manifestDrift(r *v1alpha1.RecordedVersion) []rollout.Drift {
	var out []rollout.Drift
	for _, name := range sortedKeys(r.Files) {
		path := layout.VersionFile(r.BuildID, name)
		if got := v.s.Record.Files[path].Hash; got != r.Files[name] {
			out = append(out, rollout.Drift{Kind: rollout.DriftManifest, Path: path, Recorded: r.Files[name],
				Actual: got})
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
