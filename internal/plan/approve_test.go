package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// wantsApproval is an environment that wants raises approved, each step or the rollout once.
func wantsApproval(scope v1alpha1.ApprovalScope) change {
	return func(g *given) { g.Environment.Approval = v1alpha1.Approval{Mode: v1alpha1.PullRequest, Scope: scope} }
}

// proposes is a recorded proposal for v2, made two days ago.
func suggests(from, to float64, changes ...func(*v1alpha1.RecordedProposal)) change {
	return func(g *given) {
		g.rec.Proposal = &v1alpha1.RecordedProposal{BuildID: id("v2"), TemplateHash: hash("v2"), From: from, To: to, Since: stamp(ago(48 * time.Hour))}
		for _, c := range changes {
			c(g.rec.Proposal)
		}
	}
}

func adaApproved(p *v1alpha1.RecordedProposal) {
	p.Approved = &v1alpha1.Asked{By: "ada", Reason: "looks fine", At: stamp(ago(time.Minute))}
}

func pull(p *v1alpha1.RecordedProposal) { p.PullRequest = "https://git.example/pulls/7" }

// pastPause is v2 at 10% since longer than the step's pause.
func pastPause() change { return rampsAt(10, 11*time.Minute) }

// reviewed is what became of the proposal that suggests records.
func reviewed(r rollout.Review) change {
	r.Since = stamp(ago(48 * time.Hour))
	return func(g *given) { g.Review = &r }
}

// anothers makes it the review of a proposal before.
func anothers(g *given) { g.Review.Since = stamp(ago(72 * time.Hour)) }

func proposal(from, to float64, since time.Time) *v1alpha1.RecordedProposal {
	return &v1alpha1.RecordedProposal{BuildID: id("v2"), TemplateHash: hash("v2"), From: from, To: to, Since: stamp(since)}
}

// gone is a proposal that does not wait any more.
func gone(from, to float64) *v1alpha1.RecordedProposal {
	p := proposal(from, to, ago(48*time.Hour))
	p.Withdrawn = true
	return p
}

// twoSteps is the timetable of the steady worker deployment.
const twoSteps = "Progressive 10% 10m 50% 10m"

// What wants approval is recorded once, stays the same proposal whatever the facts are, and makes way for another.
func TestProposalIsRecorded(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	url := proposal(10, 50, ago(48*time.Hour))
	url.PullRequest = "https://git.example/pulls/7"
	for name, c := range map[string]struct {
		given change
		judge func(rollout.Proposal) rollout.Verdicts
		want  *v1alpha1.RecordedProposal
	}{
		"first step":                    {all(candidate(), step), allowed, proposal(0, 10, noon)},
		"next step":                     {all(pastPause(), step), allowed, proposal(10, 50, noon)},
		"promotion":                     {all(rampsAt(50, 11*time.Minute), step), allowed, proposal(50, 100, noon)},
		"it stays":                      {all(pastPause(), step, suggests(10, 50)), allowed, proposal(10, 50, ago(48*time.Hour))},
		"with its address":              {all(pastPause(), step, suggests(10, 50, pull)), allowed, url},
		"its address is learned":        {all(pastPause(), step, suggests(10, 50), reviewed(rollout.Review{URL: url.PullRequest})), allowed, url},
		"not that of one before":        {all(pastPause(), step, suggests(10, 50), reviewed(rollout.Review{URL: url.PullRequest}), anothers), allowed, proposal(10, 50, ago(48*time.Hour))},
		"another has none yet":          {all(pastPause(), step, suggests(0, 10, pull), reviewed(rollout.Review{URL: url.PullRequest})), allowed, proposal(10, 50, noon)},
		"another share":                 {all(pastPause(), step, suggests(10, 40)), allowed, proposal(10, 50, noon)},
		"another start":                 {all(pastPause(), step, suggests(5, 50)), allowed, proposal(10, 50, noon)},
		"another build":                 {all(pastPause(), step, suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.BuildID = id("v3") })), allowed, proposal(10, 50, noon)},
		"another template":              {all(pastPause(), step, suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.TemplateHash = hash("v3") })), allowed, proposal(10, 50, noon)},
		"in the pause there is none":    {all(rampsAt(10, time.Minute), step), allowed, nil},
		"it is over when nothing waits": {all(rampsAt(10, time.Minute), step, suggests(0, 10)), allowed, gone(0, 10)},
		"policy asks in Direct":         {pastPause(), verdictOn(rollout.Ramp, effect(rollout.RequireApproval)), proposal(10, 50, noon)},
		"policy holds":                  {all(pastPause(), step), verdictOn(rollout.Ramp, effect(rollout.HoldEffect)), nil},
		"not asked":                     {pastPause(), allowed, nil},
		"kept while Temporal is away": {all(pastPause(), step, suggests(10, 50), func(g *given) {
			g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed}}
		}),
			allowed, proposal(10, 50, ago(48*time.Hour))},
		"kept while somebody else owns it": {all(pastPause(), step, suggests(10, 50), foreign()), allowed, proposal(10, 50, ago(48*time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(t, of(c.given), c.judge)
			require.Empty(t, cmp.Diff(c.want, plan.Record.Proposal))
			require.Equal(t, c.want != nil && plan.Row != "temporal-unreadable" && plan.Row != "owned-by-another" && len(plan.Held) > 0, plan.Review != nil)
		})
	}
}

