package temporalenv

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const stream = `
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: checkout-v1
  namespace: shop
  annotations: {argocd.argoproj.io/sync-options: "ServerSideApply=true, Prune=false"}
spec:
  replicas: 3
  selector: {}
  template:
    metadata: {}
    spec:
      containers:
        - {name: worker, image: "shop/checkout:v1", env: [{name: A, value: b}]}
        - {name: sidecar, image: proxy}
---
# nothing
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: no-replicas, namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}
spec:
  selector: {}
  template: {metadata: {}, spec: {containers: [{name: worker, image: "shop/checkout:v2"}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: checkout, namespace: shop, annotations: {argocd.argoproj.io/sync-options: Prune=falsehood}}
`

func TestParseManifests(t *testing.T) {
	t.Parallel()
	got, err := ParseManifests([]byte(stream))
	require.NoError(t, err)
	want := []Object{
		{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "checkout-v1", Guarded: true,
			Deployment: &Deployment{
				ReplicasSet: true, Replicas: 3, Image: "shop/checkout:v1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
			},
		},
		{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "no-replicas", Guarded: true,
			Deployment: &Deployment{Image: "shop/checkout:v2"},
		},
		{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "checkout"},
	}
	require.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreUnexported(Object{}, Deployment{})))
	require.Equal(t, "Deployment shop/checkout-v1", got[0].ID())
}

func TestParseManifestsRefuses(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"no yaml":       "a: [",
		"no kind":       "metadata: {name: a}",
		"no name":       "kind: Deployment",
		"unknown field": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replica: 1}}",
		"no container":  "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}",
		"a list":        "[]\n---\n- a",
		"negative":      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: -1, template: {spec: {containers: [{name: a}]}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseManifests([]byte(stream))
			require.Error(t, err)
		})
	}
}

func FuzzParseManifests(f *testing.F) {
	f.Add([]byte(stream))
	f.Add([]byte("kind: a\nmetadata: {name: b}\n---\n---\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		objects, err := ParseManifests(in)
		if err != nil {
			return
		}
		for _, o := range objects {
			if o.Kind == "" || o.Name == "" {
				t.Errorf("object without kind or name: %+v", o)
			}
			if o.Deployment != nil && o.Deployment.Replicas < 0 {
				t.Errorf("negative replicas: %+v", o)
			}
		}
	})
}
