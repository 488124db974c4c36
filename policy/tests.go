package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	library "github.com/rampart-gitops/rampart/rego"
)

// TestStatus is how a test ended.
type TestStatus string

// The ways a test ends.
const (
	TestPassed  TestStatus = "Passed"
	TestFailed  TestStatus = "Failed"
	TestErrored TestStatus = "Errored"
	TestSkipped TestStatus = "Skipped" // its name begins with todo_
)

// TestResult is one test.
type TestResult struct {
	Package string `json:"package"`
	Name    string `json:"name"`
	// Location of the test, file:line.
	Location string        `json:"location"`
	Status   TestStatus    `json:"status"`
	Message  string        `json:"message,omitempty"`
	Duration time.Duration `json:"duration"`
}

// FileCoverage says which lines of a module the tests evaluated.
type FileCoverage struct {
	Path    string `json:"path"`
	Covered int    `json:"covered"`
	// NotCovered are the lines that were not, sorted.
	NotCovered []int `json:"notCovered,omitempty"`
}

// TestReport is what became of the tests.
type TestReport struct {
	// Problems are modules and data that cannot be used; then no test was run.
	Problems []Problem `json:"problems,omitempty"`
	// Results sorted by location.
	Results []TestResult `json:"results,omitempty"`
	// Coverage of each module without tests, sorted by path.
	Coverage []FileCoverage `json:"coverage,omitempty"`
}

// Passed reports whether tests were run and none failed. Skipped ones do not count.
func (r TestReport) Passed() bool {
	passed := 0
	for _, t := range r.Results {
		switch t.Status {
		case TestPassed:
			passed++
		case TestFailed, TestErrored:
			return false
		}
	}
	return len(r.Problems) == 0 && passed > 0
}

// RunTests runs the tests in the modules (rules named test_…), over the library and the data of cfg, with the same
// capabilities as Judge. Errors of builtins fail a test.
func RunTests(ctx context.Context, cfg Config) TestReport {
	var report TestReport
	e := Compile(cfg)
	if report.Problems = e.problems; len(report.Problems) > 0 {
		return report
	}
	if cfg.Library == nil {
		cfg.Library = library.Modules()
	}
	modules := map[string]*ast.Module{}
	for _, m := range slices.Concat(cfg.Library, cfg.Modules) {
		parsed, err := parseModule(m)
		if err != nil {
			report.Problems = append(report.Problems, problemsOf(m.Path, err)...)
			continue
		}
		modules[m.Path] = parsed
	}
	data, _ := loadData(cfg.Data)
	coverage := cover.New()
	results, err := runTests(ctx, modules, data, coverage, 10*cfg.Bounds.orDefault().Timeout)
	report.Problems = append(report.Problems, problemsOf("tests", err)...)
	report.Results = results
	for path, f := range coverage.Report(modules).Files {
		if _, ok := modules[path]; ok && !library.IsTest(path) {
			report.Coverage = append(report.Coverage, fileCoverage(path, f))
		}
	}
	slices.SortFunc(report.Coverage, func(a, b FileCoverage) int { return cmp.Compare(a.Path, b.Path) })
	return report
}

func runTests(ctx context.Context, modules map[string]*ast.Module, data map[string]any, coverage *cover.Cover, timeout time.Duration) (out []TestResult, err error) {
	defer recovered(&err)
	store := inmem.NewFromObject(data)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	defer store.Abort(ctx, txn)
	ch, err := newRunner(store, modules, coverage).SetTimeout(timeout).RunTests(ctx, txn)
	if err != nil {
		return nil, err
	}
	for r := range ch {
		if r != nil {
			out = append(out, testResult(r))
		}
	}
	slices.SortFunc(out, func(a, b TestResult) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Location, b.Location), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func newRunner(store storage.Store, modules map[string]*ast.Module, coverage *cover.Cover) *tester.Runner {
	compiler := ast.NewCompiler().WithCapabilities(capabilities()).WithDefaultRegoVersion(ast.RegoV1).SetErrorLimit(maxProblems)
	return tester.NewRunner().SetParallel(1).SetDefaultRegoVersion(ast.RegoV1).SetCompiler(compiler).SetStore(store).
		SetModules(modules).RaiseBuiltinErrors(true).SetCoverageQueryTracer(coverage)
}

func testResult(r *tester.Result) TestResult {
	t := TestResult{Package: strings.TrimPrefix(r.Package, "data."), Name: r.Name, Status: TestPassed, Duration: r.Duration}
	if r.Location != nil {
		t.Location = fmt.Sprintf("%s:%d", r.Location.File, r.Location.Row)
	}
	switch {
	case r.Error != nil:
		t.Status, t.Message = TestErrored, cut(r.Error.Error(), maxMessage)
		if errors.Is(r.Error, context.DeadlineExceeded) {
			t.Message = "timed out"
		}
	case r.Fail:
		t.Status, t.Message = TestFailed, "it does not hold"
	case r.Skip:
		t.Status = TestSkipped
	}
	return t
}

func fileCoverage(path string, f *cover.FileReport) FileCoverage {
	out := FileCoverage{Path: path, Covered: f.CoveredLines}
	lines := map[int]bool{}
	for _, r := range f.NotCovered {
		for row := r.Start.Row; row <= r.End.Row; row++ {
			lines[row] = true
		}
	}
	out.NotCovered = slices.Sorted(maps.Keys(lines))
	return out
}
