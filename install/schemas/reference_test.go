package schemas

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

var update = flag.Bool("update", false, "write docs/reference.md anew")

const referencePage = "../../docs/reference.md"

// In referenceHead ' stands for a backquote.
const referenceHead = `# Fields of every object

'make crds' makes this page of the types, their comments and their defaults. [Objects](objects.md) says what they are
for, with examples.

- A field that has to be there is *required*. A default is what counts where a field is left out.
- A duration is such as '90s', '15m', '24h'. A time is such as '2026-03-01T12:00:00Z'.
- '[]' after a name means each item of a list, '.*' each value of a map.
- Every object has 'apiVersion', 'kind' and 'metadata' with 'name', 'namespace', 'labels' and 'annotations'.
`

// referenceKinds are the kinds in the order of the page. Kinds of one section are the same object under several names.
var referenceKinds = [][]string{
	{v1alpha1.KindWorkerDeployment, v1alpha1.KindTemporalWorkerDeployment},
	{v1alpha1.KindConnection, v1alpha1.KindTemporalConnection, v1alpha1.KindClusterConnection},
	{v1alpha1.KindWorkerResourceTemplate}, {v1alpha1.KindConfig}, {v1alpha1.KindWaiver}, {v1alpha1.KindRouting},
	{v1alpha1.KindSimulation},
}

// written is what a person writes at least, with each object that has defaults: decoding fills them in.
var written = map[string]string{
	v1alpha1.KindWorkerDeployment: `
metadata: {name: checkout, namespace: payments}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: payments}
  rollout:
    strategy: Progressive
    steps: [{rampPercentage: 5, pauseDuration: 10m, gate: {workflowType: Check}}]
    gate: {workflowType: Check}
    analysis: {metrics: [{name: errors, prometheus: {query: up}}]}
  sunset: {}
  template: {spec: {containers: [{name: worker, image: "worker:v1"}]}}
`,
	v1alpha1.KindConnection: "metadata: {name: temporal, namespace: payments}\nspec: {hostPort: \"temporal:7233\"}",
	v1alpha1.KindWorkerResourceTemplate: `
metadata: {name: hpa, namespace: payments}
spec:
  workerDeploymentRef: {name: checkout}
  template: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {}}}
`,
	v1alpha1.KindConfig: `
spec: {environments: [{name: prod, specs: ["workers/**"], output: {path: deploy}, managerIdentity: rampart/prod}]}
`,
	v1alpha1.KindWaiver: `
metadata: {name: freeze}
spec: {rule: rollout.freeze, reason: incident, approver: ada, expiresAt: "2026-03-01T12:00:00Z"}
`,
	v1alpha1.KindSimulation: "metadata: {name: world}\nspec: {gates: [{}], evacuations: [{}]}",
}

// TestReference: docs/reference.md says what the types say, and each field of theirs has a description. With -update it
// is written anew.
func TestReference(t *testing.T) {
	all := definitions()
	var page strings.Builder
	page.WriteString(strings.ReplaceAll(referenceHead, "'", "`"))
	seen := 0
	for _, kinds := range referenceKinds {
		seen += len(kinds)
		of := all[kinds[0]]
		fmt.Fprintf(&page, "\n## %s\n\n`apiVersion: %s/%s`\n", strings.Join(kinds, ", "), of.Spec.Group, of.Spec.Versions[0].Name)
		for _, kind := range kinds {
			root := all[kind].Spec.Versions[0].Schema.OpenAPIV3Schema
			require.Equal(t, describe(of, "spec"), describe(all[kind], "spec"), "%s and %s have one table", kinds[0], kind)
			fmt.Fprintf(&page, "\n%s\n", text(root["description"]))
		}
		table := fieldTable{t: t, defaults: defaultsOf(t, of, kinds[0]), first: map[string]string{}}
		table.page.WriteString("\n| field | type | default | |\n| --- | --- | --- | --- |\n")
		root := of.Spec.Versions[0].Schema.OpenAPIV3Schema
		table.fields("", map[string]any{"properties": map[string]any{"spec": root["properties"].(map[string]any)["spec"]}})
		page.WriteString(table.page.String())
		if status, ok := root["properties"].(map[string]any)["status"]; ok {
			fmt.Fprintf(&page, "\n### The status of a %s\n", kinds[0])
			table.page.Reset()
			table.page.WriteString("\n| field | type | | |\n| --- | --- | --- | --- |\n")
			table.fields("", map[string]any{"properties": map[string]any{"status": status}})
			page.WriteString(table.page.String())
		}
	}
	require.Len(t, all, seen, "each kind is on the page")
	if *update {
		require.NoError(t, os.WriteFile(referencePage, []byte(page.String()), 0o644))
	}
	there, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	require.Equal(t, page.String(), string(there), "%s is out of date: run the test with -update", referencePage)
}

