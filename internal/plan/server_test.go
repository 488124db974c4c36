package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// server is a small model of Temporal for one worker deployment: routing, tokens, drainage, pollers.
type server struct {
	now      time.Time
	routing  rollout.RoutingConfig
	manager  string
	modifier string // who changed the routing last; "": not told
	token    int
	versions map[string]*serverVersion
	gates    map[string]rollout.GateState
	jobs     jobs
	// calls are the routing changes that were accepted.
	calls []string
	// down: it cannot be read.
	down bool
	// lies are what it gets wrong in the next reads.
	lies []func(*rollout.Observation)
	// fails is what becomes of calls that change the routing.
	fails failure
	// keeps: it refuses to delete versions.
	keeps bool
	// others is another worker deployment that polls the task queue, and unversioned says whether unversioned workers
	// do.
	others      []string
	unversioned rollout.Answer
	// stuck are workflows that no count by version shows.
	stuck rollout.Stuck
	// old: it does not say when a version became current, as before 1.30.
	old bool
	// more are further task queues of versions, by build ID, polled like the first.
	more map[string][]rollout.TaskQueue
}

// failure says how calls fail, "" for not at all.
type failure string

const (
	callRefused failure = "refused"
	answerLost  failure = "the answer is lost" // what was asked for is done
)

type serverVersion struct {
	rollout.VersionObservation
	polling  bool
	lastPoll time.Time
	open     int64
	// closed are its workflows that closed since any time.
	closed rollout.ClosedCounts
}

const (
	drainsFor  = 2 * time.Minute // after the last pinned workflow closed
	pollersFor = 5 * time.Minute // how long a poller stays listed
)

func newServer(now time.Time) *server {
	return &server{now: now, versions: map[string]*serverVersion{}, gates: map[string]rollout.GateState{}, unversioned: rollout.No,
		stuck: rollout.Stuck{Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}}
}

func (s *server) copy() *server {
	c := *s
	c.gates, c.calls = maps.Clone(s.gates), slices.Clone(s.calls)
	c.versions = make(map[string]*serverVersion, len(s.versions))
	for id, v := range s.versions {
		one := *v
		c.versions[id] = &one
	}
	c.jobs = s.jobs.copy()
	return &c
}

// tick moves the clock.
func (s *server) tick(d time.Duration) {
	s.now = s.now.Add(d)
	for _, v := range s.versions {
		if v.polling {
			v.lastPoll = s.now
		}
		if v.Drainage == rollout.Draining && v.open == 0 && s.now.Sub(v.DeactivatedAt) >= drainsFor {
			v.Drainage, v.DrainageChangedAt = rollout.Drained, s.now
		}
	}
}

// poll starts or stops a version's workers.
func (s *server) poll(id string, on bool) {
	v := s.versions[id]
	if v == nil {
		if !on {
			return
		}
		v = &serverVersion{VersionObservation: rollout.VersionObservation{BuildID: id, CreatedAt: s.now},
			closed: rollout.ClosedCounts{Known: true, Completed: 100}}
		s.versions[id] = v
	}
	if v.polling = on; on {
		v.lastPoll = s.now
	}
}

// move makes one accepted change of the routing.
func (s *server) move(step rollout.RoutingStep) error {
	was := s.routing
	r := &s.routing
	switch step.Kind {
	case rollout.SetCurrent:
		r.Current, r.CurrentChangedAt = step.BuildID, s.now
		if r.Ramping == step.BuildID {
			r.Ramping, r.HasRamp, r.Percentage = "", false, 0
		}
	case rollout.SetRamp:
		if step.BuildID == r.Current {
			return fmt.Errorf("%s is current", step.BuildID)
		}
		r.Ramping, r.HasRamp, r.Percentage, r.PercentageChangedAt = step.BuildID, true, step.Percentage, s.now
	case rollout.ClearRamp:
		r.Ramping, r.HasRamp, r.Percentage = "", false, 0
	}
	if step.BuildID != "" && s.versions[step.BuildID] == nil {
		s.routing = was
		return fmt.Errorf("%s is not known", step.BuildID)
	}
	r.RampingChangedAt = s.now
	r.Revision++
	s.token++
	for id, v := range s.versions {
		had, has := was.Current == id || was.Ramping == id, r.Current == id || r.Ramping == id
		switch {
		case has && !had:
			v.Drainage, v.DrainageChangedAt, v.DeactivatedAt = "", time.Time{}, time.Time{}
			if v.FirstActivatedAt.IsZero() {
				v.FirstActivatedAt = s.now
			}
		case had && !has:
			v.Drainage, v.DeactivatedAt = rollout.Draining, s.now
		}
		if r.Current == id && was.Current != id {
			v.BecameCurrentAt = s.now
		}
	}
	switch step.Kind {
	case rollout.SetRamp:
		s.calls = append(s.calls, fmt.Sprintf("%s %v", named(step.BuildID), step.Percentage))
	case rollout.SetCurrent:
		s.calls = append(s.calls, fmt.Sprintf("%s current", named(step.BuildID)))
	default:
		s.calls = append(s.calls, "clear")
	}
	return nil
}

