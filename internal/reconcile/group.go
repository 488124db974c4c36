package reconcile

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"sync"
	"time"

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

// groupKey is a Temporal namespace, by the hash of its connection and its name, as an environment uses it. There is one
// for assessing, and one for raising.
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
	late = !g.isDone()
	g.late = g.late || late
	return late
}

// isDone reports whether its work is done.
func (g *group) isDone() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
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
func (g *group) postpone(n rollout.Name, now time.Time) {
	g.wait(n)
	g.report.more(now)
}

func (g *group) wait(n rollout.Name) {
	if g.waiting == nil {
		g.waiting = map[rollout.Name]bool{}
	}
	g.waiting[n] = true
}
