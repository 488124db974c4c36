package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// memo is a log of decisions in memory.
type memo struct {
	cycles [][]rollout.Made
}

func (m *memo) Record(_ context.Context, made []rollout.Made) { m.cycles = append(m.cycles, made) }

// last is what the last cycle handed over: the reason of its state, and whether something was carried out.
func (m *memo) last() []string {
	var out []string
	for _, d := range m.cycles[len(m.cycles)-1] {
		out = append(out, fmt.Sprint(d.Proposal.State.Reason, " ", d.Done))
	}
	return out
}

func logged(s *scene, r *Reconciler) *memo {
	m := &memo{}
	r.Decisions = m
	return m
}

func TestDecisionsAreHandedOver(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	m := logged(s, r)
	s.once(r)
	require.Equal(t, []string{"WaitingForPollers false"}, m.last())
	s.ready()
	s.once(r)
	require.Equal(t, []string{"WaitingForPromotion true"}, m.last(), "it was raised")
	require.NotNil(t, m.cycles[1][0].Plan.Raise)

	old := newScene(t)
	r = old.reconciler()
	m = logged(old, r)
	old.once(r)
	old.ready()
	old.later = 2 * time.Minute
	old.once(r)
	require.Equal(t, []string{"WaitingForPromotion false"}, m.last(), "facts grew old: nothing was raised")
}

// A cycle that starts over hands over what it decided at last.
func TestDecisionsOfAMovingBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.moved = 2
		r := s.reconciler()
		m := logged(s, r)
		s.once(r)
		require.Len(t, m.last(), 1)

		s = newScene(t)
		s.moved = MaxTries + 1
		r = s.reconciler()
		m = logged(s, r)
		_, err := r.Cycle(t.Context())
		require.Error(t, err)
		require.Empty(t, m.cycles, "nothing came of it")
	})
}

// What was lowered is recorded though the repository is away.
func TestBlindLoweringIsHandedOver(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	m := logged(s, r)
	s.once(r)
	s.ready()
	s.readErr = errors.New("away")
	s.now = s.now.Add(2 * DefaultPatience)
	s.obs.Routing = rollout.RoutingConfig{HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: s.now}
	_, err := r.Cycle(t.Context())
	require.Error(t, err)
	require.Equal(t, []string{"lower"}, s.calls)
	require.Len(t, m.cycles, 2)
	require.Len(t, m.last(), 1)
	require.True(t, m.cycles[1][0].Done)
	require.NotNil(t, m.cycles[1][0].Plan.Lower)
}

// A batch job that waits for room was not carried out, however often it is tried.
func TestBatchesAreHandedOver(t *testing.T) {
	s, r := stranded(t)
	m := logged(s, r)
	s.batchError = fmt.Errorf("start: %w", rollout.ErrBatchBusy)
	s.once(r)
	require.False(t, m.cycles[0][0].Done)
	s.batchError = nil
	s.once(r)
	require.True(t, m.cycles[1][0].Done)
	require.Equal(t, []string{"batch", "batch"}, s.calls)
}

// Why nothing happens is asked above all when nothing can be pushed.
func TestDecisionsOfARefusedPush(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	m := logged(s, r)
	s.commitErr = errors.New("the branch is protected")
	_, err := r.Cycle(t.Context())
	require.ErrorIs(t, err, s.commitErr)
	require.Len(t, m.cycles, 1)
	require.Equal(t, []string{"WaitingForPollers false"}, m.last())
	s.commitErr = nil
	s.once(r)
	require.Equal(t, []string{"WaitingForPollers false"}, m.last())
}

func TestRefusedPlansAreHandedOver(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	m := logged(s, r)
	s.once(r)
	s.ready()
	s.once(r)
	wrong := *m.cycles[1][0].Decision
	d := &wrong
	require.NotNil(t, d.Plan.Raise)
	d.Plan.Lower = d.Plan.Raise // no lowering
	report := newReport()
	require.Empty(t, r.check(t.Context(), []*rollout.Decision{d}, &report))
	require.Equal(t, []rollout.Made{{Decision: d}}, report.made)

	report = newReport()
	commit, kept, err := r.compose(t.Context(), s.world.Environments[0], []*rollout.Decision{d}, &report)
	require.NoError(t, err)
	require.Empty(t, kept)
	require.Empty(t, commit.Changes)
	require.Equal(t, []rollout.Made{{Decision: d}}, report.made)
}
