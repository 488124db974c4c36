package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestRecordInProgress(t *testing.T) {
	name := rollout.Name{Namespace: "shop", Name: "checkout"}
	at := func(hour int) v1alpha1.Time { return v1alpha1.NewTime(time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC)) }
	record := func(change func(*v1alpha1.RoutingSpec)) rollout.Record {
		r := v1alpha1.RoutingSpec{
			Desired:  v1alpha1.DesiredRouting{Current: "v1", Ramping: &v1alpha1.DesiredRamp{BuildID: "v2", Percentage: 5}},
			Target:   &v1alpha1.RoutingTarget{BuildID: "v2", Since: at(8)},
			Versions: []v1alpha1.RecordedVersion{{BuildID: "v1", RoutedAt: at(1)}, {BuildID: "v2", RoutedAt: at(9)}},
		}
		change(&r)
		return rollout.Record{Routing: &v1alpha1.Routing{Spec: r}}
	}
	ramps := func(since v1alpha1.Time) *rollout.InProgress {
		return &rollout.InProgress{Deployment: name, BuildID: "v2", Since: since.Time}
	}
	for what, tc := range map[string]struct {
		record rollout.Record
		want   *rollout.InProgress
	}{
		"no record":                 {rollout.Record{}, nil},
		"a ramp":                    {record(func(*v1alpha1.RoutingSpec) {}), ramps(at(9))},
		"no ramp":                   {record(func(r *v1alpha1.RoutingSpec) { r.Desired.Ramping = nil }), nil},
		"tried again":               {record(func(r *v1alpha1.RoutingSpec) { r.Target.Since = at(10) }), ramps(at(10))},
		"another one is the target": {record(func(r *v1alpha1.RoutingSpec) { r.Target.BuildID, r.Target.Since = "v3", at(10) }), ramps(at(9))},
		"not said since when":       {record(func(r *v1alpha1.RoutingSpec) { r.Versions = nil }), ramps(v1alpha1.Time{})},
		"a record that cannot be read": {rollout.Record{RoutingProblem: &rollout.Problem{Message: "line 3"}},
			&rollout.InProgress{Deployment: name}},
	} {
		t.Run(what, func(t *testing.T) {
			got, ok := tc.record.InProgress(name)
			require.Equal(t, tc.want != nil, ok)
			if ok {
				require.Equal(t, *tc.want, got)
			}
		})
	}
}

func TestStartsOnlyBesideACurrentVersion(t *testing.T) {
	s := func(r rollout.RoutingConfig) rollout.Snapshot {
		return rollout.Snapshot{Observation: rollout.Observation{Routing: r}}
	}
	beside, first := s(rollout.RoutingConfig{Current: "v1"}), s(rollout.RoutingConfig{})
	ramps := s(rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 5})
	ramp := rollout.Action{Kind: rollout.Ramp, BuildID: "v2", To: 5}
	promote := rollout.Action{Kind: rollout.Promote, BuildID: "v2", To: 100}
	require.True(t, beside.Starts(ramp))
	require.True(t, beside.Starts(promote))
	require.False(t, first.Starts(ramp), "there is nothing beside it")
	require.False(t, ramps.Starts(rollout.Action{Kind: rollout.Ramp, BuildID: "v2", From: 5, To: 10}))
	require.False(t, ramps.Starts(promote), "it goes on")
	require.True(t, ramps.Starts(rollout.Action{Kind: rollout.Ramp, BuildID: "v3", To: 5}))
	require.False(t, beside.Starts(rollout.Action{Kind: rollout.Promote, BuildID: "v1", To: 100}), "it is current")
	require.False(t, beside.Starts(rollout.Action{Kind: rollout.Ramp, BuildID: "v2", From: 10, To: 5}))
	require.False(t, beside.Starts(rollout.Action{Kind: rollout.Unroute, To: 100}))
	require.False(t, beside.Starts(rollout.Action{Kind: rollout.CreateVersion, BuildID: "v2"}))
}
