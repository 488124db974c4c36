package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/rampart-gitops/rampart/internal/confined"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/lint"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Memory is how many bytes a process may use that evaluates policies.
const Memory = 384 << 20

// Serve evaluates policies for an Engine in another process until that ends. Errors: the process can't be bounded.
func Serve() error {
	return confined.Serve(newService(), Memory)
}

func newService() *service {
	s := &service{overrun: make(chan rollout.Finding, 1), jobs: make(chan func())}
	go func() {
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// service is what an Engine calls in the process: policies are loaded once, then asked one question after the other.
type service struct {
	engine *policy.Engine
	masks  map[string]*policy.Masks
	// overrun gets the evaluation that could not be stopped.
	overrun chan rollout.Finding
	// jobs are done by one goroutine: evaluating needs a stack that has to grow, which a new one would do each time.
	jobs chan func()
}

// Answer is an answer, or the evaluation that could not be stopped, after which the process is of no use.
type Answer[T any] struct {
	Value   T
	Overrun *rollout.Finding
}

// answer does work on the document of a question, and gives up when an evaluation can't be stopped.
func answer[T any](s *service, q Question, out *Answer[T], work func(*policy.Document) (T, error)) error {
	if s.engine == nil {
		return errNotLoaded
	}
	select {
	case <-s.overrun: // of what ended in the same moment
	default:
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	s.jobs <- func() {
		var r result
		defer func() { done <- r }()
		defer parse.Recovered(&r.err)
		var d *policy.Document
		if d, r.err = policy.DecodeDocument(q.Document); r.err == nil {
			r.value, r.err = work(d)
		}
	}
	select {
	case r := <-done:
		out.Value = r.value
		return r.err
	case f := <-s.overrun:
		out.Overrun = &f
		return nil
	}
}

// Facts are what policies say of themselves once they are compiled.
type Facts struct {
	Digest   string
	Problems []parse.Problem
	Looks    rollout.Looks
}

func factsOf(e *policy.Engine) Facts {
	return Facts{Digest: e.Digest(), Problems: e.Problems(), Looks: e.Looks()}
}

// Load compiles policies, which the other methods are about.
func (s *service) Load(cfg policy.Config, out *Facts) error {
	cfg.Overrun = func(f rollout.Finding) {
		select {
		case s.overrun <- f:
		default: // one is enough
		}
	}
	s.engine, s.masks = policy.Compile(cfg), map[string]*policy.Masks{}
	*out = factsOf(s.engine)
	return nil
}

// Question is what policies are asked.
type Question struct {
	// Document as JSON.
	Document []byte
	// Held are findings about all, beside those of the policies.
	Held []rollout.Finding
	// Action to explain, or to evaluate an Expression about.
	Action, Expression string
	// Mark and Pointers say where something was masked.
	Mark     string
	Pointers []string
	// Package, Location and Part are of a clause, and of the input.
	Package, Location, Part string
}

// Judge says what policies think of a document.
func (s *service) Judge(q Question, out *Answer[rollout.Verdicts]) error {
	return answer(s, q, out, func(d *policy.Document) (rollout.Verdicts, error) {
		return s.engine.JudgeHeld(context.Background(), d, q.Held), nil
	})
}

// Explain says rule by rule why policies say what they say of an action.
func (s *service) Explain(q Question, out *Answer[policy.Explanation]) error {
	return answer(s, q, out, func(d *policy.Document) (policy.Explanation, error) {
		return s.engine.ExplainHeld(context.Background(), d, q.Action, q.Held)
	})
}

// Ask evaluates an expression.
func (s *service) Ask(q Question, out *Answer[[]map[string]json.RawMessage]) error {
	return answer(s, q, out, func(d *policy.Document) ([]map[string]json.RawMessage, error) {
		return s.engine.Ask(context.Background(), d, q.Action, q.Expression)
	})
}

// ReadMasked reports whether policies read what was masked.
func (s *service) ReadMasked(q Question, out *Answer[bool]) error {
	return answer(s, q, out, func(d *policy.Document) (bool, error) {
		if s.masks[q.Mark] == nil {
			s.masks[q.Mark] = s.engine.Masks(q.Mark)
		}
		return s.masks[q.Mark].Read(context.Background(), d, q.Pointers)
	})
}

// ClauseLooksAt reports whether a clause may look at a part of the input.
func (s *service) ClauseLooksAt(q Question, out *Answer[bool]) error {
	if s.engine == nil {
		return errNotLoaded
	}
	out.Value = s.engine.ClauseLooksAt(q.Package, q.Location, q.Part)
	return nil
}

var errNotLoaded = errors.New("no policies are loaded")

// Check looks for mistakes in policies.
func (s *service) Check(cfg policy.Config, out *[]parse.Problem) error {
	*out = lint.Check(cfg)
	return nil
}

// Tests are tests of policies to run.
type Tests struct {
	Config policy.Config
	// Names is an expression that the names of tests match; "": all.
	Names string
}

// RunTests runs the tests of policies.
func (s *service) RunTests(t Tests, out *policy.TestReport) error {
	var names *regexp.Regexp
	if t.Names != "" {
		var err error
		if names, err = regexp.Compile(t.Names); err != nil {
			return err
		}
	}
	*out = policy.RunTests(context.Background(), t.Config, names)
	return nil
}
