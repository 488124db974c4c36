package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestVerdicts: what policy's answers make of a raise.
func TestVerdicts(t *testing.T) {
	on := func(k rollout.ActionKind, e rollout.Effect) func(rollout.Proposal) rollout.Verdicts {
		return verdictOn(k, effect(e))
	}
	spec := func(e rollout.Effect) func(rollout.Proposal) rollout.Verdicts {
		return func(p rollout.Proposal) rollout.Verdicts {
			v := allowed(p)
			v.Spec = effect(e)
			return v
		}
	}
	mode := func(g *given) { g.Environment.Approval.Mode = v1alpha1.PullRequest }
	ramping := rampsAt(10, time.Hour)
	for _, c := range []struct {
		name   string
		given  change
		judge  func(rollout.Proposal) rollout.Verdicts
		reason rollout.Reason
		raise  []string
		lower  []string
	}{
		{"allow", ramping, on(rollout.Ramp, rollout.Allow), rollout.Ramping, []string{"SetRamp v2 50"}, nil},
		{"warn", ramping, on(rollout.Ramp, rollout.Warn), rollout.Ramping, []string{"SetRamp v2 50"}, nil},
		{"hold", ramping, on(rollout.Ramp, rollout.HoldEffect), rollout.PolicyHold, nil, nil},
		{"an effect nobody knows", ramping, on(rollout.Ramp, "maybe"), rollout.PolicyHold, nil, nil},
		{"no verdict", ramping, on(rollout.Ramp, ""), rollout.PolicyHold, nil, nil},
		{"approval", ramping, on(rollout.Ramp, rollout.RequireApproval), rollout.AwaitingApproval, nil, nil},
		{"approval by mode", all(ramping, mode), allowed, rollout.AwaitingApproval, nil, nil},
		{"approved by an edit", all(rampsAt(10, time.Minute), mode, edits("v1", "v2", 50)), allowed, rollout.Ramping, []string{"SetRamp v2 50"}, nil},
		{"approved, and held", all(rampsAt(10, time.Minute), mode, edits("v1", "v2", 50)), on(rollout.Ramp, rollout.HoldEffect), rollout.PolicyHold, nil, nil},
		{"rollback", ramping, on(rollout.Ramp, rollout.RollbackEffect), rollout.RolledBack, nil, []string{"ClearRamp  0"}},
		{"the spec is denied", ramping, spec(rollout.HoldEffect), rollout.PolicyHold, nil, nil},
		{"the spec got no verdict", ramping, spec(""), rollout.PolicyHold, nil, nil},
		{"the spec wants approval", ramping, spec(rollout.RequireApproval), rollout.AwaitingApproval, nil, nil},
		{"continue: hold", ramping, on(rollout.Continue, rollout.HoldEffect), rollout.PolicyHold, nil, nil},
		{"continue: no verdict", ramping, on(rollout.Continue, ""), rollout.PolicyHold, nil, nil},
		{"continue: approval is no word on it", ramping, on(rollout.Continue, rollout.RequireApproval), rollout.Ramping, []string{"SetRamp v2 50"}, nil},
		{"continue: rollback, in the pause", rampsAt(10, time.Minute), turnsBack, rollout.RolledBack, nil, []string{"ClearRamp  0"}},
		{"continue: rollback of the current one", promoted(time.Minute), turnsBack, rollout.RolledBack, nil, []string{"SetCurrent v1 0"}},
		{"continue: the window is over", promoted(2 * time.Hour), turnsBack, rollout.PolicyHold, nil, nil},
		{"continue: no pollers", all(promoted(time.Minute), noPollers("v1")), turnsBack, rollout.PolicyHold, nil, nil},
		{"continue: of the current one while another ramps", all(promoted(time.Minute), wants("v3"), inGit("v3"), up("v3"), routes("v2", "v3", 10, time.Minute), desires("v2", "v3", 10)),
			turnsBack, rollout.Ramping, nil, []string{"ClearRamp  0", "SetCurrent v1 0"}},
		{"a retreat is not stopped", all(rampsAt(10, time.Hour), wants("v1")), on(rollout.ResetRamp, rollout.HoldEffect), rollout.RolloutComplete, nil, []string{"ClearRamp  0"}},
		{"nor a lower step", rampsAt(30, time.Hour), on(rollout.Ramp, rollout.HoldEffect), rollout.Ramping, nil, []string{"SetRamp v2 10"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := decide(t, of(c.given), c.judge)
			require.Equal(t, string(c.reason), p.Status.Conditions[0].Reason)
			require.Equal(t, c.raise, sayCall(p.Raise))
			require.Equal(t, c.lower, sayCall(p.Lower))
		})
	}
}

