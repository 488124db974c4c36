package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// divide puts all worker deployments but the first into an environment of their own.
func (s *spread) divide() (first, second string) {
	env := &s.world.Environments[0]
	other := *env
	other.Environment.Name = "second"
	other.Deployments = slices.Clone(env.Deployments[1:])
	for i := range other.Deployments {
		other.Deployments[i].Environment.Name = "second"
	}
	env.Deployments = env.Deployments[:1]
	s.world.Environments = append(s.world.Environments, other)
	return s.world.Environments[0].Environment.Name, "second"
}

// A commit that may be proposed has with it what all namespaces of its environment decide, in every cycle. A part of it
// would take its place in the pull request, and reviews would be lost.
func TestUndividedCommitIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "slow", "well", "slower")
		s.delays["slow"], s.delays["slower"] = 4*time.Second, 6*time.Second // for each of two questions
		s.world.Environments[0].Environment.PullRequests.OnProtectedBranch = v1alpha1.ProposeCommits
		r := s.reconciler()
		r.Proposer = &desk{}
		for range 20 {
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		require.Greater(t, len(s.commits), 3)
		for _, c := range s.commits {
			require.Equal(t, "w000 w001 w002", committed(c))
		}
		r.Close()
	})
}

// While the commit of one environment takes long, what another one decided is dropped, since traffic is lowered
// meanwhile by what was read last. In the next cycle it comes first.
func TestSlowPushHoldsNoOtherEnvironmentUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "one", "other")
		first, second := s.divide()
		s.delays["other"] = time.Millisecond // the first is done first
		r := s.reconciler()
		c := &slowPushes{spread: s, takes: func(environment string) time.Duration {
			if environment == first {
				return 2*DefaultPatience + 5*time.Second
			}
			return 0
		}}
		r.Committer = c
		for range 4 {
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, []string{first, second, first, first, second, first}, c.pushed)
		r.Close()
	})
}

// stalls is a Source whose files do not come, but for those that are here already.
type stalls struct {
	*spread
	missing rollout.Name
	after   time.Duration
}

func (f stalls) Survey(ctx context.Context) (rollout.Survey, func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
	world, err := f.Read(ctx)
	survey, _ := Surveyed(world)
	return survey, func(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.Snapshot, error) {
		select {
		case <-time.After(f.after):
			return snapshots, nil
		case <-ctx.Done():
			return slices.DeleteFunc(slices.Clone(snapshots), func(s rollout.Snapshot) bool { return s.Deployment == f.missing }), ctx.Err()
		}
	}, err
}

// unlisted is a Lister that knows nothing.
type unlisted struct{}

func (unlisted) List(context.Context, v1alpha1.Connection, string) (*rollout.Listing, error) {
	return &rollout.Listing{}, nil
}

// Files that do not come, from a repository that answers otherwise, do not keep the traffic of others where it is.
func TestFilesThatDoNotComeKeepNoTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "one", "other")
		s.verdicts[s.name(1)] = rollback("rollout.canary")
		r := s.reconciler()
		r.Surveyor, r.Lister = stalls{s, s.name(0), 10 * time.Minute}, unlisted{}
		began := time.Now()
		var lowered time.Duration
		go func() {
			for len(s.happened()) == 0 {
				time.Sleep(time.Second)
			}
			lowered = time.Since(began)
		}()
		_, err := r.Cycle(t.Context())
		require.NoError(t, err)
		require.Equal(t, "lower w001", s.happened()[0])
		require.InDelta(t, DefaultPatience, lowered, float64(time.Second), "at the end of its patience")
		r.Close()
	})
}

