package reconcile

import (
	"context"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DefaultSlotPatience is how long the worker deployments of a group wait for a slot to be read in, all of them
// together.
const DefaultSlotPatience = 10 * time.Second

// slotted asks an Observer about one worker deployment. It waits for a slot first, and keeps it for all questions.
type slotted struct {
	next  Observer
	slots Slots
	// until is how long it waits for the slot; zero: as long as it takes.
	until time.Time
	now   func() time.Time
	// free gives the slot back; nil: it has none.
	free func()
	// refused says that it got none, or that the time was over before the answer.
	refused bool
}

// Observe waits for the slot, if this is the first question, and asks.
func (t *slotted) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	err := ctx.Err() // the group's time may be over
	if err == nil && t.slots != nil && t.free == nil {
		err = t.begin(ctx, conn, ask.TemporalNamespace)
	}
	if err != nil {
		t.refused = true
		return rollout.Observation{At: t.now(), Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed,
			Busy: true, Message: "read worker deployment " + ask.Deployment.String() + ": " + err.Error()}}
	}
	o := t.next.Observe(ctx, conn, ask)
	t.refused = t.refused || o.Problem != nil && ctx.Err() != nil // the group's time is over
	return o
}

func (t *slotted) begin(ctx context.Context, conn v1alpha1.Connection, namespace string) (err error) {
	if !t.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.until)
		defer cancel()
	}
	t.free, err = t.slots.Slot(ctx, conn, namespace)
	return err
}

// end gives the slot back, if it had one.
func (t *slotted) end() {
	if t.free != nil {
		t.free()
	}
}
