package resync

import (
	"hash/fnv"
	"maps"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Interval is how long a settled worker deployment is not described at most. A change of owner, or of drainage, shows
// only in a describe of its own.
const Interval = 5 * time.Minute

// jittered is the interval of one worker deployment. Each has another one, so that those that were described together
// are not described together for long.
func jittered(n rollout.Name) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(n.String()))
	return Interval - time.Duration(h.Sum64()%uint64(Interval/2))
}

// Table is the resync table. The zero Table has no rows: all are due. It is used by one goroutine at a time.
type Table struct {
	rows map[Key]*Row
	// walked are the rows of an environment in the order of the last Walk.
	walked map[string][]*Row
	// waiting are the worker deployments that a cycle had no time for, since when.
	waiting map[Key]time.Time
	// lists are those of the Temporal namespaces that rows are in.
	lists []*list
	// shared inputs by environment, as they were last.
	shared map[string]*Shared
}

// Key is a worker deployment in an environment.
type Key struct {
	Env  string
	Name rollout.Name
}

// KeyOf is the key of a snapshot.
func KeyOf(s *rollout.Snapshot) Key { return Key{s.Environment.Name, s.Deployment} }

// Row is what a decision to do nothing was made on, and until when it holds. First come the fields that a walk over
// rows at rest reads: in one line of the processor's cache, since most of a cycle without a change waits for them.
type Row struct {
	// entry and shared are what the inputs were compared with last, and were the same as.
	entry  *rollout.IndexEntry
	shared *Shared
	list   *list
	// with is the list in which its traffic had not moved.
	with *rollout.Listing
	// Until is when the worker deployment is described again.
	Until time.Time
	// gone says that it is not in the table any more.
	gone bool

	// Due is when the decision changes by itself; zero: never.
	Due    time.Time
	Inputs rollout.Inputs
	// Routing as it was observed.
	Routing rollout.RoutingConfig
	// TemporalNamespace that it is listed in, and its name there.
	TemporalNamespace, listed string
	// Pods is what the cluster said, where policies look at that; nil: they do not, or it is of an earlier run.
	Pods *Pods
}

// Pods is what was asked of the cluster for a decision, and the answer.
type Pods struct {
	Ask  rollout.ClusterAsk
	Said string
	// Changes is how often the cluster had changed when the answer was seen to be the same; zero: it was not compared.
	Changes uint64
}

// Entry is the index entry with which the worker deployment was found at rest.
func (r *Row) Entry() *rollout.IndexEntry { return r.entry }

// TrafficMoved reports whether the list shows another routing, also one that was moved there and back: its mover may be
// its owner now. A list that lacks the worker deployment, or that could not be read, proves nothing.
func (r *Row) TrafficMoved() bool {
	now := r.list.now
	if now == nil || r.with == now {
		return false
	}
	if is, ok := now.Routing[r.listed]; ok && !is.Same(r.Routing) {
		return true
	}
	r.with = now
	return false
}

// same reports whether a worker deployment is what the row was made on.
func (r *Row) same(k *rollout.IndexEntry, shared *Shared, hash ConnectionHash) bool {
	same := r.shared == shared && (r.entry == k || r.entry != nil && *r.entry == *k)
	if !same && r.Inputs != InputsOfEntry(k, *shared, hash) {
		return false
	}
	r.entry, r.shared = k, shared
	return true
}

// Walk looks at the worker deployments of an environment one after the other. A row that comes in the same place as in
// the walk before is found without looking for it: of 10 000 that rest, that is three quarters of the time of a cycle
// in which nothing changed.
type Walk struct {
	table         *Table
	env           string
	before, found []*Row
}

// Walk begins one, and End ends it.
func (t *Table) Walk(env string) *Walk {
	before := t.walked[env]
	return &Walk{table: t, env: env, before: before, found: make([]*Row, 0, len(before))}
}

