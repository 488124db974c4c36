package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/rampart-gitops/rampart/install/crds"
)

// overlay is a folder with the overlay of docs/install.md on the base of this checkout, changed by pairs of old and new
// text.
func overlay(t *testing.T, oldNew ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	base, err := filepath.Abs(filepath.Join("..", "..", "install", "kustomize"))
	require.NoError(t, err)
	base, err = filepath.Rel(dir, base)
	require.NoError(t, err)
	text := documentedIn(t, "install.md", block{"yaml", "# kustomization.yaml"})
	oldNew = append(oldNew, "https://github.com/rampart-gitops/rampart//install/kustomize?ref=v0.1.0", base)
	for i := 0; i < len(oldNew); i += 2 {
		require.Contains(t, text, oldNew[i])
		text = strings.Replace(text, oldNew[i], oldNew[i+1], 1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	return dir
}

// The Kustomize base is what the chart renders by default, and the overlay of the page what it renders with the values
// of the page. An API server takes it where pods have to be restricted; TestKubectlApplies runs it.
func TestKustomizeBaseIsWhatTheChartRenders(t *testing.T) {
	t.Parallel()
	s := Start(t)
	chart := func(values string) map[string]any {
		cmd := exec.CommandContext(t.Context(), program(t, "helm"), "template", "rampart", filepath.Join("..", "..", "install", "chart"), "-n", "rampart", "--values", "-")
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		cmd.Stdin = strings.NewReader(values)
		out, err := cmd.Output()
		require.NoError(t, err)
		return comparable(t, out)
	}
	base := comparable(t, []byte(s.Kubectl(t, "", "kustomize", filepath.Join("..", "..", "install", "kustomize"))))
	require.Len(t, base, 3)
	require.Equal(t, chart("settings: {repo: a}"), base)

	dir := overlay(t)
	require.Equal(t, chart(documentedIn(t, "install.md", block{"yaml", "# values.yaml"})), comparable(t, []byte(s.Kubectl(t, "", "kustomize", dir))))
	s.Kubectl(t, "", "create", "namespace", "rampart")
	s.Kubectl(t, "", "label", "namespace", "rampart", "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	applied := s.Kubectl(t, "", "apply", "--server-side", "-k", dir)
	require.Contains(t, applied, "deployment.apps/rampart serverside-applied")
	require.NotContains(t, applied, "Warning", "of pod security, or of a field that is not known")
}

// comparable are the objects of a stream, by kind and name. What Helm adds, the namespace and the repository are left
// out. Lists that are by name are in the order of the names.
func comparable(t *testing.T, stream []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, doc := range documents(t, stream) {
		object, ok := parsedAny(doc)
		require.True(t, ok, "%s", doc)
		labels := object.GetLabels()
		delete(labels, "helm.sh/chart")
		delete(labels, "app.kubernetes.io/managed-by")
		object.SetLabels(labels)
		object.SetNamespace("")
		data, err := json.Marshal(inOrder(object.Object))
		require.NoError(t, err)
		var fields any
		require.NoError(t, json.Unmarshal(data, &fields)) // numbers are of one type
		out[object.GetKind()+" "+object.GetName()] = fields
	}
	return out
}

func inOrder(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, of := range v {
			v[key] = inOrder(of)
		}
	case []any:
		name := func(of any) string {
			fields, _ := of.(map[string]any)
			text, _ := fields["name"].(string)
			return text
		}
		for i := range v {
			v[i] = inOrder(v[i])
		}
		v = slices.DeleteFunc(v, func(of any) bool {
			fields, _ := of.(map[string]any)
			return name(of) == "RAMPART_REPO" && fields["value"] == "a"
		})
		slices.SortStableFunc(v, func(a, b any) int { return cmp.Compare(name(a), name(b)) })
		return v
	}
	return value
}

// The chart of the definitions renders the same files, byte by byte. Helm installs them, changes them with an upgrade,
// and keeps them, and so every object of theirs, when it goes; the in-cluster worker controller's are not taken over.
func TestDefinitionsChart(t *testing.T) {
	t.Parallel()
	s := Start(t)
	chart := filepath.Join("..", "..", "install", "chart-crds")
	rendered := s.Helm(t, "template", "rampart-crds", chart)
	for _, definition := range crds.Definitions() {
		require.True(t, strings.Contains(rendered, strings.TrimPrefix(string(definition), "---\n")), "%.300s", definition)
	}
	require.Equal(t, len(kinds), strings.Count(rendered, "\nkind: CustomResourceDefinition\n"))

	s.Helm(t, "install", "rampart-crds", chart, "-n", "default")
	s.established(t)
	client, err := dynamic.NewForConfig(s.Config)
	require.NoError(t, err)
	for _, resource := range kinds {
		_, err := client.Resource(temporal(resource)).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	}
	r := build(t)
	said, code := r.run(t, "crds", "--install", "--kubeconfig", s.Kubeconfig)
	require.Equal(t, 0, code, said)
	require.Equal(t, len(kinds), strings.Count(said, " unchanged\n"), said)
	change(t, client, "connections.temporal.io", func(version map[string]any) { delete(version, "additionalPrinterColumns") })
	s.Helm(t, "upgrade", "rampart-crds", chart, "-n", "default", "--force-conflicts")
	require.Contains(t, s.Kubectl(t, "", "get", "crd", "connections.temporal.io", "-o", "jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}"), "Host")
	require.Contains(t, s.Helm(t, "uninstall", "rampart-crds", "-n", "default"), "kept due to the resource policy")
	require.Empty(t, definition(t, client, "workerdeployments.temporal.io").GetDeletionTimestamp())

	cmd := exec.CommandContext(t.Context(), program(t, "helm"), "install", "other", chart, "-n", "default", "--kubeconfig", s.Kubeconfig)
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "those of another release, or of nobody, are not taken over unasked")
	require.Contains(t, string(out), "cannot be imported into the current release")
	s.Helm(t, "install", "other", chart, "-n", "default", "--take-ownership")

	// The controller's are taken over, whether kubectl or Helm 3 brought them.
	controllers := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: controller-crds\nversion: 1.8.1\n", "definitions.yaml": controllerDefinitions(t),
		"templates/definitions.yaml": `{{ .Files.Get "definitions.yaml" }}`,
	} {
		file := filepath.Join(controllers, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for i, bring := range []func(){
		func() { s.Kubectl(t, controllerDefinitions(t), "create", "-f", "-") },
		func() { s.Kubectl(t, controllerDefinitions(t), "apply", "--server-side", "-f", "-") },
		func() { s.helm(t, "helm3", "install", "controller-crds", controllers, "-n", "default") },
		func() { s.Helm(t, "install", "controllers-crds", controllers, "-n", "default") },
	} {
		s.Kubectl(t, "", "delete", "crd", "--all")
		bring()
		s.established(t)
		name := "workerdeployments.temporal.io"
		require.NotEmpty(t, s.Kubectl(t, "", "get", "crd", name, "-o", "jsonpath={.spec.versions[0].subresources.status}"))
		s.Helm(t, "install", fmt.Sprintf("taken-%d", i), chart, "-n", "default", "--take-ownership", "--force-conflicts")
		require.Empty(t, s.Kubectl(t, "", "get", "crd", name, "-o", "jsonpath={.spec.versions[0].subresources.status}"))
		said, code = r.run(t, "crds", "--install", "--kubeconfig", s.Kubeconfig)
		require.Equal(t, 0, code, said)
		require.Equal(t, len(kinds), strings.Count(said, " unchanged\n"), said)
	}
}
