package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
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
	now  []*rollout.Known
	done map[rollout.Name]bool
	// left is how many wait for theirs.
	left int
}

// turnOf are those that have their turn of those that have to be looked at, which are sorted by name: at most so many. Each has one in a
// cycle, and those first that have a record: they may have traffic that has to be taken back.
func (s *steadiness) turnOf(env string, due []*rollout.Known, most int) []*rollout.Known {
	t := s.turns[env]
	if t == nil {
		if len(due) <= most {
			return due
		}
		t = &turn{done: map[rollout.Name]bool{}}
		s.turns[env], s.first[env] = t, due
	}
	waiting := t.waiting(due)
	now := waiting[:min(most, len(waiting))]
	t.left = len(waiting) - len(now)
	slices.Sort(now)
	t.now = make([]*rollout.Known, len(now))
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
func (t *turn) waiting(due []*rollout.Known) []int {
	var recorded, others []int
	for i, k := range due {
		switch {
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
	if t == nil || t.left == 0 {
		delete(s.turns, env)
		delete(s.first, env)
		return 0
	}
	for i := range t.now {
		t.done[t.now[i].Deployment] = true
	}
	t.now = nil
	var waiting []*rollout.Known
	for _, k := range s.first[env] {
		if !t.done[k.Deployment] {
			waiting = append(waiting, k)
		}
	}
	s.first[env] = waiting
	return t.left
}

// inTurns goes through one environment of a reading, a part of it after the other where many have to be looked at. What goes wrong with one
// part does not keep the others from their turn. It gives the reading that it ended with.
func (r *Reconciler) inTurns(ctx context.Context, now reading, at int, report *Report) (reading, error) {
	name, from, all := now.World.Environments[at].Environment.Name, len(report.Decisions), true
	var errs []error
	var asking []*Decision
	for {
		env, done, err := r.environment(ctx, now, at, report)
		all = all && done
		if err != nil && (len(errs) == 0 || errs[len(errs)-1].Error() != err.Error()) {
			errs = append(errs, err)
		}
		left := r.steady.turnIsOver(name)
		if left == 0 && all && r.Proposer != nil && r.Proposer.Propose(ctx, env, inOrder(stillAsking(env, asking), report.Decisions[from:])) {
			report.Again, report.NextDue = true, earlier(report.NextDue, r.Now())
		}
		if left == 0 || ctx.Err() != nil {
			return now, errors.Join(errs...)
		}
		asking = append(asking, r.partIsOver(ctx, report, from)...)
		again, err := r.read(ctx, report)
		r.noteRead(err)
		if err != nil {
			return now, errors.Join(append(errs, err, r.lowerBlind(ctx, report))...)
		}
		r.keepLast(again)
		now, report.World = again, again.World
		if at = environmentAt(now, name); at < 0 {
			return now, errors.Join(errs...)
		}
	}
}

// partIsOver hands over what was decided in a part of an environment that others follow, so that it need not be there any longer, and gives
// what people are asked about, or were.
func (r *Reconciler) partIsOver(ctx context.Context, report *Report, from int) (asking []*Decision) {
	part := report.Decisions[from:]
	for _, d := range part {
		if inReview(d) {
			asking = append(asking, d)
		}
	}
	if r.Decided != nil && len(part) > 0 {
		r.Decided(ctx, slices.Clone(part))
	}
	clear(part)
	report.Decisions = report.Decisions[:from]
	if len(report.made) > 0 {
		r.Decisions.Record(ctx, report.made)
		report.made = nil
	}
	return asking
}

// stillAsking leaves out who was decided to ask people for what is not in the record any more: somebody changed it since.
func stillAsking(env rollout.EnvironmentWorld, asking []*Decision) []*Decision {
	return slices.DeleteFunc(asking, func(d *Decision) bool {
		if d.Plan.Review == nil {
			return false
		}
		at, ok := rollout.KnownAt(env.Known, d.Plan.Deployment)
		if !ok || env.Known[at].Full == nil || env.Known[at].Full.Record.Routing == nil {
			return true
		}
		return !slices.Equal(proposalsOf(&env.Known[at].Full.Record.Routing.Spec), proposalsOf(d.Plan.Record))
	})
}

// proposalsOf are the proposals of a record, each as text.
func proposalsOf(record *v1alpha1.RoutingSpec) []string {
	var out []string
	for _, p := range rollout.ReviewedProposals(record) {
		text, err := json.Marshal(p)
		if err != nil {
			text = []byte(err.Error())
		}
		out = append(out, string(text))
	}
	return out
}
