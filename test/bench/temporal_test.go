package bench

import (
	"context"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// memory is a Temporal that answers at once: a version registers when it is asked for, and its worker always polls.
type memory struct {
	mu    sync.Mutex
	known map[string]*rollout.Observation
	reads int
}

var (
	_ reconcile.Observer = (*memory)(nil)
	_ reconcile.Router   = (*memory)(nil)
	_ reconcile.Helper   = (*memory)(nil)
	_ reconcile.Lister   = (*memory)(nil)
)

func (m *memory) at(name string) *rollout.Observation {
	if m.known == nil {
		m.known = map[string]*rollout.Observation{}
	}
	o := m.known[name]
	if o == nil {
		o = &rollout.Observation{Exists: rollout.Yes}
		m.known[name] = o
	}
	return o
}

func (m *memory) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	o := m.at(ask.Deployment.String())
	now := time.Now()
	for _, id := range ask.Queues {
		if o.Version(id) == nil {
			o.Versions = append(o.Versions, rollout.VersionObservation{BuildID: id, CreatedAt: now})
		}
	}
	out := *o
	out.At = now
	out.Versions = nil
	for _, v := range o.Versions {
		v.QueuesKnown = rollout.Yes
		v.Queues = []rollout.TaskQueue{{Name: "work", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
			Pollers: rollout.Pollers{Known: true, Count: 1, LastAccess: now}}}
		v.OpenPinned = rollout.Counted(1)
		out.Versions = append(out.Versions, v)
	}
	return out
}

func (m *memory) move(on reconcile.Subject, call rollout.RoutingCall) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.at(on.Deployment.String())
	now := time.Now()
	o.ManagerIdentity = call.Identity
	for _, step := range call.Steps {
		r := &o.Routing
		switch step.Kind {
		case rollout.SetCurrent:
			r.Current, r.CurrentChangedAt = step.BuildID, now
			r.HasRamp, r.Ramping, r.Percentage = false, "", 0
		case rollout.SetRamp:
			r.HasRamp, r.Ramping, r.Percentage, r.PercentageChangedAt = true, step.BuildID, step.Percentage, now
		case rollout.ClearRamp:
			r.HasRamp, r.Ramping, r.Percentage = false, "", 0
		}
	}
	return nil
}

func (m *memory) Lower(_ context.Context, on reconcile.Subject, call rollout.RoutingCall) error {
	return m.move(on, call)
}

func (m *memory) Raise(_ context.Context, on reconcile.Subject, call rollout.RoutingCall) error {
	return m.move(on, call)
}

func (m *memory) StartGate(context.Context, reconcile.Subject, rollout.GateStart) error { return nil }

func (m *memory) StartBatch(context.Context, reconcile.Subject, rollout.BatchStart) error { return nil }

func (m *memory) DeleteVersion(_ context.Context, _ reconcile.Subject, id string) (rollout.Deletion, error) {
	return rollout.Deletion{BuildID: id}, nil
}

func (m *memory) List(context.Context, v1alpha1.Connection, string) (map[string]rollout.RoutingConfig, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]rollout.RoutingConfig{}
	for name, o := range m.known {
		out[name] = o.Routing
	}
	return out, nil
}
