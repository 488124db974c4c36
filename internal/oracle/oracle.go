// Package oracle finds what a plan does that must never happen, for tests of the planner. It is written from the rules
// and the facts alone: it knows nothing of the planner, and of its last check before a write.
package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// oracle is one plan, what it was made on, and what was found in it.
type oracle struct {
	s     rollout.Snapshot
	p     rollout.Plan
	rec   v1alpha1.RoutingSpec
	found []string
}

// Forbidden lists what the plan does that must never happen, empty for one that may be carried out.
func Forbidden(s rollout.Snapshot, p rollout.Plan) []string {
	o := oracle{s: s, p: p}
	switch bad := s.Record.RoutingProblem != nil; {
	case bad && s.Record.LastReadable != nil:
		o.rec = s.Record.LastReadable.Spec
	case !bad && s.Record.Routing != nil:
		o.rec = s.Record.Routing.Spec
	}
	o.writes()
	o.unusable()
	o.elsewhere()
	o.anotherServer()
	o.takesAway()
	if p.Lower != nil {
		o.check(!o.givesMore(*p.Lower), "lowering gives more: %v", p.Lower.Steps)
	}
	o.people()
	if p.Raise != nil {
		o.raises()
	}
	o.evacuates()
	o.records()
	o.objects()
	return o.found
}

func (o *oracle) check(ok bool, format string, args ...any) {
	if !ok {
		o.found = append(o.found, fmt.Sprintf(format, args...))
	}
}

func (o *oracle) git(id string) *v1alpha1.RecordedVersion {
	return rollout.FindVersion(o.rec.Versions, id)
}

// writes: nothing in Temporal is touched that is somebody else's, or could not be read, and nothing without token and
// basis.
func (o *oracle) writes() {
	obs := o.s.Observation
	calls := []*rollout.RoutingCall{o.p.Lower, o.p.Raise}
	touches := o.p.Lower != nil || o.p.Raise != nil || len(o.p.Gates)+len(o.p.Deletions)+len(o.p.Batches) > 0
	released := o.rec.Hold != nil && o.rec.Hold.Kind == v1alpha1.HoldReleased
	o.check(!touches || !released, "touches what was released")
	mine := obs.ManagerIdentity == "" || obs.ManagerIdentity == o.s.Environment.ManagerIdentity
	o.check(!touches || mine, "touches what %s owns", obs.ManagerIdentity)
	o.check(!touches || obs.Problem == nil && obs.Exists != "", "touches what was not read")
	o.check(o.p.Lower == nil || o.p.Raise == nil, "lowers and raises at once")
	o.runsOnce()
	for _, c := range calls {
		if c == nil {
			continue
		}
		o.check(string(c.Token) == string(obs.ConflictToken) && c.Basis == obs.Routing,
			"a call without the token of its basis")
		o.check((c.Claim == rollout.ClaimNeeded) == (obs.ManagerIdentity == ""), "a wrong claim")
		o.check(len(c.Steps) > 0, "a call without steps")
	}
}

// unusable: while it is unknown what is asked for, or what was done, traffic only goes down.
func (o *oracle) unusable() {
	if o.s.Record.RoutingProblem != nil {
		o.check(o.p.Raise == nil && o.p.Record == nil &&
			len(o.p.Versions)+len(o.p.Gates)+len(o.p.Batches)+len(o.p.Deletions) == 0,
			"does more than lowering with a record that cannot be read")
		o.check(o.p.Lower == nil || o.s.Record.LastReadable != nil, "lowers without a record")
		return
	}
	if o.s.EnvironmentProblem == nil && o.rec.MinReader < 2 && o.s.Spec != nil && len(o.s.Problems) == 0 &&
		!o.contested() && (o.s.Connection != nil || o.movesNamespace()) && !o.leavesServer() {
		return
	}
	o.check(o.p.Raise == nil, "raises without a spec that can be used")
	o.check(len(o.p.Gates)+len(o.p.Batches)+len(o.p.Deletions) == 0 && !o.p.Remove,
		"does more than lowering without a spec that can be used")
	for _, w := range o.p.Versions {
		o.check(o.git(w.BuildID) != nil && w.Op != rollout.RemoveVersion && w.Op != rollout.RenderVersion,
			"changes %s without a spec that can be used", w.BuildID)
	}
}

