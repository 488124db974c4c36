package oracle

import (
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// people: what people raised stays while one of them holds it, unless something was found out about it. And a retreat
// never goes to a version that traffic was taken away from in favor of the one that is current.
func (o *oracle) people() {
	if o.p.Lower == nil || len(o.rec.Versions) == 0 {
		return
	}
	h, edited := o.rec.Hold, o.rec.Decided != nil && !sameTraffic(*o.rec.Decided, o.rec.Desired)
	held := h != nil && h.Kind == v1alpha1.HoldManual && !edited && o.rec.Retire == nil && !o.asksToRetire()
	o.check(!held || !o.raisedOutside() || o.foundOut(), "puts back what people moved while they hold it")
	was := o.s.Observation.Routing.Current
	for _, step := range o.p.Lower.Steps {
		if step.Kind == rollout.SetCurrent {
			o.check(slices.Contains(o.earlier(was), step.BuildID) || o.cameSince(step.BuildID),
				"goes on to %s, which did not stand before %s", step.BuildID, was)
		}
	}
}

// asksToRetire: the spec itself asks for the end.
func (o *oracle) asksToRetire() bool {
	return o.s.Spec != nil && o.s.Spec.Metadata.Annotations[rollout.AnnotationRetire] == "true"
}

// raisedOutside: a version that Git does not know as a current one of before has more traffic than Git ever asked for.
func (o *oracle) raisedOutside() bool {
	if o.rec.Basis == nil {
		return false
	}
	is := o.s.Observation.Routing
	known := func(current string, ramp *v1alpha1.DesiredRamp) rollout.RoutingConfig {
		r := rollout.RoutingConfig{Current: current}
		if ramp != nil {
			r.HasRamp, r.Ramping, r.Percentage = true, ramp.BuildID, float32(ramp.Percentage)
		}
		return r
	}
	desired, basis := known(o.rec.Desired.Current, o.rec.Desired.Ramping),
		known(o.rec.Basis.Current, o.rec.Basis.Ramping)
	for _, id := range []string{is.Current, is.Ramping} {
		more := part(is, id) > max(part(desired, id), part(basis, id))
		current := slices.ContainsFunc(o.rec.Promotions, func(p v1alpha1.Promotion) bool { return p.BuildID == id })
		if id != "" && more && !current {
			return true
		}
	}
	return false
}

// foundOut: the plan lowers by a verdict, a gate, or the mark of a rollback that Git does not know of.
func (o *oracle) foundOut() bool {
	return slices.ContainsFunc(o.p.Actions, func(a rollout.Action) bool {
		loses := a.BuildID
		if a.Kind == rollout.Rollback {
			loses = o.s.Observation.Routing.Current
		}
		recorded := slices.ContainsFunc(o.rec.Bars, func(b v1alpha1.Bar) bool { return b.BuildID == loses })
		return a.Lowers() && (a.Cause == rollout.CauseVerdict || a.Cause == rollout.CauseGate ||
			a.Cause == rollout.CauseBarred && !recorded)
	})
}

// earlier are the versions that gave way to the one that is current, and to those before it, as far as Git knows.
func (o *oracle) earlier(current string) []string {
	var line []string
	back := func(to string) {
		for i := len(line) - 1; i >= 0; i-- {
			if line[i] == to {
				line = line[:i]
				return
			}
		}
	}
	for i, p := range o.rec.Promotions {
		if i > 0 && o.rec.Promotions[i-1].LeftBy == v1alpha1.LeftByRollback {
			back(p.BuildID)
		}
		switch {
		case p.LeftBy == v1alpha1.LeftByPromotion:
			line = append(line, p.BuildID)
		case !p.LeftAt.IsZero() || p.BuildID == current:
		case slices.Contains(line, current) && !o.decidedOn(p.BuildID, current):
			back(current)
		default:
			line = append(line, p.BuildID)
		}
	}
	return line
}

// decidedOn: the bot itself promoted a version when another one was current.
func (o *oracle) decidedOn(last, current string) bool {
	return o.rec.Basis != nil && o.rec.Basis.Current == last && o.rec.Decided != nil && o.rec.Decided.Current == current
}

// cameSince: Temporal saw the version current since the basis, and Git did not.
func (o *oracle) cameSince(id string) bool {
	v := o.s.Observation.Version(id)
	n := len(o.rec.Promotions)
	open := n > 0 && o.rec.Promotions[n-1].BuildID == id && o.rec.Promotions[n-1].LeftAt.IsZero()
	return v != nil && o.rec.Basis != nil && v.BecameCurrentAt.After(o.rec.Basis.CurrentChangedAt.Time) && !open
}
