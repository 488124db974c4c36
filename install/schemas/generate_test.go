package schemas

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/install/crds"
)

// draft is the version of JSON Schema that the schemas are in.
const draft = "http://json-schema.org/draft-07/schema#"

// TestGenerate: schema.json is what the custom resource definitions and Kubernetes' own types make. With -update it is
// written anew.
func TestGenerate(t *testing.T) {
	made := generate()
	if *update {
		require.NoError(t, os.WriteFile("schema.json", made, 0o644))
		return
	}
	require.Equal(t, string(made), string(All()), "schema.json is out of date: run the test with -update")
}

// generate makes one JSON Schema (draft-07) for the objects of every kind.
func generate() []byte {
	kubernetes := kubernetes{}
	parts := map[string]any{}
	all := definitions()
	kinds := slices.Sorted(maps.Keys(all))
	var cases []any
	for _, kind := range kinds {
		parts[kind] = objectSchema(all[kind], kubernetes)
		cases = append(cases, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"kind": map[string]any{"const": kind}}},
			"then": map[string]any{"$ref": reference(kind)},
		})
	}
	maps.Copy(parts, kubernetes)
	return encode(map[string]any{
		"$schema": draft, "type": "object", "required": []string{"apiVersion", "kind"},
		"properties":  map[string]any{"kind": map[string]any{"enum": kinds}},
		"allOf":       cases,
		"definitions": parts,
	})
}

func reference(definition string) string { return "#/definitions/" + definition }

// definition is the part of a custom resource definition that a schema is made of.
type definition struct {
	Spec struct {
		Group string                `json:"group"`
		Names struct{ Kind string } `json:"names"`
		// Versions: each definition has one.
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// definitions of every kind, by the kind.
func definitions() map[string]definition {
	out := map[string]definition{}
	names, err := filepath.Glob("rampart.dev_*.yaml")
	if err != nil {
		panic(err)
	}
	files := crds.Definitions()
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		files = append(files, data)
	}
	for _, data := range files {
		var d definition
		if err := yaml.Unmarshal(data, &d); err != nil || len(d.Spec.Versions) != 1 {
			panic(fmt.Sprintf("the definition of %q cannot be read: %v", d.Spec.Names.Kind, err))
		}
		out[d.Spec.Names.Kind] = d
	}
	return out
}

// objectSchema is the JSON Schema of a kind's objects. What it needs of Kubernetes' own types is added to the
// definitions.
func objectSchema(d definition, of kubernetes) map[string]any {
	schema := jsonSchema(d.Spec.Versions[0].Schema.OpenAPIV3Schema)
	properties := schema["properties"].(map[string]any)
	properties["apiVersion"] = map[string]any{"const": d.Spec.Group + "/" + d.Spec.Versions[0].Name}
	properties["kind"] = map[string]any{"const": d.Spec.Names.Kind}
	texts := map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	properties["metadata"] = map[string]any{"type": "object", "properties": map[string]any{
		"name": map[string]any{"type": "string"}, "namespace": map[string]any{"type": "string"}, "labels": texts,
		"annotations": texts,
	}}
	if d.Spec.Group == crds.Group {
		// the bot's, or left over from a cluster: it is not read
		properties["status"] = map[string]any{"type": "object"}
	}
	spec := properties["spec"].(map[string]any)["properties"].(map[string]any)
	if pools, ok := spec["pools"].(map[string]any); ok { // a worker deployment
		spec["strategy"] = of.schemaOf(reflect.TypeFor[appsv1.DeploymentStrategy]())
		spec["template"] = of.schemaOf(reflect.TypeFor[corev1.PodTemplateSpec]())
		pools["items"].(map[string]any)["properties"].(map[string]any)["template"] =
			of.schemaOf(reflect.TypeFor[corev1.PodTemplateSpec]())
	}
	return schema
}

// jsonSchema makes a JSON Schema (draft-07) from the schema of a custom resource definition, which is OpenAPI 3.0.
// Rules in CEL are left out.
func jsonSchema(from map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range from {
		switch key {
		case "properties":
			properties := map[string]any{}
			for name, p := range value.(map[string]any) {
				properties[name] = jsonSchema(p.(map[string]any))
			}
			out[key] = properties
		case "items", "additionalProperties":
			out[key] = jsonSchema(value.(map[string]any))
		case "exclusiveMinimum", "exclusiveMaximum": // a number in JSON Schema, and in OpenAPI a property of the bound
			out[key] = from["m"+strings.TrimPrefix(key, "exclusiveM")]
		case "minimum", "maximum":
			if from["exclusiveM"+key[1:]] == nil {
				out[key] = value
			}
		case "format":
			if value == "date-time" {
				out[key] = value
			}
		default:
			if !strings.HasPrefix(key, "x-") {
				out[key] = value
			}
		}
	}
	if out["properties"] != nil && out["additionalProperties"] == nil {
		out["additionalProperties"] = false
	}
	return out
}
