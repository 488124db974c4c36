package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// panicked is a panic of the evaluator.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// judgement is one call of Judge.
type judgement struct {
	ctx    context.Context
	engine *Engine
	now    time.Time
	// slow are packages that ran out of time: what a repository adds to them is not asked again in this call.
	slow map[string]bool
}

// results are the rule sets of a package that are defined, and what could not be evaluated.
type results struct {
	sets     map[string]*ast.Term
	failures []rollout.Finding
}

// ask evaluates a package. Where that fails, each rule set is asked by itself, and one that fails is asked of the
// library alone: a broken rule does not hide what the others say.
func (j *judgement) ask(pkg string, input ast.Value) results {
	p := j.engine.all.packages[pkg]
	if p == nil {
		return results{failures: []rollout.Finding{{Package: pkg, Rule: "policy.broken", Effect: rollout.HoldEffect,
			Message: "the policies do not compile"}}}
	}
	out := results{sets: map[string]*ast.Term{}}
	if !j.slow[pkg] {
		whole, err := j.eval(p.whole, input)
		if err == nil {
			out.sets = members(whole)
			return out
		}
		out.fail(j.failure(pkg, err))
	} else {
		out.fail(j.failure(pkg, &topdown.Error{Code: topdown.CancelErr}))
	}
	fallback := j.engine.library.packages[pkg]
	for _, set := range contract()[pkg] {
		if !j.slow[pkg] {
			t, err := j.eval(p.sets[set.name], input)
			if err == nil {
				out.put(set.name, t)
				continue
			}
			out.fail(j.failure(pkg, err))
		}
		if fallback == nil || fallback == p {
			continue
		}
		t, err := j.eval(fallback.sets[set.name], input)
		if err != nil {
			out.fail(j.failure(pkg, err))
			continue
		}
		out.put(set.name, t)
	}
	return out
}

func (r *results) put(set string, t *ast.Term) {
	if t != nil {
		r.sets[set] = t
	}
}

// fail notes a failure, once.
func (r *results) fail(f rollout.Finding) {
	same := func(o rollout.Finding) bool {
		return o.Rule == f.Rule && o.Message == f.Message && o.Location == f.Location
	}
	if !slices.ContainsFunc(r.failures, same) {
		r.failures = append(r.failures, f)
	}
}

// members are the rule sets of a whole answer.
func members(whole *ast.Term) map[string]*ast.Term {
	out := map[string]*ast.Term{}
	o, ok := whole.Value.(ast.Object)
	if !ok {
		return out
	}
	o.Foreach(func(k, v *ast.Term) {
		if s, ok := k.Value.(ast.String); ok {
			out[string(s)] = v
		}
	})
	return out
}

// eval evaluates one query. Nil: undefined.
func (j *judgement) eval(q rego.PreparedEvalQuery, input ast.Value) (term *ast.Term, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked{r}
		}
	}()
	if err := j.ctx.Err(); err != nil {
		return nil, err
	}
	cancel := topdown.NewCancel()
	timer := time.AfterFunc(j.engine.timeout, cancel.Cancel)
	defer timer.Stop()
	stop := context.AfterFunc(j.ctx, cancel.Cancel)
	defer stop()
	rs, err := q.Eval(j.ctx, rego.EvalParsedInput(input), rego.EvalTime(j.now), rego.EvalExternalCancel(cancel))
	switch {
	case err != nil:
		return nil, err
	case len(rs) == 0:
		return nil, nil
	case len(rs) > 1:
		return nil, fmt.Errorf("%d answers where one is expected", len(rs))
	}
	term, ok := rs[0].Bindings[answer].(*ast.Term)
	if !ok {
		return nil, errors.New("the query gave no answer")
	}
	return term, nil
}

// failure turns an evaluation that failed into a finding that holds.
func (j *judgement) failure(pkg string, err error) rollout.Finding {
	f := rollout.Finding{Package: pkg, Rule: "policy.error", Effect: rollout.HoldEffect}
	var evalError *topdown.Error
	switch {
	case j.ctx.Err() != nil:
		f.Rule, f.Message = "policy.cancelled", "the evaluation was cancelled"
		return f
	case topdown.IsCancel(err):
		j.slow[pkg] = true
		f.Rule, f.Message = "policy.timeout", fmt.Sprintf("the policies of %s took longer than %s", pkg, j.engine.timeout)
		return f
	case !errors.As(err, &evalError):
		f.Message = cut(err.Error(), maxMessage)
		return f
	}
	f.Location = j.engine.location(evalError)
	f.Message = cut(evalError.Code+": "+evalError.Message, maxMessage)
	// facts.require has no other way to say which fact than through to_number, whose error carries it.
	var number *strconv.NumError
	if l := evalError.Location; l != nil && l.File != "" && l.File == j.engine.factsPath && errors.As(err, &number) {
		f.Rule, f.Message = "policy.fact", cut(number.Num, maxMessage)
	}
	return f
}

// location is the innermost place outside the library that an error came through, or else where it arose.
func (e *Engine) location(err *topdown.Error) string {
	where := err.Location
	for _, frame := range err.StackTrace {
		if l := frame.Location; l != nil && l.File != "" && !e.ours[l.File] {
			where = l
			break
		}
	}
	if where == nil || where.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", where.File, where.Row)
}