// TestHowToApprove: what waits for approval says where it can be given, and by which command.
func TestHowToApprove(t *testing.T) {
	mode := func(g *given) { g.Environment.Approval.Mode = v1alpha1.PullRequest }
	message := func(p rollout.Plan) string { return p.Status.Conditions[0].Message }
	waits := all(pastPause(), mode, suggests(10, 50))
	p := decide(t, of(waits), allowed)
	require.Contains(t, message(p), ". To approve it, merge the branch rampart/prod/payments/checkout, or: rampart approve payments/checkout")
	p = decide(t, of(all(waits, reviewed(rollout.Review{URL: "https://git.example.com/pulls/7"}))), allowed)
	require.Contains(t, message(p), ". To approve it, merge https://git.example.com/pulls/7, or: rampart approve payments/checkout")
	p = decide(t, of(waits), verdictOn(rollout.Ramp, effect(rollout.HoldEffect)))
	require.NotContains(t, message(p), "rampart approve", "policy holds it")
}

// TestBarWins: where the spec and policy both take traffic from a build, it is barred.
func TestBarWins(t *testing.T) {
	p := decide(t, of(rampsAt(10, time.Minute), wants("v1")), turnsBack)
	require.Len(t, p.Record.Bars, 1)
	require.Equal(t, v1alpha1.Bar{BuildID: id("v2"), TemplateHash: hash("v2"), By: "some.rule", Reason: "says so", At: stamp(noon)}, p.Record.Bars[0])
	require.Equal(t, map[string]string{id("v2"): "1 says so"}, p.Lower.TurnedBack)
	require.Equal(t, "RolloutComplete", p.Status.Conditions[0].Reason, "v1, which the spec asks for, is current")
	require.Equal(t, 1, rollout.FindVersion(p.Record.Versions, id("v2")).TurnedBack)

	p = decide(t, of(rampsAt(10, time.Minute), barsBuild("v2")), allowed)
	require.Empty(t, p.Lower.TurnedBack, "it is written down already")
}

// TestMarks: a mark says something only of a rollback that Git does not know of.
func TestMarks(t *testing.T) {
	mark := func(text string) change { return func(g *given) { g.listed("v2").TurnedBack = text } }
	attempt := func(n, turnedBack int) change {
		return func(g *given) {
			g.rec.Target.Attempt = n
			g.version("v2").Attempts, g.version("v2").TurnedBack = n, turnedBack
		}
	}
	for _, c := range []struct {
		name  string
		given change
		row   string
	}{
		{"of this attempt", mark("1 too slow"), "barred"},
		{"not understood", mark("too slow"), "barred"},
		{"of a later attempt", all(mark("2 too slow"), attempt(1, 0)), "barred"},
		{"of an earlier attempt", all(mark("1 too slow"), attempt(2, 0)), "first-step"},
		{"known, and the bar was taken away", all(mark("1 too slow"), attempt(1, 1)), "first-step"},
		{"not understood, known, and the bar was taken away", all(mark("too slow"), attempt(2, 1)), "first-step"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(candidate(), c.given)
			p := decide(t, s, allowed)
			require.Equal(t, c.row, p.Row)
			if c.row == "barred" {
				require.Len(t, p.Record.Bars, 1)
				require.Equal(t, ByMark, p.Record.Bars[0].By)
				require.Contains(t, "too slow", p.Record.Bars[0].Reason)
			}
		})
	}
}

