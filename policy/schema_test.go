package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/input"
	library "github.com/rampart-gitops/rampart/rego"
)

const schemaFile = "../rego/schema/input.json"

// TestInputSchema compares the published schema with what it is made of. Definitions with a dot in their name (the
// package and the name of a Go type) are generated; all the rest of the file is written by hand.
func TestInputSchema(t *testing.T) {
	published, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(published, &schema))
	definitions := schema["definitions"].(map[string]any)
	maps.DeleteFunc(definitions, func(name string, _ any) bool { return strings.Contains(name, ".") })
	g := newGenerator(t)
	for _, root := range []reflect.Type{
		reflect.TypeFor[v1alpha1.WorkerDeploymentSpec](), reflect.TypeFor[v1alpha1.Waiver](),
	} {
		g.of(root)
	}
	for _, name := range references(schema) {
		if _, ok := g.source.values[name]; ok {
			g.define(name)
		}
	}
	maps.Copy(definitions, g.definitions)
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(schema))
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, got.Bytes(), 0o600))
		return
	}
	require.Equal(t, string(published), got.String(), "write it anew with -update")
	require.Equal(t, string(published), library.InputSchema())
	for _, name := range references(schema) {
		require.Contains(t, definitions, name)
	}
	require.ElementsMatch(t, input.SubjectKeys(), schema["required"], "what rampart.spec sees is always there")
	for name := range definitions {
		require.Contains(t, references(schema), name, "a definition that nothing refers to")
	}
}

// TestInputsFitTheSchema: what the schema does not allow is never in an input, and what it offers may be.
func TestInputsFitTheSchema(t *testing.T) {
	testneed.Plain(t)
	inputs := exampleInputs(t)
	for name, input := range inputs {
		require.Empty(t, violations(t, library.InputSchema(), input), name)
	}
	require.Empty(t, neverSeen(t, library.InputSchema(), inputs), "the schema offers fields that are in no input")
}

// TestInputsAreNoMisfits checks that what policies see has no misfits: neither with one action nor as it is recorded.
func TestInputsAreNoMisfits(t *testing.T) {
	testneed.Plain(t)
	for name, input := range exampleInputs(t) {
		text, err := json.Marshal(input)
		require.NoError(t, err)
		d, err := DecodeDocument(text)
		if err != nil {
			require.ErrorContains(t, err, "neither actions nor action", name) // about a spec
			continue
		}
		if d.now.IsZero() { // a snapshot of nothing
			d.now = time.Unix(1, 0)
		}
		require.Empty(t, d.Misfits(), name)
		d.now = time.Time{}
		d.actions[0].value = ast.NewObject([2]*ast.Term{ast.StringTerm("knd"), ast.StringTerm("Ramp")})
		require.Len(t, d.Misfits(), 2, name)
	}
}

// Both directions are checked by something that fails.
func TestSchemaThatDoesNotFit(t *testing.T) {
	inputs := exampleInputs(t)
	change := func(edit func(schema map[string]any)) string {
		var schema map[string]any
		require.NoError(t, json.Unmarshal([]byte(library.InputSchema()), &schema))
		edit(schema)
		b, err := json.Marshal(schema)
		require.NoError(t, err)
		return string(b)
	}
	properties := func(schema map[string]any, definition string) map[string]any {
		return schema["definitions"].(map[string]any)[definition].(map[string]any)["properties"].(map[string]any)
	}
	missing := change(func(s map[string]any) { delete(properties(s, "routing"), "propagating") })
	require.Contains(t, violations(t, missing, inputs["filled Ramp"]), "routing: Additional property propagating is not allowed")
	missing = change(func(s map[string]any) { delete(properties(s, "core.Container"), "image") })
	require.Contains(t, violations(t, missing, inputs["filled Ramp"]),
		"deployment.spec.template.spec.containers.0: Additional property image is not allowed")
	wrong := change(func(s map[string]any) { properties(s, "count")["n"] = map[string]any{"type": "string"} })
	require.NotEmpty(t, violations(t, wrong, inputs["filled Ramp"]))
	extra := change(func(s map[string]any) { properties(s, "queue")["depth"] = map[string]any{"type": "integer"} })
	require.Equal(t, []string{"#/definitions/queue/depth"}, neverSeen(t, extra, inputs))
	extra = change(func(s map[string]any) {
		properties(s, "core.Container")["colour"] = map[string]any{"type": "string"}
		s["properties"].(map[string]any)["action"].(map[string]any)["properties"].(map[string]any)["mood"] = map[string]any{"type": "string"}
	})
	require.Equal(t, []string{"#/definitions/core.Container/colour", "#/properties/action/mood"}, neverSeen(t, extra, inputs))
}

