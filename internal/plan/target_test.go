package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// rowCase is a snapshot in which a row decides, and what it takes for it not to.
type rowCase struct {
	row, name string
	given     change
	reason    rollout.Reason
	stalled   bool
	actions   []string
	// but negates the row's condition; then is the row that decides instead.
	but  change
	then string
}

func none(*given) {}

// inputRows are about what was read.
func inputRows() []rowCase {
	return []rowCase{
		{row: "record-unreadable", given: func(g *given) {
			g.Record.RoutingProblem = &rollout.Problem{Reason: rollout.PlanGenerationFailed, Message: "line 3"}
		}, reason: rollout.PlanGenerationFailed, stalled: true,
			but: func(g *given) { g.Record.RoutingProblem = nil }, then: "complete"},
		{row: "spec-unusable", name: "problem", given: func(g *given) {
			g.Spec, g.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}}
		}, reason: rollout.InvalidSpec, stalled: true,
			but: func(g *given) { g.Spec, g.Problems = steady().Spec, nil }, then: "complete"},
		{row: "spec-unusable", name: "readable, but refused", given: func(g *given) {
			g.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "namespace not allowed"}}
		}, reason: rollout.InvalidSpec, stalled: true, but: func(g *given) { g.Problems = nil }, then: "complete"},
		{row: "spec-unusable", name: "gone", given: func(g *given) { g.Spec = nil }, reason: rollout.InvalidSpec, stalled: true,
			but: func(g *given) { g.Spec = steady().Spec }, then: "complete"},
		{row: "spec-unusable", name: "no connection", given: func(g *given) { g.Connection = nil }, reason: rollout.ConnectionNotFound, stalled: true,
			but: func(g *given) { g.Connection = steady().Connection }, then: "complete"},
		{row: "spec-unusable", name: "no connection, old kind", given: func(g *given) {
			g.Spec.Kind, g.Connection = v1alpha1.KindTemporalWorkerDeployment, nil
		}, reason: rollout.TemporalConnectionNotFound, stalled: true, but: func(g *given) { g.Connection = steady().Connection }, then: "complete"},
		{row: "spec-unusable", name: "no steps", given: func(g *given) { g.Spec.Spec.Rollout.Steps = nil }, reason: rollout.InvalidSpec, stalled: true,
			but: strategy(v1alpha1.AllAtOnce), then: "complete"},
		{row: "spec-unusable", name: "temporalNamespace changed", given: func(g *given) { g.Spec.Spec.WorkerOptions.TemporalNamespace = "other" },
			reason: rollout.InvalidSpec, stalled: true, but: func(g *given) { g.rec.Versions = nil }, then: "create"},
		{row: "temporal-unreadable", name: "problem", given: func(g *given) {
			g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: rollout.AuthSecretInvalid, Message: "no key"}}
		}, reason: rollout.AuthSecretInvalid, stalled: true, but: func(g *given) { g.Observation = steady().Observation }, then: "complete"},
		{row: "temporal-unreadable", name: "not asked", given: func(g *given) { g.Observation = rollout.Observation{} },
			reason: rollout.TemporalStateFetchFailed, stalled: true, but: func(g *given) { g.Observation = steady().Observation }, then: "complete"},
		{row: "temporal-unreadable", name: "existence unknown", given: func(g *given) { g.Observation.Exists = "" },
			reason: rollout.TemporalStateFetchFailed, stalled: true, but: func(g *given) { g.Observation.Exists = rollout.Yes }, then: "complete"},
	}
}

