package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// Strategies with which nothing moves on by itself.
const (
	slowSteps = "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1h}, {rampPercentage: 50, pauseDuration: 1h}]%s}"
	allAtOnce = "{strategy: AllAtOnce, rollback: {window: 1h}%s}"
	manual    = "{strategy: Manual%s}"
)

// pushSpec pushes a spec of the worker deployment that the world is asked about.
func (w *world) pushSpec(message string, s specText) string {
	w.t.Helper()
	return w.pushSpecs(message, map[string]specText{w.name: s})
}

// pushSpecs pushes specs of several worker deployments, by name, in one commit.
func (w *world) pushSpecs(message string, specs map[string]specText) string {
	w.t.Helper()
	files := map[string]string{}
	for name, s := range specs {
		s.name = name
		files["workers/"+name+".yaml"] = s.String()
	}
	return w.push(message, files)
}

// settledOn brings up a first version and stops there.
func (w *world) settledOn(s specText) {
	w.t.Helper()
	w.pushSpec("add checkout", s)
	w.eventually("first version current", func() bool { w.once(); return w.reason() == "RolloutComplete" })
}

func TestFirstDeployment(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1"}, w.calls())
	require.Equal(t, []string{"create v1", "promote v1", "RolloutComplete: v1 is the current version"}, w.shortSubjects())
	w.repo.Fsck()
}

func TestProgressive(t *testing.T) {
	w := newWorld(t)
	// Each raise is in Git before Temporal hears of it.
	var mu sync.Mutex
	var early []string
	w.ns.BeforeForward(func(method string, request proto.Message) {
		var want string
		switch r := request.(type) {
		case *workflowservice.SetWorkerDeploymentRampingVersionRequest:
			want = fmt.Sprintf("ramp %s %v", r.BuildId, r.Percentage)
		case *workflowservice.SetWorkerDeploymentCurrentVersionRequest:
			want = "current " + r.BuildId
		default:
			return
		}
		desired := w.routing().Desired
		said := "current " + desired.Current
		if desired.Ramping != nil {
			said = fmt.Sprintf("ramp %s %v", desired.Ramping.BuildID, desired.Ramping.Percentage)
		}
		if said != want {
			mu.Lock()
			defer mu.Unlock()
			early = append(early, fmt.Sprintf("asked for %q while Git said %q", want, said))
		}
	})
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	before := len(w.shortSubjects())
	w.pushSpec("v2", specText{image: "app:v2"})
	w.awaitReady("app:v2")
	w.eventually("v1 removed", func() bool { return w.build("app:v1") == "" })
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
	require.Equal(t, []string{
		"create v2", "ramp v2 at 10%", "ramp v2 at 50%", "promote v2", "RolloutComplete: v2 is the current version",
		"scale down v1", "remove v1",
	}, w.shortSubjects()[before:])
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, early)
	w.repo.Fsck()
}

func TestAllAtOnce(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: allAtOnce})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())
	require.NotEmpty(t, w.build("app:v1"), "v1 is kept while it may have to take traffic back")
}

func TestManual(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: manual})
	w.awaitReason("WaitingForPromotion")
	require.Empty(t, w.calls())
	// A person makes it current, and the bot follows.
	w.setCurrent(w.build("app:v1"))
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: manual})
	w.awaitReason("WaitingForPromotion")
	w.setRamp(w.build("app:v2"), 30)
	w.awaitReason("Ramping")
	w.setCurrent(w.build("app:v2"))
	w.awaitReady("app:v2")
}

func TestGatePasses(t *testing.T) {
	w := newWorld(t)
	w.start()
	gate := "{workflowType: Smoke}"
	w.pushSpec("add checkout", specText{image: "app:v1", gate: gate})
	w.awaitReady("app:v1")
	require.Equal(t, []string{
		"create v1", "start gate Smoke on v1", "promote v1", "RolloutComplete: v1 is the current version",
	}, w.shortSubjects())
	require.Len(t, w.gateStarts(), 1)
	require.Equal(t, "current v1", w.calls()[0])
}

func TestGateFails(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", gate: "{workflowType: SmokeFails}"})
	w.awaitReason("GateFailed")
	w.settle()
	require.Equal(t, []string{"current v1"}, w.calls(), "a build whose gate failed gets no traffic")
	require.Len(t, w.gateStarts(), 1, "a failed gate is not tried again")
	require.Empty(t, w.routing().Bars, "the first gate holds unless told otherwise")

	w.pushSpec("v3", specText{image: "app:v3", gate: "{workflowType: SmokeFails, onFailure: Rollback}"})
	w.awaitReason("RolledBack")
	require.Equal(t, []string{"gate SmokeFails"}, barredBy(w.routing()))
	require.Equal(t, []string{"current v1"}, w.calls())
}

func barredBy(r v1alpha1.RoutingSpec) []string {
	var out []string
	for _, b := range r.Bars {
		out = append(out, b.By)
	}
	return out
}

func TestSpecRevertedInMidRamp(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	w.awaitReason("Ramping")
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") })
	w.pushSpec("Revert v2", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.calls())
	require.NotEmpty(t, w.build("app:v2"), "v2 may still have workflows")
}

