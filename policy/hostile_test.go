package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// hostile is a configuration that wants to harm, and what has to be said of it.
type hostile struct {
	cfg func() Config
	// rule of the finding that holds, part of its message, and its place where one can be told; "" is any.
	rule, message, location string
}

func program(sources ...string) func() Config {
	return func() Config { return Config{Modules: policytest.Modules(sources...)} }
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

func hostiles() map[string]hostile {
	const timeout, broken, late, memory, parts, p1 = "policy.timeout", "policy.broken", "took", "had builtins work on more than 64 MiB", "made values of more than 250000 parts", "policies/p1.rego"
	doubled := func(call string) func() Config { return program(policytest.Deny("	"+call+" == \"\"") + twice) }
	big := "\nbig := sprintf(\"%99999d\", [1])\n"
	const compared = "compared values of more than 250000 parts"
	// A text of 10 kB forty thousand times.
	const aliased = "x := concat(\"\", [\"a: &a \\\"\", sprintf(\"%9999s\", [\"b\"]), \"\\\"\\nb: [\", replace(sprintf(\"%40000s\", [\" \"]), \" \", \"*a,\"), \"1]\\n\"])\n"
	sides := []parse.DataFile{{Path: "policies/d.yaml", Content: "d: [" + strings.Repeat("[],", 95_000) + "]\ne: [" + strings.Repeat("[],", 95_000) + "]\n"}}
	nested := func(open, end string, n int) func() Config {
		return program(policytest.Deny("	x := " + strings.Repeat(open, n) + "1" + strings.Repeat(end, n)))
	}
	files := func(n int, rule func(i int) string) func() Config {
		return func() (c Config) {
			for i := range n {
				c.Modules = append(c.Modules, parse.Module{Path: fmt.Sprintf("policies/p%d.rego", i+1), Source: policytest.Rules(rule(i))})
			}
			return c
		}
	}
	data := func(content string) func() Config {
		return func() Config { return Config{Data: []parse.DataFile{{Path: "policies/data.yaml", Content: content}}} }
	}
	x := "deny contains {\"rule\": \"x\", \"msg\": \"m\"} if "
	return map[string]hostile{
		"nested ranges":      {program(policytest.Deny("	some i in numbers.range(1, 100000)\n	some j in numbers.range(1, 100000)\n	i * j == -1")), timeout, late, p1},
		"cartesian product":  {program(policytest.Deny("	x := numbers.range(1, 300)\n	x[a] + x[b] + x[c] + x[d] == -1")), timeout, late, p1},
		"comprehension bomb": {program(policytest.Deny("	x := numbers.range(1, 3000)\n	y := [[a, b] | some a in x; some b in x]\n	count(y) == 1")), timeout, "", p1},
		"wide literals kept": {program(policytest.Deny("	x := [[" + strings.Repeat("i,", 9_000) + "i] | some i in numbers.range(1, 100000)]\n	count(x) == 1")), timeout, "", p1},
		"wider literals":     {program(policytest.Deny("	i := 1\n	count([" + strings.Repeat("i,", 100_000) + "i]) == 1")), broken, "a rule with more than", p1},
		"colliding numbers":  {program(policytest.Deny("	x := {y | some i in numbers.range(1, 100000); y := i / 1000003}\n	count(x) == 1")), timeout, late, p1},
		"colliding at once":  {program(policytest.Deny("	x := [y | some i in numbers.range(1, 20000); y := i / 1000003]\n	count(x | {1}) == 1")), broken, "", p1},
		"a set of them":      {program(policytest.Deny("	x := [y | some i in numbers.range(1, 20000); y := i / 1000003]\n	count(object.filter({\"a\": 1}, x)) == 1")), timeout, memory, p1},
		"walk":               {program(policytest.Rules(x + "walk(shared(1), [_, \"no\"])\n" + twice)), timeout, "", p1},
		"comparing":          {program(policytest.Rules(x + "shared(input.action.to) in [alike(input.action.to)]\n" + twice)), timeout, parts, p1},
		"equal":              {program(policytest.Rules(x + "shared(input.action.to) == alike(input.action.to)\n" + twice)), timeout, parts, p1},
		"equal in functions": {program(policytest.Rules(x + "same(shared(input.action.to), alike(input.action.to))\n\nsame(x, x)\n" + twice)), timeout, parts, p1},
		"not equal":          {program(policytest.Rules(x + "not shared(input.action.to) == alike(input.action.to)\n" + twice)), timeout, parts, p1},
		"patterns":           {program(policytest.Deny("	[shared(input.action.to), y] = [alike(input.action.to), 1]\n	y == 1") + twice), timeout, parts, p1},
		"equal parts": {program(policytest.Deny("	x := [[] | some _ in numbers.range(1, 60000)]\n	y := [[] | some _ in numbers.range(1, 60000)]\n	x == y\n	x != y")),
			timeout, "", p1},
		"equal objects": {program(policytest.Deny("	x := {i: [] | some i in numbers.range(1, 45000)}\n	y := {i: [] | some i in numbers.range(1, 45000)}\n	x == y")), timeout, parts, p1},
		"equal rules": {program(policytest.Rules(chain(20, func(i int) string {
			return fmt.Sprintf("s%d contains [x, 1] if some x in union({s%d})\n\ns%d contains [x, 2] if some x in union({s%d})", i, i-1, i, i-1)
		}) + "s0 := {input.action.to}\n\n" + x + "s20 == {y | some y in s20}\n")), timeout, "", p1},
		"equal packages": {program("package big\n\np0 := [x | some x in numbers.range(1, 10000)]\n\n"+chain(60, func(i int) string { return fmt.Sprintf("p%d := p0", i) }),
			policytest.Rules(x+"y := data.big\n")), timeout, parts, "policies/p2.rego"},
		"inputs within inputs": {program(policytest.Rules("a0 := input\n\n" + chain(30, func(i int) string {
			return fmt.Sprintf("a%d := b if b := a%d with input.a as input with input.b as input", i, i-1)
		}) + x + "a30 == a30\n")), timeout, parts, p1},
		"arrays compared": {program(policytest.Deny("	x := "+strings.Repeat("double(", 16)+"[[], []]"+strings.Repeat(")", 16)+"\n	y := "+strings.Repeat("double(", 16)+"[[], []]"+strings.Repeat(")", 16)+"\n	x == y") + "\ndouble(x) := array.concat(x, x)\n"), timeout, parts, p1},
		"shared evidence": {program(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\", \"data\": shared(1)}\n" + twice)), timeout, parts, p1},
		"late difference": {program(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\", \"data\": [shared(1 + 0), 1]}\n\ndeny contains {\"rule\": \"x\", \"msg\": \"m\", \"data\": [shared(2 - 1), 2]}\n" + twice)),
			timeout, parts, p1},
		"copied":                 {program(policytest.Rules("pair(x) := [x, x]\n\np5(x) := pair(pair(pair(pair(pair(x)))))\n\np20(x) := p5(p5(p5(p5(x))))\n\n" + x + "count(p20(p20(1))) == 1\n")), broken, "within others many times over", p1},
		"marshalled":             {doubled("json.marshal(shared(1))"), timeout, "", p1},
		"printed":                {doubled("sprintf(\"%v\", [shared(1)])"), timeout, "", p1},
		"strings doubled":        {program(policytest.Deny("	"+strings.Repeat("double(", 10)+"big"+strings.Repeat(")", 10)+" == \"\"") + "\ndouble(x) := concat(\"\", [x, x, x, x, x, x, x, x])\n" + big), timeout, memory, p1},
		"arrays doubled":         {program(policytest.Deny("	count("+strings.Repeat("double(", 30)+"[1, 2]"+strings.Repeat(")", 30)+") == 1") + "\ndouble(x) := array.concat(x, x)\n"), timeout, parts, p1},
		"a shift":                {program(policytest.Deny("	bits.lsh(1, 10000000000) == 1")), timeout, memory, p1},
		"a wide format":          {program(policytest.Deny("	sprintf(\"%999999999d\", [1]) == \"\"")), timeout, memory, p1},
		"a large exponent":       {program(policytest.Deny("	to_number(\"1e999999999\") + 1 == 2")), "policy.error", "digits", p1},
		"a hexadecimal exponent": {program(policytest.Deny("	to_number(\"0x1p-999999999\") * 3 > 1")), "policy.error", "digits", p1},
		"a parsed exponent":      {program(policytest.Deny("	json.unmarshal(\"[1e999999999]\")[0] > 2")), "policy.error", "number", p1},
		"a regular expression":   {program(policytest.Deny("	regex.match(concat(\"\", [x | some _ in numbers.range(1, 1000); x := \"((a{1,100}){1,10}){1,1}\"]), \"aaaa\")")), timeout, memory, p1},
		"regular expressions":    {program(policytest.Deny("	some i in numbers.range(1, 100000)\n	regex.match(sprintf(\"(a{0,900}b{0,9}){%d}\", [i % 1000]), \"aaaa\")\n	i == -1")), timeout, "", p1},
		"chained rules":          {program(policytest.Rules("r0 := input.action.to\n\n" + chain(20_000, func(i int) string { return fmt.Sprintf("r%d := r%d + 1", i, i-1) }) + x + "r20000 > 0\n")), broken, "", "policies"},
		"chained further":        {program(policytest.Rules("r0 := input.action.to\n\n" + chain(4_000, func(i int) string { return fmt.Sprintf("r%d := r%d + 1", i, i-1) }) + x + "r4000 > 0\n")), broken, "rules that lead to rules", p1},
		"chained functions":      {program(policytest.Rules("f0(x) := x\n\n" + chain(4_000, func(i int) string { return fmt.Sprintf("f%d(x) := f%d(x) + 1", i, i-1) }) + x + "f4000(1) > 0\n")), broken, "", "policies"},
		"long body":              {program(policytest.Deny("	i := input.action.to\n" + strings.Repeat("	i > 0\n", 20_000))), broken, "a rule with more than", p1},
		"long else":              {program(policytest.Rules("x := 1 if {\n	input.action.to < 0\n}\n" + strings.Repeat("else := 1 if false\n", 10_000) + x + "x == 1\n")), broken, "a rule with more than", p1},
		"long path":              {program(policytest.Deny("	input" + strings.Repeat("[_]", 30_000) + " == 1")), broken, "a rule with more than", p1},
		"long sum":               {program(policytest.Deny("	input.action.to" + strings.Repeat("+1", 400_000) + " == 1")), broken, "nested too deep", p1},
		"many files":             {files(5000, func(i int) string { return fmt.Sprintf("deny contains {\"rule\": \"a\", \"msg\": \"%d\"}", i) }), broken, "more than", "policies"},
		"files at odds":          {files(999, func(int) string { return "deny := {1}\n" }), broken, "", "policies"},
		"megabytes":              {files(20, func(i int) string { return fmt.Sprintf("x%d := [", i) + strings.Repeat("1,", 400_000) + "]\n" }), broken, "", "policies"},
		"types":                  {program(policytest.Rules("x0 := [1]\n\n" + chain(60, func(i int) string { return fmt.Sprintf("x%d := {\"a\": x%d, \"b\": x%d}", i, i-1, i-1) }) + x + "x60.a == x59\n")), broken, "within others many times over", p1},
		"types of packages": {func() Config {
			sources := []string{"package t0\n\na := 1\n", policytest.Rules(x + "data.t60.a == 1\n")}
			for i := range 60 {
				sources = append(sources, fmt.Sprintf("package t%d\n\na := data.t%d\n\nb := data.t%d\n", i+1, i, i))
			}
			return Config{Modules: policytest.Modules(sources...)}
		}, broken, "within others many times over", "policies"},
		"closures":       {nested("[x | x := ", "]", 16), broken, "within each other", p1},
		"templates":      {nested("$\"{", "}\"", 16), broken, "within each other", p1},
		"many closures":  {nested("[x | x := ", "]", 60_000), broken, "nested too deep", p1},
		"many templates": {nested("$\"{", "}\"", 100_000), broken, "nested too deep", p1},
		"arrays":         {nested("[", "]", 400_000), broken, "nested too deep", p1},
		"parentheses":    {nested("(", "", 900_000), broken, "nested too deep", p1},
		"braces":         {nested("{", "", 900_000), broken, "nested too deep", p1},
		"calls":          {nested("count(", ")", 100_000), broken, "nested too deep", p1},
		"aliases":        {data("a0: &a0 [1]\n" + strings.TrimSpace(chain(40, func(i int) string { return fmt.Sprintf("a%d: &a%d [*a%d, *a%d]", i, i, i-1, i-1) })) + "\n"), broken, "when aliases are expanded", "policies/data.yaml"},
		"much data": {func() Config {
			c := Config{Modules: policytest.Modules(policytest.Deny("	x := data.d1\n	y := data.d1\n	x == y"))}
			for i := range 4 {
				c.Data = append(c.Data, parse.DataFile{Path: fmt.Sprintf("policies/d%d.yaml", i), Content: fmt.Sprintf("d%d: [%s]\n", i, strings.Repeat("[],", 199_000/2))})
			}
			return c
		}, broken, "in all data files", "policies/d2.yaml"},
		"compared data": {func() Config {
			return Config{Modules: policytest.Modules(policytest.Deny("	x := data.d\n	y := data.d\n	x == y")),
				Data: []parse.DataFile{{Path: "policies/d.yaml", Content: "d: [" + strings.Repeat("[],", 199_000) + "]\n"}}}
		}, "acme.x", "m", ""},
		"deep data":       {data(strings.Repeat("{a: ", 200_000)), broken, "depth", "policies/data.yaml"},
		"many findings":   {program(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": \"m\", \"n\": i} if some i in numbers.range(1, 20000)\n")), "policy.error", "deny has 20000 findings, more than 1000 (policies/p1.rego:3)", ""},
		"large findings":  {program(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": big, \"n\": i, \"data\": big} if some i in numbers.range(1, 100000)\n" + big)), timeout, "", p1},
		"a giant message": {program(policytest.Rules("deny contains {\"rule\": \"x\", \"msg\": sprintf(\"%9999999d\", [1])}\n")), "x", " ", ""},
		"many digits":     {program(policytest.Deny("	n := json.unmarshal(concat(\"\", [x | some _ in numbers.range(1, 20000); x := \"1\"]))\n	n > 1")), "policy.error", "", p1},
		"compared again": {func() Config {
			return Config{Modules: policytest.Modules(policytest.Deny("	x := data.d\n	y := data.e\n" + strings.Repeat("	x == y\n", 40))), Data: sides}
		}, timeout, compared, p1},
		"compared by reference": {func() Config {
			return Config{Modules: policytest.Modules(policytest.Deny(strings.Repeat("	data.d == data.e\n", 40))), Data: sides}
		}, timeout, compared, p1},
		"compared by a key": {func() Config {
			return Config{Modules: policytest.Modules(policytest.Rules("s contains k if k := data.d\n\nf(x) := x\n\n" + x + "{\n	x := data.e\n" + strings.Repeat("	s[x]\n	f(data.d, x)\n", 20) + "}\n")), Data: sides}
		}, timeout, compared, p1},
		"compared rules": {func() Config {
			return Config{Modules: policytest.Modules(policytest.Rules("p[k] := v if {\n	v := data.d\n	k := \"a\"\n}\n\n" + x + "{\n" + strings.Repeat("	p.a == data.e\n", 40) + "}\n")), Data: sides}
		}, timeout, compared, p1},
		"comprehensions compared": {program(policytest.Deny("	v := json.unmarshal(concat(\"\", [\"[\", replace(sprintf(\"%1000s\", [\" \"]), \" \", \"[],\"), \"[]]\"]))\n	[v | some _ in numbers.range(1, 1500)] == [v | some _ in numbers.range(1, 1500)]")),
			timeout, parts, p1},
		"tangled":         {program(policytest.Deny("	z := numbers.range(1, 4000)\n	" + tangle("x", 6) + "\n	" + tangle("y", 6) + "\n	x0 == y0")), broken, "a variable in it three times", p1},
		"tangled further": {program(policytest.Deny("	z := input.action.to\n	" + tangle("x", 40) + "\n	count(x0) == 5")), broken, "within others many times over", p1},
		"types in comprehensions": {program(policytest.Rules("x0 := 1\n\ny0 := 1\n\n" + chain(60, func(i int) string {
			return fmt.Sprintf("x%d := [v | v := [x%d, x%d]]\n\ny%d := [v | v := [y%d, y%d]]", i, i-1, i-1, i, i-1, i-1)
		}) + x + "x60 == y60\n")), broken, "within others many times over", p1},
		"types of either": {program(policytest.Rules("x0 := 1\n\ny0 := 1\n\n" + chain(60, func(i int) string {
			return fmt.Sprintf("x%d := [x%d]\n\nx%d := {\"a\": x%d} if false\n\ny%d := {\"a\": y%d} if {\n	false\n} else := [y%d]", i, i-1, i, i-1, i, i-1, i-1)
		}) + x + "x60 == y60\n")), broken, "within others many times over", p1},
		"types in patterns": {program(policytest.Rules("x0 := 1\n\ny0 := 1\n\n" + chain(60, func(i int) string {
			return fmt.Sprintf("x%d := v if {\n	{\"k\": w} = {\"k\": x%d}\n	{\"q\": v} = {\"q\": {\"a\": w, \"b\": w}}\n}\n\ny%d := v if {\n	some w in [y%d]\n	v := {\"a\": w, \"b\": w}\n}", i, i-1, i, i-1)
		}) + x + "x60 == y60\n")), broken, "within others many times over", p1},
		"aliases read":      {program(policytest.Deny("	" + aliased + "	count(yaml.unmarshal(x)) == 2")), timeout, memory, p1},
		"aliases looked at": {program(policytest.Deny("	" + aliased + "	yaml.is_valid(x)")), timeout, memory, p1},
		"wide indents": {program(policytest.Deny("	open := replace(sprintf(\"%700s\", [\"[\"]), \" \", \"[\")\n	x := json.unmarshal(concat(\"\", [open, \"1\", replace(sprintf(\"%999s\", [\" \"]), \" \", \",1\"), replace(open, \"[\", \"]\")]))\n	count(json.marshal_with_options(x, {\"indent\": sprintf(\"%6000s\", [\" \"])})) == 1")),
			timeout, memory, p1},
		"braces in a glob": {program(policytest.Deny("	open := replace(sprintf(\"%8000s\", [\" \"]), \" \", \"{a,\")\n	glob.match(concat(\"\", [open, replace(sprintf(\"%8000s\", [\" \"]), \" \", \"}\")]), [], \"a\")")),
			timeout, memory, p1},
		"trimmed": {program(policytest.Deny("	x := replace(sprintf(\"%99999s\", [\" \"]), \" \", \"é\")\n	trim_left(x, concat(\"\", [sprintf(\"%99999s\", [\" \"]), \"é\"])) == \"x\"")), timeout, memory, p1},
	}
}

