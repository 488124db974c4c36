package policy

import (
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// A value that is made of others shares them: [x, x] of [y, y] of [z, z] is three arrays with eight parts. OPA compares, copies and
// writes such values part by part, and fills the stack of the process with the parts that it compares. So what policies of others make
// is weighed as it is made, with all its parts: where there is a literal, a comprehension, a value of with, or the head of a rule,
// a call that takes from the query's budget is put beside it. What builtins make is taken by their costs.

// nameMade is the builtin that weighs values.
const nameMade = boundedPrefix + "made"

// maxMade is how many parts the values that a query makes may have together. Comparing takes at most 600 bytes of the stack for each, of
// which Go has 512 MiB.
const maxMade = 250_000

// weighMade puts calls of nameMade into a module.
func weighMade(m *ast.Module) {
	for _, r := range m.Rules {
		weighRule(r)
	}
}

func weighRule(r *ast.Rule) {
	known := ast.NewVarSet()
	for _, arg := range r.Head.Args {
		addVars(known, arg)
	}
	ast.WalkTerms(r.Head, func(t *ast.Term) bool { // closures are in the body, as OPA compiles them
		weighClosure(t, known)
		return false
	})
	made := madeByHead(r.Head)
	r.Body = weighBody(r.Body, known)
	if len(made) > 0 {
		r.Body = renumbered(append(r.Body, madeExpr(r.Head.Location, made)))
	}
	if r.Else != nil {
		weighRule(r.Else)
	}
}

// madeByHead are the values that a rule adds: those of functions are their literals, of others also what they pass on, since a
// package is an object of all its rules.
func madeByHead(h *ast.Head) []*ast.Term {
	terms := []*ast.Term{h.Key, h.Value}
	if len(h.Reference) > 1 {
		terms = append(terms, h.Reference[1:]...)
	}
	many := h.Key != nil || !h.Reference.IsGround()
	var made []*ast.Term
	for _, t := range terms {
		switch {
		case t == nil || isScalar(t):
		case composite(t) && (many || !t.IsGround()), !composite(t) && len(h.Args) == 0:
			made = append(made, t)
		}
	}
	return made
}

func isScalar(t *ast.Term) bool { return ast.IsScalar(t.Value) }

func composite(t *ast.Term) bool {
	switch t.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		return true
	}
	return false
}

// weighBody puts calls before expressions with literals, and behind those with comprehensions. known are the variables that have values
// where the body begins; those of it are added.
func weighBody(body ast.Body, known ast.VarSet) ast.Body {
	out := make(ast.Body, 0, len(body))
	for _, x := range body {
		before, after := weighExpr(x, known)
		if len(before) > 0 {
			out = append(out, madeExpr(x.Location, before))
		}
		out = append(out, x)
		if len(after) > 0 {
			out = append(out, madeExpr(x.Location, after))
		}
	}
	return renumbered(out)
}

// weighExpr gives what is to be weighed before and behind an expression.
func weighExpr(x *ast.Expr, known ast.VarSet) (before, after []*ast.Term) {
	for _, w := range x.With {
		before = append(before, knownVars(w.Value, known)...)
	}
	switch terms := x.Terms.(type) {
	case *ast.Term:
		before = append(before, weighTerm(terms, known)...)
	case []*ast.Term:
		for _, t := range terms[1:] {
			before = append(before, weighTerm(t, known)...)
		}
		after = madeByClosure(terms)
	case *ast.Every:
		before = append(before, weighTerm(terms.Domain, known)...)
		inner := known.Copy()
		inner.Update(terms.KeyValueVars())
		terms.Body = weighBody(terms.Body, inner)
	case *ast.Not:
		terms.Body = weighBody(terms.Body, known.Copy())
	case *ast.LogicalAnd:
		inner := known.Copy()
		terms.Lhs = weighBody(terms.Lhs, inner)
		terms.Rhs = weighBody(terms.Rhs, inner)
	case *ast.LogicalOr:
		terms.Lhs = weighBody(terms.Lhs, known.Copy())
		terms.Rhs = weighBody(terms.Rhs, known.Copy())
	}
	switch x.Terms.(type) {
	case *ast.Term, []*ast.Term:
		if !x.Negated {
			addVars(known, x)
		}
	}
	return before, after
}

func varOf(t *ast.Term) ast.Var {
	v, _ := t.Value.(ast.Var)
	return v
}

// weighTerm gives the known values that literals in a term are made of, and goes into the bodies of closures.
func weighTerm(t *ast.Term, known ast.VarSet) []*ast.Term {
	var made []*ast.Term
	visitor := ast.NewGenericVisitor(func(x any) bool {
		t, ok := x.(*ast.Term)
		if !ok {
			return false
		}
		if weighClosure(t, known) {
			return true
		}
		if composite(t) && !t.IsGround() {
			made = append(made, knownVars(t, known)...)
		}
		return composite(t)
	})
	visitor.Walk(t)
	return made
}

