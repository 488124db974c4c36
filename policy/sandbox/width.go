package sandbox

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxWidth is how many parts a value may have that is made of values written in a policy: [x, x] has four if x is [y,
// y]. OPA copies such values part by part, and looks at their types part by part when it compiles them; nothing can
// stop it meanwhile. What data brings counts once, as it is shared.
const maxWidth = 100_000

// CheckWidth is a stage of compiling that refuses values of too many parts.
func CheckWidth(c *ast.Compiler) *ast.Error {
	sorted, ok := c.Graph.Sort()
	if !ok {
		return nil // it is recursive, which the compiler refuses
	}
	all := ruleWidths{functions: map[string]width{}, rules: map[string]float64{}, within: map[string]float64{}}
	for _, node := range sorted {
		rule, ok := node.(*ast.Rule)
		if !ok {
			continue
		}
		w := newWidths(rule, all)
		total := w.all()
		for r := rule; r != nil; r = r.Else {
			total = max(total, all.add(r, w))
		}
		if total > maxWidth {
			return &ast.Error{Code: ast.CompileErr, Location: rule.Location,
				Message: fmt.Sprintf("a value of more than %d parts: values that are within others many times over", maxWidth)}
		}
	}
	return nil
}

// ruleWidths are the widths of what rules give, by their paths.
type ruleWidths struct {
	functions map[string]width
	// rules are those that are no functions, those of a path together; within are what they are in, such as packages,
	// each with all that is in it.
	rules, within map[string]float64
}

// add notes what a rule gives, and gives how wide it is.
func (a ruleWidths) add(r *ast.Rule, w *widths) float64 {
	var value width
	for _, t := range []*ast.Term{r.Head.Key, r.Head.Value} {
		if t != nil {
			value = value.plus(w.of(t), 1)
		}
	}
	path := r.Ref().GroundPrefix()
	if len(r.Head.Args) > 0 {
		name := path.String()
		a.functions[name] = a.functions[name].or(value)
		return a.functions[name].sum()
	}
	before := width{a.rules[path.String()]}
	all := before.or(value).sum()
	a.rules[path.String()] = all
	for i := range path {
		a.within[path[:i].String()] += all - before[0]
	}
	return all
}

// of is the width of what a reference leads to: that of the rule, or of what the rule is in, or of what is in the rule.
func (a ruleWidths) of(r ast.Ref) float64 {
	r = r.GroundPrefix()
	for i := len(r); i > 1; i-- {
		if n := a.rules[r[:i].String()]; n > 0 {
			return n
		}
	}
	return max(a.within[r.String()], 1)
}

// width is how many parts a value has: first the constant ones, then how often each parameter of the function is among
// them.
type width []float64

func (w width) sum() float64 {
	total := 0.0
	for _, n := range w {
		total += n
	}
	return total
}

// plus adds another width a number of times.
func (w width) plus(o width, times float64) width {
	out := make(width, max(len(w), len(o)))
	copy(out, w)
	for i, n := range o {
		out[i] += n * times
	}
	return out
}

// or is the width of a value that is one or the other: its type is both. Scalars have one between them.
func (w width) or(o width) width {
	if len(w) == 0 || w[0] == 0 {
		return o
	}
	out := w.plus(o, 1)
	out[0]--
	return out
}

func (w width) most(o width) width {
	out := make(width, max(len(w), len(o)))
	copy(out, w)
	for i, n := range o {
		out[i] = max(out[i], n)
	}
	return out
}

// widths are those of a rule's variables.
type widths struct {
	others ruleWidths
	// defined are what variables are set to, and called the calls whose results they are.
	defined map[ast.Var][]*ast.Term
	called  map[ast.Var][]*ast.Term
	known   map[ast.Var]width
	args    int
	// within are variables that are looked at, cycles how often one of them led to itself, and work how many were
	// looked at.
	within       map[ast.Var]bool
	cycles, work int
}

func newWidths(r *ast.Rule, others ruleWidths) *widths {
	w := &widths{others: others, defined: map[ast.Var][]*ast.Term{}, called: map[ast.Var][]*ast.Term{}, known: map[ast.Var]width{}, within: map[ast.Var]bool{},
		args: len(r.Head.Args)}
	for i, arg := range r.Head.Args {
		parameter := make(width, w.args+1)
		parameter[i+1] = 1
		ast.WalkVars(arg, func(v ast.Var) bool {
			w.known[v] = parameter
			return false
		})
	}
	ast.WalkExprs(r, func(x *ast.Expr) bool {
		w.note(x)
		return false
	})
	return w
}

// note keeps what an expression says of a variable.
func (w *widths) note(x *ast.Expr) {
	terms, ok := x.Terms.([]*ast.Term)
	if !ok || len(terms) < 2 {
		return
	}
	if x.IsEquality() || x.IsAssignment() {
		w.equal(terms[1], terms[2])
		w.equal(terms[2], terms[1])
		return
	}
	if v, ok := terms[len(terms)-1].Value.(ast.Var); ok {
		w.called[v] = terms
	}
}

// equal keeps what an equation says of the variables of one side.
func (w *widths) equal(a, b *ast.Term) {
	switch x := a.Value.(type) {
	case ast.Var:
		w.defined[x] = append(w.defined[x], b)
		return
	case *ast.Array:
		if y, ok := b.Value.(*ast.Array); ok && x.Len() == y.Len() {
			for i := range x.Len() {
				w.equal(x.Elem(i), y.Elem(i))
			}
			return
		}
	case ast.Object:
		if y, ok := b.Value.(ast.Object); ok {
			x.Foreach(func(k, v *ast.Term) {
				if other := y.Get(k); other != nil {
					w.equal(v, other)
				}
			})
			return
		}
	default:
		return
	}
	ast.WalkVars(a, func(v ast.Var) bool { // parts of what the other side has
		w.defined[v] = append(w.defined[v], b)
		return false
	})
}

// all is the largest width of any variable.
func (w *widths) all() float64 {
	most := 0.0
	for _, v := range slices.Sorted(maps.Keys(w.defined)) { // in order: what leads to itself is as wide as where it is begun
		most = max(most, w.variable(v).sum())
	}
	for _, v := range slices.Sorted(maps.Keys(w.called)) {
		most = max(most, w.variable(v).sum())
	}
	return most
}

func (w *widths) of(t *ast.Term) width {
	one := width{1}
	switch v := t.Value.(type) {
	case ast.Var:
		return w.variable(v)
	case *ast.Array:
		v.Foreach(func(x *ast.Term) { one = one.plus(w.of(x), 1) })
	case ast.Set:
		v.Foreach(func(x *ast.Term) { one = one.plus(w.of(x), 1) })
	case ast.Object:
		v.Foreach(func(k, x *ast.Term) { one = one.plus(w.of(k), 1).plus(w.of(x), 1) })
	case *ast.ArrayComprehension:
		return one.plus(w.of(v.Term), 1)
	case *ast.SetComprehension:
		return one.plus(w.of(v.Term), 1)
	case *ast.ObjectComprehension:
		return one.plus(w.of(v.Key), 1).plus(w.of(v.Value), 1)
	case ast.Ref:
		if v[0].Equal(ast.DefaultRootDocument) || v[0].Equal(ast.InputRootDocument) {
			return width{w.others.of(v)}
		}
		return w.of(v[0])
	case ast.Call:
		return w.result(v)
	}
	return one
}

func (w *widths) variable(v ast.Var) width {
	if known, ok := w.known[v]; ok {
		return known
	}
	if w.work++; w.work > maxWidth {
		return width{maxWidth + 1}
	}
	if w.within[v] {
		w.cycles++
		return width{1}
	}
	cycles := w.cycles
	w.within[v] = true
	out := width{1}
	for _, t := range w.defined[v] {
		out = out.most(w.of(t))
	}
	if call := w.called[v]; call != nil {
		out = out.most(w.result(call))
	}
	delete(w.within, v)
	if cycles == w.cycles || len(w.within) == 0 { // else it is less than it would be elsewhere
		w.known[v] = out
	}
	return out
}

// result is the width of a call's result: a builtin's is bounded when it is called.
func (w *widths) result(call []*ast.Term) width {
	f, ok := w.others.functions[call[0].Value.String()]
	if !ok {
		return width{1}
	}
	out := width{f[0]}
	for i, times := range f[1:] {
		if i+1 < len(call) && times > 0 {
			out = out.plus(w.of(call[i+1]), times)
		}
	}
	return out
}
