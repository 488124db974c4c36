package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// How Temporal behaves (source: the server's defaults, docs/temporal.md).
const (
	// drainageCheck is how often the server looks whether a version is drained, the first time that long after it lost
	// its traffic.
	drainageCheck = 3 * time.Minute
	// pollersListed is how long a poller stays listed after its last poll; a version with one is not deleted.
	pollersListed = 5 * time.Minute
)

// temporal is the model of one worker deployment at Temporal and of the workers that poll it. What it says depends on
// what was done to it and on the time that it is asked about, so looking ahead changes nothing.
type temporal struct {
	script  v1alpha1.SimulationSpec
	start   time.Time
	queue   string
	routing rollout.RoutingConfig
	manager string
	token   int
	// candidate is the newest build that was pushed.
	candidate string
	versions  map[string]*version
	gates     map[string]gateRun
	batches   map[string]batch
}

// version is what Temporal knows of a version, and its workers.
type version struct {
	rollout.VersionObservation
	replicas int
	// workers began to start, zero: there are none; polls is when the first of them polls.
	workers, polls time.Time
	// lastPoll of workers that went.
	lastPoll time.Time
	// share that it had when it lost its traffic.
	share float32
}

type gateRun struct {
	gate    rollout.GateSpec
	started time.Time
	ends    time.Time
	state   rollout.GateState
}

// registered reports whether Temporal lists the version at t.
func (v *version) registered(t time.Time) bool {
	return !v.CreatedAt.IsZero() && !t.Before(v.CreatedAt)
}

func (v *version) pollers(t time.Time) rollout.Pollers {
	p := rollout.Pollers{Known: true}
	switch {
	case !v.workers.IsZero() && !t.Before(v.polls):
		p.Count, p.LastAccess = v.replicas, t
	case !v.lastPoll.IsZero() && t.Sub(v.lastPoll) < pollersListed:
		p.Count, p.LastAccess = v.replicas, v.lastPoll
	}
	return p
}

// drainedAt is when the server finds a version drained that has no traffic any more; zero while it has some, or never
// had.
func (m *temporal) drainedAt(v *version) time.Time {
	if v.DeactivatedAt.IsZero() {
		return time.Time{}
	}
	left := m.script.Traffic.Duration.Duration
	if freed := m.freedAt(v.BuildID, v); !freed.IsZero() {
		left = min(left, freed.Sub(v.DeactivatedAt))
	}
	checks := max(1, (left+drainageCheck-1)/drainageCheck)
	return v.DeactivatedAt.Add(checks * drainageCheck)
}

// open counts the workflows pinned to a version.
func (m *temporal) open(id string, v *version, t time.Time) int64 {
	left := m.script.Traffic.Duration.Duration
	share := m.routing.Share(id)
	if !v.DeactivatedAt.IsZero() {
		left, share = v.DeactivatedAt.Add(left).Sub(t), v.share
	}
	stays := m.stays(id, v, t)
	n := whole(float64(m.flow(share, max(left, 0))) * stays)
	if n == 0 && stays > 0 && left > 0 && share > 0 && m.script.Traffic.WorkflowsPerMinute > 0 {
		return 1
	}
	return n
}

// flow is how many workflows start, or close, in a time at a share.
func (m *temporal) flow(share float32, d time.Duration) int64 {
	return whole(m.script.Traffic.WorkflowsPerMinute * d.Minutes() * float64(share) / 100)
}

// whole cuts off the fraction, but not one that rounding left.
func whole(n float64) int64 { return int64(n + 1e-6) }

// closed counts the workflows of a version that started since a time, at the share that it has, and have ended.
func (m *temporal) closed(ask rollout.ClosedAsk, t time.Time) rollout.ClosedCounts {
	out := rollout.ClosedCounts{Known: true, Since: ask.Since}
	id, share := ask.BuildID, m.routing.Share(ask.BuildID)
	from, to := ask.Since.Add(m.script.Traffic.Duration.Duration), t
	if !to.After(from) {
		return out
	}
	all := m.flow(share, to.Sub(from))
	failed := 0.0
	for _, span := range m.spans(from, to) {
		part := m.script.Traffic.WorkflowsPerMinute * span.to.Sub(span.from).Minutes() * float64(share) / 100
		failed += float64(part * m.failing(id, span.from) / 100)
	}
	out.Failed = min(all, whole(failed))
	out.Completed = all - out.Failed
	return out
}

type span struct{ from, to time.Time }

