package policy

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
)

const failing = `package acme_test

limit := 3

test_holds if limit == 3

test_value if {
	some n in [1, 2]
	n > limit
}

test_value if limit > 4

test_error if to_number("x") == 1
`

// What a failing test is shown with: the line that was not true, its text and the values in it. Tests of one name are
// told apart.
func TestFailuresShowTheLineAndItsValues(t *testing.T) {
	report := RunTests(t.Context(), Config{Modules: []parse.Module{{Path: "a_test.rego", Source: failing}}}, nil)
	require.Empty(t, report.Problems)
	var got []TestResult
	for _, r := range report.Results {
		r.Duration = 0
		got = append(got, r)
	}
	require.Equal(t, []TestResult{
		{Package: "acme_test", Name: `test_value#01`, Location: "a_test.rego:12", Status: TestFailed, Message: "it does not hold",
			Failure: &TestFailure{Location: "a_test.rego:12", Text: "limit > 4\n|\n3"}},
		{Package: "acme_test", Name: "test_error", Location: "a_test.rego:14", Status: TestErrored,
			Message: `eval_builtin_error: to_number: strconv.ParseFloat: parsing "x": invalid syntax`,
			Failure: &TestFailure{Location: "a_test.rego:14", Text: `to_number("x")`}},
		{Package: "acme_test", Name: "test_holds", Location: "a_test.rego:5", Status: TestPassed},
		{Package: "acme_test", Name: "test_value", Location: "a_test.rego:7", Status: TestFailed, Message: "it does not hold",
			Failure: &TestFailure{Location: "a_test.rego:9", Text: "n > limit\n|   |\n|   3\n2"}},
	}, got)
}

func TestOnlyMatchingTestsRun(t *testing.T) {
	testneed.Plain(t)
	cfg := Config{Modules: []parse.Module{{Path: "a_test.rego", Source: failing}}}
	report := RunTests(t.Context(), cfg, regexp.MustCompile(`acme_test\.test_h`))
	require.Len(t, report.Results, 1)
	require.True(t, passed(report))
	require.Len(t, RunTests(t.Context(), cfg, nil).Results, 4)
	require.Empty(t, RunTests(t.Context(), cfg, regexp.MustCompile("nothing")).Results)

	// What is matched is what is shown.
	cfg.Modules = append(cfg.Modules,
		parse.Module{Path: "b_test.rego", Source: "package other.acme_test\n\ntest_holds if true\n\ncases.test_holds if true\n\ntodo_test_later if true\n"},
		parse.Module{Path: "c_test.rego", Source: "package acme_test\n\ntest_holds if true\n"})
	for names, want := range map[string][]string{
		`^acme_test\.test_h`:        {"acme_test.test_holds", "acme_test.test_holds#01"},
		`^acme_test\.test_value$`:   {"acme_test.test_value"},
		`^acme_test\.test_value#01`: {"acme_test.test_value#01"},
		`^other`:                    {"other.acme_test.cases.test_holds", "other.acme_test.test_holds", "other.acme_test.todo_test_later"},
		`^data\.`:                   nil,
		`cases\.test_holds$`:        {"other.acme_test.cases.test_holds"},
		`^$`:                        nil,
	} {
		var got []string
		for _, r := range RunTests(t.Context(), cfg, regexp.MustCompile(names)).Results {
			got = append(got, r.Package+"."+r.Name)
		}
		require.ElementsMatch(t, want, got, names)
	}
}

// passed reports whether tests were run and none failed. Skipped ones do not count.
func passed(r TestReport) bool {
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