// contested: another environment claims the worker deployment, and Temporal does not say that it is this one's alone.
func (o *oracle) contested() bool {
	obs, own := o.s.Observation, o.s.Environment.ManagerIdentity
	alone := obs.ManagerIdentity == own && own != ""
	for _, r := range o.s.Rivals {
		alone = alone && r.ManagerIdentity != own
	}
	return len(o.s.Rivals) > 0 && !alone && obs.Problem == nil && obs.Exists != "" && !obs.At.IsZero()
}

// movesNamespace: the spec wants another Temporal namespace than the versions have. They need none of its connections.
func (o *oracle) movesNamespace() bool {
	was := o.rec.TemporalNamespace
	return o.s.Spec != nil && len(o.rec.Versions) > 0 && was != "" &&
		was != o.s.Spec.Spec.WorkerOptions.TemporalNamespace
}

// elsewhere: no version goes to the namespace or the server of a spec that wants another namespace, and it stays known
// where they are.
func (o *oracle) elsewhere() {
	if !o.movesNamespace() {
		return
	}
	of := func(c *v1alpha1.RecordedConnection) v1alpha1.ConnectionRef {
		if c == nil {
			return v1alpha1.ConnectionRef{}
		}
		return c.Ref()
	}
	was := of(o.rec.Connection)
	for _, w := range o.p.Versions {
		o.check(w.Op != rollout.RenderVersion, "makes %s elsewhere", w.BuildID)
		there := o.p.Connection != nil && (was.Name == "" || o.p.Connection.Ref() == was)
		o.check(w.Op != rollout.ReconnectVersion || there, "connects %s elsewhere", w.BuildID)
	}
	if next := o.p.Record; next != nil {
		o.check(next.TemporalNamespace == o.rec.TemporalNamespace, "records a namespace elsewhere")
		o.check(was.Name == "" || of(next.Connection) == was, "records a connection elsewhere")
	}
}

// knownServer: the address is the one that the versions are known at, or its Temporal namespace has the ID that theirs
// has.
func (o *oracle) knownServer(address string) bool {
	if was := o.rec.Connection; was == nil || len(o.rec.Versions) == 0 ||
		strings.EqualFold(was.Spec.HostPort, address) {
		return true
	}
	there := o.s.NamespaceThere
	if there == nil || there.ID == "" || !strings.EqualFold(there.HostPort, address) ||
		there.TemporalNamespace != o.rec.TemporalNamespace {
		return false
	}
	return there.ID == o.rec.TemporalNamespaceID ||
		o.rec.TemporalNamespaceID == "" && there.ID == o.s.Observation.NamespaceID
}

// leavesServer: the spec's connection leads to another server, and the worker deployment is not retired.
func (o *oracle) leavesServer() bool {
	ends := o.rec.Retire != nil || o.s.Spec != nil && o.s.Spec.Metadata.Annotations[rollout.AnnotationRetire] == "true"
	return o.s.Connection != nil && !ends && !o.movesNamespace() && !o.knownServer(o.s.Connection.Spec.HostPort)
}

// anotherServer: workers and traffic stay on the server that the versions are on.
func (o *oracle) anotherServer() {
	if next := o.p.Record; next != nil && next.Connection != nil {
		o.check(o.knownServer(next.Connection.Spec.HostPort), "records another server")
	}
	if o.p.Connection == nil || o.knownServer(o.p.Connection.Spec.HostPort) {
		return
	}
	o.check(o.p.Lower == nil && o.p.Raise == nil && len(o.p.Gates)+len(o.p.Batches)+len(o.p.Deletions) == 0,
		"touches another server")
	for _, w := range o.p.Versions {
		o.check(w.Op != rollout.RenderVersion && w.Op != rollout.ReconnectVersion, "takes %s to another server",
			w.BuildID)
	}
}

