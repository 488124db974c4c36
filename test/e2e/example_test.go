package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// The worker of examples/worker, a process with the environment that is rendered and nothing else, is rolled out, and
// workflows run on it.
func TestExampleWorker(t *testing.T) {
	program := filepath.Join(t.TempDir(), "worker")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(repositoryRoot, "examples", "worker")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	image := temporalenv.Image{Command: []string{program}}
	w := newWorld(t, withImages(map[string]temporalenv.Image{"app:v8": image, "app:v9": image}))
	w.start()
	for _, v := range []string{"app:v8", "app:v9"} {
		w.pushSpec("roll out "+v, specText{image: v})
		w.awaitReady(v)
		run, err := w.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, "Checkout", "order 7")
		require.NoError(t, err)
		var receipt string
		require.NoError(t, run.Get(t.Context(), &receipt))
		require.Equal(t, "charged order 7", receipt)
		info, err := w.client.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
		require.NoError(t, err)
		version := info.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion()
		require.Equal(t, []string{w.id(), w.build(v)}, []string{version.GetDeploymentName(), version.GetBuildId()})
	}
	require.Equal(t, []string{"current v8", "ramp v9 10", "ramp v9 50", "current v9"}, w.calls())
}
