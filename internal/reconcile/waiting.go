package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DefaultSlotPatience is how long the worker deployments of a cycle wait for a slot to be read in, all of them together.
const DefaultSlotPatience = 10 * time.Second

// inNeed gives the indexes of snapshots in the order in which they are read: those that got no slot come first, and of them those that have waited
// longest. The others keep their order.
func (p *Planner) inNeed(snapshots []rollout.Snapshot) []int {
	out := make([]int, len(snapshots))
	for i := range out {
		out[i] = i
	}
	if len(p.waiting) == 0 {
		return out
	}
	slices.SortStableFunc(out, func(a, b int) int {
		since, other := p.waiting[keyOfSnapshot(snapshots[a])], p.waiting[keyOfSnapshot(snapshots[b])]
		if since.IsZero() || other.IsZero() {
			return cmp.Compare(other.Unix(), since.Unix()) // zero is long ago
		}
		return since.Compare(other)
	})
	return out
}

// noteWaiting notes which worker deployments got no slot. One that got one and no answer had its time: it keeps nobody else waiting.
func (p *Planner) noteWaiting(seen []rollout.Snapshot, from []*slotted) {
	for i, s := range seen {
		key := keyOfSnapshot(s)
		switch {
		case from[i].free != nil:
			delete(p.waiting, key)
		case from[i].refused && p.waiting == nil:
			p.waiting = map[steadyKey]time.Time{key: s.Now}
		case from[i].refused && p.waiting[key].IsZero():
			p.waiting[key] = s.Now
		}
	}
}

// forgetGone forgets worker deployments that are not in the world any more.
func (p *Planner) forgetGone(world rollout.World) {
	for key := range p.waiting {
		if !slices.ContainsFunc(world.Environments, func(e rollout.EnvironmentWorld) bool {
			_, known := rollout.KnownAt(e.Known, key.Name)
			return e.Environment.Name == key.Env && known
		}) {
			delete(p.waiting, key)
		}
	}
}

func keyOfSnapshot(s rollout.Snapshot) steadyKey {
	return steadyKey{s.Environment.Name, s.Deployment}
}

// slotted asks an Observer about one worker deployment once that has a slot, which it keeps for all that is asked about it.
type slotted struct {
	next Observer
	// until is how long it waits for the slot; zero: as long as it takes.
	until time.Time
	now   func() time.Time
	// free gives the slot back; nil: it has none.
	free func()
	// refused says that it got none.
	refused bool
}

// Observe waits for the slot, if this is the first question, and asks.
func (t *slotted) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	if slots, ok := t.next.(Slots); ok && t.free == nil {
		if err := t.begin(ctx, slots, conn, ask.TemporalNamespace); err != nil {
			t.refused = true
			return rollout.Observation{At: t.now(), Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Busy: true,
				Message: "read worker deployment " + ask.Deployment.String() + ": " + err.Error()}}
		}
	}
	return t.next.Observe(ctx, conn, ask)
}

func (t *slotted) begin(ctx context.Context, slots Slots, conn v1alpha1.Connection, namespace string) (err error) {
	if !t.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.until)
		defer cancel()
	}
	t.free, err = slots.Slot(ctx, conn, namespace)
	return err
}

// end gives the slot back, if it had one.
func (t *slotted) end() {
	if t.free != nil {
		t.free()
	}
}
