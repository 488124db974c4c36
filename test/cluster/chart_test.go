package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The chart refuses values that are misspelled or missing, and all that it can render an API server takes where pods
// have to be restricted. Running it is part of each delivery.
func TestChart(t *testing.T) {
	t.Parallel()
	s := Start(t)
	for values, want := range map[string]string{
		"{}":                             "repo",
		"settings: {repo: ''}":           "repo",
		"settings: {repo: a, Branch: b}": "Branch",
		"{settings: {repo: a}, Metrics: {port: 1}}":                                            "Metrics",
		"{settings: {repo: a}, metrics: {port: http}}":                                         "port",
		"{settings: {repo: a, metrics-address: b}}":                                            "metrics-address",
		"{settings: {repo: a}, secretEnv: {TOKEN: a}}":                                         "TOKEN",
		"{settings: {repo: a}, image: {pullPolicy: Now}}":                                      "pullPolicy",
		"settings: {repo: a, cache-dir: b}":                                                    "cache-dir",
		"{settings: {repo: a}, webhook: {enabled: true}}":                                      "webhook.enabled needs RAMPART_WEBHOOK_SECRET",
		"{settings: {repo: a, git-user: b}, secretEnv: {RAMPART_GIT_USER: {name: c, key: d}}}": "git-user is in settings and in secretEnv",
	} {
		out, err := chart(t, values)
		require.Error(t, err, values)
		require.Contains(t, out, want, values)
	}
	s.Kubectl(t, "", "create", "namespace", "rampart")
	s.Kubectl(t, "", "label", "namespace", "rampart", "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	for _, values := range []string{"settings: {repo: a}", `
settings: {repo: a, allowed-namespaces: ["prod=payments", "prod={orders,stock}"], interval: 30s, skip-ci: true, max-versions: 20000000}
secretName: rampart
secretEnv: {RAMPART_WEBHOOK_SECRET: {name: rampart, key: hook}}
webhook: {enabled: true, port: 8090}
cacheClaim: cache
metrics: {serviceMonitor: {enabled: true, labels: {release: monitoring}}}
imagePullSecrets: [{name: registry}]
podAnnotations: {team: platform}
podLabels: {team: platform, app.kubernetes.io/name: other}
env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
podDisruptionBudget: {enabled: true}
`} {
		out, err := chart(t, values)
		require.NoError(t, err, out)
		if monitor := documentOf(t, out, "ServiceMonitor"); monitor != nil { // its definition is the operator's; its type says the same
			require.NoError(t, yaml.UnmarshalStrict(monitor, &monitoring.ServiceMonitor{}))
			require.Contains(t, string(monitor), "release: monitoring")
			out = strings.Replace(out, string(monitor), "", 1)
		} else {
			require.NotContains(t, values, "serviceMonitor")
		}
		restricted(t, out)
		applied := s.Kubectl(t, out, "apply", "--server-side", "--dry-run=server", "-f", "-")
		require.Contains(t, applied, "deployment.apps/rampart serverside-applied")
		require.NotContains(t, applied, "Warning", "of pod security, or of a field that is not known")
		if values != "settings: {repo: a}" {
			require.Contains(t, out, `value: "\"prod=payments\",\"prod={orders,stock}\""`)
			require.Contains(t, out, `value: "20000000"`)
			require.Contains(t, applied, "service/rampart serverside-applied")
			require.Contains(t, applied, "poddisruptionbudget.policy/rampart serverside-applied")
		}
	}
}

// chart is what the chart renders with some values.
func chart(t *testing.T, values string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	cmd := exec.CommandContext(t.Context(), program(t, "helm"), "template", "rampart", filepath.Join("..", "..", "install", "chart"),
		"-n", "rampart", "--values", file)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestBudgetOfTheChart checks that a node can be drained with the chart's budget, also while the bot's only pod is not
// ready.
func TestBudgetOfTheChart(t *testing.T) {
	t.Parallel()
	s := StartNode(t, map[string]Image{"rampart:test": {Command: []string{"sh", "-c", "while :; do sleep 0.1; done"}}})
	s.Kubectl(t, "", "create", "namespace", "rampart")
	rendered, err := chart(t, "{settings: {repo: a}, image: {repository: rampart, tag: test}, metrics: {port: "+freePort(t)+"}, "+
		"podDisruptionBudget: {enabled: true}}")
	require.NoError(t, err, rendered)
	s.Kubectl(t, rendered, "apply", "--server-side", "-f", "-")
	s.await(t, "Running false", "get", "-n", "rampart", "pods", "-o", "jsonpath={.items[*].status.phase} {.items[*].status.containerStatuses[*].ready}")
	s.await(t, "1 0", "get", "-n", "rampart", "pdb", "rampart", "-o", "jsonpath={.status.expectedPods} {.status.disruptionsAllowed}")
	said := s.Kubectl(t, "", "drain", nodeName, "--delete-emptydir-data", "--pod-selector=app.kubernetes.io/name=rampart", "--timeout=30s")
	require.Contains(t, said, " evicted")
}

// restricted holds that the bot of a rendered chart may do no more than it has to. That is nothing in the cluster, and
// in its pod what the restricted Pod Security Standard allows, without writing the image's files. One runs at a time,
// within limits, and says how it is.
func restricted(t *testing.T, rendered string) {
	t.Helper()
	require.NotContains(t, rendered, "rbac.authorization.k8s.io")
	var account corev1.ServiceAccount
	require.NoError(t, yaml.UnmarshalStrict(documentOf(t, rendered, "ServiceAccount"), &account))
	require.Equal(t, new(false), account.AutomountServiceAccountToken)
	var bot appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(documentOf(t, rendered, "Deployment"), &bot))
	require.Equal(t, new(int32(1)), bot.Spec.Replicas)
	require.Equal(t, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, bot.Spec.Strategy)
	pod := bot.Spec.Template.Spec
	require.Equal(t, account.Name, pod.ServiceAccountName)
	require.Equal(t, new(false), pod.AutomountServiceAccountToken)
	require.Equal(t, new(true), pod.SecurityContext.RunAsNonRoot)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	require.Empty(t, pod.InitContainers)
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	require.Equal(t, &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}, c.SecurityContext)
	for _, m := range c.VolumeMounts {
		require.True(t, m.ReadOnly || slices.Contains([]string{"/tmp", "/var/cache/rampart"}, m.MountPath), m.MountPath)
	}
	require.Equal(t, "/healthz metrics", probed(c.LivenessProbe))
	require.Equal(t, "/readyz metrics", probed(c.ReadinessProbe))
	require.True(t, slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" }))
	require.Contains(t, c.Resources.Requests, corev1.ResourceMemory)
	require.Contains(t, c.Resources.Limits, corev1.ResourceMemory)
}

func probed(p *corev1.Probe) string { return p.HTTPGet.Path + " " + p.HTTPGet.Port.String() }

// documentOf is the document of a kind in a stream of YAML; nil: there is none.
func documentOf(t *testing.T, stream, kind string) []byte {
	t.Helper()
	for _, doc := range documents(t, []byte(stream)) {
		if strings.Contains(string(doc), "\nkind: "+kind+"\n") {
			return doc
		}
	}
	return nil
}
