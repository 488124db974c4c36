package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/install/crds"
)

var update = flag.Bool("update", false, "rewrite testdata/differences.yaml")

// kinds are the resources of the kinds that reach a cluster.
var kinds = map[string]string{
	"WorkerDeployment": "workerdeployments", "TemporalWorkerDeployment": "temporalworkerdeployments", "Connection": "connections",
	"ClusterConnection": "clusterconnections", "TemporalConnection": "temporalconnections", "WorkerResourceTemplate": "workerresourcetemplates",
}

// difference is a document that one of validate and the API server refuses and the other takes.
type difference struct {
	// Validate and Server say "" for taken, else what is wrong.
	Validate string `json:"validate,omitempty"`
	Server   string `json:"server,omitempty"`
	// Why the difference is intended.
	Why string `json:"why"`
}

// Every object of the decoder's own tests, good and bad, is given to an API server that has the CRDs. What validate
// refuses it refuses too, but for what is listed with a reason.
func TestCRDsRefuseWhatValidateRefuses(t *testing.T) {
	t.Parallel()
	client := apply(t)
	got := map[string]difference{}
	seen := 0
	archives, err := filepath.Glob("../../gitops/api/v1alpha1/testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		require.NoError(t, err)
		for _, f := range archive.Files {
			if filepath.Ext(f.Name) == ".want" {
				continue
			}
			for i, doc := range documents(t, f.Data) {
				object, ok := parsed(doc)
				if !ok {
					continue // kubectl cannot read it either
				}
				seen++
				d := difference{Validate: refusedBy(f.Name, doc), Server: message(create(t, client, object))}
				if (d.Validate == "") != (d.Server == "") {
					got[fmt.Sprintf("%s/%s/%d", filepath.Base(name), f.Name, i+1)] = d
				}
			}
		}
	}
	require.Greater(t, seen, 40)
	var known map[string]difference
	text, err := os.ReadFile("testdata/differences.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &known))
	for key, d := range got {
		d.Why = known[key].Why
		got[key] = d
		if !*update {
			require.NotEmpty(t, d.Why, "%s: validate says %q, the server says %q", key, d.Validate, d.Server)
		}
	}
	out, err := yaml.Marshal(got)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("testdata/differences.yaml", out, 0o644))
		return
	}
	require.Equal(t, string(out), string(text))
}

// apply brings the CRDs to a new API server and waits until it serves them.
func apply(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(Start(t).Config)
	require.NoError(t, err)
	for _, doc := range documents(t, crds.All()) {
		object, ok := parsedAny(doc)
		require.True(t, ok)
		_, err := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
			Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		require.NoError(t, err, object.GetName())
	}
	for _, resource := range kinds {
		eventually(t, func() error {
			_, err := client.Resource(temporal(resource)).List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
	return client
}

func temporal(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "temporal.io", Version: "v1alpha1", Resource: resource}
}

// create gives the server an object as kubectl apply does, and keeps nothing of it.
func create(t *testing.T, client dynamic.Interface, object *unstructured.Unstructured) error {
	t.Helper()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = "default"
	}
	resource := client.Resource(temporal(kinds[object.GetKind()]))
	to := resource.Namespace(namespace)
	if object.GetKind() == "ClusterConnection" {
		to = resource
	}
	_, err := to.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// refusedBy is the first error of validate, "" for none.
func refusedBy(name string, doc []byte) string {
	_, problems := v1alpha1.Decode(name, doc)
	i := slices.IndexFunc(problems, func(p v1alpha1.Problem) bool { return p.Severity == v1alpha1.Error })
	if i < 0 {
		return ""
	}
	return strings.TrimPrefix(problems[i].Error(), name+":")
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func documents(t *testing.T, data []byte) [][]byte {
	t.Helper()
	var out [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if object, ok := parsedAny(doc); !ok || object.Object != nil { // more than comments
			out = append(out, doc)
		}
	}
}

// parsed is the object of a document of ours, as kubectl reads it.
func parsed(doc []byte) (*unstructured.Unstructured, bool) {
	object, ok := parsedAny(doc)
	return object, ok && object.GetAPIVersion() == v1alpha1.TemporalAPIVersion && kinds[object.GetKind()] != ""
}

func parsedAny(doc []byte) (*unstructured.Unstructured, bool) {
	var fields map[string]any
	if err := yaml.UnmarshalStrict(doc, &fields); err != nil {
		return nil, false
	}
	return &unstructured.Unstructured{Object: fields}, true
}
