package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/resync"
)

// running are the groups that are at work.
type running struct {
	cycle  int
	groups map[groupKey]*group
	// members are the worker deployments in groups.
	members map[resync.Key]bool
	// keys are the groups that worker deployments were in last.
	keys map[resync.Key]groupKey
	// ended has a token when a group ended since the cycle looked last.
	ended chan struct{}
	// slow are those whose last group was late for its cycle. No cycle waits for the next group of them.
	slow map[groupKey]bool
	// drained are the environments whose decisions were not committed, since the repository was waited for too long: in
	// the next cycle they come first.
	drained map[string]drained
	all     sync.WaitGroup
}

// awaited are the groups that a cycle waits for: not those of slow namespaces.
func (r *running) awaited(groups []*group) []*group {
	return slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return r.slow[g.groupKey] })
}

// done reports whether all groups of an environment are done that a cycle waits for: not those of slow namespaces.
func (r *running) done(environment string, groups []*group) bool {
	return !slices.ContainsFunc(groups, func(g *group) bool {
		return g.environment == environment && !r.slow[g.groupKey] && !g.isDone()
	})
}

// drained says since when an environment waits for its commit, and in which cycle it lost decisions last.
type drained struct {
	since time.Time
	cycle int
}

// noteDrained notes that an environment lost decisions.
func (r *running) noteDrained(environment string, now time.Time) {
	if r.drained == nil {
		r.drained = map[string]drained{}
	}
	was := r.drained[environment]
	if was.since.IsZero() {
		was.since = now
	}
	r.drained[environment] = drained{was.since, r.cycle}
}

// has reports whether a worker deployment is in a group at work, or in the namespace of one. The caller knows that some
// group is.
func (r *running) has(key resync.Key) bool {
	of, ok := r.keys[key]
	return r.members[key] || ok && r.busy(of)
}

// noteKey notes the group that a worker deployment is in.
func (r *running) noteKey(key resync.Key, of groupKey) {
	if r.keys == nil {
		r.keys = map[resync.Key]groupKey{}
	}
	r.keys[key] = of
}

// forget drops worker deployments that are gone. there is how many there are.
func (r *running) forget(gone func(resync.Key) bool, there int) {
	if len(r.keys) > there { // else it is not worth a look at all
		maps.DeleteFunc(r.keys, func(key resync.Key, _ groupKey) bool { return gone(key) })
	}
}

// busy reports whether a group of a namespace is at work.
func (r *running) busy(key groupKey) bool {
	key.raises = false
	assesses := r.groups[key] != nil
	key.raises = true
	return assesses || r.groups[key] != nil
}
