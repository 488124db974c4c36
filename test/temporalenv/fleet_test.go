package temporalenv_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/rampart-gitops/rampart/internal/keytest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

const object = "Deployment shop/checkout-v1"

func (e *env) manifest(build, image string, replicas int) string {
	return temporalenv.WorkerManifest(e.NS.Server().Address(), e.NS.Name(), build, image, replicas)
}

func (e *env) events() []temporalenv.Event { return e.Fleet.Events() }

var withoutTime = cmpopts.IgnoreFields(temporalenv.Event{}, "Time")

func TestFleetRunsAsManyWorkersAsReplicas(t *testing.T) {
	e := newEnv(t)
	m := e.manifest("v1", "app", 3)
	require.NoError(t, e.Fleet.Apply([]byte(m)))
	require.NoError(t, e.Fleet.WaitReady(e.Ctx))
	e.Eventually(func(context.Context) error {
		want := []string{"1@checkout-v1-1", "1@checkout-v1-2", "1@checkout-v1-3"}
		return diff(want, e.pollers(queue, "v1")[deployment+":v1"]["Workflow"])
	})
	// An autoscaler takes over; later syncs of a manifest without a number leave it alone, but the first one does not.
	silent := strings.Replace(m, "replicas: 3", "minReadySeconds: 0", 1)
	require.NoError(t, e.Fleet.Apply([]byte(silent)))
	require.NoError(t, e.Fleet.Scale(object, 2))
	require.NoError(t, e.Fleet.Apply([]byte(strings.Replace(silent, "minReadySeconds: 0", "minReadySeconds: 1", 1))))
	require.NoError(t, e.Fleet.WaitReady(e.Ctx))
	require.Equal(t, []temporalenv.Status{{Object: object, Replicas: 2, Ready: 2, Image: "app"}}, e.Fleet.Status())
	e.Eventually(func(context.Context) error {
		return diff([]string{"1@checkout-v1-1", "1@checkout-v1-4"}, e.pollers(queue, "v1")[deployment+":v1"]["Workflow"])
	})
	require.NoError(t, e.Fleet.Apply(nil))
	require.NoError(t, e.Fleet.WaitReady(e.Ctx))
	e.awaitNoPollers("v1")
	require.Empty(t, cmp.Diff([]temporalenv.Event{
		{Kind: temporalenv.Applied, Object: object},
		{Kind: temporalenv.Scaled, Object: object, Detail: "0 -> 3"},
		{Kind: temporalenv.Applied, Object: object},
		{Kind: temporalenv.Scaled, Object: object, Detail: "3 -> 1"},
		{Kind: temporalenv.Scaled, Object: object, Detail: "1 -> 2"},
		{Kind: temporalenv.Applied, Object: object},
		{Kind: temporalenv.Pruned, Object: object},
	}, e.events(), withoutTime))
	require.Error(t, e.Fleet.Scale(object, 1))
}

func diff(want, got any) error {
	if d := cmp.Diff(want, got); d != "" {
		return errors.New(d)
	}
	return nil
}

func TestFleetRestartsWhenTheTemplateChanges(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.Start("app-both", "v1")
	require.Equal(t, []temporalenv.Status{{Object: object, Replicas: 1, Ready: 1, Image: "app-both"}}, e.Fleet.Status())
	e.Eventually(func(context.Context) error {
		return diff([]string{"1@checkout-v1-2"}, e.pollers(queue, "v1")[deployment+":v1"]["Workflow"])
	})
	e.Apply() // the same again
	require.Empty(t, cmp.Diff([]temporalenv.Event{
		{Kind: temporalenv.Applied, Object: object},
		{Kind: temporalenv.Scaled, Object: object, Detail: "0 -> 1"},
		{Kind: temporalenv.Applied, Object: object},
		{Kind: temporalenv.Restarted, Object: object},
	}, e.events(), withoutTime))
}

func TestFleetRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	fleet := temporalenv.NewFleet(temporalenv.FleetConfig{Images: images()})
	good := temporalenv.WorkerManifest("127.0.0.1:1", "ns", "v1", "app", 0)
	require.NoError(t, fleet.Apply([]byte(good)))
	require.Error(t, fleet.Apply([]byte("kind: [")))
	require.Error(t, fleet.Apply([]byte(good+"---\n"+good)))
	require.Equal(t, []temporalenv.Status{{Object: object, Image: "app"}}, fleet.Status())
	fleet.Close()
	require.Error(t, fleet.Apply(nil))
	require.Error(t, fleet.Scale(object, 1))
}

