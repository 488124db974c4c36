package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

// longStep is a ramp that pauses for longer than a test takes.
const longStep = "[{rampPercentage: 50, pauseDuration: 1h}]"

// health waits until an Application is in sync with the last commit, and its health is as wanted. Both come from a look
// at Git and the cluster that begins now.
func (d *delivery) health(application, want string) {
	d.t.Helper()
	const refresh = "argocd.argoproj.io/refresh" // Argo CD takes it away once it has looked
	eventually(d.t, func() error {               // an ApplicationSet may not have made it yet
		_, err := d.server.kubectl(d.t, "", "annotate", "--overwrite", "-n", "argocd", "application", application,
			refresh+"=normal")
		return err
	})
	eventually(d.t, func() error {
		want := "Synced " + want + " " + d.host.repo.Tip("main") + " "
		got, err := d.server.kubectl(d.t, "", "get", "-n", "argocd", "application", application, "-o",
			"jsonpath={.status.sync.status} {.status.health.status} {.status.sync.revision} {.metadata.annotations."+strings.ReplaceAll(refresh, ".", `\.`)+"}")
		if err == nil && got != want {
			err = fmt.Errorf("application %s: want %q, got %q", application, want, got)
		}
		return err
	})
	d.say("  the Application %s is %s", application, want)
}

// environment is one of rampart.yaml, with these specs, whose output is in a folder of its name.
func environment(name, specs string) string {
	return fmt.Sprintf("  - {name: %[1]s, specs: [%[2]q], output: {path: deploy/%[1]s}, cd: {tool: ArgoCD}}\n", name,
		specs)
}

// configure commits a rampart.yaml.
func (d *delivery) configure(message string, environments ...string) {
	d.t.Helper()
	d.commit(message, map[string]string{"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n" + strings.Join(environments, "")})
}

// apply applies a manifest of docs/cd.md to the namespace of Argo CD.
func (d *delivery) apply(manifest string) {
	d.t.Helper()
	d.server.Kubectl(d.t, strings.ReplaceAll(manifest, "https://git.example.com/platform/workers.git", d.host.reads),
		"apply", "--server-side", "--field-manager", "platform", "-n", "argocd", "-f", "-")
}

// status waits until the status of the object in the cluster says current version, readiness and reason.
func (d *delivery) status(want string) {
	d.t.Helper()
	d.server.await(d.t, want, "get", "-n", "payments", "twd", "checkout", "-o",
		`jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason}`)
}

// uids are what objects keep as long as nothing deletes them.
func (d *delivery) uids(args ...string) string {
	d.t.Helper()
	return d.server.Kubectl(d.t, "", append([]string{"get", "-n", "payments", "-o",
		"jsonpath={.items[*].metadata.uid}{.metadata.uid}"}, args...)...)
}

// scaled waits until the autoscaler has a version run as many replicas as its backlog needs.
func (d *delivery) scaled(buildID, replicas string) {
	d.t.Helper()
	d.server.await(d.t, replicas, "get", "-n", "payments", "deployment", "checkout-"+buildID, "-o",
		"jsonpath={.status.readyReplicas}")
}

// Argo CD applies what the bot writes, the status too, and judges the Application's health by it. So it is in ramps,
// while an old version cannot start any more, and after a gate that failed. An autoscaler owns the replicas. What is
// still needed outlives its files, the Application and the ApplicationSet.
func TestArgoCD(t *testing.T) {
	t.Parallel()
	d := deliver(t, gitHTTP(t))
	d.configure("one environment", environment("prod", "workers/*.yaml"))
	d.autoscale(laterWave)
	d.push("worker:v1")
	d.bot((*delivery).byHelm)
	var gone atomic.Bool // the backlog of v1, with its workers
	d.server.Metrics(t, func(labels labels.Set) (string, bool) {
		if labels["temporal_worker_build_id"] == "v1" {
			return "30", !gone.Load()
		}
		return "0", true
	})
	argo := d.server.ArgoCD(t)
	d.commands(documented(t, "console", "rampart argocd --repo"))
	require.NotEmpty(t, d.server.Kubectl(t, "", "get", "-n", "argocd", "configmap", "argocd-cm", "-o",
		`jsonpath={.data.resource\.customizations\.ignoreResourceUpdates\.all}`), "the rest of ArgoCD's configuration stays")

	d.waitsForItself()
	d.ready("v1")
	d.status("v1 True RolloutComplete")
	d.scaled("v1", "3")
	d.health("workers-prod", "Healthy")
	terminate := d.pinned()
	d.waitsForARamp()

	// v1 drains, and cannot be started any more. v3 rolls out all the same.
	gone.Store(true)
	d.loses("v1", "3")
	broken := func() {
		t.Helper()
		d.unavailable("v1", "3")
		d.server.await(d.t, "FailedGetExternalMetric", "get", "-n", "payments", "hpa", "-l", "temporal.io/build-id=v1", "-o",
			`jsonpath={.items[0].status.conditions[?(@.type=="ScalingActive")].reason}`)
	}
	broken()
	d.health("workers-prod", "Healthy")
	d.waitsForOldVersions()
	d.leavesReplicas(true)
	d.goesOnInARamp()
	d.scaled("v3", "2")
	broken()
	d.health("workers-prod", "Healthy")
	d.keepsWorkers()
	d.leavesReplicas(false)
	d.only("v1", "v3")
	d.missesACommit(argo, terminate)

	d.push("worker:bad")
	d.status("v3 False GateFailed")
	d.health("workers-prod", "Degraded")
	require.Equal(t, "v3", d.served())
	d.comesBack("v3")

	needed := func() string {
		return d.uids("deployment/checkout-v3") + d.uids("pods", "-l", "temporal.io/build-id=v3")
	}
	was := needed()
	d.losesAFile()
	require.Equal(t, was, needed())
	d.applicationSet()
	require.Equal(t, was, needed())
	require.Equal(t, "v3", d.served())
}

