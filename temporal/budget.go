package temporal

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/rampart-gitops/rampart/internal/retry"
)

// Rate is how often a kind of call may be made: PerSecond on average, Burst at once.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Budget bounds the calls to one Temporal namespace at one address. A zero Rate means the default.
type Budget struct {
	// Describe is for describing deployments and versions: the server allows 50 a second.
	Describe Rate
	// Queue is for describing task queues and single workflows: the server allows 2 400 a second.
	Queue Rate
	// Visibility is for counts and lists: the server allows 10 a second, shared with people.
	Visibility Rate
	// Change is for everything that changes the server: it allows 10 routing changes a second.
	Change Rate
}

// bucket is a kind of calls that share a rate.
type bucket string

const (
	describing bucket = "describe"
	queues     bucket = "task queue"
	visibility bucket = "visibility"
	changing   bucket = "change"
)

const (
	// patience is how long a call waits for its budget before it is given up for this cycle.
	patience = 10 * time.Second
	// exhaustedPause is how long the namespace is left alone after the server said that it was asked too much.
	exhaustedPause = time.Second
	// recovery is how long it takes, without another complaint, until the rates double again.
	recovery = 10 * time.Second
	// slowest is the smallest part of its rates that a namespace is slowed down to.
	slowest = 1.0 / 16
	// allSlots is the room for slots: each slot takes a part of it.
	allSlots = 1 << 20
	// exhaustedWarning is how often the log says at most that a namespace was asked too much.
	exhaustedWarning = 10 * time.Minute
)

// limiter is the budget of one namespace at one address.
type limiter struct {
	namespace string
	full      map[bucket]rate.Limit
	buckets   map[bucket]*rate.Limiter
	// slots by the calls that those that have one make: describing or visibility.
	slots map[bucket]*semaphore.Weighted

	mu sync.Mutex
	// part of the full rates that is in use, from slowest to 1.
	part float64
	// changed is when part last changed; until then nothing is asked.
	changed, until time.Time
	// warned is when the log last said that the namespace was asked too much.
	warned time.Time
}

// newLimiter makes a limiter. Its default rates stay below the server's default limits, to leave room for others.
func newLimiter(namespace string, b Budget) *limiter {
	l := &limiter{namespace: namespace, part: 1, full: map[bucket]rate.Limit{}, buckets: map[bucket]*rate.Limiter{},
		slots: map[bucket]*semaphore.Weighted{describing: semaphore.NewWeighted(allSlots),
			visibility: semaphore.NewWeighted(allSlots)}}
	for kind, r := range map[bucket]struct{ own, otherwise Rate }{
		describing: {b.Describe, Rate{PerSecond: 40, Burst: 40}},
		queues:     {b.Queue, Rate{PerSecond: 200, Burst: 100}},
		visibility: {b.Visibility, Rate{PerSecond: 4, Burst: 8}},
		changing:   {b.Change, Rate{PerSecond: 5, Burst: 10}},
	} {
		if r.own.PerSecond <= 0 {
			r.own = r.otherwise
		}
		l.full[kind] = rate.Limit(r.own.PerSecond)
		l.buckets[kind] = rate.NewLimiter(l.full[kind], max(r.own.Burst, 1))
	}
	return l
}

// acquire waits for room, at most patience long.
func (l *limiter) acquire(ctx context.Context, kind bucket) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := l.pause(waiting)
	if err == nil {
		err = l.buckets[kind].Wait(waiting)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &BudgetError{Kind: string(kind), Namespace: l.namespace}
}

// slot waits until one more worker deployment may be read, or counted, in the order in which it is asked. There are as
// many slots as such calls may be made in a second: with more, those that have one would wait for each other's calls,
// and none would get all that it asks for. Counts take longer than describes, so there are twice as many slots for
// them. free gives the slot back.
func (l *limiter) slot(ctx context.Context, kind bucket) (free func(), err error) {
	perSecond := l.buckets[kind].Limit()
	if kind == visibility {
		perSecond *= 2
	}
	room := allSlots / int64(max(1, perSecond))
	slots := l.slots[kind]
	// a slot that is free can be had after the context's end
	if !slots.TryAcquire(room) && slots.Acquire(ctx, room) != nil {
		return nil, &BudgetError{Kind: string(kind), Namespace: l.namespace}
	}
	return func() { slots.Release(room) }, nil
}

// pause waits while the namespace is left alone.
func (l *limiter) pause(ctx context.Context) error {
	for {
		wait := l.remaining(time.Now())
		if wait <= 0 {
			return nil
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// remaining is how long the namespace is still left alone at now; it lets the rates recover on the way.
func (l *limiter) remaining(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.part < 1 && now.Sub(l.changed) >= recovery {
		l.setPart(min(1, l.part*2), l.changed.Add(recovery))
	}
	return l.until.Sub(now)
}

// exhausted slows the whole namespace down: it is left alone for a while and then asked half as often. It reports
// whether the log is to say so.
func (l *limiter) exhausted(now time.Time) (warn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until) {
		return false // answers to calls made before the pause began
	}
	l.until = now.Add(exhaustedPause)
	l.setPart(max(slowest, l.part/2), now)
	if !l.warned.IsZero() && now.Sub(l.warned) < exhaustedWarning {
		return false
	}
	l.warned = now
	return true
}

func (l *limiter) setPart(part float64, at time.Time) {
	l.part, l.changed = part, at
	for kind, bucket := range l.buckets {
		bucket.SetLimit(l.full[kind] * rate.Limit(part))
	}
}
