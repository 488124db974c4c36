// Package schemas has JSON Schemas of every object that Rampart reads, for editors. make crds makes schema.json from
// the custom resource definitions of install/crds, and from the definitions in this folder of kinds that never reach a
// cluster.
package schemas

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed schema.json
var all []byte

// document is the part of schema.json that the schema of one kind is taken from.
type document struct {
	Draft      string `json:"$schema"`
	Properties struct {
		Kind struct{ Enum []string }
	}
	// Definitions are those of the kinds, and of Kubernetes' own types.
	Definitions map[string]map[string]json.RawMessage
}

func read() document {
	var out document
	if err := json.Unmarshal(all, &out); err != nil {
		panic(fmt.Sprintf("the embedded schema cannot be read: %v", err))
	}
	return out
}

// Kinds are those that have a schema, sorted.
func Kinds() []string { return read().Properties.Kind.Enum }

// All is one JSON Schema (draft-07) for the objects of every kind: an object's kind says which part it has to fit.
func All() []byte { return slices.Clone(all) }

// For is the JSON Schema (draft-07) of a kind, indented; false where there is no such kind. Upper and lower case do not
// matter.
func For(kind string) ([]byte, bool) {
	document := read()
	kinds := document.Properties.Kind.Enum
	i := slices.IndexFunc(kinds, func(name string) bool { return strings.EqualFold(name, kind) })
	if i < 0 {
		return nil, false
	}
	out := map[string]any{"$schema": document.Draft, "definitions": document.Definitions}
	for key, value := range document.Definitions[kinds[i]] {
		out[key] = value
	}
	if bytes.Contains(document.Definitions[kinds[i]]["properties"], []byte(`"$ref"`)) { // to types of Kubernetes
		for _, name := range kinds {
			delete(document.Definitions, name)
		}
	} else {
		clear(document.Definitions)
	}
	return encode(out), true
}

func encode(schema map[string]any) []byte {
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("a schema cannot be written: %v", err)) // it has nothing but maps, lists and texts
	}
	return append(out, '\n')
}
