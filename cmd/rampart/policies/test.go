package policies

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/sandbox"
	library "github.com/rampart-gitops/rampart/rego"
)

type testFlags struct {
	output      cmdutil.Choice
	junit, run  string
	coverage    bool
	minCoverage float64
	verbose     bool
	allowNone   bool
}

func policyTestCommand(a *cmdutil.App) *cobra.Command {
	var f testFlags
	var given givenSources
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the tests of policies",
		Long: `Test runs the tests of policies: rules named test_… in files named *_test.rego, with the library, its
parameters and the builtins that the bot has. Without a PATH it runs those of the environments' policies in the
folder -C, each set of policies once. A PATH is a file or a folder: .rego files are policies and tests; YAML and
JSON files are data. With --policy-dir it runs those of the bot's own policies in a directory, read and kept apart
as the bot does it: no rule of the library is beside them.

A test that fails is shown with the expression that was not true, and the values of its parts. Coverage counts the
lines of the policies, the library's not among them.

Exit code 0 if all tests pass, 2 if one fails or the coverage is less than --min-coverage, 1 if a policy does not
compile or there is no test.`,
		Example: `  rampart policy test
  rampart policy test policies/ --run freeze -v
  rampart policy test --policy-dir /etc/rampart/policies
  rampart policy test --junit report.xml --min-coverage 90`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			given.paths = args
			return policyTest(cmd.Context(), a, given, f)
		},
	}
	cmdutil.AddOutput(cmd, &f.output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	given.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.junit, "junit", "", "also write the results to this file as JUnit XML")
	flags.StringVar(&f.run, "run", "",
		"run the tests whose package and name, as they are shown, match a regular expression")
	flags.BoolVar(&f.coverage, "coverage", false, "show which lines of the policies no test evaluates")
	flags.Float64Var(&f.minCoverage, "min-coverage", 0, "least percentage of lines that tests have to evaluate")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show tests that pass too")
	flags.BoolVar(&f.allowNone, "allow-no-tests", false, "succeed where there are no tests")
	return cmd
}

type testOutcome struct {
	Passed  bool `json:"passed"`
	Tests   int  `json:"tests"`
	Failed  int  `json:"failed"`
	Errors  int  `json:"errors"`
	Skipped int  `json:"skipped"`
	// Coverage in percent of the lines of all policies; absent where it was not asked for or there are none.
	Coverage *float64    `json:"coverage,omitempty"`
	Suites   []testSuite `json:"suites"`
}

// testSuite is the tests of one set of policies.
type testSuite struct {
	// Environments that have these policies.
	Environments []string `json:"environments,omitempty"`
	policy.TestReport
}

