package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// happen makes the pushes that are due at t, and tells what else happened since the cycle before.
func (s *simulation) happen(t time.Time) ([]string, error) {
	events := s.temporal.happened(s.seen, t)
	for _, id := range slices.Sorted(maps.Keys(s.asked)) {
		if a := s.asked[id]; a.at.After(s.seen) && !a.at.After(t) {
			events = append(events, "approved: "+a.action.Reason)
		}
	}
	for _, a := range s.asked {
		if a.action.Evacuation != nil && a.at.After(s.seen) && !a.at.After(t) {
			s.snapshot.Record = approve(s.snapshot.Record, a.action.Evacuation.JobID)
		}
	}
	s.seen = t
	for len(s.pushes) > 0 && !s.pushes[0].at.IsZero() && !s.pushes[0].at.After(t) {
		spec, err := withImage(s.snapshot.Spec, s.pushes[0].image)
		if err != nil {
			return nil, err
		}
		events = append(events, "push of "+s.pushes[0].image)
		s.snapshot.Spec, s.pushes = spec, s.pushes[1:]
		if id := s.target(); s.temporal.versions[id] == nil || s.temporal.versions[id].FirstActivatedAt.IsZero() {
			s.temporal.candidate = id
		}
	}
	return events, nil
}

// next gives the time of the next cycle in which something happens. False: nothing ever does.
func (s *simulation) next(ctx context.Context, t time.Time, d decision) (time.Time, bool) {
	if d.acted {
		return t.Add(s.script.Interval.Duration), true
	}
	horizon, something := s.end.Add(1), false
	sooner := func(c time.Time) {
		something = true
		if c.Before(horizon) {
			horizon = c
		}
	}
	for _, at := range s.ahead(t) {
		sooner(s.cycleAt(t, at))
	}
	if at := d.plan.NextDue; !at.IsZero() {
		sooner(s.after(t, at))
	}
	if len(d.plan.Held) == 0 && !d.counts {
		return horizon, something
	}
	return s.search(ctx, t, horizon, d), true
}

// search looks for the first cycle before horizon that decides otherwise than the one at t. It goes with ever longer
// steps, then halving the last of them.
func (s *simulation) search(ctx context.Context, t, horizon time.Time, d decision) time.Time {
	interval := s.script.Interval.Duration
	most := max(10*time.Minute, s.script.For.Duration/2000)
	was := known(d)
	same := t
	for step := interval; ctx.Err() == nil; step = min(2*step, max(most/interval, 1)*interval) {
		at := same.Add(step)
		if !at.Before(horizon) {
			at = s.before(t, horizon)
		}
		if !at.After(same) {
			return horizon
		}
		if known(s.decide(ctx, at)) == was {
			same = at
			continue
		}
		for at.Sub(same) > interval {
			half := same.Add(at.Sub(same) / interval / 2 * interval)
			if known(s.decide(ctx, half)) == was {
				same = half
			} else {
				at = half
			}
		}
		return at
	}
	return horizon
}

// cycleAt is the first cycle after the one at t that is not before a time.
func (s *simulation) cycleAt(t, at time.Time) time.Time {
	interval := s.script.Interval.Duration
	n := (at.Sub(t) + interval - 1) / interval
	return t.Add(max(n, 1) * interval)
}

// after is the first cycle after the one at t that is after a time.
func (s *simulation) after(t, at time.Time) time.Time { return s.cycleAt(t, at.Add(1)) }

// before is the last cycle before a time.
func (s *simulation) before(t, at time.Time) time.Time {
	interval := s.script.Interval.Duration
	return t.Add((at.Sub(t) - 1) / interval * interval)
}

// ahead are the times after t at which the world changes by itself.
func (s *simulation) ahead(t time.Time) []time.Time {
	all := s.temporal.moments()
	for _, p := range s.pushes {
		if !p.at.IsZero() {
			all = append(all, p.at)
		}
	}
	for _, a := range s.asked {
		all = append(all, a.at)
	}
	return slices.DeleteFunc(all, func(at time.Time) bool { return !at.After(t) })
}

// moments are the times at which Temporal or the workers change by themselves.
func (m *temporal) moments() []time.Time {
	var all []time.Time
	for _, v := range m.versions {
		all = append(all, v.polls, m.drainedAt(v), v.lastPoll.Add(pollersListed))
	}
	for _, g := range m.gates {
		all = append(all, g.ends)
	}
	for _, o := range m.script.Outages {
		all = append(all, m.start.Add(o.From.Duration), m.start.Add(o.To.Duration))
	}
	for _, f := range m.script.Failures {
		all = append(all, m.start.Add(f.From.Duration), m.start.Add(f.To.Duration))
	}
	for _, s := range m.script.Metrics {
		all = append(all, m.start.Add(s.From.Duration), m.start.Add(s.To.Duration))
	}
	for _, b := range m.batches {
		all = append(all, b.ends)
	}
	return all
}

// happened tells what changed by itself after one time until another.
func (m *temporal) happened(from, to time.Time) []string {
	var out []string
	within := func(at time.Time) bool { return at.After(from) && !at.After(to) }
	tell := func(at time.Time, format string, args ...any) {
		if within(at) {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	end := func(to v1alpha1.Duration) time.Time {
		if to.Duration == 0 {
			return time.Time{}
		}
		return m.start.Add(to.Duration)
	}
	for _, o := range m.script.Outages {
		tell(m.start.Add(o.From.Duration), "Temporal cannot be read")
		tell(end(o.To), "Temporal can be read again")
	}
	for _, f := range m.script.Failures {
		who := f.BuildID
		if who == "" {
			who = "the candidate"
		}
		tell(m.start.Add(f.From.Duration), "%s of the workflows of %s fail", rollout.Percent(f.Percentage), who)
		tell(end(f.To), "the workflows of %s fail no more", who)
	}
	for _, s := range m.script.Metrics {
		for _, at := range []time.Time{m.start.Add(s.From.Duration), end(s.To)} {
			// one span may end where another begins
			if line := m.sayMetric(s, at); within(at) && !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.batches)) {
		b := m.batches[id]
		tell(b.ends, "batch job %s of %s: %s", b.job.Stage, b.buildID, b.at(b.ends).State)
	}
	for _, id := range slices.Sorted(maps.Keys(m.versions)) {
		v := m.versions[id]
		if !v.workers.IsZero() {
			tell(v.polls, "workers of %s poll", id)
		}
		tell(m.drainedAt(v), "%s is drained", id)
	}
	for _, id := range slices.Sorted(maps.Keys(m.gates)) {
		g := m.gates[id]
		tell(g.ends, "gate %s of %s: %s", g.gate.WorkflowType, g.gate.BuildID, g.state)
	}
	return out
}
