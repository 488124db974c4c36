package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Reconciler runs cycles: it reads and decides as its Planner does, and writes to Git and Temporal.
type Reconciler struct {
	*Planner
	Committer Committer
	Router    Router
	Versions  VersionAPI
	// Lister finds settled worker deployments that moved in Temporal; nil: each one is observed in every cycle.
	Lister Lister
	// Prefetcher is told when a cycle begins and ends; nil: nobody is.
	Prefetcher Prefetcher
	// Proposer is told what waits for approval; nil: the record alone says it.
	Proposer Proposer
	// Decisions is the decision log; nil: decisions are not kept.
	Decisions DecisionLog
	// RepositoryURL is the address of the repository in commits, for Argo CD; "": commits have none.
	RepositoryURL string
	// Patience is how long a cycle waits for the repository before it lowers traffic by what it read last.
	// Zero: DefaultPatience.
	Patience time.Duration
	// RefusedGrace is how long the repository may refuse the bot before the bot stops. Zero: DefaultRefusedGrace.
	RefusedGrace time.Duration
	// BatchSize bounds the worker deployments of an environment in one cycle. Zero: DefaultBatchSize.
	BatchSize int
	// Groups bound the work in one Temporal namespace. The zero value sets no bounds: a cycle waits for everything.
	Groups GroupLimits

	resync  resync
	running running
	absence absence
	// last is what was read last, for when the repository is away; nil before the first reading.
	last *reading
	// failures are why plans were not carried out, for the status. No decision depends on them.
	failures map[rollout.Name]*rollout.Problem
	// refused are the commits that protected branches refused last, by environment.
	refused map[string]refusal
	pauses  backoffs
	rested  int
}

// MaxTries bounds how often a cycle starts over while others push to the branch.
const MaxTries = 8

// Cycle runs one cycle in five stages. Each has a file of its own:
//
//   - survey reads the branch: which worker deployments there are, and by which files.
//   - due finds those that need a look: they moved in Git or in Temporal, their time came, or they are in motion.
//   - assess observes and decides them, each Temporal namespace beside the others, and lowers traffic at once. Lowering
//     is safe without a commit, and a broken build must not keep its traffic while Git is slow.
//   - commit writes manifests, records and status, with one commit for each environment.
//   - raise moves traffic up. It follows the commit, so that Temporal sends no traffic that Git does not show, and skips
//     what was decided on facts that are too old by now.
//
// A Temporal namespace that hangs costs the others nothing: a cycle waits for its groups for a bounded time, and a later
// cycle commits what a late group decided. To add a fact that decisions see, look at assess.
//
// The error is about the repository or whole environments; failures of single worker deployments are in the Report.
func (r *Reconciler) Cycle(ctx context.Context) (Report, error) {
	report := newReport()
	defer func() { r.end(ctx, &report) }()

	tip, err := r.survey(ctx, &report)
	if err != nil {
		return report, err
	}
	report.World = tip.World

	due, err := r.due(ctx, tip, &report)
	errs := []error{err}

	for batch := range r.assess(ctx, tip, due) {
		if tip, err = r.commitAndRaise(ctx, tip, batch, &report); err != nil {
			errs = append(errs, &EnvironmentError{batch.environment, err})
		}
	}
	return report, errors.Join(errs...)
}

// commitAndRaise commits what was decided for an environment, then raises traffic. When the branch moved meanwhile, it
// reads the branch again, and goes on with the decisions that still hold.
func (r *Reconciler) commitAndRaise(ctx context.Context, tip reading, b batch, report *Report) (now reading, err error) {
	report.merge(b)
	if r.pauses.pausing(b.environment, r.Now()) != nil {
		report.note(b.decisions...)
		return tip, nil
	}
	defer func() { r.pauses.note(b.environment, r.Now(), err) }()
	for try := range MaxTries {
		if ctx.Err() != nil {
			return tip, ctx.Err()
		}
		if try > 0 || b.old || len(report.Commits) > 0 { // the tip is not the one of the decisions
			next, err := r.surveyAgain(ctx, try)
			if err != nil {
				return tip, err
			}
			tip, b = next, r.stillHold(ctx, next, b, report)
		}
		env, ok := tip.environment(b.environment)
		if !ok {
			return tip, nil
		}
		done, err := r.commit(ctx, tip, env, b.decisions, report)
		if err == nil {
			err = r.raise(ctx, env, done, report)
		}
		if err == nil {
			r.settle(env, done, b.waiting, report)
			r.propose(ctx, env, done, report)
			return tip, nil
		}
		if errors.Is(err, errProposed) {
			return tip, nil
		}
		if !errors.Is(err, rollout.ErrMoved) {
			return tip, err
		}
		b.tips = append(b.tips, env.Base)
		r.Log.InfoContext(ctx, "the branch moved: starting over", "environment", b.environment, "try", try+1, "error", err)
	}
	return tip, fmt.Errorf("gave up after %d attempts: the branch kept moving (tips seen: %s): %w",
		MaxTries, b.tipsSeen(), rollout.ErrMoved)
}
