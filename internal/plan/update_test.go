package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func inMode(mode v1alpha1.ApprovalMode) change {
	return func(g *given) { g.Environment.Approval.Mode = mode }
}

// anotherTemplate is v2 under its stable build ID, made from another template than the spec has.
func anotherTemplate(g *given) {
	custom("v2")(g)
	g.version("v2").TemplateHash = "old"
}

// waits has a proposal in the record.
func waits(p v1alpha1.RecordedProposal) change { return func(g *given) { g.rec.Proposal = &p } }

// TestUpdateInTraffic: a template that changes in place waits for approval once workflows run on the version, and not
// before.
func TestUpdateInTraffic(t *testing.T) {
	for _, c := range []struct {
		name    string
		given   change
		asks    bool
		lowered bool
	}{
		{"no traffic yet", candidate(), false, false},
		{"current", promoted(48 * time.Hour), true, false},
		{"ramping", rampsAt(10, time.Minute), true, true},
		{"draining", all(rampsAt(10, time.Minute), routes("v1", "", 0, time.Second), desires("v1", "", 0), drains("v2")), true, false},
		{"drainage unknown", all(rampsAt(10, time.Minute), routes("v1", "", 0, time.Second), desires("v1", "", 0), func(g *given) { g.listed("v2").DeactivatedAt = ago(time.Second) }), true, false},
		{"drained", all(rampsAt(10, time.Minute), routes("v1", "", 0, time.Second), desires("v1", "", 0), drained("v2", time.Hour)), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(c.given, anotherTemplate, inMode(v1alpha1.PullRequest))
			p := decide(t, s, allowed)
			require.Empty(t, oracle.Forbidden(s, p))
			require.Equal(t, c.lowered, p.Lower != nil, "what lowers does not wait")
			if !c.asks {
				require.Equal(t, []rollout.WriteOp{rollout.RenderVersion}, ops(p))
				require.Nil(t, p.Record.Proposal)
				return
			}
			require.Empty(t, p.Versions)
			require.Equal(t, "AwaitingApproval", condition(p.Status, v1alpha1.ConditionReady).Reason)
			require.Equal(t, v1alpha1.RecordedProposal{Kind: v1alpha1.ProposeUpdate, BuildID: id("v2"), TemplateHash: hash("v2"), Since: stamp(noon)}, *p.Record.Proposal)
			require.Equal(t, hash("v2"), p.Review.Desired.TemplateHash)
			require.True(t, desiredConfig(*p.Review.Desired).SameTraffic(desiredConfig(p.Record.Desired)), "the shares stay")
			require.Equal(t, []rollout.WriteOp{rollout.RenderVersion}, ops(decide(t, of(c.given, anotherTemplate), allowed)), "directly")
		})
	}
}

// TestUpdateApproved: by a merge, which makes the template hash the desired one, or by the command; by nothing else.
func TestUpdateApproved(t *testing.T) {
	asked := v1alpha1.RecordedProposal{Kind: v1alpha1.ProposeUpdate, BuildID: id("v2"), TemplateHash: hash("v2"), Since: stamp(ago(time.Hour)), PullRequest: "https://forge/1"}
	desires := func(h string) change { return func(g *given) { g.rec.Desired.TemplateHash = h } }
	for _, c := range []struct {
		name  string
		given change
		done  bool
	}{
		{"waits", none, false},
		{"merged", desires(hash("v2")), true},
		{"another template merged", desires(hash("v3")), false},
		{"by the command", func(g *given) { g.rec.Proposal.Approved = &v1alpha1.Asked{By: "ada", At: stamp(noon)} }, true},
		{"withdrawn", func(g *given) { g.rec.Proposal.Withdrawn = true }, false},
		{"another template proposed", func(g *given) { g.rec.Proposal.TemplateHash = "older"; desires(hash("v2"))(g) }, false},
		{"a raise proposed", func(g *given) {
			g.rec.Proposal.Kind, g.rec.Proposal.To = "", 100
			g.rec.Proposal.Approved = &v1alpha1.Asked{By: "ada", At: stamp(noon)}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(promoted(48*time.Hour), anotherTemplate, inMode(v1alpha1.PullRequest), waits(asked), c.given)
			p := decide(t, s, allowed)
			require.Empty(t, oracle.Forbidden(s, p))
			require.Empty(t, p.Record.Desired.TemplateHash, "what was merged is answered")
			if c.done {
				require.Equal(t, []rollout.WriteOp{rollout.RenderVersion}, ops(p))
				require.Nil(t, p.Record.Proposal)
				return
			}
			require.Empty(t, p.Versions)
			require.Equal(t, v1alpha1.ProposeUpdate, p.Record.Proposal.Kind)
			require.Equal(t, hash("v2"), p.Record.Proposal.TemplateHash)
		})
	}
}

// TestUpdateSupersedesRamp: a ramp that waits is about the template as it was.
func TestUpdateSupersedesRamp(t *testing.T) {
	ramp := v1alpha1.RecordedProposal{BuildID: id("v2"), TemplateHash: "old", From: 10, To: 50, Since: stamp(ago(time.Hour)), PullRequest: "https://forge/1"}
	for _, merged := range []bool{false, true} {
		s := of(rampsAt(10, time.Hour), anotherTemplate, inMode(v1alpha1.PullRequest), waits(ramp), func(g *given) {
			if merged {
				edits("v1", "v2", 50)(g)
				g.rec.Desired.TemplateHash = "old"
			}
		})
		p := decide(t, s, allowed)
		require.Empty(t, oracle.Forbidden(s, p))
		require.Nil(t, p.Raise)
		require.Equal(t, v1alpha1.ProposeUpdate, p.Record.Proposal.Kind)
		require.Empty(t, p.Record.Proposal.PullRequest)
	}
}

// TestUpdateCredentialsMeanwhile: a version whose update waits for approval follows its connection.
func TestUpdateCredentialsMeanwhile(t *testing.T) {
	s := of(promoted(48*time.Hour), anotherTemplate, recorded, inMode(v1alpha1.PullRequest), rotates)
	p := decide(t, s, allowed)
	require.Equal(t, v1alpha1.ProposeUpdate, p.Record.Proposal.Kind)
	for _, w := range p.Versions {
		require.Equal(t, rollout.ReconnectVersion, w.Op)
	}
	require.Len(t, p.Versions, 2)
	require.Equal(t, "old", rollout.FindVersion(p.Record.Versions, id("v2")).TemplateHash)
	p = decide(t, of(promoted(48*time.Hour), anotherTemplate, recorded, rotates), allowed)
	require.Equal(t, []rollout.WriteOp{rollout.ReconnectVersion, rollout.RenderVersion}, ops(p), "once written anew, it has the connection too")
}

// TestCreationNeedsNoApproval: a version is created without approval even where policy requires one, since a version
// without traffic does no harm. A hold still holds it.
func TestCreationNeedsNoApproval(t *testing.T) {
	s := of(asks("v2"), inMode(v1alpha1.PullRequest))
	require.Equal(t, []rollout.WriteOp{rollout.RenderVersion}, ops(decide(t, s, verdictOn(rollout.CreateVersion, effect(rollout.RequireApproval)))))
	require.Empty(t, decide(t, s, verdictOn(rollout.CreateVersion, effect(rollout.HoldEffect))).Versions)
}
