package reconcile

import (
	"context"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// pass is one reading of an environment. What was read does not change, so what was compared with it need not be again.
type pass struct {
	known  []*rollout.Known
	shared sharedInputs
	// same are those whose inputs were found to be these, by the index of the worker deployment; nil: they were not, or it is looked at.
	same []*watched
	// due are the indexes of those that had to be looked at last.
	due []int
	// quiet says that nothing was left to commit when nothing was looked at.
	quiet bool
	// lists are those that worker deployments of it are in.
	lists []*listing
	// settled says that nobody had to be looked at when all were gone through last, and next when the first one has to be by its time.
	settled bool
	next    time.Time
	// pods is how much of the cluster had changed when its pods were compared last.
	pods uint64
}

// watched is what has to be compared in a cycle.
type watched struct {
	settled *settled
	until   time.Time
	list    *listing
	// with is the list that it was found to be the same in.
	with *rollout.Listing
	// pods says that its pods were found not to be the same, and it was not decided since.
	pods bool
}

// listing is the list of a Temporal namespace.
type listing struct {
	of         v1alpha1.Connection
	connection string // its hash
	namespace  string
	// now is the list of this cycle; nil: it could not be had.
	now *rollout.Listing
	// asked says that the list was asked for, used that somebody in the reading is in it.
	asked, used bool
}

// pass gives the reading that an environment is of. Those that are in the one before in just the same way are taken over.
func (s *steadiness) pass(env rollout.EnvironmentWorld, shared sharedInputs) *pass {
	was := s.passes[env.Environment.Name]
	if was != nil && was.shared == shared && isSame(was.known, env.Known) {
		return was
	}
	now := &pass{known: env.Known, shared: shared, same: make([]*watched, len(env.Known))}
	if was != nil && was.shared == shared {
		now.takeOver(was)
	}
	if s.passes == nil {
		s.passes = map[string]*pass{}
	}
	s.passes[env.Environment.Name] = now
	return now
}

// takeOver takes over those that are the same.
func (p *pass) takeOver(was *pass) {
	for _, l := range was.lists {
		l.used = false
	}
	for i, k := 0, 0; i < len(p.known) && k < len(was.known); {
		c := 0
		if p.known[i] != was.known[k] {
			c = p.known[i].Deployment.Compare(was.known[k].Deployment)
		}
		switch {
		case c < 0:
			i++
		case c > 0:
			k++
		default:
			if is := was.same[k]; is != nil && (p.known[i] == was.known[k] || *p.known[i] == *was.known[k]) {
				p.same[i] = is
				p.use(is.list, connectionOf(p.known[i]))
			}
			i, k = i+1, k+1
		}
	}
}

// use makes a list one of the reading's.
func (p *pass) use(l *listing, connection *v1alpha1.Connection) {
	if !l.used {
		l.used, l.of = true, *connection
		p.lists = append(p.lists, l)
	}
}

func connectionOf(k *rollout.Known) *v1alpha1.Connection {
	if k.Full != nil {
		return k.Full.Connection
	}
	return k.Connection
}

// list is the one that a worker deployment is in.
func (p *pass) list(connection *v1alpha1.Connection, hash, namespace string) *listing {
	for _, l := range p.lists {
		if l.connection == hash && l.namespace == namespace {
			return l
		}
	}
	l := &listing{connection: hash, namespace: namespace}
	p.use(l, connection)
	return l
}

// ask asks for the list of this cycle.
func (l *listing) ask(ctx context.Context, r *Reconciler) {
	var err error
	if l.now, err = r.Lister.List(ctx, l.of, l.namespace); err != nil {
		r.Log.WarnContext(ctx, "worker deployments could not be listed", "namespace", l.namespace, "error", err)
		l.now = nil
	}
	l.asked = true
}

// isSame reports whether two lists are one. Of none nobody can tell.
func isSame(a, b []*rollout.Known) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// due are the worker deployments that have to be looked at in this cycle.
func (s *steadiness) due(ctx context.Context, r *Reconciler, env rollout.EnvironmentWorld) []*rollout.Known {
	if r.Lister == nil || len(s.settled) == 0 {
		delete(s.passes, env.Environment.Name)
		return env.Known
	}
	now, p, hash := r.Now(), s.pass(env, r.sharedOf(env)), connectionHash()
	moved := false
	if !s.midway(env.Environment.Name) { // else the lists are those of this cycle
		for _, l := range p.lists {
			was := l.now
			l.ask(ctx, r)
			moved = moved || l.now != was
		}
	}
	p.due = p.due[:0]
	pods := false
	if r.looksAtPods(env) {
		is := r.Cluster.Changes()
		pods, p.pods = is != p.pods, is
	}
	if p.settled && !moved && !pods && now.Before(p.next) && len(r.failures) == 0 {
		return nil
	}
	var out []*rollout.Known
	var next time.Time
	for i, k := range p.known {
		is := p.same[i]
		if is == nil {
			was := s.settled[steadyKey{env.Environment.Name, k.Deployment}]
			if was != nil && was.inputs == inputsOfKnown(k, p.shared, hash) {
				connection := connectionOf(k)
				is = &watched{settled: was, until: was.until, list: p.list(connection, hash(connection), was.temporalNamespace)}
				p.same[i] = is
				if !is.list.asked {
					is.list.ask(ctx, r)
				}
			}
		}
		if pods && is != nil {
			is.comparePods(ctx, r.Cluster)
		}
		if is == nil || !now.Before(is.until) || len(r.failures) > 0 && r.failures[k.Deployment] != nil || is.moved() ||
			is.pods {
			out, p.due = append(out, k), append(p.due, i)
			continue
		}
		next = earlier(next, is.until)
	}
	p.settled, p.next = len(out) == 0, next
	return out
}

// moved reports whether the list shows another routing, or that it was moved there and back: by somebody, whose it may be now. A worker deployment that the list lacks, or a list that cannot be had, shows
// nothing: it is looked at again when its time has come.
func (w *watched) moved() bool {
	if w.list.now == nil || w.with == w.list.now {
		return false
	}
	if is, ok := w.list.now.Routing[w.settled.listed]; ok && !is.Same(w.settled.routing) {
		return true
	}
	w.with = w.list.now
	return false
}

// comparePods notes whether the cluster says something else of its pods.
func (w *watched) comparePods(ctx context.Context, c Cluster) {
	w.pods = w.pods || w.settled.pods.moved(ctx, c)
}