// While the records of an environment cannot be read, the repository may stop to answer: traffic is lowered by no more
// than before.
func TestUnrecordedEnvironmentWhileTheRepositoryIsAway(t *testing.T) {
	f := newFleet(t, 1)
	r := f.reconciler()
	f.once(r)
	env := &f.world.Environments[0]
	env.Unrecorded, env.Unusable = true, &rollout.Problem{Reason: rollout.InvalidConfiguration, Message: "no"}
	f.observed[f.name(0)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: f.now}
	f.once(r)
	report := newReport()
	require.NoError(t, r.lowerBlind(t.Context(), &report, true))
	require.NotContains(t, f.events, "lower w000", "what Git asks for is not known")
}

// A version that was seen to be drained more than a minute ago may have traffic by now.
func TestScaleDownIsDecidedOnNewFacts(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	report := newReport()
	made := func(kind rollout.ActionKind, age time.Duration) *rollout.Decision {
		d := &rollout.Decision{Snapshot: s.world.Environments[0].Deployments[0]}
		d.Snapshot.Observation.At, d.Plan.Actions = s.now.Add(-age), []rollout.Action{{Kind: kind}}
		return d
	}
	most := r.Limits.FactMaxAge
	kept := []*rollout.Decision{made(rollout.ScaleDown, most), made(rollout.CreateVersion, most+time.Second), made(rollout.RemoveFiles, most+time.Second)}
	all := append([]*rollout.Decision{made(rollout.ScaleDown, most+time.Second)}, kept...)
	require.Equal(t, kept, r.recent(t.Context(), all, &report))
	require.NotContains(t, all, (*rollout.Decision)(nil), "the next try has them all")
	require.True(t, report.More, "it is decided again at once")
	require.Empty(t, report.problems)
	require.Empty(t, report.made)
	require.Zero(t, r.resync.Waiting(keyOf(all[0])))
}

// A raise that is left out of the commit with an old decision to scale down says so in the next status. The worker
// deployment is among the first in the next cycle.
func TestRaiseThatIsLeftOutSaysSo(t *testing.T) {
	for name, p := range map[string]rollout.Plan{"traffic": {Raise: &rollout.RoutingCall{}}, "workflows": {Batches: []rollout.BatchStart{{}}}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			r := s.reconciler()
			d := &rollout.Decision{Snapshot: s.world.Environments[0].Deployments[0], Plan: p}
			d.Snapshot.Observation.At, d.Plan.Actions = s.now.Add(-r.Limits.FactMaxAge-time.Second), []rollout.Action{{Kind: rollout.ScaleDown}}
			report := newReport()
			for range 2 { // the second try to commit
				require.Empty(t, r.recent(t.Context(), []*rollout.Decision{d}, &report))
			}
			r.end(t.Context(), &report)
			said := r.failures[keyOf(d)]
			require.NotNil(t, said)
			require.Equal(t, rollout.StaleFacts, said.Reason)
			require.Contains(t, said.Message, "not raised: when its commit was made, what was seen of Temporal was more than 1m0s old")
			require.Equal(t, s.now, r.resync.Waiting(keyOf(d)))
			require.True(t, report.More)
			require.Equal(t, []rollout.Made{{Decision: d}}, report.made)
			require.Empty(t, report.Failures, "no call failed")
		})
	}
}

// Raises that a cycle has no time for come first in the next one, before what is to be raised again.
func TestRaisesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, "a", "b", "c")
		c.most, c.now = 3, time.Now()
		r := c.reconciler()
		r.Router, r.Groups.Time = raisesTake(DefaultGroupLimits().Time*3/4, r.Router), DefaultGroupLimits().Time
		c.once(r)
		c.once(r)
		require.Equal(t, []string{"a SetRamp", "b SetRamp"}, c.calls)
		c.now = c.now.Add(2 * time.Minute)
		c.once(r)
		require.Equal(t, []string{"a SetRamp", "b SetRamp", "c SetRamp", "a SetCurrent"}, c.calls)
	})
}

// looks is a spread whose policies look at a commit status. It keeps when that was read, and what the context said.
type looks struct {
	*spread
	read []string
}

