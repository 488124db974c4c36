package reconcile

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The real parts are joined in the end-to-end tests. Here are the cases that they cannot be made to produce: a
// repository that goes away at the wrong moment, facts that grow old while others are written, a branch that never
// stops moving.

const specText = `apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: shop}
spec:
  replicas: 1
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: shop}
  rollout: {strategy: AllAtOnce}
  template: {spec: {containers: [{name: worker, image: "app:v1"}]}}
---
apiVersion: temporal.io/v1alpha1
kind: TemporalConnection
metadata: {name: temporal, namespace: shop}
spec: {hostPort: "localhost:7233"}
`

// scene is a repository in memory, a Temporal with one ready version, and a policy that allows everything.
type scene struct {
	t       *testing.T
	now     time.Time
	world   rollout.World
	readErr error
	moved   int // commits that lose against somebody else
	// commitErr is what commits end with.
	commitErr error
	// pushes are commits that did not lose.
	pushes  int
	later   time.Duration
	commits []rollout.Commit
	calls   []string
	obs     rollout.Observation
	// raiseErr is what raising ends with.
	raiseErr error
	// batchError is what starting a batch job ends with, and deleteErr what deleting a version does.
	batchError, deleteErr error
}

func newScene(t *testing.T) *scene {
	t.Helper()
	docs, problems := v1alpha1.Decode("spec.yaml", []byte(specText))
	require.Empty(t, problems)
	env := v1alpha1.DefaultConfig().Spec.Environments[0]
	s := &scene{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s.world.Environments = []rollout.EnvironmentWorld{{Environment: env, Base: "base", Deployments: []rollout.Snapshot{{
		Deployment: rollout.Name{Namespace: "shop", Name: "checkout"}, Environment: env, SpecPath: "spec.yaml",
		Spec: docs[0].Object.(*v1alpha1.WorkerDeployment), Connection: docs[1].Object.(*v1alpha1.Connection),
		Record: rollout.Record{Dir: "deploy/shop/checkout"},
	}}}}
	return s
}

func (s *scene) Read(context.Context) (rollout.World, error) { return s.world, s.readErr }

func (s *scene) Observe(context.Context, v1alpha1.Connection, rollout.Ask) rollout.Observation {
	o := s.obs
	o.At = s.now
	if o.Exists == "" {
		o.Exists = rollout.No
	}
	return o
}

func (s *scene) Judge(_ context.Context, _ rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	v := rollout.Verdicts{Spec: rollout.Verdict{Effect: rollout.Allow}, Actions: map[string]rollout.Verdict{}}
	for _, a := range p.Actions {
		v.Actions[a.ID] = rollout.Verdict{Effect: rollout.Allow, Drift: rollout.DriftAdopt}
	}
	return v
}

func (s *scene) Digest() string { return "policies" }

func (s *scene) Looks() rollout.Looks { return rollout.Looks{} }

// Commit keeps what it is given as the record of the next read.
func (s *scene) Commit(_ context.Context, c rollout.Commit) (string, error) {
	if s.moved > 0 {
		s.moved--
		return "", fmt.Errorf("refused: %w", rollout.ErrMoved)
	}
	s.pushes++
	if s.commitErr != nil {
		return "", s.commitErr
	}
	s.commits = append(s.commits, c)
	d := &s.world.Environments[0].Deployments[0]
	d.Record.Tree = fmt.Sprint(len(s.commits))
	if d.Record.Files == nil {
		d.Record.Files = map[string]rollout.File{}
	}
	for _, f := range c.Changes {
		name, below := strings.CutPrefix(f.Path, d.Record.Dir+"/")
		if !below {
			if path.Base(f.Path) == "kustomization.yaml" {
				s.world.Environments[0].RootFile = rollout.File{Data: f.Data, Hash: blobHash(f.Data)}
			}
			continue
		}
		d.Record.Files[name] = rollout.File{Data: f.Data, Hash: blobHash(f.Data)}
		docs, problems := v1alpha1.Decode(name, []byte(f.Data))
		require.Empty(s.t, problems)
		switch object := docs[0].Object.(type) {
		case *v1alpha1.Routing:
			d.Record.Routing = object
		case *v1alpha1.WorkerDeployment:
			d.Record.Status = object
		}
	}
	s.now = s.now.Add(s.later)
	return d.Record.Tree, nil
}

// blobHash is Git's name of a content.
func blobHash(data string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(data), data))))
}

func (s *scene) Confirm(context.Context, map[string]string) (bool, error) { return true, nil }

func (s *scene) Lower(context.Context, rollout.Subject, rollout.RoutingCall) error {
	s.calls = append(s.calls, "lower")
	return nil
}

