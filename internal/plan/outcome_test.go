package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// retention removes the closed gates from the server.
func (s *server) retention() {
	for id, state := range s.gates {
		if state != rollout.GateRunning {
			delete(s.gates, id)
		}
	}
}

// A gate that completed does not run again when retention removed its run, however long a policy or a pause holds the
// rollout.
func TestGateOutcomeOutlivesRetention(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	gate(v1alpha1.GateHold)(w.given)
	stepGate(1, v1alpha1.GateRollback)(w.given)
	w.spec().Rollout.Steps[0].PauseDuration = lasting(48 * time.Hour)
	w.judge = verdictOn(rollout.Ramp, effect(rollout.HoldEffect))
	w.push("v2")
	w.run(time.Minute)
	require.Len(t, w.server.gates, 1)
	w.server.endGates(rollout.GateCompleted)
	w.settle()
	require.Contains(t, w.commits[len(w.commits)-1], "gate Smoke completed on task queue orders")
	w.server.retention()
	w.quiet(3, time.Hour)
	require.Empty(t, w.server.gates, "it runs once")

	w.judge = allowed
	w.run(time.Minute)
	require.Equal(t, []string{"v2 10"}, w.server.calls)
	require.Len(t, w.server.gates, 1, "the step's own")
	w.server.endGates(rollout.GateCompleted)
	w.settle()
	w.server.retention()
	w.quiet(3, 10*time.Hour)
	w.run(time.Hour + 48*time.Hour)
	require.Equal(t, []string{"v2 10", "v2 50", "v2 current"}, w.server.calls)
	require.Empty(t, w.server.gates)
	require.Equal(t, "RolloutComplete*", w.reason())
	require.Len(t, w.routing().Target.Gates, 2)
}

// endGates closes all gates.
func (s *server) endGates(state rollout.GateState) {
	for id := range s.gates {
		s.gates[id] = state
	}
}

// A gate that failed stays failed when its run is gone, and another attempt, queue, type, input or template is another
// gate.
func TestGateOutcomeIsAboutOneGate(t *testing.T) {
	failed := func(changes ...func(*v1alpha1.RecordedGate)) change {
		return func(g *given) {
			spec := Look(g.Snapshot).gateSpec(g.Spec.Spec.Rollout.Gate, "first")
			r := v1alpha1.RecordedGate{Point: "first", TaskQueue: "orders", WorkflowType: "Smoke", WorkflowID: spec.WorkflowID("orders"),
				Outcome: v1alpha1.GateFails, ClosedAt: stamp(ago(time.Hour))}
			for _, c := range changes {
				c(&r)
			}
			g.rec.Target.Gates = append(g.rec.Target.Gates, r)
		}
	}
	base := all(candidate(), gate(v1alpha1.GateHold), failed())
	for name, c := range map[string]struct {
		given  change
		row    string
		starts int
		reason rollout.Reason
	}{
		"gone":                {gateIs(rollout.GateMissing, 1), "gate", 0, rollout.GateHasFailed},
		"cannot be read":      {gateIs(rollout.GateUnread, 1), "gate", 0, rollout.GateHasFailed},
		"not asked for":       {all(), "gate", 0, rollout.GateHasFailed},
		"reset, and runs":     {gateIs(rollout.GateRunning, 1), "gate", 0, rollout.GateIsRunning},
		"reset, and complete": {gateIs(rollout.GateCompleted, 1), "first-step", 0, rollout.Ramping},
		"another type": {func(g *given) {
			g.Spec.Spec.Rollout.Gate.WorkflowType = "Other"
			onGate(rollout.GateMissing)(g)
		}, "gate", 1, rollout.GateIsRunning},
		"another input": {func(g *given) {
			g.Spec.Spec.Rollout.Gate.Input = []byte(`{"n":1}`)
			onGate(rollout.GateMissing)(g)
		}, "gate", 1, rollout.GateIsRunning},
		"another attempt": {func(g *given) {
			g.rec.Target.Attempt = 2
			onGate(rollout.GateMissing)(g)
		}, "gate", 1, rollout.GateIsRunning},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(t, of(base, c.given), allowed)
			require.Equal(t, c.row, p.Row)
			require.Len(t, p.Gates, c.starts)
			require.Equal(t, string(c.reason), condition(p.Status, v1alpha1.ConditionReady).Reason)
		})
	}
	two := decide(t, of(base, func(g *given) {
		g.rec.Target.Gates[0].Outcome = v1alpha1.GateCompletes
		onGate(rollout.GateMissing)(g)
		onRefunds(rollout.GateMissing)(g)
	}), allowed)
	require.Len(t, two.Gates, 1)
	require.Equal(t, "refunds", two.Gates[0].TaskQueue, "a queue that came later has a gate of its own")

	retreat := of(rampsAt(10, time.Hour), stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateMissing), func(g *given) {
		g.rec.Target.Gates = []v1alpha1.RecordedGate{{Point: "step-1", TaskQueue: "orders", WorkflowType: "Smoke",
			WorkflowID: Look(g.Snapshot).pointGate().WorkflowID("orders"), Outcome: v1alpha1.GateTimesOut}}
	})
	require.Equal(t, []string{"ResetRamp v2 10->0 Gate gate Smoke"}, sayAll(decide(t, retreat, allowed).Actions))
}

