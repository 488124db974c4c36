package reconcile

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// recall is an Observer for the tries of one environment. When a push was lost to somebody else's, everything is read and decided again; but
// what Temporal said a moment ago to the same question it need not be asked again. Otherwise somebody who pushes more often than an
// environment is observed would keep it from ever landing. It may be used by several goroutines; again is called between tries.
//
// An answer counts once in a try, so that two reads of which a proof is made stay two. One that is old, or has a problem, is not kept, nor
// is what was asked about a worker deployment that was changed since.
type recall struct {
	next Observer
	now  func() time.Time
	// most is how old an answer may be.
	most time.Duration

	mu sync.Mutex
	// before are the answers of the try before, in their order, and those of the one under way.
	before, current map[rollout.Name][]answered
}

type answered struct {
	connection v1alpha1.Connection
	ask        rollout.Ask
	said       rollout.Observation
}

var _ Observer = (*recall)(nil)

func newRecall(o Observer, now func() time.Time, most time.Duration) *recall {
	return &recall{next: o, now: now, most: most, current: map[rollout.Name][]answered{}}
}

// again begins the next try.
func (r *recall) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.current = r.current, map[rollout.Name][]answered{}
}

// forget leaves out what was said about a worker deployment, which is not true any more.
func (r *recall) forget(n rollout.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.before, n)
	delete(r.current, n)
}

// Observe gives what was said to the same question in the try before, else asks.
func (r *recall) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	said, ok := r.take(conn, ask)
	if !ok {
		said = r.next.Observe(ctx, conn, ask)
	}
	if said.Problem == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.current[ask.Deployment] = append(r.current[ask.Deployment], answered{conn, ask, said})
	}
	return said
}

func (r *recall) take(conn v1alpha1.Connection, ask rollout.Ask) (rollout.Observation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.before[ask.Deployment]
	for i, a := range list {
		if r.now().Sub(a.said.At) <= r.most && reflect.DeepEqual(a.ask, ask) && reflect.DeepEqual(a.connection, conn) {
			// Those before it were answers to questions that came earlier.
			r.before[ask.Deployment] = list[i+1:]
			return a.said, true
		}
	}
	return rollout.Observation{}, false
}
