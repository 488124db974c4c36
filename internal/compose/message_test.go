package compose

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Text from specs and policies cannot forge a trailer or write control characters.
func TestMessage(t *testing.T) {
	d := &rollout.Decision{Plan: rollout.Plan{Deployment: rollout.Name{Namespace: "shop", Name: "checkout"}, PolicyHash: "sha256:aa",
		Summary: []string{"take traffic back: bad\n\nRampart-Policy: forged\x1b[31m"}}}
	require.Equal(t, "rampart(prod): shop/checkout: take traffic back: bad Rampart-Policy: forged\\u001b[31m\n\nshop/checkout\n"+
		"  take traffic back: bad Rampart-Policy: forged\\u001b[31m\n\nRampart-Policy: sha256:aa\n", message("prod", []*rollout.Decision{d}))
}

// A commit says what a raise goes on: what the version was judged by, and who waived which rule.
func TestMessageSaysTheGrounds(t *testing.T) {
	ramp := rollout.Action{ID: "Ramp/v2@50%", Kind: rollout.Ramp, BuildID: "v2", From: 10, To: 50, Reason: "its step is over"}
	finding := rollout.Finding{Rule: "org.cap", Effect: rollout.HoldEffect, Message: "at most 10%\nRampart-Policy: forged", Waived: "hotfix (ada, until 2026-03-01T00:00:00Z: INC-7)"}
	d := &rollout.Decision{Proposal: rollout.Proposal{Canary: &rollout.Canary{Candidate: "v2", Against: "v1", CandidateCounts: rollout.ArmCounts{Closed: 2981, Failed: 12},
		AgainstCounts: rollout.ArmCounts{Closed: 3000, Failed: 15}}}, Plan: rollout.Plan{Deployment: rollout.Name{Namespace: "shop", Name: "checkout"},
		Summary: []string{"ramp v2 at 50%"}, Actions: []rollout.Action{ramp, {ID: "Continue/v1", Kind: rollout.Continue, BuildID: "v1", Reason: "x"}},
		Verdicts: rollout.Verdicts{Actions: map[string]rollout.Verdict{ramp.ID: {Effect: rollout.Allow, Findings: []rollout.Finding{finding, {Rule: "org.other", Effect: rollout.Warn}}}}}}}
	require.Equal(t, `rampart(prod): shop/checkout: ramp v2 at 50%

shop/checkout
  ramp v2 at 50%
  because its step is over
  failed: 0.4% (12 of 2 981), against 0.5% (15 of 3 000) on v1
  waived org.cap: at most 10% Rampart-Policy: forged; by hotfix (ada, until 2026-03-01T00:00:00Z: INC-7)

`, message("prod", []*rollout.Decision{d}))
	d.Proposal.Canary.CandidateCounts = rollout.ArmCounts{Closed: 3, Failed: 3}
	require.Contains(t, message("prod", []*rollout.Decision{d}), "failed: 100% (3 of 3), against")
	d.Plan.Summary = []string{"take traffic back from v2: its step is over"}
	require.NotContains(t, message("prod", []*rollout.Decision{d}), "because", "the subject says why")
	d.Snapshot.SpecPath, d.Snapshot.Git.SpecBlob = "workers/checkout.yaml", "c0ffee"
	require.NotContains(t, message("prod", []*rollout.Decision{d}), "c0ffee")
	d.Snapshot.Environment.Output.Branch = "rendered"
	require.Contains(t, message("prod", []*rollout.Decision{d}), "\nRampart-Source: c0ffee workers/checkout.yaml\n", "of another branch")
	d.Proposal.Canary.Candidate = "v3"
	require.NotContains(t, message("prod", []*rollout.Decision{d}), "failed")
	d.Proposal.Canary = &rollout.Canary{Candidate: "v2", Against: "v1"}
	require.NotContains(t, message("prod", []*rollout.Decision{d}), "failed", "none closed")
}
