package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
)

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
		return fmt.Sprintf("%s: %s has no %s%s", d.Ref, d.Ref[:d.Pos], string(field),
			parse.Instead(string(field), names))
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

// inputs finds what OPA's type checker does not: fields below open maps, fields that rampart.spec is not given, and
// values that a field never has.
func (c *checker) inputs() {
	for _, m := range slices.Concat(c.library, c.policies, c.tests) {
		u := inputUse{checker: c}
		if !isTest(m.Package.Location) {
			u.pkg = parse.PackageName(m)
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
	if first, ok := ref[1].Value.(ast.String); ok && c.pkg == parse.PackageSpec &&
		!slices.Contains(input.SpecKeys(), string(first)) {
		if _, known := c.document.Root.Member(first); known {
			c.add(parse.CheckInput, t.Location, "%s: a spec is judged by itself: rampart.spec sees %s", ref,
				strings.Join(input.SpecKeys(), ", "))
			return
		}
	}
	if at, missing := input.Follow(c.document.Root, ref, true); missing > 0 {
		c.hasNo(t.Location, at, ref[:missing+1])
	}
}

// hasNo reports that a place does not have the field that a reference ends with.
func (c *checker) hasNo(where *ast.Location, at input.Node, ref ast.Ref) {
	c.add(parse.CheckInput, where, "%s: %s", ref, input.HasNo(at, ref))
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
	if at, missing := input.Follow(c.document.Root, ref, false); missing > 0 {
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
	at, _ := input.Follow(c.document.Root, ref, false)
	if !at.Allows(string(s)) {
		c.isNever(where, at, ref, string(s))
		return
	}
	by := parse.Asked(rollout.ActionKind(s))
	if ref.String() == "input.action.kind" && c.pkg != parse.PackageSpec && parse.Contract()[c.pkg] != nil &&
		by != c.pkg {
		c.add(parse.CheckInput, where, "%s is never %q in %s: %s is asked about it", ref, string(s), c.pkg, by)
	}
}

func (c *checker) isNever(where *ast.Location, at input.Node, ref ast.Ref, value string) {
	c.add(parse.CheckInput, where, "%s", input.IsNever(at, ref, value))
}

// mocks checks what tests give for the input.
func (c *checker) mocks(m *ast.Module) {
	ast.WalkRules(m, func(r *ast.Rule) bool {
		ast.WalkWiths(r, func(w *ast.With) bool {
			target, ok := w.Target.Value.(ast.Ref)
			if !ok || !target[0].Equal(ast.InputRootDocument) {
				return false
			}
			at, missing := input.Follow(c.document.Root, target, false)
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
func (c *checker) mock(in mocked, at input.Node, ref ast.Ref, t *ast.Term) {
	if in.depth++; at.Schema == nil || in.depth > parse.MaxDepth {
		return
	}
	switch v := t.Value.(type) {
	case ast.String:
		if !at.Allows(string(v)) {
			c.isNever(t.Location, at, ref, string(v))
		}
	case ast.Object:
		v.Foreach(func(k, value *ast.Term) {
			field := ref.Append(k)
			next, ok := at.Member(k.Value)
			if !ok {
				c.hasNo(k.Location, at, field)
				return
			}
			c.mock(in, next, field, value)
		})
	case *ast.Array:
		for i := range v.Len() {
			next, _ := at.Member(ast.InternedTerm(i).Value)
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
func (c *checker) mockRule(in mocked, at input.Node, ref ast.Ref, name string) {
	for _, r := range in.module.Rules {
		if headName(r) == name && len(r.Head.Ref()) == 1 && r.Head.Value != nil {
			c.mock(mocked{in.module, r, in.depth}, at, ref, r.Head.Value)
		}
	}
}
