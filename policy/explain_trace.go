package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Bounds of what an explanation holds.
const (
	maxHeads       = 20
	maxHeld        = 12
	maxNamedValues = 6
	maxValue       = 160
	maxExpression  = 200
)

// clause is a rule of the contract and what was seen of it.
type clause struct {
	set  ruleSet
	rule *ast.Rule
	// name of the rule, such as rollout.canary; "" if it is not written in its head.
	name string
	// rows are the last lines of what it is made of, by file.
	last int
	// heads are its findings, as policies give them.
	heads []*ast.Term
	held  []rollout.Expression
	// failed is where it got furthest; watching says that it looked at what changes with time there; ahead is what it would have
	// looked at next.
	failed   *rollout.Expression
	watching bool
	ahead    []rollout.NamedValue
}

func newClause(set ruleSet, r *ast.Rule) *clause {
	c := &clause{set: set, rule: r, name: ruleName(r), last: r.Location.Row}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if l := e.Location; l != nil && l.File == r.Location.File {
			c.last = max(c.last, l.Row)
		}
		return false
	})
	return c
}

// has reports whether a line, file:line, is one of the clause's.
func (c *clause) has(location string) bool {
	for row := c.rule.Location.Row; row <= c.last; row++ {
		if location == fmt.Sprintf("%s:%d", c.rule.Location.File, row) {
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
	name, _ := text(o, "rule")
	return name
}

// watcher follows an evaluation and keeps, for each clause, how it ended.
type watcher struct {
	policies *policies
	hide     *redactor
	clauses  map[*ast.Rule]*clause
	frames   map[uint64]*frame
	input    *ast.Term
	// read remembers what expressions are about.
	read map[*ast.Expr]aspects
}

var _ topdown.QueryTracer = (*watcher)(nil)

func newWatcher(p *policies, input ast.Value) *watcher {
	return &watcher{policies: p, input: ast.NewTerm(input), hide: newRedactor(input), clauses: map[*ast.Rule]*clause{}, read: map[*ast.Expr]aspects{}}
}

// begin starts the evaluation of a rule set, anew where it was begun.
func (w *watcher) begin(set string) {
	w.frames = map[uint64]*frame{}
	for _, c := range w.clauses {
		if c.set.name == set {
			c.heads, c.held, c.failed, c.ahead, c.watching = nil, nil, nil, nil, false
		}
	}
}

// frame is one query of an evaluation: a rule, a function, or a body within an expression.
type frame struct {
	parent *frame
	body   ast.Body
	clause *clause
	// inner are the queries that the expression at hand began.
	inner []uint64
	// best is the expression that was not true after most that were; index is its place.
	best  *rollout.Expression
	index int
	// passed says that all was true at least once.
	passed bool
	// current is the expression at hand; watching says that it looked at what changes with time, and seen are the variables of
	// those before that did.
	current  *ast.Expr
	watching bool
	seen     map[ast.Var]bool
}

// Enabled is always true.
func (w *watcher) Enabled() bool { return true }

// Config asks for no copies of variables: they are looked up where they are needed.
func (w *watcher) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent follows one step.
func (w *watcher) TraceEvent(e topdown.Event) {
	switch e.Op {
	case topdown.EnterOp:
		w.enter(&e)
	case topdown.EvalOp:
		if f := w.frames[e.QueryID]; f != nil {
			w.drop(f.inner)
			f.inner = nil
			w.eval(f, exprOf(e.Node))
		}
	case topdown.FailOp:
		if f, expr := w.frames[e.QueryID], exprOf(e.Node); f != nil && expr != nil {
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
func (w *watcher) eval(f *frame, expr *ast.Expr) {
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

func exprOf(n ast.Node) *ast.Expr {
	e, _ := n.(*ast.Expr)
	return e
}

func (w *watcher) enter(e *topdown.Event) {
	f := &frame{index: -1}
	switch n := e.Node.(type) {
	case *ast.Rule:
		f.body, f.clause = n.Body, w.clauses[n]
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
func (w *watcher) drop(ids []uint64) {
	for _, id := range ids {
		if f := w.frames[id]; f != nil {
			delete(w.frames, id)
			w.drop(f.inner)
		}
	}
}

// fail notes that an expression was not true, if none further on was.
func (w *watcher) fail(f *frame, expr *ast.Expr, e *topdown.Event) {
	if f.best != nil && expr.Index == f.index {
		f.best.Ways++
	}
	if f.best != nil && expr.Index <= f.index {
		return
	}
	r := &valueReader{watcher: w, event: e, body: f.body}
	got := r.expression(expr)
	if !expr.Negated {
		got.Because = w.because(f, got)
	}
	got.Ways = 1
	f.best, f.index = &got, expr.Index
	if c := f.clause; c != nil {
		c.failed, c.watching = f.best, f.watching
		c.ahead = r.ahead(expr)
	}
}

// because is the furthest failure in what an expression asked.
func (w *watcher) because(f *frame, outer rollout.Expression) *rollout.Expression {
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
func (w *watcher) exit(f *frame, e *topdown.Event) {
	c := f.clause
	if c == nil || len(c.heads) >= maxHeads || c.rule.Head.Key == nil {
		return
	}
	head := e.Plug(c.rule.Head.Key)
	if slices.ContainsFunc(c.heads, func(t *ast.Term) bool { return t.Equal(head) }) {
		return
	}
	c.heads = append(c.heads, head)
	if len(c.heads) > 1 {
		return
	}
	r := &valueReader{watcher: w, event: e, body: f.body}
	seen := map[string]bool{}
	for _, expr := range f.body {
		base := expr.BaseCogeneratedExpr()
		if base.Location == nil || weighs(expr) || expr.Index > 0 && isMessage(expr) {
			continue
		}
		got := r.expression(expr)
		if key := got.Location + got.Text; !seen[key] && len(c.held) < maxHeld && !isHead(base, c.rule) {
			seen[key] = true
			c.held = append(c.held, got)
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
	// changes says that it names what changes with time: anything in the input but the action and what is in Git, and the clock.
	changes bool
	vars    []ast.Var
}

// about reads an expression, once.
func (w *watcher) about(expr *ast.Expr) aspects {
	if known, ok := w.read[expr]; ok {
		return known
	}
	var out aspects
	ast.WalkRefs(expr, func(r ast.Ref) bool {
		switch {
		case len(r) > 1 && r[0].Equal(ast.InputRootDocument):
			key, _ := r[1].Value.(ast.String)
			out.changes = out.changes || !slices.Contains([]string{keyAction, "environment", "deployment", "connection", "git", "waivers", "limits", "record", References}, string(key))
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