// tangle is an equation in which each variable is twice within another.
func tangle(v string, n int) string {
	var left, right []string
	for i := range n {
		left, right = append(left, fmt.Sprintf("%s%d", v, i)), append(right, fmt.Sprintf("[%s%d, %s%d]", v, i+1, v, i+1))
	}
	return fmt.Sprintf("[%s, %s%d] = [%s, z]", strings.Join(left, ", "), v, n, strings.Join(right, ", "))
}

// outcome is what a judgement of a hostile configuration came to.
type outcome struct {
	Raise, Lower, Spec, Other         rollout.Verdict
	Compile, First, Second, OtherTime time.Duration
	// Peak of the heap and the stacks above the start, in bytes.
	Peak     int64
	Problems []parse.Problem
}

// childOf names the case that this process is to judge: it is a child of the test, as what harms may end a process.
const childOf = "RAMPART_HOSTILE_POLICY"

func TestHostileChild(t *testing.T) {
	name := os.Getenv(childOf)
	if name == "" {
		t.Skip("it is started by TestHostile")
	}
	cfg := hostiles()[name].cfg()
	cfg.Bounds.Compile = 8 * time.Second
	other := Compile(Config{})
	debug.SetGCPercent(25)
	runtime.GC()
	stop := peak()
	var out outcome
	start := time.Now()
	lap := func() time.Duration { d := time.Since(start); start = time.Now(); return d }
	e := Compile(cfg)
	out.Problems = e.Problems()
	out.Compile = lap()
	v := e.Judge(t.Context(), snapshot(t), proposal(ramp(), reset()))
	out.First = lap()
	out.Raise, out.Lower, out.Spec = v.Of(ramp().ID), v.Of(reset().ID), v.Spec
	e.Judge(t.Context(), snapshot(t), proposal(ramp(), reset()))
	out.Second = lap()
	out.Other = other.Judge(t.Context(), snapshot(t), proposal(ramp(), reset())).Of(ramp().ID)
	out.OtherTime = lap()
	out.Peak = stop()
	data, err := json.Marshal(out)
	require.NoError(t, err)
	fmt.Printf("\noutcome %s\n", data)
}

