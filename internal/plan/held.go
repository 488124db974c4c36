package plan

import (
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Resumed is a record without its hold. Without a basis, the routing as it is then becomes the desired one: what people
// moved while they held it is not put back. An edit that waits for an answer keeps waiting.
func Resumed(rec v1alpha1.RoutingSpec) v1alpha1.RoutingSpec {
	edited := rec.Decided != nil && !desiredConfig(*rec.Decided).SameTraffic(desiredConfig(rec.Desired))
	if rec.Hold != nil && rec.Hold.Kind == v1alpha1.HoldManual && !edited {
		rec.Basis = nil
	}
	rec.Hold = nil
	return rec
}

// leftAlone reports whether a person holds it, and people moved more traffic to a version than is recorded: that stays
// as it is.
func (v *View) leftAlone() bool {
	h := v.hold()
	if h == nil || h.Kind != v1alpha1.HoldManual {
		return false
	}
	d := v.routingDrift()
	return d != nil && d.Direction == rollout.DriftHigher
}

// overruled reports whether that is so for a build that was turned back before: people moved it knowing that.
func (v *View) overruled() bool {
	return v.leftAlone() && v.recordedBar(v.target.BuildID, v.target.TemplateHash) != nil
}

// movedBack reports whether somebody lowered traffic since the spec asks for the target: that is adopted, and held
// before the target may return at once.
func (v *View) movedBack() bool {
	h, d := v.hold(), v.routingDrift()
	return h != nil && h.Kind == v1alpha1.HoldDrift || d != nil && d.Direction == rollout.DriftLower ||
		v.handRollback() != ""
}

func held(v *View) (outcome, bool) {
	h := v.hold()
	if h == nil || v.edit == editOpen { // an edit after a hold is a newer wish
		return outcome{}, false
	}
	message := fmt.Sprintf("held by %s: %s", h.By, h.Reason)
	if v.leftAlone() {
		message += fmt.Sprintf(". The routing was changed outside of Git: %s is recorded, %s is in Temporal, and "+
			"left as it is",
			describe(v.desired), describe(v.actual))
	}
	return stalled(rollout.ManualHold, "%s. To go on: rampart resume %s", message, v.s.Deployment), true
}
