package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/dynamicconfig"

	"github.com/rampart-gitops/rampart/test/promtest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// firstStep is a rollout that stays at half of the traffic; %s takes an analysis, a gate, nothing.
const firstStep = "{strategy: Progressive, steps: [{rampPercentage: 50, pauseDuration: 1h}], rollback: {window: 1h}%s}"

// traffic starts Checkout workflows until the test ends.
func (w *world) traffic() {
	w.t.Helper()
	load, err := temporalenv.StartTraffic(w.client, temporalenv.Load{Workflow: temporalenv.Checkout, TaskQueue: queue, Every: 20 * time.Millisecond})
	require.NoError(w.t, err)
	w.t.Cleanup(load.Stop)
}

// barReason is why the only barred build was turned back.
func (w *world) barReason() string {
	w.t.Helper()
	bars := w.routing().Bars
	require.Len(w.t, bars, 1)
	return bars[0].Reason
}

// Nothing is configured: the sequential test is on by default.
func TestFailingCandidateIsTurnedBack(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: firstStep})
	w.awaitReady("app:v1")
	w.traffic()
	w.pushSpec("a bad one", specText{image: "app:bad", strategy: firstStep})
	w.awaitReason("RolledBack")
	require.Equal(t, []string{"current v1", "ramp bad 50", "ramp none"}, w.calls())
	require.Equal(t, []string{"rollout.canary"}, barredBy(w.routing()))
	require.Regexp(t, `^\d+ of \d+ workflows of bad-\w+ failed, 0 of \d+ of v1-\w+$`, w.barReason())
}

// What fails after its promotion goes back to the version before it.
func TestBakingVersionIsTurnedBack(t *testing.T) {
	w := newWorld(t)
	const strategy = "{strategy: AllAtOnce, rollback: {window: 1s}, analysis: {bake: 1h, window: 5s, minSamples: 5, maxFailureRate: 0.3}%s}"
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: strategy})
	w.awaitReady("app:v1")
	w.traffic()
	w.pushSpec("a bad one", specText{image: "app:bad", strategy: strategy})
	w.awaitReason("RolledBack")
	require.Equal(t, []string{"current v1", "current bad", "current v1"}, w.calls())
	require.Equal(t, []string{"rollout.canary"}, barredBy(w.routing()))
}

// awaitStale waits for the reason StaleFacts with a message that says this. Before, it may be about a version that
// Temporal lists and cannot describe yet.
func (w *world) awaitStale(said string) {
	w.t.Helper()
	w.eventually("StaleFacts: "+said, func() bool { return w.reason() == "StaleFacts" && strings.Contains(w.message(), said) })
}

// A step waits for its samples, and goes on when they are there.
func TestStepWaitsForSamples(t *testing.T) {
	w := newWorld(t)
	const strategy = "{strategy: Progressive, steps: [{rampPercentage: 50, pauseDuration: 1s}], analysis: {window: 1s, minSamples: 10, maxWait: 1h}%s}"
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: strategy})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: strategy})
	w.awaitStale("fewer than 10 closed workflows of v2-")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 50"}, w.calls())
	w.traffic()
	w.awaitReady("app:v2")
}

// problemsSoon makes the server report a workflow whose task keeps failing after two failures (a real one: five).
func problemsSoon() option {
	return func(w *world) {
		w.settings = append(w.settings, temporalenv.Setting{Setting: dynamicconfig.NumConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute, Value: 2})
	}
}

// panics is an image whose workflows panic in their first task: they never close, and are counted under no version.
func panics() temporalenv.Image {
	return temporalenv.Image{TaskQueues: []string{queue}, Register: func(w worker.Registry) {
		w.RegisterWorkflowWithOptions(func(workflow.Context) error { panic("nil map") },
			workflow.RegisterOptions{Name: temporalenv.Checkout, VersioningBehavior: workflow.VersioningBehaviorPinned})
		registerCharge(w)
	}}
}

