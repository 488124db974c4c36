package schemas

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

func compile(t *testing.T, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("rampart.json", doc))
	out, err := c.Compile("rampart.json")
	require.NoError(t, err)
	return out
}

// violation is what a schema finds wrong with a document; "" for nothing.
func violation(t *testing.T, schema *jsonschema.Schema, text string) string {
	t.Helper()
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &object)) // YAML 1.2, in which Off is a text, as editors read it
	withoutNulls(object)
	data, err := json.Marshal(object)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	if err := schema.Validate(doc); err != nil {
		return err.Error()
	}
	return ""
}

// withoutNulls takes out fields that are null, which say nothing.
func withoutNulls(in any) {
	switch in := in.(type) {
	case map[string]any:
		for key, value := range in {
			if value == nil {
				delete(in, key)
			}
			withoutNulls(value)
		}
	case []any:
		for _, value := range in {
			withoutNulls(value)
		}
	}
}

// What validate takes, the schema of its kind and that of all kinds take too. The exceptions are the spellings of
// earlier eras and fields that are null.
func TestSchemasTakeWhatValidateTakes(t *testing.T) {
	all, seen := compile(t, All()), map[string]int{}
	look := func(name, text string) {
		documents, _ := v1alpha1.Decode(name, []byte(text))
		if len(documents) != 1 || documents[0].Object == nil || v1alpha1.HasErrors(documents[0].Problems) {
			return
		}
		early := slices.ContainsFunc(documents[0].Problems, func(p v1alpha1.Problem) bool {
			return strings.Contains(p.Message, "early spelling") || strings.Contains(p.Message, "remove it") || strings.Contains(p.Message, "unknown field")
		})
		if early || strings.Contains(text, "items:\n") && strings.Contains(text, "List") { // several in one
			return
		}
		of, ok := For(documents[0].Kind)
		require.True(t, ok, documents[0].Kind)
		require.Empty(t, violation(t, compile(t, of), text), name)
		require.Empty(t, violation(t, all, text), name)
		seen[documents[0].Kind]++
	}
	archives, err := filepath.Glob("../../gitops/api/v1alpha1/testdata/*.txtar")
	require.NoError(t, err)
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		require.NoError(t, err)
		for _, f := range archive.Files {
			for doc := range strings.SplitSeq(string(f.Data), "\n---\n") {
				look(name+"/"+f.Name, doc)
			}
		}
	}
	for _, pattern := range []string{"../../gitops/api/v1alpha1/testdata/*.yaml", "../../examples/*/*.yaml", "../../examples/*/*/*.yaml", "../../examples/*/*/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range files {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			for doc := range strings.SplitSeq(string(data), "\n---\n") {
				look(name, doc)
			}
		}
	}
	for _, kind := range Kinds() {
		require.Positive(t, seen[kind], "no example of a %s", kind)
	}
}

func TestSchemasFindMistakes(t *testing.T) {
	const good = `
apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: payments}
spec:
  template: {spec: {containers: [{name: worker, image: "worker:v1", resources: {limits: {cpu: 1, memory: 1Gi}}}]}}
  rollout: {strategy: Progressive, steps: [{rampPercentage: 5, pauseDuration: 10m}]}
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: orders}
`
	all := compile(t, All())
	require.Empty(t, violation(t, all, good))
	for _, c := range []struct{ old, now, want string }{
		{"rampPercentage", "rampPercent", "additional properties 'rampPercent' not allowed"},
		{"strategy: Progressive", "strategy: Stepwise", "value must be one of 'Manual', 'AllAtOnce', 'Progressive'"},
		{"rampPercentage: 5", "rampPercentage: 100", "exclusiveMaximum: got 100, want 100"},
		{"10m", "10 minutes", "does not match pattern"},
		{"temporalNamespace: orders", "taskQueue: orders", "missing property 'temporalNamespace'"},
		{"image: ", "imge: ", "additional properties 'imge' not allowed"},
		{"name: worker, ", "", "missing property 'name'"},
		{"cpu: 1", "cpu: true", "got boolean, want"},
		{"kind: TemporalWorkerDeployment", "kind: TemporalWorkerDeploymnt", "value must be one of 'ClusterConnection', 'Config'"},
	} {
		require.Contains(t, violation(t, all, strings.Replace(good, c.old, c.now, 1)), c.want, c.now)
	}
	for _, text := range []string{
		"{apiVersion: rampart.dev/v1alpha1, kind: Config, spec: {environments: []}}",
		"{apiVersion: rampart.dev/v1alpha1, kind: Waiver, metadata: {name: a}, spec: {rule: rollout.freeze}}",
		"{apiVersion: rampart.dev/v1alpha1, kind: Simulation, spec: {pollersAfter: soon}}",
		"{apiVersion: rampart.dev/v1alpha1, kind: Routing, metadata: {name: a}, spec: {hold: {kind: Never}}}",
		"{apiVersion: temporal.io/v1alpha1, kind: Connection, metadata: {name: a}, spec: {hostPort: temporal.example.com}}",
	} {
		require.NotEmpty(t, violation(t, all, text), text)
	}
}

func TestSchemasAreFoundByKind(t *testing.T) {
	require.Equal(t, []string{"ClusterConnection", "Config", "Connection", "Routing", "Simulation", "TemporalConnection", "TemporalWorkerDeployment", "Waiver",
		"WorkerDeployment", "WorkerResourceTemplate"}, Kinds())
	_, ok := For("Deployment")
	require.False(t, ok)
	upper, ok := For("CONFIG")
	require.True(t, ok)
	var schema struct {
		Properties struct {
			Kind struct{ Const string }
		}
	}
	require.NoError(t, json.Unmarshal(upper, &schema))
	require.Equal(t, "Config", schema.Properties.Kind.Const)
}