// later commits what has a later sync wave than the Application of the workers.
func (d *delivery) later(value string) {
	d.t.Helper()
	d.commit("what comes after the workers: "+value,
		map[string]string{"apps/api.yaml": "apiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: api, namespace: payments, annotations: {argocd.argoproj.io/sync-wave: \"1\"}}\ndata: {checkout: " + value + "}\n"})
}

// hasLater waits for what later committed.
func (d *delivery) hasLater(value string) {
	d.t.Helper()
	d.server.await(d.t, value, "get", "-n", "payments", "configmap", "api", "--ignore-not-found", "-o",
		"jsonpath={.data.checkout}")
}

// printed is the Application of the workers, as the command prints it.
func (d *delivery) printed() string {
	d.t.Helper()
	command, _, _ := strings.Cut(documented(d.t, "console", "rampart argocd --repo"), " |")
	application, _, _ := strings.Cut(d.commands(command), "---\n")
	return application
}

// laterWave has Argo CD apply an object after those without a wave.
const laterWave = `argocd.argoproj.io/sync-wave: "1"`

// autoscale commits the autoscaler of docs/objects.md, with annotations.
func (d *delivery) autoscale(annotations string) {
	d.t.Helper()
	d.commit("an autoscaler owns the replicas", map[string]string{"workers/scaler.yaml": strings.NewReplacer(
		"Ramping]", "Ramping, Draining]",
		"    kind: HorizontalPodAutoscaler\n",
		"    kind: HorizontalPodAutoscaler\n    metadata: {annotations: {"+annotations+"}}\n",
	).Replace(documentedIn(d.t, "objects.md", block{"yaml", "name: hpa"}))})
}

// syncing waits until a sync of the workers waits for an object.
func (d *delivery) syncing(waitsFor string) {
	d.t.Helper()
	d.server.await(d.t, "Running waiting for healthy state of "+waitsFor, "get",
		"-n", "argocd", "application", "workers-prod", "-o",
		"jsonpath={.status.operationState.phase} {.status.operationState.message}")
}

// terminates ends the sync of the workers that runs, as argocd app terminate-op does. Before that it waits until Argo
// CD knows the last commit, with which the next sync begins.
func (d *delivery) terminates() {
	d.t.Helper()
	eventually(d.t, func() error {
		got, err := d.server.kubectl(d.t, "", "get", "-n", "argocd", "application", "workers-prod", "-o",
			"jsonpath={.status.sync.revision}")
		if want := d.host.repo.Tip("main"); err == nil && got != want {
			err = fmt.Errorf("want a comparison with %s, got %s", want, got)
		}
		return err
	})
	running := func() string {
		d.t.Helper()
		return d.server.Kubectl(d.t, "", "get", "-n", "argocd", "application", "workers-prod", "-o",
			"jsonpath={.status.operationState.phase} {.status.operationState.startedAt}")
	}
	sync := running()
	started, runs := strings.CutPrefix(sync, "Running ")
	require.True(d.t, runs, sync)
	eventually(d.t, func() error { // Argo CD may write its own phase over it
		if now := running(); now != sync && !strings.HasPrefix(now, "Terminating ") {
			return nil
		}
		// Only this sync, and only while it runs: Argo CD would not end one that is over but is said to be terminating,
		// and would not start the next one again.
		_, err := d.server.kubectl(d.t, "", "patch", "-n", "argocd", "application", "workers-prod", "--type=json", "-p",
			fmt.Sprintf(`[{"op": "test", "path": "/status/operationState/startedAt", "value": %q},
			  {"op": "test", "path": "/status/operationState/phase", "value": "Running"},
			  {"op": "replace", "path": "/status/operationState/phase", "value": "Terminating"}]`, started))
		return errors.Join(errors.New("the sync goes on"), err)
	})
}

