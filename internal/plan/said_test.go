package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestHeadlines: what the first lines of commits say.
func TestHeadlines(t *testing.T) {
	moves := &rollout.Evacuation{Target: "w", Signal: "go"}
	for want, a := range map[string]rollout.Action{
		"create v":                           {Kind: rollout.CreateVersion},
		"update v in place (template)":       {Kind: rollout.UpdateVersion, Update: rollout.UpdateTemplate},
		"scale v":                            {Kind: rollout.ScaleVersion},
		"update objects of v: pdb":           {Kind: rollout.UpdateResources, Resources: []rollout.ResourceWrite{{Template: "pdb", Object: json.RawMessage(`{}`)}}},
		"restore v":                          {Kind: rollout.Restore},
		"start gate Smoke on v":              {Kind: rollout.StartGate, Gate: &rollout.GateSpec{WorkflowType: "Smoke"}},
		"ramp v at 10%":                      {Kind: rollout.Ramp, To: 10},
		"promote v":                          {Kind: rollout.Promote},
		"take traffic back from v: too slow": {Kind: rollout.ResetRamp, Reason: "too slow"},
		"roll back to v: too slow":           {Kind: rollout.Rollback, Reason: "too slow"},
		"drift: too slow":                    {Kind: rollout.DriftAction, Reason: "too slow"},
		"take new workflows from v: moved":   {Kind: rollout.Unroute, Reason: "moved"},
		"scale down v":                       {Kind: rollout.ScaleDown},
		"remove v":                           {Kind: rollout.RemoveFiles},
		"set aside v":                        {Kind: rollout.SetAsideKind},
		"signal workflows on v (go)":         {Kind: rollout.SignalWorkflows, Evacuation: moves},
		"move workflows from v to w":         {Kind: rollout.MoveWorkflows, Evacuation: moves},
		"cancel workflows on v":              {Kind: rollout.CancelWorkflows, Evacuation: moves},
		"terminate workflows on v":           {Kind: rollout.TerminateWorkflows, Evacuation: moves},
		"":                                   {Kind: rollout.Continue},
	} {
		a.BuildID = "v"
		require.Equal(t, want, headline(a))
	}
}

// TestDecisions: what a status says of where the rollout stands.
func TestDecisions(t *testing.T) {
	hold := rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{
		{Rule: "b", Effect: rollout.HoldEffect, Message: "no"}, {Rule: "a", Effect: rollout.RequireApproval, Message: "ask"},
		{Rule: "c", Effect: rollout.Allow, Message: "fine"}, {Rule: "d", Effect: rollout.HoldEffect, Message: "never", Waived: "once"}}}
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	for _, c := range []struct {
		name       string
		given      change
		judge      func(rollout.Proposal) rollout.Verdicts
		action, to string
		rules      []string
	}{
		{"done", none, allowed, "Promote", "current", nil},
		{"a step", rampsAt(10, time.Hour), allowed, "Ramp", "50%", nil},
		{"its pause", rampsAt(10, time.Minute), allowed, "Ramp", "10%", nil},
		{"a promotion", rampsAt(50, time.Hour), allowed, "Promote", "current", nil},
		{"a rollback", all(promoted(time.Minute), wants("v1")), allowed, "Rollback", "current", nil},
		{"taken back", all(rampsAt(10, time.Hour), wants("v1")), allowed, "Promote", "current", nil},
		{"waiting", all(candidate(), noPollers("v2")), allowed, "", "", nil},
		{"a step that policy holds", rampsAt(10, time.Hour), verdictOn(rollout.Ramp, hold), "Ramp", "50%", []string{"a", "b"}},
		{"another version's end that policy holds", old, verdictOn(rollout.ScaleDown, hold), "Promote", "current", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decide(t, of(c.given), c.judge).Status.Decision
			require.Equal(t, []any{c.action, c.to, c.rules}, []any{d.Action, d.To, d.Rules})
		})
	}
}

// TestStatusIsSorted: whatever the order of the record.
func TestStatusIsSorted(t *testing.T) {
	var got []string
	for _, v := range decide(t, of(inGit("v3"), up("v3"), inGit("v2"), up("v2"), inGit("v4"), up("v4")), allowed).Status.DeprecatedVersions {
		got = append(got, v.BuildID)
	}
	require.Equal(t, []string{id("v2"), id("v3"), id("v4")}, got)
}

