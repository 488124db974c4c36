package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// On a release that lacks something, the status, the log (once) and explain say what, and what happens instead. An
// analysis judges by what there is.
func TestOlderServer(t *testing.T) {
	if os.Getenv("RAMPART_TEST_TEMPORAL_CLI") == "" {
		t.Skip("the server in this process is not older: make test-compatibility runs this on one that is")
	}
	w := newWorld(t)
	info, err := w.ns.Service().GetSystemInfo(t.Context(), &workflowservice.GetSystemInfoRequest{})
	require.NoError(t, err)
	version := info.GetServerVersion()
	lacks := rollout.ReportedProblems.OlderServer(version)
	require.True(t, rollout.ReportedProblems.MissingIn(version), "%s is not older", version)

	b := w.start()
	const strategy = "{strategy: Progressive, steps: [{rampPercentage: 50, pauseDuration: 1s}], analysis: {window: 1s, minSamples: 3, maxWait: 1h, maxFailureRate: 0.3}%s}"
	w.pushSpec("v1", specText{image: "app:v1", strategy: strategy})
	w.awaitReady("app:v1")
	w.traffic()
	w.pushSpec("v2", specText{image: "app:v2", strategy: strategy})
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 50", "current v2"}, w.calls())
	require.Contains(t, w.status().OlderServer, lacks)
	require.Contains(t, w.explain(), lacks)
	b.stop()
	require.Equal(t, 1, strings.Count(b.log.String(), "Temporal is an older release: "), "said once")
	require.NotContains(t, b.log.String(), "workflows not counted", "what it cannot count is not asked for")
}
