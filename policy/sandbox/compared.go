package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// OPA compares two values by unifying them part by part, each further down the stack. It evaluates what follows in the
// rule there, at the bottom: the stack that ten comparisons in a row take adds up. So in an untrusted module, a call is
// put behind each expression that compares values. The call holds their parts for as long as what follows is evaluated.

// nameCompared is the builtin that holds parts of values that were compared.
const nameCompared = Prefix + "compared"

// maxCompared is how many parts may be on the stack because they were compared. One comparison more may be there before
// it is counted, of as many as can be made.
const maxCompared = 250_000

// FreshPrefix begins the names of generated variables that hold a side of an equation. The variables that OPA generates
// begin in the same way.
const FreshPrefix = "__local_side"

// compared gives what is to be put behind an expression that compares values. known are the variables with values
// before it.
func (w *weighing) compared(x *ast.Expr, known ast.VarSet) []*ast.Expr {
	terms, ok := x.Terms.([]*ast.Term)
	if !ok || x.Negated || len(terms) < 2 {
		return nil
	}
	if !x.IsEquality() || len(terms) != 3 {
		if out := terms[len(terms)-1]; w.outputs(terms) && !isScalar(out) {
			return comparedExpr(x, w.sides(known, out))
		}
		return nil
	}
	a, b := terms[1], terms[2]
	switch {
	case isScalar(a) || isScalar(b) || w.binds(a, known) || w.binds(b, known):
		return nil
	case composite(a) && composite(b):
		if tangled(a, b, known) {
			w.tangled = append(w.tangled, x.Location)
			x.Terms = ast.BooleanTerm(false)
			return nil
		}
		return comparedExpr(x, w.sides(known, a, b))
	case VarOf(a) != "" || composite(a):
		return comparedExpr(x, w.sides(known, a))
	case VarOf(b) != "" || composite(b):
		return comparedExpr(x, w.sides(known, b))
	}
	side := a
	if ast.IsComprehension(a.Value) {
		side = b
	}
	v := w.freshVar()
	return []*ast.Expr{equation(v, side, x), weighExpr(nameCompared, x.Location, []*ast.Term{v})}
}

// apart puts the sides of an equation of two comprehensions into variables, so that what they give is weighed before it
// is compared.
func (w *weighing) apart(x *ast.Expr) []*ast.Expr {
	terms, ok := x.Terms.([]*ast.Term)
	if !ok || !x.IsEquality() || len(terms) != 3 || !ast.IsComprehension(terms[1].Value) || !ast.IsComprehension(terms[2].Value) {
		return []*ast.Expr{x}
	}
	a, b := w.freshVar(), w.freshVar()
	out := []*ast.Expr{equation(a, terms[1], x), equation(b, terms[2], x), x}
	x.Terms = []*ast.Term{terms[0], a, b}
	return out
}

func (w *weighing) freshVar() *ast.Term {
	w.fresh++
	return ast.VarTerm(fmt.Sprintf("%s%d__", FreshPrefix, w.fresh))
}

// equation gives a variable the value of a side of another equation.
func equation(v, side *ast.Term, of *ast.Expr) *ast.Expr {
	x := ast.Equality.Expr(v, side)
	x.Location, x.Generated, x.With = of.Location, true, of.With
	return x
}

func comparedExpr(x *ast.Expr, parts []*ast.Term) []*ast.Expr {
	if len(parts) == 0 {
		return nil
	}
	return []*ast.Expr{weighExpr(nameCompared, x.Location, parts)}
}

// sides are the parts of terms that are compared when they are unified with something: what has a value before, and
// what is there again.
func (w *weighing) sides(known ast.VarSet, terms ...*ast.Term) []*ast.Term {
	bound := known.Copy()
	bound.Update(w.asked)
	var out []*ast.Term
	for _, t := range terms {
		ast.WalkTerms(t, func(t *ast.Term) bool {
			v := VarOf(t)
			switch {
			case composite(t) && t.IsGround(), v != "" && bound.Contains(v):
				out = append(out, t)
			case v != "":
				bound.Add(v)
			}
			return !composite(t) || t.IsGround()
		})
	}
	return out
}

// askedVars are the variables of what a rule is asked by: its key, and the variables of its name.
func askedVars(h *ast.Head) ast.VarSet {
	out := ast.NewVarSet()
	if h.Key != nil {
		AddVars(out, h.Key)
	}
	for _, t := range h.Reference[min(1, len(h.Reference)):] {
		AddVars(out, t)
	}
	return out
}

// comparedByHead are the parts of a function's parameters that are compared with what it is given.
func comparedByHead(h *ast.Head) []*ast.Term {
	w := weighing{}
	return w.sides(ast.NewVarSet(), h.Args...)
}

// tangled reports whether sides of an equation may give each other values of more parts than are written: a variable
// that has none before is within others twice. OPA writes such values out.
func tangled(a, b *ast.Term, known ast.VarSet) bool {
	times := map[ast.Var]int{}
	for _, side := range []*ast.Term{a, b} {
		ast.WalkVars(side, func(v ast.Var) bool {
			if !known.Contains(v) && !v.IsWildcard() {
				times[v]++
			}
			return false
		})
	}
	for _, n := range times {
		if n > 2 {
			return true
		}
	}
	return false
}

// binds reports whether a side of an equation is a variable that has no value before it.
func (w *weighing) binds(t *ast.Term, known ast.VarSet) bool {
	v := VarOf(t)
	return v != "" && !known.Contains(v) && !w.asked.Contains(v)
}

// outputs reports whether the last part of a call is what it gives.
func (w *weighing) outputs(call []*ast.Term) bool {
	if f := ast.BuiltinMap[strings.TrimPrefix(call[0].Value.String(), Prefix)]; f != nil {
		return len(call)-1 > f.Decl.Arity()
	}
	ref, ok := call[0].Value.(ast.Ref)
	if !ok {
		return false
	}
	rules := w.compiler.GetRulesExact(ref)
	return len(rules) > 0 && len(call)-1 > len(rules[0].Head.Args)
}

// comparing is the builtin that holds parts of the query's budget for as long as what follows is evaluated.
func comparing() *topdown.Builtin {
	decl := &ast.Builtin{Name: nameCompared, Decl: types.NewFunction(types.Args(types.A), types.B)}
	return &topdown.Builtin{Decl: decl, Func: func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		b, ok := bctx.Cancel.(*Budget)
		if !ok {
			return topdown.Halt{Err: errNoBudget}
		}
		before := b.compared
		c := counter{left: before}
		operands[0].Value.(*ast.Array).Foreach(func(t *ast.Term) {
			if !isScalar(t) {
				c.add(t)
			}
		})
		if b.compared = c.left; b.compared < 0 {
			b.end(fmt.Sprintf("compared values of more than %d parts in one rule, or in rules that lead to each other", maxCompared))
			return topdown.Halt{Err: errors.New(b.spent)}
		}
		defer func() { b.compared = before }()
		return iter(ast.InternedTerm(true))
	}}
}