func policyTest(ctx context.Context, a *cmdutil.App, given givenSources, f testFlags) error {
	var names *regexp.Regexp
	if f.run != "" {
		var err error
		if names, err = regexp.Compile(f.run); err != nil {
			return fmt.Errorf("--run: %w", err)
		}
	}
	if f.minCoverage < 0 || f.minCoverage > 100 {
		return fmt.Errorf("--min-coverage %v: want a percentage from 0 to 100", f.minCoverage)
	}
	sets, err := policySets(a, given)
	if err != nil {
		return err
	}
	out := testOutcome{Suites: []testSuite{}}
	for _, set := range sets {
		tested, err := sandbox.RunTests(ctx, set.cfg, names, cmdutil.PolicyProcess())
		if err != nil {
			return err
		}
		s := testSuite{set.environments, tested}
		s.Coverage = slices.DeleteFunc(s.Coverage, func(c policy.FileCoverage) bool { return isLibrary(c.Path) })
		if !f.coverage && f.minCoverage == 0 {
			s.Coverage = nil
		}
		out.Suites = append(out.Suites, s)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	out.count()
	if f.junit != "" {
		if err := writeJUnit(f.junit, out); err != nil {
			return fmt.Errorf("write --junit: %w", err)
		}
	}
	if err := printTests(a, out, f); err != nil {
		return err
	}
	return out.verdict(f)
}

func isLibrary(path string) bool {
	return slices.ContainsFunc(library.Modules(), func(m parse.Module) bool { return m.Path == path })
}

// count adds up. A file that several sets share is covered as well as the best of them covers it.
func (o *testOutcome) count() {
	lines := map[string]policy.FileCoverage{}
	broken := false
	for _, s := range o.Suites {
		broken = broken || len(s.Problems) > 0
		for _, r := range s.Results {
			o.Tests++
			switch r.Status {
			case policy.TestFailed:
				o.Failed++
			case policy.TestErrored:
				o.Errors++
			case policy.TestSkipped:
				o.Skipped++
			}
		}
		for _, c := range s.Coverage {
			if best, ok := lines[c.Path]; !ok || c.Covered > best.Covered {
				lines[c.Path] = c
			}
		}
	}
	o.Passed = !broken && o.Failed+o.Errors == 0 && o.Tests > o.Skipped
	covered, all := 0, 0
	for _, c := range lines {
		covered += c.Covered
		all += c.Covered + len(c.NotCovered)
	}
	if all > 0 {
		o.Coverage = new(100 * float64(covered) / float64(all))
	}
}

// verdict is the exit for the tests.
func (o testOutcome) verdict(f testFlags) error {
	for _, s := range o.Suites {
		if len(s.Problems) > 0 {
			return errors.New("the policies cannot be used: no test was run")
		}
	}
	switch {
	case o.Tests == 0 && f.allowNone:
		return nil
	case o.Tests == 0 && f.run != "":
		return fmt.Errorf("no test matches --run %s", f.run)
	case o.Tests == 0:
		return errors.New("there are no tests: write rules named test_… in files named *_test.rego, or give their path")
	case o.Failed+o.Errors > 0:
		return cmdutil.Pending(nil)
	case o.Coverage != nil && *o.Coverage < f.minCoverage:
		return cmdutil.Pending(fmt.Errorf("the tests evaluate %.1f%% of the lines, less than --min-coverage %v%%",
			*o.Coverage, f.minCoverage))
	case o.Coverage == nil && f.minCoverage > 0:
		return cmdutil.Pending(errors.New("--min-coverage: there are no lines to cover: the paths hold no policies " +
			"beside tests"))
	}
	return nil
}

func printTests(a *cmdutil.App, o testOutcome, f testFlags) error {
	if f.output.Value != cmdutil.FormatText {
		return a.Encode(f.output.Value, o)
	}
	var b strings.Builder
	for _, s := range o.Suites {
		if len(o.Suites) > 1 {
			fmt.Fprintf(&b, "environments %s\n", strings.Join(s.Environments, ", "))
		}
		for _, p := range s.Problems {
			fmt.Fprintf(&b, "%s\n", printable.Line(p.Error()))
		}
		for _, r := range s.Results {
			writeTest(&b, r, f.verbose, a.Style())
		}
		for _, c := range s.Coverage {
			if len(c.NotCovered) > 0 {
				fmt.Fprintf(&b, "%s: not covered: lines %s\n", c.Path, ranges(c.NotCovered))
			}
		}
	}
	if _, err := fmt.Fprint(a.Out, b.String()); err != nil {
		return err
	}
	summary := fmt.Sprintf("tests: %d, failed: %d, errors: %d, skipped: %d", o.Tests, o.Failed, o.Errors, o.Skipped)
	if o.Coverage != nil {
		summary += fmt.Sprintf(", coverage: %.1f%%", *o.Coverage)
	}
	a.Say("%s", summary)
	return nil
}

// writeTest prints a test: those that pass or are skipped only where asked for.
func writeTest(b *strings.Builder, r policy.TestResult, verbose bool, style report.Style) {
	name := printable.Line(r.Package + "." + r.Name)
	switch r.Status {
	case policy.TestPassed:
		if verbose {
			fmt.Fprintf(b, "%s %s (%s)\n", style.Good("pass"), name, r.Duration.Round(10*time.Microsecond))
		}
		return
	case policy.TestSkipped:
		if verbose {
			fmt.Fprintf(b, "skip %s\n", name)
		}
		return
	case policy.TestErrored:
		fmt.Fprintf(b, "%s %s\n  %s: %s\n", style.Bad("error"), name, r.Location, printable.Line(r.Message))
	case policy.TestFailed:
		fmt.Fprintf(b, "%s %s\n  %s: %s\n", style.Bad("fail"), name, r.Location, printable.Line(r.Message))
	}
	if r.Failure == nil {
		return
	}
	fmt.Fprintf(b, "  %s:\n", r.Failure.Location)
	for line := range strings.SplitSeq(printable.Text(r.Failure.Text), "\n") {
		fmt.Fprintf(b, "    %s\n", line)
	}
}

// ranges prints sorted line numbers, such as 3, 5-9.
func ranges(lines []int) string {
	var out []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		if i == j {
			out = append(out, fmt.Sprint(lines[i]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", lines[i], lines[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ", ")
}
