package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// blindAge is how old a reading of the repository may be for traffic to be taken back by what it says. Verdicts and
// gates need no reading of any age: they are about what has traffic.
const blindAge = 10 * time.Minute

// DefaultRefusedGrace is how long the repository may refuse the bot unless the Reconciler says otherwise.
const DefaultRefusedGrace = time.Hour

// absence is what a Reconciler remembers for when the repository cannot be read. Several groups may use it.
type absence struct {
	mu sync.Mutex
	// seen is the routing of worker deployments as it was read or set last while the repository could be read.
	seen map[resync.Key]seenRouting
	// refusedSince is when the repository began to refuse the bot; zero: it does not.
	refusedSince time.Time
}

// seenRouting is a routing as it was read, or as it was set, in which case its times are not known yet.
type seenRouting struct {
	routing rollout.RoutingConfig
	set     bool
	// tried is what a call may have set whose answer was an error; nil: there was none.
	tried *rollout.RoutingConfig
}

// noteRead notes how a reading of the repository ended.
func (a *absence) noteRead(now time.Time, err error) {
	switch {
	case err == nil:
		a.refusedSince = time.Time{}
	case errors.Is(err, rollout.ErrRefused) && a.refusedSince.IsZero():
		a.refusedSince = now
	}
}

// notOurs says that the repository refused the bot for too long; nil: it did not. A bot that was removed must not work
// against its successor.
func (r *Reconciler) notOurs() error {
	grace, since := cmp.Or(r.RefusedGrace, DefaultRefusedGrace), r.absence.refusedSince
	if since.IsZero() || r.Now().Sub(since) < grace {
		return nil
	}
	return fmt.Errorf("%w: it has refused the bot since %s, for more than %s, so nothing is touched",
		rollout.ErrNotOurs, since.UTC().Format(time.RFC3339), grace)
}

// noteSeen notes routings that were read while the repository could be read.
func (a *absence) noteSeen(decisions []*rollout.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[resync.Key]seenRouting{}
	}
	for _, d := range decisions {
		if o := &d.Snapshot.Observation; o.Problem == nil && o.Exists != "" {
			a.seen[keyOf(d)] = seenRouting{routing: o.Routing}
		}
	}
}

// noteSet notes what a call set, or with an error may have set all the same.
func (a *absence) noteSet(d *rollout.Decision, call rollout.RoutingCall, failed error) {
	if errors.Is(failed, rollout.ErrStale) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[resync.Key]seenRouting{}
	}
	now := d.Snapshot.Observation.Routing
	for _, step := range call.Steps {
		now = now.After(step)
	}
	if failed != nil {
		a.seen[keyOf(d)] = seenRouting{routing: d.Snapshot.Observation.Routing, tried: &now}
		return
	}
	a.seen[keyOf(d)] = seenRouting{routing: now, set: true}
}

// forget drops worker deployments that are gone. there is how many there are.
func (a *absence) forget(gone func(resync.Key) bool, there int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) > there {
		maps.DeleteFunc(a.seen, func(key resync.Key, _ seenRouting) bool { return gone(key) })
	}
}

func keyOf(d *rollout.Decision) resync.Key { return resync.KeyOf(&d.Snapshot) }

// allowedBlind leaves out the decisions that lower traffic on what may not be true any more. Somebody else may have the
// repository, and move traffic by what it says now. Anything counts by a reading that is young; a verdict or a gate
// also for as long as the whole routing is what the bot read or set last.
func (r *Reconciler) allowedBlind(ctx context.Context, g *group, decisions []*rollout.Decision) []*rollout.Decision {
	return slices.DeleteFunc(slices.Clone(decisions), func(d *rollout.Decision) bool {
		if d.Plan.Lower == nil {
			return false
		}
		why := r.refuseBlind(g, d)
		if why != "" {
			r.Log.WarnContext(ctx, "traffic is not taken back while the repository cannot be read",
				"deployment", d.Plan.Deployment.String(), "row", d.Plan.Row, "reason", why)
		}
		return why != ""
	})
}