func (s *scene) Raise(_ context.Context, _ rollout.Subject, c rollout.RoutingCall) error {
	s.calls = append(s.calls, "raise "+string(c.Steps[0].Kind))
	return s.raiseErr
}

func (s *scene) StartGate(context.Context, rollout.Subject, rollout.GateStart) error { return nil }

func (s *scene) StartBatch(context.Context, rollout.Subject, rollout.BatchStart) error {
	s.calls = append(s.calls, "batch")
	return s.batchError
}

func (s *scene) DeleteVersion(context.Context, rollout.Subject, string) (rollout.Deletion, error) {
	return rollout.Deletion{}, cmp.Or(s.deleteErr, errors.New("unexpected"))
}

func (s *scene) reconciler() *Reconciler {
	return &Reconciler{Planner: &Planner{Source: s, Observer: s, JudgeFor: func(rollout.EnvironmentWorld) Judge { return s },
		Limits: rollout.DefaultLimits(), Now: func() time.Time { return s.now }, Log: slog.New(slog.DiscardHandler)},
		Committer: s, Router: s, Versions: s}
}

// ready lets the version's worker poll.
func (s *scene) ready() {
	id := s.world.Environments[0].Deployments[0].Record.Routing.Spec.Target.BuildID
	s.obs = rollout.Observation{Exists: rollout.Yes, Versions: []rollout.VersionObservation{{BuildID: id, QueuesKnown: rollout.Yes,
		Queues: []rollout.TaskQueue{{Name: "q", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
			Pollers: rollout.Pollers{Known: true, Count: 1, LastAccess: s.now}}}}}}
}

func (s *scene) once(r *Reconciler) Report {
	s.t.Helper()
	report, err := r.Cycle(s.t.Context())
	require.NoError(s.t, err)
	return report
}

func TestRaiseFollowsTheCommit(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	require.Len(t, s.once(r).Commits, 1, "the version's files")
	s.ready()
	require.Len(t, s.once(r).Commits, 1, "the promotion")
	require.Equal(t, []string{"raise SetCurrent"}, s.calls)
}

// A raise heals what failed in earlier cycles, and not the deletion of a version that failed in its own.
func TestARaiseHealsNoDeletion(t *testing.T) {
	busy := fmt.Errorf("too many: %w", rollout.ErrBusy)
	for name, test := range map[string]struct {
		deletions []string
		err       error
		says      string
	}{
		"the deletion fails":    {[]string{"v1"}, errors.New("no"), "delete version v1: no"},
		"Temporal is busy":      {[]string{"v1"}, busy, ""},
		"nothing to be deleted": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			r := s.reconciler()
			s.once(r)
			s.ready()
			s.deleteErr = test.err
			of := s.world.Environments[0].Deployments[0]
			of.Now, of.Observation = s.now, s.Observe(t.Context(), v1alpha1.Connection{}, rollout.Ask{})
			d := Decide(t.Context(), s, of)
			require.NotNil(t, d.Plan.Raise)
			d.Plan.Deletions = test.deletions
			r.keepFailures(map[resync.Key]*rollout.Problem{keyOf(d): {Reason: rollout.StaleFacts}})

			env, decisions := s.world.Environments[0], []*rollout.Decision{d}
			assesses := &group{env: env, judge: s, decisions: decisions, report: newReport()}
			r.delete(t.Context(), assesses)
			raises := &group{groupKey: groupKey{raises: true}, env: env, decisions: decisions, report: newReport()}
			require.True(t, r.carryOut(t.Context(), raises, d))
			report := newReport()
			report.merge(assessed{groups: []*group{assesses}}, r)
			report.merge(assessed{groups: []*group{raises}}, r)
			r.end(t.Context(), &report)
			says := ""
			if p := r.failures[keyOf(d)]; p != nil {
				says = p.Message
			}
			require.Equal(t, test.says, says)
		})
	}
}

// Facts that grew old while the commit was pushed raise nothing, and the next status says so. That cycle decides again
// and raises, and the one after it says that nothing is wrong any more.
func TestOldFactsRaiseNothing(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	s.later = 2 * time.Minute
	require.Len(t, s.once(r).Commits, 1)
	require.Empty(t, s.calls)
	s.later = 0
	s.ready()
	require.Len(t, s.once(r).Commits, 1, "the status")
	require.Equal(t, []string{"raise SetCurrent"}, s.calls)
	ready := s.readyCondition()
	require.Equal(t, string(rollout.StaleFacts), ready.Reason)
	require.Contains(t, ready.Message, "not raised: when its commit was pushed, what was seen of Temporal was more than 1m0s old")
	for _, c := range s.world.Environments[0].Deployments[0].Record.Status.Status.Conditions {
		require.False(t, c.Type == v1alpha1.ConditionStalled && c.Status == v1alpha1.True, "it is tried again at once")
	}
	s.ready()
	s.once(r)
	require.NotEqual(t, string(rollout.StaleFacts), s.readyCondition().Reason)
}