func TestFleetPodsThatCannotRun(t *testing.T) {
	e := newEnv(t)
	good := e.manifest("v1", "app", 1)
	e.Fleet = temporalenv.NewFleet(temporalenv.FleetConfig{
		Images: images(), Secrets: map[string]map[string]string{"shop/temporal": {"build": "v9"}},
	})
	t.Cleanup(e.Fleet.Close)
	for name, c := range map[string]struct {
		manifest, detail string
		kind             temporalenv.EventKind
	}{
		"image":     {strings.Replace(good, "image: app", "image: nope", 1), "nope", temporalenv.ImageMissing},
		"build ID":  {strings.Replace(good, "TEMPORAL_WORKER_BUILD_ID", "BUILD_ID", 1), "not set", temporalenv.Crashed},
		"address":   {strings.Replace(good, e.NS.Server().Address(), "127.0.0.1:1", 1), "dial temporal", temporalenv.Crashed},
		"secret":    {secret(good, "temporal", "nope"), "no secret shop/temporal with key nope", temporalenv.Crashed},
		"field":     {strings.Replace(good, `value: "v1"`, "valueFrom: {fieldRef: {fieldPath: a}}", 1), "only secrets", temporalenv.Crashed},
		"tls files": {good + "            - {name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /nope}\n", "client options", temporalenv.Crashed},
	} {
		require.NoError(t, e.Fleet.Apply([]byte(c.manifest)), name)
		e.Eventually(func(context.Context) error {
			for _, event := range e.events() {
				if event.Kind == c.kind && strings.Contains(event.Detail, c.detail) {
					return nil
				}
			}
			return errors.New(name + ": no such event")
		})
		require.NoError(t, e.Fleet.Apply(nil))
	}
	// The same fleet runs what is in order: the value comes from the secret, and the later entry of a name wins.
	twice := secret(good, "temporal", "build") + "            - {name: TEMPORAL_NAMESPACE, value: " + e.NS.Name() + "}\n"
	twice = strings.Replace(twice, `value: "`+e.NS.Name()+`"`, `value: "wrong"`, 1)
	require.NoError(t, e.Fleet.Apply([]byte(twice)))
	require.NoError(t, e.Fleet.WaitReady(e.Ctx))
	e.awaitPollers("v9")
}

func secret(manifest, name, key string) string {
	return strings.Replace(manifest, `value: "v1"`, "valueFrom: {secretKeyRef: {name: "+name+", key: "+key+"}}", 1)
}

func TestFleetAndServerOverMutualTLS(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pair, pool := certificate(t, filepath.Join(root, "etc/temporal/tls"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	server := temporalenv.Start(t, temporalenv.Options{TLS: &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		MinVersion: tls.VersionTLS13,
	}})
	ns, err := server.Namespace(ctx, "tls")
	require.NoError(t, err)
	fleet := temporalenv.NewFleet(temporalenv.FleetConfig{Images: images(), Root: root})
	t.Cleanup(fleet.Close)
	m := temporalenv.WorkerManifest(server.Address(), ns.Name(), "v1", "app", 1) + `
            - {name: TEMPORAL_TLS_SERVER_NAME, value: temporal.test}
            - {name: TEMPORAL_TLS, value: "true"}
            - {name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/temporal/tls/tls.key}
            - {name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/temporal/tls/tls.crt}
            - {name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /etc/temporal/tls/ca.crt}
`
	require.NoError(t, fleet.Apply([]byte(m)))
	require.NoError(t, fleet.WaitReady(ctx))
	require.NoError(t, temporalenv.Until(ctx, func(ctx context.Context) error {
		_, err := ns.Service().DescribeWorkerDeploymentVersion(ctx, &workflowservice.DescribeWorkerDeploymentVersionRequest{
			Namespace: ns.Name(), DeploymentVersion: temporalenv.Version("v1"),
		})
		return err
	}))
	// Without a certificate of its own a worker is not let in.
	bare := m[:strings.Index(m, "            - {name: TEMPORAL_TLS_CLIENT_KEY_PATH")] + m[strings.Index(m, "            - {name: TEMPORAL_TLS_SERVER_CA"):]
	require.NoError(t, fleet.Apply([]byte(bare)))
	require.NoError(t, temporalenv.Until(ctx, func(context.Context) error {
		for _, event := range fleet.Events() {
			if event.Kind == temporalenv.Crashed && strings.Contains(event.Detail, "certificate required") {
				return nil
			}
		}
		return errors.New("not refused")
	}))
}

// certificate writes tls.crt, tls.key and ca.crt, all of one self-signed certificate.
func certificate(t *testing.T, dir string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	c := keytest.SelfSigned(t, 1, "temporal.test")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, content := range map[string][]byte{"tls.crt": c.PEM, "ca.crt": c.PEM, "tls.key": c.KeyPEM} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	pair, err := tls.X509KeyPair(c.PEM, c.KeyPEM)
	require.NoError(t, err)
	return pair, c.Pool
}
