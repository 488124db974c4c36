package input

import (
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// read reports whether an observation can be relied on.
func read(obs *rollout.Observation) bool {
	return obs.Problem == nil && !obs.At.IsZero() && obs.Exists != ""
}

func routingOf(s *rollout.Snapshot, obs *rollout.Observation) ast.Value {
	o := newObject()
	known := read(obs)
	o.flag("known", known)
	o.flag("fresh", known && s.Now.Sub(obs.At) <= s.Limits.FactMaxAge)
	o.time("readAt", obs.At)
	if obs.Problem != nil {
		o.text("problem", obs.Problem.Message)
	}
	if !known {
		return o.value()
	}
	o.answer("exists", obs.Exists)
	r := obs.Routing
	o.put("current", ast.String(r.Current))
	o.flag("hasRamp", r.HasRamp)
	if r.HasRamp {
		o.put("ramping", ast.String(r.Ramping))
		o.number("percentage", rollout.AsWritten(r.Percentage))
	}
	o.time("currentChangedAt", r.CurrentChangedAt)
	o.time("rampingChangedAt", r.RampingChangedAt)
	o.time("percentageChangedAt", r.PercentageChangedAt)
	if r.Revision != 0 {
		o.integer("revision", r.Revision)
	}
	o.text("managerIdentity", obs.ManagerIdentity)
	o.text("lastModifier", obs.LastModifier)
	o.answer("propagating", obs.Propagating)
	return o.value()
}

// versionsOf lists the versions that Git knows, in the order of their creation, and then those that only Temporal
// knows.
func versionsOf(s *rollout.Snapshot, p *rollout.Proposal, obs *rollout.Observation) ast.Value {
	recorded := s.Record.Versions()
	terms := make([]*ast.Term, 0, len(recorded)+len(obs.Versions))
	one := func(buildID string, r *v1alpha1.RecordedVersion) {
		o := versionOf(obs, buildID)
		o.flag("target", p.Target != nil && p.Target.BuildID == buildID)
		if r != nil {
			o.put("record", recordedOf(r))
		}
		terms = append(terms, o.term())
	}
	for i := range recorded {
		one(recorded[i].BuildID, &recorded[i])
	}
	for i := range obs.Versions {
		id := obs.Versions[i].BuildID
		if rollout.FindVersion(recorded, id) == nil {
			one(id, nil)
		}
	}
	return ast.NewArray(terms...)
}

func versionOf(obs *rollout.Observation, buildID string) *object {
	o := newObject()
	o.text("buildID", buildID)
	if read(obs) {
		o.number("share", rollout.AsWritten(obs.Routing.Share(buildID)))
	}
	v := obs.Version(buildID)
	if v == nil {
		if read(obs) {
			o.flag("listed", false)
		}
		if c, asked := obs.Unlisted[buildID]; asked {
			o.put("openPinned", countOf(c))
		}
		return o
	}
	o.flag("listed", true)
	o.time("createdAt", v.CreatedAt)
	o.text("drainage", string(v.Drainage))
	o.time("drainageChangedAt", v.DrainageChangedAt)
	o.time("drainageCheckedAt", v.DrainageCheckedAt.Truncate(time.Minute))
	o.time("firstActivatedAt", v.FirstActivatedAt)
	o.time("becameCurrentAt", v.BecameCurrentAt)
	o.time("deactivatedAt", v.DeactivatedAt)
	o.flag("scaled", v.Scaled)
	o.text("turnedBack", v.TurnedBack)
	o.put("openPinned", countOf(v.OpenPinned))
	o.put("closed", closedOf(v.Closed).value())
	o.answer("queuesKnown", v.QueuesKnown)
	if v.QueuesKnown == rollout.Yes {
		o.put("queues", list(v.Queues, func(o *object, q rollout.TaskQueue) { putQueue(o, obs.At, &q) }))
	}
	return o
}

// digitsOfFlow are the significant digits of rates that the server measures, approximately. They are two where tasks
// wait, so that what comes can be compared with what goes, and one where none do, which says how busy the queue is.
func digitsOfFlow(b rollout.Backlog) int {
	if b.Count > 0 {
		return 2
	}
	return 1
}

// lastAccess is when a queue was polled last, to the minute, where that was more than a minute before the read. A poll
// lasts about a minute, so that a later one says no more than that there are pollers. Times that are others in each
// decision took a tenth of the decision log.
func lastAccess(at, last time.Time) time.Time {
	if last.After(at.Add(-time.Minute)) {
		return time.Time{}
	}
	return last.Truncate(time.Minute)
}

func putQueue(o *object, at time.Time, q *rollout.TaskQueue) {
	o.text("name", q.Name)
	o.text("type", string(q.Type))
	o.answer("unversioned", q.Unversioned)
	o.texts("otherDeployments", q.OtherDeployments)
	if b := q.Backlog; b.Known {
		backlog := newObject()
		backlog.integer("count", b.Count)
		backlog.integer("ageSeconds", int64(b.Age.Round(time.Second).Seconds()))
		backlog.rounded("addRate", b.AddRate, digitsOfFlow(b))
		backlog.rounded("dispatchRate", b.DispatchRate, digitsOfFlow(b))
		o.put("backlog", backlog.value())
	}
	p := newObject()
	p.flag("known", q.Pollers.Known)
	p.text("reason", q.Pollers.Reason)
	if q.Pollers.Known {
		p.integer("count", int64(q.Pollers.Count))
		p.time("lastAccess", lastAccess(at, q.Pollers.LastAccess))
	}
	o.put("pollers", p.value())
}

func countOf(c rollout.Count) ast.Value {
	o := newObject()
	o.flag("known", c.Known)
	if c.Known {
		o.integer("n", c.N)
	}
	o.text("reason", c.Reason)
	return o.value()
}

func closedOf(c rollout.ClosedCounts) *object {
	o := newObject()
	o.flag("known", c.Known)
	o.text("reason", c.Reason)
	if !c.Known {
		return o
	}
	o.time("since", c.Since)
	o.integer("completed", c.Completed)
	o.integer("failed", c.Failed)
	o.integer("timedOut", c.TimedOut)
	o.integer("terminated", c.Terminated)
	o.integer("canceled", c.Canceled)
	o.integer("continuedAsNew", c.ContinuedAsNew)
	return o
}

func recordedOf(r *v1alpha1.RecordedVersion) ast.Value {
	o := newObject()
	o.text("buildIDFrom", string(r.BuildIDFrom))
	o.text("templateHash", abbreviated(r.TemplateHash))
	o.text("deployment", r.Deployment)
	o.time("createdAt", r.CreatedAt.Time)
	if r.Replicas != nil {
		o.integer("replicas", int64(*r.Replicas))
	}
	o.text("guard", string(r.Guard))
	o.count("attempts", r.Attempts)
	o.time("routedAt", r.RoutedAt.Time)
	o.time("retiredAt", r.RetiredAt.Time)
	if a := r.Retire; a != nil {
		asked := newObject()
		asked.text("by", a.By)
		asked.text("reason", a.Reason)
		asked.time("at", a.At.Time)
		o.put("retire", asked.value())
	}
	return o.value()
}

// abbreviated is as much of a template's hash as tells it from all others: 64 bits.
func abbreviated(hash string) string { return hash[:min(len(hash), 16)] }

// recordOf is what the bot remembers of the deployment.
func recordOf(s *rollout.Snapshot) ast.Value {
	o := newObject()
	if s.Record.Routing == nil {
		return o.value()
	}
	r := &s.Record.Routing.Spec
	desired := newObject()
	desired.put("current", ast.String(r.Desired.Current))
	if ramp := r.Desired.Ramping; ramp != nil {
		d := newObject()
		d.put("buildID", ast.String(ramp.BuildID))
		d.number("percentage", ramp.Percentage)
		desired.put("ramping", d.value())
	}
	o.put("desired", desired.value())
	if t := r.Target; t != nil {
		target := newObject()
		target.text("buildID", t.BuildID)
		target.text("templateHash", abbreviated(t.TemplateHash))
		target.count("attempt", t.Attempt)
		target.time("since", t.Since.Time)
		o.put("target", target.value())
	}
	if h := r.Hold; h != nil {
		hold := newObject()
		hold.text("kind", string(h.Kind))
		hold.text("buildID", h.BuildID)
		hold.text("by", h.By)
		hold.text("reason", h.Reason)
		hold.time("at", h.At.Time)
		o.put("hold", hold.value())
	}
	if a := r.Retire; a != nil {
		asked := newObject()
		asked.text("current", string(a.Current))
		asked.text("by", a.By)
		asked.text("reason", a.Reason)
		asked.time("at", a.At.Time)
		o.put("retire", asked.value())
	}
	o.put("promotions", list(r.Promotions, func(o *object, p v1alpha1.Promotion) {
		o.text("buildID", p.BuildID)
		o.time("at", p.At.Time)
		o.time("leftAt", p.LeftAt.Time)
		o.text("leftBy", string(p.LeftBy))
	}))
	o.put("bars", list(r.Bars, func(o *object, b v1alpha1.Bar) {
		o.text("buildID", b.BuildID)
		o.text("templateHash", abbreviated(b.TemplateHash))
		o.text("by", b.By)
		o.text("reason", b.Reason)
		o.time("at", b.At.Time)
	}))
	o.put("setAside", list(r.SetAside, func(o *object, a v1alpha1.SetAside) {
		o.text("buildID", a.BuildID)
		o.text("reason", a.Reason)
		o.time("at", a.At.Time)
	}))
	return o.value()
}
