package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ramping is a scene in which a ramp goes to a build that is barred.
func ramping(t *testing.T) (*scene, *Reconciler) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	s.once(r)
	s.calls = nil
	d := &s.world.Environments[0].Deployments[0]
	target := d.Record.Routing.Spec.Target
	s.obs.ManagerIdentity = d.Environment.ManagerIdentity
	s.obs.Routing = rollout.RoutingConfig{HasRamp: true, Ramping: target.BuildID, Percentage: 10, PercentageChangedAt: s.now}
	d.Record.Routing.Spec.Bars = []v1alpha1.Bar{{BuildID: target.BuildID, TemplateHash: target.TemplateHash, By: "ada", Reason: "timeouts"}}
	return s, r
}

// Temporal is read by what is recorded of a spec and a connection that are gone, and traffic is lowered by it.
func TestLowersWithoutSpecOrConnection(t *testing.T) {
	for name, breaks := range map[string]func(*rollout.Snapshot){
		"the connection is gone": func(d *rollout.Snapshot) { d.Connection = nil },
		"the spec is gone":       func(d *rollout.Snapshot) { d.Spec, d.SpecPath = nil, "" },
		"both are gone":          func(d *rollout.Snapshot) { d.Spec, d.SpecPath, d.Connection = nil, "", nil },
		"the spec is not valid": func(d *rollout.Snapshot) {
			d.Spec, d.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := ramping(t)
			breaks(&s.world.Environments[0].Deployments[0])
			report := s.once(r)
			require.Equal(t, []string{"lower"}, s.calls)
			require.Empty(t, report.Failures)
			require.Equal(t, "localhost:7233", plan.Look(report.Decisions[0].Snapshot).Subject().Connection.Spec.HostPort)
			require.Equal(t, "shop", plan.Look(report.Decisions[0].Snapshot).Subject().TemporalNamespace)
		})
	}
}

// What was recorded of neither is not asked about.
func TestNothingRecorded(t *testing.T) {
	s, r := ramping(t)
	d := &s.world.Environments[0].Deployments[0]
	d.Spec, d.SpecPath, d.Record.Status = nil, "", nil
	report := s.once(r)
	require.Empty(t, s.calls)
	require.Zero(t, report.Decisions[0].Snapshot.Observation)
}

// TestLowersWithUnreadableRecord: a record that cannot be read lets traffic go down by the last one that could. It is
// left to the person who mends it.
func TestLowersWithUnreadableRecord(t *testing.T) {
	s, r := ramping(t)
	record := &s.world.Environments[0].Deployments[0].Record
	record.Routing, record.LastReadable = nil, record.Routing
	record.RoutingProblem = &rollout.Problem{Reason: rollout.PlanGenerationFailed, Message: "routing.yaml:3: no"}
	report := s.once(r)
	require.Equal(t, []string{"lower"}, s.calls)
	require.Empty(t, report.Commits)
	require.Empty(t, report.Failures)

	s.obs.Routing.HasRamp, s.obs.Routing.Ramping, s.obs.Routing.Percentage = false, "", 0
	record.LastReadable = nil
	s.once(r)
	require.Equal(t, []string{"lower"}, s.calls)
}