func (l *looks) Looks() rollout.Looks { return rollout.Looks{Statuses: []string{"cd"}} }

// reader gives a status, and keeps whether there was time for it.
type reader struct{ *looks }

func (l reader) Read(ctx context.Context, q rollout.StatusQuestion) []map[string]rollout.Fact {
	l.read = append(l.read, fmt.Sprint(time.Since(l.now), " ", ctx.Err()))
	out := make([]map[string]rollout.Fact, len(q.Versions))
	for i := range out {
		out[i] = map[string]rollout.Fact{rollout.StatusFacts + "cd": {Value: json.RawMessage(`"success"`)}}
	}
	return out
}

// sleepy is a Router whose calls that lower take longer than a group has for observing. Afterwards the repository is in
// use for a second.
type sleepy struct {
	Router
	repository *lock
}

func (s sleepy) Lower(ctx context.Context, _ rollout.Subject, _ rollout.RoutingCall) error {
	time.Sleep(DefaultGroupLimits().Time + time.Second)
	release, err := s.repository.take(ctx)
	if err == nil {
		time.AfterFunc(time.Second, release)
	}
	return err
}

// What has to be read of others has its time, however long it took to lower traffic.
func TestLoweringTakesNoTimeFromObserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looks{spread: newSpread(t, "one", "one")}
		l.verdicts[l.name(0)] = rollback("rollout.canary")
		r := l.reconciler()
		r.JudgeFor = func(rollout.EnvironmentWorld) Judge { return l }
		r.Router, r.Statuses, r.Groups.Wait = sleepy{r.Router, &r.repository}, reader{l}, 0
		_, err := r.Cycle(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"22s <nil>"}, l.read)
	})
}

// Late groups of an environment that is not in the configuration any more end: they delete and raise nothing, and
// nothing is kept of them.
func TestGroupsOfARemovedEnvironmentEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "well", "slow")
		s.delays["slow"] = 4 * time.Second // for each of two questions
		_, second := s.divide()
		r := s.reconciler()
		cycle := func() {
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
		}
		cycle()
		require.Len(t, r.running.groups, 1)
		s.world.Environments = s.world.Environments[:1]
		cycle()
		for key, g := range r.running.groups {
			require.Equal(t, second, key.environment)
			require.True(t, g.isWithdrawn(rollout.Name{Namespace: "shop", Name: "w001"}))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		cycle()
		require.Empty(t, r.running.groups)
		require.Empty(t, r.running.members)
		r.Close()
	})
}

// Pods that moved while a namespace had a group at work are looked at afterwards.
func TestPodsThatMovedMeanwhile(t *testing.T) {
	c := &cluster{}
	c.say(time.Now(), 2)
	seen := &resync.Pods{Said: podsSaid(c.says)}
	require.False(t, podsMoved(t.Context(), c, seen))
	c.say(time.Now(), 1)
	for range 2 {
		require.True(t, podsMoved(t.Context(), c, seen), "until it is decided")
	}
	c.say(time.Now(), 2)
	require.False(t, podsMoved(t.Context(), c, seen))
	c.says.Problem = "not asked again"
	require.False(t, podsMoved(t.Context(), c, seen))
}

// unconfirmed is a Committer for whom the specs have moved after each push.
type unconfirmed struct{ *scene }

func (unconfirmed) Confirm(context.Context, map[string]string) (bool, error) { return false, nil }

// A decision that was committed is in the decision log, also where its raise was given up since the specs moved.
func TestCommittedDecisionsAreLogged(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.world.Environments[0].Environment.Output.Branch = "deploy"
	m := logged(s, r)
	s.once(r)
	s.ready()
	r.Committer = unconfirmed{s}
	before := len(s.commits)
	_, err := r.Cycle(t.Context())
	require.NoError(t, err)
	require.Len(t, s.commits, before+1)
	require.Equal(t, []string{"WaitingForPromotion false"}, m.last())
}
