package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/install/crds"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// rampart is the program, built once for a test.
type rampart struct {
	file string
	dir  string
}

func build(t *testing.T) rampart {
	t.Helper()
	dir := t.TempDir()
	r := rampart{filepath.Join(dir, "rampart"), dir}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", r.file, "./cmd/rampart")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return r
}

// run gives what a command says, on both streams, and its exit code.
func (r rampart) run(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.file, args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(r.dir, "cache"), "KUBECONFIG=", "HOME="+r.dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// The definitions are installed, again without a change, and brought up to date; the in-cluster worker controller's are
// replaced only where that is asked for.
func TestInstallOfDefinitionsAndTheirUpdate(t *testing.T) {
	t.Parallel()
	server := Start(t)
	config, file := server.Config, server.Kubeconfig
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	r := build(t)
	install := func(args ...string) (string, int) {
		return r.run(t, append([]string{"crds", "--install", "--kubeconfig", file}, args...)...)
	}
	repo := gittest.NewBareRepo(t)
	repo.Commit(gittest.Commit{Write: map[string]string{"README.md": "no specs yet"}})
	doctor := func() (string, int) { return r.run(t, "doctor", "--repo", repo.URL(), "--kubeconfig", file) }

	said, code := doctor()
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "failed   cluster: custom resource definitions are missing: clusterconnections.temporal.io, connections.temporal.io")
	require.Contains(t, said, "rampart crds --install")

	said, code = install()
	require.Equal(t, 0, code, said)
	require.Equal(t, len(kinds), strings.Count(said, ".temporal.io created\n"), said)
	for _, resource := range kinds { // they are served at once
		_, err := client.Resource(temporal(resource)).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	}
	said, code = install()
	require.Equal(t, 0, code, said)
	require.Equal(t, len(kinds), strings.Count(said, ".temporal.io unchanged\n"), said)
	said, code = doctor()
	require.Equal(t, 0, code, said)
	require.Contains(t, said, "has the custom resource definitions of this release")
	require.Contains(t, said, "no in-cluster worker controller runs")

	t.Run("a later release", func(t *testing.T) {
		name := "connections.temporal.io"
		ours := definition(t, client, name).GetAnnotations()[crds.Release]
		release := func(version, listKind string) {
			d := definition(t, client, name)
			annotations := d.GetAnnotations()
			annotations[crds.Release] = version
			d.SetAnnotations(annotations)
			require.NoError(t, unstructured.SetNestedField(d.Object, listKind, "spec", "names", "listKind"))
			_, err := client.Resource(definitions).Update(t.Context(), d, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		release("99.0.0", "ConnectionList")
		said, code := install()
		require.Equal(t, 0, code, said)
		require.Contains(t, said, name+" unchanged", "a later release with the same definition")
		release("99.0.0", "Connections")
		was := definition(t, client, name).GetGeneration() // the server's own controllers change the status
		said, code = install()
		require.Equal(t, 1, code, said)
		require.Contains(t, said, "has definitions of release 99.0.0, and this binary those of "+ours+": "+name+". Nothing was changed")
		require.Equal(t, was, definition(t, client, name).GetGeneration())
		said, code = doctor()
		require.Equal(t, 0, code, said)
		require.Contains(t, said, "warning  cluster: custom resource definitions are of release 99.0.0, later than this one: "+name)
		release("0.0.1", "Connections")
		said, code = install()
		require.Equal(t, 0, code, said)
		require.Contains(t, said, name+" replaced")
		require.Equal(t, ours, definition(t, client, name).GetAnnotations()[crds.Release])
	})
	t.Run("another release", func(t *testing.T) {
		change(t, client, "connections.temporal.io", func(version map[string]any) {
			require.NoError(t, unstructured.SetNestedField(version, "of another release", "schema", "openAPIV3Schema", "description"))
		})
		said, code := doctor()
		require.Equal(t, 0, code, said)
		require.Contains(t, said, "warning  cluster: custom resource definitions are not those of this release: connections.temporal.io")
		said, code = install()
		require.Equal(t, 0, code, said)
		require.Contains(t, said, "connections.temporal.io replaced")
	})
	t.Run("the controller's", func(t *testing.T) {
		name := "workerdeployments.temporal.io"
		applyStatus(t, client, "False")
		require.Equal(t, "False", readyIn(t, client))
		change(t, client, name, func(version map[string]any) {
			require.NoError(t, unstructured.SetNestedMap(version, map[string]any{}, "subresources", "status"))
		})
		servesStatus(t, client, true)
		applyStatus(t, client, "True")
		require.Equal(t, "False", readyIn(t, client), "with the subresource the API server drops the status")
		was := definition(t, client, name).GetGeneration() // the server's own controllers change the status
		said, code := install()
		require.Equal(t, 1, code, said)
		require.Contains(t, said, name+" have a status subresource, with which the status from Git is dropped. Nothing was changed.")
		require.Contains(t, said, "--replace-controller")
		require.Equal(t, was, definition(t, client, name).GetGeneration())
		said, code = doctor()
		require.Equal(t, 1, code, said)
		require.Contains(t, said, "failed   cluster: definitions with a status subresource, as the in-cluster worker controller's are, drop the status from Git: "+name)

		controller := deployment("temporal-system", "twc-manager", "ghcr.io/temporalio/temporal-worker-controller:v1.10.1")
		deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("temporal-system")
		_, err := deployments.Create(t.Context(), controller, metav1.CreateOptions{})
		require.NoError(t, err)
		said, code = install("--replace-controller")
		require.Equal(t, 0, code, said)
		require.Contains(t, said, name+" replaced")
		require.Contains(t, said, "the in-cluster worker controller runs (temporal-system/twc-manager), and works on the same objects: scale it to 0")
		said, code = doctor()
		require.Equal(t, 1, code, said)
		require.Contains(t, said, "failed   controller: the in-cluster worker controller runs, and works on the same objects: temporal-system/twc-manager")
		_, err = deployments.Patch(t.Context(), controller.GetName(), "application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		said, code = doctor()
		require.Equal(t, 0, code, said)
		servesStatus(t, client, false)
		applyStatus(t, client, "True")
		require.Equal(t, "True", readyIn(t, client))
	})
	t.Run("a user who may do nothing", func(t *testing.T) {
		said, code := r.run(t, "crds", "--install", "--kubeconfig", kubeconfig(t, config.Host, nobody))
		require.Equal(t, 1, code)
		require.Contains(t, said, "read the custom resource definition clusterconnections.temporal.io in "+config.Host+": the kubeconfig's user may not:")
		said, code = r.run(t, "doctor", "--repo", repo.URL(), "--kubeconfig", kubeconfig(t, config.Host, nobody))
		require.Equal(t, 1, code)
		require.Contains(t, said, "let the kubeconfig's user get customresourcedefinitions")
	})
	t.Run("a wrong token", func(t *testing.T) {
		said, code := r.run(t, "crds", "--install", "--kubeconfig", kubeconfig(t, config.Host, "wrong"))
		require.Equal(t, 1, code)
		require.Contains(t, said, "the API server does not accept the kubeconfig's credentials")
	})
	t.Run("a cluster that is away", func(t *testing.T) {
		said, code := r.run(t, "crds", "--install", "--kubeconfig", kubeconfig(t, "https://127.0.0.1:1", admin))
		require.Equal(t, 1, code)
		require.Contains(t, said, "read the custom resource definition clusterconnections.temporal.io in https://127.0.0.1:1")
		require.Contains(t, said, "connection refused")
	})
	t.Run("no kubeconfig", func(t *testing.T) {
		said, code := r.run(t, "crds", "--install")
		require.Equal(t, 1, code)
		require.Contains(t, said, "no kubeconfig: give one with --kubeconfig, or as KUBECONFIG")
		said, code = r.run(t, "crds", "--install", "--kubeconfig", "nowhere")
		require.Equal(t, 1, code)
		require.Contains(t, said, "nowhere")
	})
}

func definition(t *testing.T, client dynamic.Interface, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := client.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return found
}

// change edits the version of a definition, and waits until the server serves it.
func change(t *testing.T, client dynamic.Interface, name string, edit func(version map[string]any)) {
	t.Helper()
	d := definition(t, client, name)
	versions, _, err := unstructured.NestedSlice(d.Object, "spec", "versions")
	require.NoError(t, err)
	edit(versions[0].(map[string]any))
	require.NoError(t, unstructured.SetNestedSlice(d.Object, versions, "spec", "versions"))
	_, err = client.Resource(definitions).Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func deployment(namespace, name, image string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "manager", "image": image}}}}}}}
}