// People are asked for the routing as it is to be, with the verdict that wants to be approved.
func TestReviewAsksForTheRouting(t *testing.T) {
	for name, c := range map[string]struct {
		given change
		want  v1alpha1.DesiredRouting
	}{
		"ramp":      {pastPause(), v1alpha1.DesiredRouting{Current: id("v1"), Ramping: &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: 50}, TemplateHash: hash("v2")}},
		"promotion": {rampsAt(50, 11*time.Minute), v1alpha1.DesiredRouting{Current: id("v2"), TemplateHash: hash("v2")}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(t, of(c.given, wantsApproval(v1alpha1.ScopeRollout)), allowed)
			require.Empty(t, cmp.Diff(c.want, *plan.Review.Desired))
			require.Equal(t, v1alpha1.ScopeRollout, plan.Review.Scope)
			require.Equal(t, rollout.RequireApproval, plan.Review.Held.Verdict.Effect)
			require.Equal(t, "approval.mode", plan.Review.Held.Verdict.Findings[0].Rule)
			require.Equal(t, of(c.given).Record.Routing.Spec.Desired, plan.Record.Desired, "nothing is desired before")
			require.Nil(t, plan.Raise)
		})
	}
}

// A merge, or a command, approves the very step that was proposed; it is decided again, and leaves no hold.
func TestApprovedProposalIsCarriedOut(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	for name, c := range map[string]struct {
		given change
		judge func(rollout.Proposal) rollout.Verdicts
		calls []string
	}{
		"merged":              {all(pastPause(), step, suggests(10, 50), edits("v1", "v2", 50)), allowed, []string{"SetRamp v2 50"}},
		"promotion merged":    {all(rampsAt(50, 11*time.Minute), step, suggests(50, 100), edits("v2", "", 0)), allowed, []string{"SetCurrent v2 0"}},
		"by command":          {all(pastPause(), step, suggests(10, 50, adaApproved)), allowed, []string{"SetRamp v2 50"}},
		"asked for by policy": {all(pastPause(), suggests(10, 50), edits("v1", "v2", 50)), verdictOn(rollout.Ramp, effect(rollout.RequireApproval)), []string{"SetRamp v2 50"}},
		"first step":          {all(candidate(), step, suggests(0, 10), edits("v1", "v2", 10)), allowed, []string{"SetRamp v2 10"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(t, of(c.given), c.judge)
			require.Equal(t, c.calls, sayCall(plan.Raise))
			require.Nil(t, plan.Record.Proposal)
			require.Nil(t, plan.Record.Hold)
			require.Nil(t, plan.Review)
			require.Equal(t, plan.Record.Desired, *plan.Record.Decided)
			require.Nil(t, plan.Record.Target.Approved, "this step, and no other")
		})
	}
}

