package bench

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// memory is a Temporal that answers at once. A version registers when it is asked for, its worker always polls, and
// what has no traffic any more is drained. It holds no more than it has to, so that what is measured beside it is the
// bot's.
type memory struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*deployment
	reads int

	// list is what was listed last, moved whose routing is another since.
	list  *rollout.Listing
	moved []string
}

// deployment is what memory knows of one worker deployment. It survives JSON.
type deployment struct {
	Routing  rollout.RoutingConfig `json:"routing"`
	Identity string                `json:"identity"`
	Builds   []build               `json:"builds"`
}

type build struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Current time.Time `json:"current,omitzero"` // when it became that last
	Left    time.Time `json:"left,omitzero"`    // when it had no traffic any more
}

var (
	_ reconcile.Observer   = (*memory)(nil)
	_ reconcile.Router     = (*memory)(nil)
	_ reconcile.VersionAPI = (*memory)(nil)
	_ resync.Lister        = (*memory)(nil)
)

func (m *memory) at(name string) *deployment {
	if m.known == nil {
		m.known = map[string]*deployment{}
	}
	d := m.known[name]
	if d == nil {
		d = &deployment{}
		m.known[name] = d
		m.moved = append(m.moved, name)
	}
	return d
}

func (d *deployment) build(id string) *build {
	for i := range d.Builds {
		if d.Builds[i].ID == id {
			return &d.Builds[i]
		}
	}
	return nil
}

func (m *memory) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	d, now := m.at(ask.Deployment.String()), m.now()
	for _, id := range ask.Queues {
		if d.build(id) == nil {
			d.Builds = append(d.Builds, build{ID: id, Created: now})
		}
	}
	out := rollout.Observation{At: now, Exists: rollout.Yes, Routing: d.Routing, ManagerIdentity: d.Identity}
	if ask.Stuck != nil {
		out.Stuck = rollout.Stuck{Since: ask.Stuck.Since, Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}
	}
	for _, b := range d.Builds {
		v := rollout.VersionObservation{BuildID: b.ID, CreatedAt: b.Created, BecameCurrentAt: b.Current, FirstActivatedAt: b.Current,
			DeactivatedAt: b.Left, QueuesKnown: rollout.Yes, OpenPinned: rollout.Counted(1),
			Queues: []rollout.TaskQueue{{Name: "work", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
				Pollers: rollout.Pollers{Known: true, Count: 1, LastAccess: now}}}}
		if !b.Left.IsZero() {
			v.Drainage, v.DrainageChangedAt, v.DrainageCheckedAt, v.OpenPinned = rollout.Drained, b.Left, now, rollout.Counted(0)
		}
		out.Versions = append(out.Versions, v)
	}
	return out
}

func (m *memory) move(on rollout.Subject, call rollout.RoutingCall) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, now := m.at(on.Deployment.String()), m.now()
	d.Identity, m.moved = call.Identity, append(m.moved, on.Deployment.String())
	for _, step := range call.Steps {
		r := &d.Routing
		switch step.Kind {
		case rollout.SetCurrent:
			if was := d.build(r.Current); was != nil && r.Current != step.BuildID {
				was.Left = now
			}
			if is := d.build(step.BuildID); is != nil {
				is.Current, is.Left = now, time.Time{}
			}
			r.Current, r.CurrentChangedAt = step.BuildID, now
			r.HasRamp, r.Ramping, r.Percentage = false, "", 0
		case rollout.SetRamp:
			r.HasRamp, r.Ramping, r.Percentage, r.PercentageChangedAt = true, step.BuildID, step.Percentage, now
		case rollout.ClearRamp:
			r.HasRamp, r.Ramping, r.Percentage, r.RampingChangedAt = false, "", 0, now
		}
	}
	return nil
}

func (m *memory) Lower(_ context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	return m.move(on, call)
}

func (m *memory) Raise(_ context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	return m.move(on, call)
}

func (m *memory) StartGate(context.Context, rollout.Subject, rollout.GateStart) error { return nil }

func (m *memory) StartBatch(context.Context, rollout.Subject, rollout.BatchStart) error { return nil }

func (m *memory) DeleteVersion(_ context.Context, on rollout.Subject, id string) (rollout.Deletion, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.at(on.Deployment.String())
	d.Builds = slices.DeleteFunc(d.Builds, func(b build) bool { return b.ID == id })
	return rollout.Deletion{BuildID: id}, nil
}

// List gives the same list until something moved, as the Pool does. The one before is not looked at any more then, so
// that they share what they have. What it costs to decode pages is Temporal's client's, and not measured here.
func (m *memory) List(context.Context, v1alpha1.Connection, string) (*rollout.Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list != nil && len(m.moved) == 0 {
		return m.list, nil
	}
	next := &rollout.Listing{}
	if m.list != nil {
		next.Routing = m.list.Routing
	} else {
		next.Routing, m.moved = make(map[string]rollout.RoutingConfig, len(m.known)), slices.Collect(maps.Keys(m.known))
	}
	for _, name := range m.moved {
		next.Routing[name] = m.known[name].Routing
	}
	m.list, m.moved = next, nil
	return m.list, nil
}
