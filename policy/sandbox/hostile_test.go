package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

func program(sources ...string) func() policy.Config {
	return func() policy.Config { return policy.Config{Modules: policytest.Modules(sources...)} }
}

// twice doubles a value within itself n times: 2^n leaves, n objects. As it is a comprehension that does, what is
// written is not wide.
const twice = `
twice(x) := [x | some _ in [1, 2]]

t5(x) := twice(twice(twice(twice(twice(x)))))

t20(x) := t5(t5(t5(t5(x))))

shared(x) := t20(t20(x))

again(x) := [x | some _ in [1, 2]]

a5(x) := again(again(again(again(again(x)))))

a20(x) := a5(a5(a5(a5(x))))

alike(x) := a20(a20(x))
`

func chain(n int, rule func(i int) string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(rule(i) + "\n\n")
	}
	return b.String()
}

// hostiles are policies that want to harm.
func hostiles() map[string]func() policy.Config {
	doubled := func(call string) func() policy.Config { return program(policytest.Deny("	"+call+" == \"\"") + twice) }
	big := "\nbig := sprintf(\"%99999d\", [1])\n"
	// A text of 10 kB forty thousand times.
	const aliased = "x := concat(\"\", [\"a: &a \\\"\", sprintf(\"%9999s\", [\"b\"]), \"\\\"\\nb: [\", replace(sprintf(\"%40000s\", [\" \"]), \" \", \"*a,\"), \"1]\\n\"])\n"
	sides := []parse.DataFile{{Path: "policies/d.yaml", Content: "d: [" + strings.Repeat("[],", 95_000) + "]\ne: [" + strings.Repeat("[],", 95_000) + "]\n"}}
	nested := func(open, end string, n int) func() policy.Config {
		return program(policytest.Deny("	x := " + strings.Repeat(open, n) + "1" + strings.Repeat(end, n)))
	}
	files := func(n int, rule func(i int) string) func() policy.Config {
		return func() (c policy.Config) {
			for i := range n {
				c.Modules = append(c.Modules, parse.Module{Path: fmt.Sprintf("policies/p%d.rego", i+1), Source: policytest.Rules(rule(i))})
			}
			return c
		}
	}
	data := func(content string) func() policy.Config {
		return func() policy.Config {
			return policy.Config{Data: []parse.DataFile{{Path: "policies/data.yaml", Content: content}}}
		}
	}
	x := "deny contains {\"rule\": \"x\", \"msg\": \"m\"} if "
	return map[string]func() policy.Config{
		"nested ranges":      program(policytest.Deny("	some i in numbers.range(1, 100000)\n	some j in numbers.range(1, 100000)\n	i * j == -1")),
		"cartesian product":  program(policytest.Deny("	x := numbers.range(1, 300)\n	x[a] + x[b] + x[c] + x[d] == -1")),
		"comprehension bomb": program(policytest.Deny("	x := numbers.range(1, 3000)\n	y := [[a, b] | some a in x; some b in x]\n	count(y) == 1")),
		"wide literals kept": program(policytest.Deny("	x := [[" + strings.Repeat("i,", 9_000) + "i] | some i in numbers.range(1, 100000)]\n	count(x) == 1")),
		"colliding numbers":  program(policytest.Deny("	x := {y | some i in numbers.range(1, 100000); y := i / 1000003}\n	count(x) == 1")),
		"walk":               program(policytest.Rules(x + "walk(shared(1), [_, \"no\"])\n" + twice)),
		"comparing":          program(policytest.Rules(x + "shared(input.action.to) in [alike(input.action.to)]\n" + twice)),
		"inputs within inputs": program(policytest.Rules("a0 := input\n\n" + chain(30, func(i int) string {
			return fmt.Sprintf("a%d := b if b := a%d with input.a as input with input.b as input", i, i-1)
		}) + x + "a30 == a30\n")),
		"shared evidence":        program(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\", \"data\": shared(1)}\n" + twice)),
		"copied":                 program(policytest.Rules("pair(x) := [x, x]\n\np5(x) := pair(pair(pair(pair(pair(x)))))\n\np20(x) := p5(p5(p5(p5(x))))\n\n" + x + "count(p20(p20(1))) == 1\n")),
		"marshalled":             doubled("json.marshal(shared(1))"),
		"printed":                doubled("sprintf(\"%v\", [shared(1)])"),
		"strings doubled":        program(policytest.Deny("	"+strings.Repeat("double(", 10)+"big"+strings.Repeat(")", 10)+" == \"\"") + "\ndouble(x) := concat(\"\", [x, x, x, x, x, x, x, x])\n" + big),
		"arrays doubled":         program(policytest.Deny("	count("+strings.Repeat("double(", 30)+"[1, 2]"+strings.Repeat(")", 30)+") == 1") + "\ndouble(x) := array.concat(x, x)\n"),
		"a shift":                program(policytest.Deny("	bits.lsh(1, 10000000000) == 1")),
		"a large exponent":       program(policytest.Deny("	to_number(\"1e999999999\") + 1 == 2")),
		"a hexadecimal exponent": program(policytest.Deny("	to_number(\"0x1p-999999999\") * 3 > 1")),
		"a parsed exponent":      program(policytest.Deny("	json.unmarshal(\"[1e999999999]\")[0] > 2")),
		"regular expressions":    program(policytest.Deny("	some i in numbers.range(1, 100000)\n	regex.match(sprintf(\"(a{0,900}b{0,9}){%d}\", [i % 1000]), \"aaaa\")\n	i == -1")),
		"chained rules":          program(policytest.Rules("r0 := input.action.to\n\n" + chain(20_000, func(i int) string { return fmt.Sprintf("r%d := r%d + 1", i, i-1) }) + x + "r20000 > 0\n")),
		"chained functions":      program(policytest.Rules("f0(x) := x\n\n" + chain(4_000, func(i int) string { return fmt.Sprintf("f%d(x) := f%d(x) + 1", i, i-1) }) + x + "f4000(1) > 0\n")),
		"long body":              program(policytest.Deny("	i := input.action.to\n" + strings.Repeat("	i > 0\n", 20_000))),
		"long else":              program(policytest.Rules("x := 1 if {\n	input.action.to < 0\n}\n" + strings.Repeat("else := 1 if false\n", 10_000) + x + "x == 1\n")),
		"long sum":               program(policytest.Deny("	input.action.to" + strings.Repeat("+1", 400_000) + " == 1")),
		"many files":             files(5000, func(i int) string { return fmt.Sprintf("deny contains {\"rule\": \"a\", \"msg\": \"%d\"}", i) }),
		"files at odds":          files(999, func(int) string { return "deny := {1}\n" }),
		"megabytes":              files(20, func(i int) string { return fmt.Sprintf("x%d := [", i) + strings.Repeat("1,", 400_000) + "]\n" }),
		"types":                  program(policytest.Rules("x0 := [1]\n\n" + chain(60, func(i int) string { return fmt.Sprintf("x%d := {\"a\": x%d, \"b\": x%d}", i, i-1, i-1) }) + x + "x60.a == x59\n")),
		"types of packages": func() policy.Config {
			sources := []string{"package t0\n\na := 1\n", policytest.Rules(x + "data.t60.a == 1\n")}
			for i := range 60 {
				sources = append(sources, fmt.Sprintf("package t%d\n\na := data.t%d\n\nb := data.t%d\n", i+1, i, i))
			}
			return policy.Config{Modules: policytest.Modules(sources...)}
		},
		"closures":    nested("[x | x := ", "]", 16),
		"templates":   nested("$\"{", "}\"", 16),
		"parentheses": nested("(", "", 900_000),
		"aliases":     data("a0: &a0 [1]\n" + strings.TrimSpace(chain(40, func(i int) string { return fmt.Sprintf("a%d: &a%d [*a%d, *a%d]", i, i, i-1, i-1) })) + "\n"),
		"much data": func() policy.Config {
			c := policy.Config{Modules: policytest.Modules(policytest.Deny("	x := data.d1\n	y := data.d1\n	x == y"))}
			for i := range 4 {
				c.Data = append(c.Data, parse.DataFile{Path: fmt.Sprintf("policies/d%d.yaml", i), Content: fmt.Sprintf("d%d: [%s]\n", i, strings.Repeat("[],", 199_000/2))})
			}
			return c
		},
		"compared data": func() policy.Config {
			return policy.Config{Modules: policytest.Modules(policytest.Deny("	x := data.d\n	y := data.d\n	x == y")),
				Data: []parse.DataFile{{Path: "policies/d.yaml", Content: "d: [" + strings.Repeat("[],", 199_000) + "]\n"}}}
		},
		"deep data":      data(strings.Repeat("{a: ", 200_000)),
		"many findings":  program(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\", \"n\": i} if some i in numbers.range(1, 20000)\n")),
		"large findings": program(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": big, \"n\": i, \"data\": big} if some i in numbers.range(1, 100000)\n" + big)),
		"compared again": func() policy.Config {
			return policy.Config{Modules: policytest.Modules(policytest.Deny("	x := data.d\n	y := data.e\n" + strings.Repeat("	x == y\n", 40))), Data: sides}
		},
		"aliases read": program(policytest.Deny("	" + aliased + "	count(yaml.unmarshal(x)) == 2")),
		"wide indents": program(policytest.Deny("	open := replace(sprintf(\"%700s\", [\"[\"]), \" \", \"[\")\n	x := json.unmarshal(concat(\"\", [open, \"1\", replace(sprintf(\"%999s\", [\" \"]), \" \", \",1\"), replace(open, \"[\", \"]\")]))\n	count(json.marshal_with_options(x, {\"indent\": sprintf(\"%6000s\", [\" \"])})) == 1")),
	}
}

