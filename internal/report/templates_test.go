package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A template that cannot be used shows where people look, whatever the state is.
func TestUnusableTemplatesShow(t *testing.T) {
	s := rollout.Snapshot{Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, Resources: []rollout.ResourceTemplate{
		{Name: "hpa"}, {Name: "pdb", Problem: &rollout.Problem{Reason: rollout.InvalidSpec, Message: "pdb.yaml:3: no\x1b[2J"}}},
		ResourcesProblem: &rollout.Problem{Reason: rollout.InvalidSpec, Message: "a.yaml:1: no YAML"}}
	var table, text strings.Builder
	require.NoError(t, WriteStatuses(&table, []Status{NewStatus(s)}, s.Now))
	require.Contains(t, table.String(), "a template cannot be read: a.yaml:1: no YAML; ")
	require.NoError(t, NewExplanation(s).WriteText(&text, View{Now: s.Now}))
	require.Contains(t, text.String(), "Template  a template cannot be read: a.yaml:1: no YAML; what was made from it stays as it is\n")
	require.Contains(t, text.String(), "Template  template pdb cannot be used: pdb.yaml:3: no")
	require.NotContains(t, text.String(), "\x1b[2J")
	require.NotContains(t, text.String(), "hpa")

	s.Resources, s.ResourcesProblem = s.Resources[:1], nil
	require.NotContains(t, NewStatus(s).message(s.Now), "template")
}

// What an older server lacks shows where people look.
func TestOlderServerShows(t *testing.T) {
	said := rollout.ReportedProblems.OlderServer("1.29.1")
	s := rollout.Snapshot{Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}}
	s.Record.Status = &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{OlderServer: said,
		Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Reason: "Ramping", Message: "10% to v2"}}}}
	var table, text strings.Builder
	require.NoError(t, WriteStatuses(&table, []Status{NewStatus(s)}, s.Now))
	require.Contains(t, table.String(), "10% to v2; Temporal 1.29.1 cannot count workflows")
	require.NoError(t, NewExplanation(s).WriteText(&text, View{Now: s.Now}))
	require.Contains(t, text.String(), "Server    "+said+"\n")
}