const statusYAML = `
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata:
  name: checkout
  namespace: default
  annotations: {rampart.dev/target: v2, rampart.dev/current: v1, rampart.dev/ramp: 25%, rampart.dev/ready: "READY", rampart.dev/reason: RolloutComplete}
spec:
  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: worker, image: "worker:v1"}]}}
  rollout: {strategy: AllAtOnce}
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: orders}
status:
  targetVersion: {buildID: v2, status: Ramping, rampPercentage: 25}
  currentVersion: {buildID: v1, status: Current}
  conditions:
  - {type: Ready, status: "READY", reason: RolloutComplete, message: it is, lastTransitionTime: "2026-03-01T10:00:00Z"}
`

// applyStatus applies an object with its status, as ArgoCD and Flux do.
func applyStatus(t *testing.T, client dynamic.Interface, ready string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(statusYAML, "READY", ready)), &object.Object))
	_, err := client.Resource(temporal("workerdeployments")).Namespace("default").Apply(t.Context(), object.GetName(), object,
		metav1.ApplyOptions{FieldManager: "flux", Force: true})
	require.NoError(t, err)
}

// servesStatus waits until the server has the status subresource, or has it no more: it serves a definition that
// changed a moment later.
func servesStatus(t *testing.T, client dynamic.Interface, want bool) {
	t.Helper()
	eventually(t, func() error {
		_, err := client.Resource(temporal("workerdeployments")).Namespace("default").Get(t.Context(), "checkout", metav1.GetOptions{}, "status")
		if is := err == nil; is != want {
			return fmt.Errorf("serves the subresource: %t", is)
		}
		return nil
	})
}

