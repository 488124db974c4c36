package lint

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// OPA's type checker knows neither what a function is given, nor what every goes over, nor the text in a variable that
// a field is asked by. So parts of the input are followed into variables here, of compiled rules, in which each
// variable has a name of its own. What can be any of several parts lacks a field only if all of them do.

// Bounds of following: how many parts of the input one variable may be, and how many variables are looked at for one
// rule.
const (
	maxPlacesOf = 100
	maxFollowed = 10_000
)

// place is a part of the input: its schema, and how it is reached.
type place struct {
	at  input.Node
	ref ast.Ref
}

// seen is what a value may be: parts of the input, and texts. Any: nothing is known of it.
type seen struct {
	places []place
	texts  []string
	any    bool
}

// or adds what a value may be beside.
func (s seen) or(o seen) seen {
	out := seen{places: slices.Clip(s.places), texts: slices.Clip(s.texts), any: s.any || o.any}
	for _, p := range o.places {
		if !slices.ContainsFunc(out.places, func(q place) bool { return q.ref.Equal(p.ref) }) {
			out.places = append(out.places, p)
		}
	}
	for _, t := range o.texts {
		if !slices.Contains(out.texts, t) {
			out.texts = append(out.texts, t)
		}
	}
	if out.any || len(out.places)+len(out.texts) > maxPlacesOf {
		return seen{any: true}
	}
	return out
}

// nothing reports whether nothing gives a value.
func (s seen) nothing() bool { return len(s.places) == 0 && len(s.texts) == 0 && !s.any }

// flow follows parts of the input through compiled rules.
type flow struct {
	*checker
	compiler *ast.Compiler
	// given are what functions are called with, by their paths and the places of the arguments, in all policies.
	given map[string][]seen
	// told are problems that were found before.
	told []parse.Problem
}

// flows finds fields that are not there, in parts of the input that variables hold.
func (c *checker) flows(compiled *ast.Compiler) {
	sorted, ok := compiled.Graph.Sort()
	if !ok {
		return
	}
	f := &flow{checker: c, compiler: compiled, given: map[string][]seen{}, told: slices.Clone(c.problems)}
	for _, node := range slices.Backward(sorted) { // who calls comes before what is called
		rule, _ := node.(*ast.Rule)
		for ; rule != nil; rule = rule.Else {
			f.rule(rule)
		}
	}
}

// definer is what an expression says of a variable: it is a term, or an element of one.
type definer struct {
	term    *ast.Term
	element bool
}

// followed is one rule.
type followed struct {
	*flow
	defined    map[ast.Var][]definer
	parameters map[ast.Var]seen
	// within are variables that are looked at; work is how many were.
	within map[ast.Var]bool
	work   int
}

func (f *flow) rule(r *ast.Rule) {
	x := &followed{flow: f, defined: map[ast.Var][]definer{}, parameters: map[ast.Var]seen{},
		within: map[ast.Var]bool{}}
	given := f.given[r.Ref().String()]
	for i, arg := range r.Head.Args {
		if v := varOf(arg); v != "" && i < len(given) {
			x.parameters[v] = given[i]
		}
	}
	outside := ast.NewVarSet()
	for _, arg := range r.Head.Args {
		addVars(outside, arg)
	}
	x.body(r.Body, outside)
	ast.WalkClosures(r.Head, func(c any) bool { return x.closure(c, outside) })
	ast.WalkTerms(r, func(t *ast.Term) bool {
		if ref, ok := t.Value.(ast.Ref); ok {
			x.check(t.Location, ref)
		}
		return false
	})
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if terms, ok := e.Terms.([]*ast.Term); ok {
			x.call(e, terms)
		}
		return false
	})
}

// body notes what expressions say of the variables that are the body's own: outside, what it says need not hold.
func (x *followed) body(body ast.Body, outside ast.VarSet) {
	inside := outside.Copy()
	for _, e := range body {
		addVars(inside, e)
	}
	for _, e := range body {
		switch terms := e.Terms.(type) {
		case []*ast.Term:
			if !e.Negated && (e.IsEquality() || e.IsAssignment()) && len(terms) == 3 {
				x.define(terms[1], terms[2], outside)
				if varOf(terms[1]) == "" { // of two variables the first is mostly the new one
					x.define(terms[2], terms[1], outside)
				}
			}
		case *ast.Every:
			if v := varOf(terms.Value); v != "" {
				x.defined[v] = append(x.defined[v], definer{terms.Domain, true})
			}
		}
	}
	ast.WalkClosures(body, func(c any) bool { return x.closure(c, inside) })
}

