package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A spec is pushed to a Gitea; Flux applies what the bot writes, the pods are real workers, and the cluster's status follows. The next version passes its gate, ramps, is
// promoted, and the one before it drains and goes. A bad build gets no traffic. What a person deletes comes back, and so does a status that a person changes.
func TestFlux(t *testing.T) {
	d := deliver(t, gitea(t))
	d.push("worker:v1")
	d.bot((*delivery).byHelm)
	d.server.Flux(t)
	d.say("The bot runs from its chart, and Flux applies what it commits to %s", d.host.url)
	faster := `| sed -e 's/interval: 1m$/interval: 1s/; s/interval: 10m$/interval: 3s/; s/^  prune: true/&\n  postBuild: {substitute: {GREETING: wrong}}/' | kubectl`
	said := d.commands(strings.Replace(documented(t, "console", "rampart flux --repo"), "| kubectl", faster, 1))
	require.Contains(t, said, "kustomization.kustomize.toolkit.fluxcd.io/workers-default serverside-applied")

	d.ready("v1")
	d.server.await(d.t, "${GREETING}", "get", "-n", "payments", "deployment", "checkout-v1", "-o",
		`jsonpath={.spec.template.spec.containers[0].env[?(@.name=="GREETING")].value}`) // manifests are left as they are written
	said = d.commands(documented(t, "console", "rampart\\.dev/ready"))
	require.Contains(t, said, "condition met")
	require.Regexp(t, `checkout +v1 +v1 +True +RolloutComplete`, said)
	d.server.Kubectl(t, "", "wait", "-n", "flux-system", "kustomization/workers-default", "--for=condition=Ready", "--timeout=60s")

	d.push("worker:v2")
	d.ready("v2")
	require.Equal(t, []string{"current v1", "ramp v2 50", "current v2"}, d.ns.RoutingChanges("payments/checkout"))
	d.only("v2")

	d.push("worker:bad")
	d.summary("bad v2 False GateFailed")
	d.server.await(d.t, "HealthCheckFailed", "get", "-n", "flux-system", "kustomization", "workers-default", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)
	require.Equal(t, "v2", d.served())
	d.say("  its gate failed: the Kustomization failed, and v2 still gets all new workflows")

	d.comesBack("v2")
	d.server.Kubectl(t, "", "annotate", "--overwrite", "-n", "payments", "twd", "checkout", "rampart.dev/reason=Fine")
	d.summary("bad v2 False GateFailed")
	d.say("* a person changes the status in the cluster: Flux puts it right")
}
