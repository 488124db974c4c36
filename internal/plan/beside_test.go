package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Cases in which a row must not decide though most of what it looks for is there: what keeps it from that is one part
// of its condition.

func besideRows() []rowCase {
	unread := func(g *given) {
		g.Spec.Spec.Rollout.Gate = &v1alpha1.Gate{WorkflowType: "Smoke", InputFrom: &v1alpha1.GateInputSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "smoke"}, Key: "input.json"}}}
	}
	failed := all(gate(v1alpha1.GateRollback), gateIs(rollout.GateFailed, 1))
	return []rowCase{
		{row: "first-step", name: "while the one before it is judged", given: all(promoted(10*time.Minute), analysed(baked), wants("v3"), inGit("v3"), up("v3")),
			reason: rollout.Ramping, actions: []string{"Ramp v3 0->10 step 1/2"}, but: wants("v2"), then: "bake"},
		{row: "held", name: "its first gate failed", given: all(candidate(), failed, holds(v1alpha1.HoldManual, "v1")), reason: rollout.ManualHold, stalled: true,
			but: func(g *given) { g.rec.Hold = nil }, then: "gate"},
		{row: "edited-refused", name: "promoted, and another ramps", given: all(candidate(), edits("v2", "v3", 10)), reason: rollout.ManualHold, stalled: true,
			but: edits("v2", "", 0), then: "edited-up"},
		{row: "edited-refused", name: "a ramp beside another current version", given: all(candidate(), edits("v3", "v2", 10)), reason: rollout.ManualHold, stalled: true,
			but: edits("v1", "v2", 10), then: "edited-up"},
		{row: "edited-refused", name: "a ramp of another", given: all(candidate(), edits("v1", "v3", 10)), reason: rollout.ManualHold, stalled: true,
			but: edits("v1", "v2", 10), then: "edited-up"},
		{row: "manual", name: "its gate failed, at 0%", given: all(rampsAt(0, time.Minute), failed, strategy(v1alpha1.Manual)), reason: rollout.Ramping,
			but: strategy(v1alpha1.AllAtOnce), then: "gate-failed"},
		{row: "manual", name: "without its gate's input", given: all(candidate(), unread, strategy(v1alpha1.Manual)), reason: rollout.WaitingForPromotion,
			but: strategy(v1alpha1.AllAtOnce), then: "gate-input"},
		{row: "complete", name: "without its gate's input", given: unread, reason: rollout.RolloutComplete, but: candidate(), then: "gate-input"},
	}
}

func besideCases() []otherCase {
	down := all(promoted(100*time.Hour), drained("v1", 90*time.Hour), scaledDown("v1", 80*time.Hour), noPollers("v1"))
	ofPool := func(n int32) change {
		return func(g *given) {
			g.Spec.Spec.Pools = []v1alpha1.Pool{{Name: "slow", Replicas: replicas(n), Template: template("s1")}}
		}
	}
	pool := func(g *given) {
		g.version("v1").Pools = []v1alpha1.RecordedPool{{Name: "slow", Deployment: "checkout-v1-slow", Replicas: replicas(4)}}
	}
	return []otherCase{
		{row: "needed", name: "ramping without its guard", given: all(promoted(time.Hour), routes("v2", "v1", 10, time.Minute), func(g *given) {
			g.version("v1").Guard = v1alpha1.GuardOff
		}), actions: []string{"Restore v1 x2"}, but: func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }, then: "routed"},
		{row: "needed", name: "current at 0, and the spec is gone", given: func(g *given) { g.Spec, g.version("v1").Replicas = nil, replicas(0) },
			actions: []string{"Restore v1 x1"}, but: func(g *given) { g.Spec, g.version("v1").Replicas = steady().Spec, replicas(2) }, then: "routed"},
		{row: "replicas", name: "of a pool", given: all(pool, ofPool(9)), actions: []string{"ScaleVersion v1 x2"}, but: ofPool(4), then: "routed"},
		{row: "delete", name: "another's deletion was refused", given: all(down, refused("v2")), actions: []string{"DeleteVersion v1"}, but: refused("v1"), then: "set-aside"},
		{row: "delete", name: "not while it is scaled up by hand", given: down, actions: []string{"DeleteVersion v1"}, but: func(g *given) { g.listed("v1").Scaled = true }, then: ""},
	}
}

// TestDeleteAlone: nothing is deleted that runs, whichever rows come before.
func TestDeleteAlone(t *testing.T) {
	s := of(promoted(100*time.Hour), drained("v1", 90*time.Hour), noPollers("v1"))
	v := Look(s)
	_, fits := deleteRecord(v, v.recorded(id("v1")))
	require.False(t, fits)
}

// TestEndsAlone: the record of a retired worker deployment goes when nothing is left but itself.
func TestEndsAlone(t *testing.T) {
	over := all(ended(), specGone)
	require.True(t, decide(t, of(over), allowed).Remove)
	for name, c := range map[string]change{
		"not read":       func(g *given) { g.Observation.Exists = "" },
		"another's":      foreign(),
		"a ramp":         func(g *given) { g.Observation.Routing.HasRamp, g.Observation.Routing.Percentage = true, 5 },
		"a version":      inGit("v1"),
		"a spec":         func(g *given) { g.SpecPath = "workers/checkout.yaml" },
		"another's file": func(g *given) { g.Record.Files["notes.md"] = rollout.File{} },
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, decide(t, of(over, c), allowed).Remove)
		})
	}
}

// TestUnroutedToNobody: unversioned workers take over only where they are seen on task queues that are known.
func TestUnroutedToNobody(t *testing.T) {
	elsewhere := all(retires(v1alpha1.UnrouteProven, 0), used("v1", 7), func(g *given) { g.listed("v1").Queues[0].Unversioned = rollout.Yes })
	require.NotNil(t, decide(t, of(elsewhere), allowed).Raise)
	for name, c := range map[string]change{
		"not listed":       unlisted("v1"),
		"queues not known": func(g *given) { g.listed("v1").QueuesKnown = "" },
		"no queue":         func(g *given) { g.listed("v1").Queues = nil },
	} {
		t.Run(name, func(t *testing.T) {
			require.Nil(t, decide(t, of(elsewhere, c), allowed).Raise)
		})
	}
}
