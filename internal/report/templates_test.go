package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.NotContains(t, NewStatus(s).message(), "template")
}