func TestRevertedAndAskedForAgain(t *testing.T) {
	w := newWorld(t)
	w.start()
	spec := func(image string) specText {
		return specText{image: image, strategy: slowSteps, gate: "{workflowType: Smoke}"}
	}
	w.pushSpec("add checkout", spec("app:v1"))
	w.awaitReady("app:v1")
	w.pushSpec("v2", spec("app:v2"))
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") })
	w.pushSpec("Revert v2", spec("app:v1"))
	w.awaitReady("app:v1")
	gates := len(w.gateStarts())
	w.pushSpec("v2 again", spec("app:v2"))
	w.eventually("first step again", func() bool { return strings.Count(strings.Join(w.calls(), ","), "ramp v2 10") == 2 })
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none", "ramp v2 10"}, w.calls())
	require.Len(t, w.gateStarts(), gates+1, "its gate ran again")
}

func TestRollbackAfterPromotion(t *testing.T) {
	w := newWorld(t)
	w.start()
	quick := "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1s}], rollback: {window: 1h}%s}"
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: quick})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: quick})
	w.awaitReady("app:v2")
	w.pushSpec("Revert v2", specText{image: "app:v1", strategy: quick})
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1", "ramp v2 10", "current v2", "current v1"}, w.calls(), "all at once, without steps")
	// Asked for again it starts at its first step: it was left by a rollback.
	w.pushSpec("v2 again", specText{image: "app:v2", strategy: quick})
	w.awaitReady("app:v2")
	require.Equal(t, []string{"ramp v2 10", "current v2"}, w.calls()[4:])
}

func TestSecondPushSupersedesFirst(t *testing.T) {
	w := newWorld(t)
	w.settledOn(specText{image: "app:v1"})
	w.pushSpec("v2", specText{image: "app:v2"})
	w.once()
	w.pushSpec("v3", specText{image: "app:v3"})
	w.start()
	w.awaitReady("app:v3")
	require.Equal(t, []string{"current v1", "ramp v3 10", "ramp v3 50", "current v3"}, w.calls())
	w.eventually("v2 removed though it never had traffic", func() bool { return w.build("app:v2") == "" })
}

func TestThirdVersionWhileSecondRamps(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") })
	w.pushSpec("v3", specText{image: "app:v3", strategy: slowSteps})
	w.eventually("v3 at 10%", func() bool { return slices.Contains(w.calls(), "ramp v3 10") })
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none", "ramp v3 10"}, w.calls(), "v2's ramp goes first")
}

func TestRestartedAtEveryStep(t *testing.T) {
	w := newWorld(t)
	w.pushSpec("add checkout", specText{image: "app:v1"})
	cycle := func() { w.forgetCache(); w.once() }
	w.eventually("v1 ready", func() bool { cycle(); return w.reason() == "RolloutComplete" })
	w.pushSpec("v2", specText{image: "app:v2"})
	w.eventually("v1 removed", func() bool { cycle(); return w.build("app:v1") == "" })
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
	require.Equal(t, []string{
		"create v1", "promote v1", "RolloutComplete: v1 is the current version",
		"create v2", "ramp v2 at 10%", "ramp v2 at 50%", "promote v2", "RolloutComplete: v2 is the current version",
		"scale down v1", "remove v1",
	}, slices.Compact(w.shortSubjects())) // what a busy machine interrupted is said again
}

func TestDrainedVersionGoesInTwoCommits(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	v1 := w.build("app:v1")
	// A pinned workflow keeps v1.
	slow := w.startSlow("slow-1")
	w.pushSpec("v2", specText{image: "app:v2"})
	w.awaitReady("app:v2")
	w.settle()
	require.NotEmpty(t, w.build("app:v1"), "v1 has an open pinned workflow")
	require.Contains(t, w.manifest(v1), "Prune=false")
	w.finish(slow)
	w.eventually("scaled down", func() bool { return strings.Contains(w.manifest(v1), "replicas: 0") })
	require.NotContains(t, w.manifest(v1), "Prune=false", "the guard is lifted in the same commit")
	require.NotContains(t, w.manifest(v1), "kustomize.toolkit.fluxcd.io/prune")
	require.NotContains(t, w.manifest(v1), "helm.sh/resource-policy")
	w.eventually("removed", func() bool { return w.build("app:v1") == "" })
	w.eventually("pruned by the cluster", func() bool {
		return slices.ContainsFunc(w.fleet.Events(), func(e temporalenv.Event) bool {
			return e.Kind == temporalenv.Pruned && strings.Contains(e.Object, v1[:2])
		})
	})
	require.False(t, slices.ContainsFunc(w.fleet.Events(), func(e temporalenv.Event) bool { return e.Kind == temporalenv.PruneRefused }))
	var deletions []string
	for _, c := range w.ns.Calls() {
		if c.Accepted && c.Method == "DeleteWorkerDeploymentVersion" {
			deletions = append(deletions, c.Request.(*workflowservice.DeleteWorkerDeploymentVersionRequest).GetDeploymentVersion().GetBuildId())
			require.False(t, c.Request.(*workflowservice.DeleteWorkerDeploymentVersionRequest).SkipDrainage)
		}
	}
	require.Equal(t, []string{v1}, deletions)
}

func TestStableBuildIDUpdatesInPlace(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", buildID: "wf-1"})
	w.eventually("ready", func() bool { return w.reason() == "RolloutComplete" })
	w.pushSpec("new image, same workflows", specText{image: "app:v2", buildID: "wf-1"})
	w.eventually("updated in place", func() bool { return strings.Contains(w.manifest("wf-1"), "app:v2") })
	w.eventually("restarted", func() bool {
		return slices.ContainsFunc(w.fleet.Events(), func(e temporalenv.Event) bool { return e.Kind == temporalenv.Restarted })
	})
	w.settle()
	require.Equal(t, []string{"current wf-1"}, w.calls())
	require.Len(t, w.routing().Versions, 1)
	require.Equal(t, "RolloutComplete", w.reason())
}
