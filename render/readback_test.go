package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What a lowering did goes onto the last readable record: what is desired, the promotions, the bars and the hold.
// Everything else of it stays.
func TestLoweringRecord(t *testing.T) {
	was := v1alpha1.RoutingSpec{SpecPath: "spec.yaml", Desired: v1alpha1.DesiredRouting{Current: "v2"}, Versions: []v1alpha1.RecordedVersion{{BuildID: "v1"}, {BuildID: "v2"}},
		Target: &v1alpha1.RoutingTarget{BuildID: "v2"}}
	planned := v1alpha1.RoutingSpec{SpecPath: "b\tad.yaml", Desired: v1alpha1.DesiredRouting{Current: "v1"}, Promotions: []v1alpha1.Promotion{{BuildID: "v1"}},
		Bars: []v1alpha1.Bar{{BuildID: "v2", By: "ada"}}, Hold: &v1alpha1.Hold{By: "ada"}, Basis: &v1alpha1.RoutingBasis{Current: "v2"}}
	want := was
	want.Desired, want.Promotions, want.Bars, want.Hold, want.Basis = planned.Desired, planned.Promotions, planned.Bars, planned.Hold, planned.Basis
	record := rollout.Record{Routing: &v1alpha1.Routing{Spec: was}}
	require.Equal(t, &want, LoweringRecord(rollout.Plan{Record: &planned}, record))
	require.Equal(t, was, record.Routing.Spec, "it is as it was")
	require.Nil(t, LoweringRecord(rollout.Plan{Record: &planned}, rollout.Record{}))
	require.Nil(t, LoweringRecord(rollout.Plan{}, record))
}
