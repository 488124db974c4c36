package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// judgment is one call of Judge.
type judgment struct {
	ctx context.Context
	*Document
	engine *Engine
	// held are findings about all.
	held []rollout.Finding
}

// results are the rule sets of a package that are defined, and what could not be evaluated.
type results struct {
	sets     map[string]reading
	failures []rollout.Finding
}

// ask evaluates a package of a book. Where that fails, each rule set is asked by itself, and one that fails is asked of
// the library alone: a broken rule does not hide what the others say.
func (j *judgment) ask(b *rulebook, pkg string, input ast.Value) results {
	p := b.all.packages[pkg]
	if p == nil {
		return results{failures: []rollout.Finding{{Package: pkg, Rule: "policy.broken", Effect: rollout.HoldEffect,
			Message: "the policies do not compile"}}}
	}
	out := results{sets: make(map[string]reading, len(p.sets))}
	if why := b.quarantine.excluded(pkg); why != "" {
		out.fail(rollout.Finding{Package: pkg, Rule: "policy.timeout", Effect: rollout.HoldEffect, Message: why,
			Location: p.foreign})
	} else {
		err := j.together(b, p, out.sets, input)
		if err == nil {
			return out
		}
		out.fail(j.failure(b, pkg, err))
		clear(out.sets)
	}
	for _, set := range parse.Contract()[pkg] {
		if _, ok := p.sets[set.Name]; ok {
			j.one(b, ruleSet{pkg, set.Name}, input, &out)
		}
	}
	return out
}

// together asks for all rule sets of a package.
func (j *judgment) together(b *rulebook, p *prepared, sets map[string]reading, input ast.Value) error {
	if len(p.whole.sets) > 0 {
		readings, err := j.run(b, p.whole, input)
		if err != nil {
			return err
		}
		for i, set := range p.whole.sets {
			sets[set.Name] = readings[i]
		}
	}
	for _, name := range p.apart {
		readings, err := j.run(b, p.sets[name], input)
		switch {
		case errors.Is(err, errUndefined):
		case err != nil:
			return err
		default:
			sets[name] = readings[0]
		}
	}
	return nil
}

// ruleSet names one rule set of a package.
type ruleSet struct{ pkg, set string }

// one asks for one rule set, and the library alone where that fails or the package is not asked now.
func (j *judgment) one(b *rulebook, of ruleSet, input ast.Value, out *results) {
	if b.quarantine.excluded(of.pkg) == "" {
		readings, err := j.run(b, b.all.packages[of.pkg].sets[of.set], input)
		if err == nil {
			out.sets[of.set] = readings[0]
		}
		if err == nil || errors.Is(err, errUndefined) {
			return
		}
		out.fail(j.failure(b, of.pkg, err))
	}
	alone := b.library()
	fallback := alone.packages[of.pkg]
	if fallback == nil || alone == b.all || len(fallback.sets[of.set].sets) == 0 {
		return
	}
	readings, err := alone.run(fallback.sets[of.set], j.question(input))
	switch {
	case errors.Is(err, errUndefined):
	case err != nil:
		out.fail(j.failure(b, of.pkg, err))
	default:
		out.sets[of.set] = readings[0]
	}
}

// run asks the policies of a book.
func (j *judgment) run(b *rulebook, q query, input ast.Value) ([]reading, error) {
	if b.foreign {
		start := time.Now()
		defer func() { b.quarantine.charge(q.pkg, time.Since(start)) }()
		defer j.engine.watch(b, q.pkg, j.engine.bounds.Timeout)()
	}
	return b.all.run(q, j.question(input))
}

func (j *judgment) question(input ast.Value) question {
	return question{input: input, now: j.now, budget: newBudget(j.ctx, j.engine.bounds)}
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

// failure turns an evaluation that failed into a finding that holds.
func (j *judgment) failure(b *rulebook, pkg string, err error) rollout.Finding {
	f := rollout.Finding{Package: pkg, Rule: "policy.error", Effect: rollout.HoldEffect}
	var evalError *topdown.Error
	var spent exhausted
	var fell parse.Panicked
	switch {
	case j.ctx.Err() != nil:
		f.Rule, f.Message = "policy.cancelled", "the evaluation was canceled"
		return f
	case errors.As(err, &spent):
		f.Rule, f.Message = "policy.timeout", fmt.Sprintf("the policies of %s %s", pkg, string(spent))
		f.Location = b.all.packages[pkg].foreign
		b.quarantine.exclude(pkg, f.Message)
		return f
	case errors.As(err, &fell):
		f.Message, f.Location = parse.Cut(err.Error(), parse.MaxMessage), b.all.packages[pkg].foreign
		return f
	case !errors.As(err, &evalError):
		f.Message = parse.Cut(err.Error(), parse.MaxMessage)
		return f
	}
	f.Location = b.location(evalError)
	f.Message = parse.Cut(evalError.Code+": "+evalError.Message, parse.MaxMessage)
	// facts.require has no other way to say which fact than through to_number, whose error carries it.
	var number *strconv.NumError
	if l := evalError.Location; l != nil && l.File != "" && l.File == b.factsPath && errors.As(err, &number) {
		f.Rule, f.Message = "policy.fact", parse.Cut(number.Num, parse.MaxMessage)
	}
	return f
}

// location is the innermost place outside the library that an error came through, or else where it arose.
func (b *rulebook) location(err *topdown.Error) string {
	where := err.Location
	for _, frame := range err.StackTrace {
		if l := frame.Location; l != nil && l.File != "" && !b.ours[l.File] {
			where = l
			break
		}
	}
	if where == nil || where.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", where.File, where.Row)
}
