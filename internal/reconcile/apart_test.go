package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// slow is a repository that does not answer until traffic was taken back.
type slow struct {
	*scene
	hang   bool
	lowers chan struct{}
}

func (s *slow) Read(ctx context.Context) (rollout.World, error) {
	if !s.hang {
		return s.scene.Read(ctx)
	}
	select {
	case <-s.lowers:
		return s.scene.Read(ctx)
	case <-ctx.Done():
		return rollout.World{}, ctx.Err()
	}
}

func (s *slow) Lower(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	err := s.scene.Lower(ctx, on, call)
	s.obs.Routing = rollout.RoutingConfig{} // it is done
	close(s.lowers)
	return err
}

// Origins may not be asked for while the repository is read.
func (s *slow) Origins(context.Context, []rollout.Snapshot) ([]rollout.GitContext, error) {
	s.t.Error("the repository is used by two at a time")
	return nil, errors.New("busy")
}

func (s *slow) Looks() rollout.Looks { return rollout.Looks{All: s.hang} }

// A repository that is waited for does not keep traffic from being taken back.
func TestSlowRepositoryHoldsNoLoweringUp(t *testing.T) {
	s := &slow{scene: newScene(t), lowers: make(chan struct{})}
	r := s.reconciler()
	r.Source, r.History, r.Router = s, s, s
	r.JudgeFor = func(rollout.EnvironmentWorld) Judge { return s }
	s.once(r)
	r.Patience = 10 * time.Millisecond // from now on: the scene's Commit changes what a lowering reads
	s.ready()
	s.hang = true
	s.obs.Routing = rollout.RoutingConfig{HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: s.now}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		report := newReport()
		_, err := r.waitForTip(ctx, &report)
		done <- err
	}()
	require.NoError(t, <-done, "it was waited for until it came")
	require.Equal(t, []string{"lower"}, s.calls)
}

// hanging is a repository whose pushes hang until traffic was taken back. From then on a ramp is seen that is to go.
type hanging struct {
	*slow
	pushing atomic.Bool
}

