package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Masks finds out whether policies read what was masked in a document, in which case judging it again says nothing. It is safe for
// concurrent use.
type Masks struct {
	engine *Engine
	// mark is what stands where something was.
	mark string
	// keys are the texts that policies name, as in references; wide says that they turn whole values into text or walk them.
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
	wide := []string{ast.WalkBuiltin.Name, ast.JSONMarshal.Name, ast.JSONMarshalWithOptions.Name, ast.YAMLMarshal.Name, ast.Sprintf.Name}
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

// Read reports whether policies read one of the values that JSON pointers such as /input/deployment/metadata/labels/token name.
// It follows them through variables, helpers and text that is made of them. A value that a policy compares only as part of a
// larger one is not noticed.
func (m *Masks) Read(ctx context.Context, d *Document, pointers []string) (bool, error) {
	if !slices.ContainsFunc(pointers, m.reachable) {
		return false, nil
	}
	of := judging{ctx, d}
	read, err := m.reads(of, packageSpec, d.SpecInput())
	for i := range d.actions {
		if read || err != nil {
			break
		}
		if pkg := asked(d.actions[i].kind); pkg != "" {
			read, err = m.reads(of, pkg, d.about(&d.actions[i]))
		}
	}
	return read, err
}

// reachable reports whether policies name what a pointer's value is in: the values of a list or an object by that object's key.
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

func (m *Masks) reads(of judging, pkg string, input ast.Value) (bool, error) {
	for _, b := range m.engine.books {
		p := b.all.packages[pkg]
		if p == nil {
			continue
		}
		w := &maskWatcher{masks: m, input: ast.NewTerm(input), bodies: map[uint64]ast.Body{}}
		for _, set := range contract()[pkg] {
			q, ok := p.sets[set.name]
			if !ok || len(q.sets) == 0 {
				continue
			}
			ask := question{input: input, now: of.now, tracer: w, budget: newBudget(of.ctx, m.engine.bounds)}
			var spent exhausted
			var running unstoppable
			err := b.guarded(pkg, m.engine.bounds.Timeout, func() error { return b.all.trace(q, ask, topdown.NewVirtualCache()) })
			switch {
			case errors.As(err, &running):
				return false, fmt.Errorf("the policies of %s: %w", pkg, err)
			case err != nil && !errors.As(err, &spent):
				return w.found, err
			}
			if w.found || of.ctx.Err() != nil {
				return w.found, of.ctx.Err()
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

// TraceEvent looks at what is known where an expression fails and where a query ends.
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
	case topdown.FailOp:
		if expr := exprOf(e.Node); expr != nil {
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
		ast.WalkTerms(expr, func(t *ast.Term) bool {
			if w.found {
				return true
			}
			switch v := t.Value.(type) {
			case ast.Ref:
				w.found = w.marked(w.follow(e, v))
				return true
			case ast.Var:
				if value := e.Plug(t); value.IsGround() {
					w.found = w.marked(value.Value)
				}
			case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
				return true // its variables are its own; its value is bound to a variable
			}
			return false
		})
	}
}

func (w *maskWatcher) marked(v ast.Value) bool {
	s, ok := v.(ast.String)
	return ok && strings.Contains(string(s), w.masks.mark)
}

// follow is what a reference into the input or a variable leads to, nil for nothing.
func (w *maskWatcher) follow(e *topdown.Event, ref ast.Ref) ast.Value {
	root := e.Plug(ref[0]).Value
	if ref[0].Equal(ast.InputRootDocument) {
		root = w.input.Value
		if given := e.Input(); given != nil {
			root = given.Value
		}
	}
	path := make(ast.Ref, 0, len(ref)-1)
	for _, key := range ref[1:] {
		k := e.Plug(key)
		if !k.IsGround() {
			return nil
		}
		path = append(path, k)
	}
	if _, ok := root.(ast.Var); ok {
		return nil
	}
	v, err := root.Find(path)
	if err != nil {
		return nil
	}
	return v
}
