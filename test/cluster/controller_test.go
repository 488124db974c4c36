package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/install/crds"
)

// controllerIdentity is the controller's manager identity in Temporal: its release and namespace, and that namespace's
// UID.
const controllerIdentity = "temporal-worker-controller/temporal-system/5b1f0f6e-3f0d-4f5e-9a43-1d1f5f1f0007"

// controllerDefinitions are custom resource definitions as the controller's are. They have a status subresource, a
// status of their own, and the default that Kubernetes' type of a pod template has for the protocol of a port.
func controllerDefinitions(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, data := range crds.Definitions() {
		var d map[string]any
		require.NoError(t, yaml.Unmarshal(data, &d))
		versions, _, err := unstructured.NestedSlice(d, "spec", "versions")
		require.NoError(t, err)
		version := versions[0].(map[string]any)
		require.NoError(t, unstructured.SetNestedMap(version, map[string]any{}, "subresources", "status"))
		require.NoError(t, unstructured.SetNestedMap(version, map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			"schema", "openAPIV3Schema", "properties", "status"))
		if kind, _, _ := unstructured.NestedString(d, "spec", "names", "kind"); strings.HasSuffix(kind, "WorkerDeployment") {
			protocol := map[string]any{"type": "string", "default": "TCP"}
			containers := list(open("ports", list(open("protocol", protocol))))
			require.NoError(t, unstructured.SetNestedMap(version, open("spec", open("containers", containers)), "schema", "openAPIV3Schema", "properties", "spec", "properties", "template"))
		}
		require.NoError(t, unstructured.SetNestedSlice(d, versions, "spec", "versions"))
		text, err := yaml.Marshal(d)
		require.NoError(t, err)
		out.WriteString("---\n" + string(text))
	}
	return out.String()
}

// open is the schema of an object with one field that it knows, and list that of a list.
func open(field string, schema map[string]any) map[string]any {
	return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": map[string]any{field: schema}}
}

func list(of map[string]any) map[string]any { return map[string]any{"type": "array", "items": of} }

// controllerBuildID is the build ID of a template whose first container's image has a tag. controllerTemplateHash is
// the hash that the pods carry. Both follow the description of the controller, over the template as the API server
// gives it.
func controllerBuildID(template corev1.PodTemplateSpec) string {
	h := fnv.New32a()
	h.Write(encoded(template))
	digits := fmt.Sprintf("%04d", h.Sum32()%10000)
	_, tag, _ := strings.Cut(template.Spec.Containers[0].Image, ":")
	return tag + "-" + strings.NewReplacer("0", "4", "1", "5", "2", "6", "3", "7", "4", "8", "5", "9", "6", "b", "7", "c", "8", "d", "9", "f").Replace(digits)
}

func controllerTemplateHash(template corev1.PodTemplateSpec) string {
	return sha(string(encoded(template)))
}

func encoded(template corev1.PodTemplateSpec) []byte {
	data, err := json.Marshal(template)
	if err != nil {
		panic(err)
	}
	return bytes.TrimSpace(data)
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// workerIn is a worker deployment in the cluster.
type workerIn struct {
	Metadata struct{ UID string }
	Spec     struct {
		Template      corev1.PodTemplateSpec
		WorkerOptions struct{ UnsafeCustomBuildID string }
	}
}

func (d *delivery) worker() workerIn {
	d.t.Helper()
	var out workerIn
	require.NoError(d.t, json.Unmarshal([]byte(d.server.Kubectl(d.t, "", "get", "-n", "payments", "twd", "checkout", "-o", "json")), &out))
	return out
}

// filled is a file of testdata/controller with its values.
func (d *delivery) filled(file string, values map[string]string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "controller", file))
	require.NoError(d.t, err)
	return os.Expand(string(text), func(name string) string {
		require.Contains(d.t, values, name)
		return values[name]
	})
}

// controllerLeaves makes what a controller leaves that rolled out two versions: its objects, and the routing in
// Temporal. It gives the build ID of the current version.
func (d *delivery) controllerLeaves() (current string) {
	d.t.Helper()
	s, t := d.server, d.t
	s.Kubectl(t, "", "create", "namespace", "temporal-system")
	s.Kubectl(t, "", "create", "deployment", "-n", "temporal-system", "temporal-worker-controller-manager", "--image=ghcr.io/temporalio/temporal-worker-controller:v1.8.1")
	s.Kubectl(t, controllerDefinitions(t), "apply", "--server-side", "-f", "-")
	s.established(t)
	address := d.ns.Server().Address()
	s.Kubectl(t, d.filled("asked.yaml", map[string]string{"ADDRESS": address}), "create", "--field-manager=kubectl-client-side-apply", "-f", "-")
	live := d.worker()
	budget := strings.TrimSpace(s.Kubectl(t, "", "get", "-n", "payments", "wrt", "budget", "-o", "jsonpath={.metadata.uid}"))
	owner := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"temporal.io/v1alpha1","kind":"TemporalWorkerDeployment","name":"checkout","uid":%q,"controller":true,"blockOwnerDeletion":true}]}}`,
		live.Metadata.UID)
	s.Kubectl(t, "", "patch", "-n", "payments", "wrt", "budget", "--type=merge", "--patch", owner)
	var ids []string
	for _, image := range []string{"worker:v1", "worker:v2"} {
		template := *live.Spec.Template.DeepCopy()
		template.Spec.Containers[0].Image = image
		id := controllerBuildID(template)
		sum := sha256.Sum256([]byte("checkout" + "budget" + id))
		s.Kubectl(t, d.filled("version.yaml", map[string]string{"BUILD": id, "IMAGE": image, "UID": live.Metadata.UID, "ADDRESS": address, "BUDGET_UID": budget,
			"TEMPLATE_HASH": controllerTemplateHash(template), "CONNECTION_HASH": sha(address), "BUDGET": "checkout-budget-" + id + "-" + hex.EncodeToString(sum[:4])}),
			"create", "--field-manager=manager", "-f", "-")
		s.await(t, "2", "get", "-n", "payments", "deployment", "checkout-"+id, "-o", "jsonpath={.status.readyReplicas}")
		d.makeCurrent(id)
		ids = append(ids, id)
	}
	status, err := yaml.YAMLToJSON([]byte(d.filled("status.yaml", map[string]string{"CURRENT": ids[1], "BEFORE": ids[0], "IDENTITY": controllerIdentity})))
	require.NoError(t, err)
	s.Kubectl(t, "", "patch", "-n", "payments", "twd", "checkout", "--subresource=status", "--type=merge", "--patch", string(status))
	return ids[1]
}

// makeCurrent makes a version current as the controller does, once its workers poll.
func (d *delivery) makeCurrent(buildID string) {
	d.t.Helper()
	handle := d.client.WorkerDeploymentClient().GetHandle("payments/checkout")
	eventually(d.t, func() error {
		_, err := handle.SetManagerIdentity(d.t.Context(), client.WorkerDeploymentSetManagerIdentityOptions{ManagerIdentity: controllerIdentity, Identity: controllerIdentity})
		if err == nil {
			_, err = handle.SetCurrentVersion(d.t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: buildID, Identity: controllerIdentity})
		}
		return err
	})
}

// manager is who owns the routing in Temporal.
func (d *delivery) manager() string {
	d.t.Helper()
	description, err := d.client.WorkerDeploymentClient().GetHandle("payments/checkout").Describe(d.t.Context(), client.WorkerDeploymentDescribeOptions{})
	require.NoError(d.t, err)
	return description.Info.ManagerIdentity
}
