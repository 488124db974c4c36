package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// A value that is made of others shares them: [x, x] of [y, y] of [z, z] is three arrays with eight parts. OPA
// compares, copies and writes such values part by part, and fills the stack of the process with the parts that it
// compares. So what policies of others make is weighed as it is made, with all its parts: where there is a literal, a
// comprehension, a value of with, or the head of a rule, a call that takes from the query's budget is put beside it.
// What builtins make is taken by their costs.

// nameMade is the builtin that weighs values.
const nameMade = Prefix + "made"

// maxMade is how many parts the values that a query makes may have together. Comparing takes at most 600 bytes of the
// stack for each part; Go has 512 MiB of stack.
const maxMade = 250_000

// weighing puts calls of nameMade and nameCompared into rules.
type weighing struct {
	compiler *ast.Compiler
	// tangled are the places of equations that are refused.
	tangled []*ast.Location
	// asked are variables of the rule's head that may have values before the body, where somebody asks for one.
	asked ast.VarSet
	fresh int
}

func (w *weighing) rule(r *ast.Rule) {
	known := ast.NewVarSet()
	for _, arg := range r.Head.Args {
		AddVars(known, arg)
	}
	w.asked = askedVars(r.Head)
	ast.WalkTerms(r.Head, func(t *ast.Term) bool { // closures are in the body, as OPA compiles them
		w.closure(t, known)
		return false
	})
	made, args := madeByHead(r.Head), comparedByHead(r.Head)
	r.Body = w.body(r.Body, known)
	if len(args) > 0 {
		r.Body = renumbered(append(ast.Body{weighExpr(nameCompared, r.Head.Location, args)}, r.Body...))
	}
	if len(made) > 0 {
		r.Body = renumbered(append(r.Body, weighExpr(nameMade, r.Head.Location, made)))
	}
	if r.Else != nil {
		w.rule(r.Else)
	}
}

// madeByHead are the values that a rule adds: those of functions are their literals, of others also what they pass on,
// since a package is an object of all its rules.
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

// body puts calls before expressions with literals, and behind those with comprehensions and those that compare. known
// are the variables that have values where the body begins; those of it are added.
func (w *weighing) body(body ast.Body, known ast.VarSet) ast.Body {
	out := make(ast.Body, 0, len(body))
	var apart []*ast.Expr
	for _, x := range body {
		apart = append(apart, w.apart(x)...)
	}
	for _, x := range apart {
		compared := w.compared(x, known)
		before, after := w.expr(x, known)
		if len(before) > 0 {
			out = append(out, weighExpr(nameMade, x.Location, before))
		}
		out = append(out, x)
		if len(after) > 0 {
			out = append(out, weighExpr(nameMade, x.Location, after))
		}
		out = append(out, compared...)
	}
	return renumbered(out)
}

// expr gives what is to be weighed before and behind an expression.
func (w *weighing) expr(x *ast.Expr, known ast.VarSet) (before, after []*ast.Term) {
	for _, with := range x.With {
		before = append(before, w.knownVars(with.Value, known)...)
	}
	switch terms := x.Terms.(type) {
	case *ast.Term:
		before = append(before, w.term(terms, known)...)
	case []*ast.Term:
		for _, t := range terms[1:] {
			before = append(before, w.term(t, known)...)
		}
		after = madeByClosure(terms)
	case *ast.Every:
		before = append(before, w.term(terms.Domain, known)...)
		inner := known.Copy()
		inner.Update(terms.KeyValueVars())
		terms.Body = w.body(terms.Body, inner)
	case *ast.Not:
		terms.Body = w.body(terms.Body, known.Copy())
	case *ast.LogicalAnd: // what one side binds the other does not see
		terms.Lhs = w.body(terms.Lhs, known.Copy())
		terms.Rhs = w.body(terms.Rhs, known.Copy())
	case *ast.LogicalOr:
		terms.Lhs = w.body(terms.Lhs, known.Copy())
		terms.Rhs = w.body(terms.Rhs, known.Copy())
	}
	switch x.Terms.(type) {
	case *ast.Term, []*ast.Term:
		if !x.Negated {
			AddVars(known, x)
		}
	}
	return before, after
}

// VarOf is the variable that a term is, "" for other terms.
func VarOf(t *ast.Term) ast.Var {
	v, _ := t.Value.(ast.Var)
	return v
}

// term gives the known values that literals in a term are made of, and goes into the bodies of closures.
func (w *weighing) term(t *ast.Term, known ast.VarSet) []*ast.Term {
	var made []*ast.Term
	visitor := ast.NewGenericVisitor(func(x any) bool {
		t, ok := x.(*ast.Term)
		if !ok {
			return false
		}
		if w.closure(t, known) {
			return true
		}
		if composite(t) && !t.IsGround() {
			made = append(made, w.knownVars(t, known)...)
		}
		return composite(t)
	})
	visitor.Walk(t)
	return made
}

// knownVars are the variables in a term that have values, each as often as it is there.
func (w *weighing) knownVars(t *ast.Term, known ast.VarSet) []*ast.Term {
	var out []*ast.Term
	visitor := ast.NewGenericVisitor(func(x any) bool {
		t, ok := x.(*ast.Term)
		if !ok {
			return false
		}
		if v, ok := t.Value.(ast.Var); ok && known.Contains(v) {
			out = append(out, t)
		}
		return w.closure(t, known)
	})
	visitor.Walk(t)
	return out
}

// closure weighs what is made in the body of a comprehension, and reports whether a term is one.
func (w *weighing) closure(t *ast.Term, known ast.VarSet) bool {
	switch v := t.Value.(type) {
	case *ast.ArrayComprehension:
		v.Body = w.body(v.Body, known.Copy())
	case *ast.SetComprehension:
		v.Body = w.body(v.Body, known.Copy())
	case *ast.ObjectComprehension:
		v.Body = w.body(v.Body, known.Copy())
	case *ast.Not:
		v.Body = w.body(v.Body, known.Copy())
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
	case ast.IsComprehension(a.Value) && VarOf(b) != "":
		return []*ast.Term{b}
	case ast.IsComprehension(b.Value) && VarOf(a) != "":
		return []*ast.Term{a}
	}
	return nil
}

// AddVars adds the variables that have values once an expression was true.
func AddVars(known ast.VarSet, x any) {
	v := ast.NewVarVisitor().WithParams(ast.VarVisitorParams{SkipClosures: true, SkipRefHead: true})
	v.Walk(x)
	known.Update(v.Vars())
}

// weighExpr is a call that weighs values.
func weighExpr(name string, at *ast.Location, values []*ast.Term) *ast.Expr {
	x := ast.NewExpr([]*ast.Term{ast.NewTerm(ast.Ref{ast.VarTerm(name)}), ast.ArrayTerm(values...)})
	x.Location, x.Generated = at, true
	return x
}

// Generated reports whether an expression was generated to weigh values.
func Generated(x *ast.Expr) bool {
	terms, ok := x.Terms.([]*ast.Term)
	if !ok || !x.Generated || len(terms) < 2 {
		return false
	}
	if strings.HasPrefix(string(VarOf(terms[1])), FreshPrefix) {
		return true
	}
	ref, ok := terms[0].Value.(ast.Ref)
	return ok && len(ref) == 1 && (ref[0].Value.Compare(ast.Var(nameMade)) == 0 || ref[0].Value.Compare(ast.Var(nameCompared)) == 0)
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
		b, ok := bctx.Cancel.(*Budget)
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
func (b *Budget) make(t *ast.Term) bool {
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
