package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// newTemporal is Temporal as a record says that it is. The routing that was decided last has been made, versions that
// had traffic drain, those that were scaled down have no workers any more.
func newTemporal(in Input) *temporal {
	m := &temporal{script: in.World, start: in.World.At.Time, queue: in.Snapshot.Deployment.Name,
		versions: map[string]*version{}, gates: map[string]gateRun{}, batches: map[string]batch{}}
	if in.Snapshot.Record.Routing == nil {
		return m
	}
	rec := in.Snapshot.Record.Routing.Spec
	if rec.Basis != nil {
		m.routing, m.manager, m.token = routingOf(rec, movedAt(in)), in.Snapshot.Environment.ManagerIdentity, 1
	}
	for _, r := range rec.Versions {
		m.versions[r.BuildID] = m.recorded(r, rec.Promotions)
	}
	return m
}

// movedAt is when the record's last decision moved traffic, which is not in its basis yet. While nothing else was
// decided since, the status tells when; a raise that is proposed comes after the pause of the step before. Otherwise it
// is not known: at the start, so that pauses are whole.
func movedAt(in Input) time.Time {
	rec, at := in.Snapshot.Record.Routing.Spec, in.World.At.Time
	if p := rec.Proposal; p != nil && !p.Withdrawn && p.From > 0 && rec.Target != nil &&
		p.BuildID == rec.Target.BuildID {
		return rec.Target.Since.Time
	}
	was := in.Snapshot.Record.LastStatus()
	if was == nil || was.Decision == nil || was.Decision.Since == nil {
		return at
	}
	for _, c := range was.Conditions {
		moved := c.Reason == string(rollout.Ramping) || c.Reason == string(rollout.RolloutComplete)
		if since := was.Decision.Since.Time; c.Type == v1alpha1.ConditionReady && moved &&
			since.Before(at) {
			return since
		}
	}
	return at
}

// routingOf is the routing that a record's last decision leads to: its basis, moved at that time if it was not moved
// yet.
func routingOf(rec v1alpha1.RoutingSpec, moved time.Time) rollout.RoutingConfig {
	r := rollout.RoutingConfig{Current: rec.Basis.Current, Revision: rec.Basis.Revision,
		CurrentChangedAt: rec.Basis.CurrentChangedAt.Time,
		RampingChangedAt: rec.Basis.RampingChangedAt.Time, PercentageChangedAt: rec.Basis.PercentageChangedAt.Time}
	setRamp(&r, rec.Basis.Ramping)
	decided := rec.Desired
	if rec.Decided != nil {
		decided = *rec.Decided
	}
	to := r
	to.Current = decided.Current
	setRamp(&to, decided.Ramping)
	if to.SameTraffic(r) {
		return r
	}
	to.Revision++
	if to.Current != r.Current {
		to.CurrentChangedAt = moved
	}
	if to.HasRamp != r.HasRamp || to.Ramping != r.Ramping {
		to.RampingChangedAt = moved
	}
	if to.HasRamp != r.HasRamp || to.Ramping != r.Ramping || to.Percentage != r.Percentage {
		to.PercentageChangedAt = moved
	}
	return to
}

func setRamp(r *rollout.RoutingConfig, ramp *v1alpha1.DesiredRamp) {
	r.HasRamp, r.Ramping, r.Percentage = ramp != nil, "", 0
	if ramp != nil {
		r.Ramping, r.Percentage = ramp.BuildID, float32(ramp.Percentage)
	}
}

// recorded is a version that Git has files of.
func (m *temporal) recorded(r v1alpha1.RecordedVersion, promotions []v1alpha1.Promotion) *version {
	v := &version{VersionObservation: rollout.VersionObservation{BuildID: r.BuildID,
		CreatedAt:        r.CreatedAt.Add(m.script.PollersAfter.Duration),
		FirstActivatedAt: r.RoutedAt.Time}, replicas: 1, share: 100}
	if r.Replicas != nil {
		v.replicas = int(*r.Replicas)
	}
	if v.replicas == 0 {
		v.lastPoll = r.RetiredAt.Time
	} else {
		v.workers, v.polls = r.CreatedAt.Time, v.CreatedAt
	}
	for _, p := range promotions {
		if p.BuildID == r.BuildID {
			v.BecameCurrentAt, v.DeactivatedAt = p.At.Time, p.LeftAt.Time
		}
	}
	switch {
	case routed(m.routing, r.BuildID):
		v.DeactivatedAt = time.Time{}
	case v.DeactivatedAt.IsZero() && !r.RoutedAt.IsZero():
		v.DeactivatedAt = slices.MaxFunc([]time.Time{m.routing.RampingChangedAt, r.RoutedAt.Time}, time.Time.Compare)
	}
	return v
}

func check(in Input) error {
	s := in.Snapshot
	switch {
	case s.Record.RoutingProblem != nil:
		return fmt.Errorf("simulate %s: %s", s.Deployment, s.Record.RoutingProblem.Message)
	case len(s.Problems) > 0:
		return fmt.Errorf("simulate %s: %s", s.Deployment, s.Problems[0].Message)
	case s.Spec == nil:
		return fmt.Errorf("simulate %s: its spec is gone from Git: there is nothing to roll out", s.Deployment)
	case in.Next != NextMadeUp && in.Next != NextNothing:
		return fmt.Errorf("simulate %s: what comes next is %q, where %s or %s is expected", s.Deployment, in.Next,
			NextMadeUp, NextNothing)
	case in.World.At.IsZero():
		return fmt.Errorf("simulate %s: the time to begin at is missing", s.Deployment)
	}
	if last := lastWritten(s.Record); last.After(in.World.At.Time) {
		return fmt.Errorf("simulate %s: it cannot begin at %s: the record in Git has times up to %s: begin at that "+
			"time or later", s.Deployment, in.World.At.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
	}
	return nil
}

// lastWritten is the latest time that a record tells of.
func lastWritten(record rollout.Record) time.Time {
	var last time.Time
	if record.Routing == nil {
		return last
	}
	rec := record.Routing.Spec
	times := make([]v1alpha1.Time, 0, 8)
	if b := rec.Basis; b != nil {
		times = append(times, b.CurrentChangedAt, b.RampingChangedAt, b.PercentageChangedAt)
	}
	if rec.Target != nil {
		times = append(times, rec.Target.Since)
	}
	for _, v := range rec.Versions {
		times = append(times, v.CreatedAt, v.RoutedAt, v.RetiredAt)
	}
	for _, p := range rec.Promotions {
		times = append(times, p.At, p.LeftAt)
	}
	for _, t := range times {
		if t.After(last) {
			last = t.Time
		}
	}
	return last
}
