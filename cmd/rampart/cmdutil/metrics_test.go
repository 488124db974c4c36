package cmdutil

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/metrics"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const judgedSpec = `apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: NAME, namespace: shop}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: shop}
  rollout:
    strategy: Progressive
    steps: [{rampPercentage: 10, pauseDuration: 1m}]
    analysis: {metrics: [{name: errors, maxAge: 1m, prometheus: {query: 'sum(errors{build="{{ .BuildID }}",name="{{ .Name }}"})'}}]}
  template: {spec: {containers: [{name: worker, image: "app:v1"}]}}
---
apiVersion: temporal.io/v1alpha1
kind: TemporalConnection
metadata: {name: temporal, namespace: shop}
spec: {hostPort: "localhost:7233"}
`

// ramping is a world of worker deployments whose targets ramp, and what Temporal says of them.
type ramping struct {
	world  rollout.World
	target string
}

func newRamping(t *testing.T, n int) ramping {
	t.Helper()
	env := v1alpha1.DefaultConfig().Spec.Environments[0]
	world := rollout.EnvironmentWorld{Environment: env}
	var target string
	for i := range n {
		name := fmt.Sprintf("w%03d", i)
		docs, problems := v1alpha1.Decode("spec.yaml", []byte(strings.ReplaceAll(judgedSpec, "NAME", name)))
		require.Empty(t, problems)
		spec := docs[0].Object.(*v1alpha1.WorkerDeployment)
		target, _ = rollout.BuildIDFor(spec.Spec, nil)
		world.Deployments = append(world.Deployments, rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: name},
			Environment: env, SpecPath: "spec.yaml", Spec: spec, Connection: docs[1].Object.(*v1alpha1.Connection),
			Record: rollout.Record{Dir: "deploy/shop/" + name}})
	}
	return ramping{rollout.World{Environments: []rollout.EnvironmentWorld{world}}, target}
}

func (r ramping) Read(context.Context) (rollout.World, error) { return r.world, nil }

func (r ramping) Observe(context.Context, v1alpha1.Connection, rollout.Ask) rollout.Observation {
	now := time.Now()
	return rollout.Observation{At: now, Exists: rollout.Yes, Routing: rollout.RoutingConfig{Current: "old", HasRamp: true,
		Ramping: r.target, Percentage: 10, PercentageChangedAt: now.Add(-time.Hour)}}
}

// TestHangingPrometheus: a Prometheus that hangs costs 200 worker deployments one time-out.
func TestHangingPrometheus(t *testing.T) {
	const timeout = time.Second
	var asked atomic.Int64
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1); <-end }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	client, err := metrics.New(metrics.Config{Address: server.URL, Timeout: timeout})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	world := newRamping(t, 200)
	planner := reconcile.Planner{Source: world, Observer: world, Metrics: metricsPort{client}, Limits: rollout.DefaultLimits(),
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Parallel: parallel}

	start := time.Now()
	seen, err := planner.Observe(t.Context())
	require.NoError(t, err)
	require.Less(t, time.Since(start), 3*timeout, "not 200/16 of them")
	require.LessOrEqual(t, asked.Load(), int64(4))
	for _, s := range seen.Environments[0].Deployments {
		require.Equal(t, map[string]rollout.Fact{"errors": {MaxAge: time.Minute, Error: "query errors: not asked again: no answer within 1s",
			Source: fmt.Sprintf(`prometheus: sum(errors{build=%q,name=%q})`, world.target, s.Deployment.Name)}}, s.Facts)
	}
}