// What was approved is void when it does not come next any more: routing.yaml is put back, and what comes next is
// proposed.
func TestApprovalThatCameTooLate(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	merged := all(suggests(10, 50), edits("v1", "v2", 50))
	for name, c := range map[string]struct {
		given  change
		judge  func(rollout.Proposal) rollout.Verdicts
		reason rollout.Reason
		next   *v1alpha1.RecordedProposal
	}{
		"policy holds":          {all(pastPause(), step, merged), verdictOn(rollout.Ramp, effect(rollout.HoldEffect)), rollout.PolicyHold, gone(10, 50)},
		"the pause is not over": {all(rampsAt(10, time.Minute), step, merged), allowed, rollout.Ramping, gone(10, 50)},
		"by command":            {all(rampsAt(50, 11*time.Minute), step, suggests(10, 50, adaApproved)), allowed, rollout.AwaitingApproval, proposal(50, 100, noon)},
		"another build by now": {all(pastPause(), step, merged, wants("v3"), inGit("v3"), up("v3"), routes("v1", "", 0, 11*time.Minute), desires("v1", "", 0), edits("v1", "v2", 50)), allowed, rollout.AwaitingApproval,
			&v1alpha1.RecordedProposal{BuildID: id("v3"), TemplateHash: hash("v3"), From: 0, To: 10, Since: stamp(noon)}},
		"held by a person":      {all(pastPause(), step, merged, holds(v1alpha1.HoldManual, "v2")), allowed, rollout.ManualHold, gone(10, 50)},
		"turned back meanwhile": {all(candidate(), step, merged, barsBuild("v2")), allowed, rollout.RolledBack, gone(10, 50)},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(c.given)
			plan := decide(t, s, c.judge)
			require.Nil(t, plan.Raise)
			require.Equal(t, string(c.reason), plan.Status.Conditions[0].Reason)
			require.Equal(t, *s.Record.Routing.Spec.Decided, plan.Record.Desired, "put back")
			require.Empty(t, cmp.Diff(c.next, plan.Record.Proposal))
			require.Contains(t, named(plan.Summary[len(plan.Summary)-1]), "approved that v2 goes from 10% to 50%, which does not come next any more")
		})
	}
}

// As long as nothing can be said of it, an approval waits where it is.
func TestApprovalWaits(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	away := func(g *given) {
		g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "away"}}
	}
	old := func(g *given) { g.Observation.At = ago(5 * time.Minute) }
	broken := func(g *given) {
		g.Spec, g.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "broken"}}
	}
	for name, given := range map[string]change{"Temporal is away": away, "what is known is old": old, "somebody else owns it": foreign(), "the spec is broken": broken,
		"a gate runs": all(stepGate(2, v1alpha1.GateRollback), stepGateIs(2, rollout.GateRunning))} {
		for how, approval := range map[string]change{"merged": all(suggests(10, 50), edits("v1", "v2", 50)), "by command": suggests(10, 50, adaApproved)} {
			t.Run(name+"/"+how, func(t *testing.T) {
				s := of(pastPause(), step, approval, given)
				if name == "a gate runs" {
					s = of(rampsAt(50, 11*time.Minute), step, suggests(50, 100, adaApproved), stepGate(2, v1alpha1.GateRollback), stepGateIs(2, rollout.GateRunning))
				}
				plan := decide(t, s, allowed)
				require.Nil(t, plan.Raise)
				require.Equal(t, s.Record.Routing.Spec.Desired, plan.Record.Desired)
				require.Equal(t, s.Record.Routing.Spec.Decided, plan.Record.Decided)
				require.Equal(t, s.Record.Routing.Spec.Proposal, plan.Record.Proposal)
			})
		}
	}
}

// An edit that is not what was proposed is a person's own wish, which is answered as ever.
func TestAnotherEditIsNoApproval(t *testing.T) {
	plan := decide(t, of(pastPause(), wantsApproval(v1alpha1.ScopeStep), suggests(10, 50), edits("v1", "v2", 30)), allowed)
	require.Equal(t, "edited-up", plan.Row)
	require.Equal(t, []string{"SetRamp v2 30"}, sayCall(plan.Raise))
}

