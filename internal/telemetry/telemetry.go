// Package telemetry keeps the metrics of a bot, and shows them as Prometheus reads them. Labels have few values, but
// for the names of the worker deployments that are not ready: it shows at most maxSeries of these. It is safe for
// concurrent use.
package telemetry

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Metrics are those of one bot.
type Metrics struct {
	registry *prometheus.Registry
	cycles   *prometheus.HistogramVec
	success  prometheus.Gauge
	requests *prometheus.HistogramVec
	pushes   *prometheus.CounterVec
	changes  *prometheus.CounterVec
	states   *states
}

// New has the metrics of a bot that did nothing yet, of a version of the program.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		cycles: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rampart_cycle_duration_seconds",
			Help: "Cycles: ok, partial (some worker deployments failed or could not be read) or failed (as " +
				"a whole).",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}}, []string{"result"}),
		success: prometheus.NewGauge(prometheus.GaugeOpts{Name: "rampart_last_success_timestamp_seconds",
			Help: "End of the last cycle that read Git and Temporal; 0 before the first."}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rampart_temporal_request_duration_seconds",
			Help:    "Requests to Temporal, by method and gRPC status code.",
			Buckets: []float64{0.01, 0.05, 0.25, 1, 4, 10}}, []string{"method", "code"}),
		pushes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rampart_git_pushes_total",
			Help: "Commits that were to be pushed: pushed, conflict (others pushed first; decided again), protected " +
				"(a rule of the branch) or failed."}, []string{"result"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rampart_routing_changes_total",
			Help: "Changes of traffic in Temporal, by direction (raise, lower): done, conflict (the routing moved " +
				"meanwhile; decided again) or failed."}, []string{"direction", "result"}),
		states: &states{of: map[rollout.Name]State{}},
	}
	// Series that are there before the first event have a rate from the first event on.
	for _, result := range []Result{OK, Partial, Failed} {
		m.cycles.WithLabelValues(string(result))
	}
	for _, result := range []string{"pushed", "conflict", "protected", "failed"} {
		m.pushes.WithLabelValues(result)
	}
	for _, direction := range []Direction{Raise, Lower} {
		for _, result := range []string{"done", "conflict", "failed"} {
			m.changes.WithLabelValues(string(direction), result)
		}
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rampart_build_info",
		Help: "1, with the version of the program.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(m.cycles, m.success, m.requests, m.pushes, m.changes, m.states, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler shows the metrics in the format that the client asks for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Result is how a cycle ended.
type Result string

// The results.
const (
	OK      Result = "ok"
	Partial Result = "partial"
	Failed  Result = "failed"
)

// Cycle counts a cycle.
func (m *Metrics) Cycle(result Result, took time.Duration) {
	m.cycles.WithLabelValues(string(result)).Observe(took.Seconds())
}

// Succeeded notes the end of a cycle that read Git and Temporal.
func (m *Metrics) Succeeded(at time.Time) { m.success.Set(float64(at.UnixMilli()) / 1000) }

// Request counts a request to Temporal: the name of its method, one of those that the program calls, and the gRPC
// status code by name.
func (m *Metrics) Request(method, code string, took time.Duration) {
	m.requests.WithLabelValues(method, code).Observe(took.Seconds())
}

// Push counts a commit that was to be pushed, by the error that it ended with.
func (m *Metrics) Push(err error) {
	result := "pushed"
	switch {
	case errors.Is(err, rollout.ErrMoved):
		result = "conflict"
	case errors.Is(err, rollout.ErrProtected):
		result = "protected"
	case err != nil:
		result = "failed"
	}
	m.pushes.WithLabelValues(result).Inc()
}

// Direction is that of a change of traffic.
type Direction string

// The directions.
const (
	Raise Direction = "raise"
	Lower Direction = "lower"
)

// Change counts a change of traffic in Temporal, by the error that it ended with.
func (m *Metrics) Change(direction Direction, err error) {
	result := "done"
	switch {
	case errors.Is(err, rollout.ErrStale):
		result = "conflict"
	case err != nil:
		result = "failed"
	}
	m.changes.WithLabelValues(string(direction), result).Inc()
}