// TestReasons: what there is to say where two cases differ in nothing else.
func TestReasons(t *testing.T) {
	nowhere := all(candidate(), gate(v1alpha1.GateHold), activitiesOnly)
	require.Contains(t, Look(of(nowhere)).Propose().State.Message, "no workflow task queue")
	require.NotContains(t, Look(of(nowhere)).Propose().State.Message, "push another build")
	require.Contains(t, Look(of(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateFailed, 1))).Propose().State.Message, "push another build")

	gone := func(g *given) { g.Spec = nil }
	require.Contains(t, Look(of(gone)).Propose().State.Message, "rampart retire payments/checkout")
	require.Contains(t, Look(of(gone, retires(v1alpha1.KeepCurrent, time.Hour))).Propose().State.Message, "until all is retired")

	uncounted := func(g *given) { g.listed("v1").InUse.Reason = "visibility is away" }
	require.Contains(t, Look(of(retires(v1alpha1.UnrouteProven, 2*time.Hour), uncounted)).Propose().State.Message, "visibility is away")
	require.Contains(t, Look(of(retires(v1alpha1.UnrouteProven, 2*time.Hour))).Propose().State.Message, "not asked")

	reason := func(kind rollout.ActionKind, c ...change) string {
		for _, a := range Look(of(c...)).Propose().Actions {
			if a.Kind == kind {
				return a.Reason
			}
		}
		return ""
	}
	unversioned := func(g *given) { g.listed("v1").Queues[0].Unversioned = rollout.Yes }
	require.Contains(t, reason(rollout.Unroute, retires(v1alpha1.UnrouteProven, 2*time.Hour), used("v1", 0)), "nothing uses it")
	require.Contains(t, reason(rollout.Unroute, retires(v1alpha1.UnrouteProven, 2*time.Hour), unversioned), "unversioned workers")
	require.Contains(t, reason(rollout.ScaleVersion, askedFor(replicas(5))), "the spec's replicas changed")
	require.Contains(t, reason(rollout.ScaleVersion, templates(tmpl("hpa")), carries("v1", "hpa"), func(g *given) { g.version("v1").Replicas = replicas(2) }), "which owns its replicas")
}

// TestAskForMetrics: only while they decide.
func TestAskForMetrics(t *testing.T) {
	want := &rollout.MetricsAsk{Candidate: id("v2"), Current: id("v1"), Metrics: []v1alpha1.Metric{{Name: "error_rate", MaxAge: lasting(2 * time.Minute)}}}
	require.Equal(t, want, Look(of(rampsAt(10, time.Hour), analysed(errorRate))).Ask().Metrics)
	require.Equal(t, want, Look(of(promoted(time.Minute), analysed(errorRate, baked))).Ask().Metrics)
	require.Nil(t, Look(of(promoted(time.Minute), analysed(errorRate))).Ask().Metrics, "only a rollback is open")
	require.Nil(t, Look(of(rampsAt(10, time.Hour), analysed())).Ask().Metrics)
}

// TestEditWithAGate: a wish waits for its gate, and is answered when that fails.
func TestEditWithAGate(t *testing.T) {
	wish := all(candidate(), gate(v1alpha1.GateHold), edits("v1", "v2", 10))
	require.Nil(t, decide(t, of(wish, gateIs(rollout.GateRunning, 1)), allowed).Record.Hold)
	require.NotNil(t, decide(t, of(wish, gateIs(rollout.GateFailed, 1)), allowed).Record.Hold)
}

// TestEvacuationIsWrittenDown: of jobs that ended, and of what a person has to answer.
func TestEvacuationIsWrittenDown(t *testing.T) {
	p := decide(t, of(stays(3), inRecord(v1alpha1.EvacuateBySignal, v1alpha1.EvacuationRunning), job(v1alpha1.EvacuateBySignal, rollout.BatchCompleted)), allowed)
	require.Equal(t, stamp(ago(time.Minute)), rollout.FindVersion(p.Record.Versions, id("v1")).Evacuations[0].EndedAt)

	unasked := func(e *v1alpha1.RecordedEvacuation) { e.ProposedAt = v1alpha1.Time{} }
	s := of(stays(3), inRecord(v1alpha1.EvacuateBySignal, v1alpha1.EvacuationFailed, unasked), inRecord(v1alpha1.EvacuateByMove, v1alpha1.EvacuationProposed))
	p = decide(t, s, allowed)
	require.Equal(t, []string{"start Cancel of 3", "Signal Failed", "Move Proposed", "Cancel Running"}, evacuated(s, p))
	shown := p.Status.DeprecatedVersions[0].Evacuation
	require.Empty(t, shown[0].Message)
	require.Contains(t, shown[1].Message, "waits for approval")
}

// TestSettledBesideADrainedVersion: nothing is to be done about it for an hour, but for a job that runs.
func TestSettledBesideADrainedVersion(t *testing.T) {
	resting := all(stays(0), drained("v1", time.Minute))
	require.True(t, decide(t, of(resting), allowed).Settled)
	runs := all(inRecord(v1alpha1.EvacuateBySignal, v1alpha1.EvacuationRunning), job(v1alpha1.EvacuateBySignal, rollout.BatchRunning))
	require.False(t, decide(t, of(resting, runs), allowed).Settled)
}

