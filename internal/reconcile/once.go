package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// MaxTries is how often a cycle starts over when others push to the branch at the same time.
const MaxTries = 8

// Reconciler is a Planner with writers.
type Reconciler struct {
	*Planner
	Committer Committer
	Router    Router
	Helper    Helper
	// Lister lets settled worker deployments be left alone; nil: each of them is described in every cycle.
	Lister Lister
	// RepositoryURL is where commits name the commit that asked, for Argo CD; "": without an address.
	RepositoryURL string
	// Decisions are kept here; nil: nowhere.
	Decisions DecisionLog
	// Patience is how long the repository is waited for before traffic is taken back on what was known of it, and again until it answers;
	// zero: DefaultPatience.
	Patience time.Duration

	// Proposer is told what waits for approval; nil: it is in the record only.
	Proposer Proposer

	// RefusedGrace is how long the repository may refuse the bot, or be gone, until it is not taken for its own any more; zero: DefaultRefusedGrace.
	RefusedGrace time.Duration
	// absence is for when the repository cannot be read; nil before the first reading. While blind says so, decisions are made on what was read at
	// blindSince, or is older than is known (zero).
	absence    *absence
	blind      bool
	blindSince time.Time

	// failures are what the last attempts to carry out plans ended with: they explain, and decide nothing.
	failures map[rollout.Name]*rollout.Problem
	steady   steadiness
	last     *reading
	// Completer is asked between cycles; nil: nobody.
	Completer Completer
	// refused are the commits that protected branches refused last, by environment.
	refused map[string]refusal
	// AtOnce is how many worker deployments of an environment are looked at, and committed, at once; zero: DefaultAtOnce.
	AtOnce int
	// Decided is told what was decided in parts of a cycle that the Report does not have; nil: nobody.
	Decided func(ctx context.Context, decisions []*Decision)
	// rested is how often memory was given back.
	rested int
}

// Report says what a cycle did.
type Report struct {
	World rollout.World `json:"-"`
	// Commits that were pushed.
	Commits []string `json:"commits,omitempty"`
	// Decisions by environment, in the order of the world: those of the last part where an environment was gone through in parts. The
	// Reconciler's Decided was told of the others.
	Decisions []*Decision `json:"decisions,omitempty"`
	// LookedAt is how many worker deployments were looked at.
	LookedAt int `json:"lookedAt"`
	// Failures of single worker deployments; the others went on.
	Failures map[string]string `json:"failures,omitempty"`
	// NextDue is when a decision changes by itself; zero: never.
	NextDue time.Time `json:"nextDue,omitzero"`
	// Again says that people answered, or were told, something that the next cycle should know at once.
	Again bool `json:"again,omitempty"`

	made []Made
}

// made notes a decision for the log.
func (r *Reconciler) made(report *Report, m Made) {
	if r.Decisions != nil {
		report.made = append(report.made, m)
	}
}

// madeOnly notes decisions of which nothing was carried out: why not is asked about them first of all.
func (r *Reconciler) madeOnly(report *Report, decisions []*Decision) {
	for _, d := range decisions {
		r.made(report, Made{Decision: d})
	}
}

// Once carries out one cycle: one commit for each environment at most, or for each AtOnce worker deployments of it. An error is about the cycle
// as a whole (the repository cannot be read, a push was refused); what goes wrong for one worker deployment is in the Report.
func (r *Reconciler) Once(ctx context.Context) (Report, error) {
	report, err := r.once(ctx)
	if len(report.made) > 0 {
		r.Decisions.Record(ctx, report.made)
	}
	return report, err
}

