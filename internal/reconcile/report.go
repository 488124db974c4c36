package reconcile

import (
	"context"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Report says what a cycle did.
type Report struct {
	World rollout.World `json:"-"`
	// Commits that were pushed.
	Commits []string `json:"commits,omitempty"`
	// Decisions by environment, in the order of the world.
	Decisions []*rollout.Decision `json:"decisions,omitempty"`
	// LookedAt is how many worker deployments were decided.
	LookedAt int `json:"lookedAt"`
	// Failures of single worker deployments; the others went on.
	Failures map[string]string `json:"failures,omitempty"`
	// NextDue is when a decision changes by itself; zero: never.
	NextDue time.Time `json:"nextDue,omitzero"`
	// Again says that people answered, or were told, something that the next cycle should know at once.
	Again bool `json:"again,omitempty"`
	// More says that worker deployments are due that this cycle did not decide, so the next one should follow at once.
	More bool `json:"more,omitempty"`

	made     []rollout.Made
	problems map[resync.Key]*rollout.Problem
	// healed are the worker deployments for which everything was carried out. Where it is false, deletions are left
	// that Temporal could not be asked for.
	healed map[resync.Key]bool
}

func newReport() Report {
	return Report{Failures: map[string]string{}, problems: map[resync.Key]*rollout.Problem{},
		healed: map[resync.Key]bool{}}
}

// merge takes over what groups reported. It drops the failures of healed worker deployments, and settles the decisions
// of groups that raise.
func (report *Report) merge(a assessed, r *Reconciler) {
	for _, g := range a.groups {
		report.made = append(report.made, g.report.made...)
		maps.Copy(report.Failures, g.report.Failures)
		maps.Copy(report.problems, g.report.problems)
		if g.raises { // of an earlier cycle, perhaps: the statuses of this one say it
			r.keepFailures(g.report.problems)
		}
		for key, whole := range g.report.healed {
			delete(r.failures, key)
			if whole {
				delete(report.problems, key)
			}
		}
		if g.report.More {
			report.more(r.Now())
		}
		if g.raises {
			r.settle(g.env, g.decisions, report)
		}
	}
}

// more asks for another cycle at once.
func (report *Report) more(now time.Time) {
	report.More, report.NextDue = true, earlier(report.NextDue, now)
}

const (
	// breath is the time between two cycles while there is more to do.
	breath = 100 * time.Millisecond
	// soonest is the least time between two cycles, unless the interval is shorter.
	soonest = time.Second
)

// Pause gives how long after this cycle, which ended with err, the next one begins. That is after the interval, or when
// a decision is due before that. It has jitter, so that several bots do not keep meeting.
func (report *Report) Pause(interval time.Duration, now time.Time, err error) time.Duration {
	wait := interval
	switch {
	case err != nil && len(report.World.Environments) == 0: // nothing could be read
		return max(interval, soonest) + jitter(interval)
	case report.More:
		return min(breath, interval)
	case !report.NextDue.IsZero():
		wait = min(wait, max(report.NextDue.Sub(now), 0))
	}
	wait = max(wait, min(soonest, interval))
	return wait + jitter(wait)
}

// jitter is up to a tenth of a duration.
func jitter(d time.Duration) time.Duration { return rand.N(d/10 + 1) }

// note keeps decisions for the decision log. Nothing was carried out of them, or nothing is known of it.
func (report *Report) note(decisions ...*rollout.Decision) {
	for _, d := range decisions {
		report.made = append(report.made, rollout.Made{Decision: d})
	}
}

// did keeps a decision for the decision log. At least part of it was carried out.
func (report *Report) did(d *rollout.Decision) {
	report.made = append(report.made, rollout.Made{Decision: d, Done: true})
}

// end hands the decisions of a cycle to the decision log, and keeps its failures for the next statuses.
func (r *Reconciler) end(ctx context.Context, report *Report) {
	if r.Decisions != nil && len(report.made) > 0 {
		r.Decisions.Record(ctx, report.made)
	}
	r.keepFailures(report.problems)
}

// keepFailures keeps failures for the statuses of worker deployments that are loaded from now on.
func (r *Reconciler) keepFailures(problems map[resync.Key]*rollout.Problem) {
	if r.failures == nil {
		r.failures = map[resync.Key]*rollout.Problem{}
	}
	maps.Copy(r.failures, problems)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
