package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/parity"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestParity goes through the in-cluster controller's scenarios about Deployments.
func TestParity(t *testing.T) {
	parity.Compare(t, "deployments", deploymentParity())
}

// renders gives something of the Deployment that a spec leads to.
func renders(spec string, c v1alpha1.ConnectionSpec, show func(appsv1.Deployment) string) func(*testing.T) string {
	return func(t *testing.T) string {
		s := newScene(t, spec, c)
		s.commit()
		return show(deploymentOf(t, s))
	}
}

// reconnects is renders after the connection changed.
func reconnects(from, to v1alpha1.ConnectionSpec, show func(appsv1.Deployment) string) func(*testing.T) string {
	return func(t *testing.T) string {
		s := newScene(t, checkoutSpec, from)
		s.commit()
		s.plan.Connection = connection(to)
		s.write(rollout.VersionWrite{Op: rollout.ReconnectVersion, Replicas: replicas(3), Guard: v1alpha1.GuardOn})
		s.commit()
		return show(deploymentOf(t, s))
	}
}

func deploymentOf(t *testing.T, s *scene) appsv1.Deployment {
	var d appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict([]byte(s.manifest()), &d))
	return d
}

func pairs(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, " ")
}

func labelsShown(d appsv1.Deployment) string {
	return fmt.Sprintf("object: %s; selector: %s; pods: %s", pairs(d.Labels), pairs(d.Spec.Selector.MatchLabels), pairs(d.Spec.Template.Labels))
}

func annotationsShown(d appsv1.Deployment) string {
	for _, hash := range []string{rollout.AnnotationConnectionHash, rollout.AnnotationPodTemplateHash} {
		d.Spec.Template.Annotations[hash] = d.Spec.Template.Annotations[hash][:8]
	}
	return fmt.Sprintf("object: %s; pods: %s", pairs(d.Annotations), pairs(d.Spec.Template.Annotations))
}

func specShown(d appsv1.Deployment) string {
	n := "none"
	if d.Spec.Replicas != nil {
		n = fmt.Sprint(*d.Spec.Replicas)
	}
	return fmt.Sprintf("replicas %s, minReadySeconds %d, progressDeadlineSeconds %d, strategy %q, owners %d",
		n, d.Spec.MinReadySeconds, *d.Spec.ProgressDeadlineSeconds, d.Spec.Strategy.Type, len(d.OwnerReferences))
}

// envShown is what is put into a container, and the volume that it needs.
func envShown(d appsv1.Deployment) string {
	var out []string
	for i, c := range append(slices.Clone(d.Spec.Template.Spec.InitContainers), d.Spec.Template.Spec.Containers...) {
		var env []string
		for _, e := range c.Env {
			if e.ValueFrom != nil {
				e.Value = "Secret " + e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
			}
			env = append(env, e.Name+"="+e.Value)
		}
		for _, m := range c.VolumeMounts {
			env = append(env, "mount "+m.Name+" at "+m.MountPath)
		}
		if len(d.Spec.Template.Spec.Containers) > 1 || i > 0 {
			env = append([]string{c.Name + ":"}, env...)
		}
		out = append(out, strings.Join(env, " "))
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		out = append(out, "volume "+v.Name+" of Secret "+secretOf(v))
	}
	return strings.Join(out, "; ")
}

func secretOf(v corev1.Volume) string {
	if v.Secret == nil {
		return ""
	}
	return v.Secret.SecretName
}

