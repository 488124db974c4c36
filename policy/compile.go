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
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/rampart-gitops/rampart/internal/rollout"
	library "github.com/rampart-gitops/rampart/rego"
)

// Engine is policies and data, compiled once.
type Engine struct {
	digest   string
	problems []Problem
	// broken are the problems as findings, on every action.
	broken  []rollout.Finding
	timeout time.Duration
	// all policies that compile; library is the library alone, which is asked where the others fail. They are the same
	// where there are no others.
	all, library *policies
	// ours are the paths of the library's modules; factsPath is the one of package rampart.facts.
	ours      map[string]bool
	factsPath string
}

// Compile prepares policies. It always gives an Engine: what is broken is left out, held against every raise, and
// listed by Problems.
func Compile(cfg Config) *Engine {
	if cfg.Library == nil {
		cfg.Library = library.Modules()
	}
	e := &Engine{timeout: cmp.Or(cfg.Timeout, DefaultTimeout), ours: map[string]bool{}}
	s := &source{engine: e}
	for _, m := range cfg.Library {
		e.ours[m.Path] = true
		s.parse(m)
	}
	own := s.parsed
	s.parsed = nil
	for _, m := range cfg.Modules {
		s.parseOwn(m)
	}
	for _, m := range own {
		if m.Package.Path.String() == "data."+packageFacts {
			e.factsPath = m.Package.Location.File
		}
	}
	data, problems := loadData(cfg.Data)
	e.add(problems...)
	var err error
	if e.digest, err = digest(slices.Concat(own, s.parsed), s.broken, data); err != nil {
		e.add(Problem{Path: "policies", Message: err.Error()})
	}
	store := inmem.NewFromObjectWithOpts(data, inmem.OptReturnASTValuesOnRead(true))
	e.all = e.prepare(s.compile(own, data), store)
	e.library = e.all
	if len(s.parsed) > 0 {
		c, err := compileModules(own, data)
		e.addErrors("library", err)
		e.library = e.prepare(c, store)
	}
	slices.SortFunc(e.problems, compareProblems)
	e.problems = slices.Compact(e.problems)
	e.broken = problemFindings(e.problems)
	return e
}

// Digest names the policies and their data by what they mean: formatting and comments do not change it.
func (e *Engine) Digest() string { return e.digest }

// Problems are what is broken, sorted by file and line.
func (e *Engine) Problems() []Problem { return slices.Clone(e.problems) }

func (e *Engine) add(problems ...Problem) { e.problems = append(e.problems, problems...) }

// addErrors reports the errors of OPA; those without a place belong to path.
func (e *Engine) addErrors(path string, err error) { e.add(problemsOf(path, err)...) }

func problemsOf(path string, err error) []Problem {
	if err == nil {
		return nil
	}
	var list ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = ast.Errors{one}
	default:
		return []Problem{{Path: path, Message: cut(err.Error(), maxMessage)}}
	}
	var out []Problem
	for _, x := range list {
		p := Problem{Path: path, Message: cut(x.Message, maxMessage)}
		if x.Location != nil && x.Location.File != "" {
			p.Path, p.Line = x.Location.File, x.Location.Row
		}
		out = append(out, p)
	}
	return out
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
}

func problemFindings(problems []Problem) []rollout.Finding {
	var out []rollout.Finding
	for i, p := range problems {
		if i == maxProblems {
			break
		}
		out = append(out, rollout.Finding{Package: "rampart", Rule: "policy.broken", Effect: rollout.HoldEffect,
			Message: p.Message, Location: p.Location()})
	}
	return out
}

// source collects modules.
type source struct {
	engine *Engine
	parsed []*ast.Module
	// broken are those that do not parse.
	broken []Module
}

// parse reads one module; nil if it cannot be used, which is reported.
func (s *source) parse(m Module) *ast.Module {
	parsed, err := parseModule(m)
	if err != nil {
		s.engine.addErrors(m.Path, err)
		s.broken = append(s.broken, m)
		return nil
	}
	s.parsed = append(s.parsed, parsed)
	return parsed
}

