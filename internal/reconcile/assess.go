package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// assess lets the groups work, beside each other. It gives for each environment what is decided, as soon as its groups
// are done or the wait is over. What late groups of earlier cycles decided comes first: nothing is waited for then.
// A group that takes longer goes on, and a later cycle gives what it decided; from then on no cycle waits for its
// namespace, until a group of it is done in time.
func (r *Reconciler) assess(ctx context.Context, tip reading, groups []*group) iter.Seq[assessed] {
	return func(yield func(assessed) bool) {
		r.start(ctx, groups)
		over, end := r.Groups.waiting()
		defer end()
		left := slices.Clone(tip.World.Environments)
		slices.SortStableFunc(left, func(a, b rollout.EnvironmentWorld) int {
			return cmp.Or(
				byTurn(r.running.drained[a.Environment.Name].since, r.running.drained[b.Environment.Name].since),
				first(!r.proposes(a.Environment), !r.proposes(b.Environment)))
		})
		for _, env := range left {
			if a := r.collect(env.Environment.Name, r.lateOf(env), nil); len(a.groups) > 0 && !yield(a) {
				return
			}
		}
		for len(left) > 0 {
			i := r.firstDone(ctx, over, left, groups)
			env := left[i].Environment
			left = slices.Delete(left, i, i+1)
			a := r.collect(env.Name, nil, func(a assessed, g *group) bool { // late ones wait for each other
				return a.incomplete && g.undivided && !g.raises && g.cycle != r.running.cycle
			})
			lost := r.running.drained[env.Name].cycle == r.running.cycle
			if a.incomplete = a.incomplete || lost && r.proposes(env); !a.incomplete && !lost {
				delete(r.running.drained, env.Name)
			}
			if !yield(a) {
				return
			}
		}
	}
}

// lateOf gives a condition for groups of earlier cycles, whose decisions are committed before anything is waited for.
// Where commits may be proposed, one is about all groups.
func (r *Reconciler) lateOf(env rollout.EnvironmentWorld) func(*group) bool {
	return func(g *group) bool {
		return !r.proposes(env.Environment) && g.cycle != r.running.cycle && g.isDone()
	}
}

// firstDone waits for the first of some environments whose groups are done, or are not waited for any more. It gives
// its index. What waits for its commit since an earlier cycle comes before others, and so do all in their order where
// the wait has no limit.
func (r *Reconciler) firstDone(ctx, over context.Context, left []rollout.EnvironmentWorld, groups []*group) int {
	for {
		for i, env := range left {
			until := over
			if r.proposes(env.Environment) { // it waits for all of its groups, after the commits of others
				until = ctx
			}
			if until.Err() != nil || r.running.done(env.Environment.Name, groups) {
				return i
			}
			if r.Groups.Wait == 0 || !r.running.drained[env.Environment.Name].since.IsZero() {
				break
			}
		}
		expired := over.Done()
		if over.Err() != nil {
			expired = nil
		}
		select {
		case <-r.running.ended:
		case <-expired:
		case <-ctx.Done():
		}
	}
}

// start begins the work of groups.
func (r *Reconciler) start(ctx context.Context, groups []*group) {
	for _, g := range groups {
		if r.running.groups == nil {
			r.running.groups, r.running.slow, r.running.members = map[groupKey]*group{}, map[groupKey]bool{},
				map[resync.Key]bool{}
			r.running.ended = make(chan struct{}, 1)
		}
		for key := range g.members() {
			r.running.members[key] = true
		}
		g.begun, g.cycle, g.done = time.Now(), r.running.cycle, make(chan struct{})
		r.running.groups[g.groupKey] = g
		r.running.all.Go(func() { r.work(ctx, g) })
	}
}

// work observes, decides, lowers and deletes for one group, or carries out what was committed.
func (r *Reconciler) work(ctx context.Context, g *group) {
	r.Groups.allow(g)
	if g.raises {
		for _, d := range g.decisions {
			g.report.made = append(g.report.made, rollout.Made{Decision: d, Done: r.carryOut(ctx, g, d)})
		}
	} else {
		g.decisions = r.decide(ctx, g, func(decisions []*rollout.Decision) []*rollout.Decision {
			// What lowering takes is not taken from the time for observing, nor the other way round.
			left := time.Until(g.until)
			r.Groups.allow(g)
			defer func() { g.stopAfter(left) }()
			return r.lower(ctx, g, r.check(ctx, decisions, &g.report))
		})
		if !g.blind {
			r.Groups.allow(g)
			r.delete(ctx, g)
		}
		for _, d := range g.decisions {
			d.Inputs = g.inputs[d.Snapshot.Deployment]
		}
	}
	g.took = time.Since(g.begun)
	if g.finish() && r.Groups.Done != nil {
		r.Groups.Done()
	}
	select {
	case r.running.ended <- struct{}{}:
	default: // the cycle is about to look already
	}
}

// wait waits for groups until they are done, or the time is over.
func wait(over context.Context, groups []*group) {
	for _, g := range groups {
		select {
		case <-g.done:
		case <-over.Done():
		}
	}
}