func (h *hanging) Commit(ctx context.Context, _ rollout.Commit) (string, error) {
	h.pushing.Store(true)
	select {
	case <-h.lowers:
		return "abc", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (h *hanging) Observe(ctx context.Context, c v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	o := h.slow.Observe(ctx, c, ask)
	select {
	case <-h.lowers:
	default:
		if h.pushing.Load() {
			o.Routing = rollout.RoutingConfig{HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: h.now}
		}
	}
	return o
}

// A push that hangs does not keep traffic from being taken back.
func TestHangingPushHoldsNoLoweringUp(t *testing.T) {
	h := &hanging{slow: &slow{scene: newScene(t), lowers: make(chan struct{})}}
	r := h.reconciler()
	r.Committer = h.scene
	h.once(r)
	h.ready()
	r.Source, r.Router, r.Observer, r.Committer, r.Patience = h.scene, h.slow, h, h, 10*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	report, err := r.Cycle(ctx)
	require.NoError(t, err)
	require.Contains(t, h.calls, "lower")
	require.Len(t, report.Commits, 1, "it was waited for until it came")
}

// One worker deployment's name in two environments is two worker deployments: what fails for one says nothing of the
// other.
func TestFailureIsOfOneEnvironment(t *testing.T) {
	for _, fails := range []string{"default", "second"} {
		c := newCrowd(t, "a")
		c.most = 2
		second := c.world.Environments[0]
		second.Environment.Name, second.Environment.ManagerIdentity = "second", "rampart/default"
		second.Environment.Output.Path = "second"
		second.Deployments = slices.Clone(second.Deployments)
		d := &second.Deployments[0]
		spec := *d.Spec
		spec.Spec.WorkerOptions.TemporalNamespace = "second"
		d.Environment, d.Record.Dir, d.Spec = second.Environment, "second/"+d.Deployment.String(), &spec
		c.world.Environments = append(c.world.Environments, second)
		r := c.reconciler()
		r.Router = raisesNothingIn{c, map[string]string{"default": c.world.Environments[0].Deployments[0].Spec.Spec.WorkerOptions.TemporalNamespace, "second": "second"}[fails]}
		for range 3 {
			c.now = c.now.Add(time.Minute)
			report := c.once(r)
			for _, d := range report.Decisions {
				require.True(t, d.Snapshot.Failure == nil || d.Snapshot.Environment.Name == fails, "%s fails, %s", fails, d.Snapshot.Environment.Name)
			}
		}
		require.Equal(t, []resync.Key{{Env: fails, Name: d.Deployment}}, slices.Collect(maps.Keys(r.failures)))
	}
}

// raisesNothingIn is a Router whose raises in a Temporal namespace fail.
type raisesNothingIn struct {
	Router
	namespace string
}

func (f raisesNothingIn) Raise(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	if on.TemporalNamespace == f.namespace {
		return errors.New("refused")
	}
	return nil
}

// refusing refuses the commits of an environment.
type refusing struct {
	Committer
	environment string
	err         error
	took        []string
}

func (c *refusing) Commit(_ context.Context, commit rollout.Commit) (string, error) {
	if commit.Environment.Name == c.environment {
		return "", c.err
	}
	c.took = append(c.took, commit.Environment.Name)
	return "abc", nil
}

// A branch that refuses the commits of one environment does not keep the others from theirs.
func TestRefusedEnvironmentHoldsNoOtherUp(t *testing.T) {
	s := newScene(t)
	second := s.world.Environments[0]
	second.Environment.Name = "second"
	second.Deployments = append([]rollout.Snapshot{}, second.Deployments...)
	second.Deployments[0].Environment.Name = "second"
	s.world.Environments = append(s.world.Environments, second)
	r := s.reconciler()
	protected := errors.New("the branch is protected")
	c := &refusing{Committer: s, environment: s.world.Environments[0].Environment.Name, err: protected}
	r.Committer = c
	report, err := r.Cycle(t.Context())
	require.ErrorIs(t, err, protected)
	require.ErrorContains(t, err, "environment "+c.environment)
	require.Equal(t, []string{"second"}, c.took)
	require.Len(t, report.Commits, 1)
}

// partly is a repository in which one worker deployment cannot be read.
type partly struct {
	*scene
	unread error
	// ended says of each time that snapshots were loaded whether the server could be asked.
	ended []bool
}

func (p *partly) Survey(ctx context.Context) (rollout.Survey, func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
	world, err := p.Read(ctx)
	survey, _ := Surveyed(world)
	return survey, func(ctx context.Context, all []rollout.Snapshot) (loaded []rollout.Snapshot, err error) {
		p.ended = append(p.ended, ctx.Err() != nil)
		for _, s := range all {
			if s.Deployment.Name == "other" {
				err = p.unread
				continue
			}
			loaded = append(loaded, s)
		}
		return loaded, err
	}, err
}

// TestUnreadHoldsNoOtherUp: what cannot be read of one worker deployment is told, and holds no other up. The others are
// committed, and their traffic is taken back while the repository is away. Then the server is not asked for what the
// bot does not have.
func TestUnreadHoldsNoOtherUp(t *testing.T) {
	s := newScene(t)
	other := s.world.Environments[0].Deployments[0]
	other.Deployment.Name = "other"
	s.world.Environments[0].Deployments = append(s.world.Environments[0].Deployments, other)
	p := &partly{scene: s, unread: errors.New("its blobs do not come")}
	r := s.reconciler()
	r.Source, r.Surveyor, r.Lister = p, p, lister{}
	r.JudgeFor = func(rollout.EnvironmentWorld) Judge { return s }
	_, err := r.Cycle(t.Context())
	require.ErrorIs(t, err, p.unread)
	require.Len(t, s.commits, 1)
	require.Contains(t, s.commits[0].Message, "shop/checkout")

	s.ready()
	s.now = s.now.Add(2 * DefaultPatience)
	s.obs.Routing = rollout.RoutingConfig{HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: s.now}
	s.readErr, p.ended = errors.New("the repository is away"), nil
	_, err = r.Cycle(t.Context())
	require.ErrorIs(t, err, p.unread)
	require.ErrorIs(t, err, s.readErr)
	require.Equal(t, []string{"lower"}, s.calls)
	require.Equal(t, []bool{true}, p.ended)
}
