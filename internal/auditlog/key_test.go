package auditlog

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

func drawVerdict(t *rapid.T, name string) rollout.Verdict {
	v := rollout.Verdict{Effect: rapid.SampledFrom([]rollout.Effect{rollout.Allow, rollout.Warn, rollout.HoldEffect}).Draw(t, name)}
	for range rapid.IntRange(0, 3).Draw(t, name+" findings") {
		v.Findings = append(v.Findings, rollout.Finding{Package: "rampart.rollout", Effect: v.Effect, Message: rapid.SampledFrom([]string{"3 of 4", "4 of 4"}).Draw(t, "message"),
			Rule: rapid.SampledFrom([]string{"acme.one", "acme.two"}).Draw(t, "rule"), Waived: rapid.SampledFrom([]string{"", "w1"}).Draw(t, "waived")})
	}
	return v
}

// What is read back is compared with what is made: both have to say the same of one decision.
func TestKeyOfARecordedDecision(t *testing.T) {
	masker, err := mask.New()
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		d := rollout.Decision{Snapshot: rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: "checkout"}, Now: time.Unix(1e9, 0).UTC()}}
		d.Snapshot.Environment.Name = "prod"
		d.Proposal.State = rollout.State{Reason: rapid.SampledFrom([]rollout.Reason{rollout.Ramping, rollout.RolloutComplete}).Draw(t, "reason")}
		if rapid.Bool().Draw(t, "target") {
			d.Proposal.Target = &rollout.Target{BuildID: "v2"}
		}
		d.Plan.Verdicts = rollout.Verdicts{PolicyDigest: "sha256:1", Spec: drawVerdict(t, "spec"), Actions: map[string]rollout.Verdict{}}
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"Ramp/v2@10%", "ScaleDown/v1", "Continue/v2"}), 0, 3, rapid.ID[string]).Draw(t, "actions") {
			d.Proposal.Actions = append(d.Proposal.Actions, rollout.Action{ID: id, Kind: rollout.Ramp, BuildID: "v2"})
			if rapid.Bool().Draw(t, "asked") {
				d.Plan.Verdicts.Actions[id] = drawVerdict(t, id)
			}
		}
		document, err := policy.NewDocument(d.Snapshot, d.Proposal)
		require.NoError(t, err)
		input, err := json.Marshal(document)
		require.NoError(t, err)
		one, err := NewDecision(Judged{Now: d.Snapshot.Now, Input: input, Verdicts: d.Plan.Verdicts}, masker)
		require.NoError(t, err)
		s, k, err := recorded(one)
		require.NoError(t, err)
		require.Equal(t, subjectOf(&d), s)
		require.Equal(t, keyOf(&d), k)
	})
}

func TestKeyCostsNothing(t *testing.T) {
	d := rollout.Decision{}
	d.Plan.Verdicts.Actions = map[string]rollout.Verdict{"a": {Effect: rollout.HoldEffect, Findings: []rollout.Finding{{Rule: "x"}}}}
	d.Proposal.Actions = []rollout.Action{{ID: "a"}}
	l := &Log{handed: map[subject]handedOver{subjectOf(&d): {key: keyOf(&d)}}}
	made := []rollout.Made{{Decision: &d}}
	require.Zero(t, testing.AllocsPerRun(100, func() { l.Record(t.Context(), made) }))
}
