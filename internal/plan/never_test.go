package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestNever spoils plans that may be carried out, or what they were made on: each has to be refused.
func TestNever(t *testing.T) {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	down := all(old, scaledDown("v1", 80*time.Hour), noPollers("v1"))
	gone := all(down, unlisted("v1"), counted("v1", 0))
	raise := candidate()
	lower := rampsAt(30, time.Hour)
	back := all(promoted(time.Minute), wants("v1"))
	both := func(change func(*rollout.Observation)) func(*rollout.Snapshot, *rollout.Plan) {
		return func(s *rollout.Snapshot, _ *rollout.Plan) { change(&s.Observation) }
	}
	v1 := func(change func(*rollout.VersionObservation)) func(*rollout.Snapshot, *rollout.Plan) {
		return both(func(o *rollout.Observation) { change(o.Version(id("v1"))) })
	}
	v2 := func(change func(*rollout.VersionObservation)) func(*rollout.Snapshot, *rollout.Plan) {
		return both(func(o *rollout.Observation) { change(o.Version(id("v2"))) })
	}
	inRecord := func(tag string, change func(*v1alpha1.RecordedVersion)) func(*rollout.Snapshot, *rollout.Plan) {
		return func(s *rollout.Snapshot, _ *rollout.Plan) {
			change(rollout.FindVersion(s.Record.Routing.Spec.Versions, id(tag)))
		}
	}
	steps := func(steps ...rollout.RoutingStep) func(*rollout.Snapshot, *rollout.Plan) {
		return func(_ *rollout.Snapshot, p *rollout.Plan) {
			if p.Raise != nil {
				p.Raise.Steps = steps
			} else {
				p.Lower.Steps = steps
			}
		}
	}
	to := func(percentage float32) rollout.RoutingStep {
		return rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: id("v2"), Percentage: percentage}
	}
	for _, c := range []struct {
		name  string
		given change
		spoil func(*rollout.Snapshot, *rollout.Plan)
		want  string
	}{
		{"scale down: current", old, both(func(o *rollout.Observation) { o.Routing.Current = id("v1") }), "it is current"},
		{"scale down: ramping", old, both(func(o *rollout.Observation) { o.Routing.HasRamp, o.Routing.Ramping = true, id("v1") }), "it is ramping"},
		{"scale down: draining", old, v1(func(v *rollout.VersionObservation) { v.Drainage = rollout.Draining }), "it is draining"},
		{"scale down: drainage unspecified", old, v1(func(v *rollout.VersionObservation) { v.Drainage = "" }), "its drainage is not known"},
		{"scale down: pinned", old, v1(func(v *rollout.VersionObservation) { v.OpenPinned.N = 1 }), "no open workflow is pinned"},
		{"scale down: missing", old, both(func(o *rollout.Observation) { o.Versions = nil }), "no open workflow names it"},
		{"scale down: missing and routed", all(old), both(func(o *rollout.Observation) {
			o.Versions, o.Unlisted = nil, map[string]rollout.Count{id("v1"): rollout.Counted(0)}
		}), "Temporal does not list it"},
		{"scale down: not read", old, both(func(o *rollout.Observation) { o.Problem = &rollout.Problem{} }), "Temporal was not read"},
		{"scale down: one read", old, func(s *rollout.Snapshot, _ *rollout.Plan) { s.FirstRead = nil }, "no second read"},
		{"scale down: the first read", old, func(s *rollout.Snapshot, _ *rollout.Plan) { s.FirstRead.Exists = "" }, "Temporal was not read"},
		{"scale down: owner", old, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Environment.ManagerIdentity = "another" }, "of \"rampart/prod\""},
		{"scale to 0 with the guard on", old, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Versions[0].Guard = v1alpha1.GuardOn }, "which was not asked for"},
		{"remove: listed", gone, both(func(o *rollout.Observation) {
			o.Versions = append(o.Versions, rollout.VersionObservation{BuildID: id("v1")})
		}), "Temporal still knows it"},
		{"remove: not scaled down", gone, inRecord("v1", func(r *v1alpha1.RecordedVersion) { r.Guard = v1alpha1.GuardOn }), "before it was scaled down"},
		{"delete: not scaled down", down, inRecord("v1", func(r *v1alpha1.RecordedVersion) { r.Replicas = replicas(1) }), "before it was scaled down"},
		{"delete: draining", down, v1(func(v *rollout.VersionObservation) { v.Drainage = rollout.Draining }), "it is draining"},
		{"delete: owner", down, both(func(o *rollout.Observation) { o.ManagerIdentity = "another" }), "would be deleted"},
		{"gate: owner", all(raise, gate(v1alpha1.GateHold), gateIs(rollout.GateMissing, 1)), both(func(o *rollout.Observation) { o.ManagerIdentity = "another" }), "a gate would start"},
		{"raise: owner", raise, both(func(o *rollout.Observation) { o.ManagerIdentity = "another" }), "the raise would change"},
		{"raise: token", raise, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Raise.Token = nil }, "not bound"},
		{"raise: basis", raise, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Raise.Basis.Revision++ }, "not bound"},
		{"raise: claim", raise, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Raise.Claim = rollout.ClaimNeeded }, "who makes it"},
		{"raise: identity", raise, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Raise.Identity = "another" }, "who makes it"},
		{"raise: old", raise, both(func(o *rollout.Observation) { o.At = ago(61 * time.Second) }), "1m1s old"},
		{"raise: no files", raise, func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Record.Routing.Spec.Versions = s.Record.Routing.Spec.Versions[:1]
		}, "not in Git"},
		{"raise: guard off", raise, inRecord("v2", func(r *v1alpha1.RecordedVersion) { r.Guard = v1alpha1.GuardOff }), "not in Git"},
		{"raise: at 0", raise, inRecord("v2", func(r *v1alpha1.RecordedVersion) { r.Replicas = replicas(0) }), "not in Git"},
		{"raise: queues unknown", raise, v2(func(v *rollout.VersionObservation) { v.QueuesKnown = "" }), "task queues are not known"},
		{"raise: no queue", raise, v2(func(v *rollout.VersionObservation) { v.Queues = nil }), "task queues are not known"},
		{"raise: no poller", raise, v2(func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Count = 0 }), "no fresh poller"},
		{"raise: stale poller", raise, v2(func(v *rollout.VersionObservation) { v.Queues[0].Pollers.LastAccess = ago(91 * time.Second) }), "no fresh poller"},
		{"raise: two steps", raise, steps(to(50)), "more than one step"},
		{"raise: all at once", raise, steps(rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: id("v2")}), "more than one step"},
		{"lower: higher", lower, steps(to(31)), "would raise"},
		{"lower: the same", lower, steps(to(30)), "would raise"},
		{"lower: another", lower, steps(rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: id("v1"), Percentage: 1}), "would raise"},
		{"lower: promote", lower, steps(rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: id("v2")}), "which it was not before"},
		{"rollback: no poller", back, v1(func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Count = 0 }), "no fresh poller"},
		{"rollback: token", back, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Lower.Token = nil }, "not bound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := twice(of(c.given))
			p := decide(t, s, allowed)
			c.spoil(&s, &p)
			found := Never(s, p)
			require.NotEmpty(t, found)
			require.Contains(t, strings.Join(found, "\n"), c.want)
		})
	}
}

// TestNeverKnowsTheFirstVersion: it may be promoted without steps only where no other workers are.
func TestNeverKnowsTheFirstVersion(t *testing.T) {
	first := all(candidate(), unlisted("v1"), func(g *given) {
		g.rec.Promotions, g.Observation.Routing = nil, rollout.RoutingConfig{}
		desires("", "", 0)(g)
	})
	s := of(first)
	p := decide(t, s, allowed)
	require.Equal(t, []string{"SetCurrent v2 0"}, sayCall(p.Raise))
	s.Observation.Version(id("v2")).Queues[0].Unversioned = ""
	require.NotEmpty(t, Never(s, p))
}
