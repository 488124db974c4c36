package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// health waits until an Application is in sync, and its health is as wanted.
func (d *delivery) health(application, want string) {
	d.t.Helper()
	d.server.await(d.t, "Synced "+want, "get", "-n", "argocd", "application", application, "-o", "jsonpath={.status.sync.status} {.status.health.status}")
}

// ArgoCD applies what the bot writes, the status too, and judges the Application's health by it.
func TestArgoCD(t *testing.T) {
	d := deliver(t, gitHTTP(t))
	d.push("worker:v1")
	d.bot((*delivery).byHelm)
	d.server.ArgoCD(t)
	d.commands(documented(t, "console", "rampart argocd --repo"))
	status := `jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason}`

	d.ready("v1")
	d.server.await(d.t, "v1 True RolloutComplete", "get", "-n", "payments", "twd", "checkout", "-o", status)
	d.health("workers-default", "Healthy")

	d.push("worker:v2")
	d.ready("v2")
	d.health("workers-default", "Healthy")
	d.only("v2")

	d.push("worker:bad")
	d.server.await(d.t, "v2 False GateFailed", "get", "-n", "payments", "twd", "checkout", "-o", status)
	d.health("workers-default", "Degraded")
	require.Equal(t, "v2", d.served())

	d.comesBack()
}