// onGate is the state of the gate that is due on orders.
func onGate(state rollout.GateState) change {
	return func(g *given) {
		g.Observation.Gates = []rollout.GateRun{{WorkflowID: Look(g.Snapshot).pointGate().WorkflowID("orders"), TaskQueue: "orders", State: state}}
	}
}

// Outcomes are those of the target's attempt; a new target begins without any.
func TestGateOutcomesOfTheTarget(t *testing.T) {
	passed := all(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateCompleted, 1), func(g *given) {
		g.Observation.Gates[0].RunID, g.Observation.Gates[0].ClosedAt = "run", ago(time.Minute)
	})
	held := verdictOn(rollout.Ramp, effect(rollout.HoldEffect))
	p := decide(t, of(passed), held)
	want := []v1alpha1.RecordedGate{{Point: "first", TaskQueue: "orders", WorkflowType: "Smoke", RunID: "run", Outcome: v1alpha1.GateCompletes,
		WorkflowID: p.Record.Target.Gates[0].WorkflowID, ClosedAt: stamp(ago(time.Minute))}}
	require.Equal(t, want, p.Record.Target.Gates)
	again := decide(t, of(passed, func(g *given) { g.rec.Target.Gates = want }), held)
	require.Equal(t, want, again.Record.Target.Gates)
	require.NotContains(t, strings.Join(again.Summary, "\n"), "gate Smoke", "it was said with the commit that recorded it")
	for name, was := range map[string]func(*v1alpha1.RecordedGate){
		"another outcome": func(g *v1alpha1.RecordedGate) { g.Outcome = v1alpha1.GateFails },
		"another run":     func(g *v1alpha1.RecordedGate) { g.RunID = "before" },
	} {
		reset := decide(t, of(passed, func(g *given) {
			g.rec.Target.Gates = slices.Clone(want)
			was(&g.rec.Target.Gates[0])
		}), held)
		require.Equal(t, want, reset.Record.Target.Gates, "%s: what a person reset is recorded anew", name)
		require.Contains(t, strings.Join(reset.Summary, "\n"), "gate Smoke completed on task queue orders", name)
	}
	gone := decide(t, of(passed, func(g *given) { g.rec.Target.Gates = want }, onGate(rollout.GateMissing)), held)
	require.Equal(t, want, gone.Record.Target.Gates)
	require.Equal(t, []v1alpha1.GateStatus{{WorkflowID: want[0].WorkflowID, RunID: "run", Status: "Completed", TaskQueue: "orders"}}, gone.Status.TargetVersion.Gates)
	other := decide(t, of(passed, func(g *given) { g.rec.Target.Gates = want }, asks("v3")), held)
	require.Nil(t, other.Record.Target.Gates)
	running := decide(t, of(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateRunning, 1)), allowed)
	require.Nil(t, running.Record.Target.Gates)
}
