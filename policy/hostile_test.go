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
)

// hostile is a configuration that wants to harm, and what has to be said of it.
type hostile struct {
	cfg func() Config
	// rule of the finding that holds, part of its message, and its place where one can be told; "" is any.
	rule, message, location string
}

func rules(body string) string { return "package rampart.rollout\n\n" + body }

// deny is a rule that fires where a body holds.
func deny(body string) string {
	return rules("deny contains {\"rule\": \"acme.x\", \"msg\": \"m\"} if {\n" + body + "\n}\n")
}

func program(sources ...string) func() Config {
	return func() Config { return Config{Modules: modules(sources...)} }
}

// twice doubles a value within itself n times: 2^n leaves, n objects.
const twice = `
twice(x) := [x, x]

t5(x) := twice(twice(twice(twice(twice(x)))))

t20(x) := t5(t5(t5(t5(x))))

shared(x) := t20(t20(x))
`

func chain(n int, rule func(i int) string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(rule(i) + "\n\n")
	}
	return b.String()
}

func hostiles() map[string]hostile {
	const timeout, broken = "policy.timeout", "policy.broken"
	out := map[string]hostile{
		"nested ranges":             {program(deny("	some i in numbers.range(1, 100000)\n	some j in numbers.range(1, 100000)\n	i * j == -1")), timeout, "the policies of rampart.rollout took", ""},
		"cartesian product":         {program(deny("	x := numbers.range(1, 300)\n	x[a] + x[b] + x[c] + x[d] == -1")), timeout, "the policies of rampart.rollout took", ""},
		"comprehension bomb":        {program(deny("	x := numbers.range(1, 3000)\n	y := [[a, b] | some a in x; some b in x]\n	count(y) == 1")), timeout, "rampart.rollout", ""},
		"wide literals kept":        {program(deny("	x := [[" + strings.Repeat("i,", 400_000) + "i] | some i in numbers.range(1, 100000)]\n	count(x) == 1")), "", "", ""},
		"objects kept":              {program(deny("	x := {i: {j: [i, j] | some j in numbers.range(1, 100)} | some i in numbers.range(1, 100000)}\n	count(x) == 1")), timeout, "", ""},
		"sets of colliding numbers": {program(deny("	x := {i / 1000003 | some i in numbers.range(1, 100000)}\n	count(x) == 1")), timeout, "", ""},
		"colliding set at once":     {program(deny("	a := [i / 1000003 | some i in numbers.range(1, 50000)]\n	count(cast_set(a)) == 1")), "", "", ""},
		"walk of shared values":     {program(rules("deny contains {\"rule\": \"x\", \"msg\": \"m\"} if walk(shared(1), [_, \"no\"])\n" + twice)), timeout, "", ""},
		"walk of all of them":       {program(rules("deny contains {\"rule\": \"x\", \"msg\": \"m\"} if {\n	walk(shared(1), [_, v])\n	v == \"no\"\n}\n" + twice)), timeout, "", ""},
		"comparing shared values":   {program(rules("deny contains {\"rule\": \"x\", \"msg\": \"m\"} if shared(input.action.to) == shared(input.action.to + 0)\n" + twice)), timeout, "could not be stopped", ""},
		"shared evidence":           {program(rules("deny contains {\"rule\": \"x\", \"msg\": \"m\", \"data\": shared(1)}\n" + twice)), "x", "m", ""},
		"findings that differ late": {program(rules("deny contains {\"rule\": \"x\", \"msg\": \"m\", \"data\": [shared(1 + 0), 1]}\n\ndeny contains {\"rule\": \"x\", \"msg\": \"m\", \"data\": [shared(2 - 1), 2]}\n" + twice)), timeout, "could not be stopped", ""},
		"shared findings":           {program(rules("deny contains shared(1)\n" + twice)), "policy.shape", "an array where an object", "policies/p1.rego:3"},
		"shared marshalled":         {program(deny("	json.marshal(shared(1)) == \"\"") + twice), timeout, "MiB of memory", ""},
		"shared printed":            {program(deny("	sprintf(\"%v\", [shared(1)]) == \"\"") + twice), timeout, "MiB of memory", ""},
		"template strings":          {program(deny("	$\"{shared(1)}\" == \"\"") + twice), timeout, "MiB of memory", ""},
		"strings doubled":           {program(deny("	double(double(double(double(double(double(double(double(double(double(big)))))))))) == \"\"") + "\ndouble(x) := concat(\"\", [x, x, x, x, x, x, x, x])\n\nbig := sprintf(\"%99999d\", [1])\n"), timeout, "MiB of memory", ""},
		"arrays doubled":            {program(deny("	count("+strings.Repeat("double(", 30)+"[1, 2]"+strings.Repeat(")", 30)+") == 1") + "\ndouble(x) := array.concat(x, x)\n"), timeout, "MiB of memory", ""},
		"chained rules":             {program(rules("r0 := input.action.to\n\n" + chain(40_000, func(i int) string { return fmt.Sprintf("r%d := r%d + 1", i, i-1) }) + "deny contains {\"rule\": \"x\", \"msg\": \"m\"} if r40000 > 0\n")), broken, "", "policies/p1.rego"},
		"chained functions":         {program(rules("f0(x) := x\n\n" + chain(20_000, func(i int) string { return fmt.Sprintf("f%d(x) := f%d(x) + 1", i, i-1) }) + "deny contains {\"rule\": \"x\", \"msg\": \"m\"} if f20000(1) > 0\n")), broken, "", "policies/p1.rego"},
		"long body":                 {program(deny("	i := input.action.to\n" + strings.Repeat("	i > 0\n", 120_000))), broken, "", "policies/p1.rego"},
		"long bodies on top of each other": {func() Config {
			c := Config{}
			for k := range 4 {
				c.Modules = append(c.Modules, Module{Path: fmt.Sprintf("policies/p%d.rego", k+1), Source: rules(fmt.Sprintf("long%d if {\n	i := input.action.to\n", k) + strings.Repeat("	i>0\n", 150_000) + fmt.Sprintf("	long%d\n}\n", k+1))})
			}
			c.Modules = append(c.Modules, Module{Path: "policies/p9.rego", Source: rules("long4 := true\n\n" + "deny contains {\"rule\": \"x\", \"msg\": \"m\"} if long0\n")})
			return c
		}, broken, "", "policies/p"},
		"long else":      {program(rules("x := 1 if {\n	input.action.to < 0\n}\n" + strings.Repeat("else := 1 if false\n", 40_000) + "deny contains {\"rule\": \"x\", \"msg\": \"m\"} if x == 1\n")), broken, "", "policies/p1.rego"},
		"long reference": {program(deny("	input" + strings.Repeat("[_]", 300_000) + " == 1")), broken, "", "policies/p1.rego"},
		"long sum":       {program(deny("	input.action.to" + strings.Repeat("+1", 400_000) + " == 1")), broken, "", "policies/p1.rego"},
		"long union":     {program(deny("	{1}" + strings.Repeat("|{1}", 200_000) + " == {1}")), broken, "", "policies/p1.rego"},
		"many rules":     {program(rules(chain(30_000, func(i int) string { return fmt.Sprintf("deny contains {\"rule\": \"a\", \"msg\": \"%d\"}", i) }))), "", "", ""},
		"thousands of files": {func() Config {
			c := Config{}
			for i := range 5000 {
				c.Modules = append(c.Modules, Module{Path: fmt.Sprintf("policies/p%d.rego", i), Source: rules(fmt.Sprintf("deny contains {\"rule\": \"a\", \"msg\": \"%d\"}", i))})
			}
			return c
		}, broken, "more than", "policies/p"},
		"thousands of files at odds": {func() Config {
			c := Config{}
			for i := range 999 {
				c.Modules = append(c.Modules, Module{Path: fmt.Sprintf("policies/p%d.rego", i), Source: rules("deny := {1}\n")})
			}
			return c
		}, broken, "", "policies/p"},
		"megabytes": {func() Config {
			c := Config{}
			for i := range 20 {
				c.Modules = append(c.Modules, Module{Path: fmt.Sprintf("policies/p%d.rego", i), Source: rules(fmt.Sprintf("x%d := [", i) + strings.Repeat("1,", 400_000) + "]\n")})
			}
			return c
		}, broken, "more than", "policies/p"},
		"types":          {program(deny("	x0 := [input.action.to]\n" + chain(60, func(i int) string { return fmt.Sprintf("	x%d := [x%d, x%d]", i, i-1, i-1) }) + "	x60 == 1")), broken, "", ""},
		"types of rules": {program(rules("x0 := [1]\n\n" + chain(60, func(i int) string { return fmt.Sprintf("x%d := {\"a\": x%d, \"b\": x%d}", i, i-1, i-1) }) + "deny contains {\"rule\": \"x\", \"msg\": \"m\"} if x60.a == x59\n")), broken, "", ""},
		"types of alternatives": {program(rules("x0 := 1\n\n" + chain(40, func(i int) string {
			return fmt.Sprintf("x%d := {\"a\": x%d} if input.a == 1\n\nx%d := {\"b\": x%d} if input.a == 2", i, i-1, i, i-1)
		}) + "deny contains {\"rule\": \"x\", \"msg\": \"m\"} if x40.a == 1\n")), "", "", ""},
		"regular expression":  {program(deny("	regex.match(concat(\"\", [\"^\", concat(\"\", [\"((a{1,100}){1,10}){1,1}\" | some _ in numbers.range(1, 1000)]), \"$\"]), \"aaaa\")")), "", "", ""},
		"regular expressions": {program(deny("	some i in numbers.range(1, 100000)\n	regex.match(sprintf(\"(a{0,900}b{0,9}){%d}\", [i % 1000]), \"aaaa\")\n	i == -1")), timeout, "", ""},
		"data bomb": {func() Config {
			return Config{Data: []DataFile{{"policies/data.yaml", "a0: &a0 [1]\n" + strings.TrimSpace(chain(40, func(i int) string { return fmt.Sprintf("a%d: &a%d [*a%d, *a%d]", i, i, i-1, i-1) })) + "\n"}}}
		}, broken, "when aliases are expanded", "policies/data.yaml"},
		"deep data": {func() Config {
			return Config{Data: []DataFile{{"policies/data.yaml", "a: " + strings.Repeat("[", 500_000)}}}
		}, broken, "", "policies/data.yaml"},
		"deep data closed": {func() Config {
			return Config{Data: []DataFile{{"policies/data.yaml", "a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)}}}
		}, broken, "", "policies/data.yaml"},
		"deep data mappings": {func() Config {
			return Config{Data: []DataFile{{"policies/data.yaml", strings.Repeat("{a: ", 200_000)}}}
		}, broken, "", "policies/data.yaml"},
		"many findings":               {program(rules("deny contains {\"rule\": \"x\", \"msg\": big, \"n\": i, \"data\": big} if some i in numbers.range(1, 100000)\n\nbig := sprintf(\"%9999d\", [1])\n")), "", "", ""},
		"giant message":               {program(rules("deny contains {\"rule\": \"x\", \"msg\": sprintf(\"%9999999d\", [1])}\n")), "x", "", ""},
		"numbers of a million digits": {program(deny("	n := json.unmarshal(concat(\"\", [\"1\" | some _ in numbers.range(1, 200000)]))\n	m := json.unmarshal(concat(\"\", [\"3\" | some _ in numbers.range(1, 200000)]))\n	a := [x | some i in numbers.range(1, 10000); x := [n, m][i % 2]]\n	max(a) == 1")), "", "", ""},
		"large literal numbers":       {program(deny("	n := " + strings.Repeat("1", 300_000) + "\n	m := " + strings.Repeat("3", 300_000) + "\n	a := [x | some i in numbers.range(1, 10000); x := [n, m][i % 2]]\n	max(a) == 1")), "", "", ""},
		"parsed and deep":             {program(deny("	s := concat(\"\", [\"[\" | some _ in numbers.range(1, 9000)])\n	e := concat(\"\", [\"]\" | some _ in numbers.range(1, 9000)])\n	x := json.unmarshal(concat(\"\", [s, e]))\n" + strings.Repeat("	walk(x, [_, []])\n", 2000) + "	false")), "", "", ""},
	}
	for name, open := range map[string]string{"arrays": "[", "parentheses": "(", "braces": "{", "objects": "{\"a\":", "sets of arrays": "{[", "calls": "count(", "templates": "$\"{", "comprehensions": "[x | x := ", "nots": "not ", "minus": "- ", "every": "every x in [1] { ", "braces and calls": "f({"} {
		out["deep source of "+name] = hostile{program(deny("	x := " + strings.Repeat(open, 900_000/len(open)))), broken, "", "policies/p1.rego"}
		closed := 60_000 / len(open)
		out["closed deep source of "+name] = hostile{program(deny("	x := " + strings.Repeat(open, closed) + "1" + strings.Repeat(closing(open), closed))), broken, "", "policies/p1.rego"}
	}
	return out
}

func closing(open string) string {
	var out string
	for _, r := range open {
		switch r {
		case '[':
			out = "]" + out
		case '(':
			out = ")" + out
		case '{':
			out = "}" + out
		}
	}
	if strings.HasPrefix(open, "$") {
		out += "\""
	}
	return out
}

// outcome is what a judgement of a hostile configuration came to.
type outcome struct {
	Raise, Lower, Spec, Other         rollout.Verdict
	Compile, First, Second, OtherTime time.Duration
	// Peak of the heap and the stacks above the start, in bytes.
	Peak     int64
	Problems []Problem
}

// childOf names the case that this process is to judge: it is a child of the test, as what harms may end a process.
const childOf = "RAMPART_HOSTILE_POLICY"

func TestHostileChild(t *testing.T) {
	name := os.Getenv(childOf)
	if name == "" {
		t.Skip("it is started by TestHostile")
	}
	cfg := hostiles()[name].cfg()
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

func TestHostile(t *testing.T) {
	for name := range hostiles() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHostileChild$", "-test.v")
			cmd.Env = append(os.Environ(), childOf+"="+name)
			text, err := cmd.CombinedOutput()
			require.NoError(t, err, "%.2000s", text)
			_, after, _ := strings.Cut(string(text), "\noutcome ")
			var got outcome
			require.NoError(t, json.NewDecoder(strings.NewReader(after)).Decode(&got))
			f := rollout.Finding{}
			if len(got.Raise.Findings) > 0 {
				f = got.Raise.Findings[0]
			}
			t.Logf("XX compile %v first %v second %v other %v peak %d MiB: %s %s %.100s %s problems %d", got.Compile.Round(time.Millisecond), got.First.Round(time.Millisecond), got.Second.Round(time.Millisecond), got.OtherTime.Round(time.Millisecond), got.Peak>>20, got.Raise.Effect, f.Rule, f.Message, f.Location, len(got.Problems))
			require.Equal(t, rollout.Allow, got.Lower.Effect)
		})
	}
}
