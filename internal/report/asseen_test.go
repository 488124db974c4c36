package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// While a worker deployment is held, people move traffic past the record; where the record cannot be read, it says
// nothing. What the bot saw last does.
func TestStatusAsSeen(t *testing.T) {
	at := 30.0
	s := rollout.Snapshot{Record: rollout.Record{
		Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Desired: v1alpha1.DesiredRouting{Current: "v1", Ramping: &v1alpha1.DesiredRamp{BuildID: "v2", Percentage: 10}}}},
		Status: &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{CurrentVersion: &v1alpha1.VersionStatus{BuildID: "v2"},
			TargetVersion: &v1alpha1.VersionStatus{BuildID: "v3", RampPercent: &at}}},
	}}
	says := func() (string, string, float64) {
		st := NewStatus(s)
		return st.Current, *st.Ramping, *st.RampPercentage
	}
	requireSays := func(current, ramping string, percentage float64) {
		t.Helper()
		c, r, p := says()
		require.Equal(t, []any{current, ramping, percentage}, []any{c, r, p})
	}
	requireSays("v1", "v2", 10)
	s.Record.Routing.Spec.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual}
	requireSays("v2", "v3", 30)
	s.Record.Routing = nil
	requireSays("v2", "v3", 30)
	s.Record.Status.Status.TargetVersion = nil
	require.Nil(t, NewStatus(s).Ramping)
	s.Record.Status = nil
	require.Empty(t, NewStatus(s).Current)
}
