package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	library "github.com/rampart-gitops/rampart/rego"
)

// rulebook is a library with other modules and data on top, compiled once.
type rulebook struct {
	digest   string
	problems []Problem
	// all policies that compile.
	all *policies
	// library is the library alone, which is asked where the others fail, and is compiled then. It is all where there are no others.
	library func() *policies
	// ours are the paths of the library's modules; factsPath is the one of package rampart.facts.
	ours      map[string]bool
	factsPath string
	// total says that a package without any defined rule is a hold.
	total bool
	// only are the rules that have a say; nil: all.
	only map[string]bool
	// foreign says that there are modules beside the library's; they are untrusted.
	foreign    bool
	quarantine quarantine
	// looks are the parts of the input that modules refer to; all says that a module refers to it as a whole.
	looks    map[string]bool
	looksAll bool
	// statuses are the contexts of commit statuses that policies may ask about.
	statuses map[string]bool
	kept     keptSpecs
}

type bookConfig struct {
	library, modules []Module
	data             []DataFile
	total            bool
	only             map[string]bool
	// limit of time for the modules.
	limit time.Duration
}

// newRulebook makes a rulebook within a time. Untrusted modules can take for ever to compile, such as types of values
// within values within values. A compilation that takes too long is left to itself, and the library speaks alone.
func newRulebook(cfg bookConfig) *rulebook {
	if len(cfg.modules) == 0 {
		return makeRulebook(cfg)
	}
	b, err := within(cfg.limit, func() (*rulebook, error) { return makeRulebook(cfg), nil })
	switch {
	case errors.Is(err, errSlowCompile):
		return refused(cfg, fmt.Sprintf("reading and compiling them takes more than %s", cfg.limit))
	case err != nil:
		return refused(cfg, err.Error())
	}
	return b
}

// refused is the rulebook of a library whose modules can't be read.
func refused(cfg bookConfig, why string) *rulebook {
	modules := cfg.modules
	cfg.modules = nil
	b := makeRulebook(cfg)
	b.add(Problem{Path: "policies", Message: cut(why, maxMessage)})
	for _, m := range modules {
		b.digest = "sha256:" + sum([]byte(b.digest+m.Source))
	}
	return b
}

func makeRulebook(cfg bookConfig) *rulebook {
	b := &rulebook{ours: map[string]bool{}, total: cfg.total, only: cfg.only, foreign: len(cfg.modules) > 0}
	s := &source{book: b}
	for _, m := range cfg.library {
		b.ours[m.Path] = true
		s.parse(m)
	}
	own := s.parsed
	s.parsed = nil
	for _, m := range withinBounds(cfg.modules, b) {
		s.parseOwn(m)
	}
	for _, m := range own {
		if m.Package.Path.String() == "data."+packageFacts {
			b.factsPath = m.Package.Location.File
		}
	}
	b.look(slices.Concat(own, s.parsed))
	data, problems := loadData(cfg.data)
	b.add(problems...)
	b.statuses = statusesIn(s.parsed)
	addConfigured(b.statuses, data)
	var err error
	if b.digest, err = digest(slices.Concat(own, s.parsed), s.broken, data); err != nil {
		b.add(Problem{Path: "policies", Message: err.Error()})
	}
	documents, err := newDocuments(data)
	b.addErrors("data", err)
	b.all = b.prepare(s.compile(own, data), documents)
	b.library = func() *policies { return b.all }
	b.lookBehind(configuredRules(cfg.data), data)
	b.kept.timeless = b.all.compiler != nil && !b.all.compiler.Failed() && timeless(b.all.compiler, packageSpec)
	if len(s.parsed) > 0 {
		alone := &rulebook{ours: b.ours}
		b.library = sync.OnceValue(func() *policies {
			c, _ := compileModules(own, nil) // its errors are among those of all
			return alone.prepare(c, documents)
		})
	}
	return b
}

// look notes what of the input modules refer to.
func (b *rulebook) look(modules []*ast.Module) {
	b.looks = map[string]bool{}
	for _, m := range modules {
		visitRefs(m, func() { b.looksAll = true }, func(_ ast.Ref, part string, ofInput bool) {
			if ofInput {
				b.looks[part] = true
			}
		})
	}
}

// partOfInput gives the part that a reference names, which a variable does not.
func partOfInput(r ast.Ref) (string, bool) {
	if len(r) < 2 || !r[0].Equal(ast.InputRootDocument) {
		return "", false
	}
	part, ok := r[1].Value.(ast.String)
	return string(part), ok
}

// withinBounds are the modules that are read; that others are not is a problem.
func withinBounds(modules []Module, b *rulebook) []Module {
	size := 0
	for i, m := range modules {
		if size += len(m.Source); size > maxSource || i >= maxModules {
			b.add(Problem{Path: m.Path, Message: fmt.Sprintf("more than %d files or %d MiB of policies: this one and %d more are not read",
				maxModules, maxSource>>20, len(modules)-i-1)})
			return modules[:i]
		}
	}
	return modules
}

func (b *rulebook) add(problems ...Problem) { b.problems = append(b.problems, problems...) }

// addErrors reports the errors of OPA; those without a place belong to path.
func (b *rulebook) addErrors(path string, err error) { b.add(problemsOf(path, err)...) }

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