// waitsForItself has a wave after that of the spec. The sync waits for the worker deployment, whose state in Git is
// complete, and takes none of the commits that say so. Once the spec has that wave too, it ends.
func (d *delivery) waitsForItself() {
	d.t.Helper()
	d.syncing("temporal.io/TemporalWorkerDeployment/checkout")
	d.written("status.yaml", "reason: RolloutComplete", true)
	d.syncing("temporal.io/TemporalWorkerDeployment/checkout")
	d.server.await(d.t, "", "get", "-n", "payments", "hpa", "-o", "name")
	d.say("  the first sync waits for the rollout, and takes no commit that ends it: its wave has to be the autoscaler's")
	d.wave("worker:v1", laterWave)
	d.terminates()
	d.ready("v1")
	d.scaled("v1", "3")
	d.health("workers-prod", "Healthy")
	d.autoscale("")
	d.wave("worker:v1", "")
}

// wave commits a spec with annotations, and waits until the bot has them in the status, or takes the wave out of it.
func (d *delivery) wave(image, annotations string) {
	d.t.Helper()
	d.annotations = annotations
	d.push(image)
	d.written("status.yaml", laterWave, annotations != "")
}

// written waits until the bot has written a text into a file of the worker deployment, or has taken it out.
func (d *delivery) written(file, text string, want bool) {
	d.t.Helper()
	eventually(d.t, func() error {
		if strings.Contains(d.host.repo.Git("show", "main:deploy/prod/payments/checkout/"+file), text) != want {
			return fmt.Errorf("%s has %q: want %t, got %t", file, text, want, !want)
		}
		return nil
	})
}

// waitsForOldVersions has waves in the output while v1 cannot be started: the sync waits for it.
func (d *delivery) waitsForOldVersions() {
	d.t.Helper()
	d.wave("worker:v2", laterWave)
	d.syncing("apps/Deployment/checkout-v1")
	d.wave("worker:v2", "")
	d.terminates()
	d.health("workers-prod", "Healthy")
}

// leavesReplicas has Argo CD ignore the replicas of Deployments, also where it applies them.
func (d *delivery) leavesReplicas(ignored bool) {
	d.t.Helper()
	application := d.printed()
	if ignored {
		const policy = "syncPolicy: {automated: {prune: true, selfHeal: true}"
		require.Contains(d.t, application, policy)
		application = strings.Replace(application, policy,
			"ignoreDifferences: [{group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}]\n  "+
				policy+", syncOptions: [RespectIgnoreDifferences=true]", 1)
	}
	d.commit(fmt.Sprintf("ignore replicas: %t", ignored), map[string]string{"apps/workers-prod.yaml": application})
	d.health("shop", "Healthy")
}

// keepsWorkers waits until Git has no replicas for v2, which the cluster has all the same.
func (d *delivery) keepsWorkers() {
	d.t.Helper()
	d.written("versions/v2/deployment.yaml", "replicas: 0\n", true)
	d.health("workers-prod", "Healthy")
	d.scaled("v2", "2")
	d.say("  Git has no replicas for v2, and its workers go on")
}

// missesACommit stops Argo CD while v1, which has no workers, is scaled down in Git and then removed. It stays.
func (d *delivery) missesACommit(argo argoCD, terminate func()) {
	d.t.Helper()
	require.NoError(d.t, argo.controller.Process.Signal(syscall.SIGSTOP))
	terminate()
	d.removed("v1")
	require.NoError(d.t, argo.controller.Process.Signal(syscall.SIGCONT))
	eventually(d.t, func() error {
		tip := d.host.repo.Tip("main")
		want := "OutOfSync Succeeded " + tip + " true"
		got, err := d.server.kubectl(d.t, "", "get", "-n", "argocd", "application", "workers-prod", "-o",
			"jsonpath={.status.sync.status} {.status.operationState.phase} {.status.operationState.syncResult.revision} "+
				`{.status.resources[?(@.name=="checkout-v1")].requiresPruning}`)
		if err == nil && got != want {
			err = fmt.Errorf("want %q, got %q", want, got)
		}
		return err
	})
	d.only("v1", "v3")
	d.server.Kubectl(d.t, "", "delete", "-n", "payments", "deployment", "checkout-v1")
	d.health("workers-prod", "Healthy")
	d.say("  Argo CD did not see v1 scaled down in Git: its Deployment stayed until a person deleted it")
}

