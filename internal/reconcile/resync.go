package reconcile

import (
	"context"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// resyncInterval is how long a settled worker deployment is not described at most. A change of owner, or of drainage,
// shows only in a describe of its own.
const resyncInterval = 5 * time.Minute

// jittered is the resync interval of one worker deployment. Each has another one, so that those that were described
// together are not described together for long.
func jittered(n rollout.Name) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.String()))
	return resyncInterval - time.Duration(h.Sum32())%(resyncInterval/2)
}

// resync is the resync table: the worker deployments about which a cycle decided to do nothing, and on what. The rows
// are keyed by environment and name, and dropped when anything moves that they stand on. Without the table each worker
// deployment is described in each cycle, and the row "no-change cycle" of the benchmark fails.
type resync struct {
	rows map[steadyKey]*entry
	// waiting are the worker deployments that a cycle had no time for, since when: the next one begins with them.
	waiting map[steadyKey]time.Time
	// keys are the groups that worker deployments were in last.
	keys map[steadyKey]groupKey
	// lists are those of the Temporal namespaces that rows are in.
	lists []*listing
	// inputs are those that all worker deployments of an environment share, as they were last.
	inputs map[string]*sharedInputs
	// pods is how often each environment's cluster had changed when its pods were compared last.
	pods map[string]uint64
	// roots are the outputs' own kustomization.yaml files that were found to be right, by environment.
	roots map[string]roots
}

// steadyKey is a worker deployment in an environment.
type steadyKey struct {
	Env  string
	Name rollout.Name
}

// entry is what a decision to do nothing was made on, and until when it holds.
type entry struct {
	inputs inputs
	// row and shared are what the inputs were compared with last, and were the same as.
	row    *rollout.Known
	shared *sharedInputs
	// until is when it is described again, due when the decision changes by itself (zero: never).
	until, due time.Time
	routing    rollout.RoutingConfig
	// temporalNamespace it is listed in, and as what.
	temporalNamespace, listed string
	list                      *listing
	// with is the list in which its traffic had not moved.
	with *rollout.Listing
	// pods is what the cluster said, where policies look at that; nil: they do not, or it is of an earlier run.
	pods *seenPods
	// podsMoved says that the cluster said something else since.
	podsMoved bool
}

// same reports whether the row is what the entry was made on.
func (e *entry) same(k *rollout.Known, shared *sharedInputs, hash func(*v1alpha1.Connection) string) bool {
	same := e.shared == shared && (e.row == k || e.row != nil && *e.row == *k)
	if !same && e.inputs != inputsOfKnown(k, *shared, hash) {
		return false
	}
	e.row, e.shared = k, shared
	return true
}

// trafficMoved reports whether the list shows another routing, also one that was moved there and back: its mover may be
// its owner now. A list that lacks the worker deployment, or that could not be read, proves nothing.
func (e *entry) trafficMoved() bool {
	now := e.list.now
	if now == nil || e.with == now {
		return false
	}
	if is, ok := now.Routing[e.listed]; ok && !is.Same(e.routing) {
		return true
	}
	e.with = now
	return false
}

// wait notes that a cycle had no time for a worker deployment.
func (t *resync) wait(key steadyKey, now time.Time) {
	if t.waiting == nil {
		t.waiting = map[steadyKey]time.Time{}
	}
	if t.waiting[key].IsZero() {
		t.waiting[key] = now
	}
}

// noteKey notes the group that a worker deployment is in.
func (t *resync) noteKey(key steadyKey, of groupKey) {
	if t.keys == nil {
		t.keys = map[steadyKey]groupKey{}
	}
	t.keys[key] = of
}

// forget drops worker deployments that are gone. there is how many there are.
func (t *resync) forget(gone func(steadyKey) bool, there int) {
	maps.DeleteFunc(t.waiting, func(key steadyKey, _ time.Time) bool { return gone(key) })
	if len(t.rows) > there { // else it is not worth a look at all
		maps.DeleteFunc(t.rows, func(key steadyKey, _ *entry) bool { return gone(key) })
	}
	if len(t.keys) > there {
		maps.DeleteFunc(t.keys, func(key steadyKey, _ groupKey) bool { return gone(key) })
	}
}

// podsMoved reports whether an environment's cluster changed since it was asked last.
func (t *resync) podsMoved(env string, changes uint64) bool {
	if t.pods == nil {
		t.pods = map[string]uint64{}
	}
	was, ok := t.pods[env]
	t.pods[env] = changes
	return !ok || was != changes
}

