package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
	library "github.com/rampart-gitops/rampart/rego"
)

// schemaNode is a place in the schema of the input. Without a schema nothing is known of it.
type schemaNode struct {
	definitions map[string]any
	schema      map[string]any
}

// inputDocument is the schema of the input: raw, as OPA takes it, and its root.
type inputDocument struct {
	raw  any
	root schemaNode
}

func inputSchema() inputDocument {
	var raw map[string]any
	if err := json.Unmarshal([]byte(library.InputSchema()), &raw); err != nil {
		panic(err) // it is embedded, and tests read it
	}
	definitions, _ := raw["definitions"].(map[string]any)
	return inputDocument{raw, schemaNode{definitions, raw}}
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

func (n schemaNode) at(v any) schemaNode {
	schema, _ := v.(map[string]any)
	if to, ok := schema["$ref"].(string); ok {
		schema, _ = n.definitions[strings.TrimPrefix(to, "#/definitions/")].(map[string]any)
	}
	return schemaNode{n.definitions, schema}
}

// member is what a key or an index leads to. Not ok: an object of this kind has no such field.
func (n schemaNode) member(key ast.Value) (next schemaNode, ok bool) {
	if items := n.schema["items"]; items != nil {
		return n.at(items), true
	}
	name, isText := key.(ast.String)
	properties, _ := n.schema["properties"].(map[string]any)
	if !isText || properties == nil {
		return n.at(n.schema["additionalProperties"]), true
	}
	if p, there := properties[string(name)]; there {
		return n.at(p), true
	}
	return schemaNode{}, n.schema["additionalProperties"] != false
}

func (n schemaNode) fields() []string {
	properties, _ := n.schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// open reports whether the node is an object with keys of people's own choice, into which OPA's type checker does not look.
func (n schemaNode) open() bool {
	_, ok := n.schema["additionalProperties"].(map[string]any)
	return ok
}

// typeError says what OPA's type checker found in the terms of somebody who writes a policy.
func typeError(e *ast.Error) string {
	switch d := e.Details.(type) {
	case *ast.RefErrInvalidDetail:
		field, ok := d.Ref[d.Pos].Value.(ast.String)
		if !ok {
			break
		}
		var names []string
		for _, v := range d.OneOf {
			if s, ok := v.(ast.String); ok {
				names = append(names, string(s))
			}
		}
		return fmt.Sprintf("%s: %s has no %s%s", d.Ref, d.Ref[:d.Pos], string(field), instead(string(field), names))
	case *ast.RefErrUnsupportedDetail:
		return fmt.Sprintf("%s: %s is %s, which has no fields", d.Ref, d.Ref[:d.Pos+1], kindOf(d.Have))
	case *ast.UnificationErrDetail:
		return fmt.Sprintf("the two sides are never equal: %s and %s", kindOf(d.Left), kindOf(d.Right))
	}
	if e.Details == nil {
		return e.Message
	}
	parts := []string{}
	for _, line := range e.Details.Lines() {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			parts = append(parts, line)
		}
	}
	return e.Message + ": " + strings.Join(parts, ", ")
}

// inputs finds what OPA's type checker does not: fields below open maps, fields that rampart.spec is not given, and values
// that a field never has.
func (c *checker) inputs() {
	for _, m := range slices.Concat(c.library, c.policies, c.tests) {
		u := inputUse{checker: c}
		if !isTest(m.Package.Location) {
			u.pkg = packageName(m)
		}
		ast.WalkTerms(m, func(t *ast.Term) bool {
			switch v := t.Value.(type) {
			case ast.Ref:
				u.reference(t)
			case ast.Call:
				u.comparison(t.Location, v)
			}
			return false
		})
		ast.WalkExprs(m, func(e *ast.Expr) bool {
			if terms, ok := e.Terms.([]*ast.Term); ok {
				u.comparison(e.Location, terms)
			}
			return false
		})
	}
}

// inputUse checks how a module uses the input.
type inputUse struct {
	*checker
	// pkg is the module's package; "" for tests, which are asked nothing.
	pkg string
}

// reference checks one reference to the input.
func (c inputUse) reference(t *ast.Term) {
	ref := t.Value.(ast.Ref)
	if !ref[0].Equal(ast.InputRootDocument) || len(ref) < 2 {
		return
	}
	if first, ok := ref[1].Value.(ast.String); ok && c.pkg == packageSpec && !slices.Contains(specKeys(), string(first)) {
		if _, known := c.document.root.member(first); known {
			c.add(CheckInput, t.Location, "%s: a spec is judged by itself: rampart.spec sees %s", ref, strings.Join(specKeys(), ", "))
			return
		}
	}
	if at, missing := follow(c.document.root, ref, true); missing > 0 {
		c.hasNo(t.Location, at, ref[:missing+1])
	}
}

// hasNo reports that a place does not have the field that a reference ends with.
func (c *checker) hasNo(where *ast.Location, at schemaNode, ref ast.Ref) {
	c.add(CheckInput, where, "%s: %s", ref, hasNo(at, ref))
}

func hasNo(at schemaNode, ref ast.Ref) string {
	last := len(ref) - 1
	name := strings.Trim(ref[last].Value.String(), `"`)
	return fmt.Sprintf("%s has no %s%s", ref[:last], name, instead(name, at.fields()))
}

// follow goes along a reference to the input, and gives where it ends or the position of the element that is not there. With
// onlyOpen it reports what is below an open map only.
func follow(n schemaNode, ref ast.Ref, onlyOpen bool) (at schemaNode, missing int) {
	passed := false
	for i, t := range ref[1:] {
		passed = passed || n.open()
		next, ok := n.member(t.Value)
		if !ok {
			if onlyOpen && !passed {
				return schemaNode{}, 0
			}
			return n, i + 1
		}
		n = next
	}
	return n, 0
}

// comparison checks a call that compares a field with values written out, or asks for a key that is.
func (c inputUse) comparison(where *ast.Location, terms []*ast.Term) {
	if len(terms) < 3 {
		return
	}
	switch terms[0].String() {
	case ast.ObjectGet.Name:
		c.lookup(terms[1], terms[2])
	case ast.Equal.Name, ast.Equality.Name, ast.NotEqual.Name:
		c.never(where, terms[1], terms[2])
		c.never(where, terms[2], terms[1])
	case ast.Member.Name:
		switch list := terms[2].Value.(type) {
		case ast.Set:
			list.Foreach(func(t *ast.Term) { c.never(where, terms[1], t) })
		case *ast.Array:
			list.Foreach(func(t *ast.Term) { c.never(where, terms[1], t) })
		}
	}
}

// lookup checks the keys that object.get is given for a part of the input.
func (c inputUse) lookup(object, key *ast.Term) {
	ref, ok := object.Value.(ast.Ref)
	if !ok || !ref[0].Equal(ast.InputRootDocument) {
		return
	}
	for _, k := range keysOf(key) {
		ref = ref.Append(ast.StringTerm(k))
	}
	if at, missing := follow(c.document.root, ref, false); missing > 0 {
		c.hasNo(object.Location, at, ref[:missing+1])
	}
}

// never reports a value that a field of the input never has.
func (c inputUse) never(where *ast.Location, field, value *ast.Term) {
	ref, ok := field.Value.(ast.Ref)
	s, isText := value.Value.(ast.String)
	if !ok || !isText || !ref[0].Equal(ast.InputRootDocument) {
		return
	}
	at, _ := follow(c.document.root, ref, false)
	if !at.allows(string(s)) {
		c.isNever(where, at, ref, string(s))
		return
	}
	by := asked(rollout.ActionKind(s))
	if ref.String() == "input.action.kind" && c.pkg != packageSpec && contract()[c.pkg] != nil && by != c.pkg {
		c.add(CheckInput, where, "%s is never %q in %s: %s is asked about it", ref, string(s), c.pkg, by)
	}
}

func (c *checker) isNever(where *ast.Location, at schemaNode, ref ast.Ref, value string) {
	c.add(CheckInput, where, "%s", isNever(at, ref, value))
}

func isNever(at schemaNode, ref ast.Ref, value string) string {
	return fmt.Sprintf("%s is never %q%s", ref, value, instead(value, textsOf(at.schema["enum"])))
}

// allows reports whether a place may have a text for value.
func (n schemaNode) allows(value string) bool {
	values := textsOf(n.schema["enum"])
	return len(values) == 0 || slices.Contains(values, value)
}

// mocks checks what tests give for the input.
func (c *checker) mocks(m *ast.Module) {
	ast.WalkRules(m, func(r *ast.Rule) bool {
		ast.WalkWiths(r, func(w *ast.With) bool {
			target, ok := w.Target.Value.(ast.Ref)
			if !ok || !target[0].Equal(ast.InputRootDocument) {
				return false
			}
			at, missing := follow(c.document.root, target, false)
			if missing > 0 {
				c.hasNo(w.Target.Location, at, target[:missing+1])
				return false
			}
			c.mock(mocked{module: m, rule: r}, at, target, w.Value)
			return false
		})
		return false
	})
}

// mocked is where a mock is written. depth keeps functions that call each other from being followed for ever.
type mocked struct {
	module *ast.Module
	rule   *ast.Rule
	depth  int
}

// mock checks a term that stands for the part of the input that a reference names, as far as it is written out.
func (c *checker) mock(in mocked, at schemaNode, ref ast.Ref, t *ast.Term) {
	if in.depth++; at.schema == nil || in.depth > maxDepth {
		return
	}
	switch v := t.Value.(type) {
	case ast.String:
		if !at.allows(string(v)) {
			c.isNever(t.Location, at, ref, string(v))
		}
	case ast.Object:
		v.Foreach(func(k, value *ast.Term) {
			field := ref.Append(k)
			next, ok := at.member(k.Value)
			if !ok {
				c.hasNo(k.Location, at, field)
				return
			}
			c.mock(in, next, field, value)
		})
	case *ast.Array:
		for i := range v.Len() {
			next, _ := at.member(ast.InternedTerm(i).Value)
			c.mock(in, next, ref.Append(ast.InternedTerm(i)), v.Elem(i))
		}
	case ast.Var:
		if local := written(in.rule, t); local != t {
			c.mock(in, at, ref, local)
			return
		}
		c.mockRule(in, at, ref, string(v))
	case ast.Call:
		if v[0].String() == ast.ObjectUnion.Name && len(v) == 3 {
			c.mock(in, at, ref, v[1])
			c.mock(in, at, ref, v[2])
			return
		}
		c.mockRule(in, at, ref, v[0].String())
	}
}

// mockRule checks what a rule or a function of the same file gives.
func (c *checker) mockRule(in mocked, at schemaNode, ref ast.Ref, name string) {
	for _, r := range in.module.Rules {
		if headName(r) == name && len(r.Head.Ref()) == 1 && r.Head.Value != nil {
			c.mock(mocked{in.module, r, in.depth}, at, ref, r.Head.Value)
		}
	}
}
