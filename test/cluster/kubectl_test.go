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

// A pipeline applies each commit of the bot with kubectl, and waits for the status, which kubectl applies too. One
// that has no cluster waits in Git. The spec is a chart, of which people change the values.
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
	t.Cleanup(d.pipeline("-k"))
	d.ready("v1")
	require.Contains(t, d.commands(commands), "condition met")
	d.server.await(t, "v1 True", "get", "-n", "payments", "twd", "checkout", "-o", `jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status}`)
	require.Empty(t, d.commands("$ kubectl diff --server-side -k deploy"), "nothing differs from what Git says")
	d.roll("v2")
	require.Contains(t, d.commands(withoutCluster), "v2 is the current version")
	d.ready("v2")
	require.Contains(t, d.commands(commands), "condition met")
	d.greets("v2")
	d.removed("v1")
	d.server.await(d.t, "0", "get", "-n", "payments", "deployment", "checkout-v1", "-o", "jsonpath={.spec.replicas}")
	d.say("  v1 is gone from Git, and its Deployment stays at 0 replicas")

	d.roll("bad")
	cmd := d.command(withoutCluster, "origin/main")
	said, err := cmd.CombinedOutput()
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%v: %s", err, said)
	require.Contains(t, string(said), "gate Checkout failed")
	d.say("%s", indent(withoutCluster+string(said), "    "))
}
