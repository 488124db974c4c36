package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// All four kinds of evacuation are asked about, allowed by default, and can be held by what a policy sees of them.
func TestEvacuationIsJudged(t *testing.T) {
	testneed.Plain(t)
	seen := of(`package rampart.sunset

deny contains {"rule": "acme.seen", "msg": sprintf("%s %s %d %d", [e.stage, e.since, e.attempt, e.count])} if {
	e := input.action.evacuation
	time.parse_duration_ns(e.after) > 0
	not input.action.removes
	not input.action.lowers
	not input.action.raises
	object.get(e, "target", "-") != e.signal
}
`)
	for _, stage := range []v1alpha1.EvacuationStage{v1alpha1.EvacuateBySignal, v1alpha1.EvacuateByMove, v1alpha1.EvacuateByCancel, v1alpha1.EvacuateByTermination} {
		e := rollout.Evacuation{Stage: stage, Attempt: 2, Since: ago(time.Hour), After: 30 * time.Minute, Target: "v2", Signal: "go", JobID: "job", Open: 7}
		a := rollout.Action{ID: "evacuate", Kind: rollout.EvacuationKind(stage), BuildID: "v1", Evacuation: &e}
		got := judge(t, of(), a)
		require.Equal(t, rollout.Allow, got.Effect)
		require.Empty(t, got.Findings)
		got = judge(t, seen, a)
		require.Equal(t, rollout.HoldEffect, got.Effect)
		require.Equal(t, string(stage)+" 2026-03-03T11:00:00Z 2 7", got.Findings[0].Message)
	}
	many := Compile(Config{Data: []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {sunset: {evacuation: {maxWorkflows: 5}}}}"}}})
	a := rollout.Action{ID: "evacuate", Kind: rollout.SignalWorkflows, BuildID: "v1", Evacuation: &rollout.Evacuation{Stage: v1alpha1.EvacuateBySignal, Open: 7}}
	require.Equal(t, rollout.RequireApproval, judge(t, many, a).Effect)
}
