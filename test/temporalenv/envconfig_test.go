package temporalenv_test

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// variables are a container's environment.
type variables map[string]string

func (v variables) Environ() []string {
	var out []string
	for name, value := range v {
		out = append(out, name+"="+value)
	}
	return out
}

func (v variables) LookupEnv(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// TestRenderedEnvironmentIsReadByTheSDK: what is rendered is all that the SDK's environment configuration needs.
func TestRenderedEnvironmentIsReadByTheSDK(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	certificate(t, filepath.Join(root, v1alpha1.TLSMountPath))
	for name, c := range map[string]struct {
		connection   string
		tls, key     bool
		certificates int
		serverName   string
	}{
		"no credentials": {connection: "{hostPort: 'temporal:7233'}"},
		"certificate": {connection: "{hostPort: 'temporal:7233', tls: {serverName: temporal.test}, mutualTLSSecretRef: {name: client}}",
			tls: true, certificates: 1, serverName: "temporal.test"},
		"API key": {connection: "{hostPort: 'temporal:7233', apiKeySecretRef: {name: key, key: token}}", tls: true, key: true},
	} {
		t.Run(name, func(t *testing.T) {
			env := variables{}
			for _, e := range rendered(t, c.connection).Env {
				env[e.Name] = e.Value
				if strings.HasPrefix(e.Value, v1alpha1.TLSMountPath) {
					env[e.Name] = filepath.Join(root, e.Value) // the pod's own file system
				}
				if e.ValueFrom != nil {
					env[e.Name] = fmt.Sprintf("%s of %s", e.ValueFrom.SecretKeyRef.Key, e.ValueFrom.SecretKeyRef.Name)
				}
			}
			options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{DisableFile: true, EnvLookup: env})
			require.NoError(t, err)
			require.Equal(t, "temporal:7233", options.HostPort)
			require.Equal(t, "prod", options.Namespace)
			require.Equal(t, c.key, options.Credentials != nil)
			profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{DisableFile: true, EnvLookup: env})
			require.NoError(t, err)
			require.Equal(t, c.key, profile.APIKey == "token of key")
			require.Equal(t, c.tls, options.ConnectionOptions.TLS != nil)
			if c.tls {
				require.Len(t, options.ConnectionOptions.TLS.Certificates, c.certificates)
				require.Equal(t, c.serverName, options.ConnectionOptions.TLS.ServerName)
			}
		})
	}
}

// rendered is the Deployment of a spec's first version with a connection.
func rendered(t *testing.T, connection string) *temporalenv.Deployment {
	t.Helper()
	documents, problems := v1alpha1.Decode("a.yaml", []byte(`
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: checkout, namespace: payments}
spec:
  rollout: {strategy: AllAtOnce}
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: prod}
  template: {spec: {containers: [{name: worker, image: "app:v1"}]}}
---
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: temporal, namespace: payments}
spec: `+connection))
	require.Empty(t, problems)
	spec, buildID := documents[0].Object.(*v1alpha1.WorkerDeployment), "v1"
	files, err := render.Files(rollout.Plan{
		Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, Dir: "deploy/payments/checkout",
		Environment: v1alpha1.Environment{Name: "prod", WorkerEnv: v1alpha1.EnvCurrent}, Spec: spec,
		Connection: documents[1].Object.(*v1alpha1.Connection),
		Record: &v1alpha1.RoutingSpec{WorkerDeployment: "payments/checkout", TemporalNamespace: "prod",
			Versions: []v1alpha1.RecordedVersion{{BuildID: buildID, BuildIDFrom: v1alpha1.BuildIDTemplate, Deployment: "checkout-v1", Guard: v1alpha1.GuardOn}}},
		Versions: []rollout.VersionWrite{{BuildID: buildID, Op: rollout.RenderVersion, Guard: v1alpha1.GuardOn}},
	}, rollout.Record{})
	require.NoError(t, err)
	at := slices.IndexFunc(files, func(f rollout.FileChange) bool { return path.Base(f.Path) == "deployment.yaml" })
	require.GreaterOrEqual(t, at, 0)
	objects, err := temporalenv.ParseManifests([]byte(files[at].Data))
	require.NoError(t, err)
	require.NotNil(t, objects[0].Deployment)
	return objects[0].Deployment
}
