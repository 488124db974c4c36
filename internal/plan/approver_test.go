package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// adasCommit is the one that gave the spec what it has.
var adasCommit = v1alpha1.AskingCommit{Commit: "ada1", Author: "Ada <ada@example.com>", Committer: "Ada <ada@example.com>"}

// byOther is an environment whose raises somebody other than who asked has to approve, with a spec of Ada's.
func byOther(g *given) {
	wantsApproval(v1alpha1.ScopeStep)(g)
	g.ByOther = true
	g.Git.Commit, g.Git.Author, g.Git.Committer = adasCommit.Commit, adasCommit.Author, adasCommit.Committer
	g.Record.Files["routing.yaml"] = rollout.File{Hash: "blob"}
}

// vetted is what is known of who approved.
func vetted(a rollout.Approver) change { return func(g *given) { g.Approver = &a } }

// An approval counts once it is known to be of somebody else than who asked; until then the proposal waits as it is.
func TestApprovalBySomebodyElse(t *testing.T) {
	merge, command := all(suggests(10, 50, pull), edits("v1", "v2", 50)), suggests(10, 50, pull, adaApproved)
	bob := rollout.Approver{Routing: "blob", By: "bob", Other: rollout.Yes}
	ada := rollout.Approver{Routing: "blob", By: "ada", Other: rollout.No, Why: "ada asked for it"}
	unknown := rollout.Approver{Routing: "blob", Why: "nobody knows"}
	earlier := bob
	earlier.Routing = "another blob"
	nameless := bob
	nameless.Routing = ""
	for name, c := range map[string]struct {
		given   change
		calls   []string
		asks    bool
		refused string
	}{
		"merged by another":          {all(merge, vetted(bob)), []string{"SetRamp v2 50"}, false, ""},
		"merged by who asked":        {all(merge, vetted(ada)), nil, false, "ada"},
		"merged by nobody knows who": {all(merge, vetted(unknown)), nil, false, "unknown"},
		"merged, not known yet":      {merge, nil, true, ""},
		"known of another file":      {all(merge, vetted(earlier)), nil, true, ""},
		"command of another":         {all(command, vetted(bob)), []string{"SetRamp v2 50"}, false, ""},
		"command of who asked":       {all(command, vetted(ada)), nil, false, "ada"},
		"command, nobody knows":      {all(command, vetted(unknown)), nil, false, "ada"},
		"command, not known yet":     {command, nil, true, ""},
		"who asked is not known yet": {all(command, func(g *given) { g.Git.Commit = "" }), nil, false, ""},
		"the file has no hash":       {all(command, vetted(nameless), func(g *given) { delete(g.Record.Files, "routing.yaml") }), nil, false, ""},
		"nothing is approved":        {suggests(10, 50, pull), nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(pastPause(), byOther, c.given)
			plan := decide(t, s, allowed)
			was := s.Record.Routing.Spec
			require.Equal(t, c.calls, sayCall(plan.Raise))
			require.Equal(t, c.asks, plan.Approving != nil)
			if c.asks {
				require.Equal(t, rollout.ApproverAsk{Routing: "blob", Proposal: *was.Proposal, AskedIn: []v1alpha1.AskingCommit{adasCommit}}, *plan.Approving)
				require.True(t, HasApproval(was, *plan.Approving))
			}
			switch {
			case len(c.calls) > 0:
				require.Nil(t, plan.Record.Proposal)
			case c.refused != "":
				require.Equal(t, c.refused, plan.Record.Proposal.Refused.By)
				require.Equal(t, s.Approver.Why, plan.Record.Proposal.Refused.Reason)
				require.Nil(t, plan.Record.Proposal.Approved)
				require.Equal(t, *was.Decided, plan.Record.Desired, "put back")
				require.NotNil(t, plan.Review, "it is proposed anew")
				require.Contains(t, plan.Status.Conditions[0].Message, "the approval by "+c.refused+" does not count: "+s.Approver.Why+". Somebody else has to approve it")
				require.Contains(t, named(plan.Summary[len(plan.Summary)-1]), "the approval by "+c.refused+" does not count: "+s.Approver.Why)
				pullRequest, since := "https://git.example/pulls/7", ago(48*time.Hour)
				if was.Proposal.Approved == nil { // what was merged is over
					pullRequest, since = "", noon
				}
				require.Equal(t, pullRequest, plan.Record.Proposal.PullRequest)
				require.Equal(t, since, plan.Record.Proposal.Since.Time)
			default:
				require.Equal(t, was.Desired, plan.Record.Desired)
				require.Empty(t, cmp.Diff(was.Proposal, plan.Record.Proposal))
				require.Equal(t, was.Proposal.Approved == nil && !c.asks, plan.Review != nil)
			}
			require.Equal(t, string(rollout.AwaitingApproval) == plan.Status.Conditions[0].Reason, len(c.calls) == 0)
		})
	}
}

