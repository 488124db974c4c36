package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// GroupLimits bound the work of groups, so that one Temporal namespace does not hold up the others.
type GroupLimits struct {
	// Wait is how long a cycle waits for its groups, all together. Zero: until they are done.
	Wait time.Duration
	// Time bounds observing for one group, then lowering, then deleting, then raising: after it no other call begins.
	// One that began ends by its own time limit, so that what became of it is known. Zero: no bound.
	Time time.Duration
	// Done is called when a group is done that its cycle did not wait for; nil: no call is made.
	Done func()
}

// DefaultGroupLimits are the bounds that a running bot has.
func DefaultGroupLimits() GroupLimits {
	return GroupLimits{Wait: 5 * time.Second, Time: 20 * time.Second}
}

// groupKey is a Temporal namespace, by the hash of its connection and its name, as an environment uses it: once for
// assessing, and once for raising.
type groupKey struct {
	environment, connection, namespace string
	raises                             bool
}

func (k groupKey) compare(o groupKey) int {
	return cmp.Or(strings.Compare(k.environment, o.environment), strings.Compare(k.namespace, o.namespace),
		strings.Compare(k.connection, o.connection))
}

// group is the due worker deployments of an environment in one Temporal namespace, and what was decided about them.
type group struct {
	groupKey
	env   rollout.EnvironmentWorld
	judge Judge
	// undivided says that what all groups of the environment decide goes into one commit.
	undivided bool
	snapshots []rollout.Snapshot
	// inputs of the snapshots.
	inputs map[rollout.Name]rollout.Inputs
	// blind says that the repository is away: the snapshots are as it was read at since; zero: longer ago than is
	// known.
	blind bool
	since time.Time
	// hasty says that the repository may be back in a moment: it was not waited for.
	hasty bool

	// begun is when its work began, and cycle which one began it.
	begun time.Time
	cycle int
	// until is when the group stops beginning calls, by the clock of the machine. Zero: it does not stop.
	until time.Time
	// mu guards late and withdrawn, and that done is closed.
	mu sync.Mutex
	// late says that its cycle did not wait for it, withdrawn which worker deployments nothing is raised of any more.
	late      bool
	withdrawn map[rollout.Name]bool
	// done is closed at the end of its work. What follows is read after that.
	done      chan struct{}
	took      time.Duration
	decisions []*rollout.Decision
	// waiting are the worker deployments that it had no time for.
	waiting map[rollout.Name]bool
	report  Report
}

// finish ends the work of a group, and reports whether its cycle did not wait for that.
func (g *group) finish() (late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.done)
	return g.late
}

// leave reports whether a group is still at work, and is late from now on.
func (g *group) leave() (late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.done:
		return false
	default:
		g.late = true
		return true
	}
}

// lowersOnly reports whether a group was decided without the repository: what it does not lower is decided again.
func (g *group) lowersOnly() bool { return g.blind && !g.env.Unrecorded }

// members are the worker deployments in it.
func (g *group) members() iter.Seq[resync.Key] {
	return func(yield func(resync.Key) bool) {
		for _, s := range g.snapshots {
			if !yield(resync.KeyOf(&s)) {
				return
			}
		}
		if !g.raises { // its decisions are written to until it is done
			return
		}
		for _, d := range g.decisions {
			if !yield(keyOf(d)) {
				return
			}
		}
	}
}

// postpone leaves a worker deployment that there is no time for to the next cycle, which follows at once.
func (r *Reconciler) postpone(g *group, d *rollout.Decision) {
	g.wait(d.Snapshot.Deployment)
	g.report.more(r.Now())
}