// peak watches how much memory the process uses above what it uses now, in bytes.
func peak() (stop func() int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	read := func() int64 {
		metrics.Read(samples)
		return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
	}
	start := read()
	done, most := make(chan struct{}), make(chan int64)
	go func() {
		top := start
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			top = max(top, read())
			select {
			case <-done:
				most <- top - start
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 { close(done); return <-most }
}

// Each is judged in a process of its own: nothing may end it, use up its memory, keep another environment waiting, hold
// what takes traffic back, or let a raise through.
func TestHostile(t *testing.T) {
	testneed.Long(t)
	testneed.Plain(t)
	for name, tc := range hostiles() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHostileChild$", "-test.v")
			cmd.Env = append(os.Environ(), childOf+"="+name)
			text, err := cmd.CombinedOutput()
			require.NoError(t, err, "%.2000s", text)
			_, after, _ := strings.Cut(string(text), "\noutcome ")
			var got outcome
			require.NoError(t, json.NewDecoder(strings.NewReader(after)).Decode(&got))
			require.Equal(t, rollout.HoldEffect, got.Raise.Effect)
			f := got.Raise.Findings[0]
			require.Equal(t, tc.rule, f.Rule, f.Message)
			require.Contains(t, f.Message, tc.message)
			require.True(t, strings.HasPrefix(f.Location, tc.location), f.Location)
			require.Equal(t, rollout.Allow, got.Lower.Effect)
			require.Equal(t, rollout.Verdict{Effect: rollout.Allow}, got.Other, "another environment")
			require.Less(t, got.Compile, 15*time.Second)
			require.Less(t, got.First, 5*time.Second)
			require.Less(t, got.Second, 2*time.Second, "what went beyond is not asked again")
			require.Less(t, got.Peak, int64(512<<20))
		})
	}
}