// parseOwn reads a module of the repository. Files of tests are not policies: they are left out, and may hold no rule
// that would be read.
func (s *source) parseOwn(m Module) {
	p := s.parse(m)
	if p == nil {
		return
	}
	var err error
	switch name := packageName(p); {
	case library.IsTest(m.Path):
		s.parsed = s.parsed[:len(s.parsed)-1]
		err = onlyTests(p, name)
	case s.engine.ours[m.Path]:
		err = at(p, "the path is that of a module of the library")
	default:
		err = allowedPackage(p, name)
	}
	s.engine.addErrors(m.Path, err)
	if err != nil && !library.IsTest(m.Path) {
		s.parsed = s.parsed[:len(s.parsed)-1]
		s.broken = append(s.broken, m)
	}
}

func parseModule(m Module) (parsed *ast.Module, err error) {
	defer recovered(&err)
	if len(m.Source) > MaxFileSize {
		return nil, fmt.Errorf("the file has %d bytes; more than %d are not read", len(m.Source), MaxFileSize)
	}
	parsed, err = ast.ParseModuleWithOpts(m.Path, m.Source, ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()})
	if err == nil && parsed == nil {
		err = errors.New("the file is empty")
	}
	return parsed, err
}

// recovered turns a panic into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v", r)
	}
}

func packageName(m *ast.Module) string { return strings.TrimPrefix(m.Package.Path.String(), "data.") }

func at(m *ast.Module, format string, args ...any) error {
	return &ast.Error{Code: ast.CompileErr, Location: m.Package.Location, Message: fmt.Sprintf(format, args...)}
}

// allowedPackage refuses packages in which a repository's rules would change the library, or never be asked.
func allowedPackage(m *ast.Module, name string) error {
	if _, ok := contract()[name]; ok || name != "rampart" && !strings.HasPrefix(name, "rampart.") && !strings.HasPrefix(name, "system.") {
		return nil
	}
	return at(m, "package %s: below rampart a policy may use %s, %s, %s and %s; helpers go elsewhere",
		name, packageSpec, packageRollout, packageDrift, packageSunset)
}

// onlyTests refuses a file of tests with a rule that would be read if the file had another name.
func onlyTests(m *ast.Module, name string) error {
	for _, set := range contract()[name] {
		for _, r := range m.Rules {
			if r.Head.Ref()[0].Value.Compare(ast.Var(set.name)) == 0 {
				return &ast.Error{Code: ast.CompileErr, Location: r.Location,
					Message: fmt.Sprintf("%s in a file of tests has no effect: move it to a file whose name does not end in _test.rego", set.name)}
			}
		}
	}
	return nil
}

// compile compiles the library and as many of the other modules as go with it. Those that do not are reported and left
// out, so that the rest still has its say.
func (s *source) compile(own []*ast.Module, data map[string]any) *ast.Compiler {
	rest := slices.Clone(s.parsed)
	for {
		c, err := compileModules(slices.Concat(own, rest), data)
		if err == nil || len(rest) == 0 {
			s.engine.addErrors("library", err)
			return c
		}
		kept := slices.DeleteFunc(slices.Clone(rest), func(m *ast.Module) bool { return names(err, m) })
		if len(kept) < len(rest) {
			s.engine.addErrors("policies", err)
			rest = kept
			continue
		}
		// The errors name the library only: one of the modules is at odds with it.
		rest = slices.DeleteFunc(kept, func(m *ast.Module) bool {
			_, err := compileModules(append(slices.Clone(own), m), data)
			for _, p := range problemsOf(m.Package.Location.File, err) {
				s.engine.add(Problem{Path: m.Package.Location.File, Line: m.Package.Location.Row, Message: p.Error()})
			}
			return err != nil
		})
		if len(rest) == len(kept) {
			s.engine.addErrors("policies", err)
			rest = nil
		}
	}
}