func (x *followed) define(v, term *ast.Term, outside ast.VarSet) {
	if name := varOf(v); name != "" && !outside.Contains(name) {
		x.defined[name] = append(x.defined[name], definer{term: term})
	}
}

// closure notes what is in the body of one; true: it is done.
func (x *followed) closure(c any, outside ast.VarSet) bool {
	switch c := c.(type) {
	case *ast.ArrayComprehension:
		x.body(c.Body, outside)
	case *ast.SetComprehension:
		x.body(c.Body, outside)
	case *ast.ObjectComprehension:
		x.body(c.Body, outside)
	case *ast.Every:
		x.body(c.Body, outside)
	case *ast.Not:
		x.body(c.Body, outside)
	}
	return true
}

// of is what a term may be.
func (x *followed) of(t *ast.Term) seen {
	switch v := t.Value.(type) {
	case ast.String:
		return seen{texts: []string{string(v)}}
	case ast.Var:
		return x.variable(v)
	case ast.Ref:
		out, _ := x.follow(v)
		return out
	}
	return seen{any: true}
}

// variable is what a variable may be. Each equation bounds it, so that it is enough if one is known; but of a name that
// is a person's there may be several in a rule.
func (x *followed) variable(v ast.Var) seen {
	if x.work++; x.within[v] || x.work > maxFollowed {
		return seen{any: true}
	}
	x.within[v] = true
	defer delete(x.within, v)
	all := []seen{}
	if given, ok := x.parameters[v]; ok {
		all = append(all, given)
	}
	for _, d := range x.defined[v] {
		s := x.of(d.term)
		if d.element {
			s = elementsOf(s, ast.VarTerm("_"))
		}
		all = append(all, s)
	}
	var out seen
	for _, s := range all {
		if !s.any || !v.IsGenerated() {
			out = out.or(s)
		}
	}
	if out.nothing() {
		return seen{any: true}
	}
	return out
}

// missing is where a reference leads to nothing: the parts of the input that it may be in, and the position of what
// they lack.
type missing struct {
	in  []place
	pos int
	// names are those that are not there.
	names []string
}

// follow is what a reference may lead to.
func (x *followed) follow(ref ast.Ref) (out seen, lacks *missing) {
	at := seen{any: true}
	switch {
	case ref[0].Equal(ast.InputRootDocument):
		at = seen{places: []place{{x.document.Root, ast.Ref{ast.InputRootDocument}}}}
	case varOf(ref[0]) != "":
		at = x.variable(varOf(ref[0]))
	}
	for i, key := range ref[1:] {
		if at.any || len(at.texts) > 0 {
			return seen{any: true}, nil
		}
		names := x.of(key)
		if names.any || len(names.places) > 0 || len(names.texts) == 0 {
			at = elementsOf(at, key)
			continue
		}
		var next seen
		for _, p := range at.places {
			for _, name := range names.texts {
				if node, ok := p.at.Member(ast.String(name)); ok {
					next = next.or(placed(node, p.ref.Append(ast.StringTerm(name))))
				}
			}
		}
		if next.nothing() {
			return seen{any: true}, &missing{at.places, i + 1, names.texts}
		}
		at = next
	}
	return at, nil
}

// placed is a part of the input; where there is no schema, it may be anything.
func placed(at input.Node, ref ast.Ref) seen {
	if len(at.Schema) == 0 {
		return seen{any: true}
	}
	return seen{places: []place{{at, ref}}}
}

// elementsOf is what the elements and the fields of a value may be.
func elementsOf(s seen, key *ast.Term) seen {
	if s.any || len(s.texts) > 0 {
		return seen{any: true}
	}
	if v := varOf(key); v.IsGenerated() || v.IsWildcard() {
		key = ast.VarTerm("_")
	}
	var out seen
	for _, p := range s.places {
		if out.any {
			break
		}
		if items := p.at.Schema["items"]; items != nil {
			out = out.or(placed(p.at.At(items), p.ref.Append(key)))
			continue
		}
		for _, name := range p.at.Fields() {
			node, _ := p.at.Member(ast.String(name))
			out = out.or(placed(node, p.ref.Append(ast.StringTerm(name))))
		}
		if p.at.Schema["additionalProperties"] != false {
			out = out.or(placed(p.at.At(p.at.Schema["additionalProperties"]), p.ref.Append(key)))
		}
	}
	if out.nothing() {
		return seen{any: true}
	}
	return out
}

