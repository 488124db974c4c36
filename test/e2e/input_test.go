package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// What Git says cannot be used, in each way. It is reported, the old routing stays and all versions are kept; once it
// is mended, the rollout goes on.
func TestUnusableInput(t *testing.T) {
	w := newWorld(t)
	w.push("templates", map[string]string{templatesFile: templatesText(5)})
	w.settledOn(specText{image: "app:v1", strategy: allAtOnce})
	v1 := w.build("app:v1")
	manifest, routing := w.manifest(v1), w.file(w.dir()+"/routing.yaml")
	connection := w.file("workers/connection.yaml")
	unusable := func(reason, message string) {
		t.Helper()
		w.once()
		w.once()
		require.Equal(t, reason, w.reason())
		require.Contains(t, w.message(), message)
		require.Equal(t, manifest, w.manifest(v1))
		require.Empty(t, w.build("app:v2"))
		require.Equal(t, []string{"current v1"}, w.calls())
	}

	w.commit(gittest.Commit{Delete: []string{"workers/connection.yaml"}, Message: "no connection"})
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	unusable("TemporalConnectionNotFound", "connection shop/temporal is not in the repository")
	w.push("the connection is back, the scaler is broken", map[string]string{"workers/connection.yaml": connection,
		templatesFile: strings.Replace(templatesText(5), "kind: HorizontalPodAutoscaler", "kind: Secret", 1)})
	unusable("InvalidSpec", "is not created without what the versions before it have")
	w.push("the scaler is mended, routing.yaml is broken", map[string]string{templatesFile: templatesText(5),
		w.dir() + "/routing.yaml": strings.Replace(routing, "kind: Routing", "kind: Rooting", 1)})
	out := w.once()
	require.Contains(t, out, "row=record-unreadable")
	require.Contains(t, out, "reason=PlanGenerationFailed")
	require.Equal(t, manifest, w.manifest(v1))
	w.push("routing.yaml is back", map[string]string{w.dir() + "/routing.yaml": routing})
	w.commit(gittest.Commit{Delete: []string{specFile}, Message: "no spec"})
	unusable("InvalidSpec", "the spec of shop/checkout is gone from Git: everything is kept")

	w.pushSpec("v2 again", specText{image: "app:v2", strategy: allAtOnce})
	w.start()
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())
}

// Workers that do not come within progressDeadlineSeconds stall the rollout, and nothing else; once another build is
// asked for, the version that never registered goes.
func TestWorkersNeverCome(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: allAtOnce})
	w.awaitReady("app:v1")
	w.pushSpec("one that cannot be pulled", specText{image: "app:missing", strategy: allAtOnce, extra: "  progressDeadlineSeconds: 1\n"})
	w.eventually("stalled", func() bool { return strings.Contains(w.message(), "(for longer than 1s: look at its pods)") })
	require.Equal(t, "WaitingForPollers", w.reason())
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	w.awaitReady("app:v2")
	w.eventually("it is removed", func() bool { return w.build("app:missing") == "" })
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())
}

// Two worker deployments on one task queue would take each other's workflows. The newcomer is held, naming the other,
// until it polls a queue of its own.
func TestSharedTaskQueue(t *testing.T) {
	w := newWorld(t, withImages(map[string]temporalenv.Image{"cart:v2": temporalenv.DefaultImage("cart")}))
	cart := w.named("cart")
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: allAtOnce})
	w.awaitReady("app:v1")
	cart.pushSpec("add cart", specText{image: "app:v1", strategy: allAtOnce})
	cart.awaitReason("OwnedByAnother")
	require.Contains(t, cart.message(), "is also polled by worker deployment shop/checkout")
	w.settle()
	require.Empty(t, cart.calls())

	cart.pushSpec("a queue of its own", specText{image: "cart:v2", strategy: allAtOnce})
	cart.awaitReady("cart:v2")
	require.Equal(t, []string{"current v2"}, cart.calls())
	cart.eventually("the other one is removed", func() bool { return cart.build("app:v1") == "" })
	require.Equal(t, []string{"current v1"}, w.calls())
}

// A version that serves no workflows is rolled out as any other. Where it would leave the workflows of the current one
// behind, a person approves that, though none are there: its worker may have registered its activities first.
func TestActivitiesOnly(t *testing.T) {
	w := newWorld(t, withImages(map[string]temporalenv.Image{"app:v8": activitiesOnly()}))
	w.start()
	w.pushSpec("activities", specText{image: "app:v5"})
	w.awaitReady("app:v5")
	w.pushSpec("other activities", specText{image: "app:v8"})
	w.awaitReady("app:v8")
	require.Equal(t, []string{"current v5", "ramp v8 10", "ramp v8 50", "current v8"}, w.calls())
	w.eventually("v5 goes", func() bool { return w.build("app:v5") == "" })

	w.pushSpec("and workflows", specText{image: "app:v1", strategy: soon})
	w.awaitReady("app:v1")
	w.pushSpec("without them", specText{image: "app:v5", strategy: soon, extra: "  progressDeadlineSeconds: 3\n"})
	w.awaitReason("AwaitingApproval")
	require.True(t, w.say("approve", "--reason", "it has none").Changed)
	w.awaitReady("app:v5")
	require.Contains(t, w.repo.Git("log", "--format=%B", "main"), "leaves behind the workflow task queue checkout (approved)")
}

// A task queue in use that the new version does not serve: the rollout waits, then a person approves that it is left
// behind.
func TestQueueInUseIsLeftBehindOnceApproved(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: soon})
	w.awaitReady("app:v1")
	w.traffic()
	w.pushSpec("without workflows", specText{image: "app:v5", strategy: soon, extra: "  progressDeadlineSeconds: 3\n"})
	w.awaitReason("AwaitingApproval")
	require.Contains(t, w.status().Conditions[0].Message, "checkout")
	require.Equal(t, []string{"current v1"}, w.calls())
	require.True(t, w.say("approve", "--reason", "its workflows go elsewhere").Changed)
	w.awaitReady("app:v5")
	require.Equal(t, []string{"current v1", "current v5"}, w.calls())
}
