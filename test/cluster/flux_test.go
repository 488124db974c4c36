package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A spec is pushed to a Gitea; Flux applies what the bot writes, the pods are real workers, and the cluster's status
// follows. The next version passes its gate, ramps, is promoted, and the one before it drains and goes. Prometheus
// turns back a build that passes its gate, and a build that fails its gate gets no traffic. What a person deletes
// comes back, and so does a status that a person changes. Without the Kustomization the current version stays.
func TestFlux(t *testing.T) {
	t.Parallel()
	d := deliver(t, gitea(t))
	d.push("worker:v1")
	d.settings = fmt.Sprintf(", prometheus-address: %q", d.prometheus())
	d.bot((*delivery).byHelm)
	d.server.Flux(t, "kustomize-controller")
	d.say("The bot runs in the cluster, from its chart, and Flux applies what it commits")
	said := d.commands(documented(t, "console", "rampart flux --repo"))
	require.Contains(t, said, "kustomization.kustomize.toolkit.fluxcd.io/workers-default serverside-applied")
	for object, change := range map[string]string{ // sooner, and with something that would change manifests
		"gitrepository": `{"spec": {"interval": "1s"}}`,
		"kustomization": `{"spec": {"interval": "3s", "postBuild": {"substitute": {"GREETING": "wrong"}}}}`,
	} {
		d.server.Kubectl(t, "", "patch", "-n", "flux-system", object, "workers-default", "--type=merge", "-p", change)
	}

	d.ready("v1")
	d.greets("v1")
	said = d.commands(documented(t, "console", "rampart\\.dev/ready"))
	require.Contains(t, said, "condition met")
	require.Regexp(t, `checkout +v1 +v1 +True +RolloutComplete`, said)
	d.server.Kubectl(t, "", "wait", "-n", "flux-system", "kustomization/workers-default", "--for=condition=Ready", "--timeout=60s")
	d.server.await(d.t, "", "get", "-n", "payments", "twd", "checkout", "-o", "jsonpath={.status}") // Flux applies none

	terminate := d.pinned()
	d.push("worker:v2")
	d.ready("v2")
	require.Equal(t, []string{"current v1", "ramp v2 50", "current v2"}, d.ns.RoutingChanges("payments/checkout"))
	d.waitsForAll()
	terminate()
	d.only("v2")

	d.judgeByPrometheus()
	d.push("worker:flaky")
	d.summary("flaky v2 False Ramping")
	d.kustomized("Progressing")
	d.say("  while it ramps, the Kustomization waits")
	d.busy(func() { d.summary("flaky v2 False RolledBack") })
	require.Equal(t, []string{"ramp flaky 50", "ramp none"}, d.ns.RoutingChanges("payments/checkout")[3:])
	// 1 before the first retry. From few samples more: rate extrapolates each of the two counters on its own.
	require.Regexp(t, `activity_errors is (0\.\d+|1(\.\d+)?), more than 0\.1`, d.barred())
	d.sayCommits()
	d.say("  its gate passed, and in the ramp Prometheus turned it back: %s", d.barred())

	d.push("worker:bad")
	d.summary("bad v2 False GateFailed")
	d.kustomized("HealthCheckFailed")
	require.Equal(t, "v2", d.served())
	d.sayCommits()
	d.say("  its gate failed: the Kustomization failed, and v2 still gets all new workflows")
	d.withoutExpressions()

	d.comesBack("v2")
	d.server.Kubectl(t, "", "annotate", "--overwrite", "-n", "payments", "twd", "checkout", "rampart.dev/reason=Fine")
	d.summary("bad v2 False GateFailed")
	d.say("* a person changes the status in the cluster: Flux puts it right")

	d.server.Kubectl(t, "", "delete", "-n", "flux-system", "kustomization", "workers-default")
	d.server.await(t, "", "get", "-n", "payments", "twd", "-o", "name") // Flux has pruned what it may
	d.server.await(t, "2", "get", "-n", "payments", "deployment", "checkout-v2", "-o", "jsonpath={.status.readyReplicas}")
	require.Equal(t, "v2", d.served())
	d.say("* a person deletes the Kustomization: the version that is needed stays")
}

// kustomize changes the spec of the Kustomization.
func (d *delivery) kustomize(spec string) {
	d.t.Helper()
	d.server.Kubectl(d.t, "", "patch", "-n", "flux-system", "kustomization", "workers-default", "--type=merge", "-p",
		`{"spec": `+spec+`}`)
}

// kustomized waits until the Kustomization is ready or not for a reason, and gives the message.
func (d *delivery) kustomized(reason string) string {
	d.t.Helper()
	const ready = `{.status.conditions[?(@.type=="Ready")].`
	return d.server.Kubectl(d.t, "", "wait", "-n", "flux-system", "kustomization/workers-default",
		"--for=jsonpath="+ready+"reason}="+reason, "--timeout="+patience.String(), "-o", "jsonpath="+ready+"message}")
}

// withoutExpressions has Flux judge the worker deployment by its own rules alone: it has no status, and so counts as
// ready, although its gate failed.
func (d *delivery) withoutExpressions() {
	d.t.Helper()
	expressions := d.server.Kubectl(d.t, "", "get", "-n", "flux-system", "kustomization", "workers-default", "-o",
		"jsonpath={.spec.healthCheckExprs}")
	d.kustomize(`{"healthCheckExprs": null}`)
	d.kustomized("ReconciliationSucceeded")
	d.summary("bad v2 False GateFailed")
	d.kustomize(`{"healthCheckExprs": ` + expressions + `}`)
	d.kustomized("HealthCheckFailed")
	d.say("  without the expressions the Kustomization would be ready: Flux applies no status by which it could judge")
}

// waitsForAll sets what docs/cd.md warns of: then the Kustomization fails by the old version, whose image is gone.
func (d *delivery) waitsForAll() {
	d.t.Helper()
	d.loses("v1", "2")
	d.kustomize(`{"wait": true, "timeout": "30s"}`) // the least that Flux waits
	require.Contains(d.t, d.kustomized("HealthCheckFailed"), "[Deployment/payments/checkout-v1 status: 'InProgress']")
	d.kustomize(`{"wait": null, "timeout": "30m"}`)
	d.kustomized("ReconciliationSucceeded")
	d.say("  with wait: true the Kustomization would wait for v1: with health checks it is ready")
}
