package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// While the repository is away everything that takes traffic back does so for ten minutes. A verdict does for as long
// as the routing is what the bot read, or set, last. What somebody else moved meanwhile is theirs.
func TestBlindLowering(t *testing.T) {
	ramp := func(f *fleet, build string, percentage float32, at time.Time) rollout.RoutingConfig {
		return rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: build, Percentage: percentage, PercentageChangedAt: at}
	}
	for name, c := range map[string]struct {
		later     time.Duration
		meanwhile func(f *fleet)
		lowered   bool
	}{
		"a verdict":             {time.Minute, func(f *fleet) { f.verdicts[f.name(0)] = rollback("rollout.canary") }, true},
		"a verdict, after days": {72 * time.Hour, func(f *fleet) { f.verdicts[f.name(0)] = rollback("rollout.canary") }, true},
		"a verdict on what somebody raised": {11 * time.Minute, func(f *fleet) {
			f.verdicts[f.name(0)] = rollback("rollout.canary")
			f.observed[f.name(0)] = ramp(f, f.target, 50, f.now)
		}, false},
		"a verdict on what went and came back": {11 * time.Minute, func(f *fleet) {
			f.verdicts[f.name(0)] = rollback("rollout.canary")
			f.observed[f.name(0)] = ramp(f, f.target, 10, f.now)
		}, false},
		"what the spec does not ask for":           {9 * time.Minute, func(f *fleet) { f.observed[f.name(0)] = ramp(f, "other", 10, f.now) }, true},
		"what the spec did not ask for long since": {11 * time.Minute, func(f *fleet) { f.observed[f.name(0)] = ramp(f, "other", 10, f.now) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1)
			f.observed[f.name(0)] = ramp(f, f.target, 10, f.now)
			r := f.reconciler()
			f.once(r)
			f.events, f.readErr = nil, errors.New("away")
			f.now = f.now.Add(c.later)
			c.meanwhile(f)
			_, err := r.Cycle(t.Context())
			require.ErrorContains(t, err, "away")
			require.Equal(t, c.lowered, contains(f.events, "lower w000"), "%v", f.events)
		})
	}
}

func contains(events []string, event string) bool {
	for _, e := range events {
		if e == event {
			return true
		}
	}
	return false
}

// What the bot set itself while the repository was away is what it knows, with whatever times the server gave it.
func TestBlindAfterOwnCall(t *testing.T) {
	for name, failed := range map[string]error{"answered": nil, "the answer was lost": errors.New("lost"), "refused as stale": fmt.Errorf("no: %w", rollout.ErrStale)} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1)
			r := f.reconciler()
			f.once(r)
			d := &rollout.Decision{Snapshot: f.world.Environments[0].Deployments[0]}
			d.Snapshot.Observation.Routing = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: f.now}
			r.absence.seen[keyOf(d)] = seenRouting{routing: d.Snapshot.Observation.Routing}
			r.absence.noteSet(d, rollout.RoutingCall{Steps: []rollout.RoutingStep{{Kind: rollout.ClearRamp}, {Kind: rollout.SetRamp, BuildID: "new", Percentage: 5}}}, failed)
			require.Equal(t, failed != nil, r.absence.isAsSeen(d), "as it was")
			d.Snapshot.Observation.Routing = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: "new", Percentage: 5, PercentageChangedAt: f.now.Add(time.Second)}
			require.Equal(t, !errors.Is(failed, rollout.ErrStale), r.absence.isAsSeen(d))
			d.Snapshot.Observation.Routing.PercentageChangedAt = f.now.Add(time.Minute)
			require.False(t, r.absence.isAsSeen(d), "set again by somebody")
		})
	}
}

// A ramp ends when its version becomes current: what was set is what is seen then.
func TestBlindAfterOwnPromotion(t *testing.T) {
	d := &rollout.Decision{}
	d.Snapshot.Observation.Routing = rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 50}
	var a absence
	a.noteSet(d, rollout.RoutingCall{Steps: []rollout.RoutingStep{{Kind: rollout.SetCurrent, BuildID: "v2"}}}, nil)
	d.Snapshot.Observation.Routing = rollout.RoutingConfig{Current: "v2"}
	require.True(t, a.isAsSeen(d))
	d.Snapshot.Observation.Routing = rollout.RoutingConfig{Current: "v2", HasRamp: true, Ramping: "v3", Percentage: 50}
	require.False(t, a.isAsSeen(d), "somebody ramps another one")
}

// A repository that refuses the bot, or is gone, for an hour is not its own any more: it touches nothing, and says so.
// One that is only away in between does not start the hour over; one that is read again does.
func TestRefusedRepositoryIsNotOurs(t *testing.T) {
	refused, away := fmt.Errorf("401: %w", rollout.ErrRefused), errors.New("away")
	f := newFleet(t, 1)
	f.observed[f.name(0)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: f.target, Percentage: 10, PercentageChangedAt: f.now}
	r := f.reconciler()
	f.once(r)
	cycle := func(later time.Duration, fails error) (lowered bool, err error) {
		f.now, f.events, f.readErr = f.now.Add(later), nil, fails
		f.verdicts[f.name(0)] = rollback("rollout.canary")
		_, err = r.Cycle(t.Context())
		return contains(f.events, "lower w000"), err
	}
	lowered, err := cycle(time.Minute, refused)
	require.True(t, lowered, "it may be a mistake")
	require.NotErrorIs(t, err, rollout.ErrNotOurs)
	f.observed[f.name(0)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: f.target, Percentage: 10, PercentageChangedAt: f.now}
	delete(r.absence.seen, resync.Key{Env: f.world.Environments[0].Environment.Name, Name: f.world.Environments[0].Deployments[0].Deployment})
	_, err = cycle(time.Minute, nil)
	require.NoError(t, err, "read again")
	f.observed[f.name(0)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: f.target, Percentage: 10, PercentageChangedAt: f.now}
	_, err = cycle(0, nil)
	require.NoError(t, err)
	for _, step := range []struct {
		later time.Duration
		fails error
	}{{time.Minute, refused}, {30 * time.Minute, away}, {29 * time.Minute, refused}} {
		_, err = cycle(step.later, step.fails)
		require.NotErrorIs(t, err, rollout.ErrNotOurs)
	}
	for _, fails := range []error{refused, away} {
		lowered, err = cycle(time.Minute, fails)
		require.ErrorIs(t, err, rollout.ErrNotOurs)
		require.ErrorContains(t, err, "so nothing is touched: ")
		require.False(t, lowered)
		require.Empty(t, f.events, "nothing is asked either")
	}
}

