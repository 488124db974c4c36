package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	library "github.com/rampart-gitops/rampart/rego"
)

// CheckKind says which check found a problem.
type CheckKind string

// The checks. What Compile finds has none.
const (
	CheckSyntax    CheckKind = "syntax"    // Rego v0
	CheckPackage   CheckKind = "package"   // a package that nothing asks
	CheckRule      CheckKind = "rule"      // a rule that nothing reads
	CheckShape     CheckKind = "shape"     // a rule whose answer is not what is read
	CheckName      CheckKind = "name"      // a finding under a name of the library's
	CheckInput     CheckKind = "input"     // a field of the input that is never there, a value that it never has
	CheckType      CheckKind = "type"      // terms whose types do not go together
	CheckParameter CheckKind = "parameter" // data that no file gives, or that no policy reads
	CheckMisplaced CheckKind = "misplaced" // parameters of the library in a place where nothing reads them
	CheckTest      CheckKind = "test"      // a test that does not compile
)

// sentinel begins the names of rules that Check adds to learn the types of others.
const sentinel = "rampart_check_"

// Check finds what is wrong with policies, their tests and their data without evaluating them: what Compile finds, and
// beyond that what would never have an effect, or never be true: fields of the input that do not exist, rules that
// nothing reads, rules of the wrong shape, parameters that are not given or not read. Sorted by file and line.
//
// Checks that need all modules, such as those of parameters, are made once every module can be used. What only Check
// finds does not keep an Engine from judging: an environment goes on under a stricter Check.
func Check(cfg Config) []Problem {
	if cfg.Library == nil {
		cfg.Library = library.Modules()
	}
	problems := Compile(cfg).Problems()
	var floor Config
	for _, l := range cfg.Floor {
		floor.Modules, floor.Data = append(floor.Modules, l.Modules...), append(floor.Data, l.Data...)
	}
	problems = append(problems, strayEnvironments(cfg)...)
	document := inputSchema()
	for _, part := range []Config{cfg, floor} { // which are judged apart
		part.Library = cfg.Library
		c := &checker{document: document, problems: problems}
		c.check(part)
		problems = c.problems
	}
	slices.SortFunc(problems, compareProblems)
	return slices.CompactFunc(problems, func(a, b Problem) bool { return compareProblems(a, b) == 0 })
}

func (c *checker) check(cfg Config) {
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
		c.misspeltTests(m)
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
	document inputDocument
	// whole says that no module and no data file is left out.
	whole    bool
	problems []Problem
}

func (c *checker) add(kind CheckKind, at *ast.Location, format string, args ...any) {
	p := Problem{Path: "policies", Check: kind, Message: cut(fmt.Sprintf(format, args...), maxMessage)}
	if at != nil && at.File != "" {
		p.Path, p.Line = at.File, at.Row
	}
	c.problems = append(c.problems, p)
}

// read parses the modules and the data. Compile has reported those that cannot be used.
func (c *checker) read(cfg Config) {
	c.whole = true
	broken := func(path string) bool {
		return slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Path == path })
	}
	for _, m := range cfg.Library {
		if parsed, err := parseModule(m); err == nil && !broken(m.Path) {
			c.library = append(c.library, parsed)
			c.reserved = append(c.reserved, ruleNames(m)...)
		}
	}
	for _, m := range withinBounds(cfg.Modules, &rulebook{}) {
		parsed, err := parseModule(m)
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
	c.data, _ = loadData(cfg.Data)
}

// LibraryRules are the names under which the default library reports, such as rollout.freeze, sorted.
func LibraryRules() []string {
	var out []string
	for _, m := range library.Modules() {
		out = append(out, ruleNames(m)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ruleNames are the names under which a module's annotations say that it reports.
func ruleNames(m Module) []string {
	parsed, err := ast.ParseModuleWithOpts(m.Path, m.Source, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true, Capabilities: capabilities()})
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
func (c *checker) oldSyntax(m Module) {
	if !oldSyntax(m) {
		return
	}
	for i, p := range c.problems {
		if p.Path == m.Path {
			c.problems[i].Check = CheckSyntax
		}
	}
}

// compile compiles all modules against the schema of the input, with a rule for each contract rule that tells its type.
// Type errors do not keep the result from being used. Nil: nothing can be said.
func (c *checker) compile() *ast.Compiler {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, c.document.raw)
	tests := c.tests
	for {
		compiler, err := within(DefaultCompile, func() (*ast.Compiler, error) {
			return tryCompile(schemas, slices.Concat(c.library, c.typed(), tests), c.data)
		})
		if err == nil {
			return compiler
		}
		problems := problemsOf("tests", err)
		left := slices.DeleteFunc(slices.Clone(tests), func(m *ast.Module) bool {
			return slices.ContainsFunc(problems, func(p Problem) bool { return p.Path == m.Package.Location.File })
		})
		for _, p := range problems {
			p.Check = CheckTest
			c.problems = append(c.problems, p)
		}
		c.whole = false
		if len(left) == len(tests) {
			return nil
		}
		tests = left
	}
}

// tryCompile gives an error for what is wrong beyond types.
func tryCompile(schemas *ast.SchemaSet, modules []*ast.Module, data map[string]any) (compiler *ast.Compiler, err error) {
	defer recovered(&err)
	set := make(map[string]*ast.Module, len(modules))
	for i, m := range modules {
		set[fmt.Sprintf("%04d", i)] = m
	}
	compiler = ast.NewCompiler().WithCapabilities(capabilities()).WithDefaultRegoVersion(ast.RegoV1).SetErrorLimit(maxProblems).
		WithSchemas(schemas).WithPathConflictsCheck(func(path []string) (bool, error) { return holds(data, path), nil })
	compiler.Compile(set)
	var other ast.Errors
	for _, e := range compiler.Errors {
		if e.Code != ast.TypeErr || e.Details == nil { // conflicts and unknown functions are type errors without details
			other = append(other, e)
		}
	}
	if len(other) > 0 {
		return nil, other
	}
	return compiler, nil
}

// isTest reports whether a place is in a file of tests.
func isTest(at *ast.Location) bool { return at != nil && library.IsTest(at.File) }

// checked reports whether a module is a policy that is checked, and not of the library.
func (c *checker) checked(m *ast.Module) bool {
	return slices.ContainsFunc(c.policies, func(p *ast.Module) bool { return p.Package.Location.File == m.Package.Location.File })
}

// nearest is the name that is most like a misspelt one, "" if none is near enough: a third of its letters may differ.
func nearest(name string, names []string) string {
	best, distance := "", min(max(1, len(name)/3), len(name)-1)+1
	for _, n := range slices.Sorted(slices.Values(names)) {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n)); d < distance {
			best, distance = n, d
		}
	}
	return best
}

// instead says what may have been meant: the nearest name, or else all there are.
func instead(name string, names []string) string {
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	if len(names) == 0 || len(names) > maxOffered {
		return ""
	}
	return fmt.Sprintf(" (there is %s)", strings.Join(slices.Sorted(slices.Values(names)), ", "))
}

// maxOffered names are listed in a message.
const maxOffered = 40
