package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// scaledDown reports whether a version has no replicas in Git, and no guard.
func (w *world) scaledDown(buildID string) bool {
	m := w.manifest(buildID)
	return strings.Contains(m, "replicas: 0") && !strings.Contains(m, "Prune=false")
}

// scaledUp reports whether a version has a replica in Git, and its guard.
func (w *world) scaledUp(buildID string) bool {
	m := w.manifest(buildID)
	return strings.Contains(m, "replicas: 1") && strings.Contains(m, "Prune=false")
}

// A revert is a rollback at once while the version before is up. Later its workers come back first, and it is promoted
// as any version.
func TestRevertWithAllAtOnce(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: allAtOnce})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	w.awaitReady("app:v2")
	w.pushSpec("Revert v2", specText{image: "app:v1", strategy: allAtOnce})
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1", "current v2", "current v1"}, w.calls())
	require.Empty(t, w.routing().Bars, "a revert bars nothing")
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	b.stop()
	w.eventually("v2 has drained, and is kept while the window is open", func() bool { return strings.Contains(w.once(), "continue window]") })
	require.True(t, w.scaledUp(v2))
	w.start()

	over := specText{strategy: soon, sunset: "scaledownDelay: 1s, deleteDelay: 1h"}
	over.image = "app:v2"
	w.pushSpec("v2 again", over)
	w.awaitReady("app:v2")
	w.eventually("v1 is scaled down", func() bool { return w.scaledDown(v1) })
	subjects := len(w.shortSubjects())
	over.image = "app:v1"
	w.pushSpec("Revert v2 again", over)
	w.awaitReady("app:v1")
	require.True(t, w.scaledUp(v1))
	require.Equal(t, []string{"current v2", "current v1"}, w.calls()[3:])
	require.Equal(t, []string{"restore v1", "promote v1"}, w.shortSubjects()[subjects:][:2])
}

// newWorldWithCart has a second worker deployment, cart.
func newWorldWithCart(t *testing.T) (w, cart *world) {
	w = newWorld(t, withImages(map[string]temporalenv.Image{"cart:v1": temporalenv.DefaultImage("cart"), "cart:v2": temporalenv.DefaultImage("cart")}))
	return w, w.named("cart")
}

// rollTwice makes v1 current in both, then v2. Versions of cart are scaled down soon, and deleted much later.
func rollTwice(w, cart *world, strategy string) {
	for _, version := range []string{"v1", "v2"} {
		w.pushSpecs("both to "+version, map[string]specText{deployName: {image: "app:" + version, strategy: strategy},
			cart.name: {image: "cart:" + version, strategy: soon, sunset: "scaledownDelay: 1s, deleteDelay: 1h"}})
		w.awaitReady("app:" + version)
		cart.awaitReady("cart:" + version)
	}
}

// Somebody makes a version current by hand that was turned back: it goes back at once. One that was scaled down long
// ago comes back, since it has the traffic now.
func TestCurrentVersionSetByHand(t *testing.T) {
	w, cart := newWorldWithCart(t)
	w.start()
	rollTwice(w, cart, allAtOnce)
	w.say("rollback", "--reason", "timeouts")
	w.awaitReason("RolledBack")
	w.settle() // a bot that saw the mark before the commit has said its own by now
	say := w.id() + ": roll back to v1: timeouts"
	said := w.did()[say]
	w.setCurrent(w.build("app:v2"))
	w.eventually("taken back", func() bool { return len(w.changes()) == 4 })
	w.settle()
	require.Equal(t, []string{"current v1", "current v2", "current v1", "current v1"}, w.changes())
	require.Equal(t, "RolledBack", w.reason())
	require.Equal(t, said+1, w.did()[say], "by the bot")

	v1 := cart.build("cart:v1")
	cart.eventually("v1 is scaled down", func() bool { return cart.scaledDown(v1) })
	cart.setCurrent(v1)
	cart.eventually("v1 is scaled up", func() bool { return cart.scaledUp(v1) })
	cart.awaitReason("ManualHold")
	require.Equal(t, v1, cart.routing().Desired.Current)
	require.Equal(t, []string{"current v1", "current v2"}, cart.calls(), "what a person took back stays there")
	require.Equal(t, 1, cart.did()[cart.id()+": restore v1"])
}