// Records that cannot be read lower by verdicts alone, and nothing is committed.
func TestUnrecordedEnvironment(t *testing.T) {
	f := newFleet(t, 1)
	f.observed[f.name(0)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: f.target, Percentage: 10, PercentageChangedAt: f.now}
	r := f.reconciler()
	f.once(r)
	env := &f.world.Environments[0]
	env.Unrecorded, env.Unusable = true, &rollout.Problem{Reason: rollout.InvalidConfiguration, Message: "no"}
	f.events = nil
	f.verdicts[f.name(0)] = rollback("rollout.canary")
	report := f.once(r)
	require.Equal(t, []string{"lower w000"}, f.events)
	require.Empty(t, report.Commits)
	require.Len(t, report.Decisions, 1)

	f.events, f.verdicts = nil, map[rollout.Name]rollout.Verdict{}
	f.observed[f.name(0)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: f.now}
	f.once(r)
	require.NotContains(t, f.events, "lower w000", "what Git asks for is not known")
}

// After days without the repository a verdict and a failed gate lower, and nothing else does.
func TestBlindAfterDays(t *testing.T) {
	for cause, may := range map[rollout.Cause]bool{
		rollout.CauseVerdict: true, rollout.CauseGate: true, rollout.CauseSpec: false, rollout.CauseBarred: false,
	} {
		t.Run(string(cause), func(t *testing.T) {
			f := newFleet(t, 1)
			r := f.reconciler()
			f.once(r)
			d := &rollout.Decision{Snapshot: f.world.Environments[0].Deployments[0]}
			d.Snapshot.Observation.Routing = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: "new", Percentage: 10, PercentageChangedAt: f.now}
			r.absence.seen[keyOf(d)] = seenRouting{routing: d.Snapshot.Observation.Routing}
			d.Plan.Actions = []rollout.Action{{Kind: rollout.Rollback, BuildID: "old", From: 10, To: 0, Cause: cause}}
			require.True(t, d.Plan.Actions[0].Lowers())
			g := &group{blind: true, since: f.now}
			f.now = f.now.Add(72 * time.Hour)
			require.Equal(t, may, r.refuseBlind(g, d) == "", r.refuseBlind(g, d))
		})
	}
}

// timed is a Router that keeps how long after its begin it lowered which worker deployments.
type timed struct {
	*spread
	begin time.Time
	at    map[string]time.Duration
}

func (l *timed) Lower(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	l.mu.Lock()
	l.at[on.Deployment.Name] = time.Since(l.begin)
	l.mu.Unlock()
	return l.spread.Lower(ctx, on, call)
}

// awayFor runs a cycle that reads the repository, then one without it in which every worker deployment is rolled back.
// It gives when each was lowered, and how long the second cycle took.
func (s *spread) awayFor(r *Reconciler, delays map[string]time.Duration) (at map[string]time.Duration,
	took time.Duration) {
	_, err := r.Cycle(s.t.Context())
	require.NoError(s.t, err)
	s.delays, s.readErr = delays, errors.New("away")
	for _, env := range s.world.Environments {
		for _, d := range env.Deployments {
			s.verdicts[d.Deployment] = rollback("rollout.canary")
		}
	}
	l := &timed{spread: s, begin: time.Now(), at: map[string]time.Duration{}}
	r.Router = l
	_, err = r.Cycle(s.t.Context())
	require.ErrorContains(s.t, err, "away")
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(l.at), time.Since(l.begin)
}

// While the repository is away, environments take the time of the slowest, not the sum.
func TestEnvironmentsAreLoweredBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, delays := newSpread(t, "n0", "n1", "n2", "n3", "n4"), map[string]time.Duration{}
		s.apart()
		for i := range 5 {
			delays[fmt.Sprint("n", i)] = time.Second + time.Duration(i)*200*time.Millisecond
		}
		r := s.reconciler()
		defer r.Close()
		at, took := s.awayFor(r, delays)
		require.Len(t, at, 5)
		require.Equal(t, slices.Max(slices.Collect(maps.Values(at))), took)
		require.LessOrEqual(t, took, 2*1800*time.Millisecond, "two questions of the slowest")
	})
}

// While the repository is away, a namespace that hangs delays no rollback of another environment. That holds also where
// the other one has more worker deployments than are decided at once.
func TestHangingEnvironmentWithoutTheRepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "hung", "well", "well", "well")
		s.divide()
		r := s.reconciler()
		defer r.Close()
		r.MaxDue = 1
		at, took := s.awayFor(r, map[string]time.Duration{"hung": never})
		require.Equal(t, map[string]time.Duration{"w001": 0, "w002": 0, "w003": 0}, at)
		require.Equal(t, r.Groups.Wait, took, "it is waited for once")
	})
}