func describe(d definition, property string) any {
	return d.Spec.Versions[0].Schema.OpenAPIV3Schema["properties"].(map[string]any)[property]
}

// fieldTable is a table of the fields of an object.
type fieldTable struct {
	t        *testing.T
	page     strings.Builder
	defaults map[string]string
	// first is where an object with these fields is described, by their schema.
	first map[string]string
}

// fields writes a row for each field of an object, and after it those of the objects in it. Objects with the same
// fields are written once.
func (f *fieldTable) fields(path string, object map[string]any) {
	properties, _ := object["properties"].(map[string]any)
	required, _ := object["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := properties[name].(map[string]any)
		at := strings.TrimPrefix(path+"."+name, ".")
		description := text(field["description"])
		require.NotEmpty(f.t, description, "the Go field of %s has no comment", at)
		inner, at := elements(field, at)
		kind := typeName(field)
		if slices.Contains(required, any(name)) {
			kind += ", *required*"
		}
		nested, err := json.Marshal(inner["properties"])
		require.NoError(f.t, err)
		same, known := f.first[string(nested)]
		if known {
			description += " Fields as those of `" + same + "`."
		}
		fmt.Fprintf(&f.page, "| `%s` | %s | %s | %s |\n", at, kind, f.defaults[at], description)
		if known || ofKubernetes(inner) {
			continue
		}
		if parts, _ := inner["properties"].(map[string]any); len(parts) > 1 {
			f.first[string(nested)] = at
		}
		f.fields(at, inner)
	}
}

// elements is the schema of what a list or a map has, and its path.
func elements(field map[string]any, at string) (map[string]any, string) {
	if items, ok := field["items"].(map[string]any); ok {
		return elements(items, at+"[]")
	}
	if values, ok := field["additionalProperties"].(map[string]any); ok {
		return elements(values, at+".*")
	}
	return field, at
}

// ofKubernetes reports whether an object names a key of a ConfigMap or a Secret, by a type of Kubernetes.
func ofKubernetes(object map[string]any) bool {
	properties, _ := object["properties"].(map[string]any)
	return slices.Equal(slices.Sorted(maps.Keys(properties)), []string{"key", "name", "optional"})
}

// typeName is a field's type, or the values that it may have.
func typeName(field map[string]any) string {
	if items, ok := field["items"].(map[string]any); ok {
		return "list of " + typeName(items)
	}
	if values, ok := field["additionalProperties"].(map[string]any); ok {
		return "map of " + typeName(values)
	}
	pattern, _ := field["pattern"].(string)
	switch values, _ := field["enum"].([]any); {
	case len(values) > 0:
		var names []string
		for _, v := range values {
			names = append(names, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(names, ", ")
	case field["format"] == "date-time":
		return "time"
	case strings.Contains(pattern, "(ns|us|µs|ms|s|m|h)"):
		return "duration"
	case ofKubernetes(field):
		return "object: `name`, `key`, `optional`"
	case field["type"] == nil:
		return "any"
	}
	return field["type"].(string)
}

// text is a description as a cell of a table.
func text(description any) string {
	s, _ := description.(string)
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`).Replace(strings.Join(strings.Fields(s), " "))
}

// defaultsOf are the defaults of a kind by the paths of their fields: what decoding adds to what is written.
func defaultsOf(t *testing.T, d definition, kind string) map[string]string {
	out := map[string]string{}
	if written[kind] == "" {
		return out
	}
	doc := fmt.Sprintf("apiVersion: %s/%s\nkind: %s\n%s", d.Spec.Group, d.Spec.Versions[0].Name, kind, strings.TrimSpace(written[kind]))
	documents, problems := v1alpha1.Decode("written.yaml", []byte(doc))
	require.False(t, v1alpha1.HasErrors(problems), "%v", problems)
	data, err := json.Marshal(documents[0].Object)
	require.NoError(t, err)
	var before, after map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(doc), &before))
	require.NoError(t, json.Unmarshal(data, &after))
	added("", before, after, out)
	return out
}

// added collects the values that are in an object and were not written.
func added(path string, before, after any, out map[string]string) {
	switch after := after.(type) {
	case map[string]any:
		was, _ := before.(map[string]any)
		for name, value := range after {
			added(strings.TrimPrefix(path+"."+name, "."), was[name], value, out)
		}
	case []any:
		was, _ := before.([]any)
		for i, value := range after {
			if i < len(was) {
				added(path+"[]", was[i], value, out)
			}
		}
	default:
		if zero := after == nil || after == "" || after == false || after == float64(0); before == nil && !zero {
			out[path] = fmt.Sprintf("`%v`", after)
		}
	}
}
