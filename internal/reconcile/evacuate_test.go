package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// stranded is a scene in which version old has lost its traffic to the one that the spec asks for, and workflows stay
// on it.
func stranded(t *testing.T) (*scene, *Reconciler) {
	s := newScene(t)
	r := s.reconciler()
	d := &s.world.Environments[0].Deployments[0]
	d.Spec.Spec.Sunset.Evacuate = &v1alpha1.Evacuation{CancelAfter: v1alpha1.Duration{Duration: time.Hour}}
	s.once(r)
	s.ready()
	s.once(r)
	id := d.Record.Routing.Spec.Target.BuildID
	d.Record.Routing.Spec.Versions = append(d.Record.Routing.Spec.Versions, v1alpha1.RecordedVersion{BuildID: "old", BuildIDFrom: v1alpha1.BuildIDCustom,
		Deployment: "checkout-old", Guard: v1alpha1.GuardOn, ConnectionHash: d.Connection.Spec.Hash()})
	s.obs.Routing = rollout.RoutingConfig{Current: id, CurrentChangedAt: s.now.Add(-2 * time.Hour)}
	lost := s.now.Add(-2 * time.Hour)
	e := rollout.Evacuation{Stage: v1alpha1.EvacuateByCancel, Attempt: 1, Since: lost}
	s.obs.Versions = append(s.obs.Versions, rollout.VersionObservation{BuildID: "old", Drainage: rollout.Draining, DeactivatedAt: lost, OpenPinned: rollout.Counted(2)})
	s.obs.Batches = rollout.Batches{OthersRun: rollout.No, Jobs: []rollout.BatchJob{
		{JobID: rollout.EvacuationJobID(d.Deployment, "old", e), State: rollout.BatchMissing}}}
	s.calls = nil
	return s, r
}

func (s *scene) evacuations() string {
	out := ""
	for _, v := range s.world.Environments[0].Deployments[0].Record.Routing.Spec.Versions {
		for _, e := range v.Evacuations {
			out += fmt.Sprintf("%s %s", e.Stage, e.State)
		}
	}
	return out
}

// A job is in Git before it starts, and starts until Temporal knows it.
func TestBatchFollowsTheCommit(t *testing.T) {
	s, r := stranded(t)
	s.batchError = fmt.Errorf("start: %w", rollout.ErrBatchBusy)
	report := s.once(r)
	require.Len(t, report.Commits, 1)
	require.Empty(t, report.Failures, "a busy namespace is no failure")
	require.Equal(t, "Cancel Running", s.evacuations())
	require.Equal(t, []string{"batch"}, s.calls)

	s.batchError = errors.New("refused")
	report = s.once(r)
	require.Empty(t, report.Commits)
	require.Contains(t, report.Failures["shop/checkout"], "evacuate version old: refused")
	require.Equal(t, []string{"batch", "batch"}, s.calls)

	s.batchError = nil
	s.obs.Batches.Jobs[0].State = rollout.BatchRunning
	require.Empty(t, s.once(r).Failures)
	require.Equal(t, []string{"batch", "batch"}, s.calls, "what runs is not started again")
}

// Facts that grew old while the commit was pushed start nothing.
func TestOldFactsEvacuateNothing(t *testing.T) {
	s, r := stranded(t)
	s.later = 2 * time.Minute
	require.Len(t, s.once(r).Commits, 1)
	require.Empty(t, s.calls)
	require.Equal(t, "Cancel Running", s.evacuations())
}
