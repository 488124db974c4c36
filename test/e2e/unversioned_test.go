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
