package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/explain"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Explanation is why policy says what it says of an action.
type Explanation = rollout.Explanation

// explainFactor is how many times the bounds of a query explaining it may take: every step is looked at, none is
// remembered.
const explainFactor = 4

// Explain says rule by rule why policy says what it says of an action of a document; of the spec for the action "". It
// evaluates again, slowly: each helper anew, no shortcut taken. It fails for an action that the document does not have
// or that no package is asked about, and when ctx ends.
func (e *Engine) Explain(ctx context.Context, d *Document, actionID string) (Explanation, error) {
	return e.ExplainHeld(ctx, d, actionID, nil)
}

// ExplainHeld is Explain with more findings, as JudgeHeld has them.
func (e *Engine) ExplainHeld(ctx context.Context, d *Document, actionID string,
	held []rollout.Finding) (Explanation, error) {
	pkg, input, kind := parse.PackageSpec, d.SpecInput(), rollout.ActionKind("")
	verdicts := e.JudgeHeld(ctx, d, held)
	verdict := verdicts.Spec
	if actionID != "" {
		i := slices.IndexFunc(d.actions, func(m matter) bool { return m.id == actionID })
		if i < 0 {
			return Explanation{}, fmt.Errorf("the input has no action %q; it has: %s", actionID,
				strings.Join(d.Actions(), ", "))
		}
		m := &d.actions[i]
		pkg, input, kind, verdict = parse.Asked(m.kind), d.about(m), m.kind, verdicts.Of(actionID)
		if pkg == "" {
			return Explanation{}, fmt.Errorf("no package is asked about an action of kind %q", m.kind)
		}
	}
	x := &explainer{ctx: ctx, engine: e, pkg: pkg, input: input, now: d.now, verdict: verdict, claimed: map[int]bool{}}
	out := Explanation{Action: actionID, Kind: kind, PolicyDigest: e.digest, Verdict: verdict}
	for i, b := range e.books {
		out.Rules = append(out.Rules, x.book(b, i > 0)...)
	}
	slices.SortStableFunc(out.Rules, func(a, b rollout.RuleExplanation) int {
		return cmp.Or(cmp.Compare(a.Outcome.Rank(), b.Outcome.Rank()), cmp.Compare(strictest(b), strictest(a)),
			cmp.Compare(a.Package, b.Package), cmp.Compare(a.Rule, b.Rule))
	})
	for i, f := range verdict.Findings {
		if !x.claimed[i] {
			out.Others = append(out.Others, f)
		}
	}
	out.Incomplete = x.incomplete
	return out, ctx.Err()
}

// explainer explains one package about one input.
type explainer struct {
	ctx     context.Context
	engine  *Engine
	pkg     string
	input   ast.Value
	now     time.Time
	verdict rollout.Verdict
	// claimed are the verdict's findings that a rule is behind, by their index.
	claimed    map[int]bool
	incomplete string
}

// book explains the rules of one book.
func (x *explainer) book(b *rulebook, floor bool) []rollout.RuleExplanation {
	p := b.all.packages[x.pkg]
	if p == nil {
		return nil
	}
	w := explain.NewWatcher(b.all.compiler, b.all.data.Get, x.input)
	for _, set := range parse.Contract()[x.pkg] {
		q, ok := p.sets[set.Name]
		if !ok || len(q.sets) == 0 {
			continue
		}
		for _, r := range b.all.compiler.GetRulesWithPrefix(ast.MustParseRef("data." + x.pkg + "." + set.Name)) {
			if c := explain.NewClause(set, r); b.only == nil || b.only[c.Name] {
				w.Clauses[r] = c
			}
		}
		x.watch(b, w, q)
	}
	groups := map[string]*rollout.RuleExplanation{}
	for _, c := range w.Clauses {
		name, explained := x.clause(c)
		g := groups[name]
		if g == nil {
			g = &rollout.RuleExplanation{Package: x.pkg, Rule: name, Floor: floor}
			groups[name] = g
		}
		g.Clauses = append(g.Clauses, explained)
	}
	var out []rollout.RuleExplanation
	for _, g := range groups {
		slices.SortFunc(g.Clauses, func(a, b rollout.ClauseExplanation) int {
			return cmp.Or(cmp.Compare(a.Outcome.Rank(), b.Outcome.Rank()), compareLocations(a.Location, b.Location),
				cmp.Compare(a.Set, b.Set))
		})
		g.Outcome = g.Clauses[0].Outcome
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b rollout.RuleExplanation) int { return cmp.Compare(a.Rule, b.Rule) })
	return out
}

