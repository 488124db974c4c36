package plan

import (
	"slices"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Git saw a version current. If Temporal knows no routing, and no version that ever had traffic, it has lost the
// routing, or is another Temporal. That does not count as lowering: no person and no bot lowered traffic, so nothing of
// it is written down. The version that was current becomes so again like any first version, if it is what the spec asks
// for. No other version gets all the traffic merely because nothing else has any.

// lost is the version that Git saw current in a routing that Temporal knows nothing of, "" if it knows or there is
// none.
func (v *View) lost() string {
	n := len(v.rec.Promotions)
	if n == 0 || !v.rec.Promotions[n-1].LeftAt.IsZero() || !v.readable() {
		return ""
	}
	r := v.actual
	routed := slices.ContainsFunc(v.obs.Versions, func(o rollout.VersionObservation) bool {
		return o.Drainage != "" || !o.ActivatedAt().IsZero()
	})
	if routed || r.Current != "" || r.HasRamp || !r.CurrentChangedAt.IsZero() || !r.RampingChangedAt.IsZero() {
		return ""
	}
	return v.rec.Promotions[n-1].BuildID
}

// lostRouting holds while the version that was current is not the one that the spec asks for, or is not there yet.
func lostRouting(v *View) (outcome, bool) {
	was := v.lost()
	if was == "" || was == v.target.BuildID && v.obs.Version(was) != nil {
		return outcome{}, false
	}
	o := stalled(rollout.RoutingDrift, "Temporal knows nothing of the routing of %s, in which %s was current: it was "+
		"lost, or this is not the Temporal that it was in",
		v.s.Deployment, was)
	if was != v.target.BuildID {
		o.state.Message += ". If it was lost, make " + was + " current in Temporal, or ask for it in the spec; " +
			v.target.BuildID + " is not made current in its place"
	}
	return o, true
}

// Versions that Git lost, since its branch was rewritten or somebody deleted them there, are looked for in history
// while Temporal has a use for them. They are taken as recorded then, and their files, which are missing, are put back
// like any other.

// LostVersions gives the sorted build IDs of versions that Temporal has a use for and the record does not have. They
// have traffic, are draining, or had traffic and Temporal does not say that they are drained.
func (v *View) LostVersions() []string {
	if !v.readable() || v.foreign() || v.retire != nil || v.s.Record.RoutingProblem != nil || v.s.Spec == nil {
		return nil
	}
	var out []string
	for _, o := range v.obs.Versions {
		switch v.status(o.BuildID) {
		case rollout.StatusCurrent, rollout.StatusRamping, rollout.StatusDraining, rollout.StatusUnknown:
			if v.recorded(o.BuildID) == nil {
				out = append(out, o.BuildID)
			}
		}
	}
	slices.Sort(out)
	return out
}
