package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Bounds of what an explanation holds.
const (
	maxHeads       = 20
	maxHeld        = 12
	maxNamedValues = 6
	maxValue       = 160
	maxExpression  = 200
)

// Clause is a rule of the contract and what was seen of it.
type Clause struct {
	Set  parse.RuleSet
	Rule *ast.Rule
	// Name of the rule, such as rollout.canary; "" if it is not written in its head.
	Name string
	// last is the last line of what it is made of.
	last int
	// Heads are its findings, as policies give them; Held are the expressions that were true for the last one.
	Heads []*ast.Term
	Held  []rollout.Expression
	// Failed is where it got furthest. Watching says that it looked at what changes with time there; Ahead is what it
	// would have looked at next.
	Failed   *rollout.Expression
	Watching bool
	Ahead    []rollout.NamedValue
}

// NewClause is a rule of a rule set before its evaluation.
func NewClause(set parse.RuleSet, r *ast.Rule) *Clause {
	c := &Clause{Set: set, Rule: r, Name: ruleName(r), last: r.Location.Row}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if l := e.Location; l != nil && l.File == r.Location.File {
			c.last = max(c.last, l.Row)
		}
		return false
	})
	return c
}

// Has reports whether a line, file:line, is one of the clause's.
func (c *Clause) Has(location string) bool {
	for row := c.Rule.Location.Row; row <= c.last; row++ {
		if location == fmt.Sprintf("%s:%d", c.Rule.Location.File, row) {
			return true
		}
	}
	return false
}

// ruleName is the name that a rule's head gives its findings, "" if it is not written there.
func ruleName(r *ast.Rule) string {
	key := r.Head.Key
	if key == nil {
		return ""
	}
	if _, ok := key.Value.(ast.Var); ok {
		for _, e := range r.Body {
			if e.IsEquality() && e.Operand(0).Equal(key) {
				key = e.Operand(1)
				break
			}
		}
	}
	o, ok := key.Value.(ast.Object)
	if !ok {
		return ""
	}
	name, _ := input.Text(o, "rule")
	return name
}

// Watcher follows an evaluation and keeps, for each clause, how it ended.
type Watcher struct {
	compiler *ast.Compiler
	// data gives what no rule gives.
	data    func(ast.Ref) ast.Value
	hide    *redactor
	Clauses map[*ast.Rule]*Clause
	frames  map[uint64]*frame
	input   *ast.Term
	// read remembers what expressions are about.
	read map[*ast.Expr]aspects
}

var _ topdown.QueryTracer = (*Watcher)(nil)

// NewWatcher follows evaluations of a compiler's rules about an input; lookup gives data that no rule gives.
func NewWatcher(compiler *ast.Compiler, lookup func(ast.Ref) ast.Value, about ast.Value) *Watcher {
	return &Watcher{compiler: compiler, data: lookup, input: ast.NewTerm(about), hide: newRedactor(about),
		Clauses: map[*ast.Rule]*Clause{}, read: map[*ast.Expr]aspects{}}
}

// Begin starts the evaluation of a rule set, anew where it was begun.
func (w *Watcher) Begin(set string) {
	w.frames = map[uint64]*frame{}
	for _, c := range w.Clauses {
		if c.Set.Name == set {
			c.Heads, c.Held, c.Failed, c.Ahead, c.Watching = nil, nil, nil, nil, false
		}
	}
}

// frame is one query of an evaluation: a rule, a function, or a body within an expression.
type frame struct {
	parent *frame
	body   ast.Body
	clause *Clause
	// inner are the queries that the expression at hand began.
	inner []uint64
	// best is the expression that was not true after most that were; index is its place.
	best  *rollout.Expression
	index int
	// passed says that all was true at least once.
	passed bool
	// current is the expression at hand. watching says that it looked at what changes with time, and seen are the
	// variables of those before that did.
	current  *ast.Expr
	watching bool
	seen     map[ast.Var]bool
}

// Enabled is always true.
func (w *Watcher) Enabled() bool { return true }

// Config asks for no copies of variables: they are looked up where they are needed.
func (w *Watcher) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent follows one step.
func (w *Watcher) TraceEvent(e topdown.Event) {
	switch e.Op {
	case topdown.EnterOp:
		w.enter(&e)
	case topdown.EvalOp:
		if f := w.frames[e.QueryID]; f != nil {
			w.drop(f.inner)
			f.inner = nil
			w.eval(f, ExprOf(e.Node))
		}
	case topdown.FailOp:
		if f, expr := w.frames[e.QueryID], ExprOf(e.Node); f != nil && expr != nil {
			w.fail(f, expr, &e)
		}
	case topdown.ExitOp:
		if f := w.frames[e.QueryID]; f != nil {
			f.passed = true
			w.exit(f, &e)
		}
	}
}

// eval goes on to the next expression.
func (w *Watcher) eval(f *frame, expr *ast.Expr) {
	if f.current != nil && f.watching {
		if f.seen == nil {
			f.seen = map[ast.Var]bool{}
		}
		for _, v := range w.about(f.current).vars {
			f.seen[v] = true
		}
	}
	f.current, f.watching = expr, false
	if expr == nil {
		return
	}
	about := w.about(expr)
	if about.changes || slices.ContainsFunc(about.vars, func(v ast.Var) bool { return f.seen[v] }) {
		for up := f; up != nil; up = up.parent {
			up.watching = true
		}
	}
}

