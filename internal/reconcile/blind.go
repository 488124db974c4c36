package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// blindAge is how old a reading of the repository may be for traffic to be taken back by what it says. Verdicts and gates need no reading of any
// age: they are about what has traffic.
const blindAge = 10 * time.Minute

// DefaultRefusedGrace is how long the repository may refuse the bot unless the Reconciler says otherwise.
const DefaultRefusedGrace = time.Hour

// absence is what a Reconciler remembers for when the repository cannot be read.
type absence struct {
	// seen is the routing of worker deployments as it was read or set last while the repository could be read.
	seen map[steadyKey]seenRouting
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

func newAbsence() *absence { return &absence{seen: map[steadyKey]seenRouting{}} }

// noteRead notes how a reading of the repository ended.
func (r *Reconciler) noteRead(err error) {
	switch {
	case r.absence == nil:
		r.absence = newAbsence()
		r.noteRead(err)
	case err == nil:
		r.absence.refusedSince = time.Time{}
	case errors.Is(err, rollout.ErrRefused) && r.absence.refusedSince.IsZero():
		r.absence.refusedSince = r.Now()
	}
}

// notOurs says that the repository refused the bot for too long; nil: it did not. A bot that was removed must not work against its successor.
func (r *Reconciler) notOurs() error {
	grace := cmp.Or(r.RefusedGrace, DefaultRefusedGrace)
	if r.absence == nil || r.absence.refusedSince.IsZero() || r.Now().Sub(r.absence.refusedSince) < grace {
		return nil
	}
	return fmt.Errorf("%w: it has refused the bot since %s, for more than %s, so nothing is touched", rollout.ErrNotOurs,
		r.absence.refusedSince.UTC().Format(time.RFC3339), grace)
}

// noteSeen notes what was read of routings, with the repository at hand.
func (r *Reconciler) noteSeen(decisions []*Decision) {
	if r.absence == nil || r.blind {
		return
	}
	for _, d := range decisions {
		if o := d.Snapshot.Observation; o.Problem == nil && o.Exists != "" {
			r.absence.seen[keyOf(d)] = seenRouting{routing: o.Routing}
		}
	}
}

// noteSet notes what a call set, or with an error may have set all the same.
func (r *Reconciler) noteSet(d *Decision, call rollout.RoutingCall, failed error) {
	if r.absence == nil || errors.Is(failed, rollout.ErrStale) {
		return
	}
	now := d.Snapshot.Observation.Routing
	for _, step := range call.Steps {
		switch step.Kind {
		case rollout.ClearRamp:
			now.HasRamp, now.Ramping, now.Percentage = false, "", 0
		case rollout.SetRamp:
			now.HasRamp, now.Ramping, now.Percentage = true, step.BuildID, step.Percentage
		case rollout.SetCurrent:
			now.Current = step.BuildID
		}
	}
	if failed != nil {
		r.absence.seen[keyOf(d)] = seenRouting{routing: d.Snapshot.Observation.Routing, tried: &now}
		return
	}
	r.absence.seen[keyOf(d)] = seenRouting{routing: now, set: true}
}

func keyOf(d *Decision) steadyKey {
	return steadyKey{d.Snapshot.Environment.Name, d.Snapshot.Deployment}
}

// allowedBlind leaves out the decisions that lower traffic on what may not be true any more: somebody else may have the repository, and move
// traffic by what it says now. Anything counts by a reading that is young; a verdict or a gate also for as long as the whole routing is what the
// bot read or set last.
func (r *Reconciler) allowedBlind(ctx context.Context, decisions []*Decision) []*Decision {
	return slices.DeleteFunc(slices.Clone(decisions), func(d *Decision) bool {
		if d.Plan.Lower == nil {
			return false
		}
		why := r.refuseBlind(d)
		if why != "" {
			r.Log.WarnContext(ctx, "traffic is not taken back while the repository cannot be read", "deployment", d.Plan.Deployment.String(), "row", d.Plan.Row, "reason", why)
		}
		return why != ""
	})
}

// refuseBlind says why a decision may not lower traffic without the repository; "": it may.
func (r *Reconciler) refuseBlind(d *Decision) string {
	judged := slices.ContainsFunc(d.Plan.Actions, func(a rollout.Action) bool {
		return a.Lowers() && (a.Cause == rollout.CauseVerdict || a.Cause == rollout.CauseGate)
	})
	switch {
	case judged && r.isAsSeen(d):
		return ""
	case r.blindSince.IsZero():
		return "what it is taken back by cannot be read any more"
	case r.Now().Sub(r.blindSince) <= blindAge:
		return ""
	case judged:
		return "somebody moved it since the bot read or set it last"
	}
	return fmt.Sprintf("the repository was read last at %s, more than %s ago", r.blindSince.UTC().Format(time.RFC3339), blindAge)
}

// isAsSeen reports whether the routing is what it was when it was read or set last; of what this run did not see yet, what its record knows.
func (r *Reconciler) isAsSeen(d *Decision) bool {
	if r.absence == nil {
		return plan.Knows(d.Snapshot)
	}
	now := d.Snapshot.Observation.Routing
	was, ok := r.absence.seen[keyOf(d)]
	switch {
	case !ok:
		return plan.Knows(d.Snapshot)
	case was.set && was.routing.SameTraffic(now), was.tried != nil && was.tried.SameTraffic(now):
		r.absence.seen[keyOf(d)] = seenRouting{routing: now} // its times are known by now
		return true
	}
	return !was.set && was.routing.Same(now)
}

// aside is a Reconciler that leaves the repository alone, for the time that somebody else reads it.
func (r *Reconciler) aside() *Reconciler {
	if r.failures == nil {
		r.failures = map[rollout.Name]*rollout.Problem{}
	}
	planner := *r.Planner
	planner.Source = nil
	return &Reconciler{Planner: &planner, Router: r.Router, Decisions: r.Decisions, failures: r.failures, last: r.last, absence: r.absence, RefusedGrace: r.RefusedGrace}
}

// lowerBlind takes traffic back while the repository is away, as the last snapshot says. It is recorded when Git is back.
func (r *Reconciler) lowerBlind(ctx context.Context, report *Report) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.last == nil || r.notOurs() != nil {
		return nil
	}
	r.blind, r.blindSince = true, r.last.at
	defer func() { r.blind = false }()
	var errs []error
	here, giveUp := context.WithCancel(ctx) // the server that is waited for is not asked for what is not here
	giveUp()
	for _, env := range r.last.World.Environments {
		env = r.last.withCommitted(env)
		for part := range slices.Chunk(env.Known, cmp.Or(r.AtOnce, DefaultAtOnce)) {
			snapshots, err := r.last.fill(here, r.last.Brief(env.Environment.Name, part)) // one that cannot be read keeps no other's traffic where it is
			errs = append(errs, err)
			if _, err := r.decideAndLower(ctx, env, snapshots, report); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
	}
	return errors.Join(errs...)
}
