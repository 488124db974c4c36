package reconcile

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// recall stands before an Observer for the tries of one environment. When a push was lost to somebody else's, everything is read and
// decided again; but what Temporal said to the same question, about a record that is still the same, it need not be asked again: it is
// decided on as of then. Otherwise somebody who pushes more often than an environment is observed would keep it from ever landing,
// however often it tried. It may be used by several goroutines; again is called between tries.
//
// An answer counts once in a try, so that two reads of which a proof is made stay two, and a second read has to be a young one. What was
// asked about a worker deployment that was changed since is not kept. That Temporal could not be read is an answer like any other until
// the next cycle: one that does not answer at all takes the longest. That facts are too old for a raise is found where it is made.
type recall struct {
	now func() time.Time
	// most is how old the answer to a second read may be.
	most time.Duration

	mu sync.Mutex
	// before are the answers of the try before, in their order, and those of the one under way.
	before, current map[rollout.Name][]answered
}

// question is what an answer is the answer to.
type question struct {
	connection v1alpha1.Connection
	ask        rollout.Ask
	// record is the hash of the record: an observation that came before a record can't be compared with it.
	record string
}

// reply is what was said, and the time after that.
type reply struct {
	said rollout.Observation
	at   time.Time
}

type answered struct {
	question
	reply
}

func newRecall(now func() time.Time, most time.Duration) *recall {
	return &recall{now: now, most: most, current: map[rollout.Name][]answered{}}
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

// observe gives what was said to the same question in the try before, else asks.
func (r *recall) observe(ctx context.Context, from Observer, s rollout.Snapshot, q question) reply {
	known, ok := r.take(s, q)
	if !ok {
		said := from.Observe(ctx, q.connection, q.ask)
		known = reply{said, r.now()}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current[s.Deployment] = append(r.current[s.Deployment], answered{q, known})
	return known
}

func (r *recall) take(s rollout.Snapshot, q question) (reply, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.before[s.Deployment]
	for i, a := range list {
		young := s.FirstRead == nil || r.now().Sub(a.said.At) <= r.most
		if young && reflect.DeepEqual(a.question, q) {
			// Those before it were answers to questions that came earlier.
			r.before[s.Deployment] = list[i+1:]
			return a.reply, true
		}
	}
	return reply{}, false
}
