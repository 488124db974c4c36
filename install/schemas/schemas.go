package schemas

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/install/crds"
)

//go:embed *.yaml
var files embed.FS

// draft is the version of JSON Schema that the schemas are in.
const draft = "http://json-schema.org/draft-07/schema#"

// Kinds are those that have a schema, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(definitions())) }

// For is the JSON Schema (draft-07) of a kind, indented; false where there is no such kind. Upper and lower case do not
// matter.
func For(kind string) ([]byte, bool) {
	for name, definition := range definitions() {
		if strings.EqualFold(name, kind) {
			kubernetes := kubernetes{}
			schema := objectSchema(definition, kubernetes)
			schema["$schema"], schema["definitions"] = draft, kubernetes
			return encode(schema), true
		}
	}
	return nil, false
}

// All is one JSON Schema (draft-07) for the objects of every kind: an object's kind says which part it has to fit.
func All() []byte {
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

func encode(schema map[string]any) []byte {
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("a schema cannot be written: %v", err)) // it has nothing but maps, lists and texts
	}
	return append(out, '\n')
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
	for _, data := range slices.Concat(crds.Definitions(), crds.Read(files)) {
		var d definition
		if err := yaml.Unmarshal(data, &d); err != nil || len(d.Spec.Versions) != 1 {
			panic(fmt.Sprintf("an embedded definition of %q cannot be read: %v", d.Spec.Names.Kind, err))
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