// refuseBlind says why a decision may not lower traffic without the repository; "": it may.
func (r *Reconciler) refuseBlind(g *group, d *rollout.Decision) string {
	judged := slices.ContainsFunc(d.Plan.Actions, func(a rollout.Action) bool {
		return a.Lowers() && (a.Cause == rollout.CauseVerdict || a.Cause == rollout.CauseGate)
	})
	switch {
	case judged && r.absence.isAsSeen(d):
		return ""
	case g.since.IsZero():
		return "what it is taken back by cannot be read any more"
	case g.hasty && !judged && !plan.Look(d.Snapshot).Knows():
		return "another bot or a person may have committed it: the repository is read again first"
	case r.Now().Sub(g.since) <= blindAge:
		return ""
	case judged:
		return "somebody moved it since the bot read or set it last"
	}
	return fmt.Sprintf("the repository was read last at %s, more than %s ago", g.since.UTC().Format(time.RFC3339),
		blindAge)
}

// isAsSeen reports whether the routing is what it was when it was read or set last. Of a routing that this run did not
// see yet, the record has to know it.
func (a *absence) isAsSeen(d *rollout.Decision) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := d.Snapshot.Observation.Routing
	was, ok := a.seen[keyOf(d)]
	switch {
	case !ok:
		return plan.Look(d.Snapshot).Knows()
	case was.set && was.routing.SameTraffic(now), was.tried != nil && was.tried.SameTraffic(now):
		a.seen[keyOf(d)] = seenRouting{routing: now} // its times are known by now
		return true
	}
	return !was.set && was.routing.Same(now)
}

// lowerBlind lowers traffic while the repository is away, by what was read last. It is recorded when Git is back.
// Waited says that it was waited for. Environments wait for their groups beside each other: a Temporal namespace that
// hangs delays no rollback of another environment.
func (r *Reconciler) lowerBlind(ctx context.Context, report *Report, waited bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.last == nil || r.notOurs() != nil {
		return nil //nolint:nilerr // survey says that it is not ours
	}
	errs := make([]error, len(r.last.World.Environments))
	var turn sync.Mutex // guards r and the report; an environment unlocks it while it waits for its groups
	var all sync.WaitGroup
	for i, env := range r.last.World.Environments {
		all.Go(func() {
			turn.Lock()
			defer turn.Unlock()
			errs[i] = r.lowerBlindIn(ctx, r.last.withCommitted(env), report, waited, &turn)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// lowerBlindIn lowers the traffic of one environment. It loads MaxDue worker deployments at a time, as many as a cycle
// decides at most, and waits for them before it loads the next. The caller locks turn, which is unlocked meanwhile.
func (r *Reconciler) lowerBlindIn(ctx context.Context, env rollout.EnvironmentWorld, report *Report, waited bool,
	turn *sync.Mutex) error {
	var errs []error
	here, giveUp := context.WithCancel(ctx) // the repository is away: it is not asked for missing objects
	giveUp()
	name := env.Environment.Name
	r.drain(name, report, r.endedNow)    // what cannot be committed now is decided again
	entries := slices.Clone(env.Entries) // those that waited come first
	slices.SortStableFunc(entries, func(a, b *rollout.IndexEntry) int {
		return byTurn(r.resync.Waiting(resync.Key{Env: name, Name: a.Deployment}),
			r.resync.Waiting(resync.Key{Env: name, Name: b.Deployment}))
	})
	for part := range slices.Chunk(entries, cmp.Or(r.MaxDue, DefaultMaxDue)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// One that cannot be read keeps no other's traffic where it is.
		snapshots, err := r.last.load(here, r.last.Snapshots(name, part))
		errs = append(errs, err)
		groups := r.group(env, snapshots)
		for _, g := range groups {
			if g.blind = true; !env.Unrecorded {
				g.since = r.last.at
			}
			g.hasty = !waited && r.Now().Sub(r.last.at) <= cmp.Or(r.Patience, DefaultPatience)
		}
		r.start(ctx, groups)
		over, end := r.Groups.waiting()
		awaited := r.running.awaited(groups)
		turn.Unlock()
		wait(over, awaited)
		turn.Lock()
		end()
		r.drain(name, report, r.endedNow)
	}
	return errors.Join(errs...)
}

// endedNow reports whether a group ended while the repository is waited for. It looked at its traffic just now, and
// what it decided may be committed in a moment.
func (r *Reconciler) endedNow(g *group) bool {
	return !g.blind && time.Since(g.begun.Add(g.took)) < cmp.Or(r.Patience, DefaultPatience)
}

// drain ends the groups of an environment that are done, except those to keep. Nothing of what they decided is
// committed.
func (r *Reconciler) drain(environment string, report *Report, keep func(*group) bool) {
	a := r.collect(environment, nil, func(_ assessed, g *group) bool { return keep(g) })
	r.served(a)
	report.merge(a, r)
	if len(a.decisions) > 0 {
		r.running.noteDrained(environment, r.Now())
	}
}