// changed is an image whose workflow Follow cannot be replayed from the history that DefaultImage made.
func changed() temporalenv.Image {
	image := temporalenv.DefaultImage(queue)
	return temporalenv.Image{TaskQueues: image.TaskQueues, Register: func(w worker.Registry) {
		w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
			if err := workflow.Sleep(ctx, time.Hour); err != nil {
				return err
			}
			return workflow.Sleep(ctx, time.Hour)
		}, workflow.RegisterOptions{Name: temporalenv.Follow, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade})
		registerCharge(w)
	}}
}

// A first task that panics closes no workflow: the stuck ones show it.
func TestFirstTaskPanics(t *testing.T) {
	w := newWorld(t, problemsSoon())
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: firstStep})
	w.awaitReady("app:v1")
	w.pushSpec("one that panics", specText{image: "app:v6", strategy: firstStep})
	w.eventually("50%", func() bool { return len(w.calls()) == 2 })
	w.traffic()
	w.awaitReason("RolledBack")
	require.Equal(t, []string{"current v1", "ramp v6 50", "ramp none"}, w.calls())
	require.Contains(t, w.barReason(), "their workflow task fails again and again")
}

// A workflow that moves on to the candidate and cannot be replayed there stays counted under the version before.
func TestReplayErrorOnTheCandidate(t *testing.T) {
	w := newWorld(t, problemsSoon())
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: firstStep})
	w.awaitReady("app:v1")
	ids := []string{"follow-1", "follow-2", "follow-3", "follow-4", "follow-5", "follow-6", "follow-7", "follow-8"}
	for _, id := range ids {
		_, err := w.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, temporalenv.Follow)
		require.NoError(t, err)
		w.eventually("on v1", func() bool {
			d, err := w.client.DescribeWorkflowExecution(t.Context(), id, "")
			return err == nil && d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion() != nil
		})
	}
	w.pushSpec("one that cannot replay", specText{image: "app:v7", strategy: firstStep})
	w.eventually("50%", func() bool { return len(w.calls()) == 2 })
	w.eventually("turned back", func() bool {
		for _, id := range ids { // again: the routing takes a moment to reach the queue, and a task before that is v1's
			require.NoError(t, w.client.SignalWorkflow(t.Context(), id, "", "wake", nil))
		}
		return w.reason() == "RolledBack"
	})
	require.Equal(t, []string{"current v1", "ramp v7 50", "ramp none"}, w.calls())
	require.Contains(t, w.barReason(), "are stuck on v7-")
}

// A metric goes away in mid-ramp: held at its step, never advanced, and said so. When it is back and bad, policy turns
// the build back.
func TestMetricsOfTheCandidate(t *testing.T) {
	store := promtest.Start(t)
	w := newWorld(t)
	store.Expose(`errors{build="other"} 0.01`)
	w.start("--prometheus-address", store.URL)
	const strategy = `{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1s}, {rampPercentage: 50, pauseDuration: 1h}],
    analysis: {window: 1s, minSamples: 1, maxWait: 1s, onTooFewSamples: Advance,
      metrics: [{name: error_rate, maxAge: 1m, prometheus: {query: 'errors{build="{{ .BuildID }}"}'}}]}%s}`
	w.push("policies", map[string]string{
		"rampart.yaml": `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: default, specs: ["workers/**"], output: {path: deploy}, data: [limits.yaml]}
`,
		"limits.yaml": `rampart: {config: {rollout: {metrics: {thresholds: [{metric: error_rate, max: 0.05, onBreach: rollback}]}}}}
`})
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: strategy})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: strategy})
	w.awaitStale("metric error_rate")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())

	series := func(value string) { store.Expose(`errors{build="` + w.build("app:v2") + `"} ` + value) }
	series("0.01")
	w.eventually("it goes on", func() bool { return len(w.calls()) == 3 })
	series("0.2")
	w.awaitReason("RolledBack")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "ramp none"}, w.calls())
	require.Equal(t, "error_rate is 0.2, more than 0.05", w.barReason())
}