func (r *Reconciler) once(ctx context.Context) (Report, error) {
	report := Report{Failures: map[string]string{}}
	if r.Completer != nil {
		r.Completer.Begin()
	}
	now, err := r.read(ctx, &report)
	r.noteRead(err)
	if gone := r.notOurs(); err != nil && gone != nil {
		return report, fmt.Errorf("%w: %w", gone, err)
	}
	if err != nil {
		return report, errors.Join(err, r.lowerBlind(ctx, &report))
	}
	r.keepLast(now)
	report.World = now.World
	r.steady.begin(now.World)
	r.forgetGone(now.World)
	var names []string // what was read is not held on to: in parts, it is let go of by and by
	for _, env := range now.World.Environments {
		names = append(names, env.Environment.Name)
	}
	var errs []error
	for i, name := range names {
		if i > 0 && len(report.Commits) > 0 {
			if now, err = r.readAgain(ctx); err != nil {
				return report, errors.Join(append(errs, err)...)
			}
		}
		at := environmentAt(now, name)
		if at < 0 {
			continue
		}
		// A branch that refuses one environment's commits does not keep the others from theirs.
		if now, err = r.inTurns(ctx, now, at, &report); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return report, errors.Join(errs...)
}

func environmentAt(now reading, name string) int {
	return slices.IndexFunc(now.World.Environments, func(e rollout.EnvironmentWorld) bool { return e.Environment.Name == name })
}

// environment goes through what has its turn of one environment of a reading, from the start again when somebody else pushed meanwhile. It
// gives the environment as it was read last, and whether all was done.
func (r *Reconciler) environment(ctx context.Context, now reading, at int, report *Report) (env rollout.EnvironmentWorld, done bool, err error) {
	env = now.World.Environments[at]
	name := env.Environment.Name
	r.memory = newRecall(r.Now, r.Limits.FactMaxAge/2)
	defer func() { r.memory = nil }()
	var tips []string
	for try := range MaxTries {
		if try > 0 {
			r.memory.again()
			if err := sleep(ctx, Backoff(try)); err != nil {
				return env, false, err
			}
			if now, err = r.readAgain(ctx); err != nil {
				return env, false, err
			}
			if at = environmentAt(now, name); at < 0 {
				return env, false, nil
			}
			env = now.World.Environments[at]
			if !slices.Contains(tips, env.Base) {
				tips = append(tips, env.Base)
			}
		}
		if done, err = r.attempt(ctx, env, now, report); !errors.Is(err, rollout.ErrMoved) {
			return env, done, err
		}
		r.Log.InfoContext(ctx, "the branch moved: starting over", "environment", name, "try", try+1, "error", err)
	}
	return env, false, fmt.Errorf("gave up after %d tries, in which others had it at %s: %w", MaxTries, strings.Join(tips, ", "), err)
}

// attempt is one pass: decide, lower, commit, raise. It is not done where what it came to was proposed.
func (r *Reconciler) attempt(ctx context.Context, env rollout.EnvironmentWorld, of reading, report *Report) (done bool, failed error) {
	name := env.Environment.Name
	var unread error
	defer func() {
		// One that cannot be read keeps no other's traffic where it is. It is due again in the next cycle.
		if !errors.Is(failed, rollout.ErrMoved) {
			failed = errors.Join(failed, unread)
		}
	}()
	due := r.steady.turnOf(name, r.steady.due(ctx, r, env), r.atOnce(env))
	snapshots, unread := of.fill(ctx, r.steady.known(name, of.Brief(name, due)))
	r.steady.keep(name, snapshots)
	for i := range snapshots {
		snapshots[i].Failure = r.failures[snapshots[i].Deployment]
	}
	r.review(env, snapshots)
	r.blind, r.blindSince = env.Unrecorded, time.Time{}
	decisions, err := r.decideAndLower(ctx, env, snapshots, report)
	r.blind = false
	if err != nil {
		return false, err
	}
	if env.Unrecorded { // traffic was taken back, and its record cannot be read
		r.madeOnly(report, decisions)
		report.Decisions, report.LookedAt = append(report.Decisions, decisions...), report.LookedAt+len(decisions)
		return true, nil
	}
	r.delete(ctx, env, decisions, report)
	decisions, dropped, err := withManifests(ctx, of, decisions)
	r.madeOnly(report, dropped)
	unread = errors.Join(unread, err)
	wrote, err := r.write(ctx, env, decisions, report)
	if err != nil {
		return false, r.elsewhere(ctx, wrote.commit, err)
	}
	decisions, hash := wrote.decisions, wrote.hash
	if hash != "" {
		report.Commits = append(report.Commits, hash)
		r.Log.InfoContext(ctx, "committed", "environment", env.Environment.Name, "commit", hash, "files", len(wrote.commit.Changes))
		r.last = withRecords(r.last, env.Environment.Name, decisions)
	}
	if hash == "" && raises(decisions) && !r.unmoved(ctx, env) {
		return false, fmt.Errorf("nothing is raised on what was committed before: %w", rollout.ErrMoved)
	}
	if err := r.raise(ctx, env, decisions, report); err != nil {
		return false, err
	}
	report.Decisions, report.LookedAt = append(report.Decisions, decisions...), report.LookedAt+len(decisions)
	r.remember(env, decisions)
	for _, d := range decisions {
		report.NextDue = earlier(report.NextDue, d.Plan.NextDue)
	}
	return true, nil
}

// review fills in what became of proposals.
func (r *Reconciler) review(env rollout.EnvironmentWorld, snapshots []rollout.Snapshot) {
	if r.Proposer == nil {
		return
	}
	reviews, approvers := r.Proposer.Reviews(env.Environment.Name), r.Proposer.Approvers(env.Environment.Name)
	for i := range snapshots {
		if is, ok := reviews[snapshots[i].Deployment]; ok {
			snapshots[i].Review = &is
		}
		if is, ok := approvers[snapshots[i].Deployment]; ok && env.ByOther {
			snapshots[i].Approver = &is
		}
	}
}

// decideAndLower decides for worker deployments and takes traffic back: what is urgent before metrics are waited for.
func (r *Reconciler) decideAndLower(ctx context.Context, env rollout.EnvironmentWorld, snapshots []rollout.Snapshot, report *Report) ([]*Decision, error) {
	urgent, rest, err := r.decideEarly(ctx, env, snapshots)
	if err != nil {
		return nil, err
	}
	r.noteSeen(urgent)
	r.noteSeen(rest)
	urgent = r.lower(ctx, env, r.check(ctx, urgent, report), report)
	if rest, err = r.decideLate(ctx, env, rest); err != nil {
		return nil, err
	}
	return inOrder(urgent, r.lower(ctx, env, r.check(ctx, rest, report), report)), nil
}

// check drops plans that would do what must never happen. That is a defect of ours: it is reported loudly, and nothing
// of the plan is carried out.
func (r *Reconciler) check(ctx context.Context, decisions []*Decision, report *Report) []*Decision {
	var out []*Decision
	for _, d := range decisions {
		if never := plan.Never(d.Snapshot, d.Plan); len(never) > 0 {
			r.fail(ctx, d, report, rollout.Problem{Reason: rollout.PlanGenerationFailed, Message: "the plan was refused: " + never[0]})
			r.madeOnly(report, []*Decision{d})
			continue
		}
		out = append(out, d)
	}
	return out
}

// SubjectOf is the worker deployment of a snapshot that Temporal was asked about, as calls to Temporal name it.
func SubjectOf(s rollout.Snapshot) Subject {
	return Subject{Connection: *plan.ConnectionOf(s), Deployment: s.Deployment, TemporalNamespace: plan.TemporalNamespace(s),
		Identity: s.Environment.ManagerIdentity}
}

// forget makes sure that a worker deployment that is about to change is observed again.
func (r *Reconciler) forget(d *Decision) {
	if r.memory != nil {
		r.memory.forget(d.Plan.Deployment)
	}
}

// delete asks the server to delete versions whose scale-down is in Git, and decides again where it refused.
func (r *Reconciler) delete(ctx context.Context, env rollout.EnvironmentWorld, decisions []*Decision, report *Report) {
	for i, d := range decisions {
		var answers []rollout.Deletion
		for _, id := range d.Plan.Deletions {
			r.forget(d)
			done, err := r.Helper.DeleteVersion(ctx, SubjectOf(d.Snapshot), id)
			if err != nil {
				r.notDone(ctx, d, report, fmt.Errorf("delete version %s: %w", id, err))
				continue
			}
			r.Log.InfoContext(ctx, "asked to delete version", "deployment", d.Plan.Deployment.String(), "buildID", id, "refused", done.Refused)
			answers = append(answers, done)
		}
		if len(answers) > 0 {
			r.made(report, Made{Decision: d, Done: true})
			s := d.Snapshot
			s.Deletions = slices.Concat(s.Deletions, answers)
			decisions[i] = Decide(ctx, r.JudgeFor(env), s)
			r.tell(ctx, decisions[i])
		}
	}
}

// raise starts gates and moves traffic up, after the push: only what is in Git reaches Temporal.
func (r *Reconciler) raise(ctx context.Context, env rollout.EnvironmentWorld, decisions []*Decision, report *Report) error {
	if !r.confirmed(ctx, env, decisions) {
		return fmt.Errorf("the specs changed while %s was pushed: %w", env.Environment.Output.Branch, rollout.ErrMoved)
	}
	for _, d := range decisions {
		r.made(report, Made{Decision: d, Done: r.carryOut(ctx, d, report)})
	}
	return nil
}

// carryOut starts what a decision starts, and moves its traffic up. It reports whether any of that was done.
func (r *Reconciler) carryOut(ctx context.Context, d *Decision, report *Report) (done bool) {
	failed := false
	for _, g := range d.Plan.Gates {
		if err := r.Helper.StartGate(ctx, SubjectOf(d.Snapshot), g); err != nil {
			r.notDone(ctx, d, report, fmt.Errorf("start gate %s on %s: %w", g.Gate.WorkflowType, g.TaskQueue, err))
			failed = true
		} else {
			done = true
		}
	}
	if d.Plan.Raise != nil && r.Now().Sub(d.Snapshot.Observation.At) > r.Limits.FactMaxAge {
		// What it was decided on grew old while others were written: it is decided again in the next cycle.
		r.Log.InfoContext(ctx, "not raised on old facts", "deployment", d.Plan.Deployment.String())
		return done
	}
	if d.Plan.Raise != nil {
		err := r.Router.Raise(ctx, SubjectOf(d.Snapshot), *d.Plan.Raise)
		if r.noteSet(d, *d.Plan.Raise, err); err != nil {
			r.notDone(ctx, d, report, fmt.Errorf("raise traffic: %w", err))
			failed = true
		} else {
			r.Log.InfoContext(ctx, "raised traffic", "deployment", d.Plan.Deployment.String(), "row", d.Plan.Row)
			done = true
		}
	}
	batches := r.startBatches(ctx, d, report)
	if !failed && !batches.failed && d.Plan.Row != "" {
		delete(r.failures, d.Plan.Deployment)
	}
	return done || batches.started
}

// raises reports whether something is to be raised, or moved to another version.
func raises(decisions []*Decision) bool {
	return slices.ContainsFunc(decisions, func(d *Decision) bool { return d.Plan.Raise != nil || len(d.Plan.Batches) > 0 })
}

// unmoved reads the output's branch again where nothing was pushed to it, and so nothing compared: what a person committed meanwhile counts.
func (r *Reconciler) unmoved(ctx context.Context, env rollout.EnvironmentWorld) bool {
	now, err := r.survey(ctx)
	if err != nil {
		r.Log.WarnContext(ctx, "the repository could not be read again: traffic is not raised", "error", err)
		return false
	}
	return slices.ContainsFunc(now.World.Environments, func(e rollout.EnvironmentWorld) bool {
		return e.Environment.Name == env.Environment.Name && e.Base == env.Base
	})
}

// confirmed reads the specs' branch again when the output is on another one: the push did not compare it.
func (r *Reconciler) confirmed(ctx context.Context, env rollout.EnvironmentWorld, decisions []*Decision) bool {
	if env.Environment.Output.Branch == "" {
		return true
	}
	specs := map[string]string{}
	for _, d := range decisions {
		if d.Plan.Raise != nil || len(d.Plan.Batches) > 0 {
			for _, f := range d.Snapshot.SpecFiles() {
				specs[f.Path] = f.Blob
			}
		}
	}
	if len(specs) == 0 {
		return true
	}
	ok, err := r.Committer.Confirm(ctx, specs)
	if err != nil {
		r.Log.WarnContext(ctx, "the specs' branch could not be read again: traffic is not raised", "error", err)
	}
	return ok && err == nil
}

// DefaultPatience is how long a repository is waited for unless the Reconciler says otherwise.
const DefaultPatience = 15 * time.Second

// read waits for the repository. One that does not answer, or a little at a time, does not keep traffic from being taken back.
func (r *Reconciler) read(ctx context.Context, report *Report) (reading, error) {
	if r.last == nil {
		return r.survey(ctx)
	}
	type answer struct {
		now reading
		err error
	}
	came := make(chan answer, 1)
	go func() {
		now, err := r.survey(ctx)
		came <- answer{now, err}
	}()
	patience := time.NewTicker(cmp.Or(r.Patience, DefaultPatience))
	defer patience.Stop()
	for {
		select {
		case a := <-came:
			return a.now, a.err
		case <-patience.C:
			r.Log.WarnContext(ctx, "the repository does not answer yet: traffic is taken back on what was known of it")
			if err := r.aside().lowerBlind(ctx, report); err != nil && ctx.Err() == nil {
				r.Log.ErrorContext(ctx, "traffic could not be taken back while the repository is waited for", "error", err)
			}
		}
	}
}

// coarse is an error whose words are for the log alone: in Git stands what kind of failure it is.
type coarse interface {
	error
	Coarse() string
}

// notDone notes that a call did not work, and reports whether that is a failure. One that came too late, or that
// Temporal was too busy for, is none: the next cycle decides again.
func (r *Reconciler) notDone(ctx context.Context, d *Decision, report *Report, err error) (failed bool) {
	if errors.Is(err, rollout.ErrStale) {
		r.Log.InfoContext(ctx, "the routing moved meanwhile: the plan is discarded", "deployment", d.Plan.Deployment.String(), "error", err)
		return false
	}
	if errors.Is(err, rollout.ErrBusy) {
		r.Log.WarnContext(ctx, "Temporal is too busy: decided again in the next cycle", "deployment", d.Plan.Deployment.String(), "error", err)
		return false
	}
	message := err.Error()
	var hidden coarse
	if errors.As(err, &hidden) {
		message = hidden.Coarse()
		r.Log.ErrorContext(ctx, "call to Temporal failed", "deployment", d.Plan.Deployment.String(), "error", err)
	}
	r.fail(ctx, d, report, rollout.Problem{Reason: rollout.PlanExecutionFailed, Message: message})
	return true
}

func (r *Reconciler) fail(ctx context.Context, d *Decision, report *Report, p rollout.Problem) {
	if r.failures == nil {
		r.failures = map[rollout.Name]*rollout.Problem{}
	}
	r.failures[d.Plan.Deployment] = &p
	report.Failures[d.Plan.Deployment.String()] = p.Message
	r.Log.ErrorContext(ctx, "plan not carried out", "deployment", d.Plan.Deployment.String(), "reason", string(p.Reason), "error", p.Message)
}

// Backoff is the pause before a try, from 1: it doubles from 50 ms, with jitter so that two writers do not keep meeting.
func Backoff(try int) time.Duration {
	d := 50 * time.Millisecond << try
	return d/2 + rand.N(d/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
