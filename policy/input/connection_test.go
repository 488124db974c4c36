package input

import (
	"encoding/json"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Policies see which connection is recorded and which one is asked for.
func TestConnectionBeforeAndAfter(t *testing.T) {
	text := func(s rollout.Snapshot) string {
		value, err := ast.JSON(connectionOf(&s))
		require.NoError(t, err)
		out, err := json.Marshal(value)
		require.NoError(t, err)
		return string(out)
	}
	require.JSONEq(t, `{}`, text(rollout.Snapshot{}))
	key := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "api"}
	before := v1alpha1.ConnectionSpec{HostPort: "old:7233", MutualTLSSecretRef: &v1alpha1.SecretReference{Name: "certificate"}, TLS: &v1alpha1.ConnectionTLS{ServerName: "temporal"}}
	s := rollout.Snapshot{
		Record:     rollout.Record{Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Connection: &v1alpha1.RecordedConnection{Name: "prod", Spec: before}}}},
		Connection: &v1alpha1.Connection{Metadata: v1alpha1.ObjectMeta{Name: "next"}, Spec: v1alpha1.ConnectionSpec{HostPort: "new:7233", APIKeySecretRef: key}},
	}
	require.JSONEq(t, `{"before": {"kind": "Connection", "name": "prod", "hostPort": "old:7233", "serverName": "temporal", "auth": "MutualTLS", "secret": "certificate"},
		"after": {"kind": "Connection", "name": "next", "hostPort": "new:7233", "auth": "APIKey", "secret": "keys"}}`, text(s))

	s.Record.Routing.Spec.Connection = &v1alpha1.RecordedConnection{Kind: v1alpha1.KindClusterConnection, Name: "prod", Spec: v1alpha1.ConnectionSpec{HostPort: "old:7233"}}
	s.Connection = &v1alpha1.Connection{Kind: v1alpha1.KindTemporalConnection, Metadata: v1alpha1.ObjectMeta{Name: "prod"}, Spec: v1alpha1.ConnectionSpec{HostPort: "old:7233"}}
	require.JSONEq(t, `{"before": {"kind": "ClusterConnection", "name": "prod", "hostPort": "old:7233", "auth": "None"},
		"after": {"kind": "Connection", "name": "prod", "hostPort": "old:7233", "auth": "None"}}`, text(s))
	s.Connection.Kind, s.Record.Routing = v1alpha1.KindClusterConnection, nil
	require.JSONEq(t, `{"after": {"kind": "ClusterConnection", "name": "prod", "hostPort": "old:7233", "auth": "None"}}`, text(s))
}
