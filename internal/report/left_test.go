package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What is left behind shows where people look, with what to do by the tool that applies the environment.
func TestLeftBehindShows(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := rollout.Snapshot{Now: now, Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}}
	s.Environment.Output.Path = "./deploy/prod"
	s.Record.Status = &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{
		LeftBehind: []v1alpha1.LeftBehind{
			{BuildID: "v1", Deployment: "checkout-v1", ScaledDownAt: v1alpha1.NewTime(now.Add(-3 * time.Hour))},
			{BuildID: "v0", Deployment: "checkout-v0", RemovedAt: v1alpha1.NewTime(now.Add(-48 * time.Hour))}},
		Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Reason: "RolloutComplete", Message: "complete"}}}}
	for tool, name := range map[v1alpha1.CDTool]string{
		v1alpha1.ArgoCD: "ArgoCD", v1alpha1.Flux: "Flux", v1alpha1.Both: "ArgoCD or Flux",
	} {
		s.Environment.CD.Tool = tool
		var table, text strings.Builder
		require.NoError(t, WriteStatuses(&table, []Status{NewStatus(s)}, now))
		require.Contains(t, table.String(),
			"v1: scaled down in Git 3h ago, still polling; v0: removed from Git 2d ago, still polling; complete")
		require.NoError(t, NewExplanation(s).WriteText(&text, View{Now: now}))
		require.Contains(t, text.String(), "\nv1: scaled down in Git 3h ago, still polling\n  "+name+
			" did not apply that: see that it syncs deploy/prod, or: "+
			"kubectl scale -n payments deployment/checkout-v1 --replicas 0\n")
		require.Contains(t, text.String(), "\nv0: removed from Git 2d ago, still polling\n  "+name+
			" did not prune it: kubectl delete -n payments deployment/checkout-v0\n")
	}
}
