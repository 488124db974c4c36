package oracle

import (
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// then is the routing after a call.
func then(r rollout.RoutingConfig, steps []rollout.RoutingStep) rollout.RoutingConfig {
	for _, s := range steps {
		switch s.Kind {
		case rollout.SetRamp:
			r.HasRamp, r.Ramping, r.Percentage = true, s.BuildID, s.Percentage
		case rollout.ClearRamp:
			r.HasRamp, r.Ramping, r.Percentage = false, "", 0
		case rollout.SetCurrent:
			r.Current = s.BuildID
			if r.Ramping == s.BuildID {
				r.HasRamp, r.Ramping, r.Percentage = false, "", 0
			}
		}
	}
	return r
}

func part(r rollout.RoutingConfig, id string) float32 {
	switch {
	case r.HasRamp && r.Ramping == id:
		return r.Percentage
	case r.Current == id && r.HasRamp:
		return 100 - r.Percentage
	case r.Current == id:
		return 100
	}
	return 0
}

// givesMore: a version gets more traffic that was not current, and does not become current once more.
func (o *oracle) givesMore(c rollout.RoutingCall) bool {
	was, is := o.s.Observation.Routing, then(o.s.Observation.Routing, c.Steps)
	for _, id := range []string{is.Current, is.Ramping} {
		v := o.s.Observation.Version(id)
		before := v != nil && !v.BecameCurrentAt.IsZero() ||
			slices.ContainsFunc(o.rec.Promotions, func(p v1alpha1.Promotion) bool { return p.BuildID == id })
		if id != was.Current && part(is, id) > part(was, id) && (id != is.Current || !before || !o.served(id)) {
			return true
		}
	}
	return false
}

// served: each queue of the version was polled lately. If the version is in Git, it is there with its workers.
func (o *oracle) served(id string) bool {
	g, v := o.git(id), o.s.Observation.Version(id)
	if g != nil && g.Guard != v1alpha1.GuardOn || v == nil || v.QueuesKnown != rollout.Yes || len(v.Queues) == 0 {
		return false
	}
	for _, q := range v.Queues {
		ago := o.s.Now.Sub(q.Pollers.LastAccess)
		if !q.Pollers.Known || q.Pollers.Count < 1 || ago > 90*time.Second || ago < -10*time.Second {
			return false
		}
	}
	return true
}

// raises: only the target, that is served and not barred, by one step, on fresh facts, and not where a person moves or
// holds traffic.
func (o *oracle) raises() {
	obs := o.s.Observation
	was, is := obs.Routing, then(obs.Routing, o.p.Raise.Steps)
	target := o.p.Target
	if is.Current == "" && was.Current != "" {
		o.unroutes(is)
		return
	}
	o.check(o.s.Now.Sub(obs.At) <= time.Minute, "raises on an old read")
	o.check(o.s.Spec != nil && len(o.s.Problems) == 0 && target != nil, "raises without a spec")
	if target == nil || o.s.Spec == nil {
		return
	}
	for _, id := range []string{is.Current, is.Ramping} {
		o.check(id == target.BuildID || part(is, id) <= part(was, id), "raises %s, which was not asked for", id)
	}
	o.check(o.git(target.BuildID) != nil && o.served(target.BuildID), "raises %s, which is not served", target.BuildID)
	o.countedFirst(was, target.BuildID)
	o.leavesNothing(was.Current, target.BuildID)
	for _, b := range o.rec.Bars {
		o.check(b.BuildID != target.BuildID || b.TemplateHash != target.TemplateHash, "raises a barred build")
	}
	rollout := o.s.Spec.Spec.Rollout
	first := was.Current == "" && !was.HasRamp
	if rollout.Strategy == v1alpha1.Progressive && !first {
		next := float32(100)
		for _, s := range slices.Backward(rollout.Steps) {
			if p := float32(s.RampPercentage); p > part(was, target.BuildID) {
				next = p
			}
		}
		o.check(part(is, target.BuildID) <= next, "raises from %v to %v", part(was, target.BuildID),
			part(is, target.BuildID))
	}
	edited := o.rec.Decided != nil && !sameTraffic(*o.rec.Decided, o.rec.Desired)
	o.check(edited || rollout.Strategy != v1alpha1.Manual, "raises though the strategy is Manual")
	h := o.rec.Hold
	o.check(h == nil || edited || (h.Kind == v1alpha1.HoldDrift || h.Kind == v1alpha1.HoldRejected) &&
		h.BuildID != target.BuildID || o.newTemplate(), "raises though held")
}

// runsOnce: no gate starts whose outcome is in the record.
func (o *oracle) runsOnce() {
	if o.rec.Target == nil {
		return
	}
	for _, start := range o.p.Gates {
		id := start.Gate.WorkflowID(start.TaskQueue)
		o.check(!slices.ContainsFunc(o.rec.Target.Gates,
			func(g v1alpha1.RecordedGate) bool { return g.WorkflowID == id }), "starts gate %s again", id)
	}
}

// countedFirst: beside other workers, a version gets its first traffic once the workflows that are stuck without it
// were counted. Their number goes into the record with the raise. Only a server that cannot count them is taken as it
// is.
func (o *oracle) countedFirst(was rollout.RoutingConfig, id string) {
	n := o.s.Observation.Stuck.Problems
	if part(was, id) > 0 || n.Unsupported || was.Current == "" && !was.HasRamp && o.alone(id) {
		return
	}
	next := o.p.Record.Target
	o.check(next != nil && next.BuildID == id && next.StuckBefore != nil,
		"raises %s from nothing without a count of what is stuck", id)
}

// leavesNothing: each task queue of the current version is served by the one that is raised, or idle. Else a person saw
// it named and said yes. A queue of workflows is idle only where the one that is raised serves another.
func (o *oracle) leavesNothing(current, id string) {
	from, to := o.s.Observation.Version(current), o.s.Observation.Version(id)
	if from == nil || to == nil {
		return
	}
	yes := func(q rollout.TaskQueue) bool {
		same := func(r v1alpha1.RecordedQueue) bool { return r.Name == q.Name && string(r.Type) == string(q.Type) }
		p, t := o.rec.Proposal, o.rec.Target
		merged := o.rec.Decided != nil && !sameTraffic(*o.rec.Decided, o.rec.Desired)
		return t != nil && t.BuildID == id && slices.ContainsFunc(t.LeavesBehind, same) ||
			p != nil && p.BuildID == id && (p.Approved != nil || merged) && slices.ContainsFunc(p.LeavesBehind, same)
	}
	workflows := slices.ContainsFunc(to.Queues, func(r rollout.TaskQueue) bool {
		return r.Type == rollout.QueueWorkflow
	})
	for _, q := range from.Queues {
		served := slices.ContainsFunc(to.Queues, func(r rollout.TaskQueue) bool {
			return r.Name == q.Name && r.Type == q.Type
		})
		idle := q.Backlog.Known && q.Backlog.Count == 0 && q.Backlog.AddRate == 0 &&
			(workflows || q.Type != rollout.QueueWorkflow)
		o.check(served || idle || yes(q), "leaves %s of %s behind", q.Name, current)
	}
}

// alone: no unversioned worker is on any of the version's queues.
func (o *oracle) alone(id string) bool {
	v := o.s.Observation.Version(id)
	return v != nil && !slices.ContainsFunc(v.Queues, func(q rollout.TaskQueue) bool {
		return q.Unversioned != rollout.No
	})
}

// unroutes: the current version loses its traffic only when a person asked for just that. Then it loses it only to
// unversioned workers that are there, or when nothing uses it, unless the person did without that.
func (o *oracle) unroutes(is rollout.RoutingConfig) {
	obs := o.s.Observation
	o.check(is == rollout.RoutingConfig{CurrentChangedAt: is.CurrentChangedAt, RampingChangedAt: is.RampingChangedAt,
		PercentageChangedAt: is.PercentageChangedAt, Revision: is.Revision}, "unroutes and ramps")
	o.check(o.s.Now.Sub(obs.At) <= time.Minute, "unroutes on an old read")
	r := o.rec.Retire
	if r == nil || r.Current == v1alpha1.KeepCurrent {
		o.check(false, "unroutes, which was not asked for")
		return
	}
	v := obs.Version(obs.Routing.Current)
	if r.Current == v1alpha1.UnrouteAnyway || v == nil {
		o.check(v != nil, "unroutes a version that is not listed")
		return
	}
	elsewhere := len(v.Queues) > 0
	for _, q := range v.Queues {
		elsewhere = elsewhere && q.Unversioned == rollout.Yes
	}
	unused := v.InUse.Known && v.InUse.N == 0 && o.s.Now.Sub(r.At.Time) > time.Minute
	o.check(elsewhere || unused, "unroutes what may be needed")
}

// newTemplate: the spec asks for something else than when the record was written.
func (o *oracle) newTemplate() bool {
	was := o.rec.Target
	return was != nil && (was.BuildID != o.p.Target.BuildID || was.TemplateHash != o.p.Target.TemplateHash)
}