// TestDesired: what is recorded as desired, by what is.
func TestDesired(t *testing.T) {
	hold := verdictOn(rollout.Ramp, effect(rollout.HoldEffect))
	for _, c := range []struct {
		name    string
		given   change
		judge   func(rollout.Proposal) rollout.Verdicts
		row     string
		desired string
		raise   []string
	}{
		{"done", rampsAt(10, time.Minute), allowed, "pause", "current v1, v2 ramping at 10%", nil},
		{"unfinished: decided again", all(candidate(), desires("v1", "v2", 10), basisIsActual()), allowed, "first-step", "current v1, v2 ramping at 10%", []string{"SetRamp v2 10"}},
		{"unfinished: not any more", all(candidate(), desires("v1", "v2", 10), basisIsActual()), hold, "first-step", "current v1", nil},
		{"unfinished: on fresh facts", all(candidate(), desires("v1", "v2", 10), basisIsActual(), noPollers("v2")), allowed, "wait-for-pollers", "current v1", nil},
		{"unfinished: not known", all(candidate(), desires("v1", "v2", 10), basisIsActual(), func(g *given) { g.listed("v2").QueuesKnown = "" }), allowed, "wait-for-pollers", "current v1, v2 ramping at 10%", nil},
		{"unfinished: not by a time that moved", all(candidate(), desires("v1", "v2", 10), basisIsActual(), func(g *given) { g.rec.Basis.Revision++ }), allowed, "drift", "current v1", nil},
		{"lower: adopted", all(rampsAt(50, time.Hour), routes("v1", "v2", 5, time.Minute)), allowed, "drift", "current v1, v2 ramping at 5%", nil},
		{"lower: what the spec wants by now", all(rampsAt(50, time.Hour), routes("v1", "", 0, time.Minute), asks("v1")), allowed, "complete", "current v1", nil},
		{"higher: reverted", all(rampsAt(10, time.Hour), routes("v1", "v2", 80, time.Minute)), allowed, "drift", "current v1, v2 ramping at 10%", nil},
		{"higher: held", all(rampsAt(10, time.Hour), routes("v1", "v2", 80, time.Minute)), verdictOn(rollout.DriftAction, effect(rollout.HoldEffect)), "drift", "current v1, v2 ramping at 10%", nil},
		{"somebody else's", all(rampsAt(10, time.Hour), foreign(), routes("v1", "v2", 80, time.Minute)), allowed, "owned-by-another", "current v1, v2 ramping at 10%", nil},
		{"not read", all(rampsAt(10, time.Hour), func(g *given) { g.Observation = rollout.Observation{} }), allowed, "temporal-unreadable", "current v1, v2 ramping at 10%", nil},
		{"no basis yet", all(rampsAt(10, time.Hour), func(g *given) { g.rec.Desired, g.rec.Decided, g.rec.Basis = v1alpha1.DesiredRouting{}, nil, nil }), hold, "next-step", "current v1, v2 ramping at 10%", nil},
		{"a promotion", rampsAt(50, time.Hour), allowed, "last-step", "current v2", []string{"SetCurrent v2 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := decide(t, of(c.given), c.judge)
			require.Equal(t, c.row, p.Row)
			require.Equal(t, c.desired, named(describe(desiredConfig(p.Record.Desired))))
			require.Equal(t, c.raise, sayCall(p.Raise))
		})
	}
}

// TestClaim: an unowned worker deployment is claimed before the first call.
func TestClaim(t *testing.T) {
	p := decide(t, of(candidate(), func(g *given) { g.Observation.ManagerIdentity = "" }), allowed)
	require.Equal(t, rollout.ClaimNeeded, p.Raise.Claim)
	require.Equal(t, rollout.ClaimHeld, decide(t, of(candidate()), allowed).Raise.Claim)
	require.Equal(t, owner, p.Raise.Identity)

	nobody := of(candidate(), func(g *given) { g.Environment.ManagerIdentity = "" })
	require.Nil(t, decide(t, nobody, allowed).Raise, "who has no identity moves nothing")
}