// watch evaluates a rule set under the watcher. It remembers nothing, so that each clause is seen to the end; where
// that takes too long, it remembers as always.
func (x *explainer) watch(b *rulebook, w *explain.Watcher, q query) {
	bounds := x.engine.bounds
	bounds.Timeout, bounds.Steps = explainFactor*bounds.Timeout, explainFactor*bounds.Steps
	for _, cache := range []topdown.VirtualCache{forgetful{}, topdown.NewVirtualCache()} {
		w.Begin(q.sets[0].Name)
		err := x.engine.trace(b, q, question{input: x.input, now: x.now, tracer: w,
			budget: newBudget(x.ctx, bounds)}, cache)
		var spent exhausted
		switch {
		case errors.As(err, &spent):
			x.incomplete = "looking at each step " + string(spent)
			continue
		case err != nil:
			x.incomplete = parse.Cut(err.Error(), parse.MaxMessage)
		}
		return
	}
}

// forgetful is a cache of rules' values that has none: each helper is evaluated wherever it is asked.
type forgetful struct{}

var _ topdown.VirtualCache = forgetful{}

func (forgetful) Push()                         {}
func (forgetful) Pop()                          {}
func (forgetful) Get(ast.Ref) (*ast.Term, bool) { return nil, false }
func (forgetful) Put(ast.Ref, *ast.Term)        {}
func (forgetful) Keys() []ast.Ref               { return nil }

// trace evaluates a query under a tracer, past errors of builtins: what they are behind is undefined.
func (e *Engine) trace(b *rulebook, q query, ask question, cache topdown.VirtualCache) (err error) {
	defer parse.Recovered(&err)
	defer e.watch(b, q.pkg, ask.budget.bounds.Timeout)()
	err = b.all.query(q, ask).WithIndexing(false).WithEarlyExit(false).WithVirtualCache(cache).
		Iter(ask.budget.ctx, func(topdown.QueryResult) error { return nil })
	if ask.budget.spent != "" {
		return exhausted(ask.budget.spent)
	}
	return err
}

// clause says what became of a clause, and the name of its rule.
func (x *explainer) clause(c *explain.Clause) (string, rollout.ClauseExplanation) {
	out := rollout.ClauseExplanation{Set: c.Set.Name, Location: parse.LineOf(c.Rule.Location),
		Outcome: rollout.RuleIdle, False: c.Failed}
	name := c.Name
	if c.Failed != nil && c.Watching {
		out.Outcome, out.Ahead = rollout.RulePassed, c.Ahead
	}
	heard := 0
	for _, head := range c.Heads {
		f, err := readFinding(x.pkg, c.Set, head)
		if err != nil {
			continue // the verdict has a finding about it
		}
		name = cmp.Or(name, f.Rule)
		for i, v := range x.verdict.Findings {
			if v.Package == f.Package && v.Rule == f.Rule && v.Message == f.Message &&
				string(v.Evidence) == string(f.Evidence) {
				x.claimed[i], f = true, v
				heard++
				break
			}
		}
		out.Findings = append(out.Findings, f)
	}
	if len(c.Heads) > 0 {
		out.Outcome, out.False, out.Ahead, out.True = rollout.RuleFired, nil, nil, c.Held
		switch {
		case len(out.Findings) > 0 && heard == 0:
			out.Outcome = rollout.RuleUnheard
		case len(out.Findings) > 0 && !slices.ContainsFunc(out.Findings, func(f rollout.Finding) bool {
			return f.Waived == ""
		}):
			out.Outcome = rollout.RuleWaived
		}
	}
	for i, f := range x.verdict.Findings {
		if f.Package == x.pkg && strings.HasPrefix(f.Rule, "policy.") && c.Has(f.Location) {
			x.claimed[i] = true
			out.Outcome, out.Findings = rollout.RuleFailed, append(out.Findings, f)
		}
	}
	slices.SortFunc(out.Findings, compareFindings)
	return cmp.Or(name, c.Set.Name+" at "+out.Location), out
}

// compareLocations orders file:line by file and number.
func compareLocations(a, b string) int {
	fileA, lineA, _ := strings.Cut(a, ":")
	fileB, lineB, _ := strings.Cut(b, ":")
	return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(len(lineA), len(lineB)), cmp.Compare(lineA, lineB))
}

// strictest is the strictness of a rule's strictest finding.
func strictest(r rollout.RuleExplanation) int {
	out := -1
	for _, c := range r.Clauses {
		for _, f := range c.Findings {
			out = max(out, f.Effect.Strictness())
		}
	}
	return out
}