// exampleInputs are inputs with all fields filled, for each kind of action, and the fixtures that there are, by name.
func exampleInputs(t *testing.T) map[string]any {
	t.Helper()
	out := map[string]any{}
	add := func(name string, s rollout.Snapshot, p rollout.Proposal, a rollout.Action) {
		v, err := inputOf(s, p, a)
		require.NoError(t, err)
		var plain any
		require.NoError(t, json.Unmarshal(indented(t, v), &plain))
		out[name] = plain
	}
	f := filler{readSource(t)}
	var s, unread rollout.Snapshot
	var p rollout.Proposal
	var a rollout.Action
	for _, to := range []any{&s, &unread, &p, &a} {
		f.fill(t, reflect.ValueOf(to).Elem())
	}
	s.Observation.Problem, s.FirstRead.Problem, s.Cluster.Problem = nil, nil, ""
	add("unread", unread, p, a)
	for _, kind := range f.source.values["rollout.ActionKind"] {
		a.Kind = rollout.ActionKind(kind)
		add("filled "+kind, s, p, a)
	}
	uncompared := p
	uncompared.Canary, uncompared.Target = nil, nil
	add("not judged", s, uncompared, a)
	for _, action := range proposal().Actions {
		add("fixture "+action.ID, snapshot(t), proposal(), action)
	}
	start := ramp()
	start.From, start.To, start.Step = 0, 10, 1
	begins := snapshot(t)
	begins.Observation.Routing.HasRamp, begins.Rollouts = false, s.Rollouts
	add("a rollout begins", begins, proposal(start), start)
	least := rollout.Snapshot{Deployment: s.Deployment, Environment: v1alpha1.Environment{Name: "prod"}}
	add("as little as there can be", least, rollout.Proposal{}, rollout.Action{Kind: rollout.Continue})
	golden, err := txtar.ParseFile("testdata/input.txtar")
	require.NoError(t, err)
	for _, file := range golden.Files {
		var plain any
		require.NoError(t, json.Unmarshal(file.Data, &plain))
		out["golden "+file.Name] = plain
	}
	return out
}

func violations(t *testing.T, schema string, input any) []string {
	t.Helper()
	var s any
	require.NoError(t, json.Unmarshal([]byte(schema), &s))
	rs, err := rego.New(rego.Query(`[_, errors] = json.match_schema(input.document, input.schema)`),
		rego.Input(map[string]any{"document": input, "schema": s}), rego.StrictBuiltinErrors(true)).Eval(t.Context())
	require.NoError(t, err)
	require.Len(t, rs, 1)
	out := []string{}
	for _, e := range rs[0].Bindings["errors"].([]any) {
		out = append(out, e.(map[string]any)["error"].(string))
	}
	slices.Sort(out)
	return out
}

// neverSeen are the properties that a schema names and that no input has.
func neverSeen(t *testing.T, text string, inputs map[string]any) []string {
	t.Helper()
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &schema))
	seen := map[string]bool{}
	c := coverage{schema["definitions"].(map[string]any), seen}
	for _, input := range inputs {
		c.walk("#", schema, input)
	}
	maps.DeleteFunc(seen, func(_ string, there bool) bool { return there })
	return slices.Sorted(maps.Keys(seen))
}

// coverage says of each property of a schema that is met on the way whether it was there.
type coverage struct {
	definitions map[string]any
	seen        map[string]bool
}

func (c coverage) walk(at string, schema map[string]any, v any) {
	if to, ok := schema["$ref"].(string); ok {
		c.walk(to, c.definitions[strings.TrimPrefix(to, "#/definitions/")].(map[string]any), v)
		return
	}
	switch v := v.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range v {
			c.walk(at+"/items", items, item)
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			value, there := v[name]
			mark := strings.TrimSuffix(at, "#") + "/" + name
			if at == "#" {
				mark = "#/properties/" + name
			}
			c.seen[mark] = c.seen[mark] || there
			if there {
				c.walk(mark, p.(map[string]any), value)
			}
		}
		more, _ := schema["additionalProperties"].(map[string]any)
		for name, value := range v {
			if _, ok := properties[name]; !ok && more != nil {
				c.walk(at+"/additionalProperties", more, value)
			}
		}
	}
}

// references are the definitions that a schema refers to, sorted.
func references(schema any) []string {
	found := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if to, ok := v["$ref"].(string); ok {
				found[strings.TrimPrefix(to, "#/definitions/")] = true
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(schema)
	return slices.Sorted(maps.Keys(found))
}
