package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipeline applies each commit of the bot with kubectl, and waits for the status, which kubectl applies too.
func TestKubectlApplies(t *testing.T) {
	d := deliver(t, gitHTTP(t))
	d.say("Another cluster, without Flux: a pipeline applies each commit of the bot with kubectl")
	d.push("worker:v1")
	d.bot((*delivery).byKustomize)
	commands := documented(t, "console", "kubectl apply --server-side -k")
	t.Cleanup(d.pipeline("-k"))
	d.ready("v1")
	require.Contains(t, d.commands(commands), "condition met")
	d.server.await(t, "v1 True", "get", "-n", "payments", "twd", "checkout", "-o", `jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status}`)
	require.Empty(t, d.commands("kubectl diff --server-side -k deploy"), "nothing differs from what Git says")
	d.push("worker:v2")
	d.ready("v2")
	require.Contains(t, d.commands(commands), "condition met")
}
