package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxMisfits of a document are told.
const maxMisfits = 20

// Misfits are what in a document is in no input of policies, each with its place, at most 20. They are fields that do
// not exist, values that a field never has, values of the wrong type, a missing time and a missing kind of action.
// Other fields may be left out: an input that is written by hand has what the policies at hand look at.
func (d *Document) Misfits() []string {
	document := inputSchema()
	m := misfits{}
	if d.now.IsZero() {
		m.add("input has no now: the time of the decision in RFC 3339, such as 2026-03-03T12:00:00Z")
	}
	input := ast.Ref{ast.InputRootDocument}
	for _, f := range slices.Concat(d.subject, d.world) {
		m.field(document.root, input, ast.StringTerm(f.key), ast.NewTerm(f.value))
	}
	for _, a := range d.actions {
		if len(d.actions) > 1 {
			m.about = fmt.Sprintf("action %s: ", a.id)
		}
		if a.kind == "" {
			m.add("input.action has no kind, such as Ramp or Promote")
		}
		m.field(document.root, input, ast.InternedTerm(keyAction), ast.NewTerm(a.value))
	}
	return m.said
}

// misfits collects them.
type misfits struct {
	// about begins what is said of one of several actions.
	about string
	said  []string
}

func (m *misfits) add(format string, args ...any) {
	if len(m.said) < maxMisfits {
		m.said = append(m.said, cut(m.about+fmt.Sprintf(format, args...), maxMessage))
	}
}

// field looks at a field of an object.
func (m *misfits) field(of schemaNode, ref ast.Ref, key, value *ast.Term) {
	at := ref.Append(key)
	next, ok := of.member(key.Value)
	if !ok {
		m.add("%s", hasNo(of, at))
		return
	}
	m.value(next, at, value)
}

func (m *misfits) value(at schemaNode, ref ast.Ref, t *ast.Term) {
	if at.schema == nil {
		return
	}
	if want := at.types(); len(want) > 0 && !slices.ContainsFunc(want, func(name string) bool { return isOf(t.Value, name) }) {
		with := ""
		if fields := at.fields(); len(fields) > 0 && len(fields) <= maxOffered {
			with = " with " + strings.Join(fields, ", ")
		}
		m.add("%s is %s where %s is expected%s", ref, article(t), strings.Join(want, " or "), with)
		return
	}
	switch v := t.Value.(type) {
	case ast.String:
		if !at.allows(string(v)) {
			m.add("%s", isNever(at, ref, string(v)))
		}
	case ast.Object:
		v.Foreach(func(key, value *ast.Term) { m.field(at, ref, key, value) })
	case *ast.Array:
		for i := range v.Len() {
			next, _ := at.member(ast.InternedTerm(i).Value)
			m.value(next, ref.Append(ast.InternedTerm(i)), v.Elem(i))
		}
	}
}

// types are those that a place may have, by their names in JSON Schema; none: any.
func (n schemaNode) types() []string {
	if name, ok := n.schema["type"].(string); ok {
		return []string{name}
	}
	return textsOf(n.schema["type"])
}

// isOf reports whether a value is of a type of JSON Schema.
func isOf(v ast.Value, name string) bool {
	if n, ok := v.(ast.Number); ok && name == "integer" {
		f, err := json.Number(n).Float64()
		return err == nil && f == float64(int64(f))
	}
	return ast.ValueName(v) == name
}

// misspelt is the first reference of an expression to a field that no input has, and this one neither; nil: there is none.
func misspelt(body ast.Body, input ast.Value) error {
	var found error
	document := inputSchema()
	ast.WalkRefs(body, func(r ast.Ref) bool {
		if found != nil || !r[0].Equal(ast.InputRootDocument) {
			return found != nil
		}
		if at, missing := follow(document.root, r, false); missing > 0 {
			if _, err := input.Find(r[1 : missing+1]); err != nil { // that of an older version may have it
				found = fmt.Errorf("%s: %s", r, hasNo(at, r[:missing+1]))
			}
		}
		return false
	})
	return found
}