// retreatRows take traffic back, or answer a person.
func retreatRows() []rowCase {
	edit := func(c change) change { return all(rampsAt(10, time.Minute), c) }
	return []rowCase{
		{row: "reset-ramp", name: "reverted", given: all(rampsAt(10, time.Minute), wants("v1")), reason: rollout.RolloutComplete,
			actions: []string{"ResetRamp v2 10->0 Spec"}, but: wants("v2"), then: "pause"},
		{row: "reset-ramp", name: "superseded", given: all(rampsAt(10, time.Minute), asks("v3")), reason: rollout.WaitingForPollers,
			actions: []string{"ResetRamp v2 10->0 Spec"}, but: routes("v1", "", 0, time.Minute), then: "create"},
		{row: "reset-ramp", name: "barred", given: all(rampsAt(10, time.Minute), barsBuild("v2")), reason: rollout.RolledBack, stalled: true,
			actions: []string{"ResetRamp v2 10->0 Barred canary"}, but: func(g *given) { g.rec.Bars[0].TemplateHash = "another" }, then: "pause"},
		{row: "reset-ramp", name: "to unversioned", given: func(g *given) {
			g.Observation.Routing.HasRamp, g.Observation.Routing.Percentage = true, 5
		}, reason: rollout.RolloutComplete, actions: []string{"ResetRamp  5->0 Spec"},
			but: func(g *given) { g.Observation.Routing.HasRamp = false }, then: "complete"},
		{row: "reset-ramp", name: "at 0%, held", given: all(holds(v1alpha1.HoldManual, "v1"), up("v2"), routes("v1", "v2", 0, time.Minute)),
			reason: rollout.RolloutComplete, actions: []string{"ResetRamp v2 0->0 Spec"}, but: routes("v1", "", 0, 0), then: "held"},
		{row: "rollback-barred", given: all(promoted(5*time.Hour), barsBuild("v2")), reason: rollout.RolledBack, stalled: true,
			actions: []string{"Rollback v1 0->100 Barred"}, but: func(g *given) { g.rec.Bars = nil }, then: "complete"},
		{row: "rollback-barred", name: "nothing before it", given: barsBuild("v1"), reason: rollout.RolledBack, stalled: true,
			but: func(g *given) { g.rec.Bars = nil }, then: "complete"},
		{row: "rollback-barred", name: "no pollers", given: all(promoted(5*time.Hour), barsBuild("v2"), noPollers("v1")), reason: rollout.RolledBack, stalled: true,
			but: func(g *given) { g.rec.Bars = nil }, then: "complete"},
		{row: "rollback-barred", name: "scaled down", given: all(promoted(5*time.Hour), barsBuild("v2"), scaledDown("v1", time.Hour), drained("v1", 30*time.Hour)),
			reason: rollout.RolledBack, stalled: true, actions: []string{"Restore v1 x2"}, but: func(g *given) { g.rec.Bars = nil }, then: "complete"},
		{row: "rollback-barred", name: "its guard is off", given: all(promoted(5*time.Hour), barsBuild("v2"), func(g *given) { g.version("v1").Guard = v1alpha1.GuardOff }),
			reason: rollout.RolledBack, stalled: true, actions: []string{"Restore v1 x2"}, but: func(g *given) { g.rec.Bars = nil }, then: "complete"},
		{row: "rollback-barred", name: "at 0", given: all(promoted(5*time.Hour), barsBuild("v2"), func(g *given) { g.version("v1").Replicas = replicas(0) }),
			reason: rollout.RolledBack, stalled: true, actions: []string{"Restore v1 x2"}, but: func(g *given) { g.rec.Bars = nil }, then: "complete"},
		{row: "rollback", name: "at the end of the window", given: all(promoted(time.Hour), wants("v1")), reason: rollout.WaitingForPromotion,
			actions: []string{"Rollback v1 0->100 Spec"}, but: at(noon.Add(time.Nanosecond)), then: "first-step"},
		{row: "rollback", name: "held and gated", given: all(promoted(time.Minute), wants("v1"), holds(v1alpha1.HoldManual, "v2"), gate(v1alpha1.GateHold)),
			reason: rollout.WaitingForPromotion, actions: []string{"Rollback v1 0->100 Spec"},
			but: func(g *given) { g.rec.Promotions[0].LeftBy = v1alpha1.LeftByRollback }, then: "held"},
		{row: "rollback", name: "pollers", given: all(promoted(time.Minute), wants("v1")), reason: rollout.WaitingForPromotion,
			actions: []string{"Rollback v1 0->100 Spec"}, but: noPollers("v1"), then: "wait-for-pollers"},
		{row: "rollback", name: "barred", given: all(promoted(time.Minute), wants("v1")), reason: rollout.WaitingForPromotion,
			actions: []string{"Rollback v1 0->100 Spec"}, but: barsBuild("v1"), then: "barred"},
		{row: "rollback", name: "files", given: all(promoted(time.Minute), wants("v1")), reason: rollout.WaitingForPromotion,
			actions: []string{"Rollback v1 0->100 Spec"}, but: scaledDown("v1", time.Minute), then: "restore"},
		{row: "gate-failed", given: all(rampsAt(10, time.Minute), stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateTimedOut)),
			reason: rollout.RolledBack, stalled: true, actions: []string{"ResetRamp v2 10->0 Gate gate Smoke"}, but: stepGate(1, v1alpha1.GateHold), then: "gate"},
		{row: "gate-failed", name: "held, and without workers", given: all(rampsAt(10, time.Minute), stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateFailed),
			holds(v1alpha1.HoldManual, "v2"), noPollers("v2")), reason: rollout.RolledBack, stalled: true,
			actions: []string{"ResetRamp v2 10->0 Gate gate Smoke"}, but: stepGateIs(1, rollout.GateRunning), then: "held"},
		{row: "edited-done", name: "after an outside change", given: all(edit(edits("v1", "v2", 5)), routes("v1", "v2", 5, time.Minute)),
			reason: rollout.ManualHold, stalled: true, but: desires("v1", "v2", 5), then: "not-a-step"},
		{row: "edited-down", name: "lower ramp", given: edit(edits("v1", "v2", 5)), reason: rollout.ManualHold, stalled: true,
			actions: []string{"Ramp v2 10->5 Person"}, but: desires("v1", "v2", 10), then: "pause"},
		{row: "edited-down", name: "no ramp", given: edit(edits("v1", "", 0)), reason: rollout.ManualHold, stalled: true,
			actions: []string{"ResetRamp v2 10->0 Person"}, but: edits("v1", "v2", 50), then: "edited-up"},
		{row: "edited-down", name: "back to v1", given: all(promoted(50*time.Hour), edits("v1", "", 0)), reason: rollout.ManualHold, stalled: true,
			actions: []string{"Rollback v1 0->100 Person"}, but: func(g *given) { g.rec.Promotions[0].LeftBy = v1alpha1.LeftByRollback }, then: "edited-refused"},
		{row: "edited-refused", name: "back to v1 with a ramp of another", given: all(promoted(50*time.Hour), inGit("v3"), up("v3"), edits("v1", "v3", 10)),
			reason: rollout.ManualHold, stalled: true, but: edits("v1", "", 0), then: "edited-down"},
		{row: "edited-down", name: "back to v1 without pollers", given: all(promoted(50*time.Hour), edits("v1", "", 0), noPollers("v1")),
			reason: rollout.ManualHold, stalled: true, but: desires("v2", "", 0), then: "complete"},
		{row: "edited-refused", name: "another build", given: all(inGit("v3"), up("v3"), edits("v1", "v3", 10)), reason: rollout.ManualHold, stalled: true,
			but: desires("v1", "", 0), then: "complete"},
		{row: "edited-refused", name: "an old build's ramp", given: all(promoted(5*time.Hour), edits("v2", "v1", 10)), reason: rollout.ManualHold, stalled: true,
			but: desires("v2", "", 0), then: "complete"},
		{row: "edited-refused", name: "a barred build", given: all(candidate(), barsBuild("v2"), edits("v1", "v2", 10)), reason: rollout.ManualHold, stalled: true,
			but: func(g *given) { g.rec.Bars = nil; g.version("v2").TurnedBack = 0 }, then: "edited-up"},
		{row: "edited-refused", name: "unversioned", given: edits("", "", 0), reason: rollout.ManualHold, stalled: true, but: desires("v1", "", 0), then: "complete"},
		{row: "drift", name: "higher", given: all(rampsAt(10, time.Hour), routes("v1", "v2", 80, time.Minute)), reason: rollout.RoutingDrift, stalled: true,
			actions: []string{"Drift v2 Higher"}, but: desires("v1", "v2", 80), then: "not-a-step"},
		{row: "drift", name: "lower", given: all(rampsAt(10, time.Hour), routes("v1", "", 0, time.Minute)), reason: rollout.RoutingDrift, stalled: true,
			actions: []string{"Drift v2 Lower"}, but: basisIsActual(), then: "first-step"},
		{row: "held", given: all(candidate(), holds(v1alpha1.HoldManual, "v1")), reason: rollout.ManualHold, stalled: true,
			but: func(g *given) { g.rec.Hold = nil }, then: "first-step"},
		{row: "held", name: "after drift", given: all(candidate(), holds(v1alpha1.HoldDrift, "v2")), reason: rollout.ManualHold, stalled: true,
			but: holds(v1alpha1.HoldDrift, "v1"), then: "first-step"},
		{row: "held", name: "not an edit after it", given: all(candidate(), holds(v1alpha1.HoldManual, "v1")), reason: rollout.ManualHold, stalled: true,
			but: edits("v1", "v2", 10), then: "edited-up"},
		{row: "barred", given: all(candidate(), barsBuild("v2")), reason: rollout.RolledBack, stalled: true,
			but: func(g *given) { g.rec.Bars[0].BuildID = "another"; g.version("v2").TurnedBack = 0 }, then: "first-step"},
		{row: "barred", name: "by a mark", given: all(candidate(), func(g *given) { g.listed("v2").TurnedBack = "1 too slow" }), reason: rollout.RolledBack, stalled: true,
			but: func(g *given) { g.listed("v2").TurnedBack = "" }, then: "first-step"},
	}
}

