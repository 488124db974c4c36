package policy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/rampart-gitops/rampart/policy/parse"
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
	Location string     `json:"location"`
	Status   TestStatus `json:"status"`
	// Message says how it failed.
	Message string `json:"message,omitempty"`
	// Failure is the expression that was not true, or that ended with an error; nil where none is known.
	Failure *TestFailure `json:"failure,omitempty"`
	// Duration in nanoseconds.
	Duration time.Duration `json:"duration"`
}

// TestFailure is where a test stopped being true.
type TestFailure struct {
	// Location of the expression, file:line.
	Location string `json:"location"`
	// Text is the expression as it is written, with the values of its parts below it where they are known: several
	// lines.
	Text string `json:"text"`
}

// FileCoverage says which lines of a module the tests evaluated.
type FileCoverage struct {
	Path string `json:"path"`
	// Covered is the number of lines that were.
	Covered int `json:"covered"`
	// NotCovered are the lines that were not, sorted.
	NotCovered []int `json:"notCovered,omitempty"`
}

// TestReport is what became of the tests.
type TestReport struct {
	// Problems are modules and data that cannot be used; then no test was run.
	Problems []parse.Problem `json:"problems,omitempty"`
	// Results sorted by location.
	Results []TestResult `json:"results,omitempty"`
	// Coverage of each module without tests, sorted by path.
	Coverage []FileCoverage `json:"coverage,omitempty"`
}

// testRun is what tests are run on.
type testRun struct {
	modules map[string]*ast.Module
	data    map[string]any
	timeout time.Duration
	// names to run; nil: all. filter are these as OPA's runner takes them.
	names  *regexp.Regexp
	filter string
}

// RunTests runs tests in the modules. They are the rules named test_… whose name with its package, as a TestResult has
// them (rampart.rollout_test.test_frozen), an expression matches; nil: all. They run over the library and the data of
// cfg, with the same capabilities as Judge; those of the floor apart, over what the floor's modules see. Errors of
// builtins fail a test. A test that fails is run once more to see which expression it was.
func RunTests(ctx context.Context, cfg Config, names *regexp.Regexp) TestReport {
	var report TestReport
	e := Compile(cfg)
	if report.Problems = e.problems; len(report.Problems) > 0 {
		return report
	}
	if cfg.Library == nil {
		cfg.Library = library.Modules()
	}
	run := testRun{timeout: 10 * cfg.Bounds.OrDefault().Timeout, names: names}
	run.part(ctx, bookConfig{library: cfg.Library, modules: cfg.Modules, data: cfg.Data}, &report)
	if len(cfg.Floor) > 0 {
		run.part(ctx, floorConfig(cfg), &report)
	}
	slices.SortFunc(report.Results, compareResults)
	slices.SortFunc(report.Coverage, func(a, b FileCoverage) int { return cmp.Compare(a.Path, b.Path) })
	return report
}

// part runs the tests of modules that see each other.
func (t testRun) part(ctx context.Context, cfg bookConfig, report *TestReport) {
	t.modules = map[string]*ast.Module{}
	for _, m := range slices.Concat(cfg.library, cfg.modules) {
		parsed, err := parse.Rego(m)
		if err != nil {
			report.Problems = append(report.Problems, parse.ProblemsOf(m.Path, err)...)
			continue
		}
		t.modules[m.Path] = parsed
	}
	t.data, _ = parse.LoadData(cfg.data)
	t.filter = chosen(t.modules, t.names)
	coverage := cover.New()
	results, err := t.run(ctx, func(r *tester.Runner) { r.SetCoverageQueryTracer(coverage) })
	report.Problems = append(report.Problems, parse.ProblemsOf("tests", err)...)
	first := len(report.Results)
	for _, r := range results {
		report.Results = append(report.Results, testResult(r))
	}
	t.locate(ctx, report.Results[first:])
	for path, f := range coverage.Report(t.modules).Files {
		if _, ok := t.modules[path]; ok && !library.IsTest(path) {
			report.Coverage = append(report.Coverage, fileCoverage(path, f))
		}
	}
}

func compareResults(a, b TestResult) int {
	return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Location, b.Location), cmp.Compare(a.Name, b.Name))
}

