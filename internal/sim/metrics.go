package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// facts are the metrics as the script has them at t; 0 where it says nothing.
func (m *temporal) facts(t time.Time, ask *rollout.MetricsAsk) map[string]rollout.Fact {
	if ask == nil {
		return nil
	}
	out := map[string]rollout.Fact{}
	for _, metric := range ask.Metrics {
		f := rollout.Fact{MaxAge: metric.MaxAge.Duration, Source: "simulated"}
		if v := m.metric(metric.Name, t); v != nil {
			f.Value, f.ObservedAt = []byte(strconv.FormatFloat(*v, 'g', -1, 64)), t
		} else {
			f.Error = "it cannot be read (scripted)"
		}
		out[metric.Name] = f
	}
	return out
}

// metric is a metric's value at t; nil: it cannot be read.
func (m *temporal) metric(name string, t time.Time) *float64 {
	value := new(float64)
	for _, s := range m.script.Metrics {
		if s.Name == name && during(t.Sub(m.start), s.From, s.To) {
			value = s.Value
		}
	}
	return value
}

func (m *temporal) sayMetric(s v1alpha1.SimulatedMetric, t time.Time) string {
	if v := m.metric(s.Name, t); v != nil {
		return fmt.Sprintf("metric %s is %v", s.Name, *v)
	}
	return fmt.Sprintf("metric %s cannot be read", s.Name)
}
