package reconcile

import (
	"cmp"
	"math"
	"slices"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DefaultAtOnce is how many worker deployments of an environment are looked at, and committed, at once unless the Reconciler says otherwise.
// Temporal describes some 50 in a second, and nothing is raised on what it said a minute ago.
const DefaultAtOnce = 1000

// atOnce is how many worker deployments of an environment are looked at at once. A commit that may have to be proposed is not divided: there
// is one such pull request, of all that waits.
func (r *Reconciler) atOnce(env rollout.EnvironmentWorld) int {
	if r.proposes(rollout.Commit{Environment: env.Environment}) {
		return math.MaxInt
	}
	return cmp.Or(r.AtOnce, DefaultAtOnce)
}

// turn is a part of those that have to be looked at in a cycle, where they are too many to be looked at at once.
type turn struct {
	// now are those that have it, done those that had it before.
	now  []rollout.Known
	done map[rollout.Name]bool
	// left is how many wait for theirs.
	left int
}

// turnOf are those that have their turn of those that have to be looked at, which are sorted by name: at most so many. Each has one in a
// cycle, and those first that have a record: they may have traffic that has to be taken back.
func (s *steadiness) turnOf(env string, due []rollout.Known, most int) []rollout.Known {
	t := s.turns[env]
	if t == nil {
		if len(due) <= most {
			return due
		}
		if s.turns == nil {
			s.turns = map[string]*turn{}
		}
		t = &turn{done: map[rollout.Name]bool{}}
		s.turns[env] = t
	}
	waiting := t.waiting(due)
	now := waiting[:min(most, len(waiting))]
	t.left = len(waiting) - len(now)
	slices.Sort(now)
	t.now = make([]rollout.Known, len(now))
	for at, i := range now {
		t.now[at] = due[i]
	}
	return t.now
}

// midway says whether some had their turn in this cycle, and others wait.
func (s *steadiness) midway(env string) bool {
	return s.turns[env] != nil && len(s.turns[env].done) > 0
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

// turnIsOver ends a turn, whatever came of it, and says how many wait for theirs.
func (s *steadiness) turnIsOver(env string) (left int) {
	t := s.turns[env]
	if t == nil {
		return 0
	}
	if t.left == 0 {
		delete(s.turns, env)
		return 0
	}
	for i := range t.now {
		t.done[t.now[i].Deployment] = true
	}
	t.now = nil
	return t.left
}