// TestMergeOfAnotherTemplate: under a build ID of the user's own, the same step of another template is another
// proposal. Merged late, it is put back, and does not count as a person's wish.
func TestMergeOfAnotherTemplate(t *testing.T) {
	step, held := wantsApproval(v1alpha1.ScopeStep), verdictOn(rollout.Ramp, effect(rollout.HoldEffect))
	of2 := func(template string) change { return func(g *given) { g.rec.Desired.TemplateHash = template } }
	current, other := hash("v2"), hash("v3")
	asks := all(pastPause(), step, suggests(10, 50))
	none := all(pastPause(), step)
	for name, c := range map[string]struct {
		given change
		judge func(rollout.Proposal) rollout.Verdicts
		row   string
		calls []string
		next  *v1alpha1.RecordedProposal
		late  bool
	}{
		"the proposed template":              {all(asks, edits("v1", "v2", 50), of2(current)), allowed, "next-step", []string{"SetRamp v2 50"}, nil, false},
		"another, and it waits on":           {all(asks, edits("v1", "v2", 50), of2(other)), allowed, "next-step", nil, proposal(10, 50, ago(48*time.Hour)), true},
		"another, of another step":           {all(asks, edits("v2", "", 0), of2(other)), allowed, "next-step", nil, proposal(10, 50, ago(48*time.Hour)), true},
		"another, of less than there is":     {all(asks, edits("v1", "v2", 5), of2(other)), allowed, "next-step", nil, proposal(10, 50, ago(48*time.Hour)), true},
		"another, of an earlier build":       {all(asks, edits("v1", "v3", 50), of2(other)), allowed, "next-step", nil, proposal(10, 50, ago(48*time.Hour)), true},
		"another, with nothing to wait for":  {all(none, edits("v1", "v2", 50), of2(other)), held, "next-step", nil, nil, true},
		"of this one, and it is so already":  {all(pastPause(), step, edits("v1", "v2", 50), routes("v1", "v2", 50, time.Minute), of2(current)), allowed, "edited-done", nil, nil, false},
		"of this one, and nothing else":      {all(asks, of2(current)), allowed, "next-step", nil, proposal(10, 50, ago(48*time.Hour)), false},
		"of this one, of less than there is": {all(asks, edits("v1", "v2", 5), of2(current)), allowed, "edited-down", []string{"SetRamp v2 5"}, gone(10, 50), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(c.given)
			plan := decide(t, s, c.judge)
			require.Equal(t, c.row, plan.Row)
			require.Equal(t, c.calls, append(sayCall(plan.Lower), sayCall(plan.Raise)...))
			require.Empty(t, cmp.Diff(c.next, plan.Record.Proposal))
			require.Empty(t, plan.Record.Desired.TemplateHash, "only a proposal has it")
			require.Equal(t, plan.Record.Desired, *plan.Record.Decided)
			late := slices.ContainsFunc(plan.Summary, func(line string) bool { return strings.Contains(line, "for another template than the spec has") })
			require.Equal(t, c.late, late, "%q", plan.Summary)
			if c.late {
				require.Equal(t, *s.Record.Routing.Spec.Decided, plan.Record.Desired, "put back")
				require.Nil(t, plan.Record.Hold, "nobody wished for it")
			}
		})
	}
}

// With scope Rollout the first approval covers the later steps of the same attempt, and nothing else.
func TestOneApprovalForTheRollout(t *testing.T) {
	once := wantsApproval(v1alpha1.ScopeRollout)
	plan := decide(t, of(candidate(), once, suggests(0, 10, pull), edits("v1", "v2", 10)), allowed)
	require.Equal(t, []string{"SetRamp v2 10"}, sayCall(plan.Raise))
	require.Equal(t, &v1alpha1.Asked{By: "a merge", Reason: "https://git.example/pulls/7", At: stamp(noon)}, plan.Record.Target.Approved)
	require.Equal(t, twoSteps, plan.Record.Target.ApprovedSteps)
	plan = decide(t, of(candidate(), once, suggests(0, 10, adaApproved)), allowed)
	require.Equal(t, &v1alpha1.Asked{By: "ada", Reason: "looks fine", At: stamp(noon)}, plan.Record.Target.Approved)

	before := func(g *given) {
		g.rec.Target.Approved, g.rec.Target.ApprovedSteps = &v1alpha1.Asked{By: "ada", At: stamp(ago(time.Hour))}, twoSteps
	}
	for name, c := range map[string]struct {
		given change
		calls []string
		kept  bool
	}{
		"a later step":      {all(pastPause(), once, before), []string{"SetRamp v2 50"}, true},
		"the promotion":     {all(rampsAt(50, 11*time.Minute), once, before), []string{"SetCurrent v2 0"}, true},
		"kept in the pause": {all(rampsAt(10, time.Minute), once, before), nil, true},
		"another timetable": {all(pastPause(), once, before, func(g *given) { g.rec.Target.ApprovedSteps = "AllAtOnce" }), nil, false},
		"every step by now": {all(pastPause(), wantsApproval(v1alpha1.ScopeStep), before), nil, false},
		"another attempt":   {all(pastPause(), once, before, func(g *given) { g.version("v2").TurnedBack = 1 }), nil, false},
		"another build":     {all(candidate(), inGit("v3"), up("v3"), once, before, asks("v3")), nil, false},
		"held by policy":    {all(pastPause(), once, before, holds(v1alpha1.HoldManual, "v2")), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(t, of(c.given), allowed)
			require.Equal(t, c.calls, sayCall(plan.Raise))
			require.Equal(t, c.kept, plan.Record.Target.Approved != nil)
		})
	}
}

