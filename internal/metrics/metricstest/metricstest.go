// Package metricstest has what tests of metrics read, on a real Prometheus and on servers that take its place.
package metricstest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/metrics"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Checkout is what the queries of these tests are filled with.
var Checkout = metrics.Values{Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, BuildID: "v1.0",
	TemporalNamespace: "prod", Environment: "live"}

// Metric is a query of Prometheus.
func Metric(name, query string, maxAge time.Duration) v1alpha1.Metric {
	return v1alpha1.Metric{Name: name, Prometheus: &v1alpha1.PrometheusQuery{Query: query},
		MaxAge: v1alpha1.Duration{Duration: maxAge}}
}

// Read reads one metric. The fact has a value or an error.
func Read(t *testing.T, c *metrics.Client, m v1alpha1.Metric, values metrics.Values) rollout.Fact {
	t.Helper()
	facts := c.Facts(t.Context(), []metrics.Ask{{Metrics: []v1alpha1.Metric{m}, Values: values}})
	require.Len(t, facts, 1)
	require.Len(t, facts[0], 1)
	f := facts[0][m.Name]
	require.NotEqual(t, f.Error == "", len(f.Value) == 0, "a value or an error: %+v", f)
	require.Equal(t, m.MaxAge.Duration, f.MaxAge)
	return f
}
