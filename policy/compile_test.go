package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
	"github.com/rampart-gitops/rampart/rego"
)

func TestDigestChangesWithMeaningOnly(t *testing.T) {
	testneed.Plain(t)
	const plain = "package rampart.rollout\n\ndeny contains {\"rule\": \"a\", \"msg\": \"b\"} if input.action.to > 10\n"
	base := of(plain)
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, base.Digest())
	for name, same := range map[string]Config{
		"again":        {Modules: policytest.Modules(plain)},
		"a comment":    {Modules: policytest.Modules("# no more than ten\n\n" + strings.Replace(plain, "deny", "# METADATA\n# title: Ten\ndeny", 1) + "# the end\n")},
		"format":       {Modules: policytest.Modules("package   rampart.rollout\ndeny  contains {\n  \"rule\": \"a\",\n  \"msg\": `b`,\n} if {\n\tinput.action[\"to\"] >\n\t  10\n}")},
		"another path": {Modules: []parse.Module{{Path: "elsewhere.rego", Source: plain}}},
		"a test":       {Modules: append(policytest.Modules(plain), parse.Module{Path: "p1_test.rego", Source: "package rampart.rollout_test\n\ntest_a if true\n"})},
		"empty data":   {Modules: policytest.Modules(plain), Data: []parse.DataFile{{Path: "d.yaml", Content: "# nothing\n"}}},
	} {
		require.Equal(t, base.Digest(), Compile(same).Digest(), name)
	}
	seen := map[string]string{base.Digest(): "base"}
	for name, other := range map[string]Config{
		"a number":       {Modules: policytest.Modules(strings.Replace(plain, "10", "11", 1))},
		"a message":      {Modules: policytest.Modules(strings.Replace(plain, `"b"`, `"c"`, 1))},
		"negation":       {Modules: policytest.Modules(strings.Replace(plain, "if input", "if not input", 1))},
		"a package":      {Modules: policytest.Modules(strings.Replace(plain, "rollout", "sunset", 1))},
		"another rule":   {Modules: policytest.Modules(plain + "\nwarn contains {\"rule\": \"a\", \"msg\": \"b\"}\n")},
		"with":           {Modules: policytest.Modules(strings.Replace(plain, "10\n", "10 with input.action.to as 3\n", 1))},
		"a default":      {Modules: policytest.Modules(plain + "\ndefault x := 1\n")},
		"an import":      {Modules: policytest.Modules(strings.Replace(plain, "\n\n", "\n\nimport data.acme.x as y\n\n", 1))},
		"data":           {Modules: policytest.Modules(plain), Data: []parse.DataFile{{Path: "d.yaml", Content: "acme: {limit: 1}\n"}}},
		"other data":     {Modules: policytest.Modules(plain), Data: []parse.DataFile{{Path: "d.yaml", Content: "acme: {limit: 2}\n"}}},
		"no modules":     {},
		"no library":     {Library: []parse.Module{}, Modules: policytest.Modules(plain)},
		"does not parse": {Modules: policytest.Modules(plain, "nonsense")},
		"nor does this":  {Modules: policytest.Modules(plain, "nonsense too")},
	} {
		d := Compile(other).Digest()
		require.Empty(t, seen[d], "%s has the digest of %s", name, seen[d])
		seen[d] = name
	}
}

