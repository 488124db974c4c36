package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// A field that is not there is found behind every, in functions for what they are given, and by the text in a variable.
// It is found only where no value that there may be has it.
func TestCheckFollowsVariables(t *testing.T) {
	testneed.Plain(t)
	const steps, versions = "input.deployment.spec.rollout.steps", "input.versions"
	for name, c := range map[string]struct {
		body, helpers string
		want          string // of the one problem; "": there is no problem
	}{
		"every":            {"every s in " + steps + " { s.rampPct < 5 }", "", "4: s.rampPct: " + steps + "[_] has no rampPct"},
		"every key":        {"every i, v in " + versions + " {\n\ti >= 0\n\tv.buildIdd != \"a\"\n}", "", "6: v.buildIdd: " + versions + "[_] has no buildIdd (did you mean buildID?)"},
		"every in every":   {"every v in " + versions + " {\n\tevery q in v.queues { q.nam != \"\" }\n}", "", "5: q.nam: " + versions + "[_].queues[_] has no nam (did you mean name?)"},
		"every get":        {"every s in " + steps + " { object.get(s, \"rampPct\", 1) < 5 }", "", "4: s.rampPct: "},
		"every of a local": {"xs := " + steps + "\n\tevery s in xs { s.rampPct < 5 }", "", "5: s.rampPct: "},
		"comprehension":    {"every v in " + versions + " { count([q | some q in v.queues; q.nam == \"a\"]) > 0 }", "", "4: q.nam: "},
		"argument":         {"large(input.action)", "large(a) if a.too > 10", "7: a.too: input.action has no too (did you mean to?)"},
		"argument deeper":  {"gold(input.deployment)", "gold(d) if d.metadata.lables.tier == \"gold\"", "7: d.metadata.lables: input.deployment.metadata has no lables (did you mean labels?)"},
		"through two":      {"first(input)", "first(i) if second(i.versions[0])\n\nsecond(v) if v.queuez", "9: v.queuez: input.versions[0] has no queuez (did you mean queues?)"},
		"else":             {"size(input.action) > 1", "size(a) := a.to if {\n\ta.to > 3\n} else := a.too", "9: a.too: "},
		"every argument":   {"every v in " + versions + " { good(v) }", "good(v) if v.buildIdd != \"a\"", "7: v.buildIdd: input.versions[_] has no buildIdd"},
		"all of several":   {"large(input.action)\n\tlarge(input.deployment)", "large(a) if a.too > 10", "8: a.too: input.action, input.deployment have no too (did you mean to?)"},
		"key":              {"k := \"kindd\"\n\tinput.action[k] == \"a\"", "", "5: input.action[k]: input.action has no kindd (did you mean kind?)"},
		"key argument":     {"input.action[field(\"x\")] == \"a\"\n\tof(\"kindd\")", "of(k) if input.action[k]\n\nfield(x) := x", "8: input.action[k]: input.action has no kindd"},
		"either key":       {"of(\"kindd\")\n\tof(\"too\")", "of(k) if input.action[k]", "8: input.action[k]: input.action has no kindd, too (did you mean kind?)"},
		"given in a test":  {"large(input.action)", "large(a) if a.too > 10", "7: a.too: "},
		"once":             {"some v in " + versions + "\n\tv.buildIdd != \"a\"", "", "5: v.buildIdd: v has no buildIdd"},

		"right":               {"every s in " + steps + " { s.rampPercentage < 5 }\n\tk := \"kind\"\n\tinput.action[k] == \"Ramp\"", "", ""},
		"one of several":      {"named(input.action)\n\tnamed(input.deployment)", "named(x) if x.name", ""},
		"made":                {"large(input.action)\n\tlarge({\"too\": 1})", "large(a) if a.too > 10", ""},
		"result":              {"large(object.union(input.action, {\"too\": 1}))", "large(a) if a.too > 10", ""},
		"other input":         {"large(input.action) with input.action as {\"too\": 1}", "large(a) if a.too > 10", ""},
		"not called":          {"input.action.to > 1", "large(a) if a.too > 10", ""},
		"one key of several":  {"of(\"kindd\")\n\tof(\"kind\")", "of(k) if input.action[k]", ""},
		"keys of people":      {"every k in [\"tier\", \"team\"] { input.deployment.metadata.labels[k] }\n\tk := \"x\"\n\tinput.deployment.metadata.labels[k]", "", ""},
		"any field":           {"some v in input.deployment\n\tv.labels", "", ""},
		"a fact":              {"f := input.facts.rate\n\tf.value.anything > 1", "", ""},
		"equal in a closure":  {"x := data.acme.x\n\tcount([1 | x == input.action]) == 0\n\tx.foo", "", ""},
		"negated":             {"x := data.acme.x\n\tnot x == input.action\n\tx.foo", "", ""},
		"names used twice":    {"a := [x | x = input.action]\n\tb := [x.foo | x = data.acme.x]\n\ta != b", "", ""},
		"another of the name": {"large(input.action)", "large(_) := true\n\nbig(a) if a.too > 10", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := policy.Config{Modules: policytest.Modules(policytest.Deny("\t"+c.body) + "\n" + c.helpers + "\n"), Data: []parse.DataFile{{Path: "d.yaml", Content: "acme: {x: {foo: 1}}\n"}}}
			cfg.Modules = append(cfg.Modules, parse.Module{Path: "policies/a_test.rego", Source: policytest.Rules("test_a if large({\"too\": 11})\n\nlarge2(_) := 1\n")})
			if !strings.Contains(c.helpers, "large(") {
				cfg.Modules = cfg.Modules[:1]
			}
			var got []string
			for _, p := range Check(cfg) {
				if p.Check != parse.CheckRule && p.Check != parse.CheckParameter { // unused helpers, unread data
					got = append(got, p.Error())
				}
			}
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1, "%q", got)
			require.True(t, strings.HasPrefix(got[0], "policies/p1.rego:"+c.want), got[0])
		})
	}
}

// A chain of variables is followed as long as it is, and not for ever: each use of one goes along all before it.
func TestCheckFollowsWithinBounds(t *testing.T) {
	testneed.Plain(t)
	long := func(n int) []string {
		var body strings.Builder
		for i := range n {
			fmt.Fprintf(&body, "\ty%d := y%d\n\ty%d.now\n", i+1, i, i)
		}
		cfg := policy.Config{Modules: policytest.Modules(policytest.Deny("\ty0 := input\n"+body.String()+fmt.Sprintf("\tlarge(y%d)", n)) + "\nlarge(i) if i.action.too > 1\n")}
		require.Empty(t, policy.Compile(cfg).Problems())
		return lines(Check(cfg))
	}
	require.Len(t, long(90), 1)
	require.Empty(t, long(300), "an expression that is as long is no reason to say that a field is not there")
	wide := policy.Config{Modules: policytest.Modules(policytest.Deny("\tx := input[_][_][_][_][_]\n\tlarge(x)") + "\nlarge(i) if i.too.foo > 1\n")}
	require.Empty(t, lines(Check(wide)))
}