// ExprOf is the expression that a node of a trace is; nil for others.
func ExprOf(n ast.Node) *ast.Expr {
	e, _ := n.(*ast.Expr)
	return e
}

func (w *Watcher) enter(e *topdown.Event) {
	f := &frame{index: -1}
	switch n := e.Node.(type) {
	case *ast.Rule:
		f.body, f.clause = n.Body, w.Clauses[n]
	case ast.Body:
		f.body = n
	}
	if e.ParentID != e.QueryID {
		f.parent = w.frames[e.ParentID]
	}
	if f.parent != nil {
		f.parent.inner = append(f.parent.inner, e.QueryID)
	}
	w.frames[e.QueryID] = f
}

// drop forgets queries whose expression is over.
func (w *Watcher) drop(ids []uint64) {
	for _, id := range ids {
		if f := w.frames[id]; f != nil {
			delete(w.frames, id)
			w.drop(f.inner)
		}
	}
}

// fail notes that an expression was not true, if none further on was.
func (w *Watcher) fail(f *frame, expr *ast.Expr, e *topdown.Event) {
	if f.best != nil && expr.Index == f.index {
		f.best.Ways++
	}
	if f.best != nil && expr.Index <= f.index {
		return
	}
	r := &valueReader{Watcher: w, event: e, body: f.body}
	got := r.expression(expr)
	if !expr.Negated {
		got.Because = w.because(f, got)
	}
	got.Ways = 1
	f.best, f.index = &got, expr.Index
	if c := f.clause; c != nil {
		c.Failed, c.Watching = f.best, f.watching
		c.Ahead = r.ahead(expr)
	}
}

// because is the furthest failure in what an expression asked.
func (w *Watcher) because(f *frame, outer rollout.Expression) *rollout.Expression {
	var best *frame
	for _, id := range f.inner {
		in := w.frames[id]
		if in == nil || in.passed {
			continue
		}
		if in.best == nil { // what it iterates over, such as the domain of every
			if deeper := w.because(in, outer); deeper != nil {
				return deeper
			}
			continue
		}
		if best == nil || in.index > best.index {
			best = in
		}
	}
	if best == nil {
		return nil
	}
	if best.best.Location == outer.Location && best.best.Text == outer.Text {
		return best.best.Because
	}
	inner := *best.best
	return &inner
}

// exit notes a finding, and for the first one what made it.
func (w *Watcher) exit(f *frame, e *topdown.Event) {
	c := f.clause
	if c == nil || len(c.Heads) >= maxHeads || c.Rule.Head.Key == nil {
		return
	}
	head := e.Plug(c.Rule.Head.Key)
	if slices.ContainsFunc(c.Heads, func(t *ast.Term) bool { return t.Equal(head) }) {
		return
	}
	c.Heads = append(c.Heads, head)
	if len(c.Heads) > 1 {
		return
	}
	r := &valueReader{Watcher: w, event: e, body: f.body}
	seen := map[string]bool{}
	for _, expr := range f.body {
		base := expr.BaseCogeneratedExpr()
		if base.Location == nil || expr.Index > 0 && isMessage(expr) {
			continue
		}
		got := r.expression(expr)
		if key := got.Location + got.Text; !seen[key] && len(c.Held) < maxHeld && !isHead(base, c.Rule) {
			seen[key] = true
			c.Held = append(c.Held, got)
		}
	}
}

// isMessage reports whether an expression words a message.
func isMessage(expr *ast.Expr) bool {
	base := expr.BaseCogeneratedExpr()
	return strings.Contains(string(base.Location.Text), "sprintf(")
}

// isHead reports whether an expression was made from the head of a rule.
func isHead(base *ast.Expr, r *ast.Rule) bool {
	head := r.Head.Location
	return base.Location.Offset < head.Offset+len(head.Text)
}

// aspects are what an expression is about.
type aspects struct {
	// changes says that it names what changes with time: anything in the input but the action and what is in Git, and
	// the clock.
	changes bool
	vars    []ast.Var
}

// about reads an expression, once.
func (w *Watcher) about(expr *ast.Expr) aspects {
	if known, ok := w.read[expr]; ok {
		return known
	}
	var out aspects
	ast.WalkRefs(expr, func(r ast.Ref) bool {
		switch {
		case len(r) > 1 && r[0].Equal(ast.InputRootDocument):
			key, _ := r[1].Value.(ast.String)
			out.changes = out.changes || !slices.Contains([]string{input.KeyAction, "environment", "deployment",
				"connection", "git", "waivers", "limits", "record", input.References}, string(key))
		case r.String() == ast.NowNanos.Name:
			out.changes = true
		}
		return false
	})
	ast.WalkVars(expr, func(v ast.Var) bool {
		if strings.HasPrefix(string(v), "__local") { // what the compiler calls all variables of rules
			out.vars = append(out.vars, v)
		}
		return false
	})
	w.read[expr] = out
	return out
}
