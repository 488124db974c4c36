package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// The action that is held most is explained; of equals one about the target; of those the first.
func TestDecisiveAction(t *testing.T) {
	d, err := policy.DecodeDocument([]byte(`{"plan": {"target": {"buildID": "v2"}}, "actions": [{"id": "a", "kind": "Continue", "buildID": "v1"},
		{"id": "b", "kind": "Continue", "buildID": "v2"}, {"id": "c", "kind": "Ramp", "buildID": "v2"}, {"id": "d", "kind": "Other", "buildID": "v2"}]}`))
	require.NoError(t, err)
	for want, effects := range map[string][3]rollout.Effect{
		"b": {rollout.Allow, rollout.Allow, rollout.Allow},
		"a": {rollout.HoldEffect, rollout.RequireApproval, rollout.Allow},
		"c": {rollout.HoldEffect, rollout.Allow, rollout.HoldEffect},
	} {
		verdicts := rollout.Verdicts{Actions: map[string]rollout.Verdict{}}
		for i, id := range []string{"a", "b", "c"} {
			verdicts.Actions[id] = rollout.Verdict{Effect: effects[i]}
		}
		got, err := decisiveAction(d, verdicts)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := decisiveAction(d, rollout.Verdicts{})
	require.NoError(t, err)
	require.Empty(t, got, "policy was asked about none")
}