// assessed is what the groups of one environment decided, which one commit is made of.
type assessed struct {
	environment string
	groups      []*group
	decisions   []*rollout.Decision
	// waiting are the worker deployments that there was no time for, since when those waited that had their turn now.
	waiting map[rollout.Name]bool
	since   map[rollout.Name]time.Time
	// late says that some was decided by a late group, on an earlier reading.
	late bool
	// incomplete says that the commit is not divided, and that it would not be about all that is due.
	incomplete bool
	// tips are those of the tries to commit it.
	tips []string
}

func (a *assessed) tipsSeen() string { return strings.Join(slices.Compact(a.tips), ", ") }

// collect ends the groups of an environment that are done, except those to keep, and gives what they decided. It looks
// only at those that of takes. Keep is asked when it is known whether groups are still at work. Nil: all, and none.
func (r *Reconciler) collect(environment string, of func(*group) bool, keep func(assessed, *group) bool) assessed {
	a := assessed{environment: environment, waiting: map[rollout.Name]bool{}, since: map[rollout.Name]time.Time{}}
	var done []groupKey
	for _, key := range slices.SortedFunc(maps.Keys(r.running.groups), groupKey.compare) {
		g := r.running.groups[key]
		switch {
		case key.environment != environment, of != nil && !of(g):
		case g.leave():
			r.running.slow[key] = true
			a.incomplete = a.incomplete || g.undivided
		default:
			done = append(done, key)
		}
	}
	for _, key := range done {
		g := r.running.groups[key]
		if keep != nil && keep(a, g) {
			continue
		}
		r.dissolve(g)
		a.groups = append(a.groups, g)
		delete(r.running.slow, key)
		if r.Groups.Wait > 0 && g.took > r.Groups.Wait {
			r.running.slow[key] = true
		}
		if g.raises {
			a.incomplete = a.incomplete || g.undivided // what it raised for is decided in the next cycle
			continue
		}
		maps.Copy(a.waiting, g.waiting)
		if g.lowersOnly() {
			a.incomplete = a.incomplete || g.undivided
			g.report.more(r.Now())
			continue
		}
		a.late = a.late || g.cycle != r.running.cycle
		a.decisions = append(a.decisions, g.decisions...)
	}
	a.decisions = inOrder(a.decisions)
	for _, d := range a.decisions {
		a.since[d.Snapshot.Deployment] = r.resync.Waiting(keyOf(d))
	}
	return a
}

// served notes the worker deployments that had their turn: they were decided, whatever becomes of the commit.
func (r *Reconciler) served(a assessed) {
	for _, g := range a.groups {
		for key := range g.members() {
			if !g.waiting[key.Name] {
				r.resync.Served(key)
			}
		}
	}
}

// dissolve ends a group that is done, and notes the worker deployments that it had no time for.
func (r *Reconciler) dissolve(g *group) {
	delete(r.running.groups, g.groupKey)
	for key := range g.members() {
		delete(r.running.members, key)
	}
	for n := range g.waiting {
		r.resync.Wait(resync.Key{Env: g.environment, Name: n}, r.Now())
	}
}

// check drops plans that would do what must never happen. Such a plan is a defect of ours: it is reported loudly, and
// nothing of it is carried out.
func (r *Reconciler) check(ctx context.Context, decisions []*rollout.Decision, report *Report) []*rollout.Decision {
	var out []*rollout.Decision
	for _, d := range decisions {
		if never := plan.Never(d.Snapshot, d.Plan); len(never) > 0 {
			r.drop(ctx, d, "the plan was refused: "+never[0], report)
			continue
		}
		out = append(out, d)
	}
	return out
}

// delete asks the server to delete versions whose scale-down is in Git, and decides again where it refused.
func (r *Reconciler) delete(ctx context.Context, g *group) {
	for i, d := range g.decisions {
		var answers []rollout.Deletion
		for _, id := range d.Plan.Deletions {
			if g.over() || g.isWithdrawn(d.Snapshot.Deployment) { // the next cycle asks
				break
			}
			done, err := r.Versions.DeleteVersion(ctx, plan.Look(d.Snapshot).Subject(), id)
			if err != nil {
				r.notDone(ctx, d, &g.report, fmt.Errorf("delete version %s: %w", id, err))
				continue
			}
			r.Log.InfoContext(ctx, "asked to delete version", "deployment", d.Plan.Deployment.String(), "buildID", id,
				"refused", done.Refused)
			answers = append(answers, done)
		}
		if len(answers) > 0 {
			g.report.did(d)
			s := d.Snapshot
			s.Deletions = slices.Concat(s.Deletions, answers)
			again := Decide(ctx, g.judge, s)
			again.Acted = again.Plan.Lower == nil || d.Acted // what was not lowered is not recorded as if it were
			g.decisions[i] = again
			r.tell(ctx, again)
		}
	}
}

// Close waits for groups that are at work, which end with the context of their cycle, and hands what they did to the
// decision log.
func (r *Reconciler) Close() {
	r.running.all.Wait()
	report := newReport()
	for _, g := range r.running.groups {
		r.dissolve(g)
		report.merge(assessed{groups: []*group{g}}, r)
	}
	r.end(context.Background(), &report)
}