// spans cuts a time where the script's failures change.
func (m *temporal) spans(from, to time.Time) []span {
	cuts := []time.Time{from, to}
	for _, f := range m.script.Failures {
		for _, cut := range []time.Time{m.start.Add(f.From.Duration), m.start.Add(f.To.Duration)} {
			if cut.After(from) && cut.Before(to) {
				cuts = append(cuts, cut)
			}
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	out := make([]span, 0, len(cuts))
	for i := range cuts[1:] {
		out = append(out, span{cuts[i], cuts[i+1]})
	}
	return out
}

// failing is the percentage of a version's closing workflows that fail at t.
func (m *temporal) failing(id string, t time.Time) float64 {
	rate := 0.0
	for _, f := range m.script.Failures {
		if (f.BuildID == id || f.BuildID == "" && id == m.candidate) && during(t.Sub(m.start), f.From, f.To) {
			rate = f.Percentage
		}
	}
	return rate
}

// during reports whether a time is in a span whose end may be open.
func during(at time.Duration, from, to v1alpha1.Duration) bool {
	return at >= from.Duration && (to.Duration == 0 || at < to.Duration)
}

func (m *temporal) away(t time.Time) bool {
	return slices.ContainsFunc(m.script.Outages, func(o v1alpha1.SimulatedOutage) bool {
		return during(t.Sub(m.start), o.From, o.To)
	})
}

// observe is what a read at t gives.
func (m *temporal) observe(t time.Time, ask rollout.Ask) rollout.Observation {
	if m.away(t) {
		return rollout.Observation{At: t, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed,
			Message: "Temporal is away (scripted)"}}
	}
	o := rollout.Observation{At: t, Exists: rollout.No, Propagating: rollout.No,
		ConflictToken: []byte(strconv.Itoa(m.token)), Routing: m.routing, ManagerIdentity: m.manager}
	if len(ask.Batches) > 0 {
		o.Batches = m.readBatches(t, &ask)
	}
	for _, id := range slices.Sorted(maps.Keys(m.versions)) {
		if v := m.versions[id]; v.registered(t) {
			o.Exists = rollout.Yes
			o.Versions = append(o.Versions, m.describe(id, t, ask))
		}
	}
	for _, id := range ask.OpenPinned {
		if o.Version(id) == nil {
			if o.Unlisted == nil {
				o.Unlisted = map[string]rollout.Count{}
			}
			o.Unlisted[id] = rollout.Counted(0)
		}
	}
	if ask.Stuck != nil {
		o.Stuck = rollout.Stuck{Since: ask.Stuck.Since, Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}
	}
	if g := ask.Gate; g != nil {
		id := g.WorkflowID(m.queue)
		o.Gates = []rollout.GateRun{{WorkflowID: id, TaskQueue: m.queue, State: rollout.GateMissing}}
		if run, ok := m.gates[id]; ok {
			o.Gates[0] = run.at(id, m.queue, t)
		}
	}
	return o
}

// describe is one version as a read at t shows it.
func (m *temporal) describe(id string, t time.Time, ask rollout.Ask) rollout.VersionObservation {
	v := m.versions[id]
	out := v.VersionObservation
	out.TurnedBack = ""
	if !v.DeactivatedAt.IsZero() {
		out.Drainage, out.DrainageChangedAt, out.DrainageCheckedAt = rollout.Draining, v.DeactivatedAt, t
		if at := m.drainedAt(v); !t.Before(at) {
			out.Drainage, out.DrainageChangedAt, out.DrainageCheckedAt = rollout.Drained, at, at
		}
	}
	if slices.Contains(ask.Queues, id) {
		out.QueuesKnown, out.TurnedBack = rollout.Yes, v.TurnedBack
		out.Workers = map[string]rollout.Pollers{}
		for _, name := range ask.Workers {
			out.Workers[name] = v.pollers(t)
		}
		for _, kind := range []rollout.QueueType{rollout.QueueActivity, rollout.QueueWorkflow} {
			out.Queues = append(out.Queues, rollout.TaskQueue{Name: m.queue, Type: kind, Unversioned: rollout.No,
				Pollers: v.pollers(t)})
		}
	}
	if slices.Contains(ask.OpenPinned, id) {
		out.OpenPinned = rollout.Counted(m.open(id, v, t))
	}
	for _, c := range ask.Closed {
		if c.BuildID == id {
			out.Closed = m.closed(c, t)
		}
	}
	return out
}

func (g gateRun) at(id, queue string, t time.Time) rollout.GateRun {
	run := rollout.GateRun{WorkflowID: id, RunID: "simulated", TaskQueue: queue, State: rollout.GateRunning,
		StartedAt: g.started}
	if !t.Before(g.ends) {
		run.State, run.ClosedAt = g.state, g.ends
	}
	return run
}

// refusedError is a call that Temporal refuses: the next cycle decides again.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

func (e *refusedError) Unwrap() error { return rollout.ErrStale }

// call makes a routing call at t, as the server takes it.
func (m *temporal) call(t time.Time, c rollout.RoutingCall) error {
	switch {
	case m.away(t):
		return &refusedError{"Temporal is away"}
	case string(c.Token) != strconv.Itoa(m.token) || !c.Basis.Same(m.routing):
		return &refusedError{"the routing moved"}
	case m.manager != "" && m.manager != c.Identity:
		return &refusedError{fmt.Sprintf("it belongs to %q", m.manager)}
	}
	for _, step := range c.Steps {
		if v := m.versions[step.BuildID]; step.Kind != rollout.ClearRamp && (v == nil || !v.registered(t)) {
			return &refusedError{fmt.Sprintf("version %s is not known", step.BuildID)}
		}
	}
	for id, text := range c.TurnedBack {
		if v := m.versions[id]; v != nil {
			v.TurnedBack = text
		}
	}
	m.manager = c.Identity
	for _, step := range c.Steps {
		m.move(t, step)
	}
	return nil
}

func (m *temporal) move(t time.Time, step rollout.RoutingStep) {
	was, r := m.routing, &m.routing
	clear := func() {
		r.Ramping, r.HasRamp, r.Percentage, r.RampingChangedAt, r.PercentageChangedAt = "", false, 0, t, t
	}
	switch step.Kind {
	case rollout.SetCurrent:
		if r.HasRamp && r.Ramping == step.BuildID {
			clear()
		}
		r.Current, r.CurrentChangedAt = step.BuildID, t
	case rollout.SetRamp:
		if !r.HasRamp || r.Ramping != step.BuildID {
			r.RampingChangedAt = t
		}
		r.Ramping, r.HasRamp, r.Percentage, r.PercentageChangedAt = step.BuildID, true, step.Percentage, t
	case rollout.ClearRamp:
		clear()
	}
	r.Revision++
	m.token++
	for id, v := range m.versions {
		had, has := routed(was, id), routed(*r, id)
		switch {
		case has && !had:
			v.DeactivatedAt = time.Time{}
			if v.FirstActivatedAt.IsZero() {
				v.FirstActivatedAt = t
			}
		case had && !has:
			v.DeactivatedAt, v.share = t, was.Share(id)
		}
		if r.Current == id && was.Current != id {
			v.BecameCurrentAt = t
		}
	}
}

func routed(r rollout.RoutingConfig, id string) bool {
	return id != "" && (r.Current == id || r.HasRamp && r.Ramping == id)
}

// remove deletes a version, as the server does: not while it has traffic, drains, or was polled lately. It says why it
// does not.
func (m *temporal) remove(t time.Time, id string) string {
	v := m.versions[id]
	switch {
	case m.away(t):
		return "Temporal is away"
	case v == nil || !v.registered(t):
		return ""
	case routed(m.routing, id) || t.Before(m.drainedAt(v)):
		return "it is routed or draining"
	case v.pollers(t).Count > 0:
		return "it has pollers"
	}
	delete(m.versions, id)
	return ""
}

// startGate starts a test workflow, unless there is one with its ID.
func (m *temporal) startGate(t time.Time, g rollout.GateStart) {
	id := g.Gate.WorkflowID(g.TaskQueue)
	if _, there := m.gates[id]; there || m.away(t) {
		return
	}
	takes, outcome := v1alpha1.DefaultGateTakes, v1alpha1.GateCompletes
	for _, s := range m.script.Gates {
		if (s.Point == "" || s.Point == g.Gate.Point) && (s.BuildID == "" || s.BuildID == g.Gate.BuildID) {
			takes, outcome = s.Takes.Duration, s.Outcome
			break
		}
	}
	run := gateRun{gate: g.Gate, started: t, ends: t.Add(takes), state: rollout.GateState(outcome)}
	if limit := g.Gate.Timeout; limit > 0 && takes > limit {
		run.ends, run.state = t.Add(limit), rollout.GateTimedOut
	}
	m.gates[id] = run
}

// apply does what the cluster does with the versions that Git has at t: workers come some time after their files, and
// go with them.
func (m *temporal) apply(t time.Time, versions []v1alpha1.RecordedVersion) {
	wanted := map[string]bool{}
	for _, r := range versions {
		if r.Replicas != nil && *r.Replicas == 0 {
			continue
		}
		wanted[r.BuildID] = true
		v := m.versions[r.BuildID]
		if v == nil {
			v = &version{VersionObservation: rollout.VersionObservation{BuildID: r.BuildID}}
			m.versions[r.BuildID] = v
		}
		v.replicas = 1
		if r.Replicas != nil {
			v.replicas = int(*r.Replicas)
		}
		if v.workers.IsZero() {
			v.workers, v.polls = t, t.Add(m.script.PollersAfter.Duration)
			if v.CreatedAt.IsZero() || v.CreatedAt.After(v.polls) {
				v.CreatedAt = v.polls
			}
		}
	}
	for id, v := range m.versions {
		if wanted[id] || v.workers.IsZero() {
			continue
		}
		if !t.Before(v.polls) {
			v.lastPoll = t
		}
		v.workers, v.polls = time.Time{}, time.Time{}
		if !v.registered(t) {
			delete(m.versions, id)
		}
	}
}