// call carries out a bot's routing call, if the routing did not move since the decision; cut: only the first write of
// it.
func (s *server) call(c rollout.RoutingCall, mark, cut bool) error {
	if s.down || s.fails == callRefused {
		return fmt.Errorf("unavailable")
	}
	if string(c.Token) != fmt.Sprint(s.token) || !c.Basis.Same(s.routing) || s.manager != "" && s.manager != c.Identity {
		return fmt.Errorf("refused")
	}
	for id, text := range c.TurnedBack {
		if v := s.versions[id]; v != nil && mark {
			v.TurnedBack = text
		}
	}
	claimed := s.manager != ""
	s.manager = c.Identity
	if cut && !claimed {
		return nil
	}
	for _, step := range c.Steps {
		if err := s.move(step); err != nil || cut {
			return err
		}
	}
	if s.fails == answerLost {
		return fmt.Errorf("deadline exceeded")
	}
	return nil
}

// remove deletes a version, as the server does: not while it has traffic, drains, or was polled lately.
func (s *server) remove(id string) string {
	v := s.versions[id]
	switch {
	case v == nil:
		return ""
	case s.routing.Current == id || s.routing.Ramping == id || v.Drainage == rollout.Draining:
		return "it is routed or draining"
	case s.now.Sub(v.lastPoll) < pollersFor || s.keeps:
		return "it has pollers"
	}
	delete(s.versions, id)
	return ""
}

func (s *server) observe(ask rollout.Ask) rollout.Observation {
	if s.down {
		return rollout.Observation{At: s.now, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "unavailable"}}
	}
	o := rollout.Observation{At: s.now, Exists: rollout.Yes, Routing: s.routing, ConflictToken: []byte(fmt.Sprint(s.token)), ManagerIdentity: s.manager, LastModifier: s.modifier}
	if len(s.versions) == 0 {
		o = rollout.Observation{At: s.now, Exists: rollout.No, ConflictToken: o.ConflictToken}
	}
	if ask.NamespaceID {
		o.NamespaceID = "the-id"
	}
	s.observeBatches(&ask, &o)
	for _, id := range slices.Sorted(maps.Keys(s.versions)) {
		v := s.versions[id]
		seen := v.VersionObservation
		seen.TurnedBack = ""
		if s.old {
			seen.BecameCurrentAt = time.Time{}
		}
		if slices.Contains(ask.Queues, id) {
			q := rollout.TaskQueue{Name: "orders", Type: rollout.QueueWorkflow, Unversioned: s.unversioned, OtherDeployments: s.others, Pollers: rollout.Pollers{Known: true}}
			if s.now.Sub(v.lastPoll) < pollersFor {
				q.Pollers.Count, q.Pollers.LastAccess = 1, v.lastPoll
			}
			seen.Queues, seen.QueuesKnown, seen.TurnedBack = []rollout.TaskQueue{q}, rollout.Yes, v.TurnedBack
			for _, own := range s.more[id] {
				own.Pollers = q.Pollers
				seen.Queues = append(seen.Queues, own)
			}
			seen.Workers = map[string]rollout.Pollers{}
			for _, name := range ask.Workers {
				seen.Workers[name] = q.Pollers
			}
		}
		if slices.Contains(ask.InUse, id) {
			seen.InUse = rollout.Counted(v.open)
		}
		if slices.Contains(ask.OpenPinned, id) {
			seen.OpenPinned = rollout.Counted(v.open)
		}
		for _, a := range ask.Closed {
			if a.BuildID == id {
				seen.Closed = v.closed
				seen.Closed.Since = a.Since
			}
		}
		o.Versions = append(o.Versions, seen)
	}
	for _, id := range ask.OpenPinned {
		if s.versions[id] == nil {
			if o.Unlisted == nil {
				o.Unlisted = map[string]rollout.Count{}
			}
			o.Unlisted[id] = rollout.Counted(0)
		}
	}
	if ask.Stuck != nil {
		o.Stuck = s.stuck
		o.Stuck.Since = ask.Stuck.Since
	}
	if ask.Gate != nil {
		run := rollout.GateRun{WorkflowID: ask.Gate.WorkflowID("orders"), TaskQueue: "orders", State: rollout.GateMissing}
		if state, ok := s.gates[run.WorkflowID]; ok {
			run.State = state
		}
		o.Gates = []rollout.GateRun{run}
	}
	for _, lie := range s.lies {
		lie(&o)
	}
	return o
}