// shared gives the inputs that all worker deployments of an environment share: the same pointer while they are the
// same.
func (t *resync) shared(env rollout.EnvironmentWorld, of func(rollout.EnvironmentWorld) sharedInputs) *sharedInputs {
	if t.inputs == nil {
		t.inputs = map[string]*sharedInputs{}
	}
	now := of(env)
	if was := t.inputs[env.Environment.Name]; was == nil || *was != now {
		t.inputs[env.Environment.Name] = &now
	}
	return t.inputs[env.Environment.Name]
}

// settle notes which worker deployments need no look for a while. After a commit their records have another hash, so
// they get one more look.
func (r *Reconciler) settle(env rollout.EnvironmentWorld, decisions []*Decision, waiting map[rollout.Name]bool, report *Report) {
	for _, d := range decisions {
		report.NextDue = earlier(report.NextDue, d.Plan.NextDue)
		key := keyOf(d)
		delete(r.resync.rows, key)
		if !waiting[d.Snapshot.Deployment] {
			delete(r.resync.waiting, key)
		}
		if !d.Plan.Settled || d.Snapshot.Record.Tree == "" || d.Snapshot.Connection == nil || d.Snapshot.Spec == nil || inReview(d) {
			continue
		}
		until := d.Snapshot.Now.Add(jittered(d.Plan.Deployment))
		if due := d.Plan.NextDue; !due.IsZero() && due.Before(until) {
			until = due
		}
		if r.resync.rows == nil {
			r.resync.rows = map[steadyKey]*entry{}
		}
		r.resync.rows[key] = &entry{inputs: d.inputs, until: until, due: d.Plan.NextDue,
			routing: d.Snapshot.Observation.Routing, listed: d.Plan.Deployment.String(), pods: r.podsSeen(env, &d.Snapshot),
			temporalNamespace: strings.Clone(d.Snapshot.Spec.Spec.WorkerOptions.TemporalNamespace)}
	}
}

// inReview reports whether people may say something about a worker deployment that no file shows.
func inReview(d *Decision) bool {
	if routing := d.Snapshot.Record.Routing; routing != nil && (routing.Spec.Proposal != nil || len(rollout.ReviewedProposals(&routing.Spec)) > 0) {
		return true
	}
	return d.Snapshot.Review != nil || d.Plan.Review != nil || d.Plan.Approving != nil
}

// Bounds of lists.
const (
	// listPatience is how long a cycle waits for the lists of all Temporal namespaces together.
	listPatience = 2 * time.Second
	// listTime bounds one list.
	listTime = 20 * time.Second
)

// listing is the list of a Temporal namespace.
type listing struct {
	of         v1alpha1.Connection
	connection string // its hash
	namespace  string
	// now is the list that came last; nil: none came, or the last question failed.
	now *rollout.Listing
	// coming gets the answer to a question that is under way; nil: there is none.
	coming chan *rollout.Listing
	// late says that the answer did not come in time, so that no cycle waits for it.
	late bool
	// used says that a worker deployment of this cycle is in it, dropped that none was.
	used, dropped bool
}

// list gives the list that a worker deployment is in.
func (t *resync) list(connection *v1alpha1.Connection, hash func(*v1alpha1.Connection) string, namespace string) *listing {
	is := hash(connection)
	for _, l := range t.lists {
		if l.connection == is && l.namespace == namespace {
			return l
		}
	}
	l := &listing{of: *connection, connection: is, namespace: namespace}
	t.lists = append(t.lists, l)
	return l
}

// askLists asks all namespaces beside each other. What does not come in time comes in a later cycle: until then the
// list before counts, and nothing but time makes its worker deployments due.
func (t *resync) askLists(ctx context.Context, from Lister, log *slog.Logger) {
	t.lists = slices.DeleteFunc(t.lists, func(l *listing) bool {
		l.dropped = !l.used
		return l.dropped
	})
	for _, l := range t.lists {
		l.used = false
		if l.coming == nil {
			l.coming = make(chan *rollout.Listing, 1)
			go l.ask(context.WithoutCancel(ctx), from, log)
		}
	}
	patience := time.NewTimer(listPatience)
	defer patience.Stop()
	over := false
	for _, l := range t.lists {
		if l.late || over {
			select {
			case now := <-l.coming:
				l.now, l.coming, l.late = now, nil, false
			default:
				l.late = true
			}
			continue
		}
		select {
		case now := <-l.coming:
			l.now, l.coming = now, nil
		case <-patience.C:
			l.late, over = true, true
		case <-ctx.Done():
			return
		}
	}
}

// ask asks for the list, and gives it to coming.
func (l *listing) ask(ctx context.Context, from Lister, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	list, err := from.List(ctx, l.of, l.namespace)
	if err != nil {
		log.WarnContext(ctx, "worker deployments could not be listed", "namespace", l.namespace, "error", err)
		list = nil
	}
	l.coming <- list
}
