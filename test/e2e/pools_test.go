package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// chargesOnly is an image of a pool: activities on a queue of their own.
func chargesOnly() temporalenv.Image {
	image := activitiesOnly()
	image.TaskQueues = []string{"charges"}
	return image
}

func poolOf(image string) string {
	return `  pools:
  - name: activities
    replicas: 1
    template: {spec: {containers: [{name: worker, image: "` + image + `"}]}}
`
}

// Two Deployments share a version: promoted when both poll, retired and removed together.
func TestPoolsShareAVersion(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	w.start()
	w.pushSpec("a pool that cannot start", specText{image: "app:v1", strategy: allAtOnce, extra: poolOf("app:missing")})
	w.eventually("it waits for the pool", func() bool { return strings.Contains(w.plan(), "no worker of pool activities") })
	w.settle()
	require.Empty(t, w.calls())

	const sunset = "{strategy: AllAtOnce, rollback: {window: 1s}%s}"
	w.pushSpec("one that can", specText{image: "app:v1", strategy: sunset, extra: poolOf("pool:v1")})
	w.awaitReady("app:v1")
	v1 := w.status().CurrentVersion.BuildID
	pool := func(build string) string { return w.file(recordDir + "/versions/" + build + "/activities.yaml") }
	require.Contains(t, pool(v1), "temporal.io/deployment-name: checkout.activities")
	require.NotContains(t, w.manifest(v1), "activities")

	w.pushSpec("with it", specText{image: "app:v3", strategy: sunset, extra: poolOf("pool:v2")})
	w.awaitReady("app:v3")
	w.eventually("v1 is scaled down as a whole", func() bool {
		return strings.Contains(w.manifest(v1), "replicas: 0") && strings.Contains(pool(v1), "replicas: 0")
	})
	require.NotContains(t, pool(v1), "prune: disabled")
	w.eventually("and removed as a whole", func() bool { return w.manifest(v1) == "" && pool(v1) == "" })

	// The queue of the pool belongs to the version: one that does not serve it leaves it behind, which it may since
	// nothing is on it.
	w.pushSpec("without the pool", specText{image: "app:v2", strategy: sunset})
	w.awaitReady("app:v2")
	// Its own activities may come a moment after its workflows.
	require.Regexp(t, `leaves behind the activity task queue charges(, the activity task queue checkout)? \(idle\)`, w.repo.Git("log", "--format=%B", "main"))
	require.Equal(t, []string{"current v1", "current v3", "current v2"}, w.calls())
}

// plan is what `rampart plan` says.
func (w *world) plan() string {
	w.t.Helper()
	args := append([]string{"plan", "--repo", w.url, "--cache-dir", w.t.TempDir()}, w.access...)
	out, err := w.command(binary, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 2) {
		return err.Error()
	}
	return string(out)
}
