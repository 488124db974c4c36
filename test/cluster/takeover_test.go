package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// running is what must stay the same when somebody else takes over. That is each Deployment with its whole spec and the
// revision of its pods, its ReplicaSets with their generation, the pods with the restarts of their containers, and the
// objects of templates. (The generation of a Deployment moves with its annotations too.)
func (d *delivery) running(selector string) string {
	d.t.Helper()
	out := ""
	for resource, what := range map[string]string{
		"deployments":          `{.metadata.uid} revision {.metadata.annotations.deployment\.kubernetes\.io/revision} {.spec}`,
		"replicasets":          `{.metadata.uid} generation {.metadata.generation} replicas {.spec.replicas}`,
		"pods":                 `{.metadata.uid} restarts {.status.containerStatuses[0].restartCount}`,
		"poddisruptionbudgets": `{.metadata.uid} {.spec}`,
	} {
		out += d.server.Kubectl(d.t, "", "get", "-n", "payments", resource, "-l", selector, "-o", "jsonpath={range .items[*]}"+resource+" {.metadata.name} "+what+`{"\n"}{end}`)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestTakeover follows the guide to take over what the in-cluster controller left in the cluster and in Temporal. It
// follows the other one to give it back. No pod restarts on either way. In between the bot rolls out the next version.
func TestTakeover(t *testing.T) {
	t.Parallel()
	d := prepare(t, gitHTTP(t))
	current := d.controllerLeaves()
	const all = "temporal.io/deployment-name=checkout"
	were := d.running(all)
	require.Equal(t, 2, strings.Count(were, "revision 1 "), were)
	require.Equal(t, 4, strings.Count(were, "restarts 0"), were)
	same := func() { t.Helper(); require.Equal(t, were, d.running(all)) }

	g := d.guide("from-the-controller.md")
	g.follow() // stop the controller
	g.follow() // import, commit, push
	again, code := g.run("kubectl get -n payments temporalworkerdeployments,temporalconnections,workerresourcetemplates,deployments -o yaml | rampart import")
	require.Zero(t, code, again)
	require.NotContains(t, again, "written")
	require.Equal(t, 8, strings.Count(again, "unchanged "), again)
	g.follow() // kubectl diff
	d.differsByAnnotationsAlone(g)
	g.follow() // let go of the controller's objects
	same()
	g.follow() // definitions, kubectl apply
	same()
	require.Equal(t, controllerIdentity, d.manager())
	g.follow() // adopt
	require.Equal(t, "rampart/default", d.manager())
	d.bot((*delivery).byHelm)
	eventually(t, func() error { return d.inGit("deploy/payments/checkout/status.yaml") })
	g.follow() // apply the status
	g.done()
	same()
	require.Empty(t, d.ns.RoutingChanges("payments/checkout"), "the bot moved no traffic")
	require.Equal(t, current, d.served())

	next := d.nextVersion(g)
	require.Equal(t, next, d.served())
	require.Subset(t, strings.Split(d.running(all), "\n"), strings.Split(were, "\n"), "the versions before stay as they are")
	were = d.running(all)
	require.Equal(t, 3, strings.Count(were, "revision 1 "), were)

	g = d.guide("to-the-controller.md")
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "controller-crds.yaml"), []byte(controllerDefinitions(t)), 0o600))
	g.follow() // stop the bot, release
	require.Empty(t, d.manager())
	same()
	g.follow() // definitions
	d.server.established(t)
	g.follow() // export, twice
	same()
	d.controllerSees(next)
	g.follow() // start the controller
	g.done()
	same()
	require.Equal(t, next, d.served())
}

// differsByAnnotationsAlone holds that nothing but annotations of objects would change.
func (d *delivery) differsByAnnotationsAlone(g *guide) {
	d.t.Helper()
	said, code := g.run("kubectl diff --server-side -k deploy")
	require.Equal(d.t, 1, code, said)
	for line := range strings.Lines(said) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") {
			continue
		}
		require.Contains(d.t, []string{"-  generation: 1", "+  generation: 2", "+    argocd.argoproj.io/sync-options: Prune=false,Delete=false",
			"+    helm.sh/resource-policy: keep", "+    kustomize.toolkit.fluxcd.io/prune: disabled"}, line, said)
	}
}

