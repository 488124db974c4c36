package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// TestConnectionRef: a ClusterConnection is in no namespace, and any other connection is in the worker deployment's.
func TestConnectionRef(t *testing.T) {
	plain, cluster := v1alpha1.ConnectionRef{Name: "temporal"}, v1alpha1.ConnectionRef{Kind: v1alpha1.KindClusterConnection, Name: "temporal"}
	require.Equal(t, []string{"shop", ""}, []string{plain.Of("shop"), cluster.Of("shop")})
	require.Equal(t, []string{"connection shop/temporal", "ClusterConnection temporal"}, []string{plain.In("shop"), cluster.In("shop")})

	for kind, want := range map[string]v1alpha1.ConnectionRef{
		v1alpha1.KindConnection: plain, v1alpha1.KindTemporalConnection: plain, v1alpha1.KindClusterConnection: cluster,
	} {
		c := v1alpha1.Connection{Kind: kind, Metadata: v1alpha1.ObjectMeta{Name: "temporal"}}
		require.Equal(t, want, c.Ref(), kind)
	}
	for want, c := range map[v1alpha1.ConnectionRef]v1alpha1.RecordedConnection{
		plain: {Name: "temporal"}, cluster: {Kind: v1alpha1.KindClusterConnection, Name: "temporal"},
	} {
		require.Equal(t, want, c.Ref())
	}
}

// TestConnectionKindIsOneWay: a spec that names the kind Connection decodes to the same object as one that names none.
func TestConnectionKindIsOneWay(t *testing.T) {
	decode := func(ref string) *v1alpha1.WorkerDeployment {
		documents, problems := v1alpha1.Decode("a.yaml", []byte(deployment("{name: production}", ref)))
		require.Empty(t, problems)
		return documents[0].Object.(*v1alpha1.WorkerDeployment)
	}
	none := decode("{name: production}")
	require.Equal(t, none, decode("{kind: Connection, name: production}"))
	cluster := decode("{kind: ClusterConnection, name: production}")
	require.Equal(t, v1alpha1.ConnectionRef{Kind: v1alpha1.KindClusterConnection, Name: "production"}, cluster.Spec.WorkerOptions.ConnectionRef)
	roundTrip(t, cluster)
}