func errorRate(a *v1alpha1.Analysis) {
	a.Metrics = []v1alpha1.Metric{{Name: "error_rate", MaxAge: lasting(2 * time.Minute)}}
}

// observed is the metric error_rate as it was read some time ago.
func observed(since time.Duration, failed string) change {
	return func(g *given) {
		g.Facts = map[string]rollout.Fact{"error_rate": {Value: json.RawMessage("0.01"), ObservedAt: ago(since), MaxAge: 2 * time.Minute, Error: failed}}
	}
}

// secretInput: the gate of the last step has its input from a Secret.
func secretInput() change {
	return func(g *given) {
		g.Spec.Spec.Rollout.Steps[1].Gate.InputFrom = &v1alpha1.GateInputSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "smoke"}, Key: "input.json"}}
	}
}

func hasInput(in rollout.GateInput) change {
	return func(g *given) {
		g.GateInputs = map[string]rollout.GateInput{"key input.json of Secret payments/smoke": in}
	}
}

// basisIsActual: the routing did not move since the decision.
func basisIsActual() change {
	return func(g *given) { g.rec.Basis = basisOf(g.Observation.Routing) }
}

// raiseRows bring the target up.
func raiseRows() []rowCase {
	stale := func(g *given) { g.Observation.At = ago(61 * time.Second) }
	first := all(candidate(), unlisted("v1"), func(g *given) {
		g.rec.Versions, g.rec.Promotions, g.Observation.Routing = g.rec.Versions[1:], nil, rollout.RoutingConfig{}
		desires("", "", 0)(g)
	})
	unversioned := func(a rollout.Answer) change { return func(g *given) { g.listed("v2").Queues[0].Unversioned = a } }
	return []rowCase{
		{row: "create", given: asks("v2"), reason: rollout.WaitingForPollers, actions: []string{"CreateVersion v2 x2"},
			but: inGit("v2"), then: "wait-for-pollers"},
		{row: "create", name: "no budget", given: all(asks("v2"), func(g *given) { g.Limits.MaxVersions = 1 }), reason: rollout.VersionLimitReached, stalled: true,
			but: wants("v1"), then: "complete"},
		{row: "restore", name: "guard off", given: all(candidate(), func(g *given) { g.version("v2").Guard = v1alpha1.GuardOff }), reason: rollout.WaitingForPollers,
			actions: []string{"Restore v2 x2"}, but: func(g *given) { g.version("v2").Guard = v1alpha1.GuardOn }, then: "first-step"},
		{row: "restore", name: "at 0", given: all(candidate(), func(g *given) { g.version("v2").Replicas = replicas(0) }), reason: rollout.WaitingForPollers,
			actions: []string{"Restore v2 x2"}, but: func(g *given) { g.Spec.Spec.Replicas = replicas(0) }, then: "first-step"},
		{row: "update-template", given: all(candidate(), func(g *given) { g.version("v2").TemplateHash = "old" }, custom("v2")), reason: rollout.WaitingForPollers,
			actions: []string{"UpdateVersion v2 Template x2"}, but: func(g *given) { g.version("v2").TemplateHash = hash("v2") }, then: "first-step"},
		{row: "update-template", name: "ramping", given: all(rampsAt(10, time.Minute), custom("v2"), func(g *given) { g.version("v2").TemplateHash = "old" }),
			reason: rollout.WaitingForPollers, actions: []string{"ResetRamp v2 10->0 Spec", "UpdateVersion v2 Template x2"},
			but: func(g *given) { g.version("v2").TemplateHash = hash("v2") }, then: "pause"},
		{row: "update-connection", given: all(rampsAt(10, time.Minute), func(g *given) { g.version("v2").ConnectionHash = "old" }), reason: rollout.Ramping,
			actions: []string{"UpdateVersion v2 Connection x2"}, but: func(g *given) { g.version("v2").ConnectionHash = g.Connection.Spec.Hash() }, then: "pause"},
		{row: "wait-for-pollers", name: "not registered", given: all(candidate(), unlisted("v2")), reason: rollout.WaitingForPollers, but: up("v2"), then: "first-step"},
		{row: "wait-for-pollers", name: "past the deadline", given: all(candidate(), unlisted("v2"), func(g *given) {
			g.rec.Target.Since, g.version("v2").CreatedAt = stamp(ago(time.Hour)), stamp(ago(601*time.Second))
		}), reason: rollout.WaitingForPollers, stalled: true, but: up("v2"), then: "first-step"},
		{row: "wait-for-pollers", name: "created late", given: all(candidate(), unlisted("v2"), func(g *given) { g.rec.Target.Since = stamp(ago(time.Hour)) }),
			reason: rollout.WaitingForPollers, but: up("v2"), then: "first-step"},
		{row: "wait-for-pollers", name: "no queue", given: all(candidate(), func(g *given) { g.listed("v2").Queues = nil }), reason: rollout.WaitingForPollers,
			but: func(g *given) { g.listed("v2").Queues = []rollout.TaskQueue{polled("orders")} }, then: "first-step"},
		{row: "wait-for-pollers", name: "polled 91s ago", given: all(candidate(), func(g *given) { g.listed("v2").Queues[0].Pollers.LastAccess = ago(91 * time.Second) }),
			reason: rollout.WaitingForPollers, but: func(g *given) { g.listed("v2").Queues[0].Pollers.LastAccess = ago(90 * time.Second) }, then: "first-step"},
		{row: "wait-for-pollers", name: "pollers unknown", given: all(candidate(), func(g *given) { g.listed("v2").Queues[0].Pollers.Known = false }),
			reason: rollout.StaleFacts, but: func(g *given) { g.listed("v2").Queues[0].Pollers.Known = true }, then: "first-step"},
		{row: "wait-for-pollers", name: "queues unknown", given: all(candidate(), func(g *given) { g.listed("v2").QueuesKnown = "" }), reason: rollout.StaleFacts,
			but: func(g *given) { g.listed("v2").QueuesKnown = rollout.Yes }, then: "first-step"},
		{row: "wait-for-pollers", name: "a queue of current's", given: all(candidate(), func(g *given) {
			g.listed("v1").Queues = append(g.listed("v1").Queues, polled("refunds"))
		}), reason: rollout.WaitingForPollers, but: func(g *given) { g.listed("v2").Queues = append(g.listed("v2").Queues, polled("refunds")) }, then: "first-step"},
		{row: "wait-for-pollers", name: "a queue of current's, of another type", given: all(candidate(), func(g *given) {
			q := polled("refunds")
			q.Type = rollout.QueueActivity
			g.listed("v1").Queues = append(g.listed("v1").Queues, q)
			g.listed("v2").Queues = append(g.listed("v2").Queues, polled("refunds"))
		}), reason: rollout.WaitingForPollers, but: func(g *given) { g.listed("v2").Queues[1].Type = rollout.QueueActivity }, then: "first-step"},
		{row: "wait-for-pollers", name: "current's queues unknown", given: all(candidate(), func(g *given) { g.listed("v1").QueuesKnown = "" }), reason: rollout.StaleFacts,
			but: func(g *given) { g.listed("v1").QueuesKnown = rollout.Yes }, then: "first-step"},
		{row: "wait-for-pollers", name: "an old read", given: all(candidate(), stale), reason: rollout.StaleFacts,
			but: func(g *given) { g.Observation.At = ago(time.Minute) }, then: "first-step"},
		{row: "queue-shared", given: all(candidate(), func(g *given) { g.listed("v2").Queues[0].OtherDeployments = []string{"payments/other"} }),
			reason: rollout.OwnedByAnother, stalled: true, but: func(g *given) { g.listed("v2").Queues[0].OtherDeployments = []string{"payments/checkout"} }, then: "first-step"},
		{row: "edited-up", name: "to a step", given: all(candidate(), edits("v1", "v2", 10)), reason: rollout.Ramping,
			actions: []string{"Ramp v2 0->10 step 1/2 Person approved"}, but: desires("v1", "", 0), then: "first-step"},
		{row: "edited-up", name: "one step at most", given: all(candidate(), edits("v2", "", 0)), reason: rollout.Ramping,
			actions: []string{"Ramp v2 0->10 step 1/2 Person approved"}, but: noPollers("v2"), then: "wait-for-pollers"},
		{row: "edited-up", name: "between steps", given: all(rampsAt(10, time.Minute), edits("v1", "v2", 30)), reason: rollout.Ramping,
			actions: []string{"Ramp v2 10->30 Person approved"}, but: desires("v1", "v2", 10), then: "pause"},
		{row: "edited-up", name: "promote after the last step", given: all(rampsAt(50, time.Minute), edits("v2", "", 0)), reason: rollout.Ramping,
			actions: []string{"Promote v2 50->100 Person approved"}, but: desires("v1", "v2", 50), then: "pause"},
		{row: "edited-up", name: "the first version", given: all(first, edits("v2", "", 0)), reason: rollout.WaitingForPromotion,
			actions: []string{"Promote v2 0->100 Person approved"}, but: desires("", "", 0), then: "first-version"},
		{row: "edited-up", name: "Manual", given: all(candidate(), strategy(v1alpha1.Manual), edits("v1", "v2", 30)), reason: rollout.Ramping,
			actions: []string{"Ramp v2 0->30 Person approved"}, but: desires("v1", "", 0), then: "manual"},
		{row: "edited-up", name: "its gate", given: all(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateMissing, 1), edits("v1", "v2", 10)), reason: rollout.GateIsRunning,
			actions: []string{"StartGate v2 on [orders]"}, but: desires("v1", "", 0), then: "gate"},
		{row: "complete", given: none, reason: rollout.RolloutComplete, but: asks("v2"), then: "create"},
		{row: "manual", given: all(candidate(), strategy(v1alpha1.Manual)), reason: rollout.WaitingForPromotion, but: strategy(v1alpha1.AllAtOnce), then: "all-at-once"},
		{row: "manual", name: "ramping", given: all(rampsAt(30, time.Minute), strategy(v1alpha1.Manual)), reason: rollout.Ramping,
			but: strategy(v1alpha1.AllAtOnce), then: "all-at-once"},
		{row: "manual", name: "a person's ramp", given: all(candidate(), strategy(v1alpha1.Manual), routes("v1", "v2", 30, time.Minute)), reason: rollout.Ramping,
			but: strategy(v1alpha1.AllAtOnce), then: "drift"},
		{row: "gate", name: "missing", given: all(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateMissing, 1)), reason: rollout.GateIsRunning,
			actions: []string{"StartGate v2 on [orders]"}, but: func(g *given) { g.Observation.Gates[0].State = rollout.GateCompleted }, then: "first-step"},
		{row: "evidence", name: "its window", given: all(rampsAt(10, 11*time.Minute), analysed(func(a *v1alpha1.Analysis) { a.Window = lasting(11 * time.Minute) }),
			closed("v1", 1000, 0), closed("v2", 100, 0)), reason: rollout.Ramping,
			but: func(g *given) { g.Spec.Spec.Rollout.Analysis.Window = lasting(11*time.Minute - 1) }, then: "next-step"},
		{row: "evidence", name: "too few samples", given: all(rampsAt(10, time.Hour), analysed(), closed("v1", 1000, 0), closed("v2", 49, 0)),
			reason: rollout.StaleFacts, but: closed("v2", 49, 1), then: "next-step"},
		{row: "evidence", name: "too few samples for too long", given: all(rampsAt(10, 2*time.Hour+1), analysed(), closed("v1", 1000, 0), closed("v2", 49, 0)),
			reason: rollout.StaleFacts, stalled: true, but: func(g *given) { g.Spec.Spec.Rollout.Analysis.OnTooFewSamples = v1alpha1.SamplesAdvance }, then: "next-step"},
		{row: "evidence", name: "too few samples, and some stuck", given: all(rampsAt(10, 3*time.Hour), analysed(func(a *v1alpha1.Analysis) { a.OnTooFewSamples = v1alpha1.SamplesAdvance }),
			closed("v1", 1000, 0), closed("v2", 49, 0), problems(1, 1), stuckBefore(0)),
			reason: rollout.StaleFacts, stalled: true, but: stuck(func(s *rollout.Stuck) { s.ProblemsSample = rollout.Sample{Others: 1} }), then: "next-step"},
		{row: "evidence", name: "canceled ones count neither way", given: all(rampsAt(10, time.Hour), analysed(), closed("v1", 1000, 0), closed("v2", 49, 0), func(g *given) {
			g.listed("v2").Closed.Canceled = 10
		}), reason: rollout.StaleFacts, but: func(g *given) { g.Spec.Spec.Rollout.Analysis.Failures = []v1alpha1.FailedEnd{v1alpha1.EndCanceled} }, then: "next-step"},
		{row: "evidence", name: "not counted", given: all(rampsAt(10, time.Hour), analysed(), closed("v1", 1000, 0), closed("v2", 100, 0), func(g *given) {
			g.listed("v2").Closed = rollout.ClosedCounts{Reason: "visibility is away", Since: g.Observation.Routing.MovedAt()}
		}), reason: rollout.StaleFacts, but: closed("v2", 100, 0), then: "next-step"},
		{row: "evidence", name: "current not counted", given: all(rampsAt(10, time.Hour), analysed(), closed("v2", 100, 0)),
			reason: rollout.StaleFacts, but: closed("v1", 0, 0), then: "next-step"},
		{row: "evidence", name: "counted over another time", given: all(rampsAt(10, time.Hour), analysed(), closed("v1", 1000, 0), closed("v2", 100, 0), func(g *given) {
			g.listed("v2").Closed.Since = ago(59 * time.Minute)
		}), reason: rollout.StaleFacts, but: closed("v2", 100, 0), then: "next-step"},
		{row: "evidence", name: "stuck ones not counted", given: all(rampsAt(10, time.Hour), analysed(), closed("v1", 1000, 0), closed("v2", 100, 0),
			stuck(func(s *rollout.Stuck) { s.Problems = rollout.Count{Reason: "no such attribute"} })),
			reason: rollout.StaleFacts, but: func(g *given) { g.Spec.Spec.Rollout.Analysis = nil }, then: "next-step"},
		{row: "evidence", name: "stuck, of no version, without analysis", given: all(rampsAt(10, time.Hour), closed("v1", 1000, 0),
			stuck(func(s *rollout.Stuck) { s.Unattributed = rollout.Counted(1) })),
			reason: rollout.StaleFacts, but: stuck(func(s *rollout.Stuck) { s.UnattributedSample = rollout.Sample{Others: 1} }), then: "next-step"},
		{row: "evidence", name: "problems that were not there before", given: all(rampsAt(10, time.Hour), closed("v1", 1000, 0), func(g *given) {
			n := int64(4)
			g.rec.Target.StuckBefore = &n
		}, stuck(func(s *rollout.Stuck) { s.Problems = rollout.Counted(5) })),
			reason: rollout.StaleFacts, but: stuck(func(s *rollout.Stuck) { s.Problems = rollout.Counted(4) }), then: "next-step"},
		{row: "evidence", name: "a metric that nobody reads", given: all(rampsAt(10, time.Hour), analysed(errorRate), closed("v1", 1000, 0), closed("v2", 100, 0)),
			reason: rollout.StaleFacts, but: observed(119*time.Second, ""), then: "next-step"},
		{row: "evidence", name: "an old metric", given: all(rampsAt(10, time.Hour), analysed(errorRate), closed("v1", 1000, 0), closed("v2", 100, 0), observed(121*time.Second, "")),
			reason: rollout.StaleFacts, but: observed(2*time.Minute, ""), then: "next-step"},
		{row: "evidence", name: "a metric that failed, at the last step", given: all(rampsAt(50, time.Hour), analysed(errorRate), closed("v1", 1000, 0), closed("v2", 100, 0), observed(0, "no data")),
			reason: rollout.StaleFacts, but: observed(0, ""), then: "last-step"},
		{row: "bake", given: all(promoted(30*time.Minute-1), analysed(baked)), reason: rollout.Ramping,
			but: at(noon.Add(1)), then: "complete"},
		{row: "bake", name: "not of one that came back", given: all(promoted(10*time.Minute), analysed(baked)), reason: rollout.Ramping,
			but: func(g *given) { g.rec.Promotions[0].LeftBy = v1alpha1.LeftByRollback }, then: "complete"},
		{row: "gate", name: "of its step, missing", given: all(rampsAt(10, time.Minute), stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateMissing)),
			reason: rollout.GateIsRunning, actions: []string{"StartGate v2 on [orders]"}, but: stepGateIs(1, rollout.GateCompleted), then: "pause"},
		{row: "gate", name: "of its step, running past the pause", given: all(rampsAt(10, time.Hour), stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateRunning)),
			reason: rollout.GateIsRunning, but: stepGateIs(1, rollout.GateCompleted), then: "next-step"},
		{row: "gate", name: "of the last step", given: all(rampsAt(50, time.Hour), stepGate(2, v1alpha1.GateHold), stepGateIs(2, rollout.GateFailed)),
			reason: rollout.GateHasFailed, stalled: true, but: stepGateIs(2, rollout.GateCompleted), then: "last-step"},
		{row: "gate", name: "unread", given: all(rampsAt(50, time.Hour), stepGate(2, v1alpha1.GateRollback)),
			reason: rollout.StaleFacts, but: stepGateIs(2, rollout.GateCompleted), then: "last-step"},
		{row: "gate", name: "of a version without workflows", given: all(rampsAt(50, time.Hour), stepGate(2, v1alpha1.GateRollback), activitiesOnly),
			reason: rollout.GateHasFailed, stalled: true, but: func(g *given) { g.Spec.Spec.Rollout.Steps[1].Gate = nil }, then: "last-step"},
		{row: "not-a-step", name: "up to the first step, as any raise", given: all(rampsAt(5, time.Hour), analysed(), closed("v1", 1000, 0), closed("v2", 49, 0)),
			reason: rollout.StaleFacts, but: closed("v2", 50, 0), then: "not-a-step"},
		{row: "not-a-step", name: "down to a step, at once", given: all(rampsAt(20, time.Hour), analysed()),
			reason: rollout.Ramping, actions: []string{"Ramp v2 20->10 step 1/2"}, but: all(rampsAt(10, time.Minute), desires("v1", "v2", 10)), then: "pause"},
		{row: "not-a-step", name: "a step's gate is for that step", given: all(rampsAt(20, time.Hour), stepGate(1, v1alpha1.GateRollback)),
			reason: rollout.Ramping, actions: []string{"Ramp v2 20->10 step 1/2"}, but: all(routes("v1", "v2", 10, time.Minute), desires("v1", "v2", 10)), then: "gate"},
		{row: "gate-input", given: all(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateCompleted, 1), stepGate(2, v1alpha1.GateHold), secretInput()),
			reason: rollout.PlanGenerationFailed, stalled: true, but: func(g *given) { g.Spec.Spec.Rollout.Steps[1].Gate = nil }, then: "first-step"},
		{row: "gate-input", name: "unreadable", given: all(candidate(), stepGate(2, v1alpha1.GateHold), secretInput(), hasInput(rollout.GateInput{Problem: "no such file"})),
			reason: rollout.PlanGenerationFailed, stalled: true, but: hasInput(rollout.GateInput{Digest: "ab"}), then: "first-step"},
		{row: "gate", name: "at 0%", given: all(rampsAt(0, time.Minute), gate(v1alpha1.GateHold), gateIs(rollout.GateRunning, 1)), reason: rollout.GateIsRunning,
			but: func(g *given) { g.Observation.Routing.Percentage = 1; desires("v1", "v2", 1)(g) }, then: "not-a-step"},
		{row: "first-version", given: first, reason: rollout.WaitingForPromotion, actions: []string{"Promote v2 0->100"},
			but: unversioned(rollout.Yes), then: "first-step"},
		{row: "first-version", name: "not known", given: all(first, unversioned("")), reason: rollout.StaleFacts, but: unversioned(rollout.Yes), then: "first-step"},
		{row: "first-version", name: "one of two queues", given: all(first, func(g *given) {
			g.listed("v2").Queues = append(g.listed("v2").Queues, polled("refunds"))
			g.listed("v2").Queues[0].Unversioned = ""
		}), reason: rollout.StaleFacts, but: unversioned(rollout.Yes), then: "first-step"},
		{row: "first-version", name: "all at once after unversioned", given: all(first, strategy(v1alpha1.AllAtOnce)), reason: rollout.WaitingForPromotion,
			actions: []string{"Promote v2 0->100"}, but: unversioned(rollout.Yes), then: "all-at-once"},
		{row: "first-version", name: "ramping from unversioned", given: first, reason: rollout.WaitingForPromotion, actions: []string{"Promote v2 0->100"},
			but: all(routes("", "v2", 10, time.Minute), desires("", "v2", 10)), then: "pause"},
		{row: "all-at-once", given: all(candidate(), strategy(v1alpha1.AllAtOnce)), reason: rollout.WaitingForPromotion, actions: []string{"Promote v2 0->100"},
			but: func(g *given) { g.Spec.Spec.Rollout = steady().Spec.Spec.Rollout }, then: "first-step"},
		{row: "first-step", given: candidate(), reason: rollout.Ramping, actions: []string{"Ramp v2 0->10 step 1/2"},
			but: all(routes("v1", "v2", 10, time.Minute), desires("v1", "v2", 10)), then: "pause"},
		{row: "first-step", name: "from unversioned", given: all(first, unversioned(rollout.Yes)), reason: rollout.Ramping, actions: []string{"Ramp v2 0->10 step 1/2"},
			but: unversioned(rollout.No), then: "first-version"},
		{row: "not-a-step", name: "between", given: rampsAt(30, time.Hour), reason: rollout.Ramping, actions: []string{"Ramp v2 30->10 step 1/2"},
			but: steps(10, 30), then: "last-step"},
		{row: "not-a-step", name: "below all", given: rampsAt(1, time.Hour), reason: rollout.Ramping, actions: []string{"Ramp v2 1->10 step 1/2"},
			but: steps(1, 30), then: "next-step"},
		{row: "not-a-step", name: "at 0%", given: rampsAt(0, time.Hour), reason: rollout.Ramping, actions: []string{"Ramp v2 0->10 step 1/2"},
			but: all(routes("v1", "", 0, time.Hour), desires("v1", "", 0)), then: "first-step"},
		{row: "not-a-step", name: "a fraction is a step", given: rampsAt(0.2, time.Hour), reason: rollout.Ramping, actions: []string{"Ramp v2 0.2->10 step 1/2"},
			but: all(steps(0.1, 0.2, 0.3), rampsTo(0.2)), then: "next-step"},
		{row: "baseline", given: all(candidate(), uncounted(false)), reason: rollout.StaleFacts, but: problems(7, 0), then: "first-step"},
		{row: "baseline", name: "asked for by an edit", given: all(candidate(), uncounted(false), edits("v1", "v2", 10)), reason: rollout.StaleFacts, but: stuckBefore(3), then: "edited-up"},
		{row: "pause", given: rampsAt(10, 10*time.Minute), reason: rollout.Ramping, but: at(noon.Add(time.Nanosecond)), then: "next-step"},
		{row: "pause", name: "no time", given: all(rampsAt(10, time.Hour), func(g *given) { g.Observation.Routing.PercentageChangedAt = time.Time{} }),
			reason: rollout.StaleFacts, but: func(g *given) { g.Observation.Routing.PercentageChangedAt = ago(time.Hour) }, then: "next-step"},
		{row: "next-step", given: rampsAt(10, time.Hour), reason: rollout.Ramping, actions: []string{"Ramp v2 10->50 step 2/2"}, but: steps(10), then: "last-step"},
		{row: "last-step", given: rampsAt(50, time.Hour), reason: rollout.Ramping, actions: []string{"Promote v2 50->100"}, but: steps(50, 60), then: "next-step"},
	}
}

