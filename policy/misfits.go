package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// maxMisfits of a document are told.
const maxMisfits = 20

// Misfits are what in a document is in no input of policies, each with its place, at most 20. They are fields that do
// not exist, values that a field never has, values of the wrong type, a missing time and a missing kind of action.
// Other fields may be left out: an input that is written by hand has what the policies at hand look at.
func (d *Document) Misfits() []string {
	document := input.Schema()
	m := misfits{}
	if d.now.IsZero() {
		m.add("input has no now: the time of the decision in RFC 3339, such as 2026-03-03T12:00:00Z")
	}
	root := ast.Ref{ast.InputRootDocument}
	for _, f := range slices.Concat(d.subject, d.world) {
		m.field(document.Root, root, ast.StringTerm(f.Key), ast.NewTerm(f.Value))
	}
	for _, a := range d.actions {
		if len(d.actions) > 1 {
			m.about = fmt.Sprintf("action %s: ", a.id)
		}
		if a.kind == "" {
			m.add("input.action has no kind, such as Ramp or Promote")
		}
		m.field(document.Root, root, ast.InternedTerm(input.KeyAction), ast.NewTerm(a.value))
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
		m.said = append(m.said, parse.Cut(m.about+fmt.Sprintf(format, args...), parse.MaxMessage))
	}
}

// field looks at a field of an object.
func (m *misfits) field(of input.Node, ref ast.Ref, key, value *ast.Term) {
	at := ref.Append(key)
	next, ok := of.Member(key.Value)
	if !ok {
		m.add("%s", input.HasNo(of, at))
		return
	}
	m.value(next, at, value)
}

func (m *misfits) value(at input.Node, ref ast.Ref, t *ast.Term) {
	if at.Schema == nil {
		return
	}
	if want := at.Types(); len(want) > 0 && !slices.ContainsFunc(want, func(name string) bool {
		return isOf(t.Value, name)
	}) {
		with := ""
		if fields := at.Fields(); len(fields) > 0 && len(fields) <= parse.MaxOffered {
			with = " with " + strings.Join(fields, ", ")
		}
		m.add("%s is %s where %s is expected%s", ref, input.Article(t), strings.Join(want, " or "), with)
		return
	}
	switch v := t.Value.(type) {
	case ast.String:
		if !at.Allows(string(v)) {
			m.add("%s", input.IsNever(at, ref, string(v)))
		}
	case ast.Object:
		v.Foreach(func(key, value *ast.Term) { m.field(at, ref, key, value) })
	case *ast.Array:
		for i := range v.Len() {
			next, _ := at.Member(ast.InternedTerm(i).Value)
			m.value(next, ref.Append(ast.InternedTerm(i)), v.Elem(i))
		}
	}
}

// isOf reports whether a value is of a type of JSON Schema.
func isOf(v ast.Value, name string) bool {
	if n, ok := v.(ast.Number); ok && name == "integer" {
		f, err := json.Number(n).Float64()
		return err == nil && f == float64(int64(f))
	}
	return ast.ValueName(v) == name
}

// misspelled is the first reference of an expression to a field that no input has, and this one neither; nil: there is
// none.
func misspelled(body ast.Body, given ast.Value) error {
	var found error
	document := input.Schema()
	ast.WalkRefs(body, func(r ast.Ref) bool {
		if found != nil || !r[0].Equal(ast.InputRootDocument) {
			return found != nil
		}
		if at, missing := input.Follow(document.Root, r, false); missing > 0 {
			if _, err := given.Find(r[1 : missing+1]); err != nil { // that of an older version may have it
				found = fmt.Errorf("%s: %s", r, input.HasNo(at, r[:missing+1]))
			}
		}
		return false
	})
	return found
}
