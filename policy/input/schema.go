package input

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/policy/parse"
	library "github.com/rampart-gitops/rampart/rego"
)

// Node is a place in the schema of the input. Without a schema nothing is known of it.
type Node struct {
	definitions map[string]any
	Schema      map[string]any
}

// SchemaTree is the schema of the input: raw, as OPA takes it, and its root.
type SchemaTree struct {
	Raw  any
	Root Node
}

// Schema is the published schema of the input.
func Schema() SchemaTree {
	var raw map[string]any
	if err := json.Unmarshal([]byte(library.InputSchema()), &raw); err != nil {
		panic(err) // it is embedded, and tests read it
	}
	definitions, _ := raw["definitions"].(map[string]any)
	return SchemaTree{raw, Node{definitions, raw}}
}

func textsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// At is the place that a schema within this one describes, its reference followed.
func (n Node) At(v any) Node {
	schema, _ := v.(map[string]any)
	if to, ok := schema["$ref"].(string); ok {
		schema, _ = n.definitions[strings.TrimPrefix(to, "#/definitions/")].(map[string]any)
	}
	return Node{n.definitions, schema}
}

// Member is what a key or an index leads to. Not ok: an object of this kind has no such field.
func (n Node) Member(key ast.Value) (next Node, ok bool) {
	if items := n.Schema["items"]; items != nil {
		return n.At(items), true
	}
	name, isText := key.(ast.String)
	properties, _ := n.Schema["properties"].(map[string]any)
	if !isText || properties == nil {
		return n.At(n.Schema["additionalProperties"]), true
	}
	if p, there := properties[string(name)]; there {
		return n.At(p), true
	}
	return Node{}, n.Schema["additionalProperties"] != false
}

// Fields are the names of the fields that an object may have, sorted.
func (n Node) Fields() []string {
	properties, _ := n.Schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// open reports whether the node is an object with keys of people's own choice, into which OPA's type checker does not
// look.
func (n Node) open() bool {
	_, ok := n.Schema["additionalProperties"].(map[string]any)
	return ok
}

// HasNo says that a place does not have the field that a reference ends with.
func HasNo(at Node, ref ast.Ref) string {
	last := len(ref) - 1
	name := strings.Trim(ref[last].Value.String(), `"`)
	return fmt.Sprintf("%s has no %s%s", ref[:last], name, parse.Instead(name, at.Fields()))
}

// Follow goes along a reference to the input, and gives where it ends or the position of the element that is not there.
// With onlyOpen it reports what is below an open map only.
func Follow(n Node, ref ast.Ref, onlyOpen bool) (at Node, missing int) {
	passed := false
	for i, t := range ref[1:] {
		passed = passed || n.open()
		next, ok := n.Member(t.Value)
		if !ok {
			if onlyOpen && !passed {
				return Node{}, 0
			}
			return n, i + 1
		}
		n = next
	}
	return n, 0
}

// IsNever says that a place never has a value.
func IsNever(at Node, ref ast.Ref, value string) string {
	return fmt.Sprintf("%s is never %q%s", ref, value, parse.Instead(value, textsOf(at.Schema["enum"])))
}

// Allows reports whether a place may have a text for value.
func (n Node) Allows(value string) bool {
	values := textsOf(n.Schema["enum"])
	return len(values) == 0 || slices.Contains(values, value)
}

// Types are those that a place may have, by their names in JSON Schema; none: any.
func (n Node) Types() []string {
	if name, ok := n.Schema["type"].(string); ok {
		return []string{name}
	}
	return textsOf(n.Schema["type"])
}
