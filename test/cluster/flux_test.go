package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/rampart-gitops/rampart/install/crds"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// delivery is a repository with a spec, a cluster to which it is applied, and a bot in that cluster that works on it.
type delivery struct {
	t       *testing.T
	server  *Server
	repo    *gittest.Repo
	ns      *temporalenv.Namespace
	client  client.Client
	program rampart
}

// prepare starts a cluster with a namespace, Temporal, and a repository with nothing in it.
func prepare(t *testing.T) *delivery {
	t.Helper()
	testneed.Long(t)
	temporal := temporalenv.Start(t, temporalenv.Options{})
	ns, err := temporal.Namespace(t.Context(), "orders")
	require.NoError(t, err)
	program := build(t)
	good := workerImage(t, "good")
	d := &delivery{t: t, repo: gittest.NewBareRepo(t), ns: ns, program: program, server: StartNode(t, map[string]Image{
		"worker:v1": good, "worker:v2": good, "worker:v3": good, "worker:bad": workerImage(t, "bad"), "worker:plain": workerImage(t, "plain"),
		"rampart:test": {Command: []string{program.file}},
	})}
	d.client, err = ns.Client(t.Context())
	require.NoError(t, err)
	t.Cleanup(d.client.Close)
	d.server.Kubectl(t, "", "create", "namespace", "payments")
	d.repo.Commit(gittest.Commit{Write: map[string]string{"README.md": "workers of the shop"}})
	return d
}

// deliver starts all but what applies the repository.
func deliver(t *testing.T) *delivery {
	t.Helper()
	d := prepare(t)
	d.server.Kubectl(t, string(crds.All()), "apply", "--server-side", "-f", "-")
	d.server.established(t)
	d.repo.Commit(gittest.Commit{Write: map[string]string{"workers/connection.yaml": fmt.Sprintf(
		"apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: temporal, namespace: payments}\nspec: {hostPort: %q}\n", d.ns.Server().Address())}})
	d.push("worker:v1")
	d.bot()
	return d
}

