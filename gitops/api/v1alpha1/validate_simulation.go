package v1alpha1

import (
	"regexp"
	"sync"
	"time"
)

// pointPattern names a gate by its place in a rollout.
var pointPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(first|step-[1-9][0-9]?)$`) })

// simulation checks a scripted world.
func (v *validator) simulation(n *node, s *SimulationSpec) {
	if n.get("metadata") != nil {
		v.metadata(n)
	}
	spec := v.require(n, "spec")
	if spec == nil {
		return
	}
	v.between(spec.get("for"), s.For, time.Second, MaxSimulationFor)
	v.between(spec.get("interval"), s.Interval, MinSimulationInterval, MaxSimulationInterval)
	v.moment(spec.get("pollersAfter"), s.PollersAfter)
	traffic := spec.get("traffic")
	if f := traffic.get("workflowsPerMinute"); f.present() &&
		(s.Traffic.WorkflowsPerMinute < 0 || s.Traffic.WorkflowsPerMinute > maxWorkflowsPerMinute) {
		v.errorf(f, "%s is not between 0 and %d", f.text, int(maxWorkflowsPerMinute))
	}
	v.between(traffic.get("duration"), s.Traffic.Duration, 0, MaxSimulationFor)
	v.moment(spec.at("approvals", "after"), s.Approvals.After)
	for _, key := range []string{"gates", "failures", "metrics", "evacuations", "outages", "pushes"} {
		if list := spec.get(key); len(list.items()) > maxSimulatedItems {
			v.errorf(list, "more than %d items", maxSimulatedItems)
			return
		}
	}
	v.simulatedGates(spec.get("gates").items(), s.Gates)
	v.simulatedFailures(spec.get("failures").items(), s.Failures)
	v.simulatedMetrics(spec.get("metrics").items(), s.Metrics)
	v.simulatedEvacuations(spec.get("evacuations").items(), s.Evacuations)
	v.simulatedOutages(spec.get("outages").items(), s.Outages)
	v.simulatedPushes(spec.get("pushes").items(), s.Pushes)
}

func (v *validator) simulatedGates(items []*node, gates []SimulatedGate) {
	for i, n := range items[:min(len(items), len(gates))] {
		if f := n.get("point"); f.present() && f.str() != "" {
			v.matches(f, pointPattern(), "a gate's point: first, or step-1, step-2 and so on")
		}
		v.printable(n.get("buildID"))
		v.moment(n.get("takes"), gates[i].Takes)
	}
}

func (v *validator) simulatedFailures(items []*node, failures []SimulatedFailures) {
	for i, n := range items[:min(len(items), len(failures))] {
		v.printable(n.get("buildID"))
		if p := v.require(n, "percentage"); p != nil && (failures[i].Percentage < 0 || failures[i].Percentage > 100) {
			v.errorf(p, "%s is not between 0 and 100", p.text)
		}
		v.span(n, failures[i].From, failures[i].To)
	}
}

func (v *validator) simulatedMetrics(items []*node, metrics []SimulatedMetric) {
	for i, n := range items[:min(len(items), len(metrics))] {
		v.printable(v.text(n, "name"))
		v.span(n, metrics[i].From, metrics[i].To)
	}
}

func (v *validator) simulatedEvacuations(items []*node, evacuations []SimulatedEvacuation) {
	for i, n := range items[:min(len(items), len(evacuations))] {
		v.printable(n.get("buildID"))
		v.moment(n.get("takes"), evacuations[i].Takes)
		if f := n.get("frees"); f.present() && (evacuations[i].Frees < 0 || evacuations[i].Frees > 100) {
			v.errorf(f, "%s is not between 0 and 100", f.text)
		}
	}
}

func (v *validator) simulatedOutages(items []*node, outages []SimulatedOutage) {
	for i, n := range items[:min(len(items), len(outages))] {
		v.span(n, outages[i].From, outages[i].To)
	}
}

func (v *validator) simulatedPushes(items []*node, pushes []SimulatedPush) {
	for i, n := range items[:min(len(items), len(pushes))] {
		v.moment(n.get("after"), pushes[i].After)
		v.printable(v.text(n, "image"))
	}
}

// span checks when something begins and ends.
func (v *validator) span(n *node, from, to Duration) {
	v.moment(n.get("from"), from)
	v.moment(n.get("to"), to)
	if f := n.get("to"); f.present() && to.Duration >= 0 && to.Duration <= from.Duration {
		v.errorf(f, "%s is not after from (%s)", to, from)
	}
}

// moment checks a time from the beginning, or a time that something takes.
func (v *validator) moment(n *node, d Duration) {
	if n.present() && d.Duration < 0 {
		v.errorf(n, "must not be negative")
	}
}

// between checks a duration's bounds.
func (v *validator) between(n *node, d Duration, least, most time.Duration) {
	if n.present() && (d.Duration < least || d.Duration > most) {
		v.errorf(n, "%s is not between %s and %s", d, Duration{least}, Duration{most})
	}
}