// TestDeletionsByOthers has an unknown worker poll just when the version is deleted: the server refuses, and the
// version is set aside and named. A version that somebody deletes is removed, and one that Git never knew is forgotten.
func TestDeletionsByOthers(t *testing.T) {
	w, cart := newWorldWithCart(t)
	var comes sync.Once
	w.ns.BeforeForward(func(_ string, request proto.Message) {
		if r, ok := request.(*workflowservice.DeleteWorkerDeploymentVersionRequest); ok && r.GetDeploymentVersion().GetDeploymentName() == w.id() {
			id := r.GetDeploymentVersion().GetBuildId()
			comes.Do(func() { w.stray(id) })
			for t.Context().Err() == nil && !w.polls(t.Context(), id) {
				<-time.After(20 * time.Millisecond)
			}
		}
	})
	b := w.start()
	rollTwice(w, cart, soon)

	v1 := w.build("app:v1")
	w.eventually("set aside", func() bool { return len(w.routing().SetAside) == 1 })
	require.Equal(t, v1, w.routing().SetAside[0].BuildID)
	require.True(t, w.scaledDown(v1))
	require.Contains(t, w.explain(), "the server refuses to delete it")

	old := cart.build("cart:v1")
	cart.eventually("scaled down", func() bool { return cart.scaledDown(old) })
	b.stop()
	cart.poll(t.Context(), "unknown")
	cart.eventually("the unknown one is named", func() bool { w.once(); return slices.Equal(cart.status().UnrecordedVersions, []string{"unknown"}) })
	cart.deleteVersion(old)
	cart.deleteVersion("unknown")
	cart.eventually("the other one is removed", func() bool { w.once(); return cart.build("cart:v1") == "" })
	require.Empty(t, cart.status().UnrecordedVersions, "and the unknown one forgotten")
	require.Equal(t, []string{"current v1", "current v2"}, cart.calls())
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())
}

// deleteVersion deletes a version at the server as a person does, once its workers are gone.
func (w *world) deleteVersion(buildID string) {
	w.t.Helper()
	w.eventually("deleted at the server", func() bool {
		_, _ = w.ns.Service().DeleteWorkerDeploymentVersion(w.t.Context(), &workflowservice.DeleteWorkerDeploymentVersionRequest{
			Namespace: w.ns.Name(), DeploymentVersion: versionOf(w.id(), buildID), Identity: managerIdentity})
		return !slices.Contains(w.listed(), buildID)
	})
}

// explain is what `rampart explain` says.
func (w *world) explain() string {
	w.t.Helper()
	args := append([]string{"explain", w.id(), "--repo", w.url, "--cache-dir", w.t.TempDir()}, w.access...)
	out, err := w.command(binary, args...).CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	return string(out)
}

// The pods of a version that ramps change under its build ID: it starts over.
func TestTemplateChangesInMidRamp(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", buildID: "wf-1", strategy: slowSteps})
	w.eventually("ready", func() bool { return w.reason() == "RolloutComplete" })
	w.pushSpec("v2", specText{image: "app:v2", buildID: "wf-2", strategy: slowSteps})
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp wf-2 10") })
	w.pushSpec("mended", specText{image: "app:v3", buildID: "wf-2", strategy: slowSteps})
	w.eventually("it starts over", func() bool { return len(w.calls()) == 4 })
	require.Equal(t, []string{"current wf-1", "ramp wf-2 10", "ramp none", "ramp wf-2 10"}, w.calls())
	require.Contains(t, w.manifest("wf-2"), "app:v3")
	require.Equal(t, v1alpha1.GuardOn, w.routing().Versions[1].Guard)
}
