package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// meanwhile does something else right before Temporal answers for the first time.
type meanwhile struct {
	*scene
	do func()
}

func (m *meanwhile) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return m.scene.Observe(ctx, conn, ask)
}

// TestAnotherBotsRaiseIsNoDrift: another bot commits and carries out, after the record was read and before Temporal was
// read. That does not count as drift, and nothing is taken back. It does count where the record is still the same, or
// cannot be had.
func TestAnotherBotsRaiseIsNoDrift(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(s *scene, d *rollout.Snapshot)
		calls     []string
	}{
		"committed by another bot": {meanwhile: func(_ *scene, d *rollout.Snapshot) { d.Record.Tree = "another" }},
		"asked for by a new spec":  {meanwhile: func(_ *scene, d *rollout.Snapshot) { d.Git.SpecBlob = "another" }},
		"raised by hand":           {meanwhile: func(*scene, *rollout.Snapshot) {}, calls: []string{"lower"}},
		"the repository is away":   {meanwhile: func(s *scene, _ *rollout.Snapshot) { s.readErr = errors.New("away") }, calls: []string{"lower"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := server{newScene(t)}
			r := s.reconciler()
			r.Source = s
			s.once(r)
			s.ready()
			r.Observer = &meanwhile{s.scene, func() {
				s.obs.Routing = rollout.RoutingConfig{HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: s.now}
				c.meanwhile(s.scene, &s.world.Environments[0].Deployments[0])
			}}
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.calls, s.calls)
		})
	}
}

// stuck is a Router that lowers nothing.
type stuck struct {
	*scene
	err error
}

func (r *stuck) Lower(context.Context, rollout.Subject, rollout.RoutingCall) error { return r.err }

// Traffic that could not be taken back is told in the status, once, and nothing else changes. What came too late, or
// was asked of a busy Temporal, is tried again without a word.
func TestNotLoweredIsTold(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	s.once(r)
	router := &stuck{scene: s}
	r.Router = router
	record := &s.world.Environments[0].Deployments[0].Record
	s.obs.Routing.HasRamp, s.obs.Routing.Ramping, s.obs.Routing.Percentage = true, "other", 10
	routing, committed := record.Routing.Spec, len(s.commits)
	for _, err := range []error{rollout.ErrStale, rollout.ErrBusy} {
		router.err = err
		s.once(r)
		require.Len(t, s.commits, committed)
	}
	router.err = errors.New("not you")
	for range 3 {
		report := s.once(r)
		require.Equal(t, map[string]string{"shop/checkout": "take traffic back: not you"}, report.Failures)
		require.Len(t, s.commits, committed+1)
		ready := record.Status.Status.Conditions[0]
		require.Equal(t, []string{"PlanExecutionFailed", "take traffic back: not you"}, []string{ready.Reason, ready.Message})
		require.Equal(t, routing, record.Routing.Spec)
	}
	router.err = nil
	report := s.once(r)
	require.Empty(t, report.Failures)
	require.NotEqual(t, "PlanExecutionFailed", record.Status.Status.Conditions[0].Reason)
}

// What is known of a version takes traffic back at once, whatever the record says.
func TestVerdictsWaitForNoRecord(t *testing.T) {
	f := newFleet(t, 1)
	f.observed[f.name(0)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: f.target, Percentage: 10, PercentageChangedAt: f.now}
	f.verdicts[f.name(0)] = rollback("rollout.canary")
	r := f.reconciler()
	reads := &counted{Source: r.Source}
	r.Source = reads
	f.once(r)
	require.Contains(t, f.events, "lower w000")
	require.Equal(t, 1, reads.times)
}

type counted struct {
	Source
	times int
}

func (c *counted) Read(ctx context.Context) (rollout.World, error) {
	c.times++
	return c.Source.Read(ctx)
}
