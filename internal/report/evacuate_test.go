package report

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// An explanation names the stages of every version, how they ended, and what a person has to do.
func TestExplainEvacuation(t *testing.T) {
	name, env := named("payments/checkout")
	at := func(d time.Duration) v1alpha1.Time { return v1alpha1.NewTime(now.Add(-d)) }
	e := NewExplanation(rollout.Snapshot{Deployment: name, Environment: env, Record: rollout.Record{
		Dir:     "deploy/payments/checkout",
		Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Versions: []v1alpha1.RecordedVersion{{BuildID: "v1"}, {BuildID: "v2"}}}},
		Status: &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{DeprecatedVersions: []v1alpha1.VersionStatus{
			{BuildID: "v1", Status: "Draining", Evacuation: []v1alpha1.EvacuationStatus{
				{Stage: v1alpha1.EvacuateBySignal, State: "Completed", StartedAt: at(3 * time.Hour), EndedAt: at(2 * time.Hour), Total: 5, Done: 4, Failed: 1},
				{Stage: v1alpha1.EvacuateByCancel, State: "Running", StartedAt: at(time.Hour)},
				{Stage: v1alpha1.EvacuateByTermination, State: "Proposed", Message: "waits\nfor approval"},
			}},
		}}},
	}})
	var out bytes.Buffer
	require.NoError(t, e.WriteText(&out, View{Style: Plain, Now: now}))
	require.Contains(t, out.String(), `
Workflows that stay on old versions
  v1: Signal Completed 2026-03-02T10:00:00Z (2h ago), 4 of 5 workflows
  v1: Cancel Running since 2026-03-02T11:00:00Z (1h ago)
  v1: Terminate Proposed: waits for approval
`)
	e.Versions[0].Evacuation = nil
	out.Reset()
	require.NoError(t, e.WriteText(&out, View{Style: Plain, Now: now}))
	require.NotContains(t, out.String(), "stay on old versions")
}
