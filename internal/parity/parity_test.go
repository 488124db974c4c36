package parity

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var _ = flag.Bool("update", false, "write the tables of docs/parity.md anew")

// TestParity keeps the scenarios that other tests show by themselves, and those that nothing in Rampart could show.
func TestParity(t *testing.T) {
	for name, cases := range map[string][]Case{
		"resources": resources(), "execution": execution(), "client": clients(), "cluster": cluster(),
		"integration-manual": manual(), "integration-all-at-once": allAtOnce(), "integration-progressive": progressive(), "integration-other": rest(),
		"gaps": gaps(),
	} {
		t.Run(name, func(t *testing.T) { Compare(t, name, cases) })
	}
}

// TestPage: the page is its sections and nothing else, and each section has a test that compares it.
func TestPage(t *testing.T) {
	root := rootOf(t)
	data, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	texts := parse(string(data))
	require.Empty(t, cmp.Diff(assemble(texts), string(data)))
	for _, s := range sections() {
		require.Contains(t, texts[s.name], "| --- |", s.name)
		require.NoError(t, exists(root, s.folder+" TestParity"))
		tests, err := os.ReadFile(filepath.Join(root, s.folder, "parity_test.go"))
		require.NoError(t, err)
		require.Contains(t, string(tests), fmt.Sprintf("%q", s.name), "no case in %s is compared with section %s", s.folder, s.name)
		require.Contains(t, intro, "./"+s.folder+" ")
	}
}

func TestCheck(t *testing.T) {
	good := Case{Scenario: "s", Controller: "c", Want: "w", Tests: []string{"internal/parity TestCheck"}}
	require.Empty(t, good.check())
	for name, change := range map[string]func(*Case){
		"no scenario":        func(c *Case) { c.Scenario = "" },
		"no controller":      func(c *Case) { c.Controller = "" },
		"no want":            func(c *Case) { c.Want = "" },
		"nothing shows it":   func(c *Case) { c.Tests = nil },
		"absent, no reason":  func(c *Case) { c.Want, c.Tests = Open, nil },
		"absent, and a test": func(c *Case) { c.Want, c.Why = NoCounterpart, "why" },
		"absent, and a result": func(c *Case) {
			c.Want, c.Why, c.Tests, c.Got = Open, "why", nil, func(*testing.T) string { return Open }
		},
	} {
		bad := good
		change(&bad)
		require.NotEmpty(t, bad.check(), name)
	}
}

func TestExists(t *testing.T) {
	root := rootOf(t)
	require.NoError(t, exists(root, "internal/parity TestExists"))
	require.NoError(t, exists(root, "test/e2e TestProgressive"), "in another module")
	for _, name := range []string{"internal/parity TestNothing", "internal/nowhere TestExists", "TestExists", "internal/parity gaps"} {
		require.Error(t, exists(root, name), name)
	}
}

func TestTable(t *testing.T) {
	got := table([]Case{
		{Scenario: "a|b", Controller: "c", Want: "x\ny", Got: func(*testing.T) string { return "" }},
		{Scenario: "s", Controller: "c", Want: "does", Tests: []string{"test/e2e TestManual", "render TestGolden"}, Why: "because"},
		{Scenario: "s", Controller: "c", Want: NoCounterpart, Why: "none"},
	})
	require.Equal(t, "| scenario | controller | Rampart | why different |\n| --- | --- | --- | --- |\n"+
		"| a\\|b | c | `x<br>y` | same |\n"+
		"| s | c | does (`TestManual` in `test/e2e`, `TestGolden` in `render`) | because |\n"+
		"| s | c | no counterpart | none |\n", got)
}

func TestPageIsReadBack(t *testing.T) {
	texts := map[string]string{}
	for i, s := range sections() {
		texts[s.name] = strings.Repeat("line\n", i)
	}
	require.Equal(t, texts, parse(assemble(texts)))
}
