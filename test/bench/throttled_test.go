package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// answers says how quickly the Temporal namespaces of a throttled answer.
type answers struct {
	// pace divides all times and multiplies all rates: 1 is as in production.
	pace time.Duration
	// count is how long a count takes, and perSecond how many of them the bot's budget allows in a second.
	count     time.Duration
	perSecond rate.Limit
}

// What package temporal does by default (budget.go), whose limiter cannot be used without a server.
const (
	describesPerSecond = 40
	countsPerSecond    = 4
	countsAtOnce       = 8
	changesPerSecond   = 5
	changesAtOnce      = 10
	callPatience       = 10 * time.Second
)

// describe is how long each call takes that counts nothing.
const describe = 20 * time.Millisecond

// throttled is a memory whose answers take time, within the budget that the bot has for each Temporal namespace. It
// notes when worker deployments advanced and were turned back.
type throttled struct {
	*memory
	answers
	// throttles says that answers take time; until then all come at once.
	throttles atomic.Bool

	mu      sync.Mutex
	budgets map[string]*callBudget
	// hangs are the Temporal namespaces that do not answer, failing the worker deployments whose candidate fails.
	hangs, failing map[string]bool
	// shown is when an answer first showed that a candidate fails, by worker deployment. lowered and raised are when
	// traffic was first set, since answers take time.
	shown, lowered, raised map[string]time.Time
	// counted is how often the workflows of a worker deployment were counted, uncounted how often there was no time or
	// budget for that.
	counted, uncounted map[string]int
	// calls is how many calls the counts of one look were at most.
	calls int
}

var (
	_ reconcile.Observer   = (*throttled)(nil)
	_ reconcile.Router     = (*throttled)(nil)
	_ reconcile.VersionAPI = (*throttled)(nil)
	_ reconcile.Slots      = (*throttled)(nil)
	_ resync.Lister        = (*throttled)(nil)
)

func newThrottled(now func() time.Time, a answers) *throttled {
	return &throttled{memory: &memory{now: now}, answers: a, budgets: map[string]*callBudget{}, hangs: map[string]bool{}, failing: map[string]bool{},
		shown: map[string]time.Time{}, lowered: map[string]time.Time{}, raised: map[string]time.Time{},
		counted: map[string]int{}, uncounted: map[string]int{}}
}

// noted gives one of the notes as it is now.
func (m *throttled) noted(in map[string]time.Time) map[string]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(in)
}

// looks says how often worker deployments were counted, and how many looks had no count.
func (m *throttled) looks() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	least, most, without := 0, 0, 0
	for _, n := range m.counted {
		if least == 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	for _, n := range m.uncounted {
		without += n
	}
	return fmt.Sprintf("%d were counted, %d to %d times; %d looks had no count", len(m.counted), least, most, without)
}

// note notes that something happens to a worker deployment now, if it is for the first time.
func note(in map[string]time.Time, name string) {
	if in[name].IsZero() {
		in[name] = time.Now()
	}
}

// callBudget is the budget of one Temporal namespace.
type callBudget struct {
	describes, counts, changes *rate.Limiter
	slots, countSlots          *semaphore.Weighted
}

// begin gives the budget of a Temporal namespace. One that hangs never gives it.
func (m *throttled) begin(ctx context.Context, namespace string) (*callBudget, error) {
	m.mu.Lock()
	b, hangs := m.budgets[namespace], m.hangs[namespace]
	if b == nil {
		faster := rate.Limit(m.pace)
		b = &callBudget{rate.NewLimiter(describesPerSecond*faster, describesPerSecond), rate.NewLimiter(m.perSecond*faster, countsAtOnce),
			rate.NewLimiter(changesPerSecond*faster, changesAtOnce), semaphore.NewWeighted(describesPerSecond),
			semaphore.NewWeighted(2 * countsPerSecond)}
		m.budgets[namespace] = b
	}
	m.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return b, nil
}

// call is one call: it waits for its budget, then for the answer.
func (m *throttled) call(ctx context.Context, of *rate.Limiter, takes time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, callPatience/m.pace)
	defer cancel()
	if err := of.Wait(waiting); err != nil { // at once, where the time would not be enough
		return errors.New("the budget is used up")
	}
	return retry.Sleep(ctx, takes/m.pace)
}

