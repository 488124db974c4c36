package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// The bytes that the controller hashes: fields in the order of Kubernetes' type, what is empty left out, the
// definition's defaults filled in, HTML escaped.
func TestControllerJSON(t *testing.T) {
	template := func(text string) v1alpha1.PodTemplate {
		var t v1alpha1.PodTemplate
		if err := t.UnmarshalJSON([]byte(text)); err != nil {
			panic(err)
		}
		return t
	}
	for given, want := range map[string]string{
		`{"spec":{"containers":[{"image":"busybox","name":"worker"}]}}`: `{"metadata":{},"spec":{"containers":[{"name":"worker","image":"busybox","resources":{}}]}}`,
		`{"metadata":{"creationTimestamp":null,"labels":{}},"spec":{"containers":[{"name":"worker","ports":[{"containerPort":80}],"args":["<a>"],
		  "resources":{"limits":{"cpu":"1000m","memory":"1024Mi"}},"livenessProbe":{"grpc":{"port":1}}}]}}`: `{"metadata":{},"spec":{"containers":[{"name":"worker","args":["\u003ca\u003e"],` +
			`"ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"limits":{"cpu":"1","memory":"1Gi"}},"livenessProbe":{"grpc":{"port":1,"service":""}}}]}}`,
	} {
		require.Equal(t, want, string(template(given).ControllerJSON()))
	}
}

// The controller's hash does not tell these two apart; ours does.
func TestControllerHashOfAConnection(t *testing.T) {
	named := v1alpha1.ConnectionSpec{HostPort: "temporal:7233", TLS: &v1alpha1.ConnectionTLS{ServerName: "x"}}
	secret := v1alpha1.ConnectionSpec{HostPort: "temporal:7233", MutualTLSSecretRef: &v1alpha1.SecretReference{Name: "x"}}
	require.Equal(t, "e5276f346b974db71eb13ab40bbf1dae30780107f436e9901923222ed3ee1769", named.ControllerHash(), "sha256sum of temporal:7233x")
	require.Equal(t, named.ControllerHash(), secret.ControllerHash())
	require.NotEqual(t, named.Hash(), secret.Hash())
}