// A person who closes the proposal holds the worker deployment where it is, until it is resumed or the spec asks for
// another build.
func TestRejectedProposal(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	no := reviewed(rollout.Review{URL: "https://git.example/pulls/7", Rejected: true, By: "grace"})
	plan := decide(t, of(pastPause(), step, suggests(10, 50), no), allowed)
	require.Equal(t, "held", plan.Row)
	require.Empty(t, cmp.Diff(&v1alpha1.Hold{Kind: v1alpha1.HoldRejected, BuildID: id("v2"), By: "grace", Reason: "closed https://git.example/pulls/7", At: stamp(noon)}, plan.Record.Hold))
	require.Equal(t, gone(10, 50), plan.Record.Proposal)
	require.Equal(t, "held by grace: closed https://git.example/pulls/7. To go on: rampart resume payments/checkout", plan.Status.Conditions[0].Message)
	plan = decide(t, of(pastPause(), step, suggests(10, 50), reviewed(rollout.Review{Rejected: true})), allowed)
	require.Equal(t, "a person: closed the proposal", plan.Record.Hold.By+": "+plan.Record.Hold.Reason)

	for name, c := range map[string]struct {
		given change
		row   string
	}{
		"nobody closed it":      {all(pastPause(), step, suggests(10, 50), reviewed(rollout.Review{URL: "x"})), "next-step"},
		"it was the one before": {all(pastPause(), step, suggests(10, 50), no, anothers), "next-step"},
		"nothing was proposed":  {all(pastPause(), step, no), "next-step"},
		"it was approved":       {all(pastPause(), step, suggests(10, 50, adaApproved), no), "next-step"},
		"it was another build":  {all(pastPause(), step, suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.BuildID = id("v3") }), no), "next-step"},
		"another template":      {all(pastPause(), step, suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.TemplateHash = hash("v3") }), no), "next-step"},
		"it lasts":              {all(pastPause(), step, holds(v1alpha1.HoldRejected, "v2")), "held"},
		"but not for another":   {all(candidate(), step, holds(v1alpha1.HoldRejected, "v1")), "first-step"},
		"nor for the same anew": {all(candidate(), step, holds(v1alpha1.HoldRejected, "v2"), func(g *given) { g.rec.Target.TemplateHash = "other" }), "first-step"},
		"there is no target":    {all(pastPause(), step, suggests(10, 50), no, retires(v1alpha1.KeepCurrent, time.Minute)), "retire"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.row, decide(t, of(c.given), allowed).Row) })
	}
}

// The status names where it is reviewed.
func TestStatusNamesThePullRequest(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	review := all(suggests(10, 50), reviewed(rollout.Review{URL: "https://git.example/pulls/7"}))
	require.Equal(t, "https://git.example/pulls/7", decide(t, of(pastPause(), step, review), allowed).Status.Decision.PullRequest)
	require.Empty(t, decide(t, of(pastPause(), step, review, anothers), allowed).Status.Decision.PullRequest)
	require.Empty(t, decide(t, of(pastPause(), review), verdictOn(rollout.Ramp, effect(rollout.HoldEffect))).Status.Decision.PullRequest)
	require.Empty(t, decide(t, of(pastPause(), step), allowed).Status.Decision.PullRequest)
}

