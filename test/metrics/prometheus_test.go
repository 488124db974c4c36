package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/metrics"
	"github.com/rampart-gitops/rampart/internal/metrics/metricstest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/test/promtest"
)

func TestRealPrometheus(t *testing.T) {
	server := promtest.Start(t)
	old := time.Now().Add(-3 * time.Minute).Truncate(time.Millisecond)
	server.Expose(fmt.Sprintf(`
errors{build="v1.0",deployment="payments/checkout"} 3
errors{build="v1-0",deployment="payments/checkout"} 40
errors{build="q\"}'x\\",deployment="payments/checkout"} 7
zero 0
old 5 %d
`, old.UnixMilli()))
	server.Await(t, "zero")
	server.Await(t, "old")
	c, err := metrics.New(metrics.Config{Address: server.URL + "/"})
	require.NoError(t, err)
	t.Cleanup(c.Close)

	t.Run("values", func(t *testing.T) {
		hostile := metricstest.Checkout
		hostile.BuildID = `q"}'x\`
		for query, want := range map[string]string{
			`errors{build="{{ .BuildID }}",deployment="{{ .Deployment }}"}`: "3",
			`errors{build='{{ .BuildID }}'} / 8`:                            "0.375",
			`sum(errors{build=~"{{ .BuildID }}"})`:                          "3",
			`sum(errors{deployment="{{ .Namespace }}/{{ .Name }}"})`:        "50",
			`-errors{build="{{ .BuildID }}"} * 1e21`:                        "-3e+21",
			`vector(0)`:                                                     "0",
		} {
			before := time.Now()
			f := metricstest.Read(t, c, metricstest.Metric("error_rate", query, time.Minute), metricstest.Checkout)
			require.Empty(t, f.Error, query)
			require.JSONEq(t, want, string(f.Value), query)
			require.True(t, f.Fresh(time.Now()))
			require.WithinRange(t, f.ObservedAt, before.Add(-10*time.Second), time.Now())
		}
		for _, query := range []string{`errors{build="{{ .BuildID }}"}`, `errors{build='{{ .BuildID }}'}`, `sum(errors{build=~"{{ .BuildID }}"})`} {
			require.JSONEq(t, "7", string(metricstest.Read(t, c, metricstest.Metric("error_rate", query, time.Minute), hostile).Value), query)
		}
	})
	t.Run("no value", func(t *testing.T) {
		for query, want := range map[string]string{
			`errors{build="none"}`: `no series: nothing matches it, or not within maxAge`,
			`sum by (build) (errors)`: `3 series, expected one: aggregate them, for example with sum(); the first are ` +
				`{build="q\"}'x\\"}, {build="v1-0"}, {build="v1.0"}`,
			`scalar(zero)`: `the answer is a scalar, expected an instant vector with one series: a scalar is there even if no series is; ` +
				`leave scalar() out, or write vector() if it is meant`,
			`"text"`:                       `the answer is text, or not from Prometheus' API at all: look at the query and the address`,
			`zero[1m]`:                     `the answer is a range of samples, expected an instant vector with one series: use a function such as rate() or avg_over_time() on it`,
			`zero/zero`:                    `the answer is NaN, as of 0/0: there may have been no traffic`,
			`1/zero`:                       `the answer is +Inf, as of a division by 0`,
			`-1/zero`:                      `the answer is -Inf, as of a division by 0`,
			`sum(zero`:                     `Prometheus refuses it: invalid parameter "query": 1:9: parse error: unclosed left parenthesis`,
			`x{a="{{ .CurrentBuildID }}"}`: `needs {{ .CurrentBuildID }}, and there is none`,
			`x{a="{{ .Nothing }}"}`:        `has {{ .Nothing }}, and may use`,
		} {
			f := metricstest.Read(t, c, metricstest.Metric("error_rate", query, time.Minute), metricstest.Checkout)
			require.Contains(t, f.Error, "query error_rate: "+want, query)
			require.False(t, f.Fresh(time.Now()))
			require.True(t, f.ObservedAt.IsZero())
		}
		f := metricstest.Read(t, c, v1alpha1.Metric{Name: "nothing"}, metricstest.Checkout)
		require.Equal(t, "query nothing: it has no query for Prometheus", f.Error)
	})
	t.Run("age", func(t *testing.T) {
		f := metricstest.Read(t, c, metricstest.Metric("age", " old", 2*time.Minute), metricstest.Checkout)
		want := rollout.Fact{Value: []byte("5"), ObservedAt: old.UTC(), MaxAge: 2 * time.Minute, Source: "prometheus:  old"}
		if diff := cmp.Diff(want, f, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("a selector has the sample's own time (-want +got):\n%s", diff)
		}
		require.False(t, f.Fresh(time.Now()))
		require.True(t, metricstest.Read(t, c, metricstest.Metric("age", `old{job="test"}`, 4*time.Minute), metricstest.Checkout).Fresh(time.Now()))
		// What docs/analysis.md warns of: the age of what an expression is made of cannot be seen.
		require.WithinDuration(t, time.Now(), metricstest.Read(t, c, metricstest.Metric("age", "old * 1", 4*time.Minute), metricstest.Checkout).ObservedAt, 20*time.Second)
	})
}