// knownVars are the variables in a term that have values, each as often as it is there.
func knownVars(t *ast.Term, known ast.VarSet) []*ast.Term {
	var out []*ast.Term
	visitor := ast.NewGenericVisitor(func(x any) bool {
		t, ok := x.(*ast.Term)
		if !ok {
			return false
		}
		if v, ok := t.Value.(ast.Var); ok && known.Contains(v) {
			out = append(out, t)
		}
		return weighClosure(t, known)
	})
	visitor.Walk(t)
	return out
}

// weighClosure weighs what is made in the body of a comprehension, and reports whether a term is one.
func weighClosure(t *ast.Term, known ast.VarSet) bool {
	switch v := t.Value.(type) {
	case *ast.ArrayComprehension:
		v.Body = weighBody(v.Body, known.Copy())
	case *ast.SetComprehension:
		v.Body = weighBody(v.Body, known.Copy())
	case *ast.ObjectComprehension:
		v.Body = weighBody(v.Body, known.Copy())
	case *ast.Not:
		v.Body = weighBody(v.Body, known.Copy())
	default:
		return false
	}
	return true
}

// madeByClosure is what an equation with a comprehension gives.
func madeByClosure(equation []*ast.Term) []*ast.Term {
	if len(equation) != 3 {
		return nil
	}
	a, b := equation[1], equation[2]
	switch {
	case ast.IsComprehension(a.Value) && varOf(b) != "":
		return []*ast.Term{b}
	case ast.IsComprehension(b.Value) && varOf(a) != "":
		return []*ast.Term{a}
	}
	return nil
}

// addVars adds the variables that have values once an expression was true.
func addVars(known ast.VarSet, x any) {
	v := ast.NewVarVisitor().WithParams(ast.VarVisitorParams{SkipClosures: true, SkipRefHead: true})
	v.Walk(x)
	known.Update(v.Vars())
}

// madeExpr is a call that weighs values.
func madeExpr(at *ast.Location, values []*ast.Term) *ast.Expr {
	x := ast.NewExpr([]*ast.Term{ast.NewTerm(ast.Ref{ast.VarTerm(nameMade)}), ast.ArrayTerm(values...)})
	x.Location, x.Generated = at, true
	return x
}

// weighs reports whether an expression is a call that weighs values, which nobody wrote.
func weighs(x *ast.Expr) bool {
	terms, ok := x.Terms.([]*ast.Term)
	if !ok || !x.Generated || len(terms) != 2 {
		return false
	}
	ref, ok := terms[0].Value.(ast.Ref)
	return ok && len(ref) == 1 && ref[0].Value.Compare(ast.Var(nameMade)) == 0
}

// renumbered gives each expression its place.
func renumbered(body ast.Body) ast.Body {
	for i, x := range body {
		x.Index = i
	}
	return body
}

// made is the builtin that takes the parts of values from the query's budget.
func made() *topdown.Builtin {
	decl := &ast.Builtin{Name: nameMade, Decl: types.NewFunction(types.Args(types.A), types.B)}
	return &topdown.Builtin{Decl: decl, Func: func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		b, ok := bctx.Cancel.(*budget)
		if !ok {
			return topdown.Halt{Err: errNoBudget}
		}
		if !b.make(operands[0]) {
			return topdown.Halt{Err: errors.New(b.spent)}
		}
		return iter(ast.InternedTerm(true))
	}}
}

// make takes the parts of a value, and reports whether there were enough.
func (b *budget) make(t *ast.Term) bool {
	c := counter{left: b.parts}
	c.add(t)
	if b.parts = c.left; b.parts < 0 {
		b.end(fmt.Sprintf("made values of more than %d parts, or more than %d within each other", maxMade, maxValueDepth))
	}
	return b.spent == ""
}

// counter counts the parts of a value, as a tree: what is left of a number of them, until it is below zero.
type counter struct {
	left  int
	depth int
}

func (c *counter) add(t *ast.Term) {
	if c.left--; c.left < 0 {
		return
	}
	if c.depth++; c.depth > maxValueDepth {
		c.left = -1
		return
	}
	switch v := t.Value.(type) {
	case *ast.Array:
		v.Foreach(c.add)
	case ast.Set:
		v.Foreach(c.add)
	case ast.Object:
		v.Foreach(c.pair)
	}
	c.depth--
}

func (c *counter) pair(k, v *ast.Term) {
	c.add(k)
	c.add(v)
}