// TestMergeOfWhatWasWithdrawn: the merge of a proposal that does not wait any more approves nothing. routing.yaml is
// put back, and nothing is held for it.
func TestMergeOfWhatWasWithdrawn(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	withdrawn := suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.Withdrawn = true })
	merged := all(withdrawn, edits("v1", "v2", 50))
	for name, c := range map[string]struct {
		given change
		row   string
		next  *v1alpha1.RecordedProposal
	}{
		"rejected":               {all(pastPause(), step, merged, holds(v1alpha1.HoldRejected, "v2")), "held", gone(10, 50)},
		"the pause is not over":  {all(rampsAt(10, time.Minute), step, merged), "pause", gone(10, 50)},
		"it waits for another":   {all(pastPause(), step, merged), "next-step", proposal(10, 50, noon)},
		"not merged, and anew":   {all(pastPause(), step, withdrawn), "next-step", proposal(10, 50, noon)},
		"its version is current": {all(promoted(time.Minute), step, withdrawn), "bake", nil},
		"all is done":            {all(step, withdrawn), "complete", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(c.given)
			plan := decide(t, s, allowed)
			if c.row != "bake" {
				require.Equal(t, c.row, plan.Row)
			}
			require.Nil(t, plan.Raise)
			require.Equal(t, *s.Record.Routing.Spec.Decided, plan.Record.Desired)
			require.Empty(t, cmp.Diff(c.next, plan.Record.Proposal))
		})
	}
	plan := decide(t, of(pastPause(), step, withdrawn, reviewed(rollout.Review{Rejected: true})), allowed)
	require.Equal(t, "next-step", plan.Row, "and closing it is no answer")
}

// While nothing can be said of what was proposed, it waits on: no review is lost because a fact is missing for a while.
func TestProposalOutlastsMissingFacts(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	for name, given := range map[string]change{
		"old facts":  func(g *given) { g.Observation.At = ago(5 * time.Minute) },
		"no pollers": noPollers("v2"),
		"a gate":     all(stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateRunning)),
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(t, of(pastPause(), step, suggests(10, 50), given), allowed)
			require.Equal(t, proposal(10, 50, ago(48*time.Hour)), plan.Record.Proposal)
			require.Nil(t, plan.Review)
			plan = decide(t, of(pastPause(), step, suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.TemplateHash = "another" }), given), allowed)
			require.True(t, plan.Record.Proposal.Withdrawn, "but not one of another template")
			plan = decide(t, of(pastPause(), step, suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.BuildID = "another" }), given), allowed)
			require.True(t, plan.Record.Proposal.Withdrawn, "nor of another build")
		})
	}
}

// TestProposalOutlastsAFreeze: a proposal in review outlasts a freeze. People do not review it twice, and are not asked
// meanwhile. A proposal that was approved is decided: it is put back.
func TestProposalOutlastsAFreeze(t *testing.T) {
	step, frozen := wantsApproval(v1alpha1.ScopeStep), verdictOn(rollout.Ramp, effect(rollout.HoldEffect))
	for name, c := range map[string]struct {
		given change
		want  *v1alpha1.RecordedProposal
	}{
		"it waits":            {suggests(10, 50), proposal(10, 50, ago(48*time.Hour))},
		"approved by command": {suggests(10, 50, adaApproved), gone(10, 50)},
		"merged":              {all(suggests(10, 50), edits("v1", "v2", 50)), gone(10, 50)},
		"closed":              {all(suggests(10, 50), reviewed(rollout.Review{Rejected: true})), gone(10, 50)},
		"another step":        {suggests(10, 40), gone(10, 40)},
		"of another template": {suggests(10, 50, func(p *v1alpha1.RecordedProposal) { p.TemplateHash = "another" }), func() *v1alpha1.RecordedProposal {
			p := gone(10, 50)
			p.TemplateHash = "another"
			return p
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(t, of(pastPause(), step, c.given), frozen)
			require.Empty(t, cmp.Diff(c.want, plan.Record.Proposal))
			require.Nil(t, plan.Review)
			require.Nil(t, plan.Raise)
		})
	}
	plan := decide(t, of(pastPause(), step, suggests(10, 50)), allowed)
	require.Equal(t, proposal(10, 50, ago(48*time.Hour)), plan.Record.Proposal, "and is the same after it")
	require.NotNil(t, plan.Review)
}