// run runs the tests, one after another.
func (t testRun) run(ctx context.Context, tracing func(*tester.Runner)) (out []*tester.Result, err error) {
	defer parse.Recovered(&err)
	store := inmem.NewFromObject(t.data)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	defer store.Abort(ctx, txn)
	runner := tester.NewRunner().SetParallel(1).SetDefaultRegoVersion(ast.RegoV1).SetCompiler(parse.NewCompiler(nil)).
		SetStore(store).SetModules(t.modules).RaiseBuiltinErrors(true).SetTimeout(t.timeout).Filter(t.filter)
	tracing(runner)
	ch, err := runner.RunTests(ctx, txn)
	if err != nil {
		return nil, err
	}
	for r := range ch {
		if r != nil {
			out = append(out, r)
		}
	}
	return out, ctx.Err()
}

// locate says of each test that failed which expression it was. One that cannot be traced stays without.
func (t testRun) locate(ctx context.Context, results []TestResult) {
	var names []string
	failed := map[string]*TestResult{}
	key := func(pkg, name, location string) string { return pkg + "\n" + name + "\n" + location }
	for i := range results {
		if r := &results[i]; r.Status == TestFailed {
			failed[key(r.Package, r.Name, r.Location)] = r
			names = append(names, regexp.QuoteMeta("data."+r.Package)+`[.\[]"?`+regexp.QuoteMeta(r.Name))
		}
	}
	if len(names) == 0 {
		return
	}
	t.filter = "^(?:" + strings.Join(names, "|") + ")"
	traced, _ := t.run(ctx, func(r *tester.Runner) { r.EnableTracing(true) })
	for _, r := range traced {
		same := testResult(r)
		if f := failed[key(same.Package, same.Name, same.Location)]; f != nil {
			f.Failure = failureOf(r.Trace, r.Location.File)
		}
	}
}

// failureOf is the last expression of a trace that was not true: the last in the file of the test, if there is one.
func failureOf(trace []*topdown.Event, file string) *TestFailure {
	var last *topdown.Event
	for _, e := range slices.Backward(trace) {
		expr, ok := e.Node.(*ast.Expr)
		if !ok || e.Op != topdown.FailOp || e.Location == nil || e.Location.File == "" {
			continue
		}
		if _, every := expr.Terms.(*ast.Every); every {
			continue // the expression within it tells more
		}
		if e.Location.File == file {
			last = e
			break
		}
		last = cmp.Or(last, e)
	}
	if last == nil {
		return nil
	}
	var text bytes.Buffer
	if err := topdown.PrettyEvent(&text, last, topdown.PrettyEventOpts{PrettyVars: true}); err != nil {
		return nil
	}
	return &TestFailure{Location: parse.LineOf(last.Location),
		Text: parse.Cut(unindented(text.String()), parse.MaxMessage)}
}

// unindented takes off what all lines begin with: an expression is shown from its own column on.
func unindented(text string) string {
	lines := strings.Split(strings.TrimRight(text, " \n"), "\n")
	indent := -1
	for _, l := range lines {
		if body := strings.TrimLeft(l, " \t"); body != "" && (indent < 0 || len(l)-len(body) < indent) {
			indent = len(l) - len(body)
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l[min(max(indent, 0), len(l)):], " ")
	}
	return strings.Join(lines, "\n")
}

func testResult(r *tester.Result) TestResult {
	t := TestResult{Package: strings.TrimPrefix(r.Package, "data."), Name: r.Name, Status: TestPassed,
		Duration: r.Duration}
	if r.Location != nil {
		t.Location = parse.LineOf(r.Location)
	}
	switch {
	case r.Error != nil:
		t.Status, t.Message = TestErrored, parse.Cut(r.Error.Error(), parse.MaxMessage)
		var e *topdown.Error
		if errors.As(r.Error, &e) && e.Location != nil && e.Location.File != "" {
			t.Message = parse.Cut(e.Code+": "+e.Message, parse.MaxMessage)
			t.Failure = &TestFailure{Location: parse.LineOf(e.Location),
				Text: parse.Cut(string(e.Location.Text), parse.MaxMessage)}
		}
		if errors.Is(r.Error, context.DeadlineExceeded) {
			t.Message = "timed out"
		}
	case r.Fail:
		t.Status, t.Message = TestFailed, "it does not hold"
		var cases []string
		for name, c := range r.SubResults.Iter {
			if c.Fail && len(c.SubResults) == 0 {
				cases = append(cases, strings.Join(name, "/"))
			}
		}
		if len(cases) > 0 {
			t.Message = parse.Cut("it does not hold for "+strings.Join(cases, ", "), parse.MaxMessage)
		}
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