// idle: one read shows that the version has no traffic, does not drain, and nothing is pinned to it.
func (o *oracle) idle(obs rollout.Observation, id string) (ok, gone bool) {
	r, g := obs.Routing, o.git(id)
	if obs.Problem != nil || obs.Exists == "" || g == nil || r.Current == id || r.HasRamp && r.Ramping == id {
		return false, false
	}
	down := g.Guard == v1alpha1.GuardOff && g.Replicas != nil && *g.Replicas == 0
	routed := !g.RoutedAt.IsZero()
	for _, p := range o.rec.Promotions {
		before := !p.LeftAt.IsZero() && p.LeftAt.Before(g.CreatedAt.Time) // another version of that name, removed since
		routed = routed || p.BuildID == id && !before
	}
	v := obs.Version(id)
	if v == nil {
		n := obs.Unlisted[id]
		return n.Known && n.N == 0 && (down || !routed), n.Known && n.N == 0 && down
	}
	routed = routed || !v.FirstActivatedAt.IsZero() || !v.BecameCurrentAt.IsZero() || !v.DeactivatedAt.IsZero()
	unpinned := v.OpenPinned.Known && v.OpenPinned.N == 0
	return unpinned && (v.Drainage == rollout.Drained || v.Drainage == "" && !routed), false
}

// twice: both reads of the cycle show it.
func (o *oracle) twice(id string) (ok, gone bool) {
	if o.s.FirstRead == nil || !o.s.FirstRead.At.Before(o.s.Observation.At) {
		return false, false
	}
	a, goneA := o.idle(*o.s.FirstRead, id)
	b, goneB := o.idle(o.s.Observation, id)
	return a && b, goneA && goneB
}

// takesAway: scaling down, deleting and removing want two reads; removing, that Temporal does not know the version,
// too.
func (o *oracle) takesAway() {
	for _, w := range o.p.Versions {
		was := o.git(w.BuildID)
		idle, gone := o.twice(w.BuildID)
		if w.Op == rollout.RemoveVersion {
			o.check(gone, "removes %s", w.BuildID)
			continue
		}
		if was == nil || was.Replicas != nil && *was.Replicas == 0 && was.Guard == v1alpha1.GuardOff {
			continue
		}
		zero := w.Replicas != nil && *w.Replicas == 0
		o.check(idle || w.Guard == was.Guard && (!zero || o.asksForNone() || was.Replicas != nil && *was.Replicas == 0),
			"scales %s down", w.BuildID)
	}
	for _, id := range o.p.Deletions {
		idle, gone := o.twice(id)
		g := o.git(id)
		o.check(idle && !gone && g.Replicas != nil && *g.Replicas == 0, "deletes %s", id)
	}
	if o.p.Record == nil {
		return
	}
	for _, was := range o.rec.Versions {
		stays := rollout.FindVersion(o.p.Record.Versions, was.BuildID) != nil
		_, gone := o.twice(was.BuildID)
		o.check(stays || gone, "forgets %s", was.BuildID)
	}
}

// asksForNone: the spec wants no workers, or, if it cannot be used, the last one that could.
func (o *oracle) asksForNone() bool {
	spec, last := o.s.Spec, o.s.Record.Status
	useless := spec == nil || len(o.s.Problems) > 0
	if !useless {
		how := spec.Spec.Rollout
		ends := o.rec.Retire != nil || spec.Metadata.Annotations[rollout.AnnotationRetire] == "true"
		useless = how.Strategy == "" || how.Strategy == v1alpha1.Progressive && len(how.Steps) == 0 ||
			o.movesNamespace() && !ends || o.leavesServer()
	}
	if useless && last != nil {
		spec = last
	}
	return spec != nil && spec.Spec.Replicas != nil && *spec.Spec.Replicas == 0
}

func sameTraffic(a, b v1alpha1.DesiredRouting) bool {
	if a.Current != b.Current || (a.Ramping == nil) != (b.Ramping == nil) {
		return false
	}
	return a.Ramping == nil || *a.Ramping == *b.Ramping
}

// records: a record that desires more for a version than it has goes with the raise, or is as it was. No bar, no
// version and no promotion is lost.
func (o *oracle) records() {
	next := o.p.Record
	if next == nil || next.Basis == nil || sameTraffic(next.Desired, o.rec.Desired) && o.rec.Basis != nil {
		return
	}
	is := o.s.Observation.Routing
	if o.p.Raise != nil {
		is = then(is, o.p.Raise.Steps)
	} else if o.p.Lower != nil {
		is = then(is, o.p.Lower.Steps)
	}
	want := v1alpha1.DesiredRouting{Current: is.Current}
	o.check(next.Desired.Current == want.Current, "desires %v", next.Desired)
	if r := next.Desired.Ramping; r != nil {
		o.check(is.HasRamp && r.BuildID == is.Ramping && float32(r.Percentage) == is.Percentage, "desires %v",
			next.Desired)
	}
	for _, b := range o.rec.Bars {
		o.check(slices.Contains(next.Bars, b), "forgets the bar of %s", b.BuildID)
	}
}

