package policy

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

const mib = 1 << 20

// operands are values that want to harm, by type.
func operands() map[string][]*ast.Term {
	str := func(s string, times int) *ast.Term { return ast.StringTerm(strings.Repeat(s, times)) }
	array := func(n int, of func(i int) *ast.Term) *ast.Term {
		terms := make([]*ast.Term, n)
		for i := range terms {
			terms[i] = of(i)
		}
		return ast.ArrayTerm(terms...)
	}
	number := func(s string) *ast.Term { return ast.NewTerm(ast.Number(s)) }
	ints := func(i int) *ast.Term { return ast.IntNumberTerm(i) }
	names := func(i int) *ast.Term { return ast.StringTerm(fmt.Sprintf("a%d", i)) }
	fractions := func(i int) *ast.Term { return number(fmt.Sprintf("0.%06d1", i)) }
	shared, deep := ast.IntNumberTerm(1), ast.IntNumberTerm(1)
	for range 40 {
		shared = ast.ArrayTerm(shared, shared)
	}
	for range 20_000 {
		deep = ast.ArrayTerm(deep)
	}
	big, small := str("a", mib), str("a", 1000)
	set := func(a *ast.Term) *ast.Term { return ast.SetTerm(elements(a)...) }
	object := func(a *ast.Term, v *ast.Term) *ast.Term {
		var pairs [][2]*ast.Term
		for _, k := range elements(a) {
			pairs = append(pairs, [2]*ast.Term{k, v})
		}
		return ast.ObjectTerm(pairs...)
	}
	op := func(kind, path string) *ast.Term {
		return ast.ObjectTerm(ast.Item(ast.StringTerm("op"), ast.StringTerm(kind)), ast.Item(ast.StringTerm("path"), ast.StringTerm(path)),
			ast.Item(ast.StringTerm("from"), ast.StringTerm("")), ast.Item(ast.StringTerm("value"), small))
	}
	edges := object(array(300, ints), array(300, ints))
	yamlBomb := "a0: &a0 [x, x]\n"
	for i := range 40 {
		yamlBomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return map[string][]*ast.Term{
		"string": {ast.StringTerm("a"), ast.StringTerm(""), big, str("%{[(*?\\/\x00\x1b\"&<é", 50_000), ast.StringTerm("%999999999d"), str("%999999d", 2000),
			ast.StringTerm("%*d%.999999999f"), ast.StringTerm("1e999999999"), str("1", 500_000), str("((a{1,100}){1,10}){1,1}", 1000), str("(a?){1,500}", 50),
			ast.StringTerm("((a{0,30}){0,30}){0,1}(x+x+)+y"), str("*a", 60), str("{a,", 300), str("a", 200), ast.StringTerm(yamlBomb), str("[", 100_000),
			str("{\"a\":", 9000), ast.StringTerm(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)), ast.StringTerm("[1e999999999]"), str("- ", 5000), str("a=b&", 100_000), str("%41", 300_000),
			ast.StringTerm("1e999999999Gi"), ast.StringTerm("0x1p-999999999"), ast.StringTerm("1\"e\"999999"), ast.StringTerm("99999999999999999999h"), str("January ", 100_000), str("1.", 100_000), str("\n", 500_000)},
		"number": {ints(1), ints(-1), ints(0), ints(1 << 62), ints(1_000_000_000), number("1e999999999"), number("-1e999999999"), number("0x1p-999999999"), number("1e308"), fractions(1),
			number("1" + strings.Repeat("0", 900))},
		"array": {ast.ArrayTerm(), array(20_000, ints), array(20_000, names), array(5_000, fractions), shared, deep, array(100, func(int) *ast.Term { return big }),
			array(2000, func(i int) *ast.Term { return op("copy", fmt.Sprintf("/a%d", i)) }), array(40, func(int) *ast.Term { return op("copy", "/a") }),
			array(5000, func(int) *ast.Term { return op("add", "/0") }), array(300, func(int) *ast.Term { return array(300, ints) }),
			ast.ArrayTerm(number("1e999999999"), number("1e999999998")), ast.ArrayTerm(ints(1<<62), ast.StringTerm("Europe/Berlin"), str("2006", 200_000)),
			array(2000, func(int) *ast.Term { return ast.ArrayTerm(array(100, names)) }), array(300, func(int) *ast.Term { return object(array(300, names), small) }),
			array(2000, func(i int) *ast.Term { return number(strings.Repeat("9", 900)) })},
		"object": {ast.ObjectTerm(), object(array(20_000, names), ints(1)), object(array(800, fractions), ints(1)), object(array(100, names), shared), edges,
			object(ast.ArrayTerm(ast.StringTerm("a")), deep), object(array(1000, names), small), op("copy", "/a"),
			ast.ObjectTerm(ast.Item(ast.StringTerm("pretty"), ast.BooleanTerm(true)), ast.Item(ast.StringTerm("indent"), big), ast.Item(ast.StringTerm("prefix"), big))},
		"set": {ast.SetTerm(), set(array(20_000, ints)), set(array(800, fractions)), set(array(10_000, names)), ast.SetTerm(shared), ast.SetTerm(deep),
			set(array(1000, func(i int) *ast.Term { return set(array(100, func(j int) *ast.Term { return ints(i*100 + j) })) })),
			set(array(30, func(i int) *ast.Term { return set(array(30, func(j int) *ast.Term { return fractions(i*30 + j) })) }))},
		"boolean": {ast.BooleanTerm(true)}, "null": {ast.NullTerm()},
	}
}

func elements(a *ast.Term) []*ast.Term {
	var out []*ast.Term
	a.Value.(*ast.Array).Foreach(func(t *ast.Term) { out = append(out, t) })
	return out
}