// check reports a field that no value has which a reference may be about. What is written out from the input on is
// checked elsewhere.
func (x *followed) check(where *ast.Location, ref ast.Ref) {
	_, lacks := x.follow(ref)
	if lacks == nil || ref[0].Equal(ast.InputRootDocument) && ref[:lacks.pos+1].IsGround() {
		return
	}
	// a place for what was written without one
	if v := varOf(ref[0]); v.IsGenerated() && x.compiler.RewrittenVars[v] == "" {
		ref = append(slices.Clip(lacks.in[0].ref), ref[lacks.pos:]...)
	} else {
		ref = ref[:lacks.pos+1]
	}
	x.report(where, x.asWritten(ref), lacks)
}

func (x *followed) report(where *ast.Location, ref string, lacks *missing) {
	if where == nil || x.known(where, lacks.names[0]) {
		return
	}
	name := strings.Join(lacks.names, ", ")
	var in, fields []string
	for _, p := range lacks.in {
		in, fields = append(in, x.asWritten(p.ref)), append(fields, p.at.Fields()...)
	}
	slices.Sort(fields)
	have := "has"
	if len(in) > 1 {
		have = "have"
	}
	x.add(parse.CheckInput, where, "%s: %s %s no %s%s", ref, strings.Join(in, ", "), have, name,
		parse.Instead(lacks.names[0], slices.Compact(fields)))
}

// known reports whether it was said of a line that something has no such field.
func (x *followed) known(where *ast.Location, name string) bool {
	return slices.ContainsFunc(x.told, func(p parse.Problem) bool {
		return p.Path == where.File && p.Line == where.Row && p.Check == parse.CheckInput &&
			strings.Contains(p.Message+" ", " has no "+name+" ")
	})
}

// asWritten is a reference with the names that somebody wrote.
func (x *followed) asWritten(ref ast.Ref) string {
	out := ref.Copy()
	for i, t := range out {
		if v := varOf(t); v != "" {
			if name, ok := x.compiler.RewrittenVars[v]; ok {
				v = name
			} else if i > 0 && (v.IsGenerated() || v.IsWildcard()) {
				v = "_"
			}
			out[i] = ast.VarTerm(string(v))
		}
	}
	return out.String()
}

// call notes what a function is given, and checks the keys that object.get is.
func (x *followed) call(e *ast.Expr, terms []*ast.Term) {
	ref, ok := terms[0].Value.(ast.Ref)
	if !ok || len(terms) < 2 {
		return
	}
	if ref.String() == ast.ObjectGet.Name && len(terms) > 2 {
		if object, ok := terms[1].Value.(ast.Var); ok {
			path := ast.Ref{ast.NewTerm(object)}
			for _, k := range keysOf(terms[2]) {
				path = path.Append(ast.StringTerm(k))
			}
			x.check(e.Location, path)
		}
		return
	}
	x.give(e, ref, terms[1:])
}

// give notes what a function of policies is given.
func (x *followed) give(e *ast.Expr, ref ast.Ref, values []*ast.Term) {
	rules := x.compiler.GetRulesExact(ref)
	if len(rules) == 0 || isTest(e.Location) && !isTest(rules[0].Location) { // values that tests make up are not input
		return
	}
	name := ref.String()
	for len(x.given[name]) < len(rules[0].Head.Args) {
		x.given[name] = append(x.given[name], seen{})
	}
	other := slices.ContainsFunc(e.With, func(w *ast.With) bool {
		target, ok := w.Target.Value.(ast.Ref)
		return ok && target[0].Equal(ast.InputRootDocument)
	})
	for i := range x.given[name] {
		value := seen{any: true}
		if i < len(values) && !other {
			value = x.of(values[i])
		}
		x.given[name][i] = x.given[name][i].or(value)
	}
}

// varOf is the variable that a term is, "" for other terms.
func varOf(t *ast.Term) ast.Var {
	v, _ := t.Value.(ast.Var)
	return v
}

// addVars adds the variables that have values once an expression was true.
func addVars(known ast.VarSet, x any) {
	v := ast.NewVarVisitor().WithParams(ast.VarVisitorParams{SkipClosures: true, SkipRefHead: true})
	v.Walk(x)
	known.Update(v.Vars())
}
