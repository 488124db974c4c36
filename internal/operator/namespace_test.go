package operator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestRetireForAnotherNamespace says what comes then.
func TestRetireForAnotherNamespace(t *testing.T) {
	asks := func(namespace string) rollout.Snapshot {
		return of(func(s *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.TemporalNamespace, s.SpecPath = "prod", "workers/checkout.yaml"
			s.Spec = &v1alpha1.WorkerDeployment{}
			s.Spec.Spec.WorkerOptions.TemporalNamespace = namespace
		})
	}
	moved, err := Retire(asks("other"), ada, v1alpha1.UnrouteProven)
	require.NoError(t, err)
	require.Contains(t, moved.Notes, "once nothing of it is left in prod, the bot creates it in other, as workers/checkout.yaml says")
	ended, err := Retire(asks("prod"), ada, v1alpha1.UnrouteProven)
	require.NoError(t, err)
	require.Contains(t, ended.Notes, "delete workers/checkout.yaml now or after it is gone: the bot removes its versions either way")
}