// waitsForARamp has a later sync wave wait for the ramp of v2. During the ramp, the Application of the workers is
// Progressing, and takes the bot's commits.
func (d *delivery) waitsForARamp() {
	d.t.Helper()
	d.commit("an Application above", map[string]string{"apps/workers-prod.yaml": d.printed()})
	d.apply(documented(d.t, "yaml", "health.argoproj.io_Application"))
	d.apply(documented(d.t, "yaml", "name: shop"))
	d.health("shop", "Healthy")
	d.steps = longStep
	d.push("worker:v2")
	d.summary("v2 v1 False Ramping")
	d.health("workers-prod", "Progressing")
	d.later("new")
	d.server.await(d.t, "Running waiting for healthy state of argoproj.io/Application/workers-prod", "get",
		"-n", "argocd", "application", "shop", "-o",
		"jsonpath={.status.operationState.phase} {.status.operationState.message}")
	d.hasLater("")
	d.steps = oneStep
	d.push("worker:v2")
	d.ready("v2")
	d.hasLater("new")
	d.health("workers-prod", "Healthy")
}

// goesOnInARamp has a later sync wave go on during the ramp of v3, as rampart.yaml says.
func (d *delivery) goesOnInARamp() {
	d.t.Helper()
	d.commit("ramps are healthy", map[string]string{"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\n" +
		strings.Replace(documented(d.t, "yaml", "rampHealth: Healthy"),
			"- name: prod\n", "- name: prod\n      specs: [\"workers/*.yaml\"]\n      output: {path: deploy/prod}\n", 1)})
	d.steps = longStep
	d.push("worker:v3")
	d.summary("v3 v2 False Ramping")
	d.health("workers-prod", "Healthy")
	d.later("newer")
	d.hasLater("newer")
	d.steps = oneStep
	d.push("worker:v3")
	d.ready("v3")
}

// losesAFile takes the Deployments out of the output while the bot is away.
func (d *delivery) losesAFile() {
	d.t.Helper()
	d.server.Kubectl(d.t, "", "scale", "-n", "rampart", "deployment", "rampart", "--replicas=0")
	d.server.await(d.t, "", "get", "-n", "rampart", "pods", "-o", "name")
	d.commit("the output without its Deployments",
		map[string]string{"deploy/prod/payments/checkout/kustomization.yaml": "resources: [status.yaml]\n"})
	d.server.await(d.t, "true", "get", "-n", "argocd", "application", "workers-prod", "-o",
		`jsonpath={.status.resources[?(@.name=="checkout-v3")].requiresPruning}`)
	d.server.await(d.t, "", "get", "-n", "payments", "hpa", "-o", "name") // the sync that prunes was there
	d.server.Kubectl(d.t, "", "scale", "-n", "rampart", "deployment", "rampart", "--replicas=1")
	d.health("workers-prod", "Degraded") // in sync again, and the gate is as it was
	d.say("  the Deployment that was not in Git was not pruned, and the bot put it back")
}

// applicationSet has an ApplicationSet take over the Application, and make that of another environment. Then it is
// deleted, and the Applications with it.
func (d *delivery) applicationSet() {
	d.t.Helper()
	d.server.Kubectl(d.t, "", "delete", "-n", "argocd", "application", "shop")
	d.apply(strings.Replace(documented(d.t, "yaml", "kind: ApplicationSet"), "requeueAfterSeconds: 60",
		"requeueAfterSeconds: 1", 1))
	applications := func(want string) {
		d.t.Helper()
		d.server.await(d.t, want, "get", "-n", "argocd", "applications", "-o",
			`jsonpath={range .items[*]}{.metadata.name} of {.metadata.ownerReferences[0].kind};{end}`)
	}
	applications("workers-prod of ApplicationSet;")

	staging, err := d.ns.Server().Namespace(d.t.Context(), "staging")
	require.NoError(d.t, err)
	d.server.Kubectl(d.t, "", "create", "namespace", "staging")
	d.commit("what staging runs", map[string]string{
		"workers/staging/connection.yaml": strings.ReplaceAll(d.connection(), "payments", "staging"),
		"workers/staging/checkout.yaml": fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: staging}
spec:
  replicas: 1
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: %s, unsafeCustomBuildID: v3}
  rollout: {strategy: AllAtOnce}
  template: {spec: {containers: [{name: worker, image: "worker:v3"}]}}
`, staging.Name()),
	})
	d.configure("a second environment",
		environment("prod", "workers/*.yaml"), environment("staging", "workers/staging/**"))
	applications("workers-prod of ApplicationSet;workers-staging of ApplicationSet;")
	d.health("workers-staging", "Healthy")

	d.commands(documented(d.t, "console", "delete -n argocd applicationset"))
	applications("")
	d.server.await(d.t, "", "get", "twd,hpa", "-A", "-o", "name")
	d.say("* a person deletes the ApplicationSet: its Applications go, and the workers stay")
}