func TestProblemsLeaveGoodModulesInForce(t *testing.T) {
	e := Compile(Config{
		Modules: []parse.Module{
			{Path: "policies/b.rego", Source: "package rampart.rollout\n\nx := nosuch(1)\n\ny := http.send({})\n"},
			{Path: "policies/a.rego", Source: "package rampart.rollout\n\ndeny contains {\n"},
			{Path: "policies/good.rego", Source: "package rampart.rollout\n\nwarn contains {\"rule\": \"good\", \"msg\": \"it has its say\"}\n"},
		},
		Data: []parse.DataFile{{Path: "policies/data.yaml", Content: "a: 1\na: 2\n"}},
	})
	require.Empty(t, cmp.Diff([]parse.Problem{
		{Path: "policies/a.rego", Line: 4, Message: "unexpected eof token"},
		{Path: "policies/a.rego", Line: 4, Message: "unexpected eof token: expected rule key term (e.g., deny contains <VALUE> { ... })"},
		{Path: "policies/b.rego", Line: 3, Message: "undefined function nosuch"},
		{Path: "policies/b.rego", Line: 5, Message: "undefined function http.send"},
		{Path: "policies/data.yaml", Line: 2, Message: `key "a" is given twice`},
	}, e.Problems()))
	require.Equal(t, "policies/b.rego:3: undefined function nosuch", e.Problems()[2].Error())

	v := judge(t, e, ramp())
	require.Equal(t, rollout.HoldEffect, v.Effect)
	require.Len(t, v.Findings, 6)
	require.Equal(t, rollout.Finding{Package: "rampart", Rule: "policy.broken", Effect: rollout.HoldEffect,
		Message: "unexpected eof token", Location: "policies/a.rego:4"}, v.Findings[3])
	require.Equal(t, rollout.Finding{Package: "rampart.rollout", Rule: "good", Effect: rollout.Warn, Message: "it has its say"}, v.Findings[5])
	require.Equal(t, rollout.HoldEffect, e.Judge(t.Context(), snapshot(t), rollout.Proposal{}).Spec.Effect)
}

// Only the module at odds with the library is left out, also where OPA names the library's line.
func TestConflictWithTheLibrary(t *testing.T) {
	for _, conflict := range []string{"deny := {1}", "deny(x) := x", "deny[x] := 1 if x := \"a\"", "deny.a.b := 1"} {
		e := of("package rampart.rollout\n\n"+conflict+"\n", "package rampart.rollout\n\nwarn contains {\"rule\": \"good\", \"msg\": \"m\"}\n")
		require.NotEmpty(t, e.Problems(), conflict)
		for _, p := range e.Problems() {
			require.Equal(t, "policies/p1.rego", p.Path, conflict)
		}
		v := judge(t, e, ramp())
		require.Equal(t, "good", v.Findings[len(v.Findings)-1].Rule, conflict)
	}
}

// Builtins that reach outside, answer differently each time or cannot be stopped do not compile.
func TestForbiddenBuiltins(t *testing.T) {
	testneed.Plain(t)
	for _, call := range []string{
		`http.send({"method": "GET", "url": "http://localhost"})`, `net.lookup_ip_addr("localhost")`, `net.cidr_contains("10.0.0.0/8", "10.1.1.1")`,
		`opa.runtime()`, `rego.parse_module("a", "package a")`, `trace("x")`, `rand.intn("a", 3)`, `uuid.rfc4122("a")`,
		`json.match_schema({}, {"$ref": "file:///etc/passwd"})`, `json.verify_schema({"$ref": "file:///etc/passwd"})`,
		`crypto.x509.parse_and_verify_certificates("x")`, `graph.reachable_paths({}, [])`, `strings.render_template("x", {})`,
		`regex.globs_match("a", "b")`, `graphql.parse_query("{a}")`, `io.jwt.encode_sign({}, {}, {})`,
	} {
		e := of("package rampart.rollout\n\nx if {\n\t" + call + "\n}\n")
		require.NotEmpty(t, e.Problems(), call)
		require.Equal(t, "policies/p1.rego:4", e.Problems()[0].Location(), call)
	}
	for _, call := range []string{`time.now_ns() > 0`, `glob.match("a*", [], "ab")`, `regex.match("a", "ab")`, `semver.compare("1.0.0", "1.0.1") < 0`, `crypto.sha256("a") != ""`} {
		require.Empty(t, of("package rampart.rollout\n\nx if {\n\t"+call+"\n}\n").Problems(), call)
	}
	printing := of("package rampart.rollout\n\nwarn contains {\"rule\": \"a\", \"msg\": \"b\"} if print(input)\n")
	require.Empty(t, printing.Problems(), "print is taken out")
	require.Equal(t, "a", judge(t, printing, ramp()).Findings[0].Rule)
	require.NotNil(t, parse.Capabilities().AllowNet, "nil would allow every host")
	for _, b := range parse.Capabilities().Builtins {
		require.True(t, !b.Nondeterministic || b.Name == ast.NowNanos.Name, b.Name)
	}
}

