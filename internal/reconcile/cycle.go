package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Reconciler runs cycles. Its Planner reads and decides, and has nothing to write with: the command plan uses that
// alone.
type Reconciler struct {
	*Planner
	// Committer pushes commits to Git, Router sets traffic in Temporal, and Versions starts gates and batch jobs there
	// and deletes versions.
	Committer Committer
	Router    Router
	Versions  VersionAPI
	// Lister lists the traffic of all worker deployments in a Temporal namespace with one call. Those that did not move
	// need not be described then. Nil: each one is described in every cycle.
	Lister resync.Lister
	// Prefetcher downloads Git objects between cycles; nil: no objects are downloaded then.
	Prefetcher Prefetcher
	// Proposer opens and closes pull requests for what waits for approval; nil: only the record in Git shows it.
	Proposer Proposer
	// Decisions is the decision log; nil: decisions are not kept.
	Decisions DecisionLog
	// RepositoryURL is the address of the repository in commit messages, which Argo CD shows; "": messages have none.
	RepositoryURL string
	// Patience is how long a cycle waits for the repository before it lowers traffic by what it read last.
	// Zero: DefaultPatience.
	Patience time.Duration
	// RefusedGrace is how long the repository may reject the bot's credentials before the bot exits.
	// Zero: DefaultRefusedGrace.
	RefusedGrace time.Duration
	// MaxDue is how many worker deployments of an environment one cycle decides at most; the next cycle follows at
	// once with the others. Zero: DefaultMaxDue.
	MaxDue int
	// Groups are the limits of time of groups: what is due of an environment in one Temporal namespace. The zero value
	// sets none: a cycle waits for everything.
	Groups GroupLimits

	// resync has the worker deployments that need no look for now, and those that a cycle had no time for.
	resync resync.Table
	// running are the groups at work, the late ones of earlier cycles too.
	running running
	// absence has the traffic of each worker deployment as it was seen last: while the repository is away, only that
	// is lowered. It also has since when the repository rejects the bot.
	absence absence
	// last is what was read last, for when the repository is away; nil before the first reading.
	last *reading
	// failures are why calls and commits failed, for the next status. No decision depends on them.
	failures map[resync.Key]*rollout.Problem
	// refused are the commits that protected branches did not take, by environment: the same is not pushed again soon.
	refused map[string]refusal
	// pauses are those of environments whose commits failed, and of the repository where it could not be read.
	pauses backoffs
	// rootFiles are the kustomization.yaml of outputs that were found to be right.
	rootFiles compose.RootFiles
	// rested is how often memory was given back to the system.
	rested int
}

// MaxTries bounds how often a cycle tries to commit for an environment while others push to the branch.
const MaxTries = 8