// evacuates: workflows are touched only where they were counted just now, on a version without traffic that is not the
// target. They are moved or ended by force only after a person's yes.
func (o *oracle) evacuates() {
	obs := o.s.Observation
	o.check(len(o.p.Batches) <= 1, "starts %d jobs", len(o.p.Batches))
	for _, b := range o.p.Batches {
		v := obs.Version(b.BuildID)
		o.check(v != nil && v.OpenPinned.Known && v.OpenPinned.N > 0, "evacuates workflows that were not counted")
		o.check(part(obs.Routing, b.BuildID) == 0 && obs.Routing.Ramping != b.BuildID, "evacuates what has traffic")
		o.check(o.p.Target != nil && o.p.Target.BuildID != b.BuildID, "evacuates what is asked for")
		o.check(obs.Problem == nil && o.s.Now.Sub(obs.At) <= time.Minute, "evacuates on an old read")
		o.check(obs.ManagerIdentity == "" || obs.ManagerIdentity == o.s.Environment.ManagerIdentity,
			"evacuates what is somebody else's")
		o.check(b.Job.Stage != v1alpha1.EvacuateByMove || o.git(b.Job.Target) != nil && o.served(b.Job.Target),
			"moves to %s, which is not served", b.Job.Target)
		if b.Job.Stage == v1alpha1.EvacuateBySignal || b.Job.Stage == v1alpha1.EvacuateByCancel {
			continue
		}
		yes := false
		for _, e := range o.git(b.BuildID).Evacuations {
			yes = yes || e.JobID == b.Job.JobID && (e.State == v1alpha1.EvacuationApproved || !e.ApprovedAt.IsZero())
		}
		o.check(yes, "a person said nothing of %s", b.Job.Stage)
	}
}

func scales(r v1alpha1.RecordedResource) bool { return r.Scales }

// toAllVersions: each template that scales is for versions that run, too.
func (o *oracle) toAllVersions(list []v1alpha1.RecordedResource) bool {
	return !slices.ContainsFunc(list, func(r v1alpha1.RecordedResource) bool {
		at := slices.IndexFunc(o.s.Resources, func(t rollout.ResourceTemplate) bool { return t.Name == r.Template })
		return r.Scales && (at < 0 || o.s.Resources[at].ApplyTo != v1alpha1.AllVersions)
	})
}

// objects: a version that is scaled down has none, so that nothing scales it up again. One whose replicas are a number
// has no scaler that was there before. None is lost that may be there still.
func (o *oracle) objects() {
	if o.p.Record == nil {
		return
	}
	for _, v := range o.p.Record.Versions {
		down := v.Guard == v1alpha1.GuardOff && v.Replicas != nil && *v.Replicas == 0
		was := o.git(v.BuildID)
		moved := was == nil || was.Guard != v.Guard
		o.check(!down || !moved || len(v.Resources) == 0, "%s is scaled down and keeps its objects", v.BuildID)
		for _, r := range v.Resources {
			o.check(v.Replicas == nil || !r.Scales || !moved, "%s has a number of replicas and a scaler", v.BuildID)
			o.check(r.Template != "deployment", "an object in the Deployment's place")
		}
		if was == nil || down {
			continue
		}
		keeps := was.Replicas != nil && *was.Replicas > 0 && !slices.ContainsFunc(was.Resources, scales)
		o.check(!keeps || v.Replicas != nil, "%s loses its number of replicas", v.BuildID)
		o.check(!keeps || o.toAllVersions(v.Resources), "%s gets a scaler while it runs", v.BuildID)
		for _, r := range was.Resources {
			kept := slices.ContainsFunc(v.Resources, func(x v1alpha1.RecordedResource) bool {
				return x.Template == r.Template
			})
			at := slices.IndexFunc(o.s.Resources, func(t rollout.ResourceTemplate) bool { return t.Name == r.Template })
			o.check(kept || at >= 0 && o.s.Resources[at].Problem == nil || at < 0 && o.s.ResourcesProblem == nil,
				"%s loses %s", v.BuildID, r.Template)
		}
	}
}