// readyIn is the condition of the object in the cluster.
func readyIn(t *testing.T, client dynamic.Interface) any {
	t.Helper()
	object, err := client.Resource(temporal("workerdeployments")).Namespace("default").Get(t.Context(), "checkout", metav1.GetOptions{})
	require.NoError(t, err)
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	require.NoError(t, err)
	require.Len(t, conditions, 1)
	return conditions[0].(map[string]any)["status"]
}

// kubectl applies the definitions as they are printed, lists objects with their columns and waits for a condition. It
// finds nothing to change in what is applied.
func TestKubectlAppliesListsAndWaits(t *testing.T) {
	t.Parallel()
	server := Start(t)
	do := func(input string, args ...string) string { return server.Kubectl(t, input, args...) }
	run := func(input string, args ...string) (string, error) { return server.kubectl(t, input, args...) }
	require.Equal(t, len(kinds), strings.Count(do(string(crds.All()), "apply", "--server-side", "-f", "-"), "serverside-applied"))
	server.established(t)
	object := strings.ReplaceAll(statusYAML, "READY", "False")
	do(object, "apply", "--server-side", "-f", "-")
	table := strings.Fields(strings.ReplaceAll(do("", "get", "wd", "checkout"), "\n", " "))
	require.Greater(t, len(table), 13, table)
	require.Equal(t, []string{"NAME", "TARGET", "CURRENT", "RAMP", "READY", "REASON", "AGE", "checkout", "v2", "v1", "25%", "False", "RolloutComplete"}, table[:13])
	require.Contains(t, do("", "get", "temporal", "-A"), "workerdeployment.temporal.io/checkout")
	out, err := run("", "wait", "wd/checkout", "--for=condition=Ready", "--timeout=1s")
	require.ErrorContains(t, err, "exit status 1")
	require.Contains(t, out, "timed out")
	out, err = run(strings.ReplaceAll(statusYAML, "READY", "True"), "diff", "--server-side", "-f", "-")
	require.ErrorContains(t, err, "exit status 1", "it differs")
	require.Contains(t, out, `+    status: "True"`)
	do(strings.ReplaceAll(statusYAML, "READY", "True"), "apply", "--server-side", "-f", "-")
	do("", "wait", "wd/checkout", "--for=condition=Ready", "--timeout=30s")
	do(strings.ReplaceAll(statusYAML, "READY", "True"), "diff", "--server-side", "-f", "-")

	// validate's words where the schema says them.
	out, err = run(strings.Replace(object, "strategy: AllAtOnce", "strategy: Progressive", 1), "apply", "--server-side", "-f", "-")
	require.Error(t, err)
	require.Contains(t, out, "strategy Progressive needs steps")
	out, err = run(strings.Replace(object, "temporalNamespace", "temporalNamspace", 1), "apply", "--server-side", "-f", "-")
	require.Error(t, err)
	require.Contains(t, out, `temporalNamspace`)
}
