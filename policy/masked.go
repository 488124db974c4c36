package policy

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/policy/explain"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Masks finds out whether policies read what was masked in a document, in which case judging it again says nothing. It
// is safe for concurrent use.
type Masks struct {
	engine *Engine
	// mark is what stands where something was.
	mark string
	// keys are the texts that policies name, as in references; wide says that they turn whole values into text or walk
	// them.
	keys map[string]bool
	wide bool
}

// Masks prepares for documents in which mark stands where something was.
func (e *Engine) Masks(mark string) *Masks {
	m := &Masks{engine: e, mark: mark, keys: map[string]bool{}}
	for _, b := range e.books {
		if b.all.compiler == nil {
			continue
		}
		for _, module := range b.all.compiler.Modules {
			m.learn(module)
		}
	}
	return m
}

func (m *Masks) learn(module *ast.Module) {
	wide := []string{ast.WalkBuiltin.Name, ast.JSONMarshal.Name, ast.JSONMarshalWithOptions.Name, ast.YAMLMarshal.Name,
		ast.Sprintf.Name}
	ast.WalkTerms(module, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.String:
			m.keys[string(v)] = true
		case ast.Ref:
			// Text is made of whole values by these; sprintf is looked at where it is given one.
			if name := v.String(); slices.Contains(wide[:len(wide)-1], name) {
				m.wide = true
			}
		}
		return false
	})
}

// Read reports whether policies read one of the values that JSON pointers such as
// /input/deployment/metadata/labels/token name. It follows them through variables, helpers and text that is made of
// them. A value that a policy compares only as part of a larger one is not noticed.
func (m *Masks) Read(ctx context.Context, d *Document, pointers []string) (bool, error) {
	if !slices.ContainsFunc(pointers, m.reachable) {
		return false, nil
	}
	read, err := m.reads(ctx, d, parse.PackageSpec, d.SpecInput())
	for i := range d.actions {
		if read || err != nil {
			break
		}
		if pkg := parse.Asked(d.actions[i].kind); pkg != "" {
			read, err = m.reads(ctx, d, pkg, d.about(&d.actions[i]))
		}
	}
	return read, err
}

// reachable reports whether policies name what a pointer's value is in: the values of a list or an object by that
// object's key.
func (m *Masks) reachable(pointer string) bool {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if parts[0] != "input" {
		return false
	}
	if m.wide {
		return true
	}
	for _, p := range slices.Backward(parts[1:max(1, len(parts)-1)]) {
		if _, err := strconv.Atoi(p); err != nil {
			return m.keys[strings.NewReplacer("~1", "/", "~0", "~").Replace(p)]
		}
	}
	return true
}

func (m *Masks) reads(ctx context.Context, d *Document, pkg string, input ast.Value) (bool, error) {
	for _, b := range m.engine.books {
		p := b.all.packages[pkg]
		if p == nil {
			continue
		}
		w := &maskWatcher{masks: m, input: ast.NewTerm(input), bodies: map[uint64]ast.Body{}}
		for _, set := range parse.Contract()[pkg] {
			q, ok := p.sets[set.Name]
			if !ok || len(q.sets) == 0 {
				continue
			}
			err := m.engine.trace(b, q, question{input: input, now: d.now, tracer: w,
				budget: newBudget(ctx, m.engine.bounds)}, topdown.NewVirtualCache())
			if spent := exhausted(""); err != nil && !errors.As(err, &spent) {
				return w.found, err
			}
			if w.found || ctx.Err() != nil {
				return w.found, ctx.Err()
			}
		}
	}
	return false, nil
}

// maskWatcher looks for the mark in what expressions see.
type maskWatcher struct {
	masks  *Masks
	input  *ast.Term
	bodies map[uint64]ast.Body
	found  bool
}

var _ topdown.QueryTracer = (*maskWatcher)(nil)

// Enabled is true until something was found.
func (w *maskWatcher) Enabled() bool { return true }

// Config asks for no copies of variables.
func (w *maskWatcher) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent looks at what an expression reads before it is evaluated: it may fail for some elements of a list and hold
// for others. It also looks at what is known where an expression fails and where a query ends.
func (w *maskWatcher) TraceEvent(e topdown.Event) {
	if w.found {
		return
	}
	switch e.Op {
	case topdown.EnterOp:
		switch n := e.Node.(type) {
		case *ast.Rule:
			w.bodies[e.QueryID] = n.Body
		case ast.Body:
			w.bodies[e.QueryID] = n
		}
	case topdown.EvalOp:
		if expr := explain.ExprOf(e.Node); expr != nil {
			w.expression(&e, expr)
		}
	case topdown.FailOp:
		if expr := explain.ExprOf(e.Node); expr != nil {
			w.look(&e, expr.Index)
		}
	case topdown.ExitOp:
		w.look(&e, len(w.bodies[e.QueryID]))
	}
}

// look looks at the expressions of a query up to one.
func (w *maskWatcher) look(e *topdown.Event, last int) {
	for _, expr := range w.bodies[e.QueryID] {
		if expr.Index > last {
			break
		}
		w.expression(e, expr)
	}
}

// expression looks at what an expression sees with what is known. What is within it as a body of its own is looked at
// when that is evaluated: its variables are its own.
func (w *maskWatcher) expression(e *topdown.Event, expr *ast.Expr) {
	switch terms := expr.Terms.(type) {
	case *ast.Every:
		w.terms(e, terms.Domain)
	case []*ast.Term, *ast.Term:
		w.terms(e, &ast.Expr{Terms: terms})
	}
	for _, with := range expr.With {
		w.terms(e, with.Value)
	}
}

func (w *maskWatcher) terms(e *topdown.Event, of any) {
	ast.WalkTerms(of, func(t *ast.Term) bool {
		if w.found {
			return true
		}
		switch v := t.Value.(type) {
		case ast.Ref:
			w.found = w.reads(e, v)
			return true
		case ast.Var:
			if value := e.Plug(t); value.IsGround() {
				w.found = w.marked(value.Value)
			}
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.Not:
			return true // its value is bound to a variable
		}
		return false
	})
}

func (w *maskWatcher) marked(v ast.Value) bool {
	s, ok := v.(ast.String)
	return ok && strings.Contains(string(s), w.masks.mark)
}

// reads reports whether a reference into the input or a variable leads to the mark.
func (w *maskWatcher) reads(e *topdown.Event, ref ast.Ref) bool {
	root := e.Plug(ref[0]).Value
	if ref[0].Equal(ast.InputRootDocument) {
		root = w.input.Value
		if given := e.Input(); given != nil {
			root = given.Value
		}
	}
	if _, ok := root.(ast.Var); ok {
		return false
	}
	return w.within(e, root, ref[1:])
}

// within follows the rest of a reference. A key that is not known yet leads to all that there is.
func (w *maskWatcher) within(e *topdown.Event, v ast.Value, rest ast.Ref) bool {
	if len(rest) == 0 {
		return w.marked(v)
	}
	if key := e.Plug(rest[0]); key.IsGround() {
		next, err := v.Find(ast.Ref{key})
		return err == nil && w.within(e, next, rest[1:])
	}
	some := func(t *ast.Term) bool { return w.within(e, t.Value, rest[1:]) }
	switch v := v.(type) {
	case *ast.Array:
		return v.Until(some)
	case ast.Set:
		return v.Until(some)
	case ast.Object:
		return v.Until(func(_, t *ast.Term) bool { return some(t) })
	}
	return false
}
