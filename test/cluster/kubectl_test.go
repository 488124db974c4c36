package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// roll commits another image tag in the values of the chart that has the spec, as the in-cluster controller's guide has
// a rollout triggered.
func (d *delivery) roll(tag string) {
	d.t.Helper()
	d.commit("roll out the tag "+tag, map[string]string{
		"workers/checkout/values.yaml": fmt.Sprintf("image:\n  repository: worker\n  tag: %q\n", tag)})
}

// A pipeline applies each commit of the bot with kubectl, and waits for the status, which kubectl applies too. It waits
// right after a push for that of the new spec. One that has no cluster waits in Git. The spec is a chart; people change
// its values. An autoscaler comes with the next version.
func TestKubectlApplies(t *testing.T) {
	t.Parallel()
	d := deliver(t, gitHTTP(t))
	d.say("A pipeline applies each commit of the bot with kubectl")
	spec := strings.NewReplacer(`"worker:`, `"{{ .Values.image.repository }}:`,
		"{{ .Release.Name }}", `{{ "{{ .Release.Name }}" }}`).Replace(d.spec("worker:{{ .Values.image.tag }}"))
	d.commit("a chart of the spec", map[string]string{
		"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n" +
			"  - {name: default, specs: [\"workers/**\"], output: {path: deploy}}\n",
		"workers/checkout/Chart.yaml":              "apiVersion: v2\nname: checkout\nversion: 1.0.0\n",
		"workers/checkout/templates/checkout.yaml": spec,
	})
	d.roll("v1")
	d.bot((*delivery).byKustomize)
	withoutCluster := strings.Replace(documented(t, "console", "rampart wait"), "$ ", "$ KUBECONFIG= ", 1)
	commands := documented(t, "console", "kubectl apply --server-side -k")
	stop := d.pipeline("-k")
	t.Cleanup(stop)
	d.ready("v1")
	require.Contains(t, d.commands(commands), "condition met")
	d.server.await(t, "v1 True", "get", "-n", "payments", "twd", "checkout", "-o", `jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status}`)
	require.Empty(t, d.commands("$ kubectl diff --server-side -k deploy"), "nothing differs from what Git says")

	d.commit("an autoscaler and a budget", map[string]string{"workers/objects.yaml": scalerAndBudget})
	d.server.await(t, "1", "get", "-n", "payments", "pdb", "-l", "temporal.io/build-id=v1", "-o", "jsonpath={.items[*].spec.maxUnavailable}")
	replicas := func(buildID string) []string {
		return []string{"get", "-n", "payments", "deployment", "checkout-" + buildID, "-o", "jsonpath={.spec.replicas}"}
	}
	require.Equal(t, "2", d.server.Kubectl(t, "", replicas("v1")...), "v1 runs, and keeps its number")
	require.Empty(t, d.server.Kubectl(t, "", "get", "-n", "payments", "hpa", "-o", "name"))

	stop() // until the status of v1, which is ready, was seen not to count
	waits := documented(t, "console", "spec-digest")
	d.roll("v2")
	d.server.Kubectl(t, "", "wait", "-n", "payments", "twd/checkout", "--timeout="+patience.String(), "--for=condition=Ready")
	said, err := d.command(strings.ReplaceAll(waits, "10m", "1s"), "origin/main").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "timed out waiting for the condition on temporalworkerdeployments/checkout")
	t.Cleanup(d.pipeline("-k"))
	require.Equal(t, 2, strings.Count(d.commands(waits), "condition met"))
	require.Equal(t, "v2", d.server.Kubectl(t, "", "get", "-n", "payments", "twd", "checkout", "-o",
		"jsonpath={.status.currentVersion.buildID}"))
	require.Contains(t, d.commands(withoutCluster), "v2 is the current version")
	d.ready("v2")
	require.Contains(t, d.commands(commands), "condition met")
	d.server.await(t, "3", replicas("v2")...) // by the autoscaler, at least
	require.NotContains(t, d.host.repo.Files("main")["deploy/payments/checkout/versions/v2/deployment.yaml"], "replicas:")
	d.greets("v2")
	d.removed("v1")
	d.server.await(d.t, "0", replicas("v1")...)
	d.say("  v1 is gone from Git, and its Deployment stays at 0 replicas")

	d.roll("bad")
	cmd := d.command(withoutCluster, "origin/main")
	said, err = cmd.CombinedOutput()
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%v: %s", err, said)
	require.Contains(t, string(said), "gate Checkout failed")
	d.say("%s", indent(withoutCluster+string(said), "    "))
}

// scalerAndBudget are objects of each version.
const scalerAndBudget = `apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: hpa, namespace: payments}
spec:
  workerDeploymentRef: {name: checkout}
  template:
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    spec: {scaleTargetRef: {}, minReplicas: 3, maxReplicas: 4}
---
apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: pdb, namespace: payments}
spec:
  workerDeploymentRef: {name: checkout}
  template:
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    spec: {maxUnavailable: 1, selector: {matchLabels: {}}}
`
