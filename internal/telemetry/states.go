package telemetry

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// maxSeries is how many worker deployments that are not ready have a series of their own: those that are so for
// longest.
const maxSeries = 1000

// unseen is the reason of worker deployments that nothing was decided about since the bot started: an earlier run left
// nothing to do there.
const unseen rollout.Reason = "Unseen"

// State is what was decided last about a worker deployment.
type State struct {
	Reason rollout.Reason
	// Ready is the condition, and Since when it became so; zero: now.
	Ready bool
	Since time.Time
}

// states are those of all worker deployments.
type states struct {
	mu sync.Mutex
	of map[rollout.Name]State
	// unseen is how many others there are.
	unseen int
}

var (
	perReason = prometheus.NewDesc("rampart_worker_deployments",
		"Worker deployments, by the reason of their condition Ready; Unseen: not looked at since the bot started, as "+
			"nothing about them moved.", []string{"reason"}, nil)
	notReady = prometheus.NewDesc("rampart_worker_deployment_not_ready_since_timestamp_seconds",
		"Since when a worker deployment is not ready, and the reason now; the 1000 that are so for longest.",
		[]string{"worker_deployment", "reason"}, nil)
)

// Decided notes the state of a worker deployment.
func (m *Metrics) Decided(name rollout.Name, is State) {
	s := m.states
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, known := s.of[name]; is.Since.IsZero() {
		is.Since = time.Now()
		if known && was.Ready == is.Ready {
			is.Since = was.Since
		}
	}
	s.of[name] = is
}

// Are says which worker deployments there are: others are forgotten.
func (m *Metrics) Are(names []rollout.Name) {
	s := m.states
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make(map[rollout.Name]State, len(names))
	s.unseen = 0
	for _, name := range names {
		if is, known := s.of[name]; known {
			now[name] = is
		} else {
			s.unseen++
		}
	}
	s.of = now
}

// Describe is for prometheus.Collector.
func (s *states) Describe(to chan<- *prometheus.Desc) { to <- perReason; to <- notReady }

// Collect is for prometheus.Collector.
func (s *states) Collect(to chan<- prometheus.Metric) {
	type one struct {
		rollout.Name
		State
	}
	s.mu.Lock()
	counts := map[rollout.Reason]int{}
	var waiting []one
	for name, is := range s.of {
		counts[is.Reason]++
		if !is.Ready {
			waiting = append(waiting, one{name, is})
		}
	}
	if s.unseen > 0 {
		counts[unseen] += s.unseen
	}
	s.mu.Unlock()
	for reason, n := range counts {
		to <- prometheus.MustNewConstMetric(perReason, prometheus.GaugeValue, float64(n), string(reason))
	}
	slices.SortFunc(waiting, func(a, b one) int { return cmp.Or(a.Since.Compare(b.Since), a.Compare(b.Name)) })
	for _, w := range waiting[:min(len(waiting), maxSeries)] {
		to <- prometheus.MustNewConstMetric(notReady, prometheus.GaugeValue, float64(w.Since.UnixMilli())/1000,
			w.String(), string(w.Reason))
	}
}