// TestRefusalStays: a refusal stays in the record until the proposal is carried out, and messages tell of it. Where the
// approval of another person is not needed, it means nothing.
func TestRefusalStays(t *testing.T) {
	refused := func(p *v1alpha1.RecordedProposal) {
		p.Refused = &v1alpha1.Asked{By: "ada", Reason: "ada asked for it", At: stamp(ago(time.Hour))}
	}
	plan := decide(t, of(pastPause(), byOther, suggests(10, 50, refused)), allowed)
	require.Equal(t, "ada", plan.Record.Proposal.Refused.By)
	require.Contains(t, plan.Status.Conditions[0].Message, "the approval by ada does not count: ada asked for it. Somebody else has to approve it")
	plan = decide(t, of(pastPause(), byOther, suggests(10, 40, refused)), allowed)
	require.Nil(t, plan.Record.Proposal.Refused, "of another proposal")
	require.NotContains(t, plan.Status.Conditions[0].Message, "does not count")
	plan = decide(t, of(pastPause(), wantsApproval(v1alpha1.ScopeStep), suggests(10, 50, refused)), allowed)
	require.NotContains(t, plan.Status.Conditions[0].Message, "does not count")
	plan = decide(t, of(pastPause(), wantsApproval(v1alpha1.ScopeStep), suggests(10, 50, adaApproved)), allowed)
	require.Equal(t, []string{"SetRamp v2 50"}, sayCall(plan.Raise), "whoever approved")
}

// Traffic is taken back while it is not known who approved, and then the approval is void.
func TestLowersWhileVetting(t *testing.T) {
	s := of(pastPause(), byOther, suggests(10, 50), edits("v1", "v2", 50))
	plan := decide(t, s, verdictOn(rollout.Continue, effect(rollout.RollbackEffect)))
	require.Equal(t, []string{"ClearRamp  0"}, sayCall(plan.Lower))
	require.Nil(t, plan.Raise)
	require.Equal(t, v1alpha1.DesiredRouting{Current: id("v1")}, plan.Record.Desired)
	require.Empty(t, cmp.Diff(proposal(10, 50, noon), plan.Record.Proposal), "what was merged is void")
}

// TestEditIsNoWayAroundTheApproval: an edit of routing.yaml does not get around the approval: it is put back.
func TestEditIsNoWayAroundTheApproval(t *testing.T) {
	for name, given := range map[string]change{"before anything is proposed": edits("v1", "v2", 50), "more than is proposed": all(suggests(10, 50), edits("v2", "", 0))} {
		t.Run(name, func(t *testing.T) {
			s := of(pastPause(), byOther, given)
			plan := decide(t, s, allowed)
			require.Equal(t, "edited-refused", plan.Row)
			require.Nil(t, plan.Raise)
			require.Equal(t, *s.Record.Routing.Spec.Decided, plan.Record.Desired)
			require.Contains(t, plan.Status.Conditions[0].Message, "are approved by somebody other than who asked, by approving what is proposed")
		})
	}
}