func (g *group) wait(n rollout.Name) {
	if g.waiting == nil {
		g.waiting = map[rollout.Name]bool{}
	}
	g.waiting[n] = true
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

// running are the groups that are at work.
type running struct {
	cycle  int
	groups map[groupKey]*group
	// members are the worker deployments in groups.
	members map[resync.Key]bool
	// keys are the groups that worker deployments were in last.
	keys map[resync.Key]groupKey
	// slow are those whose last group its cycle did not wait for until it was done: no cycle waits for the next one.
	slow map[groupKey]bool
	// drained are the environments whose decisions were not committed, since the repository was waited for too long: in
	// the next cycle they come first.
	drained map[string]drained
	all     sync.WaitGroup
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

// assess lets the groups work, beside each other, and gives for each environment what is decided when the wait is over.
// A group that takes longer goes on, and a later cycle gives what it decided; from then on no cycle waits for its
// namespace, until a group of it is done in time.
func (r *Reconciler) assess(ctx context.Context, tip reading, groups []*group) iter.Seq[assessed] {
	return func(yield func(assessed) bool) {
		r.start(ctx, groups)
		over, end := r.Groups.waiting()
		defer end()
		environments := slices.Clone(tip.World.Environments)
		slices.SortStableFunc(environments, func(a, b rollout.EnvironmentWorld) int {
			return cmp.Or(
				byTurn(r.running.drained[a.Environment.Name].since, r.running.drained[b.Environment.Name].since),
				first(!r.proposes(a.Environment), !r.proposes(b.Environment)))
		})
		for _, env := range environments {
			name, over := env.Environment.Name, over
			if r.proposes(env.Environment) { // it waits for all of its groups, after the commits of others
				over = ctx
			}
			r.wait(over, slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return g.environment != name }))
			a := r.collect(name, func(a assessed, g *group) bool { // late ones wait for each other
				return a.incomplete && g.undivided && !g.raises && g.cycle != r.running.cycle
			})
			lost := r.running.drained[name].cycle == r.running.cycle
			if a.incomplete = a.incomplete || lost && r.proposes(env.Environment); !a.incomplete && !lost {
				delete(r.running.drained, name)
			}
			if !yield(a) {
				return
			}
		}
	}
}

// waiting gives a context that ends when groups are not waited for any more.
func (l GroupLimits) waiting() (over context.Context, end context.CancelFunc) {
	if l.Wait == 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), l.Wait)
}

// allow gives a group its time anew, for the next part of its work.
func (l GroupLimits) allow(g *group) {
	if l.Time > 0 {
		g.until = time.Now().Add(l.Time)
	}
}

// stopAfter gives a group, if its time is bounded, what it had left.
func (g *group) stopAfter(left time.Duration) {
	if !g.until.IsZero() {
		g.until = time.Now().Add(left)
	}
}

// over reports whether the time of a group is over.
func (g *group) over() bool { return !g.until.IsZero() && !time.Now().Before(g.until) }

// within gives a context for reading, which may be given up: it ends with the time of the group.
func (g *group) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if g.until.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, g.until)
}

// wait waits for groups, but not for those of slow namespaces.
func (r *Reconciler) wait(over context.Context, groups []*group) {
	for _, g := range groups {
		if r.running.slow[g.groupKey] {
			continue
		}
		select {
		case <-g.done:
		case <-over.Done():
		}
	}
}

// start begins the work of groups.
func (r *Reconciler) start(ctx context.Context, groups []*group) {
	for _, g := range groups {
		if r.running.groups == nil {
			r.running.groups, r.running.slow, r.running.members = map[groupKey]*group{}, map[groupKey]bool{},
				map[resync.Key]bool{}
		}
		for key := range g.members() {
			r.running.members[key] = true
		}
		g.begun, g.cycle, g.done = time.Now(), r.running.cycle, make(chan struct{})
		r.running.groups[g.groupKey] = g
		r.running.all.Go(func() { r.work(ctx, g) })
	}
}

// has reports whether a worker deployment is in a group at work, or in the namespace of one.
func (r *running) has(key resync.Key) bool {
	if len(r.groups) == 0 {
		return false
	}
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
}

// collect ends the groups of an environment that are done, except those to keep, and gives what they decided. Keep is
// asked when it is known whether groups are still at work.
func (r *Reconciler) collect(environment string, keep func(assessed, *group) bool) assessed {
	a := assessed{environment: environment, waiting: map[rollout.Name]bool{}, since: map[rollout.Name]time.Time{}}
	var done []groupKey
	for _, key := range slices.SortedFunc(maps.Keys(r.running.groups), groupKey.compare) {
		g := r.running.groups[key]
		switch {
		case key.environment != environment:
		case g.leave():
			r.running.slow[key] = true
			a.incomplete = a.incomplete || g.undivided
		default:
			done = append(done, key)
		}
	}
	for _, key := range done {
		g := r.running.groups[key]
		if keep(a, g) {
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
			done, err := r.Versions.DeleteVersion(ctx, plan.SubjectOf(d.Snapshot), id)
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
