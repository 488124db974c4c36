package reconcile

import (
	"slices"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DefaultAtOnce is how many worker deployments of an environment a cycle looks at unless the Reconciler says otherwise. Temporal describes
// some 50 in a second, and nothing is raised on what it said a minute ago.
const DefaultAtOnce = 1000

// turn is a pass over all worker deployments that have to be looked at, where they are too many for one cycle.
type turn struct {
	// now are those of this cycle, done those of the ones before.
	now, done map[rollout.Name]bool
	// left is how many wait for the next cycle.
	left int
}

// turnOf are those that a cycle looks at of those that have to be, which are sorted by name: at most so many. Each comes once before any comes
// again, and those first that have a record: they may have traffic that has to be taken back.
func (s *steadiness) turnOf(env string, due []rollout.Known, most int) []rollout.Known {
	if len(due) <= most {
		delete(s.turns, env)
		return due
	}
	if s.turns == nil {
		s.turns = map[string]*turn{}
	}
	t := s.turns[env]
	if t == nil {
		t = &turn{done: map[rollout.Name]bool{}}
		s.turns[env] = t
	}
	waiting := t.waiting(due)
	if len(waiting) == 0 {
		clear(t.done)
		waiting = t.waiting(due)
	}
	now := waiting[:min(most, len(waiting))]
	t.left = len(waiting) - len(now)
	slices.Sort(now)
	out := make([]rollout.Known, len(now))
	t.now = make(map[rollout.Name]bool, len(now))
	for at, i := range now {
		out[at] = due[i]
		t.now[due[i].Deployment] = true
	}
	return out
}

// waiting are the indexes of those that did not have their turn, in the order in which they have it.
func (t *turn) waiting(due []rollout.Known) []int {
	var recorded, others []int
	for i := range due {
		switch k := &due[i]; {
		case t.done[k.Deployment]:
		case k.Tree != "" || k.Full != nil && k.Full.Record.Tree != "":
			recorded = append(recorded, i)
		default:
			others = append(others, i)
		}
	}
	return append(recorded, others...)
}

// turnIsOver ends a cycle's part, whatever came of it, and says how many wait for the next one. After the last part all may come again.
func (s *steadiness) turnIsOver(env string) (left int) {
	t := s.turns[env]
	if t == nil {
		return 0
	}
	if t.left == 0 {
		delete(s.turns, env)
		return 0
	}
	for n := range t.now {
		t.done[n] = true
	}
	t.now = nil
	return t.left
}
