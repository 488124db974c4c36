package lint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
	library "github.com/rampart-gitops/rampart/rego"
)

// sentinel begins the names of rules that Check adds to learn the types of others.
const sentinel = "rampart_check_"

// Check finds what is wrong with policies, their tests and their data without evaluating them. It finds what Compile
// finds, and what would never have an effect or never be true. Such are fields of the input that do not exist, rules
// that nothing reads, rules of the wrong shape, and parameters that are not given or not read. The problems are sorted
// by file and line.
//
// Checks that need all modules, such as those of parameters, are made once every module can be used. What only Check
// finds does not keep an Engine from judging: an environment goes on under a stricter Check.
func Check(cfg policy.Config) []parse.Problem {
	if cfg.Library == nil {
		cfg.Library = library.Modules()
	}
	problems := policy.Compile(cfg).Problems()
	var floor policy.Config
	for _, l := range cfg.Floor {
		floor.Modules, floor.Data = append(floor.Modules, l.Modules...), append(floor.Data, l.Data...)
	}
	problems = append(problems, strayEnvironments(cfg)...)
	document := input.Schema()
	for _, part := range []policy.Config{cfg, floor} { // which are judged apart
		part.Library = cfg.Library
		c := &checker{document: document, problems: problems}
		c.check(part)
		problems = c.problems
	}
	slices.SortFunc(problems, parse.CompareProblems)
	return slices.CompactFunc(problems, func(a, b parse.Problem) bool { return parse.CompareProblems(a, b) == 0 })
}

func (c *checker) check(cfg policy.Config) {
	if len(cfg.Modules)+len(cfg.Data) == 0 {
		return
	}
	c.read(cfg)
	c.packages()
	for _, m := range c.sources {
		c.contractRules(m)
		c.findingNames(m)
	}
	compiled := c.compile()
	if compiled != nil {
		c.types(compiled)
		c.unread(compiled)
		c.parameters(compiled, cfg.Data)
	}
	c.inputs()
	if compiled != nil {
		c.flows(compiled)
	}
	for _, m := range c.tests {
		c.misspelledTests(m)
		c.mocks(m)
	}
}

// checker checks modules and data that are judged together.
type checker struct {
	// library, policies and tests are the modules that can be used; sources are all policies that parse.
	library, policies, tests, sources []*ast.Module
	// reserved are the names of the library's findings.
	reserved []string
	data     map[string]any
	document input.SchemaTree
	// whole says that no module and no data file is left out.
	whole    bool
	problems []parse.Problem
}

func (c *checker) add(kind parse.CheckKind, at *ast.Location, format string, args ...any) {
	p := parse.Problem{Path: "policies", Check: kind,
		Message: parse.Cut(fmt.Sprintf(format, args...), parse.MaxMessage)}
	if at != nil && at.File != "" {
		p.Path, p.Line = at.File, at.Row
	}
	c.problems = append(c.problems, p)
}

// read parses the modules and the data. Compile has reported those that cannot be used.
func (c *checker) read(cfg policy.Config) {
	c.whole = true
	broken := func(path string) bool {
		return slices.ContainsFunc(c.problems, func(p parse.Problem) bool { return p.Path == path })
	}
	for _, m := range cfg.Library {
		if parsed, err := parse.Rego(m); err == nil && !broken(m.Path) {
			c.library = append(c.library, parsed)
			c.reserved = append(c.reserved, ruleNames(m)...)
		}
	}
	modules, _ := parse.WithinBounds(cfg.Modules)
	for _, m := range modules {
		parsed, err := parse.Rego(m)
		switch {
		case err != nil:
			c.whole = false
			c.oldSyntax(m)
		case library.IsTest(m.Path):
			c.tests = append(c.tests, parsed)
		case broken(m.Path):
			c.whole = false
			c.sources = append(c.sources, parsed)
			c.misnamed(parsed)
		default:
			c.sources = append(c.sources, parsed)
			c.policies = append(c.policies, parsed)
		}
	}
	c.whole = c.whole && len(cfg.Problems) == 0
	for _, f := range cfg.Data {
		c.whole = c.whole && !broken(f.Path)
	}
	c.data, _ = parse.LoadData(cfg.Data)
}

// LibraryRules are the names under which the default library reports, such as rollout.freeze, sorted.
func LibraryRules() []string {
	names, _ := RuleNames(policy.Config{})
	return names
}

// ruleNames are the names under which a module's annotations say that it reports.
func ruleNames(m parse.Module) []string {
	parsed, err := ast.ParseModuleWithOpts(m.Path, m.Source,
		ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true, Capabilities: parse.Capabilities()})
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range parsed.Annotations {
		if name, ok := a.Custom["rule"].(string); ok {
			out = append(out, name)
		}
	}
	return out
}

// oldSyntax says which check found a module that is Rego v0.
func (c *checker) oldSyntax(m parse.Module) {
	if !parse.OldSyntax(m) {
		return
	}
	for i, p := range c.problems {
		if p.Path == m.Path {
			c.problems[i].Check = parse.CheckSyntax
		}
	}
}

// compile compiles all modules against the schema of the input, with a rule for each contract rule that tells its type.
// Type errors do not keep the result from being used. Nil: nothing can be said.
func (c *checker) compile() *ast.Compiler {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, c.document.Raw)
	tests := c.tests
	for {
		compiler := parse.NewCompiler(c.data).WithSchemas(schemas)
		err := beyondTypes(parse.Compile(compiler, slices.Concat(c.library, c.typed(), tests)))
		if err == nil {
			return compiler
		}
		problems := parse.ProblemsOf("tests", err)
		left := slices.DeleteFunc(slices.Clone(tests), func(m *ast.Module) bool {
			return slices.ContainsFunc(problems, func(p parse.Problem) bool {
				return p.Path == m.Package.Location.File
			})
		})
		for _, p := range problems {
			p.Check = parse.CheckTest
			c.problems = append(c.problems, p)
		}
		c.whole = false
		if len(left) == len(tests) {
			return nil
		}
		tests = left
	}
}

// beyondTypes is an error of a compiler without those about types; nil where there is nothing else.
func beyondTypes(err error) error {
	var all ast.Errors
	if !errors.As(err, &all) {
		return err
	}
	// conflicts and unknown functions are type errors without details
	other := slices.DeleteFunc(slices.Clone(all), func(e *ast.Error) bool {
		return e.Code == ast.TypeErr && e.Details != nil
	})
	if len(other) == 0 {
		return nil
	}
	return other
}

// isTest reports whether a place is in a file of tests.
func isTest(at *ast.Location) bool { return at != nil && library.IsTest(at.File) }

// checked reports whether a module is a policy that is checked, and not of the library.
func (c *checker) checked(m *ast.Module) bool {
	return slices.ContainsFunc(c.policies, func(p *ast.Module) bool {
		return p.Package.Location.File == m.Package.Location.File
	})
}
