package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DefaultSlotPatience is how long the worker deployments of a group wait for a slot to be read in, all of them
// together. It leaves those that get one last as long again for their calls.
const DefaultSlotPatience = 10 * time.Second

// slotted asks an Observer about one worker deployment. It waits for a slot first, and for another one before workflows
// are counted. It keeps them for all questions.
type slotted struct {
	next  Observer
	slots Slots
	// until is how long it waits for slots; zero: as long as it takes.
	until time.Time
	now   func() time.Time
	// reads and counts are the slots that it has.
	reads, counts slot
	// refused says that it got none, or that not all was asked since the time or the budget was over. The worker
	// deployment had no turn.
	refused bool
}

// Observe waits for a slot, if it has none, and asks. Without a slot for counting it asks for all but the counts.
func (t *slotted) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	err := ctx.Err() // the group's time may be over
	if err == nil && t.slots != nil {
		err = t.reads.take(ctx, t.until, t.slots.Slot, conn, ask.TemporalNamespace)
	}
	if err != nil {
		t.refused = true
		return noTurn(ask.Deployment, t.now(), err.Error())
	}
	if t.slots != nil && ask.Counts() {
		if err := t.count(ctx, conn, ask.TemporalNamespace); err != nil {
			t.refused, ask.CountsRefused = true, err.Error()
		}
	}
	o := t.next.Observe(ctx, conn, ask)
	// Where the group's time is over, something may be missing, too.
	t.refused = t.refused || o.CutShort || ctx.Err() != nil
	o.CutShort = t.refused
	return o
}

// noTurn is the observation of a worker deployment that there was no time for. Nothing is said or done about that.
func noTurn(n rollout.Name, at time.Time, why string) rollout.Observation {
	return rollout.Observation{At: at, CutShort: true, Problem: &rollout.Problem{
		Reason: rollout.TemporalStateFetchFailed, Busy: true,
		Message: "read worker deployment " + n.String() + ": " + why}}
}

// count waits for a slot for counting. Late in a group no worker deployment begins that, though slots may be free by
// then. What others showed waits to be acted on, and counts would be cut off by the end of the group's time.
func (t *slotted) count(ctx context.Context, conn v1alpha1.Connection, namespace string) error {
	if !t.until.IsZero() && t.counts.free == nil && !time.Now().Before(t.until) {
		return errors.New("there was no time to count workflows")
	}
	return t.counts.take(ctx, t.until, t.slots.CountSlot, conn, namespace)
}

// end gives the slots back.
func (t *slotted) end() {
	t.counts.end()
	t.reads.end()
}

// slot is a slot, or room for one.
type slot struct {
	// free gives it back; nil: there is none.
	free func()
}

// take waits for a slot until a time, if it has none. Zero: as long as it takes.
func (s *slot) take(ctx context.Context, until time.Time,
	from func(context.Context, v1alpha1.Connection, string) (func(), error), conn v1alpha1.Connection,
	namespace string) (err error) {
	if s.free != nil {
		return nil
	}
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	s.free, err = from(ctx, conn, namespace)
	return err
}

func (s *slot) end() {
	if s.free != nil {
		s.free()
	}
}
