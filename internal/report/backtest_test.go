package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestDifferences(t *testing.T) {
	verdict := func(effect rollout.Effect, rules ...string) rollout.Verdict {
		v := rollout.Verdict{Effect: effect}
		for _, r := range rules {
			v.Findings = append(v.Findings, rollout.Finding{Rule: r, Effect: effect})
		}
		return v
	}
	warned := verdict(rollout.Allow)
	warned.Findings = []rollout.Finding{{Rule: "a.warn", Effect: rollout.Warn}, {Rule: "a.waived", Effect: rollout.HoldEffect, Waived: "x"}}
	adopted, reverted := verdict(rollout.Allow), verdict(rollout.Allow)
	adopted.Drift, reverted.Drift = rollout.DriftAdopt, rollout.DriftRevert
	recorded := rollout.Verdicts{Spec: verdict(rollout.HoldEffect, "spec.images"), Actions: map[string]rollout.Verdict{
		"same": verdict(rollout.HoldEffect, "b", "a"), "warned": verdict(rollout.Allow), "stricter": verdict(rollout.RequireApproval, "a"),
		"other": verdict(rollout.HoldEffect, "a"), "drift": adopted, "gone": verdict(rollout.Allow)}}
	now := rollout.Verdicts{Spec: verdict(rollout.Allow), Actions: map[string]rollout.Verdict{
		"same": verdict(rollout.HoldEffect, "a", "b"), "warned": warned, "stricter": verdict(rollout.RollbackEffect, "a"),
		"other": verdict(rollout.HoldEffect, "b"), "drift": reverted}}
	got := map[string]Change{}
	for _, d := range Differences(recorded, now) {
		got[d.Action] = d.Change
	}
	require.Equal(t, map[string]Change{"": Looser, "stricter": Stricter, "other": Otherwise, "drift": Otherwise, "gone": Stricter}, got)
	require.Empty(t, Differences(recorded, recorded))
}