// TestTargetBesideAnEdit: a file that is written anyway is written once.
func TestTargetBesideAnEdit(t *testing.T) {
	require.Equal(t, []string{"UpdateVersion v1 Connection x2"},
		sayAll(Look(of(askedFor(replicas(5)), func(g *given) { g.version("v1").ConnectionHash = "old" })).Propose().Actions))
	require.Equal(t, []string{"Restore v1 x5"},
		sayAll(Look(of(askedFor(replicas(5)), func(g *given) { g.version("v1").Guard = v1alpha1.GuardOff })).Propose().Actions))
}

// TestActionIDs: policy's verdict on one step is not that on another.
func TestActionIDs(t *testing.T) {
	require.Equal(t, "Ramp/v@10%", actionID(rollout.Action{Kind: rollout.Ramp, BuildID: "v", To: 10}))
	require.Equal(t, "Promote/v", actionID(rollout.Action{Kind: rollout.Promote, BuildID: "v", To: 100}))
}

// TestRoutedAt: traffic that is seen is written down, no matter who gave it.
func TestRoutedAt(t *testing.T) {
	s := of(rampsAt(10, time.Minute), func(g *given) { g.version("v1").RoutedAt, g.version("v2").RoutedAt = v1alpha1.Time{}, v1alpha1.Time{} })
	for _, v := range decide(t, s, allowed).Record.Versions {
		require.Equal(t, stamp(noon), v.RoutedAt, named(v.BuildID))
	}
}

// TestSetAsideEnds: with what was set aside, and with nothing else.
func TestSetAsideEnds(t *testing.T) {
	down := all(promoted(100*time.Hour), drained("v1", 90*time.Hour), scaledDown("v1", 80*time.Hour), noPollers("v1"))
	both := all(aside("v1", 48*time.Hour, 1), func(g *given) { g.rec.SetAside = append(g.rec.SetAside, v1alpha1.SetAside{BuildID: "another"}) })
	for name, c := range map[string]change{"removed": all(down, unlisted("v1"), counted("v1", 0)), "restored": all(down, drains("v1"))} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []v1alpha1.SetAside{{BuildID: "another"}}, decide(t, twice(of(c, both)), allowed).Record.SetAside)
		})
	}
}

// TestRevertWantsWorkers: drift is not reverted onto a version without them.
func TestRevertWantsWorkers(t *testing.T) {
	outside := all(candidate(), routes("v2", "", 0, time.Minute), wants("v3"), inGit("v3"), up("v3"))
	require.Equal(t, []string{"SetCurrent v1 0"}, sayCall(decide(t, of(outside), allowed).Lower))
	p := decide(t, of(outside, noPollers("v1")), allowed)
	require.Nil(t, p.Lower)
	require.Contains(t, p.Status.Conditions[0].Message, "not reverted, since no worker of ")
}

// TestOneMove: two reasons to take traffic back take it back once.
func TestOneMove(t *testing.T) {
	p := decide(t, of(rampsAt(10, time.Minute), asks("v3")), func(p rollout.Proposal) rollout.Verdicts {
		v := allowed(p)
		for _, a := range p.Actions {
			if a.Kind == rollout.Continue && a.BuildID == id("v2") {
				v.Actions[a.ID] = effect(rollout.RollbackEffect)
			}
		}
		return v
	})
	moves := 0
	for _, a := range p.Actions {
		if a.Routes() {
			moves++
		}
	}
	require.Equal(t, 1, moves)
}

// TestTakenBackSays: the routing that it leads to, and whose reason stands.
func TestTakenBackSays(t *testing.T) {
	taken, err := Look(of(rampsAt(10, time.Minute))).DecideTakeBack(adasWish)
	require.NoError(t, err)
	require.Equal(t, rollout.RoutingConfig{Current: id("v1")}, taken.Now())
	taken, err = Look(of(candidate(), marked("v2", "1 too slow"))).DecideTakeBack(adasWish)
	require.NoError(t, err)
	require.Equal(t, "too slow", taken.Bar.Reason)
	require.Equal(t, id("v1"), taken.Now().Current, "nothing moves")
	taken, err = Look(of(candidate(), barsBuild("v2"))).DecideTakeBack(adasWish)
	require.NoError(t, err)
	require.Equal(t, adasWish.Reason, taken.Bar.Reason)
}

// TestPromotionIsDated: by the server, or else by when it was seen.
func TestPromotionIsDated(t *testing.T) {
	for _, changed := range []time.Time{ago(time.Minute), {}} {
		s := of(rampsAt(50, time.Hour), routes("v2", "", 0, time.Minute), func(g *given) { g.Observation.Routing.CurrentChangedAt = changed })
		want := changed
		if changed.IsZero() {
			want = noon
		}
		order := Look(s).promotions
		require.Equal(t, stamp(want), order[len(order)-1].At)
		require.Equal(t, stamp(want), order[len(order)-2].LeftAt)
	}
}
