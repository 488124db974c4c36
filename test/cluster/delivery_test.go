package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/rampart-gitops/rampart/install/crds"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/giteatest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// delivery is a repository with a spec, a cluster to which it is applied, and a bot in that cluster that works on it.
type delivery struct {
	t      *testing.T
	server *Server
	rampart
	host   host
	clone  string
	ns     *temporalenv.Namespace
	client client.Client
	steps  string // of the ramp
	// annotations are those of the spec.
	annotations string
	// analysis is that of the spec; "": as by default.
	analysis string
	// settings are more of the bot's.
	settings string
	// told is the commit up to which sayCommits has told.
	told string
}

// host is a Git server with one repository, and a user who may push to it.
type host struct {
	repo             *gittest.Repo // its folder, to be looked at
	url, user, token string
	reads            string // the URL for those who only read, without credentials
}

// gitea has the repository on a Gitea.
func gitea(t *testing.T) host {
	t.Helper()
	server := giteatest.Start(t)
	bot := server.User(t, "bot")
	r := server.Repository(t, bot.Login)
	url := r.URL() + ".git"
	return host{gittest.OpenRepo(t, r.Dir()), url, bot.Login, bot.Token, url}
}

// gitHTTP has the repository on a Git server without a forge.
func gitHTTP(t *testing.T) host {
	t.Helper()
	const token = "a-token-of-tests"
	repo := gittest.NewBareRepo(t)
	repo.Commit(gittest.Commit{Write: map[string]string{"README.md": "workers\n"}})
	return host{repo, gittest.ServeHTTP(t, repo, gittest.HTTPConfig{User: "bot", Password: token}).URL, "bot", token,
		gittest.ServeHTTP(t, repo, gittest.HTTPConfig{}).URL}
}

// authenticated is the URL with the user's credentials.
func (h host) authenticated() string {
	return strings.Replace(h.url, "://", "://"+h.user+":"+h.token+"@", 1)
}

// prepare starts a cluster with a namespace, Temporal, and a clone of the repository. more images are on its node.
func prepare(t *testing.T, on host, more ...map[string]Image) *delivery {
	t.Helper()
	testneed.Long(t)
	temporal := temporalenv.Start(t, temporalenv.Options{})
	ns, err := temporal.Namespace(t.Context(), "orders")
	require.NoError(t, err)
	r := build(t)
	good := workerImage(t, "good")
	images := map[string]Image{
		"worker:v1": good, "worker:v2": good, "worker:v3": good, "worker:plain": workerImage(t, "plain"),
		"worker:bad": workerImage(t, "bad"), "worker:flaky": workerImage(t, "flaky"),
		"rampart:test": {Command: []string{r.file}},
	}
	for _, m := range more {
		maps.Copy(images, m)
	}
	d := &delivery{t: t, rampart: r, host: on, clone: filepath.Join(t.TempDir(), "workers"), ns: ns, steps: oneStep, server: StartNode(t, images)}
	d.client, err = ns.Client(t.Context())
	require.NoError(t, err)
	t.Cleanup(d.client.Close)
	d.server.Kubectl(t, "", "create", "namespace", "payments")
	d.git("clone", "-q", on.authenticated(), d.clone)
	d.say("A Kubernetes cluster, Temporal, and the repository %s", on.url)
	return d
}

// deliver starts all but what applies the repository.
func deliver(t *testing.T, on host) *delivery {
	t.Helper()
	d := prepare(t, on)
	d.server.Kubectl(t, string(crds.All()), "apply", "--server-side", "-f", "-")
	d.server.established(t)
	d.commit("connect to Temporal", map[string]string{"workers/connection.yaml": d.connection()})
	return d
}

// connection leads the workers to Temporal.
func (d *delivery) connection() string {
	return fmt.Sprintf("apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: temporal, namespace: payments}\nspec: {hostPort: %q}\n", d.ns.Server().Address())
}

// oneStep is a ramp that is over in seconds.
const oneStep = "[{rampPercentage: 50, pauseDuration: 2s}]"

