package policy

import (
	"fmt"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// everyday are policies as people write them, each the rest of a rule of package rampart.rollout and what it needs.
func everyday() map[string]string {
	const spec = "input.deployment.spec.template.spec"
	return map[string]string{
		"tags":          "deny contains {\"rule\": \"a\", \"msg\": sprintf(\"%s: %s\", [c.name, tag])} if {\n	some c in " + spec + ".containers\n	[_, tag] := split(c.image, \":\")\n	tag != \"latest\"\n}",
		"limits":        "warn contains {\"rule\": \"a\", \"msg\": c.name} if {\n	some c in " + spec + ".containers\n	not c.resources.limits.cpu\n}",
		"requests":      "deny contains {\"rule\": \"a\", \"msg\": k, \"evidence\": v} if {\n	some c in " + spec + ".containers\n	some k, v in c.resources.requests\n	not c.resources.limits[k] == v\n}",
		"labels":        "required := {\"tier\", \"team\"}\n\ndeny contains {\"rule\": \"a\", \"msg\": sprintf(\"%v\", [missing])} if {\n	missing := required - {k | some k, _ in input.deployment.metadata.labels}\n	count(missing) > 0\n}",
		"same objects":  "deny contains {\"rule\": \"a\", \"msg\": \"same\"} if input.deployment.metadata.labels == {\"tier\": \"gold\"}",
		"every":         "deny contains {\"rule\": \"a\", \"msg\": \"m\"} if every c in " + spec + ".containers { c.readinessProbe.httpGet.path == \"/healthz\" }",
		"pairs":         "deny contains {\"rule\": \"a\", \"msg\": sprintf(\"%s %s\", [a.buildID, b.buildID]), \"pair\": [a, b]} if {\n	some i, a in input.versions\n	some j, b in input.versions\n	i < j\n	a != b\n}",
		"equal parts":   "deny contains {\"rule\": \"a\", \"msg\": \"m\", \"x\": x} if {\n	some x in input.versions\n	some y in input.versions\n	x == y\n}",
		"destructuring": "deny contains {\"rule\": \"a\", \"msg\": \"m\", \"x\": [x, y, z]} if {\n	[x, [y, z]] := [1, [2, 3]]\n	{\"kind\": kind, \"id\": id} := {\"kind\": 1, \"id\": 1}\n	kind == id\n}",
		"patterns":      "f([x, y], {\"a\": x}) := y\n\ndeny contains {\"rule\": \"a\", \"msg\": f([1, \"z\"], {\"a\": 1})}",
		"repeated":      "f(x, x) := \"same\"\n\nf(x, y) := \"other\" if x != y\n\ndeny contains {\"rule\": \"a\", \"msg\": f({\"a\": 1}, {\"a\": n})} if some n in [1, 2]",
		"comprehension": "deny contains {\"rule\": \"a\", \"msg\": \"m\", \"n\": n} if {\n	n := {k: [v | some v in vs; v != \"x\"] | some k, vs in {\"a\": [\"x\", \"y\"], \"b\": []}}\n	{k | some k, _ in n} == {k | some k in [\"a\", \"b\"]}\n	[1 | n.a] == [1 | n.b]\n}",
		"keys":          "p[k] := v if some k, v in {\"a\": {\"b\": 1}, \"c\": [1]}\n\nq[k][j] contains v if {\n	some k in [\"a\", \"b\"]\n	some j in [1, 2]\n	v := {k: j}\n}\n\ndeny contains {\"rule\": \"a\", \"msg\": \"m\", \"p\": p, \"q\": q.a} if p.a == {\"b\": 1}",
		"asked":         "s contains k if {\n	some x in [1, 2]\n	k := {\"x\": x}\n}\n\ndeny contains {\"rule\": \"a\", \"msg\": \"m\", \"x\": x} if {\n	some x in [{\"x\": 2}, {\"x\": 3}]\n	s[x]\n	x in s\n}",
		"with":          "limit := input.action.to\n\ndeny contains {\"rule\": \"a\", \"msg\": \"m\", \"l\": l} if {\n	l := limit with input.action as {\"to\": 12}\n	l == 12\n	limit == input.action.to\n}",
		"mocks":         "f(x) := x + 1\n\ng(x) := x * 10\n\ndeny contains {\"rule\": \"a\", \"msg\": \"m\", \"n\": n} if {\n	n := f(1) with f as g\n	count([1]) == 7 with count as 7\n}",
		"else":          "level := \"high\" if {\n	input.action.to > 90\n} else := {\"mid\": input.action.to} if {\n	input.action.to > 20\n} else := \"low\"\n\ndeny contains {\"rule\": \"a\", \"msg\": \"m\", \"l\": level}",
		"default":       "default owner(_) := \"nobody\"\n\nowner(l) := l.owner\n\ndefault big := false\n\nbig if input.action.to > 5\n\ndeny contains {\"rule\": \"a\", \"msg\": owner(input.deployment.metadata.labels)} if big",
		"walk":          "deny contains {\"rule\": \"a\", \"msg\": concat(\".\", [sprintf(\"%v\", [x]) | some x in p])} if walk(input.deployment.spec.template, [p, \"checkout\"])",
		"graph":         "deny contains {\"rule\": \"a\", \"msg\": \"m\", \"r\": r} if {\n	edges := {\"a\": {\"b\"}, \"b\": {\"c\"}, \"c\": set()}\n	r := graph.reachable(edges, {\"a\"})\n	r == {\"a\", \"b\", \"c\"}\n}",
		"templates":     "deny contains {\"rule\": \"a\", \"msg\": $\"{input.action.id} to {input.action.to}\"}",
		"yaml":          "deny contains {\"rule\": \"a\", \"msg\": \"m\", \"y\": y} if {\n	y := yaml.unmarshal(\"a: &x {b: [1, 2]}\\nc: *x\\nd: '*'\\n\")\n	y.a == y.c\n	trim(\" x \", \" \") == \"x\"\n	glob.match(\"*.{example,test}\", [\".\"], \"a.example\")\n	json.marshal_with_options(y, {\"indent\": \"  \"}) != \"\"\n}",
		"logic":         "import future.keywords.and\nimport future.keywords.or\n\ndeny contains {\"rule\": \"a\", \"msg\": \"m\"} if {\n	{y = 1} and {[y, 1] = [2, 1]}\n	{input.action.to == 1} or {input.action.to > 1; [input.action.to, 1] != [1, 1]}\n}",
		"negated":       "deny contains {\"rule\": \"a\", \"msg\": \"m\"} if {\n	not input.action == input.deployment\n	not [x | some x in [1]] == [x | some x in [2]]\n	not data.absent == input.action\n}",
		"undefined":     "deny contains {\"rule\": \"a\", \"msg\": \"m\"} if data.absent == data.missing\n\nwarn contains {\"rule\": \"b\", \"msg\": \"m\"} if data.rampart.config == data.rampart.config",
		"wildcards":     "deny contains {\"rule\": \"a\", \"msg\": \"m\", \"k\": k} if {\n	input.versions[k].buildID == input.action.build\n	input.versions[_] == input.versions[k]\n}",
		"joined":        "deny contains {\"rule\": \"a\", \"msg\": \"m\", \"o\": o} if {\n	o := object.union({\"a\": 1}, {\"b\": input.action.kind})\n	o[\"b\"] == input.action.kind\n	object.get(o, \"c\", [1]) == array.concat([], [1])\n	{[1, x] | some x in [1, 2]} & {[1, 2]} == {[1, 2]}\n}",
	}
}

// What is put into modules of others changes nothing of what they say: OPA alone says the same of them as they are
// written.
func TestEverydayPolicies(t *testing.T) {
	testneed.Plain(t)
	fired := 0
	for name, body := range everyday() {
		t.Run(name, func(t *testing.T) {
			source := policytest.Rules(body) + "\n"
			document, err := NewDocument(snapshot(t), proposal(ramp()))
			require.NoError(t, err)
			input, ok := document.Input(ramp().ID)
			require.True(t, ok)
			e := Compile(Config{Library: []parse.Module{}, Modules: policytest.Modules(source)})
			require.Empty(t, e.Problems())
			b := e.books[0]
			p := b.all.packages[parse.PackageRollout]
			for _, set := range []string{"deny", "warn"} {
				if _, ok := p.sets[set]; !ok {
					continue
				}
				ask := question{input: input, now: now, budget: sandbox.NewBudget(t.Context(), e.bounds)}
				got, err := b.all.evaluate(p.sets[set], ask)
				require.NoError(t, err)
				data, _ := parse.LoadData(nil)
				want, err := rego.New(rego.Query("x = data.rampart.rollout."+set), rego.Module("p.rego", source), rego.Data(data), rego.ParsedInput(input),
					rego.Time(now), rego.StrictBuiltinErrors(true), rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.String(), nil })).Eval(t.Context())
				require.NoError(t, err)
				require.Len(t, want, 1)
				require.Equal(t, want[0].Bindings["x"], got[0].String())
				if got[0].String() != "set()" {
					fired++
				}
			}
			x, err := e.Explain(t.Context(), document, ramp().ID)
			require.NoError(t, err)
			require.NotContains(t, fmt.Sprintf("%+v", x), sandbox.FreshPrefix)
			require.NotContains(t, fmt.Sprintf("%+v", x), sandbox.Prefix)
			require.NotContains(t, ids(e.Judge(t.Context(), snapshot(t), proposal(ramp())).Of(ramp().ID)), "policy.error")
		})
	}
	require.Greater(t, fired, 20)
}

func ids(v rollout.Verdict) (out []string) {
	for _, f := range v.Findings {
		out = append(out, f.Rule)
	}
	return out
}