// poolOf are the operands for a declared type.
func poolOf(pools map[string][]*ast.Term, declared string) []*ast.Term {
	var out []*ast.Term
	for _, kind := range []string{"string", "number", "array", "object", "set", "boolean", "null"} {
		if declared == "any" || strings.HasPrefix(declared, kind) || strings.HasPrefix(declared, "any<") && strings.Contains(strings.TrimPrefix(declared, "any<"), kind) {
			out = append(out, pools[kind]...)
		}
	}
	return out
}

// combinations of operands: all where there are few, else those where all are the same in their pools, and where one is
// any and the rest are the first or the third.
func combinations(pools [][]*ast.Term) [][]*ast.Term {
	all := 1
	for _, p := range pools {
		all *= len(p)
	}
	var out [][]*ast.Term
	if all <= 120 {
		for n := range all {
			var c []*ast.Term
			for _, p := range pools {
				c = append(c, p[n%len(p)])
				n /= len(p)
			}
			out = append(out, c)
		}
		return out
	}
	for at, p := range pools {
		for _, operand := range p {
			for _, rest := range []int{0, 2, 3} {
				var c []*ast.Term
				for i, q := range pools {
					if c = append(c, q[rest%len(q)]); i == at {
						c[i] = operand
					}
				}
				out = append(out, c)
			}
		}
	}
	for n := range 30 {
		var c []*ast.Term
		for _, p := range pools {
			c = append(c, p[n%len(p)])
		}
		out = append(out, c)
	}
	return out
}

// builtinsOf says that this process is to call all builtins: it is a child of the test.
const builtinsOf = "RAMPART_HOSTILE_BUILTINS"

const (
	mostHeap = 256 * mib
	mostTime = 5 * time.Second
)

func TestBuiltinsChild(t *testing.T) {
	only := os.Getenv(builtinsOf)
	if only == "" {
		t.Skip("it is started by TestBuiltinsAreContained")
	}
	debug.SetGCPercent(50)
	pools := operands()
	for _, b := range sandbox.Capabilities().Builtins {
		if len(b.Decl.FuncArgs().Args) > 0 && !b.IsDeprecated() && b.Name != "internal.test_case" && (only == "all" || slices.Contains(strings.Fields(only), b.Name)) {
			t.Run(b.Name, func(t *testing.T) { callHostile(t, b, pools) })
		}
	}
}

// callHostile calls a builtin with operands that want to harm.
func callHostile(t *testing.T, decl *ast.Builtin, pools map[string][]*ast.Term) {
	name := decl.Name
	var refs []string
	var choices [][]*ast.Term
	for i, a := range decl.Decl.FuncArgs().Args {
		refs = append(refs, fmt.Sprintf("data.h[%d]", i))
		choices = append(choices, poolOf(pools, a.String()))
	}
	text := fmt.Sprintf("%s(%s)", name, strings.Join(refs, ", "))
	if decl.Infix != "" && len(refs) == 2 {
		text = fmt.Sprintf("%s %s %s", refs[0], decl.Infix, refs[1])
	}
	switch name {
	case "internal.member_2":
		text = "data.h[0] in data.h[1]"
	case "internal.member_3":
		text = "data.h[0], data.h[1] in data.h[2]"
	case "internal.template_string":
		text = "$\"{data.h[0]}{data.h[0]}\""
	case "eq", "assign":
		text = "data.h[0] == data.h[1]"
	case "walk":
		text = "walk(data.h[0], [_, \"no\"])"
	}
	e := Compile(Config{Library: []parse.Module{}, Bounds: sandbox.Bounds{Timeout: 3 * time.Second}, Modules: policytest.Modules(policytest.Deny("	x := [1 | " + text + "]\n	count(x) == 7"))})
	require.Empty(t, e.Problems(), text)
	rampart, err := e.books[0].all.data.root.Find(ast.Ref{ast.StringTerm("rampart")})
	require.NoError(t, err)
	var harm []string
	for _, c := range combinations(choices) {
		e.books[0].all.data.root = ast.NewObject(ast.Item(ast.StringTerm("h"), ast.ArrayTerm(c...)), ast.Item(ast.StringTerm("rampart"), ast.NewTerm(rampart)))
		e.books[0].quarantine.out = nil
		stop, start := peak(), time.Now()
		v := e.Judge(t.Context(), snapshot(t), proposal(ramp(), reset()))
		took, most := time.Since(start), stop()
		givenUp := slices.ContainsFunc(v.Of(ramp().ID).Findings, func(f rollout.Finding) bool { return strings.Contains(f.Message, "could not be stopped") })
		if most > mostHeap || took > mostTime || givenUp || v.Of(reset().ID).Effect != rollout.Allow {
			harm = append(harm, fmt.Sprintf("%s with %s: %d MiB, %s, given up: %t", name, described(c), most/mib, took, givenUp))
		}
		if givenUp { // it goes on beside the next call
			break
		}
	}
	require.Empty(t, harm)
}

// described says roughly what operands are.
func described(c []*ast.Term) string {
	var out []string
	for _, x := range c {
		switch v := x.Value.(type) {
		case ast.String:
			out = append(out, fmt.Sprintf("%.30q… (%d)", string(v), len(v)))
		case ast.Number:
			out = append(out, fmt.Sprintf("%.20s… (%d)", string(v), len(v)))
		default:
			out = append(out, ast.ValueName(v))
		}
	}
	return strings.Join(out, ", ")
}

func TestBuiltinsAreContained(t *testing.T) {
	testneed.Long(t)
	testneed.Plain(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBuiltinsChild$", "-test.v")
	cmd.Env = append(os.Environ(), builtinsOf+"=all")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
}