// Cycle runs one cycle. The bot runs one every --interval, when a webhook arrives, when a decision is due, and at once
// where the last one left something over.
//
// A *worker deployment* is Temporal's: the versions of one worker, each with its Kubernetes Deployment. Its spec, the
// record of what the bot decided (routing.yaml), its manifests and status are in Git. An *environment* is a set of
// specs and the folder of a branch that the bot writes them to. To *lower* is to give traffic back to a version that
// had it before: a rollback, or a ramp that is given up. To *raise* is to give a version more than it had: a ramp or a
// promotion.
//
// The five stages, each in a file of its name:
//
//   - survey reads the branch's tip: which worker deployments there are, and by which files.
//   - due finds those that need a look: their files changed in Git, their traffic changed in Temporal, their time
//     came, or they are in the middle of a rollout. It groups them by environment and Temporal namespace. It waits for
//     Temporal's lists of traffic 2 seconds at most.
//   - assess observes Temporal, metrics and pods, and decides by the spec, the record and the policies, all groups
//     concurrently. It lowers traffic at once, and has Temporal delete versions whose scale-down is in Git. Temporal
//     refuses that while they are in use.
//   - commit writes record, manifests and status, with one commit for each environment. It has what those of its groups
//     decided that are done, also late ones of earlier cycles.
//   - raise moves traffic up. It starts gates, which are workflows that test a version, and batch jobs, which signal,
//     move or end the workflows of a version.
//
// Lowering comes before the commit: the version that gets the traffic back is still in Git and still runs, and a broken
// build must not keep its traffic while Git is slow. Where the commit then fails, or the bot dies, the next cycle sees
// that traffic is lower than Git says. It is where the bot's own lowering leaves it, so the next commit records that
// (docs/decisions/0004). Raising comes after the commit, so that traffic never rises to what Git does not show. Where a
// raise does not follow its commit, because a call failed, what was observed grew too old or the bot died, Git
// is ahead of Temporal. The next cycle decides on new observations: it raises if all still holds, else it records what
// Temporal has.
//
// A cycle waits for all its groups together no longer than Groups says, 5 seconds in the bot, and as long again for the
// raises of each environment. Where the calls of a Temporal namespace hang, the cycle goes on with the other groups and
// commits what they decided. The late group stays at work: it lowers as soon as it can. Its end starts a cycle, which
// commits and raises what it decided before it waits for other groups. Until its end, less than two minutes later, its
// worker deployments are in no other group, and from then on no cycle waits for its namespace, until a group of it is
// done in time. Only an environment whose commits may be proposed as a pull request (a protected branch) waits for its
// late groups: such a commit has to be about all of it.
//
// While the repository cannot be read, survey lowers traffic by what was read last (blind.go), and fails. Where a
// commit or a raise fails as a whole, the commits and raises of its environment pause for some seconds. Its traffic is
// lowered all the same.
//
// A fact that decisions see is read in assess, and handed to them in a rollout.Snapshot: rules and policies read
// nothing by themselves. A condition for a raise belongs in the decision, before the commit: in internal/plan where it
// holds for everyone, in a policy where users may choose. Raise itself only asks whether what was decided is still
// fresh.
//
// The error is about the repository, files that could not be read, or whole environments. Failures of single worker
// deployments are in the Report.
func (r *Reconciler) Cycle(ctx context.Context) (Report, error) {
	report := newReport()
	defer func() { r.end(ctx, &report) }() // the decision log, and failures for the next statuses

	tip, err := r.survey(ctx, &report)
	if err != nil {
		return report, err
	}
	report.World = tip.World

	groups, err := r.due(ctx, tip, &report)
	errs := []error{err} // about files that could not be read: the others go on

	for decided := range r.assess(ctx, tip, groups) { // one for each environment
		if tip, err = r.commitAndRaise(ctx, tip, decided, &report); err != nil {
			errs = append(errs, &EnvironmentError{decided.environment, err})
		}
	}
	return report, errors.Join(errs...)
}

// commitAndRaise commits what was decided for an environment, then raises traffic. It gives the newest reading.
//
// The decisions may be older than the branch: a late group made them in an earlier cycle, or the bot itself committed
// for another environment. Or somebody pushed meanwhile: the bot's own push then ends with rollout.ErrMoved. The branch
// is read again, and decisions go on whose spec, record and policies are the same. The others are made again, now or in
// the next cycle.
func (r *Reconciler) commitAndRaise(ctx context.Context, tip reading, a assessed,
	report *Report) (newest reading, err error) {
	report.merge(a, r)
	// A commit that may be proposed waits for late groups. Traffic was lowered, all else is decided again later.
	if a.incomplete || r.pauses.has(a.environment, r.Now()) {
		report.note(a.decisions...)
		return tip, nil
	}
	r.served(a) // they had their turn: of those that there was no time for, others come first now
	defer func() { r.pauses.note(a.environment, r.Now(), err) }()
	for try := range MaxTries {
		if ctx.Err() != nil {
			return tip, ctx.Err()
		}
		if try > 0 || a.late || len(report.Commits) > 0 {
			next, err := r.surveyAgain(ctx, try, report)
			if err != nil {
				return tip, err
			}
			tip, a = next, r.stillHold(ctx, next, a, report)
		}
		env, ok := tip.environment(a.environment)
		if !ok {
			return tip, nil // it is not in the configuration any more
		}
		committed, err := r.commit(ctx, tip, env, a.decisions, report)
		if err == nil {
			err = r.raise(ctx, env, committed, a, report)
		}
		switch {
		case err == nil:
			r.propose(ctx, env, committed, report)
			return tip, nil
		case errors.Is(err, errProposed): // the branch is protected: all waits until a pull request is merged
			return tip, nil
		case !errors.Is(err, rollout.ErrMoved):
			return tip, err
		}
		a.tips = append(a.tips, env.Base)
		r.Log.InfoContext(ctx, "the branch moved: starting over", "environment", a.environment, "try", try+1, "error",
			err)
	}
	return tip, fmt.Errorf("gave up after %d attempts: the branch kept moving (tips seen: %s): %w",
		MaxTries, a.tipsSeen(), rollout.ErrMoved)
}
