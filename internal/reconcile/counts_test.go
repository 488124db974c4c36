package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What no policy looks at is not counted for one. A look without policies counts everything.
func TestUncounted(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	r.JudgeFor = func(rollout.EnvironmentWorld) Judge {
		return looker{window{s, time.Time{}}, []string{rollout.PartCounts(rollout.PhaseRamp)}}
	}
	require.Equal(t, []rollout.CanaryPhase{rollout.PhaseNone, rollout.PhaseBake, rollout.PhaseWindow},
		s.once(r).Decisions[0].Snapshot.Uncounted)
	r.JudgeFor = nil
	world, err := r.Observe(t.Context())
	require.NoError(t, err)
	require.Empty(t, world.Environments[0].Deployments[0].Uncounted)
}