func (m *throttled) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	o := m.memory.Observe(ctx, conn, ask)
	if !m.throttles.Load() {
		return o
	}
	b, err := m.begin(ctx, ask.TemporalNamespace)
	for range 1 + len(ask.Queues) {
		if err == nil {
			err = m.call(ctx, b.describes, describe)
		}
	}
	if err != nil {
		return rollout.Observation{At: o.At, CutShort: true, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: err.Error()}}
	}
	if ask.Counts() {
		err := m.countAll(ctx, b, ask)
		m.addCounts(&o, ask, err)
		o.CutShort = err != nil
	}
	return o
}

// countAll makes the calls that count, one after the other. They fail together here.
func (m *throttled) countAll(ctx context.Context, b *callBudget, ask rollout.Ask) error {
	if ask.CountsRefused != "" {
		return errors.New(ask.CountsRefused)
	}
	calls := len(ask.Closed) + len(ask.OpenPinned) + len(ask.InUse)
	if ask.Stuck != nil {
		calls += 2
	}
	m.mu.Lock()
	m.calls = max(m.calls, calls)
	m.mu.Unlock()
	var err error
	for range calls {
		err = errors.Join(err, m.call(ctx, b.counts, m.count))
	}
	return err
}

// addCounts adds what the counts of a look say, or why they are not known.
func (m *throttled) addCounts(o *rollout.Observation, ask rollout.Ask, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := ask.Deployment.String()
	if err != nil {
		m.uncounted[name]++
		unknown := rollout.Count{Reason: err.Error()}
		o.Stuck.Unattributed, o.Stuck.Problems = unknown, unknown
	} else {
		m.counted[name]++
	}
	for i, closed := range ask.Closed {
		v := o.Version(closed.BuildID)
		switch {
		case v == nil:
		case err != nil:
			v.Closed.Reason = err.Error()
		case i == 0 && m.failing[name]: // the candidate comes first
			v.Closed = rollout.ClosedCounts{Known: true, Since: closed.Since, Failed: 1000}
			note(m.shown, name)
		default:
			v.Closed = rollout.ClosedCounts{Known: true, Since: closed.Since, Completed: 1000}
		}
	}
}

// change is a describe and a change of the routing.
func (m *throttled) change(ctx context.Context, on rollout.Subject, call rollout.RoutingCall, notes map[string]time.Time) error {
	throttles := m.throttles.Load()
	if throttles {
		b, err := m.begin(ctx, on.TemporalNamespace)
		if err == nil {
			err = m.call(ctx, b.describes, describe)
		}
		if err == nil {
			err = m.call(ctx, b.changes, describe)
		}
		if err != nil {
			return errors.Join(rollout.ErrBusy, err)
		}
	}
	err := m.move(on, call)
	m.mu.Lock()
	defer m.mu.Unlock()
	if throttles {
		note(notes, on.Deployment.String())
	}
	return err
}

func (m *throttled) Lower(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	return m.change(ctx, on, call, m.lowered)
}

func (m *throttled) Raise(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	return m.change(ctx, on, call, m.raised)
}

func (m *throttled) Slot(ctx context.Context, _ v1alpha1.Connection, namespace string) (func(), error) {
	return m.slot(ctx, namespace, func(b *callBudget) *semaphore.Weighted { return b.slots })
}

func (m *throttled) CountSlot(ctx context.Context, _ v1alpha1.Connection, namespace string) (func(), error) {
	return m.slot(ctx, namespace, func(b *callBudget) *semaphore.Weighted { return b.countSlots })
}

func (m *throttled) slot(ctx context.Context, namespace string, of func(*callBudget) *semaphore.Weighted) (func(), error) {
	if !m.throttles.Load() {
		return func() {}, nil
	}
	m.mu.Lock()
	hangs := m.hangs[namespace]
	m.mu.Unlock()
	if hangs { // its slots are free: it hangs at the first call
		return func() {}, nil
	}
	b, err := m.begin(ctx, namespace)
	if err != nil {
		return nil, err
	}
	slots := of(b)
	if !slots.TryAcquire(1) && slots.Acquire(ctx, 1) != nil {
		return nil, errors.New("there is no slot")
	}
	return func() { slots.Release(1) }, nil
}

func (m *throttled) List(ctx context.Context, conn v1alpha1.Connection, namespace string) (*rollout.Listing, error) {
	if m.throttles.Load() {
		b, err := m.begin(ctx, namespace)
		if err == nil {
			err = m.call(ctx, b.counts, describe)
		}
		if err != nil {
			return nil, err
		}
	}
	return m.memory.List(ctx, conn, namespace)
}