// push commits a spec with another image.
func (d *delivery) push(image string) {
	d.t.Helper()
	d.repo.Commit(gittest.Commit{Message: "roll out " + image, Write: map[string]string{"workers/checkout.yaml": fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: payments}
spec:
  replicas: 2
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: orders, unsafeCustomBuildID: %s}
  rollout:
    strategy: Progressive
    steps: [{rampPercentage: 50, pauseDuration: 2s}]
    gate: {workflowType: %s}
    rollback: {window: 1s}
  sunset: {scaledownDelay: 1s, deleteDelay: 3s}
  template: {spec: {terminationGracePeriodSeconds: 5, containers: [{name: worker, image: %q, env: [{name: GREETING, value: "${GREETING}"}]}]}}
`, strings.ReplaceAll(image, "worker:", ""), temporalenv.Checkout, image)}})
}

// bot installs the chart, and waits until the bot that it runs is ready: in a namespace that enforces restricted pods, with a token from a Secret.
func (d *delivery) bot() {
	d.t.Helper()
	const token = "a-token-of-tests"
	git := gittest.ServeHTTP(d.t, d.repo, gittest.HTTPConfig{User: "bot", Password: token})
	d.server.Kubectl(d.t, "", "create", "namespace", "rampart")
	d.server.Kubectl(d.t, "", "label", "namespace", "rampart", "pod-security.kubernetes.io/enforce=restricted")
	d.server.Kubectl(d.t, "", "create", "-n", "rampart", "secret", "generic", "rampart", "--from-literal=git-token="+token)
	values := filepath.Join(d.t.TempDir(), "values.yaml")
	require.NoError(d.t, os.WriteFile(values, []byte(fmt.Sprintf(`
settings: {repo: %q, git-user: bot, git-token-file: /etc/rampart/secrets/git-token, interval: 250ms}
secretName: rampart
image: {repository: rampart, tag: test}
healthPort: %s
`, git.URL, freePort(d.t))), 0o600))
	d.t.Cleanup(func() {
		if !d.t.Failed() {
			return
		}
		logs, _ := filepath.Glob(filepath.Join(d.server.Logs, "rampart_*.log"))
		for _, name := range logs {
			text, _ := os.ReadFile(name)
			d.t.Logf("%s:\n%s", filepath.Base(name), text)
		}
		d.t.Logf("commits:\n%s", d.repo.Git("log", "--format=%h %an: %s"))
	})
	d.server.Helm(d.t, "install", "rampart", filepath.Join("..", "..", "install", "chart"), "--namespace", "rampart", "--values", values, "--wait", "--timeout", "60s")
}

// summary waits until the annotations of the object in the cluster say target, current version, readiness and reason.
func (d *delivery) summary(want string) {
	d.t.Helper()
	d.server.await(d.t, want, "get", "-n", "payments", "twd", "checkout", "-o",
		`jsonpath={.metadata.annotations.rampart\.dev/target} {.metadata.annotations.rampart\.dev/current} {.metadata.annotations.rampart\.dev/ready} {.metadata.annotations.rampart\.dev/reason}`)
}

// comesBack deletes the Deployment of v2, the current version, and waits until its workers are there again.
func (d *delivery) comesBack() {
	d.t.Helper()
	d.server.Kubectl(d.t, "", "delete", "-n", "payments", "deployment", "checkout-v2")
	d.server.await(d.t, "2", "get", "-n", "payments", "deployment", "checkout-v2", "-o", "jsonpath={.status.readyReplicas}")
	require.Equal(d.t, "v2", d.served())
}

// ready waits until a version is current, as the cluster tells.
func (d *delivery) ready(buildID string) {
	d.t.Helper()
	d.summary(buildID + " " + buildID + " True RolloutComplete")
}

// served runs a workflow, and gives the version that it ran on.
func (d *delivery) served() string {
	d.t.Helper()
	run, err := d.client.ExecuteWorkflow(d.t.Context(), client.StartWorkflowOptions{TaskQueue: taskQueue}, temporalenv.Checkout)
	require.NoError(d.t, err)
	require.NoError(d.t, run.Get(d.t.Context(), nil))
	info, err := d.client.DescribeWorkflowExecution(d.t.Context(), run.GetID(), run.GetRunID())
	require.NoError(d.t, err)
	return info.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId()
}

var blocks = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```")

// documented is the block of docs/cd.md, in a language, that has some text.
func documented(t *testing.T, language, has string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cd.md"))
	require.NoError(t, err)
	for _, block := range blocks.FindAllStringSubmatch(string(page), -1) {
		if block[1] == language && strings.Contains(block[2], has) {
			return block[2]
		}
	}
	require.Fail(t, "no such block in docs/cd.md", has)
	return ""
}

// run runs the commands of a block in a clone of the repository, and gives what they say.
func (d *delivery) run(block string) string {
	d.t.Helper()
	clone := d.t.TempDir()
	d.repo.Git("clone", "-q", d.repo.Dir, clone)
	script := strings.ReplaceAll("\n"+block, "\n$ ", "\n")
	cmd := exec.CommandContext(d.t.Context(), "sh", "-ec", script)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.server.Kubeconfig, "HOME="+d.t.TempDir(), "PATH="+filepath.Dir(program(d.t, "kubectl"))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(d.t, err, "%s", out)
	return string(out)
}

// A spec is pushed; Flux applies what the bot writes, the pods are real workers, and the cluster's status follows. The next version passes its gate, ramps, is promoted, and the one
// before it drains and goes. A bad build gets no traffic. What a person deletes comes back.
func TestFlux(t *testing.T) {
	d := deliver(t)
	d.server.Flux(t)
	http := gittest.ServeHTTP(t, d.repo, gittest.HTTPConfig{})
	manifest := strings.NewReplacer(`"https://git.example.com/platform/workers.git"`, http.URL, "interval: 1m,", "interval: 1s,", "interval: 10m", "interval: 5s",
		"path: ./deploy", "path: ./deploy\n  postBuild: {substitute: {GREETING: wrong}}").
		Replace(documented(t, "yaml", "kind: Kustomization"))
	require.Contains(t, manifest, http.URL)
	d.server.Kubectl(t, manifest, "apply", "-f", "-")

	d.ready("v1")
	require.Equal(t, "v1", d.served())
	d.server.await(d.t, "${GREETING}", "get", "-n", "payments", "deployment", "checkout-v1", "-o",
		`jsonpath={.spec.template.spec.containers[0].env[?(@.name=="GREETING")].value}`) // manifests are left as they are written
	said := d.run(documented(t, "console", "rampart\\.dev/ready"))
	require.Contains(t, said, "condition met")
	require.Regexp(t, `checkout +v1 +v1 +True +RolloutComplete`, said)
	d.server.Kubectl(t, "", "wait", "-n", "flux-system", "kustomization/workers", "--for=condition=Ready", "--timeout=60s")

	d.push("worker:v2")
	d.ready("v2")
	require.Equal(t, "v2", d.served())
	require.Equal(t, []string{"current v1", "ramp v2 50", "current v2"}, d.ns.RoutingChanges("payments/checkout"))
	d.server.await(d.t, "checkout-v2", "get", "-n", "payments", "deployments", "-o", "jsonpath={.items[*].metadata.name}") // v1 drained, and was pruned

	d.push("worker:bad")
	d.summary("bad v2 False GateFailed")
	d.server.await(d.t, "HealthCheckFailed", "get", "-n", "flux-system", "kustomization", "workers", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)
	require.Equal(t, "v2", d.served())

	d.comesBack()
}

// pipeline applies each commit with kubectl until stop is called.
func (d *delivery) pipeline() (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		tip := ""
		for ctx.Err() == nil {
			if now := d.repo.Tip("main"); now != tip && strings.Contains(d.repo.Git("ls-tree", "--name-only", now), "deploy") {
				tip = now
				clone := d.t.TempDir()
				d.repo.Git("clone", "-q", d.repo.Dir, clone)
				_, _ = d.server.kubectl(d.t, "", "apply", "--server-side", "-k", filepath.Join(clone, "deploy")) // again with the next commit
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // until it looks again
			}
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-applied })
}

// inGit says whether a file is in the repository.
func (d *delivery) inGit(file string) error {
	if out := d.repo.Git("ls-tree", "--name-only", "main", file); strings.TrimSpace(out) != file {
		return fmt.Errorf("%s is not in Git", file)
	}
	return nil
}

// The same without Flux: a pipeline applies each commit of the bot with kubectl, and waits for the status, which kubectl applies too.
func TestKubectlApplies(t *testing.T) {
	d := deliver(t)
	commands := documented(t, "console", "kubectl apply --server-side -k")
	t.Cleanup(d.pipeline())
	d.ready("v1")
	require.Contains(t, d.run(commands), "condition met")
	require.Equal(t, "v1", d.served())
	d.server.await(t, "v1 True", "get", "-n", "payments", "twd", "checkout", "-o", `jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status}`)
	d.push("worker:v2")
	d.ready("v2")
	require.Contains(t, d.run(commands), "condition met")
	require.Equal(t, "v2", d.served())
}

// The same by ArgoCD, which applies the status too, and judges the application's health by it.
func TestArgoCD(t *testing.T) {
	d := deliver(t)
	d.server.ArgoCD(t, documented(t, "yaml", "resource.customizations.health"))
	http := gittest.ServeHTTP(t, d.repo, gittest.HTTPConfig{})
	manifest := strings.ReplaceAll(documented(t, "yaml", "kind: Application"), `"https://git.example.com/platform/workers.git"`, http.URL)
	require.Contains(t, manifest, http.URL)
	d.server.Kubectl(t, manifest, "apply", "-f", "-")
	health := func(want string) {
		t.Helper()
		d.server.await(d.t, want, "get", "-n", "argocd", "application", "workers", "-o", "jsonpath={.status.sync.status} {.status.health.status}")
	}
	status := `jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason}`

	d.ready("v1")
	d.server.await(d.t, "v1 True RolloutComplete", "get", "-n", "payments", "twd", "checkout", "-o", status)
	health("Synced Healthy")
	require.Equal(t, "v1", d.served())

	d.push("worker:v2")
	d.ready("v2")
	health("Synced Healthy")
	require.Equal(t, "v2", d.served())
	d.server.await(d.t, "checkout-v2", "get", "-n", "payments", "deployments", "-o", "jsonpath={.items[*].metadata.name}") // v1 drained, and was pruned

	d.push("worker:bad")
	d.server.await(d.t, "v2 False GateFailed", "get", "-n", "payments", "twd", "checkout", "-o", status)
	health("Synced Degraded")
	require.Equal(t, "v2", d.served())

	d.comesBack()
}