// custom gives a spec a build ID of the user's.
func custom(tag string) change {
	return func(g *given) { g.Spec.Spec.WorkerOptions.UnsafeCustomBuildID = id(tag) }
}

func steps(percentages ...float64) change {
	return func(g *given) {
		g.Spec.Spec.Rollout.Steps = nil
		for _, p := range percentages {
			g.Spec.Spec.Rollout.Steps = append(g.Spec.Spec.Rollout.Steps, v1alpha1.RolloutStep{RampPercentage: p, PauseDuration: lasting(10 * time.Minute)})
		}
	}
}

func rampsTo(percentage float32) change {
	return func(g *given) {
		g.Observation.Routing.Percentage = percentage
		desires("v1", "v2", float64(percentage))(g)
	}
}

func TestTargetRows(t *testing.T) {
	tested := map[string]bool{}
	for _, group := range [][]rowCase{inputRows(), retireRows(), retreatRows(), lostRows(), raiseRows(), resourceRows(), besideRows()} {
		for _, c := range group {
			t.Run(c.row+"/"+c.name, func(t *testing.T) {
				s := of(c.given)
				tested[c.row] = true
				p := Look(s).Propose()
				require.Equal(t, c.row, p.Row, "%+v", p.State)
				require.Equal(t, rollout.State{Reason: c.reason, Message: p.State.Message, Stalled: c.stalled}, p.State)
				require.NotEmpty(t, p.State.Message)
				if diff := cmp.Diff(c.actions, sayAll(p.Actions)); diff != "" {
					t.Errorf("actions (-want +got):\n%s", diff)
				}
				decide(t, s, allowed)
				other := of(c.given, c.but)
				require.Equal(t, c.then, Look(other).Propose().Row)
				decide(t, other, allowed)
			})
		}
	}
	for _, r := range targetRows() {
		require.True(t, tested[r.name], "row %s has no test", r.name)
	}
}
