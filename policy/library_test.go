package policy

import (
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/rego"
)

// The library passes its own tests; every line of it has to be evaluated by one of them.
func TestLibraryPassesItsTestsAndIsCovered(t *testing.T) {
	testneed.Plain(t)
	report := RunTests(t.Context(), Config{Modules: rego.Tests()}, nil)
	require.Empty(t, report.Problems)
	require.Greater(t, len(report.Results), 80)
	for _, r := range report.Results {
		if r.Status != TestPassed {
			t.Errorf("%s: %s: %s", r.Location, r.Name, r.Message)
		}
	}
	require.True(t, passed(report))
	require.Len(t, report.Coverage, len(rego.Modules()))
	for _, c := range report.Coverage {
		if len(c.NotCovered) > 0 {
			t.Errorf("%s: no test evaluates lines %v", c.Path, c.NotCovered)
		}
	}
}

func TestLibraryFormat(t *testing.T) {
	for _, m := range slices.Concat(rego.Modules(), rego.Tests()) {
		formatted, err := format.Source(m.Path, []byte(m.Source))
		require.NoError(t, err)
		require.Equal(t, string(formatted), m.Source, "%s is not as opa fmt writes it", m.Path)
	}
}

// The packages that are asked hold the rules that are read and nothing else, so that no helper's name is taken.
func TestLibraryHelpersAreElsewhere(t *testing.T) {
	for _, m := range rego.Modules() {
		parsed, err := parse.Rego(m)
		require.NoError(t, err)
		sets, asked := parse.Contract()[parse.PackageName(parsed)]
		for _, r := range parsed.Rules {
			name := string(r.Head.Ref()[0].Value.(ast.Var))
			read := slices.ContainsFunc(sets, func(set parse.RuleSet) bool { return set.Name == name })
			require.True(t, !asked || read, "%s:%d: %s is a helper: it belongs below rampart.library", m.Path, r.Location.Row, name)
		}
	}
}