// The record keeps by which commits a target was asked for, with what else changes in it; another target has its own.
func TestAskedIn(t *testing.T) {
	grace := v1alpha1.AskingCommit{Commit: "grace1", Author: "Grace <grace@example.com>"}
	before := func(all ...v1alpha1.AskingCommit) change {
		return func(g *given) { g.rec.Target.AskedIn = all }
	}
	most := make([]v1alpha1.AskingCommit, maxAskedIn)
	for name, c := range map[string]struct {
		given change
		want  []v1alpha1.AskingCommit
	}{
		"first":                      {byOther, []v1alpha1.AskingCommit{adasCommit}},
		"another wrote to it since":  {all(byOther, before(grace)), []v1alpha1.AskingCommit{grace, adasCommit}},
		"the same person":            {all(byOther, before(v1alpha1.AskingCommit{Commit: "ada0", Author: adasCommit.Author, Committer: adasCommit.Committer})), []v1alpha1.AskingCommit{{Commit: "ada0", Author: adasCommit.Author, Committer: adasCommit.Committer}}},
		"the same author, rebased":   {all(byOther, before(v1alpha1.AskingCommit{Commit: "ada0", Author: adasCommit.Author})), []v1alpha1.AskingCommit{{Commit: "ada0", Author: adasCommit.Author}, adasCommit}},
		"the same committer":         {all(byOther, before(v1alpha1.AskingCommit{Commit: "ada0", Committer: adasCommit.Committer})), []v1alpha1.AskingCommit{{Commit: "ada0", Committer: adasCommit.Committer}, adasCommit}},
		"many":                       {all(byOther, before(most...)), most},
		"not known":                  {all(byOther, before(grace), func(g *given) { g.Git.Commit = "" }), []v1alpha1.AskingCommit{grace}},
		"whoever may approve":        {all(byOther, before(grace), func(g *given) { g.ByOther = false }), []v1alpha1.AskingCommit{grace}},
		"another target has its own": {all(byOther, before(grace), func(g *given) { g.rec.Target.BuildID = id("v1") }), []v1alpha1.AskingCommit{adasCommit}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(t, of(pastPause(), c.given), allowed)
			require.Equal(t, c.want, plan.Record.Target.AskedIn)
		})
	}
	s := of(pastPause(), byOther, suggests(10, 50))
	text, err := json.Marshal(decide(t, s, allowed).Record) // as it is in Git
	require.NoError(t, err)
	s.Record.Routing.Spec = v1alpha1.RoutingSpec{}
	require.NoError(t, json.Unmarshal(text, &s.Record.Routing.Spec))
	s.Record.Routing.Spec.Target.AskedIn = nil
	require.Nil(t, decide(t, s, allowed).Record.Target.AskedIn, "nothing else changes")
	require.Equal(t, "ada1", Look(s).Asking("Ada L <ADA@example.com>"))
	require.Equal(t, "ada1", Look(s).Asking("ada <other@example.com>"))
	require.Empty(t, Look(s).Asking("Grace <grace@example.com>"))
	s.Git.Author = ""
	require.Equal(t, "ada1", Look(s).Asking("ada <other@example.com>"), "the committer asked, too")
	s.Git.Author, s.Git.Committer = adasCommit.Author, ""
	require.Equal(t, "ada1", Look(s).Asking("ada <other@example.com>"))
}

// The approval that is asked about is found by what it says in the record.
func TestHasApproval(t *testing.T) {
	command := of(pastPause(), suggests(10, 50, adaApproved)).Record.Routing.Spec
	merge := of(pastPause(), suggests(10, 50), edits("v1", "v2", 50)).Record.Routing.Spec
	waits := of(pastPause(), suggests(10, 50)).Record.Routing.Spec
	later := of(pastPause(), suggests(10, 50, adaApproved, func(p *v1alpha1.RecordedProposal) { p.Approved.At = stamp(noon) })).Record.Routing.Spec
	grace := of(pastPause(), suggests(10, 50, adaApproved, func(p *v1alpha1.RecordedProposal) { p.Approved.By = "grace" })).Record.Routing.Spec
	other := of(pastPause(), suggests(10, 40, adaApproved), edits("v1", "v2", 50)).Record.Routing.Spec
	undecided := merge
	undecided.Decided = nil
	update := func(asked string) v1alpha1.RoutingSpec {
		rec := of(pastPause(), suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.Kind = v1alpha1.ProposeUpdate })).Record.Routing.Spec
		rec.Desired.TemplateHash = asked
		return rec
	}
	for name, c := range map[string]struct {
		rec, asked v1alpha1.RoutingSpec
		want       bool
	}{
		"the command": {command, command, true}, "a later one": {later, command, false}, "another's": {grace, command, false},
		"none": {waits, command, false}, "no proposal": {v1alpha1.RoutingSpec{}, command, false}, "another proposal": {other, command, false},
		"the merge": {merge, merge, true}, "not merged": {waits, merge, false}, "another merged": {other, merge, false}, "nothing decided": {undecided, merge, false},
		"the update": {update(hash("v2")), update(""), true}, "no update": {update(""), update(""), false},
	} {
		require.Equal(t, c.want, HasApproval(c.rec, rollout.ApproverAsk{Proposal: *c.asked.Proposal}), name)
	}
}
