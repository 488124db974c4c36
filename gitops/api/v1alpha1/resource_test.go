package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

func TestAllowsKind(t *testing.T) {
	const hpa = "HorizontalPodAutoscaler"
	for _, c := range []struct {
		kinds            []string
		apiVersion, kind string
		want             bool
	}{
		{v1alpha1.DefaultResourceKinds(), "autoscaling/v2", hpa, true},
		{v1alpha1.DefaultResourceKinds(), "policy/v1", "PodDisruptionBudget", true},
		{v1alpha1.DefaultResourceKinds(), "keda.sh/v1alpha1", "ScaledObject", true},
		{v1alpha1.DefaultResourceKinds(), "v1", "Secret", false},
		{v1alpha1.DefaultResourceKinds(), "autoscaling/v2", "", false},
		{[]string{}, "autoscaling/v2", hpa, false},
		{[]string{""}, "autoscaling/v2", "", false},
		{[]string{" horizontalpodautoscaler "}, "autoscaling/v2", hpa, true},
		{[]string{hpa + ".autoscaling"}, "autoscaling/v2", hpa, true},
		{[]string{hpa + ".autoscaling"}, "autoscaling.evil/v2", hpa, false},
		{[]string{hpa + ".autoscaling"}, "v1", hpa, false},
		{[]string{"ScaledObject.keda.sh"}, "keda.sh/v1alpha1", "ScaledObject", true},
		{[]string{"ScaledObject.keda.sh"}, "keda/v1alpha1", "ScaledObject", false},
	} {
		require.Equal(t, c.want, v1alpha1.AllowsKind(c.kinds, c.apiVersion, c.kind), "%q %s %s", c.kinds, c.apiVersion, c.kind)
	}
}

// What is found in a template, with Rampart's own hash pinned, since it must never change.
func TestResourceOfATemplateWithItsHash(t *testing.T) {
	for raw, want := range map[string]v1alpha1.Resource{
		`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","spec":{"maxReplicas":3,"scaleTargetRef":{}}}`: {
			APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Scales: true,
			Hash: "3f1092078396378240795f54be9f6e44e9d2d1a850496585fb5ccc24379830e5"},
		`{"apiVersion":"a/v1","kind":"A","spec":{"x":[{"y":{"scaleTargetRef":{}}}]}}`:                                      {APIVersion: "a/v1", Kind: "A", Scales: true},
		`{"apiVersion":"a/v1","kind":"A","spec":{"scaleTargetRef":null,"metrics":[{"external":{"metric":{"name":"m"}}}]}}`: {APIVersion: "a/v1", Kind: "A"},
		`{"apiVersion":"a/v1","kind":"A","scaleTargetRef":{}}`:                                                             {APIVersion: "a/v1", Kind: "A"},
		`{"apiVersion":"a/v1","kind":"A","spec":{"metrics":[{},{"external":{"metric":{"selector":{"matchLabels":{}}}}}]}}`: {APIVersion: "a/v1", Kind: "A", MetricLabels: true},
		`{"apiVersion":"a/v1","kind":"A","spec":{"metrics":[{"external":{"metric":{"selector":{"matchLabels":null}}}}]}}`:  {APIVersion: "a/v1", Kind: "A"},
		`{"apiVersion":"a/v1","kind":"A","spec":{"metrics":{"external":1}}}`:                                               {APIVersion: "a/v1", Kind: "A"},
		`{"apiVersion":"a/v1","kind":"A","spec":[]}`:                                                                       {APIVersion: "a/v1", Kind: "A"},
		`{"apiVersion":"a/v1","kind":"A"}`:                                                                                 {APIVersion: "a/v1", Kind: "A"},
	} {
		got := v1alpha1.WorkerResourceTemplateSpec{Template: []byte(raw)}.Resource()
		if want.Hash == "" {
			want.Hash = got.Hash
		}
		require.Equal(t, want, got, raw)
	}
	require.Empty(t, v1alpha1.WorkerResourceTemplateSpec{}.Resource().Kind)
}

func TestTemplateRef(t *testing.T) {
	old := v1alpha1.WorkerResourceTemplateSpec{TemporalWorkerDeploymentRef: &v1alpha1.WorkerDeploymentRef{Name: "a"}}
	require.Equal(t, []string{"a", "spec.temporalWorkerDeploymentRef.name"}, []string{old.Deployment(), old.RefPath()})
	now := v1alpha1.WorkerResourceTemplateSpec{WorkerDeploymentRef: &v1alpha1.WorkerDeploymentRef{Name: "b"}}
	require.Equal(t, []string{"b", "spec.workerDeploymentRef.name"}, []string{now.Deployment(), now.RefPath()})
	require.Empty(t, v1alpha1.WorkerResourceTemplateSpec{}.Deployment())
}
