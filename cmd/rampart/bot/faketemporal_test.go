package bot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// instant is a Temporal that does at once what it is told. A version that is asked for registers and its worker polls,
// and what lost its traffic is drained in a minute.
type instant struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*instantDeployment
	calls []string
	list  *rollout.Listing
}

type instantDeployment struct {
	routing  rollout.RoutingConfig
	identity string
	builds   []instantBuild
}

type instantBuild struct {
	id                     string
	created, current, left time.Time
}

func (m *instant) at(name string) *instantDeployment {
	if m.known == nil {
		m.known = map[string]*instantDeployment{}
	}
	if m.known[name] == nil {
		m.known[name] = &instantDeployment{}
	}
	return m.known[name]
}

func (d *instantDeployment) index(id string) int {
	return slices.IndexFunc(d.builds, func(b instantBuild) bool { return b.id == id })
}

func (m *instant) Observe(_ context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, now := m.at(ask.Deployment.String()), m.now()
	if strings.HasSuffix(conn.Spec.HostPort, "7244") {
		return rollout.Observation{At: now, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "nobody answers"}}
	}
	for _, id := range ask.Queues {
		if d.index(id) < 0 {
			d.builds = append(d.builds, instantBuild{id: id, created: now})
		}
	}
	out := rollout.Observation{At: now, Exists: rollout.No, Propagating: rollout.No, Routing: d.routing, ManagerIdentity: d.identity,
		Stuck: rollout.Stuck{Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}}
	for _, b := range d.builds {
		out.Exists = rollout.Yes
		v := rollout.VersionObservation{BuildID: b.id, CreatedAt: b.created, BecameCurrentAt: b.current, FirstActivatedAt: b.current, DeactivatedAt: b.left,
			QueuesKnown: rollout.Yes, OpenPinned: rollout.Counted(1), Queues: []rollout.TaskQueue{{Name: "work", Type: rollout.QueueWorkflow,
				Unversioned: rollout.No, Pollers: rollout.Pollers{Known: true, Count: 1, LastAccess: now}}}}
		if !b.left.IsZero() {
			v.Drainage, v.DrainageChangedAt, v.DrainageCheckedAt = rollout.Draining, b.left, now
			if drained := b.left.Add(time.Minute); now.After(drained) {
				v.Drainage, v.DrainageChangedAt, v.OpenPinned = rollout.Drained, drained, rollout.Counted(0)
			}
		}
		out.Versions = append(out.Versions, v)
	}
	return out
}

// move changes a routing step by step.
func (m *instant) move(name, identity string, steps ...rollout.RoutingStep) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, now := m.at(name), m.now()
	d.identity = identity
	for _, step := range steps {
		r := &d.routing
		switch step.Kind {
		case rollout.SetCurrent:
			if was := d.index(r.Current); was >= 0 && r.Current != step.BuildID {
				d.builds[was].left = now
			}
			if is := d.index(step.BuildID); is >= 0 {
				d.builds[is].current, d.builds[is].left = now, time.Time{}
			}
			*r = rollout.RoutingConfig{Current: step.BuildID, CurrentChangedAt: now}
		case rollout.SetRamp:
			r.HasRamp, r.Ramping, r.Percentage, r.PercentageChangedAt = true, step.BuildID, step.Percentage, now
		case rollout.ClearRamp:
			r.HasRamp, r.Ramping, r.Percentage, r.RampingChangedAt = false, "", 0, now
		}
	}
}

func (m *instant) tell(verb string, on rollout.Subject, what any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, fmt.Sprintf("%s %s %s %v", verb, on.Deployment, on.TemporalNamespace, what))
}

func (m *instant) Lower(_ context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	m.tell("lower", on, call.Steps)
	m.move(on.Deployment.String(), call.Identity, call.Steps...)
	return nil
}

func (m *instant) Raise(_ context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	m.tell("raise", on, call.Steps)
	m.move(on.Deployment.String(), call.Identity, call.Steps...)
	return nil
}

func (m *instant) StartGate(_ context.Context, on rollout.Subject, gate rollout.GateStart) error {
	m.tell("gate", on, gate.Gate.WorkflowType)
	return errors.New("there are none")
}

func (m *instant) StartBatch(_ context.Context, on rollout.Subject, start rollout.BatchStart) error {
	m.tell("batch", on, start)
	return nil
}

func (m *instant) DeleteVersion(_ context.Context, on rollout.Subject, id string) (rollout.Deletion, error) {
	m.tell("delete", on, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.at(on.Deployment.String())
	if i := d.index(id); i >= 0 {
		d.builds = slices.Delete(d.builds, i, i+1)
	}
	return rollout.Deletion{BuildID: id}, nil
}

// List gives the same list until somebody moved a routing, as the Pool does.
func (m *instant) List(context.Context, v1alpha1.Connection, string) (*rollout.Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]rollout.RoutingConfig{}
	for _, name := range slices.Sorted(maps.Keys(m.known)) {
		out[name] = m.known[name].routing
	}
	if m.list == nil || !maps.EqualFunc(m.list.Routing, out, rollout.RoutingConfig.Same) {
		m.list = &rollout.Listing{Routing: out}
	}
	return m.list, nil
}