func TestRepositoryHelpers(t *testing.T) {
	e := of(`package rampart.rollout

import data.acme.friday

deny contains {"rule": "acme.friday", "msg": "not on this day"} if friday.today("Tuesday")
`, "package acme.friday\n\ntoday(day) if time.weekday(time.now_ns()) == day\n")
	require.Empty(t, e.Problems())
	require.Equal(t, "acme.friday", judge(t, e, ramp()).Findings[0].Rule)
}

func TestRunTests(t *testing.T) {
	policy := parse.Module{Path: "policies/gold.rego", Source: `package rampart.rollout

deny contains {"rule": "acme.gold", "msg": "no"} if {
	input.action.to > data.acme.limit
}

warn contains {"rule": "acme.never", "msg": "no"} if {
	input.action.to == 1
}
`}
	tests := parse.Module{Path: "policies/gold_test.rego", Source: `package rampart.rollout_test

import data.rampart.rollout

test_above if count(rollout.deny) == 1 with input as {"action": {"to": 11}}

test_wrong if count(rollout.deny) == 1 with input as {"action": {"to": 9}}

todo_test_later if false

test_error if to_number("x") == 1
`}
	report := RunTests(t.Context(), Config{Modules: []parse.Module{policy, tests}, Data: []parse.DataFile{{Path: "data.yaml", Content: "acme: {limit: 10}"}}}, nil)
	require.Empty(t, report.Problems)
	require.False(t, passed(report))
	got := map[string]TestStatus{}
	for _, r := range report.Results {
		require.Equal(t, "rampart.rollout_test", r.Package)
		got[r.Location+" "+r.Name] = r.Status
	}
	require.Empty(t, cmp.Diff(map[string]TestStatus{
		"policies/gold_test.rego:5 test_above":      TestPassed,
		"policies/gold_test.rego:7 test_wrong":      TestFailed,
		"policies/gold_test.rego:9 todo_test_later": TestSkipped,
		"policies/gold_test.rego:11 test_error":     TestErrored,
	}, got))
	i := 0
	for report.Coverage[i].Path != policy.Path {
		i++
	}
	require.Equal(t, []int{7, 8}, report.Coverage[i].NotCovered)

	broken := RunTests(t.Context(), Config{Modules: []parse.Module{policy, {Path: "x_test.rego", Source: "nonsense"}}}, nil)
	require.NotEmpty(t, broken.Problems)
	require.False(t, passed(broken))
	require.False(t, passed(RunTests(t.Context(), Config{Modules: []parse.Module{policy}}, nil)), "a run without tests does not pass")
}

func TestManyBrokenModules(t *testing.T) {
	var all []parse.Module
	for i := range 300 {
		all = append(all, parse.Module{Path: fmt.Sprintf("p%03d.rego", i), Source: "nonsense"})
	}
	v := judge(t, Compile(Config{Modules: all}), ramp())
	require.Equal(t, rollout.HoldEffect, v.Effect)
	require.LessOrEqual(t, len(v.Findings), maxFindings+1)
}

// What a rule calls itself, what its annotations say and what can be configured are one and the same.
func TestLibraryAnnotations(t *testing.T) {
	defaults, problems := parse.LoadData(nil)
	require.Empty(t, problems)
	config := defaults["rampart"].(map[string]any)["config"].(map[string]any)
	rules := map[string][]string{}
	for _, m := range rego.Modules() {
		parsed, err := ast.ParseModuleWithOpts(m.Path, m.Source, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		require.NoError(t, err)
		_, asked := parse.Contract()[parse.PackageName(parsed)]
		for _, a := range parsed.Annotations {
			require.NotEmpty(t, a.Title, "%s:%d", m.Path, a.Location.Row)
			if !asked {
				continue
			}
			name := a.Custom["rule"].(string)
			for parameter := range a.Custom["parameters"].(map[string]any) {
				rules[name] = append(rules[name], parameter)
			}
			require.Contains(t, m.Source, fmt.Sprintf("\"rule\": %q", name))
		}
	}
	for group, inner := range config {
		for rule, parameters := range inner.(map[string]any) {
			name := group + "." + rule
			require.Contains(t, rules, name)
			for parameter := range parameters.(map[string]any) {
				require.Contains(t, rules[name], parameter, name)
			}
			require.Len(t, rules[name], len(parameters.(map[string]any)), name)
			delete(rules, name)
		}
	}
	require.Empty(t, rules)
}
