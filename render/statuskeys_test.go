package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A status.yaml does not take over what tells other tools what to do with it. One that has it already is not written
// again for that.
func TestStatusLeavesOutKeysOfOthers(t *testing.T) {
	spec := &v1alpha1.WorkerDeployment{APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindWorkerDeployment, Metadata: v1alpha1.ObjectMeta{
		Labels:      map[string]string{"team": "payments", "argocd.argoproj.io/instance": "theirs"},
		Annotations: map[string]string{"argocd.argoproj.io/sync-options": "Force=true", "argocd.argoproj.io/sync-wave": "2", "kustomize.toolkit.fluxcd.io/force": "enabled", "rampart.dev/retire": "true"}}}
	f := &filer{plan: rollout.Plan{Spec: spec, Deployment: rollout.Name{Namespace: "shop", Name: "x"}}}
	old := *spec
	require.True(t, f.sameObject(&old))
	object, err := f.statusObject()
	require.NoError(t, err)
	meta := object["metadata"].(map[string]any)
	require.Equal(t, map[string]any{"team": "payments"}, meta["labels"])
	require.Equal(t, map[string]any{"argocd.argoproj.io/sync-wave": "2", "rampart.dev/retire": "true"}, meta["annotations"])
	require.Equal(t, "theirs", spec.Metadata.Labels["argocd.argoproj.io/instance"], "the spec is as it was")

	other := *spec
	other.Metadata.Labels = map[string]string{"team": "others"}
	require.False(t, f.sameObject(&other))
}
