package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// unversioned runs a worker without versions on a task queue until the test ends.
func (w *world) unversioned(taskQueue string) {
	w.t.Helper()
	wk := worker.New(w.client, taskQueue, worker.Options{})
	temporalenv.DefaultImage(taskQueue).Register(wk)
	require.NoError(w.t, wk.Start())
	w.t.Cleanup(wk.Stop)
}

// Unversioned workers have the traffic when a worker deployment begins. It is taken over as its strategy says: step by step, at
// once, or by a person; never just because there is no current version.
func TestFromUnversionedWorkers(t *testing.T) {
	images := map[string]temporalenv.Image{}
	for _, name := range []string{"steps", "once", "hand"} {
		images[name+":v1"] = temporalenv.DefaultImage(name)
	}
	w := newWorld(t, withImages(images))
	steps, once, hand := w.named("steps"), w.named("once"), w.named("hand")
	for _, one := range []*world{steps, once, hand} {
		one.unversioned(one.name)
	}
	w.start()
	w.pushSpecs("three strategies", map[string]specText{
		"steps": {image: "steps:v1"}, "once": {image: "once:v1", strategy: allAtOnce}, "hand": {image: "hand:v1", strategy: manual}})
	once.awaitReady("once:v1")
	require.Equal(t, []string{"current v1"}, once.calls())
	steps.awaitReady("steps:v1")
	require.Equal(t, []string{"ramp v1 10", "ramp v1 50", "current v1"}, steps.calls())

	hand.awaitReason("WaitingForPromotion")
	w.settle()
	require.Empty(t, hand.calls())
	hand.setRamp(hand.build("hand:v1"), 30)
	hand.awaitReason("Ramping")
	hand.setCurrent(hand.build("hand:v1"))
	hand.awaitReady("hand:v1")
}

// Whether unversioned workers poll is not known: nothing gets traffic, though there is no current version, until it is.
func TestQueuesUnread(t *testing.T) {
	w := newWorld(t)
	restore := w.ns.Inject(temporalenv.Fault{Method: "DescribeTaskQueue", Point: temporalenv.BeforeForwarding})
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReason("StaleFacts")
	w.settle()
	require.Empty(t, w.calls())
	restore()
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1"}, w.calls())
}
