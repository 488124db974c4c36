package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestRaceWithAPerson: the ramp is cleared while the bot is about to raise it. The plan is discarded, and the ramp
// stays cleared.
func TestRaceWithAPerson(t *testing.T) {
	w := rampingV2(t)
	w.after = func(_ rollout.Snapshot, p rollout.Plan) {
		if p.Raise != nil {
			require.NoError(t, w.server.move(rollout.RoutingStep{Kind: rollout.ClearRamp}))
		}
	}
	w.run(30 * time.Minute)
	require.Equal(t, []string{"clear"}, w.server.calls)
	require.Equal(t, "ManualHold", w.reason())
	require.Nil(t, w.routing().Desired.Ramping)
}

// TestStableBuildID: a changed template under a build ID of the user's is a rolling update in place, and starts over.
func TestStableBuildID(t *testing.T) {
	w := currentV1(t)
	gate(v1alpha1.GateHold)(w.given)
	pass := func() {
		for g := range w.server.gates {
			w.server.gates[g] = rollout.GateCompleted
		}
	}
	w.spec().WorkerOptions.UnsafeCustomBuildID = "stable"
	w.push("v2")
	w.run(time.Minute)
	pass()
	w.run(time.Minute)
	require.Equal(t, []string{"stable 10"}, w.server.calls)
	first := w.files[dir+"/versions/stable/deployment.yaml"]

	w.push("v3")
	w.run(time.Minute)
	require.Equal(t, []string{"stable 10", "clear"}, w.server.calls)
	require.NotEqual(t, first, w.files[dir+"/versions/stable/deployment.yaml"])
	require.Len(t, w.routing().Versions, 2)
	require.Len(t, w.server.gates, 2)
	require.Equal(t, "GateRunning", w.reason())
	pass()
	w.run(25 * time.Minute)
	require.Equal(t, []string{"stable 10", "clear", "stable 10", "stable 50", "stable current"}, w.server.calls)

	w.push("v4") // with all the traffic: in place, without a step
	w.run(10 * time.Minute)
	require.Len(t, w.server.calls, 5)
	require.Equal(t, "RolloutComplete*", w.reason())
	w.quiet(5, time.Minute)
}

// TestStepsEditedInMidRamp: the ramp goes to the highest step that is not above it.
func TestStepsEditedInMidRamp(t *testing.T) {
	w := rampingV2(t)
	steps(0.1, 5, 30)(w.given)
	w.run(25 * time.Minute)
	require.Equal(t, []string{"v2 5", "v2 30", "v2 current"}, w.server.calls)
}

// TestFractions: a percentage that float32 cannot hold exactly comes back as the server has it, and is the same step.
func TestFractions(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	steps(0.1, 0.3, 33.3)(w.given)
	w.push("v2")
	w.run(40 * time.Minute)
	require.Equal(t, []string{"v2 0.1", "v2 0.3", "v2 33.3", "v2 current"}, w.server.calls)
	require.Equal(t, "ramp v2 at 0.1%", w.commits[1])
}

// TestWorkersComeAndGo: a raise waits for workers, and what has traffic keeps it.
func TestWorkersComeAndGo(t *testing.T) {
	w := rampingV2(t)
	w.broken = id("v2")
	w.run(30 * time.Minute)
	require.Empty(t, w.server.calls)
	require.Equal(t, "WaitingForPollers", w.reason())
	w.broken = ""
	w.run(12 * time.Minute)
	require.Equal(t, []string{"v2 50", "v2 current"}, w.server.calls)
}

// TestLyingServer: describe knows nothing, then leaves a version out while a workflow names it. Nothing goes.
func TestLyingServer(t *testing.T) {
	w := currentV2(t)
	w.server.versions[id("v1")].open = 1
	w.run(time.Hour)
	w.server.versions[id("v1")].Drainage, w.server.versions[id("v1")].DrainageChangedAt = rollout.Drained, w.server.now
	w.server.lies = lies("v1")[1]
	w.run(50 * time.Hour)
	require.Len(t, w.routing().Versions, 2)
	w.server.lies = lies("v1")[3]
	w.run(50 * time.Hour)
	w.server.lies = nil
	require.Len(t, w.routing().Versions, 2)
	require.Equal(t, v1alpha1.GuardOn, w.routing().Versions[0].Guard)
	require.Equal(t, replicas(1), w.routing().Versions[0].Replicas)
	require.Empty(t, w.server.calls, "and no traffic moves")
}

// TestEditWithALostAnswer: the bot did what an edit wants, and does not know. It is not undone by the spec, which the
// edit overrules.
func TestEditWithALostAnswer(t *testing.T) {
	w := currentV2(t)
	w.push("v3")
	w.run(40 * time.Minute)
	w.server.calls = nil
	w.edit(func(r *v1alpha1.RoutingSpec) { r.Desired = v1alpha1.DesiredRouting{Current: id("v2")} })
	w.server.fails = answerLost
	w.cycle()
	w.cycle()
	w.server.fails = ""
	w.run(time.Hour)
	require.Equal(t, []string{"v2 current"}, w.server.calls)
	require.Equal(t, v1alpha1.HoldManual, w.routing().Hold.Kind)
}
