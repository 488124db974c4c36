package plan

import (
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Never lists what a plan would do that must not happen whatever rules and policy say. It is called just before
// anything is written, and is empty for a plan that may be carried out. It derives everything from the raw facts again
// and makes no view, so that a mistake in what the rows look at does not pass here, too: whose the routing is, which
// environment may have it, whether the spec can be used (decisions 17, 41 and 43).
func Never(s rollout.Snapshot, p rollout.Plan) []string {
	n := never{s: &s, p: &p}
	n.onlyLowers()
	n.stays()
	n.staysOnServer()
	n.removals()
	n.resources()
	n.ends()
	n.batches()
	n.approved()
	if n.foreign() && len(p.Gates) > 0 {
		n.add("a gate would start on a worker deployment of %q", s.Observation.ManagerIdentity)
	}
	if p.Lower != nil {
		n.call("lowering", *p.Lower)
		n.lowers(*p.Lower)
	}
	if p.Raise != nil {
		n.call("raise", *p.Raise)
		n.raise(*p.Raise)
	}
	return n.found
}

type never struct {
	s     *rollout.Snapshot
	p     *rollout.Plan
	found []string
}

func (n *never) add(format string, args ...any) {
	n.found = append(n.found, fmt.Sprintf(format, args...))
}

// removals: files of a Current, Ramping, Draining or Unknown version are neither removed nor scaled to 0.
func (n *never) removals() {
	for _, w := range n.p.Versions {
		was := n.recorded(w.BuildID)
		switch {
		case w.Op == rollout.RemoveVersion:
			n.goes(w.BuildID, "taken away", true)
			if !retired(was) {
				n.add("the files of %s would be removed before it was scaled down", w.BuildID)
			}
		case was == nil || retired(was):
		case w.Guard == v1alpha1.GuardOff && (was.Guard == v1alpha1.GuardOn || isZero(w.Replicas)):
			n.goes(w.BuildID, "taken away", false)
		case isZero(w.Replicas) && !isZero(was.Replicas) && !n.askedZero():
			n.add("version %s would be scaled to 0, which was not asked for", w.BuildID)
		}
	}
	for _, id := range n.p.Deletions {
		n.goes(id, "deleted", false)
		if !retired(n.recorded(id)) {
			n.add("version %s would be deleted before it was scaled down", id)
		}
	}
}

// goes checks that both reads show that a version may go.
func (n *never) goes(id, how string, gone bool) {
	if n.foreign() {
		n.add("version %s of a worker deployment of %q would be %s", id, n.s.Observation.ManagerIdentity, how)
	}
	for _, obs := range []*rollout.Observation{&n.s.Observation, n.s.FirstRead} {
		if why := n.inUse(obs, id, gone); why != "" {
			n.add("version %s would be %s: %s", id, how, why)
		}
	}
}

// inUse says why one read does not show that a version may go, "" if it does.
func (n *never) inUse(obs *rollout.Observation, id string, gone bool) string {
	switch {
	case obs == nil:
		return "there was no second read"
	case obs.Problem != nil || obs.Exists == "":
		return "Temporal was not read"
	case obs.Routing.Current == id:
		return "it is current"
	case obs.Routing.HasRamp && obs.Routing.Ramping == id:
		return "it is ramping"
	}
	v := obs.Version(id)
	was := n.recorded(id)
	routed := was != nil && !was.RoutedAt.IsZero() || n.promotedSince(was, id)
	switch {
	case gone && v != nil:
		return "Temporal still knows it"
	case v == nil && !obs.Unlisted[id].None():
		return "it is not known that no open workflow names it"
	case v == nil && routed && !retired(was):
		return "it was routed and Temporal does not list it"
	case v == nil:
		return ""
	case v.Drainage == rollout.Draining:
		return "it is draining"
	case v.Drainage == "" && (routed || !v.ActivatedAt().IsZero()):
		return "it was routed and its drainage is not known"
	case !v.OpenPinned.None():
		return "it is not known that no open workflow is pinned to it"
	}
	return ""
}

// routing is the record as Git has it, or had it last so that it can be read; its zero value if there is none.
func (n *never) routing() v1alpha1.RoutingSpec {
	if rec := recordIn(n.s); rec != nil {
		return *rec
	}
	return v1alpha1.RoutingSpec{}
}

func (n *never) recorded(id string) *v1alpha1.RecordedVersion {
	return rollout.FindVersion(n.routing().Versions, id)
}

// promoted reports whether the version was current by Git's promotion order.
func (n *never) promoted(id string) bool { return lastPromotion(n.routing().Promotions, id) >= 0 }

// wasCurrent reports whether the version was current by Git's promotion order, or by Temporal.
func (n *never) wasCurrent(id string) bool {
	v := n.s.Observation.Version(id)
	return n.promoted(id) || v != nil && !v.BecameCurrentAt.IsZero()
}

// promotedSince reports whether the version was current since its files were made: before, it was another one of that
// name, which was removed.
func (n *never) promotedSince(was *v1alpha1.RecordedVersion, id string) bool {
	if was == nil {
		return n.promoted(id)
	}
	return slices.ContainsFunc(n.routing().Promotions, func(p v1alpha1.Promotion) bool {
		return p.BuildID == id && (p.LeftAt.IsZero() || !p.LeftAt.Before(was.CreatedAt.Time))
	})
}

// foreign reports whether the routing is another's, or was released. The view's foreign asks the same of its record.
func (n *never) foreign() bool {
	id := n.s.Observation.ManagerIdentity
	h := n.routing().Hold
	return id != "" && id != n.s.Environment.ManagerIdentity || h != nil && h.Kind == v1alpha1.HoldReleased
}

func (n *never) call(what string, c rollout.RoutingCall) {
	if n.foreign() {
		n.add("the %s would change a worker deployment of %q", what, n.s.Observation.ManagerIdentity)
	}
	if !c.Basis.Same(n.s.Observation.Routing) || string(c.Token) != string(n.s.Observation.ConflictToken) {
		n.add("the %s is not bound to the routing that it was decided on", what)
	}
	owned := rollout.ClaimHeld
	if n.s.Observation.ManagerIdentity == "" {
		owned = rollout.ClaimNeeded
	}
	if c.Claim != owned || c.Identity == "" || c.Identity != n.s.Environment.ManagerIdentity {
		n.add("the %s does not say who makes it", what)
	}
}

// lowers: a call that lowers gives more traffic only to a version that had all of it before, and has workers. No policy
// stops such a call. The workers of a version without files are somebody else's, as at a takeover.
func (n *never) lowers(c rollout.RoutingCall) {
	r := n.s.Observation.Routing
	for _, step := range c.Steps {
		switch {
		case step.Kind == rollout.ClearRamp:
		case step.Kind == rollout.SetRamp:
			if !r.HasRamp || r.Ramping != step.BuildID || step.Percentage >= r.Percentage {
				n.add("the lowering would raise traffic to %s", step.BuildID)
			}
		case !n.wasCurrent(step.BuildID) || step.BuildID == r.Current:
			n.add("the lowering would make %s current, which it was not before", step.BuildID)
		default:
			if n.recorded(step.BuildID) != nil {
				n.inGit(step.BuildID)
			}
			n.served(step.BuildID)
		}
	}
}

// raise: only for a spec, to a version with files in Git and fresh pollers, by one step at most, on fresh facts.
func (n *never) raise(c rollout.RoutingCall) {
	obs := &n.s.Observation
	if age := n.s.Now.Sub(obs.At); obs.Problem != nil || age > n.s.Limits.FactMaxAge {
		n.add("traffic would be raised on facts that are %s old", age)
	}
	for _, step := range c.Steps {
		if step.Kind == rollout.ClearRamp {
			continue
		}
		if step.Kind == rollout.SetCurrent && step.BuildID == "" {
			n.unroutes()
			continue
		}
		n.inGit(step.BuildID)
		n.served(step.BuildID)
		if n.s.Spec == nil {
			n.add("traffic would be raised to %s without a spec", step.BuildID)
			continue
		}
		n.oneStep(step)
		n.known(step.BuildID)
		n.baseline(step.BuildID)
		n.leaves(c, step.BuildID)
		n.pooled(step.BuildID)
	}
}

// known: where the spec asks for an analysis, a ramp is not raised on counts or metrics that are not there.
func (n *never) known(id string) {
	r := n.s.Observation.Routing
	if n.s.Spec.Spec.Rollout.Analysis == nil || !r.HasRamp || r.Ramping != id || r.Percentage == 0 ||
		n.s.Spec.Spec.Rollout.Strategy != v1alpha1.Progressive {
		return
	}
	for _, m := range n.s.Spec.Spec.Rollout.Analysis.Metrics {
		if !n.s.Facts[m.Name].Fresh(n.s.Now) {
			n.add("traffic to %s would be raised although metric %s is not known", id, m.Name)
		}
	}
	if o := n.s.Observation.Version(id); o == nil || !o.Closed.Known || o.Closed.Since.Before(r.PercentageChangedAt) {
		n.add("traffic to %s would be raised although its closed workflows are not known", id)
	}
}

// baseline: no version gets its first traffic while it is not known how many workflows are stuck without it. This does
// not hold where nothing else has any traffic, or the server cannot count them.
func (n *never) baseline(id string) {
	obs := &n.s.Observation
	r, problems := obs.Routing, obs.Stuck.Problems
	was := n.routing().Target
	switch {
	case r.Share(id) > 0, r.Current == "" && !r.HasRamp && n.alone(id), problems.Known, problems.Unsupported:
	case was != nil && was.BuildID == id && was.StuckBefore != nil:
	default:
		n.add("traffic would be raised to %s although it is not known how many workflows are stuck without it", id)
	}
}

// inGit: the files of the version are in Git and keep its workers up.
func (n *never) inGit(id string) {
	if was := n.recorded(id); was == nil || was.Guard != v1alpha1.GuardOn || isZero(was.Replicas) && !n.askedZero() {
		n.add("traffic would be raised to %s, whose files are not in Git", id)
	}
}

// served: each task queue of the version has a worker of it that polled lately.
func (n *never) served(id string) {
	v := n.s.Observation.Version(id)
	if v == nil || v.QueuesKnown != rollout.Yes || len(v.Queues) == 0 {
		n.add("traffic would be raised to %s, whose task queues are not known", id)
		return
	}
	for _, q := range v.Queues {
		if !q.Pollers.Known || !n.polled(q.Pollers) {
			n.add("traffic would be raised to %s, whose task queue %s has no fresh poller", id, q.Name)
		}
	}
}

// leaves: no raise leaves a task queue of the current version behind that may be in use. Nor does it leave its
// workflows to a version that serves no queue of workflows. Either may be left behind if a person approved that by the
// queue's name.
func (n *never) leaves(c rollout.RoutingCall, id string) {
	obs := &n.s.Observation
	current, v := obs.Version(obs.Routing.Current), obs.Version(id)
	if current == nil || v == nil {
		return
	}
	var named []v1alpha1.RecordedQueue
	if t := n.routing().Target; t != nil && t.BuildID == id {
		named = append(named, t.LeavesBehind...)
	}
	if p := n.routing().Proposal; p != nil && p.BuildID == id {
		named = append(named, p.LeavesBehind...)
	}
	for _, q := range current.Queues {
		queue := v1alpha1.RecordedQueue{Name: q.Name, Type: v1alpha1.QueueType(q.Type)}
		served := slices.ContainsFunc(v.Queues, func(own rollout.TaskQueue) bool {
			return own.Name == q.Name && own.Type == q.Type
		})
		idle := q.Backlog.Known && q.Backlog.Count == 0 && q.Backlog.AddRate == 0 &&
			(q.Type != rollout.QueueWorkflow || slices.ContainsFunc(v.Queues, ofWorkflows))
		if !served && !idle && !(slices.Contains(named, queue) && slices.Contains(c.LeavesBehind, queue)) {
			n.add("traffic would be raised to %s, which does not serve %s, and that was not approved", id, queue)
		}
	}
}

// polled reports whether a worker polled lately, by a time that our clock has reached.
func (n *never) polled(p rollout.Pollers) bool {
	age := n.s.Now.Sub(p.LastAccess)
	return p.Count > 0 && age <= n.s.Limits.PollerMaxAge && age >= -rollout.ClockTolerance
}

// askedZero reports whether the spec asks for no replicas: the last one that could be used, where the one in Git cannot
// be.
func (n *never) askedZero() bool {
	spec := n.s.Spec
	if n.broken() != "" {
		spec = n.s.Record.Status
	}
	return spec != nil && isZero(spec.Spec.Replicas)
}

// pooled: no raise to a version without workers of each of its pools, as far as pools can be told apart.
func (n *never) pooled(id string) {
	was, o := n.recorded(id), n.s.Observation.Version(id)
	if was == nil || o == nil {
		return
	}
	for _, p := range n.s.Spec.Spec.Pools {
		at := find(was.Pools, func(have *v1alpha1.RecordedPool) bool { return have.Name == p.Name })
		if at == nil || isZero(p.Replicas) || len(p.TaskQueues) > 0 {
			continue
		}
		if own := o.Workers[at.Deployment]; !n.polled(own) {
			n.add("traffic would be raised to %s without a worker of its pool %s", id, p.Name)
		}
	}
}

// oneStep: a progressive rollout goes up by one step of its spec at most.
func (n *never) oneStep(step rollout.RoutingStep) {
	if n.s.Spec.Spec.Rollout.Strategy != v1alpha1.Progressive {
		return
	}
	r := n.s.Observation.Routing
	var have float32
	if r.HasRamp && r.Ramping == step.BuildID {
		have = r.Percentage
	}
	first := r.Current == "" && !r.HasRamp && n.alone(step.BuildID)
	for _, s := range n.s.Spec.Spec.Rollout.Steps {
		if p := float32(s.RampPercentage); p > have {
			if step.Kind == rollout.SetCurrent && !first || step.Percentage > p {
				n.add("traffic to %s would be raised by more than one step", step.BuildID)
			}
			return
		}
	}
}

// alone reports whether no unversioned worker is on the version's task queues: then there is no worker to take traffic
// from.
func (n *never) alone(id string) bool {
	v := n.s.Observation.Version(id)
	return v != nil && !slices.ContainsFunc(v.Queues, func(q rollout.TaskQueue) bool {
		return q.Unversioned != rollout.No
	})
}