// nextVersion pushes a spec with the next image, waits until the bot has rolled it out, and gives its build ID.
func (d *delivery) nextVersion(g *guide) string {
	d.t.Helper()
	stop := d.pipeline("-k")
	defer stop()
	_, code := g.run("git pull -q && sed -i 's/worker:v2/worker:v3/; s/pauseDuration: 30s/pauseDuration: 2s/' workers/payments/checkout.yaml && git commit -qam 'Roll out v3' && until git push -q; do git pull -q --rebase; done")
	require.Zero(d.t, code)
	d.server.await(d.t, "True RolloutComplete worker:v3", "get", "-n", "payments", "twd", "checkout", "-o",
		`jsonpath={.metadata.annotations.rampart\.dev/ready} {.metadata.annotations.rampart\.dev/reason} {.spec.template.spec.containers[0].image}`)
	_, code = g.run("git pull -q && sed -i 's/pauseDuration: 2s/pauseDuration: 30s/' workers/payments/checkout.yaml && git commit -qam 'Pause as long as the controller does at least' && until git push -q; do git pull -q --rebase; done")
	require.Zero(d.t, code)
	return strings.TrimSpace(d.server.Kubectl(d.t, "", "get", "-n", "payments", "twd", "checkout", "-o", `jsonpath={.metadata.annotations.rampart\.dev/current}`))
}

// controllerSees looks at the objects as the controller would, by its description. It finds the Deployments by their
// owner, knows the spec's version among them, and finds neither the template nor the connection changed. A change of
// either would restart pods.
func (d *delivery) controllerSees(target string) {
	d.t.Helper()
	live := d.worker()
	id := live.Spec.WorkerOptions.UnsafeCustomBuildID
	if id == "" {
		id = controllerBuildID(live.Spec.Template)
	}
	require.Equal(d.t, target, id)
	get := func(object, path string) string {
		d.t.Helper()
		return d.server.Kubectl(d.t, "", "get", "-n", "payments", object, "-l", "temporal.io/deployment-name=checkout", "-o", "jsonpath="+path)
	}
	require.Equal(d.t, strings.Repeat("TemporalWorkerDeployment checkout "+live.Metadata.UID+" true;", 3),
		get("deployments", `{range .items[*]}{.metadata.ownerReferences[0].kind} {.metadata.ownerReferences[0].name} {.metadata.ownerReferences[0].uid} {.metadata.ownerReferences[0].controller};{end}`))
	require.Contains(d.t, get("deployments", `{range .items[*]}{.metadata.labels.temporal\.io/build-id} {.spec.template.metadata.annotations.temporal\.io/pod-template-spec-hash};{end}`),
		target+" "+controllerTemplateHash(live.Spec.Template)+";", "no drift of the template")
	require.Equal(d.t, strings.Repeat(sha(d.ns.Server().Address())+";", 3),
		get("deployments", `{range .items[*]}{.spec.template.metadata.annotations.temporal\.io/connection-spec-hash};{end}`), "no drift of the connection")
}

// A Deployment without versions becomes a worker deployment by following the guide: its pods stay until the first
// version has taken over.
func TestPlainDeployment(t *testing.T) {
	t.Parallel()
	d := prepare(t, gitHTTP(t))
	d.server.Kubectl(t, plainDeployment(d), "apply", "-f", "-")
	d.server.await(t, "2", "get", "-n", "payments", "deployment", "checkout", "-o", "jsonpath={.status.readyReplicas}")
	were := d.running("app=checkout")
	g := d.guide("from-plain-deployments.md")
	_, code := g.run("rampart crds --install")
	require.Zero(t, code)
	d.bot((*delivery).byHelm)
	stop := d.pipeline("-k")
	defer stop()
	g.follow()                                                                                         // import
	_, code = g.run("sed -i 's/pauseDuration: 10m/pauseDuration: 1s/' workers/payments/checkout.yaml") // a test does not wait that long
	require.Zero(t, code)
	g.follow() // commit, push
	d.server.await(t, "True", "get", "-n", "payments", "twd", "checkout", "-o", `jsonpath={.metadata.annotations.rampart\.dev/ready}`)
	require.Subset(t, strings.Split(d.running("app=checkout"), "\n"), strings.Split(were, "\n"))
	g.follow() // wait
	require.Regexp(t, `^v1-`, d.served())
	changes := d.ns.RoutingChanges("payments/checkout")
	require.Len(t, changes, 3, changes)
	require.Regexp(t, `^ramp v1-[0-9a-f]+ 10$`, changes[0], "unversioned workers had the traffic")
	g.follow() // scale down, delete
	g.done()
	require.Regexp(t, `^v1-`, d.served())
}

func plainDeployment(d *delivery) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout, namespace: payments, labels: {app: checkout}}
spec:
  replicas: 2
  selector: {matchLabels: {app: checkout}}
  template:
    metadata: {labels: {app: checkout}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: worker
        image: worker:plain
        env:
        - {name: TEMPORAL_ADDRESS, value: "` + d.ns.Server().Address() + `"}
        - {name: TEMPORAL_NAMESPACE, value: orders}
`
}