// TestCustomBuildID goes through the in-cluster controller's table of cases.
func TestCustomBuildID(t *testing.T) {
	set := func(custom string) change {
		return func(g *given) { g.Spec.Spec.WorkerOptions.UnsafeCustomBuildID = custom }
	}
	taken := func(g *given) { g.version("v1").BuildIDFrom = v1alpha1.BuildIDCustom }
	for _, c := range []struct {
		name   string
		given  change
		target string
		row    string
	}{
		{"set, template changes: in place", all(custom("v1"), taken, asks("v2")), id("v1"), "update-template"},
		{"set, template same, ID changes: a new version", all(custom("v1"), taken, set("other")), "other", "create"},
		{"all characters invalid: by the template", set("###"), id("v1"), "complete"},
		{"cleaned", set("---x y---"), "x-y", "create"},
		{"cleared again: a new version", taken, id("v1") + hash("v1")[8:16], "create"},
		{"that of an old version: it is the target again", all(promoted(2*time.Hour), wants("v2"), custom("v1"), asks("v1")), id("v1"), "first-step"},
		{"that of an old version, another template", all(promoted(2*time.Hour), custom("v1")), id("v1"), "update-template"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := decide(t, of(c.given), allowed)
			require.Equal(t, c.target, p.Target.BuildID)
			require.Equal(t, c.row, p.Row)
		})
	}
	s := of(custom("v1"), asks("v2"))
	p := decide(t, s, allowed)
	require.Equal(t, v1alpha1.BuildIDCustom, rollout.FindVersion(p.Record.Versions, id("v1")).BuildIDFrom, "so that its template is not taken for the build ID's")
	require.Equal(t, 2, p.Target.Attempt, "its gate starts over")
	require.Equal(t, []rollout.VersionWrite{{BuildID: id("v1"), Op: rollout.RenderVersion, Replicas: replicas(2), Guard: v1alpha1.GuardOn}}, p.Versions)
}

// TestNames: the Deployment of a new version does not take another one's name.
func TestNames(t *testing.T) {
	free := decide(t, of(asks("v2")), allowed).Target.Deployment
	for name, taken := range map[string]change{
		"another worker deployment's":   func(g *given) { g.TakenNames = []string{free} },
		"another version's of this one": func(g *given) { g.version("v1").Deployment = free },
	} {
		got := decide(t, of(asks("v2"), taken), allowed)
		require.NotEqual(t, free, got.Target.Deployment, name)
		require.Equal(t, got.Target.Deployment, got.Record.Versions[1].Deployment)
	}
}

// TestForeign: files still render, and the status says whose the routing is.
func TestForeign(t *testing.T) {
	p := decide(t, of(foreign(), asks("v2")), allowed)
	require.Equal(t, "create", p.Row)
	require.Equal(t, "OwnedByAnother", p.Status.Conditions[0].Reason)
	require.Len(t, p.Versions, 1)

	p = decide(t, of(foreign(), rampsAt(10, time.Hour), custom("v2"), func(g *given) { g.version("v2").TemplateHash = "old" }), allowed)
	require.Equal(t, "update-template", p.Row)
	require.Nil(t, p.Lower)

	p = decide(t, twice(of(foreign(), promoted(100*time.Hour), drained("v1", 90*time.Hour))), allowed)
	require.Empty(t, p.Versions)
	p = decide(t, of(foreign(), promoted(100*time.Hour), func(g *given) { g.version("v1").Guard = v1alpha1.GuardOff }), allowed)
	require.Len(t, p.Versions, 1, "what is needed is guarded")
}

// TestSpecGone: everything is kept, and what is needed is guarded.
func TestSpecGone(t *testing.T) {
	gone := func(g *given) {
		g.Record.Status = &v1alpha1.WorkerDeployment{Spec: g.Spec.Spec, Status: &v1alpha1.WorkerDeploymentStatus{
			Decision: &v1alpha1.Decision{SpecDigest: g.Spec.Digest()}}}
		g.Spec = nil
	}
	s := of(gone)
	p := decide(t, s, allowed)
	require.Equal(t, s.Record.Routing.Spec, *p.Record)
	require.Equal(t, "InvalidSpec", p.Status.Conditions[0].Reason)
	require.Equal(t, s.Record.Status.Status.Decision.SpecDigest, p.Status.Decision.SpecDigest)

	p = decide(t, twice(of(promoted(100*time.Hour), drained("v1", 90*time.Hour), gone)), allowed)
	require.Empty(t, p.Versions)
	require.False(t, p.SecondRead)

	p = decide(t, of(promoted(100*time.Hour), func(g *given) { scaledDown("v1", time.Hour)(g); g.Spec.Spec.Replicas = nil }, gone), allowed)
	require.Equal(t, []rollout.VersionWrite{{BuildID: id("v1"), Op: rollout.EditVersion, Guard: v1alpha1.GuardOn}}, p.Versions)

	p = decide(t, of(rampsAt(10, time.Minute), gone), turnsBack)
	require.Equal(t, []string{"ClearRamp  0"}, sayCall(p.Lower), "policy can still turn a build back")
}