// Nothing ends the bot, uses up its memory, keeps another environment waiting, holds what takes traffic back, or lets a
// raise through.
func TestHostile(t *testing.T) {
	testneed.Long(t)
	testneed.Plain(t) // the race detector's memory has no bounds
	other := compile(t, policy.Config{Modules: policytest.Modules(told)})
	for name, cfg := range hostiles() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			lap := func() time.Duration { d := time.Since(start); start = time.Now(); return d }
			e := within(t, 1500*time.Millisecond, cfg())
			compiling := lap()
			v := e.Judge(t.Context(), policytest.Snapshot(t), proposal)
			first := lap()
			e.Judge(t.Context(), policytest.Snapshot(t), proposal)
			second := lap()
			raise := v.Of(ramp.ID)
			require.NotEmpty(t, raise.Findings)
			f := raise.Findings[0]
			t.Logf("%s, %s, %s: %s: %.200s (%s)", compiling, first, second, f.Rule, f.Message, f.Location)
			require.Equal(t, rollout.HoldEffect, raise.Effect)
			require.Contains(t, f.Location+f.Message, "polic")
			require.True(t, slices.Contains([]string{"policy.timeout", "policy.broken", "policy.error", "acme.x"}, f.Rule), f.Rule)
			require.Equal(t, rollout.Allow, v.Of(reset.ID).Effect)
			require.Equal(t, rollout.Allow, other.Judge(t.Context(), policytest.Snapshot(t), proposal).Of(ramp.ID).Effect, "another environment")
			require.Less(t, compiling, 20*time.Second)
			require.Less(t, first, 20*time.Second)
			require.Less(t, second, 10*time.Second, "what went beyond is not asked again")
		})
	}
}