// demo is the variable with which tests tell what happens on the standard output, without anything else.
const demo = "RAMPART_DEMO"

// say tells what happens, for those who watch.
func (d *delivery) say(format string, args ...any) {
	out := d.t.Output()
	if os.Getenv(demo) != "" {
		out = os.Stdout
	}
	fmt.Fprintf(out, format+"\n", args...)
}

// sayCommits tells what the bot committed since it was called last.
func (d *delivery) sayCommits() {
	tip := d.host.repo.Tip("main")
	since := tip
	if d.told != "" {
		since = d.told + ".." + tip
	}
	for line := range strings.Lines(d.host.repo.Git("log", "--reverse", "--author=rampart", "--format=%s", since)) {
		d.say("    the bot commits: %s", strings.TrimSpace(line))
	}
	d.told = tip
}

func (d *delivery) git(args ...string) string {
	d.t.Helper()
	out, err := d.tryGit(args...)
	require.NoError(d.t, err, out)
	return out
}

func (d *delivery) tryGit(args ...string) (string, error) {
	cmd := exec.CommandContext(d.t.Context(), "git", args...)
	cmd.Env = append(os.Environ(), gittest.Env()...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// commit pushes files as a person does: again on top of what the bot pushed meanwhile.
func (d *delivery) commit(message string, files map[string]string) {
	d.t.Helper()
	d.say("* a person pushes: %s", message)
	eventually(d.t, func() error {
		d.git("-C", d.clone, "fetch", "-q")
		d.git("-C", d.clone, "reset", "-q", "--hard", "origin/main")
		for name, text := range files {
			name = filepath.Join(d.clone, name)
			require.NoError(d.t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(d.t, os.WriteFile(name, []byte(text), 0o644))
		}
		d.git("-C", d.clone, "add", ".")
		d.git("-C", d.clone, "commit", "-qm", message)
		out, err := d.tryGit("-C", d.clone, "push", "-q", "origin", "HEAD:main")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// push commits a spec with another image.
func (d *delivery) push(image string) {
	d.t.Helper()
	d.commit("roll out "+image, map[string]string{"workers/checkout.yaml": d.spec(image)})
}

// greeting is a variable of each worker, with what Flux and Helm would replace.
const greeting = "${GREETING} {{ .Release.Name }}"

// spec is that of the worker deployment with an image.
func (d *delivery) spec(image string) string {
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: payments, annotations: {%s}}
spec:
  replicas: 2
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: orders, unsafeCustomBuildID: %s}
  rollout:
    strategy: Progressive
    steps: %s
    gate: {workflowType: %s}%s
    rollback: {window: 1s}
  sunset: {scaledownDelay: 1s, deleteDelay: 3s}
  template: {spec: {terminationGracePeriodSeconds: 5, containers: [{name: worker, image: %q, env: [
    {name: GREETING, value: %q}, {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}]}}
`, d.annotations, strings.ReplaceAll(image, "worker:", ""), d.steps, temporalenv.Checkout, d.analysis, image, greeting)
}

// greets waits until a version's Deployment has the variable as it is written.
func (d *delivery) greets(buildID string) {
	d.t.Helper()
	d.server.await(d.t, greeting, "get", "-n", "payments", "deployment", "checkout-"+buildID, "-o",
		`jsonpath={.spec.template.spec.containers[0].env[?(@.name=="GREETING")].value}`)
}

// pinned starts a workflow that stays on the current version, which is needed until the workflow is terminated.
func (d *delivery) pinned() (terminate func()) {
	d.t.Helper()
	options := client.StartWorkflowOptions{TaskQueue: taskQueue}
	run, err := d.client.ExecuteWorkflow(d.t.Context(), options, temporalenv.Slow)
	require.NoError(d.t, err)
	return func() {
		d.t.Helper()
		require.NoError(d.t, d.client.TerminateWorkflow(d.t.Context(), run.GetID(), run.GetRunID(), "not needed any more"))
	}
}

// loses takes away the image of a version and its pods, so that its Deployment waits for pods that cannot start.
func (d *delivery) loses(buildID, replicas string) {
	d.t.Helper()
	d.server.RemoveImage("worker:" + buildID)
	d.server.Kubectl(d.t, "", "delete", "-n", "payments", "pods", "-l", "temporal.io/build-id="+buildID)
	d.unavailable(buildID, replicas)
	d.say("  the image of %s, on which a workflow runs, is gone", buildID)
}

// unavailable waits until no replica of a version is available.
func (d *delivery) unavailable(buildID, replicas string) {
	d.t.Helper()
	d.server.await(d.t, replicas, "get", "-n", "payments", "deployment", "checkout-"+buildID, "-o",
		"jsonpath={.status.unavailableReplicas}")
}

// removed waits until a version has no files in Git any more.
func (d *delivery) removed(buildID string) {
	d.t.Helper()
	eventually(d.t, func() error {
		if strings.Contains(d.host.repo.Git("ls-tree", "-r", "--name-only", "main"), "/versions/"+buildID+"/") {
			return fmt.Errorf("%s has files in Git", buildID)
		}
		return nil
	})
}

// bot installs the bot, and waits until it is ready: in a namespace that enforces restricted pods, with a token from a
// Secret.
func (d *delivery) bot(install func(*delivery)) {
	d.t.Helper()
	d.server.Kubectl(d.t, "", "create", "namespace", "rampart")
	d.server.Kubectl(d.t, "", "label", "namespace", "rampart", "pod-security.kubernetes.io/enforce=restricted")
	d.server.Kubectl(d.t, "", "create", "-n", "rampart", "secret", "generic", "rampart", "--from-literal=git-token="+d.host.token)
	d.t.Cleanup(func() {
		if !d.t.Failed() {
			return
		}
		logs, _ := filepath.Glob(filepath.Join(d.server.Logs, "rampart_*.log"))
		for _, name := range logs {
			text, _ := os.ReadFile(name)
			d.t.Logf("%s:\n%s", filepath.Base(name), text)
		}
		d.t.Logf("commits:\n%s", d.host.repo.Git("log", "--format=%h %an: %s", "main"))
	})
	install(d)
}

// byHelm installs the chart.
func (d *delivery) byHelm() {
	d.t.Helper()
	values := filepath.Join(d.t.TempDir(), "values.yaml")
	require.NoError(d.t, os.WriteFile(values, []byte(fmt.Sprintf(`
settings: {repo: %q, git-user: %q, git-token-file: /etc/rampart/secrets/git-token, interval: 250ms%s}
secretName: rampart
image: {repository: rampart, tag: test}
metrics: {port: %s}
`, d.host.url, d.host.user, d.settings, freePort(d.t))), 0o600))
	d.server.Helm(d.t, "install", "rampart", filepath.Join("..", "..", "install", "chart"), "--namespace", "rampart", "--values", values, "--wait", "--timeout", "60s")
}

// byKustomize applies the overlay of docs/install.md.
func (d *delivery) byKustomize() {
	d.t.Helper()
	port := freePort(d.t)
	dir := overlay(d.t, "https://git.example.com/platform/workers.git", d.host.url, "newName: registry.example.com/rampart, newTag: v1", "newName: rampart, newTag: test",
		`- {name: RAMPART_TEMPORAL_ADDRESS, value: "temporal.example.com:7233"}`, `- {name: RAMPART_GIT_USER, value: bot}
                  - {name: RAMPART_INTERVAL, value: 250ms}
                  - {name: RAMPART_METRICS_ADDRESS, value: ":`+port+`"}
                ports: [{$patch: replace}, {name: metrics, containerPort: `+port+`}]`)
	d.server.Kubectl(d.t, "", "apply", "--server-side", "-k", dir)
	d.server.Kubectl(d.t, "", "rollout", "status", "-n", "rampart", "deployment/rampart", "--timeout=60s")
}

// summary waits until the annotations of the object in the cluster say target, current version, readiness and reason.
func (d *delivery) summary(want string) {
	d.t.Helper()
	d.server.await(d.t, want, "get", "-n", "payments", "twd", "checkout", "-o",
		`jsonpath={.metadata.annotations.rampart\.dev/target} {.metadata.annotations.rampart\.dev/current} {.metadata.annotations.rampart\.dev/ready} {.metadata.annotations.rampart\.dev/reason}`)
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// comesBack deletes the Deployment of the current version, and waits until its workers are there again.
func (d *delivery) comesBack(buildID string) {
	d.t.Helper()
	d.server.Kubectl(d.t, "", "delete", "-n", "payments", "deployment", "checkout-"+buildID)
	d.server.await(d.t, "2", "get", "-n", "payments", "deployment", "checkout-"+buildID, "-o",
		"jsonpath={.status.readyReplicas}")
	require.Equal(d.t, buildID, d.served())
	d.say("* a person deletes the Deployment of %s: it comes back", buildID)
}

// only waits until no version but these has a Deployment.
func (d *delivery) only(buildIDs ...string) {
	d.t.Helper()
	d.server.await(d.t, "checkout-"+strings.Join(buildIDs, " checkout-"), "get", "-n", "payments", "deployments", "-o",
		"jsonpath={.items[*].metadata.name}")
	d.say("  the version before it drained, and its Deployment was pruned")
}

// ready waits until a version is current, as the cluster tells, and gets new workflows.
func (d *delivery) ready(buildID string) {
	d.t.Helper()
	d.summary(buildID + " " + buildID + " True RolloutComplete")
	require.Equal(d.t, buildID, d.served())
	d.sayCommits()
	d.say("  %s is current: a new workflow ran on it", buildID)
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
	return documentedIn(t, "cd.md", block{language, has})
}

// block is one in a language that has some text.
type block struct{ language, has string }

func documentedIn(t *testing.T, name string, of block) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	for _, block := range blocks.FindAllStringSubmatch(string(page), -1) {
		if block[1] == of.language && strings.Contains(block[2], of.has) {
			return block[2]
		}
	}
	require.Fail(t, "no such block in docs/"+name, of.has)
	return ""
}

// commands runs the commands of a block in a clone of the repository, and gives what they say.
func (d *delivery) commands(block string) string {
	d.t.Helper()
	out, err := d.command(block, "origin/main").CombinedOutput()
	require.NoError(d.t, err, "%s", out)
	d.say("%s", indent(strings.TrimSpace(block)+"\n"+string(out), "    "))
	return string(out)
}

// command is the commands of a block, to be run in a clone of the repository as it was at a revision.
func (d *delivery) command(block, revision string) *exec.Cmd {
	d.t.Helper()
	clone := d.t.TempDir()
	d.git("clone", "-q", d.host.authenticated(), clone)
	d.git("-C", clone, "reset", "-q", "--hard", revision)
	script := strings.ReplaceAll("\n"+block, "\n$ ", "\n")
	script = strings.ReplaceAll(script, "https://git.example.com/platform/workers.git", d.host.reads)
	cmd := exec.CommandContext(d.t.Context(), "sh", "-ec", script)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.server.Kubeconfig, "HOME="+d.t.TempDir(), "PATH="+filepath.Dir(program(d.t, "kubectl"))+":"+filepath.Dir(d.file)+":"+os.Getenv("PATH"))
	return cmd
}

// pipeline applies the output of each commit until stop is called, with these flags of kubectl apply. The last flag
// takes the folder.
func (d *delivery) pipeline(flags ...string) (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		tip := ""
		for ctx.Err() == nil {
			if now := d.host.repo.Tip("main"); now != tip && strings.Contains(d.host.repo.Git("ls-tree", "--name-only", now), "deploy") {
				clone := d.t.TempDir()
				d.host.repo.Git("clone", "-q", d.host.repo.Dir, clone)
				args := slices.Concat([]string{"apply", "--server-side"}, flags, []string{filepath.Join(clone, "deploy")})
				if _, err := d.server.kubectl(d.t, "", args...); err == nil {
					tip = now // else it is applied again
				}
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
	if out := d.host.repo.Git("ls-tree", "--name-only", "main", file); strings.TrimSpace(out) != file {
		return fmt.Errorf("%s is not in Git", file)
	}
	return nil
}