// TestBeforeTheFirstRead: a status says why nothing happens, and nothing is guessed of the routing.
func TestBeforeTheFirstRead(t *testing.T) {
	fresh := func(g *given) { g.Record.Routing, g.Record.Files = nil, nil }
	p := decide(t, of(fresh, func(g *given) { g.Connection, g.Observation = nil, rollout.Observation{} }), allowed)
	require.Equal(t, "ConnectionNotFound", p.Status.Conditions[0].Reason)
	require.Nil(t, p.Record.Basis)
	require.Equal(t, "payments/checkout in prod", p.Record.WorkerDeployment+" in "+p.Record.TemporalNamespace)
	require.Nil(t, p.Record.Target)

	s := of(fresh)
	s.Record.Routing = &v1alpha1.Routing{Spec: *p.Record}
	next := decide(t, s, allowed)
	require.Equal(t, "create", next.Row, "what Temporal has is no drift")
	require.Equal(t, id("v1"), next.Record.Desired.Current)

	none := of(fresh, func(g *given) {
		g.Spec, g.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}}
	})
	require.Nil(t, decide(t, none, allowed).Record)
}

// TestSpecMoved: a moved spec does not change the record by itself; its path follows with the next change.
func TestSpecMoved(t *testing.T) {
	moved := func(g *given) { g.SpecPath = "workers/moved.yaml" }
	require.Equal(t, "workers/checkout.yaml", decide(t, of(moved), allowed).Record.SpecPath)
	require.Equal(t, "workers/moved.yaml", decide(t, of(moved, asks("v2")), allowed).Record.SpecPath)
}

// TestStatus tells of what is done by the time of the commit.
func TestStatus(t *testing.T) {
	p := decide(t, of(promoted(time.Minute), wants("v1")), allowed)
	require.Equal(t, "Current", p.Status.CurrentVersion.Status)
	require.Equal(t, id("v1"), p.Status.CurrentVersion.BuildID)
	require.Equal(t, "Draining", p.Status.DeprecatedVersions[0].Status)
	require.Equal(t, v1alpha1.False, p.Status.Conditions[0].Status, "never ready before it is seen")

	p = decide(t, of(candidate()), allowed)
	require.Equal(t, "Ramping", p.Status.TargetVersion.Status)
	require.Equal(t, 10.0, *p.Status.TargetVersion.RampPercent)
	require.Equal(t, stamp(noon.Add(10*time.Minute)), *p.Status.Decision.NextStepAt)

	p = decide(t, of(rampsAt(50, time.Hour)), allowed)
	require.Equal(t, "Ramping", p.Status.TargetVersion.Status, "not current before it is seen")

	s := of(candidate(), unlisted("v2"))
	for reason, stalled := range map[rollout.Reason]v1alpha1.ConditionStatus{rollout.PlanExecutionFailed: v1alpha1.True,
		rollout.StaleFacts: v1alpha1.False} { // what came too late is tried again at once
		s.Failure = &rollout.Problem{Reason: reason, Message: "as it says"}
		for _, c := range decide(t, s, allowed).Status.Conditions {
			require.Equal(t, string(reason), c.Reason)
			if c.Type == v1alpha1.ConditionStalled {
				require.Equal(t, stalled, c.Status, reason)
			}
		}
	}
	s = of()
	s.Failure = &rollout.Problem{Reason: rollout.PlanExecutionFailed, Message: "refused"}
	require.Equal(t, "RolloutComplete", decide(t, s, allowed).Status.Conditions[0].Reason)

	late := decide(t, of(candidate(), unlisted("v2"), func(g *given) {
		g.version("v2").CreatedAt = stamp(ago(time.Hour))
		g.rec.Target.Since = stamp(ago(time.Hour))
	}), allowed)
	want := map[string]v1alpha1.ConditionStatus{"Ready": v1alpha1.False, "Progressing": v1alpha1.True, "Reconciling": v1alpha1.False, "Stalled": v1alpha1.True}
	got := map[string]v1alpha1.ConditionStatus{}
	for _, c := range late.Status.Conditions {
		got[c.Type] = c.Status
	}
	require.Equal(t, want, got)
}