func deploymentParity() []parity.Case {
	bare := with(checkoutSpec, "        env:\n        - {name: LOG_LEVEL, value: \"on\"}\n", "")
	options := with(checkoutSpec, "  replicas: 3\n", "  replicas: 3\n  minReadySeconds: 5\n  progressDeadlineSeconds: 120\n  strategy: {type: Recreate}\n")
	annotated := with(checkoutSpec, "      labels: {app: checkout}\n", "      labels: {app: checkout}\n      annotations: {owner: payments}\n")
	taken := with(checkoutSpec, "labels: {app: checkout}", "labels: {app: checkout, temporal.io/build-id: mine}")
	several := with(bare, "      containers:\n", "      initContainers:\n      - {name: migrate, image: \"app:1\"}\n      containers:\n      - {name: sidecar, image: \"sidecar:1\"}\n")
	noReplicas := with(checkoutSpec, "  replicas: 3\n", "")
	named := withServerName(noAuth(), "temporal.internal")
	const asFiles = "there is no object in the cluster that could own it; a guard against pruning stands for the owner"
	return []parity.Case{
		{Scenario: "labels", Controller: "two labels on object and selector, the user's and these on pods", Got: renders(checkoutSpec, noAuth(), labelsShown), Want: "object: temporal.io/build-id=v2.3.0-59bab86e temporal.io/deployment-name=checkout; selector: temporal.io/build-id=v2.3.0-59bab86e temporal.io/deployment-name=checkout; pods: app=checkout temporal.io/build-id=v2.3.0-59bab86e temporal.io/deployment-name=checkout"},
		{Scenario: "labels that the user set too", Controller: "overwritten", Got: renders(taken, noAuth(), labelsShown), Want: "object: temporal.io/build-id=v2.3.0-a66b518e temporal.io/deployment-name=checkout; selector: temporal.io/build-id=v2.3.0-a66b518e temporal.io/deployment-name=checkout; pods: app=checkout temporal.io/build-id=v2.3.0-a66b518e temporal.io/deployment-name=checkout"},
		{Scenario: "annotations", Controller: "the user's on both; two hashes on pods", Got: renders(annotated, noAuth(), annotationsShown), Want: "object: argocd.argoproj.io/sync-options=Prune=false,Delete=false helm.sh/resource-policy=keep kustomize.toolkit.fluxcd.io/prune=disabled owner=payments; pods: owner=payments temporal.io/connection-spec-hash=0d8a8ce1 temporal.io/pod-template-spec-hash=cea954dc",
			Why: "beside them the guard that keeps CD tools from pruning what has traffic"},
		{Scenario: "the object", Controller: "replicas and minReadySeconds; strategy and progressDeadlineSeconds are left out; one owner", Got: renders(options, noAuth(), specShown), Want: `replicas 3, minReadySeconds 5, progressDeadlineSeconds 120, strategy "Recreate", owners 0`,
			Why: "what the spec says is rendered; " + asFiles},
		{Scenario: "without replicas", Controller: "left out", Got: renders(noReplicas, noAuth(), specShown), Want: `replicas none, minReadySeconds 0, progressDeadlineSeconds 600, strategy "", owners 0`, Why: "the same but for deadline and owner"},
		{Scenario: "environment: no credentials", Controller: "address, namespace, deployment name, build ID", Got: renders(bare, noAuth(), envShown), Want: "TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-1cc5d498"},
		{Scenario: "environment: server name", Controller: "TEMPORAL_TLS_SERVER_NAME beside it", Got: renders(bare, named, envShown), Want: "TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-1cc5d498 TEMPORAL_TLS_SERVER_NAME=temporal.internal"},
		{Scenario: "environment: certificate", Controller: "three variables, a mount and a volume beside it", Got: renders(bare, mutualTLS("client"), envShown), Want: "TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-1cc5d498 TEMPORAL_TLS=true TEMPORAL_TLS_CLIENT_KEY_PATH=/etc/temporal/tls/tls.key TEMPORAL_TLS_CLIENT_CERT_PATH=/etc/temporal/tls/tls.crt mount temporal-tls at /etc/temporal/tls; volume temporal-tls of Secret client"},
		{Scenario: "environment: API key", Controller: "TEMPORAL_API_KEY from the Secret beside it", Got: renders(bare, apiKey("key", "token"), envShown), Want: "TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-1cc5d498 TEMPORAL_API_KEY=Secret key/token"},
		{Scenario: "environment: a CA", Controller: "nothing: only the controller itself trusts it", Got: renders(bare, withCA(noAuth(), "ca"), envShown), Want: "TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-1cc5d498 TEMPORAL_TLS_SERVER_CA_CERT_PATH=/etc/temporal/server-ca/ca.crt mount temporal-server-ca at /etc/temporal/server-ca; volume temporal-server-ca of Secret ca",
			Why: "workers have to trust the server too"},
		{Scenario: "environment: several containers", Controller: "all but init containers", Got: renders(several, noAuth(), envShown), Want: "migrate:; sidecar: TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=1-42f0c665; worker: TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=1-42f0c665"},
		{Scenario: "environment after the user's own", Controller: "appended", Got: renders(checkoutSpec, noAuth(), envShown), Want: "LOG_LEVEL=on TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-59bab86e"},
		{Scenario: "environment is readable by the SDK: no credentials, certificate, API key", Controller: "read by the SDK's environment configuration",
			Want: "read by it in the same three modes", Tests: []string{"test/temporalenv TestRenderedEnvironmentIsReadByTheSDK"}},
		{Scenario: "connection: another address", Controller: "TEMPORAL_ADDRESS", Want: "LOG_LEVEL=on TEMPORAL_ADDRESS=other:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-59bab86e",
			Got: reconnects(noAuth(), v1alpha1.ConnectionSpec{HostPort: "other:7233"}, envShown)},
		{Scenario: "connection: another certificate", Controller: "the volume's Secret", Got: reconnects(mutualTLS("a"), mutualTLS("b"), envShown), Want: "LOG_LEVEL=on TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-59bab86e TEMPORAL_TLS=true TEMPORAL_TLS_CLIENT_KEY_PATH=/etc/temporal/tls/tls.key TEMPORAL_TLS_CLIENT_CERT_PATH=/etc/temporal/tls/tls.crt mount temporal-tls at /etc/temporal/tls; volume temporal-tls of Secret b"},
		{Scenario: "connection: another server name, and none", Controller: "set, and taken away", Got: reconnects(named, noAuth(), envShown), Want: "LOG_LEVEL=on TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-59bab86e"},
		{Scenario: "connection: another API-key Secret", Controller: "the variable keeps the old Secret", Got: reconnects(apiKey("a", "token"), apiKey("b", "token"), envShown), Want: "LOG_LEVEL=on TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-59bab86e TEMPORAL_API_KEY=Secret b/token",
			Why: "the whole block is rendered for the connection that is"},
		{Scenario: "connection: none to certificate", Controller: "neither variables nor volume come", Got: reconnects(noAuth(), mutualTLS("a"), envShown), Want: "LOG_LEVEL=on TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-59bab86e TEMPORAL_TLS=true TEMPORAL_TLS_CLIENT_KEY_PATH=/etc/temporal/tls/tls.key TEMPORAL_TLS_CLIENT_CERT_PATH=/etc/temporal/tls/tls.crt mount temporal-tls at /etc/temporal/tls; volume temporal-tls of Secret a",
			Why: "the whole block is rendered for the connection that is"},
		{Scenario: "connection: certificate to none", Controller: "variables and volume stay", Got: reconnects(mutualTLS("a"), noAuth(), envShown), Want: "LOG_LEVEL=on TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_NAMESPACE=payments-prod TEMPORAL_DEPLOYMENT_NAME=payments/checkout TEMPORAL_WORKER_BUILD_ID=v2.3.0-59bab86e",
			Why: "the whole block is rendered for the connection that is"},
		{Scenario: "connection: pods without annotations", Controller: "panics", Want: "updated like others", Tests: []string{"render TestReconnectTakenOver"},
			Why: "a manifest that was taken over is one of these"},
		{Scenario: "the whole Deployment", Controller: "as compared in its test", Want: "as in the golden files", Tests: []string{"render TestGolden", "render TestRenderedDeploymentsAreKubernetes"}},
		{Scenario: "health: Available, or not, or several conditions", Controller: "healthy since the condition Available, also at 0 replicas", Want: parity.NoCounterpart,
			Why: "Git has no Deployment's status; a version is ready when its own workers poll every task queue that it has to serve"},
		{Scenario: "state of Deployments: by owner, by build ID, without labels", Controller: "a list from the cluster's cache", Want: parity.NoCounterpart,
			Why: "which versions there are is what routing.yaml in Git says"},
	}
}
