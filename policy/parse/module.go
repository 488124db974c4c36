package parse

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	library "github.com/rampart-gitops/rampart/rego"
)

// Unparsed is what is wrong with a module that does not parse: of one in Rego v0, once for each line, what to do.
func Unparsed(m Module, err error) []Problem {
	problems := ProblemsOf(m.Path, err)
	if !OldSyntax(m) {
		return problems
	}
	slices.SortFunc(problems, CompareProblems)
	problems = slices.CompactFunc(problems, func(a, b Problem) bool { return a.Line == b.Line })
	for i := range problems {
		problems[i].Message = Cut("this is Rego v0, and Rego v1 is expected: "+problems[i].Message+
			" (opa fmt --v0-v1 --write rewrites the file)", MaxMessage)
	}
	return problems
}

// OldSyntax reports whether a module is Rego v0.
func OldSyntax(m Module) bool {
	var err error
	defer Recovered(&err)
	if len(m.Source) > MaxFileSize {
		return false
	}
	old, err := ast.ParseModuleWithOpts(m.Path, m.Source,
		ast.ParserOptions{RegoVersion: ast.RegoV0, Capabilities: Capabilities()})
	return err == nil && old != nil
}

// Library holds the modules of the default library, which every rulebook has, so that a process parses them once.
// Compilers copy what they are given.
func Library() map[Module]*ast.Module { return parsedOnce() }

var parsedOnce = sync.OnceValue(func() map[Module]*ast.Module {
	out := map[Module]*ast.Module{}
	for _, m := range library.Modules() {
		parsed, err := ast.ParseModuleWithOpts(m.Path, m.Source,
			ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: Capabilities()})
		if err != nil {
			panic(err) // the files are embedded
		}
		out[m] = parsed
	}
	return out
})

// Rego parses a module in Rego v1. It fails, with a place where there is one, on a file that is empty, too large, or
// not Rego v1.
func Rego(m Module) (parsed *ast.Module, err error) {
	defer Recovered(&err)
	if parsed, ok := Library()[m]; ok {
		return parsed, nil
	}
	if len(m.Source) > MaxFileSize {
		return nil, fmt.Errorf("the file has %d bytes; more than %d are not read", len(m.Source), MaxFileSize)
	}
	parsed, err = ast.ParseModuleWithOpts(m.Path, m.Source,
		ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: Capabilities()})
	if err == nil && parsed == nil {
		err = errors.New("the file is empty")
	}
	return parsed, err
}

// PackageName is the name of a module's package without data.
func PackageName(m *ast.Module) string { return strings.TrimPrefix(m.Package.Path.String(), "data.") }

// ErrorAt is an error at the package line of a module.
func ErrorAt(m *ast.Module, format string, args ...any) error {
	return &ast.Error{Code: ast.CompileErr, Location: m.Package.Location, Message: fmt.Sprintf(format, args...)}
}

// AllowedPackage refuses packages in which a repository's rules would change the library, or never be asked.
func AllowedPackage(m *ast.Module, name string) error {
	if _, ok := Contract()[name]; ok || name != "rampart" && !strings.HasPrefix(name, "rampart.") &&
		!strings.HasPrefix(name, "system.") {
		return nil
	}
	return ErrorAt(m, "package %s: below rampart a policy may use %s, %s, %s and %s; helpers go elsewhere",
		name, PackageSpec, PackageRollout, PackageDrift, PackageSunset)
}

// OnlyTests refuses a file of tests with a rule that would be read if the file had another name.
func OnlyTests(m *ast.Module, name string) error {
	for _, set := range Contract()[name] {
		for _, r := range m.Rules {
			if r.Head.Ref()[0].Value.Compare(ast.Var(set.Name)) == 0 {
				return &ast.Error{Code: ast.CompileErr, Location: r.Location,
					Message: fmt.Sprintf("%s in a file of tests has no effect: move it to a file whose name does not "+
						"end in _test.rego", set.Name)}
			}
		}
	}
	return nil
}

// NewCompiler is a compiler of policies, which refuses a rule where data is.
func NewCompiler(data map[string]any) *ast.Compiler {
	return ast.NewCompiler().WithCapabilities(Capabilities()).WithDefaultRegoVersion(ast.RegoV1).
		SetErrorLimit(MaxProblems).WithPathConflictsCheck(func(path []string) (bool, error) {
		return hasPath(data, path), nil
	})
}

// Compile compiles modules. The compiler can be used in part where the error is of type ast.Errors.
func Compile(c *ast.Compiler, modules []*ast.Module) (err error) {
	defer Recovered(&err)
	set := make(map[string]*ast.Module, len(modules))
	for i, m := range modules {
		set[fmt.Sprintf("%04d", i)] = m
	}
	if c.Compile(set); c.Failed() {
		return c.Errors
	}
	return nil
}

// hasPath reports whether data has something at a path.
func hasPath(data map[string]any, path []string) bool {
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

// WithinBounds are the modules that are read; that others are not is a problem.
func WithinBounds(modules []Module) ([]Module, []Problem) {
	size := 0
	for i, m := range modules {
		if size += len(m.Source); size > maxSource || i >= maxModules {
			return modules[:i], []Problem{{Path: m.Path,
				Message: fmt.Sprintf("more than %d files or %d MiB of policies: this one and %d more are not read",
					maxModules, maxSource>>20, len(modules)-i-1)}}
		}
	}
	return modules, nil
}