// source collects modules.
type source struct {
	book   *rulebook
	parsed []*ast.Module
	// broken are those that do not parse.
	broken []Module
}

// parse reads one module; nil if it cannot be used, which is reported.
func (s *source) parse(m Module) *ast.Module {
	parsed, err := parseModule(m)
	if err != nil {
		s.book.add(unparsed(m, err)...)
		s.broken = append(s.broken, m)
		return nil
	}
	s.parsed = append(s.parsed, parsed)
	return parsed
}

// unparsed is what is wrong with a module that does not parse: of one in Rego v0, once for each line, what to do.
func unparsed(m Module, err error) []Problem {
	problems := problemsOf(m.Path, err)
	if !oldSyntax(m) {
		return problems
	}
	slices.SortFunc(problems, compareProblems)
	problems = slices.CompactFunc(problems, func(a, b Problem) bool { return a.Line == b.Line })
	for i := range problems {
		problems[i].Message = cut("this is Rego v0, and Rego v1 is expected: "+problems[i].Message+" (opa fmt --v0-v1 --write rewrites the file)", maxMessage)
	}
	return problems
}

// oldSyntax reports whether a module is Rego v0.
func oldSyntax(m Module) bool {
	var err error
	defer recovered(&err)
	if len(m.Source) > MaxFileSize || readable(m) != nil {
		return false
	}
	old, err := ast.ParseModuleWithOpts(m.Path, m.Source, ast.ParserOptions{RegoVersion: ast.RegoV0, Capabilities: capabilities()})
	return err == nil && old != nil
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
	case s.book.ours[m.Path]:
		err = at(p, "the path is that of a module of the library")
	default:
		err = allowedPackage(p, name)
	}
	s.book.addErrors(m.Path, err)
	if err != nil && !library.IsTest(m.Path) {
		s.parsed = s.parsed[:len(s.parsed)-1]
		s.broken = append(s.broken, m)
	}
}

// parsedLibrary holds the modules of the default library, which every rulebook has, so that a process parses them once. Compilers copy what
// they are given.
var parsedLibrary = sync.OnceValue(func() map[Module]*ast.Module {
	out := map[Module]*ast.Module{}
	for _, m := range library.Modules() {
		parsed, err := ast.ParseModuleWithOpts(m.Path, m.Source, ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()})
		if err != nil {
			panic(err) // the files are embedded
		}
		out[m] = parsed
	}
	return out
})

func parseModule(m Module) (parsed *ast.Module, err error) {
	defer recovered(&err)
	if parsed, ok := parsedLibrary()[m]; ok {
		return parsed, nil
	}
	if len(m.Source) > MaxFileSize {
		return nil, fmt.Errorf("the file has %d bytes; more than %d are not read", len(m.Source), MaxFileSize)
	}
	if err := readable(m); err != nil {
		return nil, err
	}
	parsed, err = ast.ParseModuleWithOpts(m.Path, m.Source, ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()})
	if err == nil && parsed == nil {
		err = errors.New("the file is empty")
	}
	if err == nil {
		err = tooLarge(parsed)
	}
	return parsed, err
}

// panicked is a panic of OPA's, which has no place.
type panicked string

func (p panicked) Error() string { return string(p) }

// recovered turns a panic into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = panicked(fmt.Sprintf("panic: %v", r))
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
			s.book.addErrors("library", err)
			return c
		}
		kept := slices.DeleteFunc(slices.Clone(rest), func(m *ast.Module) bool { return names(err, m) })
		if len(kept) < len(rest) {
			s.book.addErrors("policies", err)
			rest = kept
			continue
		}
		// The errors name the library only: one of the modules is at odds with it.
		rest = slices.DeleteFunc(kept, func(m *ast.Module) bool {
			_, err := compileModules(append(slices.Clone(own), m), data)
			for _, p := range problemsOf(m.Package.Location.File, err) {
				s.book.add(Problem{Path: m.Package.Location.File, Line: m.Package.Location.Row, Message: p.Error()})
			}
			return err != nil
		})
		if len(rest) == len(kept) {
			s.book.addErrors("policies", err)
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
	c.WithStageAfterID(ast.StageSetGraph, ast.CompilerStageDefinition{Name: "CheckDepth", MetricName: "check_depth", Stage: tooDeep})
	c.WithStageAfterID(ast.StageSetGraph, ast.CompilerStageDefinition{Name: "CheckWidth", MetricName: "check_width", Stage: tooWide})
	if c.Compile(set); c.Failed() {
		return c, c.Errors
	}
	return c, nil
}

// within reads or compiles within a time. What takes longer is left to itself; a panic is an error.
func within[T any](limit time.Duration, compile func() (T, error)) (T, error) {
	type compiled struct {
		value T
		err   error
	}
	done := make(chan compiled, 1)
	go func() {
		var got compiled
		defer func() { done <- got }()
		defer recovered(&got.err)
		got.value, got.err = compile()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-done:
		return got.value, got.err
	case <-timer.C:
		var none T
		return none, fmt.Errorf("%w: more than %s", errSlowCompile, limit)
	}
}

// errSlowCompile says that compiling takes too long; it names no module.
var errSlowCompile = errors.New("compiling takes too long")

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
