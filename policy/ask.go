package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/policy/parse"
)

// maxAnswers bounds the answers to one expression.
const maxAnswers = 1000

// askedValue is the variable that the value of a plain expression is bound to.
const askedValue = "result"

// Ask evaluates a Rego expression beside the policies and their data, on the input about an action; on that of
// rampart.spec for the action "". A field that no input has, nor this one, is an error. Each answer has the values of
// its variables as JSON; where the expression has no variables of its own, its value as "result". No answers: it is
// undefined. Errors: an action that the document does not have, an expression that does not compile, an error of a
// builtin, and bounds as for policies.
func (e *Engine) Ask(ctx context.Context, d *Document, actionID,
	expression string) (answers []map[string]json.RawMessage, err error) {
	defer parse.Recovered(&err)
	input := d.SpecInput()
	if actionID != "" {
		var ok bool
		if input, ok = d.Input(actionID); !ok {
			return nil, fmt.Errorf("the input has no action %q; it has: %s", actionID, strings.Join(d.Actions(), ", "))
		}
	}
	p := e.books[0].all
	if p.compiler == nil || p.compiler.Failed() || p.data == nil {
		return nil, fmt.Errorf("the policies do not compile: %w", e.problems[0])
	}
	q, err := p.compileExpression(expression, input)
	if err != nil {
		return nil, fmt.Errorf("compile expression: %w", err)
	}
	defer e.watch(e.books[0], "", e.bounds.Timeout)()
	answers, err = p.answers(q, question{input: input, now: d.now, budget: newBudget(ctx, e.bounds)})
	if spent := exhausted(""); errors.As(err, &spent) {
		return nil, fmt.Errorf("the expression %w", err)
	}
	return answers, err
}

// answers evaluates an expression. What it answers is bounded by the patience of who waits alone.
func (p *policies) answers(q query, ask question) (answers []map[string]json.RawMessage, err error) {
	err = p.query(q, ask).WithStrictBuiltinErrors(true).Iter(ask.budget.ctx, func(r topdown.QueryResult) error {
		if len(answers) == maxAnswers {
			return fmt.Errorf("more than %d answers", maxAnswers)
		}
		one, err := answerOf(r, q.compiler.RewrittenVars())
		answers = append(answers, one)
		return err
	})
	if ask.budget.spent != "" {
		return nil, exhausted(ask.budget.spent)
	}
	return answers, err
}

// compileExpression compiles an expression: one that is a value is bound to a variable.
func (p *policies) compileExpression(expression string, input ast.Value) (q query, err error) {
	options := ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: parse.Capabilities()}
	body, err := ast.ParseBodyWithOpts(expression, options)
	if err != nil {
		return query{}, err
	}
	if err := misspelled(body, input); err != nil {
		return query{}, err
	}
	if len(body) == 1 && !body[0].IsAssignment() && !body[0].IsEquality() {
		if bound, err := ast.ParseBodyWithOpts(askedValue+" = "+expression, options); err == nil && len(bound) == 1 {
			body = bound
		}
	}
	q.compiler = p.compiler.QueryCompiler()
	q.body, err = q.compiler.Compile(body)
	return q, err
}

// answerOf are the variables that a person wrote, and their values.
func answerOf(r topdown.QueryResult, written map[ast.Var]ast.Var) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for v, t := range r {
		if name, ok := written[v]; ok {
			v = name
		}
		if v.IsGenerated() || v.IsWildcard() || strings.HasPrefix(string(v), "__local") {
			continue
		}
		plain, err := ast.JSON(t.Value)
		if err != nil {
			return nil, err
		}
		if out[string(v)], err = json.Marshal(plain); err != nil {
			return nil, err
		}
	}
	return out, nil
}
