package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const code = `package small

import "slices"

type row struct {
	name string
	fits func(int) (string, bool)
}

func rows() []row {
	return []row{
		{"big", big},
		{"rest", rest},
	}
}

func big(n int) (string, bool) {
	if n < 10 || n == 13 {
		return "", false
	}
	return "big", true
}

func rest(n int) (string, bool) { return "rest", true }

type guard struct{ found []string }

func (g *guard) add(why string) { g.found = append(g.found, why) }

func (g *guard) why(n int) string {
	switch {
	case n < 0:
		return "negative"
	}
	return ""
}

func check(n int) []string {
	g := guard{}
	g.odd(n)
	if why := g.why(n); why != "" {
		g.add(why)
	}
	return g.found
}

func (g *guard) odd(n int) {
	if n%2 != 0 {
		g.add("odd")
	}
}

func named(kind string) bool {
	switch kind {
	case "a", "b":
		return true
	}
	return false
}

func decide(n int) string {
	for _, r := range rows() {
		if out, fits := r.fits(n); fits {
			return out
		}
	}
	return ""
}

func spin(n int) int {
	for n > 100 {
		n--
	}
	return n
}

func known(s string) bool { return slices.Contains([]string{"x", "y"}, s) }
`

const codeTest = `package small

import "testing"

func TestAll(t *testing.T) {
	for n, want := range map[int]string{9: "rest", 10: "big", 13: "rest"} {
		if decide(n) != want {
			t.Fatal(n)
		}
	}
	if len(check(2)) != 0 || len(check(3)) != 1 || len(check(-2)) != 1 {
		t.Fatal("check")
	}
	if !named("a") || named("c") || !known("x") || known("z") || spin(103) != 100 {
		t.Fatal("names")
	}
}
`

func small(t *testing.T) target {
	dir := t.TempDir()
	for name, text := range map[string]string{"small.go": code, "small_test.go": codeTest, "go.mod": "module small\n\ngo 1.26\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return target{dir: dir, name: "small", checks: []string{"guard"}, deep: []string{"guard"}, decides: "(string, bool)"}
}

// Each kind of mutation is found, and switched on by itself. What the tests above do not look at survives.
func TestEachKindOfMutantIsFound(t *testing.T) {
	ctx := t.Context()
	l, err := small(t).build(ctx, t.TempDir())
	require.NoError(t, err)
	var out strings.Builder
	r := report{allowed: map[string]string{
		`small.go named: no case "b"`:          "nobody is called b",
		`small.go rows: removed: {"big", big}`: "it is said to be one that may live",
		"small.go gone: negated: true":         "it is not there",
	}, out: &out}
	require.NoError(t, l.all(ctx, 2, l.mutants, r.lives, r.tell))
	err = r.end(0)
	require.EqualError(t, err, strings.Join([]string{"3 findings",
		`small.go rows: removed: {"big", big}: is killed by TestAll, and so no longer one that may live`,
		`small.go known: removed: "y": SURVIVED`,
		"small.go gone: negated: true: may live, but is gone"}, "\n  "))
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, []string{
		`small.go:12: rows: removed: {"big", big}: killed by TestAll`,
		`small.go:13: rows: removed: {"rest", rest}: killed by TestAll`,
		`small.go:18: big: negated: n < 10 || n == 13: killed by TestAll`,
		`small.go:18: big: without: n < 10: killed by TestAll`,
		`small.go:18: big: without: n == 13: killed by TestAll`,
		`small.go:32: guard.why: negated: n < 0: killed by TestAll`,
		`small.go:33: guard.why: returns not "negative": killed by TestAll`,
		`small.go:40: check: left out: g.odd(n): killed by TestAll`,
		`small.go:41: check: negated: why != "": killed by TestAll`,
		`small.go:42: check: left out: g.add(why): killed by TestAll`,
		`small.go:48: guard.odd: negated: n%2 != 0: killed by TestAll`,
		`small.go:49: guard.odd: left out: g.add("odd"): killed by TestAll`,
		`small.go:55: named: no case "a": killed by TestAll`,
		`small.go:55: named: no case "b": may live: nobody is called b`,
	}, lines[:14])
	require.Contains(t, lines, "16 mutants killed, 1 that may live, in 0s")
}

// Tests that fail on the code as it is say nothing of mutants.
func TestBrokenTests(t *testing.T) {
	s := small(t)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "broken_test.go"), []byte("package small\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { t.Fatal() }\n"), 0o600))
	_, err := s.build(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "fails without any mutant")
}

func TestAllowedMutantsNeedAReason(t *testing.T) {
	got, err := parseAllowed("# why\n\na.go f: negated: x\n    it changes\n    nothing\nb.go g: negated: y\n    nor this\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.go f: negated: x": "it changes nothing", "b.go g: negated: y": "nor this"}, got)
	for text, want := range map[string]string{
		"a.go f: negated: x\n":           "no reason for a.go f: negated: x",
		"    it changes nothing\n":       "a reason of no mutant",
		"a.go f\n    x\na.go f\n    y\n": "a.go f is there twice",
	} {
		_, err := parseAllowed(text)
		require.ErrorContains(t, err, want)
	}
	_, err = parseAllowed(allowedText)
	require.NoError(t, err)
}

func TestKillerIsTheDeepestFailingTest(t *testing.T) {
	for out, want := range map[string]string{
		"--- FAIL: TestA (0.0s)\n    --- FAIL: TestA/b (0.0s)\n    --- FAIL: TestA/b/c (0.0s)\n--- FAIL: TestZ (0.0s)\n": "TestA/b/c",
		"=== RUN   TestA\n" + overtime: "a time-out",
		"exit status 2":                "a crash",
	} {
		require.Equal(t, want, killer(out))
	}
}
