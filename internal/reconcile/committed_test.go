package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// server gives each reader a world of its own, as a repository does, and has drift reverted.
type server struct{ *scene }

func (s server) Read(context.Context) (rollout.World, error) {
	w := s.world
	w.Environments = slices.Clone(w.Environments)
	w.Environments[0].Deployments = slices.Clone(w.Environments[0].Deployments)
	return w, s.readErr
}

func (s server) Judge(ctx context.Context, snapshot rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	v := s.scene.Judge(ctx, snapshot, p)
	for id, verdict := range v.Actions {
		verdict.Drift = rollout.DriftRevert
		v.Actions[id] = verdict
	}
	return v
}

// A repository that goes away right after traffic was raised does not make that drift: what was committed is what is
// desired.
func TestOwnRaiseIsNoDriftWhileGitIsAway(t *testing.T) {
	s := server{newScene(t)}
	r := s.reconciler()
	r.Source, r.JudgeFor = s, func(rollout.EnvironmentWorld) Judge { return s }
	ramping := func(from string, percentage float32) {
		s.obs.Routing = rollout.RoutingConfig{Current: "old", HasRamp: from != "", Ramping: from, Percentage: percentage, PercentageChangedAt: s.now, CurrentChangedAt: s.now}
	}
	spec := s.world.Environments[0].Deployments[0].Spec
	spec.Spec.Rollout.Strategy, spec.Spec.Rollout.Steps = v1alpha1.Progressive, []v1alpha1.RolloutStep{
		{RampPercentage: 10, PauseDuration: v1alpha1.Duration{Duration: time.Minute}}, {RampPercentage: 50, PauseDuration: v1alpha1.Duration{Duration: time.Minute}}}
	old := rollout.VersionObservation{BuildID: "old", QueuesKnown: rollout.Yes, Queues: []rollout.TaskQueue{{Name: "q", Type: rollout.QueueWorkflow,
		Unversioned: rollout.No, Pollers: rollout.Pollers{Known: true, Count: 1, LastAccess: s.now}}}}
	s.obs = rollout.Observation{Exists: rollout.Yes, Versions: []rollout.VersionObservation{old}}
	ramping("", 0)
	s.once(r)
	s.ready()
	s.obs.Versions = append(s.obs.Versions, old)
	s.obs.Stuck = rollout.Stuck{Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}
	ramping("", 0)
	s.once(r)
	require.Equal(t, []string{"raise SetRamp"}, s.calls)
	ramping(s.obs.Versions[0].BuildID, 10)
	s.readErr = errors.New("away")
	_, err := r.Cycle(t.Context())
	require.ErrorIs(t, err, s.readErr)
	require.Equal(t, []string{"raise SetRamp"}, s.calls, "nothing is taken back")
}