// names reports whether an error is placed in a module.
func names(err error, m *ast.Module) bool {
	return slices.ContainsFunc(problemsOf("", err), func(p Problem) bool { return p.Path == m.Package.Location.File })
}

func compileModules(modules []*ast.Module, data map[string]any) (c *ast.Compiler, err error) {
	defer recovered(&err)
	set := make(map[string]*ast.Module, len(modules))
	for i, m := range modules {
		set[fmt.Sprintf("%04d", i)] = m
	}
	c = ast.NewCompiler().WithCapabilities(capabilities()).WithDefaultRegoVersion(ast.RegoV1).
		SetErrorLimit(maxProblems).WithPathConflictsCheck(func(path []string) (bool, error) { return holds(data, path), nil })
	if c.Compile(set); c.Failed() {
		return c, c.Errors
	}
	return c, nil
}

// holds reports whether data has something at a path.
func holds(data map[string]any, path []string) bool {
	var v any = data
	for _, key := range path {
		m, _ := v.(map[string]any)
		next, ok := m[key]
		if !ok {
			return false
		}
		v = next
	}
	return true
}

// policies are prepared queries.
type policies struct{ packages map[string]*prepared }

// prepared are the queries of one package.
type prepared struct {
	// whole asks for all rule sets at once; its answer is an object without those that are not defined.
	whole rego.PreparedEvalQuery
	// sets ask for one each, where the whole fails.
	sets map[string]rego.PreparedEvalQuery
	// places of each rule set's rules, for messages.
	places map[string]string
}

// answer is the variable that queries bind.
const answer = "answer"

func (e *Engine) prepare(c *ast.Compiler, store storage.Store) *policies {
	out := &policies{packages: map[string]*prepared{}}
	if c == nil || c.Failed() {
		return out
	}
	for name, sets := range contract() {
		p := &prepared{sets: map[string]rego.PreparedEvalQuery{}, places: map[string]string{}}
		quoted := make([]string, 0, len(sets))
		var err error
		for _, set := range sets {
			quoted = append(quoted, fmt.Sprintf("%q", set.name))
			p.places[set.name] = e.places(c, name, set.name)
			p.sets[set.name], err = prepareQuery(c, store, fmt.Sprintf("%s = data.%s.%s", answer, name, set.name))
			e.addErrors(name, err)
		}
		p.whole, err = prepareQuery(c, store, fmt.Sprintf("%s = {k: v | some k in [%s]; v := data.%s[k]}", answer, strings.Join(quoted, ", "), name))
		e.addErrors(name, err)
		out.packages[name] = p
	}
	return out
}

func prepareQuery(c *ast.Compiler, store storage.Store, query string) (q rego.PreparedEvalQuery, err error) {
	defer recovered(&err)
	return rego.New(rego.Query(query), rego.Compiler(c), rego.Store(store), rego.SetRegoVersion(ast.RegoV1),
		rego.Capabilities(capabilities()), rego.StrictBuiltinErrors(true), rego.StackTraces(true),
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t, nil }),
	).PrepareForEval(context.Background())
}

// places says where a rule set's rules are: the repository's, or else the library's.
func (e *Engine) places(c *ast.Compiler, pkg, set string) string {
	var theirs, ours []string
	for _, r := range c.GetRulesWithPrefix(ast.MustParseRef("data." + pkg + "." + set)) {
		at := fmt.Sprintf("%s:%d", r.Location.File, r.Location.Row)
		if e.ours[r.Location.File] {
			ours = append(ours, at)
		} else {
			theirs = append(theirs, at)
		}
	}
	if len(theirs) == 0 {
		theirs = ours
	}
	slices.Sort(theirs)
	theirs = slices.Compact(theirs)
	if n := len(theirs); n > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(theirs[:3], ", "), n-3)
	}
	return strings.Join(theirs, ", ")
}