// TestPromotionOrder keeps its newest part.
func TestPromotionOrder(t *testing.T) {
	p := decide(t, of(func(g *given) {
		for range 30 {
			g.rec.Promotions = append([]v1alpha1.Promotion{{BuildID: "old", LeftAt: stamp(ago(100 * time.Hour)), LeftBy: v1alpha1.LeftByPromotion}}, g.rec.Promotions...)
		}
	}), allowed)
	require.Len(t, p.Record.Promotions, maxPromotions)
	require.Equal(t, id("v1"), p.Record.Promotions[maxPromotions-1].BuildID)
}

// TestGateWithoutAQueue: a worker that serves no workflows can't be gated. Its workflow task queue may come later than
// others: the status says that it failed only after the deadline for workers.
func TestGateWithoutAQueue(t *testing.T) {
	withGate := all(candidate(), gate(v1alpha1.GateHold), activitiesOnly)
	p := decide(t, of(withGate), allowed)
	require.Equal(t, "GateFailed", p.Status.Conditions[0].Reason)
	atLast := func(g *given) { g.Spec.Spec.ProgressDeadlineSeconds = new(int32(300)) } // the target is 5 minutes old
	p = decide(t, of(withGate, atLast), allowed)
	require.Equal(t, "WaitingForPollers", p.Status.Conditions[0].Reason)
	require.Contains(t, p.Status.Conditions[0].Message, "has no workflow task queue")
	require.Equal(t, noon, p.NextDue)
}

// TestGateInputMessage: the status says which gate's input is missing, and why, where that is known.
func TestGateInputMessage(t *testing.T) {
	withoutInput := all(candidate(), stepGate(2, v1alpha1.GateHold), secretInput())
	require.Equal(t, "the input of gate Smoke is key input.json of Secret payments/smoke, which the bot was not given", Look(of(withoutInput)).Propose().State.Message)
	unread := all(withoutInput, hasInput(rollout.GateInput{Problem: "no such file"}))
	require.Equal(t, "the input of gate Smoke cannot be used: no such file", Look(of(unread)).Propose().State.Message)
}

// TestGateOnEveryQueue: one that failed outweighs one that is unknown, missing or running.
func TestGateOnEveryQueue(t *testing.T) {
	for _, c := range []struct {
		a, b rollout.GateState
		want rollout.Reason
	}{
		{rollout.GateCompleted, rollout.GateCompleted, rollout.Ramping},
		{rollout.GateCompleted, rollout.GateRunning, rollout.GateIsRunning},
		{rollout.GateCompleted, rollout.GateMissing, rollout.GateIsRunning},
		{rollout.GateMissing, rollout.GateUnread, rollout.StaleFacts},
		{rollout.GateRunning, rollout.GateTerm, rollout.GateHasFailed},
		{rollout.GateUnread, rollout.GateCanceled, rollout.GateHasFailed},
		{rollout.GateCompleted, "", rollout.StaleFacts},
	} {
		p := decide(t, of(candidate(), gate(v1alpha1.GateHold), gateIs(c.a, 1), func(g *given) {
			g.listed("v2").Queues = append(g.listed("v2").Queues, polled("refunds"))
			run := g.Observation.Gates[0]
			spec := Look(g.Snapshot).pointGate()
			run.WorkflowID, run.TaskQueue, run.State = spec.WorkflowID("refunds"), "refunds", c.b
			g.Observation.Gates = append(g.Observation.Gates, run)
		}), allowed)
		require.Equal(t, string(c.want), p.Status.Conditions[0].Reason, "%s and %s", c.a, c.b)
	}
}

