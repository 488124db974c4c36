package explain

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// undefined is shown where there is no value.
const undefined = "undefined"

// valueReader reads what an expression saw, at the moment of an event. The compiler takes expressions apart: what was
// one line is several expressions that bind variables of its own making, and name the line that they come from.
type valueReader struct {
	*Watcher
	event *topdown.Event
	body  ast.Body
	// stands is what the compiler's variables stand for.
	stands map[ast.Var]*ast.Expr
	out    []rollout.NamedValue
}

// expression is the line that an expression comes from, with what its parts are.
func (r *valueReader) expression(expr *ast.Expr) rollout.Expression {
	base := expr.BaseCogeneratedExpr()
	where := base.Location
	if where == nil {
		where = r.event.Location
	}
	r.out = nil
	r.learn()
	for _, e := range r.body {
		if e.BaseCogeneratedExpr() == base {
			r.operands(e)
		}
	}
	r.operands(expr)
	out := rollout.Expression{Values: r.out}
	if where != nil {
		out.Location, out.Text = parse.LineOf(where),
			parse.Cut(strings.Join(strings.Fields(string(where.Text)), " "), maxExpression)
	}
	return out
}

// ahead is what of the input the expressions after one name, as far as it is there. It is what a rule goes by that did
// not get to it.
func (r *valueReader) ahead(expr *ast.Expr) []rollout.NamedValue {
	known := r.out
	var out []rollout.NamedValue
	for _, e := range r.body {
		if e.Index <= expr.Index || len(out) >= maxNamedValues {
			continue
		}
		r.out = nil
		ast.WalkRefs(e, func(ref ast.Ref) bool {
			if ref[0].Equal(ast.InputRootDocument) && ref.IsGround() {
				r.ref(ref)
			}
			return false
		})
		for _, v := range r.out {
			if v.Value != undefined && len(out) < maxNamedValues && !slices.Contains(known, v) &&
				!slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	r.out = known
	return out
}

// learn notes which expression binds which of the compiler's variables.
func (r *valueReader) learn() {
	if r.stands != nil {
		return
	}
	r.stands = map[ast.Var]*ast.Expr{}
	for _, e := range r.body {
		terms, ok := e.Terms.([]*ast.Term)
		if !ok || len(terms) < 2 {
			continue
		}
		made := terms[len(terms)-1]
		if e.IsEquality() {
			made = terms[1]
		}
		if v, ok := made.Value.(ast.Var); ok && r.nameOf(v) == "" && r.stands[v] == nil {
			r.stands[v] = e
		}
	}
}

// nameOf is the name that a variable has in the policy, "" for one of the compiler's.
func (r *valueReader) nameOf(v ast.Var) string {
	if name, ok := r.compiler.RewrittenVars[v]; ok && !name.IsGenerated() && !name.IsWildcard() {
		return string(name)
	}
	if strings.HasPrefix(string(v), "__local") || v.IsGenerated() || v.IsWildcard() {
		return ""
	}
	return string(v)
}

func (r *valueReader) operands(e *ast.Expr) {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		r.term(terms)
	case []*ast.Term:
		if len(terms) == 3 && e.IsEquality() {
			if v, ok := terms[1].Value.(ast.Var); ok && r.nameOf(v) == "" {
				r.bound(v, terms[2])
				return
			}
		}
		for _, t := range terms[1:] {
			r.term(t)
		}
	case *ast.Every:
		r.term(terms.Domain)
	}
}

// bound reads what one of the compiler's variables stands for.
func (r *valueReader) bound(v ast.Var, t *ast.Term) {
	if ref, ok := t.Value.(ast.Ref); ok {
		if value := r.event.Plug(ast.NewTerm(v)); value.IsGround() && ref[0].Equal(ast.DefaultRootDocument) &&
			ref.IsGround() {
			r.put(ref.String(), value.Value)
			return
		}
	}
	r.term(t)
}

func (r *valueReader) term(t *ast.Term) {
	switch v := t.Value.(type) {
	case ast.Ref:
		r.ref(v)
	case ast.Var:
		r.variable(v)
	case *ast.Array:
		v.Foreach(r.term)
	case ast.Object:
		v.Foreach(func(_, item *ast.Term) { r.term(item) })
	case ast.Set:
		v.Foreach(r.term)
	}
}

func (r *valueReader) variable(v ast.Var) {
	name := r.nameOf(v)
	if name == "" {
		made := r.stands[v]
		if made == nil || made.Location == nil || made.IsEquality() {
			return // what it stands for is among the expressions of the line
		}
		name = strings.Join(strings.Fields(string(made.Location.Text)), " ")
	}
	if value := r.event.Plug(ast.NewTerm(v)); value.IsGround() {
		r.put(name, value.Value)
	}
}

// ref reads what a reference leads to: as far as its parts are known.
func (r *valueReader) ref(ref ast.Ref) {
	root, name := r.root(ref)
	if name == "" {
		return
	}
	path := ast.Ref{ast.NewTerm(ast.Var(name))}
	for _, key := range ref[1:] {
		k := r.event.Plug(key)
		if !k.IsGround() {
			break
		}
		path = append(path, k)
	}
	if ref[0].Equal(ast.DefaultRootDocument) {
		r.data(path)
		return
	}
	if root == nil {
		return
	}
	value, err := root.Find(path[1:])
	switch {
	case err != nil:
		r.put(path.String(), nil)
	case r.hide.secret(path):
		r.out = append(r.out, rollout.NamedValue{Name: path.String(), Value: hidden})
	default:
		r.put(path.String(), value)
	}
}

// root is the value that a reference starts at, and its name.
func (r *valueReader) root(ref ast.Ref) (ast.Value, string) {
	head, ok := ref[0].Value.(ast.Var)
	switch {
	case !ok:
		return nil, ""
	case ref[0].Equal(ast.InputRootDocument):
		input := r.event.Input()
		if input == nil {
			input = r.input
		}
		return input.Value, string(head)
	case ref[0].Equal(ast.DefaultRootDocument):
		return nil, string(head)
	}
	value := r.event.Plug(ref[0])
	if !value.IsGround() {
		return nil, ""
	}
	name := r.nameOf(head)
	if name == "" {
		return nil, ""
	}
	return value.Value, name
}

// data reads data that no rule gives. What rules give is read where it is bound.
func (r *valueReader) data(path ast.Ref) {
	if r.compiler.RuleTree.Find(path) != nil || len(r.compiler.GetRules(path)) > 0 {
		return
	}
	r.put(path.String(), r.Watcher.data(path))
}

// put notes a value once; nil is undefined.
func (r *valueReader) put(name string, v ast.Value) {
	name = parse.Cut(name, maxExpression)
	known := func(n rollout.NamedValue) bool { return n.Name == name }
	if len(r.out) >= maxNamedValues || slices.ContainsFunc(r.out, known) {
		return
	}
	value := undefined
	if v != nil {
		value = parse.Cut(r.hide.value(v).String(), maxValue)
	}
	whole := strings.ContainsAny(value[:1], "{[")
	if whole && slices.ContainsFunc(r.out, func(n rollout.NamedValue) bool { return n.Value == value }) {
		return // what a variable was taken from
	}
	r.out = append(r.out, rollout.NamedValue{Name: name, Value: value})
}