// End gives the rows of all that were found at rest, in their order, which is the one of the next walk.
func (w *Walk) End() []*Row {
	if w.table.walked == nil {
		w.table.walked = map[string][]*Row{}
	}
	w.table.walked[w.env] = w.found
	return w.found
}

// Rests reports whether a worker deployment is at rest until Temporal or the cluster says that it moved. Else it is
// due, by Git or by its time. The next AskLists asks for the list of its Temporal namespace.
func (w *Walk) Rests(k *rollout.IndexEntry, shared *Shared, hash ConnectionHash, now time.Time) bool {
	r := w.row(k)
	if r == nil || !r.same(k, shared, hash) || !now.Before(r.Until) {
		return false
	}
	if r.list == nil || r.list.dropped {
		r.list = w.table.list(connectionOf(k), hash, r.TemporalNamespace)
	}
	r.list.used = true
	w.found = append(w.found, r)
	return true
}

// Keep has the next AskLists ask for the list that a worker deployment is in, though it is not looked at.
func (w *Walk) Keep(k *rollout.IndexEntry) {
	if r := w.row(k); r != nil && r.list != nil {
		r.list.used = true
	}
}

func (w *Walk) row(k *rollout.IndexEntry) *Row {
	for len(w.before) > 0 && w.before[0].gone {
		w.before = w.before[1:]
	}
	var r *Row
	if len(w.before) > 0 && (w.before[0].entry == k || w.before[0].entry.Deployment == k.Deployment) {
		r = w.before[0]
	} else {
		r = w.table.rows[Key{Env: w.env, Name: k.Deployment}]
	}
	if r != nil && len(w.before) > 0 && w.before[0] == r {
		w.before = w.before[1:]
	}
	return r
}

func connectionOf(k *rollout.IndexEntry) *v1alpha1.Connection {
	if k.Full != nil {
		return k.Full.Connection
	}
	return k.Connection
}

// Settle notes a decision to do nothing. It holds until the row's Due, and no longer than Interval after now.
func (t *Table) Settle(key Key, row Row, now time.Time) {
	row.listed = key.Name.String()
	row.restUntil(now.Add(jittered(key.Name)))
	if t.rows == nil {
		t.rows = map[Key]*Row{}
	}
	t.Drop(key)
	t.rows[key] = &row
}

// restUntil has a row hold until a time, but no longer than until its Due.
func (r *Row) restUntil(at time.Time) {
	if r.Until = at; !r.Due.IsZero() && r.Due.Before(at) {
		r.Until = r.Due
	}
}

// Drop makes a worker deployment due.
func (t *Table) Drop(key Key) {
	if r := t.rows[key]; r != nil {
		r.gone = true
		delete(t.rows, key)
	}
}

// Wait notes that a cycle had no time for a worker deployment.
func (t *Table) Wait(key Key, now time.Time) {
	if t.waiting == nil {
		t.waiting = map[Key]time.Time{}
	}
	if t.waiting[key].IsZero() {
		t.waiting[key] = now
	}
}

// Waiting gives since when a worker deployment waits; zero: it does not.
func (t *Table) Waiting(key Key) time.Time { return t.waiting[key] }

// Served notes that a cycle had time for a worker deployment.
func (t *Table) Served(key Key) { delete(t.waiting, key) }

// Forget drops worker deployments that are gone. there is how many there are.
func (t *Table) Forget(gone func(Key) bool, there int) {
	maps.DeleteFunc(t.waiting, func(key Key, _ time.Time) bool { return gone(key) })
	if len(t.rows) > there { // else it is not worth a look at all
		t.walked = nil
		for key := range t.rows {
			if gone(key) {
				t.Drop(key)
			}
		}
	}
}

// Share notes the inputs that all worker deployments of an environment share, and gives them: the same pointer while
// they are the same.
func (t *Table) Share(env string, now Shared) *Shared {
	if t.shared == nil {
		t.shared = map[string]*Shared{}
	}
	if was := t.shared[env]; was == nil || *was != now {
		t.shared[env] = &now
	}
	return t.shared[env]
}