// One approval of a rollout is for what it is judged by, too.
func TestOneApprovalIsForWhatItIsJudgedBy(t *testing.T) {
	once := wantsApproval(v1alpha1.ScopeRollout)
	for name, judged := range map[string]change{
		"a gate at first": func(g *given) { g.Spec.Spec.Rollout.Gate = &v1alpha1.Gate{WorkflowType: "Smoke"} },
		"a step's gate":   all(stepGate(2, v1alpha1.GateRollback)),
		"an analysis":     func(g *given) { g.Spec.Spec.Rollout.Analysis = &v1alpha1.Analysis{} },
	} {
		t.Run(name, func(t *testing.T) {
			asked := decide(t, of(candidate(), once, judged, suggests(0, 10), edits("v1", "v2", 10)), allowed)
			steps := Look(rollout.Snapshot{Spec: of(candidate(), once, judged).Spec}).timetable()
			require.Contains(t, steps, twoSteps+" judged by ")
			if asked.Record.Target.Approved != nil { // else its gate comes first
				require.Equal(t, steps, asked.Record.Target.ApprovedSteps)
			}
			approved := func(g *given) {
				g.rec.Target.Approved, g.rec.Target.ApprovedSteps = &v1alpha1.Asked{By: "ada", At: stamp(ago(time.Hour))}, steps
			}
			require.NotNil(t, decide(t, of(pastPause(), once, judged, approved), allowed).Record.Target.Approved)
			require.Nil(t, decide(t, of(pastPause(), once, approved), allowed).Record.Target.Approved, "without it")
		})
	}
}

// Retiring what was approved takes its traffic back, and approves nothing.
func TestRetiredWhileApproved(t *testing.T) {
	for how, approval := range map[string]change{"merged": all(suggests(10, 50), edits("v1", "v2", 50)), "by command": suggests(10, 50, adaApproved)} {
		t.Run(how, func(t *testing.T) {
			plan := decide(t, of(pastPause(), wantsApproval(v1alpha1.ScopeStep), approval, retires(v1alpha1.KeepCurrent, time.Minute)), allowed)
			require.Equal(t, []string{"ClearRamp  0"}, sayCall(plan.Lower))
			require.True(t, plan.Record.Proposal.Withdrawn)
		})
	}
}

// A raise that was committed and not carried out needs no second approval; one that somebody wrote there instead does.
func TestCommittedRaiseIsApproved(t *testing.T) {
	step := wantsApproval(v1alpha1.ScopeStep)
	committed := func(g *given) {
		desires("v1", "v2", 50)(g)
		g.rec.Basis = basisOf(g.Observation.Routing)
	}
	for name, c := range map[string]struct {
		given change
		calls []string
	}{
		"it is made":            {committed, []string{"SetRamp v2 50"}},
		"another step":          {all(committed, desires("v1", "v2", 40)), nil},
		"another routing since": {all(committed, func(g *given) { g.rec.Basis.Revision++ }), nil},
		"another attempt":       {all(committed, func(g *given) { g.version("v2").TurnedBack = 1 }), nil},
		"edited since":          {all(committed, edits("v1", "v2", 60)), []string{"SetRamp v2 50"}}, // a wish of its own
		"no basis":              {all(committed, func(g *given) { g.rec.Basis = nil }), nil},
		"no target":             {all(committed, func(g *given) { g.rec.Target = nil }), nil},
		"never decided":         {all(committed, func(g *given) { g.rec.Decided = nil }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.calls, sayCall(decide(t, of(pastPause(), step, c.given), allowed).Raise))
		})
	}
}

// Where there is no current version, asking for a share is not asking for all.
func TestEditedShareIsNoPromotion(t *testing.T) {
	first := func(edit change) rollout.Plan {
		return decide(t, of(wantsApproval(v1alpha1.ScopeStep), routes("", "", 0, time.Hour), desires("", "", 0), func(g *given) { g.rec.Promotions = nil }, edit), allowed)
	}
	require.Nil(t, first(edits("", "v1", 10)).Raise)
	require.Equal(t, []string{"SetCurrent v1 0"}, sayCall(first(edits("v1", "", 0)).Raise))
}
