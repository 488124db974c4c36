package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestKnows: a routing is known if the record desired it, was decided so, or was what the decision was made on.
func TestKnows(t *testing.T) {
	ramp := func(percentage float64) v1alpha1.DesiredRouting {
		return v1alpha1.DesiredRouting{Current: "v1", Ramping: &v1alpha1.DesiredRamp{BuildID: "v2", Percentage: percentage}}
	}
	decided := ramp(10)
	record := &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Desired: ramp(5), Decided: &decided, Basis: &v1alpha1.RoutingBasis{Current: "v1"}}}
	known := func(r *v1alpha1.Routing, actual rollout.RoutingConfig) bool {
		return Look(rollout.Snapshot{Record: rollout.Record{Routing: r}, Observation: rollout.Observation{Exists: rollout.Yes, Routing: actual}}).Knows()
	}
	at := func(percentage float32) rollout.RoutingConfig {
		return rollout.RoutingConfig{Current: "v1", HasRamp: percentage > 0, Ramping: map[bool]string{true: "v2"}[percentage > 0], Percentage: percentage}
	}
	for percentage, want := range map[float32]bool{0: true, 5: true, 10: true, 50: false} {
		require.Equal(t, want, known(record, at(percentage)), "%v%%", percentage)
	}
	require.False(t, known(nil, at(10)), "nothing is recorded")
}

// TestTurnsBack: traffic that a verdict takes back counts, since a verdict does not come from Git.
func TestTurnsBack(t *testing.T) {
	for _, c := range []struct {
		action rollout.Action
		want   bool
	}{
		{rollout.Action{Kind: rollout.ResetRamp, From: 10, Cause: rollout.CauseVerdict}, true},
		{rollout.Action{Kind: rollout.ResetRamp, From: 10, Cause: rollout.CausePerson}, false},
		{rollout.Action{Kind: rollout.CreateVersion, Cause: rollout.CauseVerdict}, false},
	} {
		require.Equal(t, c.want, TurnsBack(rollout.Plan{Actions: []rollout.Action{{Kind: rollout.CreateVersion}, c.action}}), "%+v", c.action)
	}
}

// TestLoweringGoesBackOnly: traffic that is put back goes to a version that the current one took it from, and not to
// one that lost it since.
func TestLoweringGoesBackOnly(t *testing.T) {
	for by, back := range map[v1alpha1.LeftBy]bool{v1alpha1.LeftByPromotion: true, v1alpha1.LeftByRollback: false} {
		s := of(func(g *given) {
			g.rec.Promotions = []v1alpha1.Promotion{{BuildID: id("v1"), LeftAt: stamp(ago(4 * time.Hour)), LeftBy: v1alpha1.LeftByPromotion},
				{BuildID: id("v2"), LeftAt: stamp(ago(3 * time.Hour)), LeftBy: by}, {BuildID: id("v1")}}
		})
		v := Look(s)
		require.Equal(t, id("v1"), v.actual.Current)
		_, ok := v.lowering(rollout.RoutingConfig{Current: id("v2")}, "put back")
		require.Equal(t, back, ok, by)
	}
}
