package telemetry

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// shows requires that metrics of some names are shown just so.
func shows(t *testing.T, m *Metrics, want string, names ...string) {
	t.Helper()
	require.NoError(t, testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...))
}

func TestMetricsKeepPrometheusConventions(t *testing.T) {
	m := New("v1.2.3")
	problems, err := testutil.GatherAndLint(m.registry)
	require.NoError(t, err)
	require.Empty(t, problems, "names and units by the conventions of Prometheus")

	m.Push(nil)
	m.Push(fmt.Errorf("main: %w", rollout.ErrMoved))
	m.Push(fmt.Errorf("main: %w", rollout.ErrMoved))
	m.Push(rollout.ErrProtected)
	m.Push(errors.New("away"))
	shows(t, m, `# HELP rampart_git_pushes_total Commits that were to be pushed: pushed, conflict (others pushed first; decided again), protected (a rule of the branch) or failed.
# TYPE rampart_git_pushes_total counter
rampart_git_pushes_total{result="conflict"} 2
rampart_git_pushes_total{result="failed"} 1
rampart_git_pushes_total{result="protected"} 1
rampart_git_pushes_total{result="pushed"} 1
`, "rampart_git_pushes_total")

	m.Change(Raise, nil)
	m.Change(Raise, rollout.ErrStale)
	m.Change(Lower, errors.New("refused"))
	shows(t, m, `# HELP rampart_routing_changes_total Changes of traffic in Temporal, by direction (raise, lower): done, conflict (the routing moved meanwhile; decided again) or failed.
# TYPE rampart_routing_changes_total counter
rampart_routing_changes_total{direction="lower",result="conflict"} 0
rampart_routing_changes_total{direction="lower",result="done"} 0
rampart_routing_changes_total{direction="lower",result="failed"} 1
rampart_routing_changes_total{direction="raise",result="conflict"} 1
rampart_routing_changes_total{direction="raise",result="done"} 1
rampart_routing_changes_total{direction="raise",result="failed"} 0
`, "rampart_routing_changes_total")

	m.Succeeded(time.UnixMilli(1_700_000_000_250))
	shows(t, m, `# HELP rampart_last_success_timestamp_seconds End of the last cycle that read Git and Temporal; 0 before the first.
# TYPE rampart_last_success_timestamp_seconds gauge
rampart_last_success_timestamp_seconds 1.70000000025e+09
# HELP rampart_build_info 1, with the version of the program.
# TYPE rampart_build_info gauge
rampart_build_info{version="v1.2.3"} 1
`, "rampart_last_success_timestamp_seconds", "rampart_build_info")

	m.Cycle(OK, 2*time.Second)
	m.Request("DescribeWorkerDeployment", "OK", 20*time.Millisecond)
	m.Request("DescribeWorkerDeployment", "Unavailable", 4*time.Second)
	n, err := testutil.GatherAndCount(m.registry, "rampart_cycle_duration_seconds", "rampart_temporal_request_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 3+2, n)
}

const headStates = `# HELP rampart_worker_deployments Worker deployments, by the reason of their condition Ready; Unseen: not looked at since the bot started, as nothing about them moved.
# TYPE rampart_worker_deployments gauge
`

// Worker deployments are counted by state as long as they are there; those that are not ready have a series of their
// own.
func TestWorkerDeploymentsAreCountedByState(t *testing.T) {
	m := New("")
	name := func(n int) rollout.Name { return rollout.Name{Namespace: "shop", Name: fmt.Sprintf("w%04d", n)} }
	since := time.Unix(1_700_000_000, 0)
	m.Decided(name(1), State{Reason: rollout.RolloutComplete, Ready: true, Since: since})
	m.Decided(name(2), State{Reason: rollout.Ramping, Since: since})
	m.Decided(name(3), State{Reason: rollout.Ramping, Since: since})
	m.Are([]rollout.Name{name(1), name(2), name(4), name(5)})
	shows(t, m, headStates+`rampart_worker_deployments{reason="Ramping"} 1
rampart_worker_deployments{reason="RolloutComplete"} 1
rampart_worker_deployments{reason="Unseen"} 2
# HELP rampart_worker_deployment_not_ready_since_timestamp_seconds Since when a worker deployment is not ready, and the reason now; the 1000 that are so for longest.
# TYPE rampart_worker_deployment_not_ready_since_timestamp_seconds gauge
rampart_worker_deployment_not_ready_since_timestamp_seconds{reason="Ramping",worker_deployment="shop/w0002"} 1.7e+09
`, "rampart_worker_deployments", "rampart_worker_deployment_not_ready_since_timestamp_seconds")

	m.Decided(name(2), State{Reason: rollout.TemporalStateFetchFailed}) // without a status: not ready for as long as before
	require.Equal(t, since, m.states.of[name(2)].Since)
	m.Decided(name(1), State{Reason: rollout.TemporalStateFetchFailed})
	require.WithinDuration(t, time.Now(), m.states.of[name(1)].Since, time.Minute)

	all := []rollout.Name{name(0)}
	for n := 1; n <= maxSeries; n++ {
		m.Decided(name(n), State{Reason: rollout.RolledBack, Since: since.Add(time.Duration(n))})
		all = append(all, name(n))
	}
	m.Decided(name(0), State{Reason: rollout.RolledBack, Since: since.Add(time.Hour)})
	m.Are(all)
	shows(t, m, headStates+`rampart_worker_deployments{reason="RolledBack"} 1001
`, "rampart_worker_deployments")
	n, err := testutil.GatherAndCount(m.registry, "rampart_worker_deployment_not_ready_since_timestamp_seconds")
	require.NoError(t, err)
	require.Equal(t, maxSeries, n)
	families, err := m.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		require.NotContains(t, f.String(), "w0000", "the latest has no series")
	}
}

// The page lists each metric, and no other; Prometheus takes its rules.
func TestEachMetricIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	require.NoError(t, err)
	m := New("")
	m.Request("DescribeWorkerDeployment", "OK", time.Second)
	m.Decided(rollout.Name{}, State{Reason: rollout.Ramping})
	families, err := m.registry.Gather()
	require.NoError(t, err)
	var is, documented []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "rampart_") {
			is = append(is, f.GetName())
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(rampart_[a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1])
	}
	require.ElementsMatch(t, is, documented)

	promtool, err := exec.LookPath("promtool")
	if err != nil {
		testneed.Missing(t, "no promtool: install prometheus")
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, block[1], 0o600))
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint-fatal", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range regexp.MustCompile(`rampart_[a-z_]+`).FindAllString(string(block[1]), -1) {
		require.Contains(t, is, name)
	}
}