// TestAsk asks only for what a row will look at.
func TestAsk(t *testing.T) {
	b := func(tags ...string) []string {
		var out []string
		for _, tag := range tags {
			out = append(out, id(tag))
		}
		return out
	}
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	down := all(old, scaledDown("v1", 80*time.Hour))
	for _, c := range []struct {
		name                string
		given               change
		queues, pinned, end []string
		gate                bool
	}{
		{"steady", none, nil, nil, nil, false},
		{"not read", func(g *given) { g.Observation = rollout.Observation{} }, nil, nil, nil, false},
		{"somebody else's", all(candidate(), foreign()), nil, nil, nil, false},
		{"a candidate", candidate(), b("v1", "v2"), nil, nil, false},
		{"a candidate with a gate", all(candidate(), gate(v1alpha1.GateHold)), b("v1", "v2"), nil, nil, true},
		{"ramping", all(rampsAt(10, time.Minute), gate(v1alpha1.GateHold)), b("v1", "v2"), nil, b("v1", "v2"), false},
		{"a ramp to be reset", all(rampsAt(10, time.Minute), wants("v1")), b("v1", "v2"), nil, b("v1", "v2"), false},
		{"promoted lately", promoted(time.Minute), b("v1", "v2"), nil, b("v2"), false},
		{"baking", all(promoted(time.Minute), analysed(baked)), b("v1", "v2"), nil, b("v2"), false},
		{"promoted long ago", promoted(5 * time.Hour), nil, nil, nil, false},
		{"barred", all(promoted(5*time.Hour), barsBuild("v2")), b("v1"), nil, nil, false},
		{"drift to be reverted, out of the window", all(promoted(5*time.Hour), wants("v3"), routes("v3", "", 0, time.Minute), up("v3"), inGit("v3"), func(g *given) {
			g.Spec.Spec.Rollout.Rollback.Window = lasting(time.Minute - 1)
		}), b("v2"), nil, nil, false},
		{"drift to be reverted", all(promoted(5*time.Hour), wants("v3"), routes("v3", "", 0, time.Minute), up("v3"), inGit("v3")), b("v2", "v3"), nil, b("v3"), false},
		{"an edit", all(promoted(5*time.Hour), edits("v1", "", 0)), b("v1"), nil, nil, false},
		{"drained, not due", all(promoted(100*time.Hour), drained("v1", time.Minute)), nil, nil, nil, false},
		{"drained, due", old, nil, b("v1"), nil, false},
		{"scaled down, not due", all(down, drained("v1", 5*time.Hour), scaledDown("v1", time.Hour)), nil, nil, nil, false},
		{"scaled down, due", down, b("v1"), b("v1"), nil, false},
		{"set aside", all(down, aside("v1", time.Hour, 1), scaledDown("v1", time.Hour)), nil, nil, nil, false},
		{"gone", all(down, unlisted("v1")), nil, b("v1"), nil, false},
		{"the spec is gone", all(old, func(g *given) { g.Spec = nil }), nil, nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Look(of(c.given)).Ask()
			sorted := func(in []string) []string { return append([]string{}, sortedKeys(setOf(in))...) }
			require.Equal(t, sorted(c.queues), append([]string{}, a.Queues...), "queues")
			require.Equal(t, sorted(c.pinned), append([]string{}, a.OpenPinned...), "pinned")
			require.Equal(t, sorted(c.end), builds(a.Closed), "closed")
			require.Equal(t, c.gate, a.Gate != nil)
			require.Equal(t, "prod", a.TemporalNamespace)
		})
	}
	s := of(func(g *given) { g.Spec.Spec.WorkerOptions.TemporalNamespace = "other" })
	require.Equal(t, "prod", Look(s).Ask().TemporalNamespace, "where its versions are")
	s.Record.Routing = nil
	require.Equal(t, "other", Look(s).Ask().TemporalNamespace)
}

func builds(asks []rollout.ClosedAsk) []string {
	out := []string{}
	for _, a := range asks {
		out = append(out, a.BuildID)
	}
	slices.Sort(out)
	return out
}

func setOf(in []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range in {
		out[s] = true
	}
	return out
}

// Versions that Temporal knows and Git does not are said in the status, each once and in order.
func TestUnrecordedVersions(t *testing.T) {
	p := decide(t, of(up("v9"), up("v8")), allowed)
	require.Equal(t, []string{id("v8"), id("v9")}, p.Status.UnrecordedVersions)
	require.Empty(t, decide(t, of(promoted(time.Minute)), allowed).Status.UnrecordedVersions)
}

// The next step's time is the target's own, whatever is due for other versions before it.
func TestNextStepIsTheTargets(t *testing.T) {
	p := decide(t, of(rampsAt(10, time.Minute), inGit("v0"), up("v0"), drained("v0", 59*time.Minute)), allowed)
	require.Equal(t, ago(time.Minute).Add(10*time.Minute), p.Status.Decision.NextStepAt.Time)
	require.Equal(t, noon.Add(time.Minute), p.NextDue, "v0 may be scaled down before")
}
