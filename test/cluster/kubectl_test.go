package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipeline applies each commit of the bot with kubectl, and waits for the status, which kubectl applies too. One
// that has no cluster waits in Git.
func TestKubectlApplies(t *testing.T) {
	t.Parallel()
	d := deliver(t, gitHTTP(t))
	d.say("A pipeline applies each commit of the bot with kubectl")
	d.push("worker:v1")
	d.bot((*delivery).byKustomize)
	withoutCluster := strings.Replace(documented(t, "console", "rampart wait"), "$ ", "$ KUBECONFIG= ", 1)
	commands := documented(t, "console", "kubectl apply --server-side -k")
	t.Cleanup(d.pipeline("-k"))
	d.ready("v1")
	require.Contains(t, d.commands(commands), "condition met")
	d.server.await(t, "v1 True", "get", "-n", "payments", "twd", "checkout", "-o", `jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status}`)
	require.Empty(t, d.commands("$ kubectl diff --server-side -k deploy"), "nothing differs from what Git says")
	d.push("worker:v2")
	require.Contains(t, d.commands(withoutCluster), "v2 is the current version")
	d.ready("v2")
	require.Contains(t, d.commands(commands), "condition met")

	d.push("worker:bad")
	cmd := d.command(withoutCluster, "origin/main")
	said, err := cmd.CombinedOutput()
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%v: %s", err, said)
	require.Contains(t, string(said), "gate Checkout failed")
	d.say("%s", indent(withoutCluster+string(said), "    "))
}
