package operate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A person who asks for something in Temporal is told why it is not known where that is.
func TestWhyTemporalCannotBeReachedIsSaid(t *testing.T) {
	spec := func(namespace string) *v1alpha1.WorkerDeployment {
		return &v1alpha1.WorkerDeployment{Spec: v1alpha1.WorkerDeploymentSpec{Rollout: v1alpha1.RolloutStrategy{Strategy: v1alpha1.AllAtOnce},
			WorkerOptions: v1alpha1.WorkerOptions{ConnectionRef: v1alpha1.ConnectionRef{Name: "new"}, TemporalNamespace: namespace}}}
	}
	was := spec("old")
	was.Spec.WorkerOptions.ConnectionRef.Name = "old"
	conn := &v1alpha1.Connection{Metadata: v1alpha1.ObjectMeta{Name: "new"}}
	routing := &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{TemporalNamespace: "old", Versions: []v1alpha1.RecordedVersion{{BuildID: "v1"}}}}
	for _, c := range []struct {
		name string
		s    rollout.Snapshot
		want string
	}{
		{"not valid", rollout.Snapshot{Problems: []rollout.Problem{{Message: "line 3: no"}}}, "line 3: no"},
		{"gone", rollout.Snapshot{}, "the spec of shop/x is gone from Git: it says where its Temporal is"},
		{"no connection", rollout.Snapshot{Spec: spec("old")}, "connection shop/new is not in the repository"},
		{"another namespace, and nothing recorded", rollout.Snapshot{Spec: spec("other"), Connection: conn, Record: rollout.Record{Routing: routing}},
			"the spec of shop/x cannot be used, and none that could is recorded: rampart status shop/x says why"},
		{"another namespace, and its connection is gone", rollout.Snapshot{Spec: spec("other"), Connection: conn, Record: rollout.Record{Routing: routing, Status: was}},
			"the connection by which shop/x is in Temporal namespace old is not in the repository"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.Deployment, c.s.SpecPath = rollout.Name{Namespace: "shop", Name: "x"}, "x.yaml"
			require.Nil(t, plan.Look(c.s).Connection())
			require.EqualError(t, unreachable(c.s), c.want)
		})
	}
}