// readyCondition is the condition Ready of the status that was committed last.
func (s *scene) readyCondition() v1alpha1.Condition {
	s.t.Helper()
	for _, c := range s.world.Environments[0].Deployments[0].Record.Status.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return c
		}
	}
	s.t.Fatal("no condition Ready")
	return v1alpha1.Condition{}
}

// What was committed before is raised without a push, which would compare the branch, so the branch is read again.
// Somebody who committed meanwhile, or a repository that is away, keeps the raise from being made on what was read
// before.
func TestRaiseWithoutAPushLooksAgain(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(s *scene)
		calls     []string
		reads     int
	}{
		"nothing":               {func(*scene) {}, []string{"raise SetCurrent"}, 2},
		"somebody else commits": {func(s *scene) { s.world.Environments[0].Base = "theirs" }, []string{"raise SetCurrent"}, 4},
		"a person holds": {func(s *scene) {
			env := &s.world.Environments[0]
			env.Base = "held"
			routing := *env.Deployments[0].Record.Routing
			routing.Spec.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, By: "sam", Reason: "incident", At: v1alpha1.NewTime(s.now)}
			env.Deployments = slices.Clone(env.Deployments)
			env.Deployments[0].Record.Routing, env.Deployments[0].Record.Tree = &routing, "held"
		}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			r := s.reconciler()
			s.once(r)
			s.ready()
			s.later = 2 * time.Minute
			require.Len(t, s.once(r).Commits, 1, "too late to raise")
			s.ready()
			require.Len(t, s.once(r).Commits, 1, "the status, and too late again")
			s.ready()
			reads := &counted{Source: s}
			r.Source, r.Observer = reads, &meanwhile{s, func() { c.meanwhile(s) }}
			s.once(r)
			require.Equal(t, c.calls, s.calls)
			require.Equal(t, c.reads, reads.times)
		})
	}
}

// TestBusyServerIsNoFailure: a server that is too busy to raise does not count as a failure: the next cycle decides
// again, without a commit.
func TestBusyServerIsNoFailure(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	s.raiseErr = fmt.Errorf("set current: %w", rollout.ErrBusy)
	report := s.once(r)
	require.Len(t, report.Commits, 1)
	require.Empty(t, report.Failures)
	s.raiseErr = nil
	report = s.once(r)
	require.Empty(t, report.Commits, "it is in Git already, and nothing is said of it")
	require.Empty(t, report.Failures)
	require.Equal(t, []string{"raise SetCurrent", "raise SetCurrent"}, s.calls)
}

func TestMovingBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.moved = 2
		require.Len(t, s.once(s.reconciler()).Commits, 1, "it starts over")

		s = newScene(t)
		s.moved = MaxTries + 1
		_, err := s.reconciler().Cycle(t.Context())
		require.ErrorIs(t, err, rollout.ErrMoved)
		require.Empty(t, s.commits)

		// Who gives up says what was in the way.
		s = newScene(t)
		r, tries := s.reconciler(), 0
		r.Committer = commits(func(context.Context, rollout.Commit) (string, error) {
			tries++
			s.world.Environments[0].Base = fmt.Sprint("theirs-", tries/2)
			return "", rollout.ErrMoved
		})
		_, err = r.Cycle(t.Context())
		require.ErrorContains(t, err, "gave up after 8 attempts: the branch kept moving (tips seen: base, theirs-0, theirs-1, theirs-2, theirs-3): ")
	})
}

// With the repository away, what raises waits and what lowers does not.
func TestRepositoryAway(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	s.readErr = errors.New("away")
	_, err := r.Cycle(t.Context())
	require.ErrorContains(t, err, "away")
	require.Empty(t, s.calls)
	// A ramp to something that the spec does not ask for, as far as the bot knows.
	s.obs.Routing = rollout.RoutingConfig{HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: s.now}
	_, err = r.Cycle(t.Context())
	require.ErrorContains(t, err, "away")
	require.Empty(t, s.calls, "another bot may have committed it a moment ago")
	s.now = s.now.Add(2 * DefaultPatience)
	_, err = r.Cycle(t.Context())
	require.ErrorContains(t, err, "away")
	require.Equal(t, []string{"lower"}, s.calls)
}

// TestBusyServerIsQuiet: a server that is too busy to answer does not cause a transition: nothing is committed.
func TestBusyServerIsQuiet(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.obs = rollout.Observation{Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "too many requests", Busy: true}}
	require.Empty(t, s.once(r).Commits)
	s.obs.Problem.Busy = false
	require.Len(t, s.once(r).Commits, 1, "one that cannot be read is")
}
