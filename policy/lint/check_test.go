package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
	library "github.com/rampart-gitops/rampart/rego"
)

// lines are problems as they are printed, with the check that found them.
func lines(problems []parse.Problem) []string {
	out := []string{}
	for _, p := range problems {
		out = append(out, fmt.Sprintf("%s [%s]", p.Error(), p.Check))
	}
	return out
}

// Each kind of mistake, and beside it what is like it and right.
// TestStrayEnvironments: patterns that match no environment, wherever the library's parameters have them.
func TestStrayEnvironments(t *testing.T) {
	data := parse.DataFile{Path: "d.yaml", Content: `rampart:
  config:
    rollout:
      freeze:
        windows:
          - name: a
            days: [Sat]
            environments:
              - prod-*
              - prodd
      approval:
        rules: [{environments: [staging, "*"]}]
    sunset:
      evacuation: {offEnvironments: [stag, "x*"]}
    spec:
      safety: {gateEnvironments: ["prod[", "{prod-eu,x}"]}
shop: {environments: [nowhere]}
`}
	shop := parse.Module{Path: "p.rego", Source: "package rampart.rollout\n\nwarn contains {\"rule\": \"shop.a\", \"msg\": \"a\"} if input.environment.name in data.shop.environments\n"}
	var got []string
	for _, p := range Check(policy.Config{Modules: []parse.Module{shop}, Data: []parse.DataFile{data}, Environments: []string{"prod", "prod-eu", "stage"}}) {
		require.Equal(t, parse.CheckParameter, p.Check)
		got = append(got, p.Error())
	}
	require.Equal(t, []string{
		`d.yaml:10: "prodd" matches no environment (did you mean prod?)`,
		`d.yaml:14: "stag" matches no environment (did you mean stage?)`,
		`d.yaml:14: "x*" matches no environment (there is prod, prod-eu, stage)`,
		`d.yaml:16: "prod[" matches no environment (did you mean prod?)`,
		`d.yaml:16: "{prod-eu,x}" matches no environment (there is prod, prod-eu, stage)`,
	}, got)
	require.Empty(t, Check(policy.Config{Modules: []parse.Module{shop}, Data: []parse.DataFile{data}}), "the environments are not known")
	require.Empty(t, policy.Compile(policy.Config{Modules: []parse.Module{shop}, Data: []parse.DataFile{data}, Environments: []string{"prod"}}).Problems(), "the bot goes on")
}

// TestEmptyEnvironments: a list that narrows a rule to nothing turns it off, which is a mistake; one that switches a
// rule on may be empty.
func TestEmptyEnvironments(t *testing.T) {
	data := []parse.DataFile{{Path: "d.yaml", Content: `rampart:
  config:
    rollout:
      freeze:
        windows:
          - {name: a, days: [Sat], environments: []}
      approval:
        rules:
          - atLeast: 50
            environments: []
      concurrency: {environments: []}
    sunset:
      evacuation: {offEnvironments: []}
    spec:
      safety: {gateEnvironments: []}
`}}
	const off = ": environments: [] matches no environment, which turns off what it is in: leave it out for all environments, or delete the whole entry"
	for name, cfg := range map[string]policy.Config{"an environment's": {Data: data}, "of the bot's own": {Floor: []policy.Layer{{Name: "floor", Data: data}}},
		"with names": {Data: data, Environments: []string{"prod"}}} {
		var got []string
		for _, p := range Check(cfg) {
			require.Equal(t, parse.CheckParameter, p.Check)
			got = append(got, p.Error())
		}
		require.Equal(t, []string{"d.yaml:6" + off, "d.yaml:10" + off, "d.yaml:11" + off}, got, name)
	}
}

func TestCheckFindsWhatWouldCompile(t *testing.T) {
	testneed.Plain(t)
	const head = "package rampart.rollout\n\n"
	rule := func(body string) string {
		return head + `deny contains {"rule": "shop.x", "msg": "no"} if {` + "\n\t" + body + "\n}\n"
	}
	for _, tc := range []struct {
		name   string
		policy string
		test   string
		data   string
		want   []string
	}{
		{name: "fine", policy: rule(`input.canary.candidate.known; input.action.kind == "Ramp"`)},

		// The input.
		{name: "a field of the input", policy: rule(`input.canary.candidte.failed > 1`), want: []string{
			"policies/p.rego:4: input.canary.candidte.failed: input.canary has no candidte (did you mean candidate?) [input]",
		}},
		{name: "a field of a variable", policy: rule(`some v in input.versions; v.drainge == "Drained"`), want: []string{
			"policies/p.rego:4: v.drainge: v has no drainge (did you mean drainage?) [input]",
		}},
		{name: "a field of a pod", policy: rule(`some c in input.deployment.spec.template.spec.containers; c.img == "x"`), want: []string{
			"policies/p.rego:4: c.img: c has no img (there is args, command, env, envFrom, image, imagePullPolicy, lifecycle, livenessProbe, name, ports, readinessProbe, resizePolicy, resources, restartPolicy, restartPolicyRules, securityContext, startupProbe, stdin, stdinOnce, terminationMessagePath, terminationMessagePolicy, tty, volumeDevices, volumeMounts, workingDir) [input]",
		}},
		{name: "a field that is like none", policy: rule(`input.gate.xxxxxxxxxxxx`), want: []string{
			"policies/p.rego:4: input.gate.xxxxxxxxxxxx: input.gate has no xxxxxxxxxxxx (there is runs) [input]",
		}},
		{name: "a field of a fact", policy: rule(`input.facts.error_rate.valu > 1`), want: []string{
			"policies/p.rego:4: input.facts.error_rate.valu: input.facts.error_rate has no valu (did you mean value?) [input]",
		}},
		{name: "facts and labels have any name", policy: rule(`input.facts[input.action.id].value > 1; input.deployment.metadata.labels["a/b"] == "x"`)},
		{name: "a field asked with a default", policy: rule(`object.get(input.action, "stepp", 0) == 1; object.get(input, ["gate", "run"], 0) == 1; object.get(input, "now", 1) == 1`), want: []string{
			"policies/p.rego:4: input.action.stepp: input.action has no stepp (did you mean step?) [input]",
			"policies/p.rego:4: input.gate.run: input.gate has no run (did you mean runs?) [input]",
		}},
		{name: "a field of a text", policy: rule(`input.now.year == 2026`), want: []string{
			"policies/p.rego:4: input.now.year: input.now is a string, which has no fields [input]",
		}},
		{name: "a number is no text", policy: rule(`input.action.to == "50"`), want: []string{
			"policies/p.rego:4: the two sides are never equal: a number and a string [type]",
		}},
		{name: "an argument of the wrong type", policy: rule(`startswith(input.versions, "v")`), want: []string{
			"policies/p.rego:4: startswith: invalid argument(s): have: (array[...], string), want: (search: string, base: string, result: boolean) [type]",
		}},
		{name: "a value that there is not", policy: rule(`input.action.kind == "Rampp"`), want: []string{
			`policies/p.rego:4: input.action.kind is never "Rampp" (did you mean Ramp?) [input]`,
		}},
		{name: "values that there are not", policy: rule(`input.action.kind in {"Ramp", "Promot"}; "Smok" != input.action.drift.kind`), want: []string{
			`policies/p.rego:4: input.action.drift.kind is never "Smok" (there is Manifest, Routing) [input]`,
			`policies/p.rego:4: input.action.kind is never "Promot" (did you mean Promote?) [input]`,
		}},
		{name: "what another package is asked about", policy: rule(`input.action.kind in {"Ramp", "ScaleDown"}; "Drift" == input.action.kind`), want: []string{
			`policies/p.rego:4: input.action.kind is never "Drift" in rampart.rollout: rampart.drift is asked about it [input]`,
			`policies/p.rego:4: input.action.kind is never "ScaleDown" in rampart.rollout: rampart.sunset is asked about it [input]`,
		}},
		{name: "a test's value that there is not", policy: rule(`input.action.kind == "Ramp"`), test: head + `test_it if {
	count(deny) == 1 with input.action.kind as "Rampp"
	count(deny) == 1 with input as {"versions": [{"drainage": "drained"}]}
	count(deny) == 0 with input.action.kind as "ScaleDown"
}
`, want: []string{
			`policies/p_test.rego:4: input.action.kind is never "Rampp" (did you mean Ramp?) [input]`,
			`policies/p_test.rego:5: input.versions[0].drainage is never "drained" (did you mean Drained?) [input]`,
		}},
		{name: "a spec is judged by itself", policy: "package rampart.spec\n\nwarn contains {\"rule\": \"shop.x\", \"msg\": \"no\"} if input.action.kind == \"Ramp\"\n", want: []string{
			"policies/p.rego:3: input.action.kind: a spec is judged by itself: rampart.spec sees now, environment, deployment, connection, git, waivers, references [input]",
		}},
		{name: "rollouts are nothing of a spec", policy: "package rampart.spec\n\nwarn contains {\"rule\": \"shop.x\", \"msg\": \"no\"} if {\n\tinput.rollouts.count > 1\n\tinput.environment.name\n}\n", want: []string{
			"policies/p.rego:4: input.rollouts.count: a spec is judged by itself: rampart.spec sees now, environment, deployment, connection, git, waivers, references [input]",
		}},
		{name: "a test's input", policy: rule(`input.git.author == "ada"`), test: head + `test_deny if {
	count(deny) == 1 with input as {"git": {"authr": "ada"}}
	count(deny) == 1 with input.gitt.author as "ada"
	count(deny) == 1 with input as given
	count(deny) == 1 with input as at("ada")
	count(deny) == 1 with input as object.union(at("ada"), {"versions": [{"buildId": "v1"}]})
	local := {"plann": {}}
	count(deny) == 1 with input as local
}

given := {"git": {"who": "ada"}}

at(author) := {"git": {"author": author}, "at": 3}
`, want: []string{
			"policies/p_test.rego:4: input.git.authr: input.git has no authr (did you mean author?) [input]",
			"policies/p_test.rego:5: input.gitt: input has no gitt (did you mean git?) [input]",
			"policies/p_test.rego:8: input.versions[0].buildId: input.versions[0] has no buildId (did you mean buildID?) [input]",
			"policies/p_test.rego:9: input.plann: input has no plann (did you mean plan?) [input]",
			"policies/p_test.rego:13: input.git.who: input.git has no who (there is author, branch, commit, message, paths, reverts, signed, signer, when) [input]",
			"policies/p_test.rego:15: input.at: input has no at (there is action, canary, cluster, connection, deployment, environment, facts, firstRead, gate, git, limits, now, plan, record, references, rollouts, routing, versions, waivers) [input]",
		}},
		{name: "a test's input that is right", policy: rule(`input.git.author == "ada"`), test: head + `test_deny if {
	count(deny) == 1 with input as {"git": {"author": "ada"}, "facts": {"any": {"value": 1}}}
	count(deny) == 1 with input.git as object.union(given, {"branch": "main"})
}

given := {"author": "ada"}
`},

		// Packages and rules.
		{name: "a package below rampart", policy: "package rampart.rolout\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:1: package rampart.rolout: below rampart a policy may use rampart.spec, rampart.rollout, rampart.drift and rampart.sunset; helpers go elsewhere (did you mean rampart.rollout?) [package]",
		}},
		{name: "a package that is like one", policy: "package rampat.rollout\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:1: package rampat.rollout: nothing asks it and nothing uses it (did you mean rampart.rollout?) [package]",
		}},
		{name: "a package by its last name", policy: "package rollout\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:1: package rollout: nothing asks it and nothing uses it (did you mean rampart.rollout?) [package]",
		}},
		{name: "conftest's package", policy: "package main\n\ndeny contains msg if msg := \"no\"\n", test: "package main_test\n\ntest_deny if count(data.main.deny) == 1\n", want: []string{
			"policies/p.rego:1: package main: nothing asks it and nothing uses it (did you mean rampart.rollout?) [package]",
		}},
		{name: "a package of one's own with rules that are asked elsewhere", policy: "package acme\n\nhold if input.git\n", want: []string{
			"policies/p.rego:1: package acme: nothing asks it and nothing uses it (did you mean rampart.rollout?) [package]",
		}},
		{name: "Gatekeeper's rule", policy: "package acme\n\nviolation contains {\"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:1: package acme: nothing asks it and nothing uses it (did you mean rampart.rollout?) [package]",
		}},
		{name: "an answer to drift", policy: "package acme\n\naction contains {\"rule\": \"shop.x\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:1: package acme: nothing asks it and nothing uses it (did you mean rampart.drift?) [package]",
		}},
		{name: "a package of helpers", policy: "package shop.helpers\n\nis_late if input.action.step > 2\n"},
		{name: "a misspelled rule", policy: head + `denny contains {"rule": "shop.x", "msg": "no"}` + "\n", want: []string{
			"policies/p.rego:3: rampart.rollout.denny: nothing asks for this rule and none uses it (did you mean deny?) [rule]",
		}},
		{name: "a rule of another package", policy: "package rampart.spec\n\nrollback contains {\"rule\": \"shop.x\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:3: rampart.spec.rollback: nothing asks for this rule and none uses it (there is deny, warn) [rule]",
		}},
		{name: "a helper that only a test uses", policy: head + "late if input.action.step > 2\n", test: head + "test_late if late with input.action.step as 3\n", want: []string{
			"policies/p.rego:3: rampart.rollout.late: nothing asks for this rule and none uses it (there is deny, hold, require_approval, rollback, warn) [rule]",
		}},
		{name: "a helper", policy: rule("late") + "late if input.action.step > 2\n\nlate if later\n\ndefault later := false\n"},

		// Shapes.
		{name: "a value", policy: head + "deny := true\n", want: []string{
			`policies/p.rego:3: deny is not a set: write deny contains {"rule": …, "msg": …} if … [shape]`,
		}},
		{name: "a value where the library has none", policy: "package rampart.drift\n\nwarn if input.action.to > 3\n", want: []string{
			`policies/p.rego:3: warn is not a set: write warn contains {"rule": …, "msg": …} if … [shape]`,
		}},
		{name: "a function", policy: head + "hold(x) := x\n", want: []string{
			`policies/p.rego:3: hold is not a set: write hold contains {"rule": …, "msg": …} if … [shape]`,
		}},
		{name: "a map", policy: head + "deny[x] := 1 if some x in input.versions\n", want: []string{
			`policies/p.rego:3: deny is not a set: write deny contains {"rule": …, "msg": …} if … [shape]`,
		}},
		{name: "a text", policy: head + "deny contains \"no\"\n", want: []string{
			"policies/p.rego:3: deny has a string where an object with the strings rule and msg is expected [shape]",
		}},
		{name: "a text in a variable", policy: head + "deny contains msg if msg := sprintf(\"%v\", [input.now])\n", want: []string{
			"policies/p.rego:3: deny has a string where an object with the strings rule and msg is expected [shape]",
		}},
		{name: "no rule", policy: head + "deny contains {\"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:3: deny has an object without rule where an object with the strings rule and msg is expected [shape]",
		}},
		{name: "no message, by a helper", policy: head + "deny contains found if found := f(\"x\")\n\nf(x) := {\"rule\": \"shop.x\", \"why\": x}\n", want: []string{
			"policies/p.rego:3: deny has an object without msg where an object with the strings rule and msg is expected [shape]",
		}},
		{name: "a message that is a number", policy: head + "deny contains {\"rule\": \"shop.x\", \"msg\": count(input.versions)}\n", want: []string{
			"policies/p.rego:3: deny has an object whose msg is a number where an object with the strings rule and msg is expected [shape]",
		}},
		{name: "an empty name", policy: head + "deny contains {\"rule\": \"\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:3: deny has an empty rule [shape]",
		}},
		{name: "made by a helper", policy: head + "deny contains object.union({\"rule\": \"shop.x\"}, {\"msg\": m}) if some m in [\"no\"]\n"},
		{name: "no answer", policy: "package rampart.drift\n\naction contains {\"rule\": \"shop.x\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:3: action has an object without an action (revert, adopt or hold) [shape]",
		}},
		{name: "an answer that there is not", policy: "package rampart.drift\n\naction contains {\"rule\": \"shop.x\", \"msg\": \"no\", \"action\": \"undo\"}\n", want: []string{
			`policies/p.rego:3: action answers "undo"; it may be revert, adopt or hold [shape]`,
		}},
		{name: "an answer", policy: "package rampart.drift\n\naction contains {\"rule\": \"shop.x\", \"msg\": \"no\", \"action\": \"hold\"}\n"},

		// Names.
		{name: "a name of the library", policy: head + "warn contains {\"rule\": \"rollout.canary\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:3: rollout.canary is a rule of the library: report under a name of your own [name]",
		}},
		{name: "a name of the library in a variable", policy: head + "warn contains {\"rule\": name, \"msg\": \"no\"} if name := \"drift.routing\"\n", want: []string{
			"policies/p.rego:3: drift.routing is a rule of the library: report under a name of your own [name]",
		}},
		{name: "a name of the engine", policy: head + "warn contains {\"rule\": \"policy.broken\", \"msg\": \"no\"}\n", want: []string{
			"policies/p.rego:3: policy.broken: names that begin with policy. are what the engine reports under [name]",
		}},

		// Parameters.
		{name: "parameters", policy: rule("input.action.to > data.shop.max; data.shop.list[_] == 3"), data: "shop: {max: 3, list: [3]}\n"},
		{name: "a parameter that nobody gives", policy: rule("input.action.to > data.shop.max"), data: "shop: {maxx: 3}\n", want: []string{
			"data.yaml:1: shop.maxx: no policy refers to it (did you mean max?) [parameter]",
			"policies/p.rego:4: data.shop.max: no data file gives it and no rule is called so (did you mean maxx?) [parameter]",
		}},
		{name: "no data at all", policy: rule("input.action.to > data.shop.max"), want: []string{
			"policies/p.rego:4: data.shop: no data file gives it and no rule is called so (there is rampart) [parameter]",
		}},
		{name: "imported", policy: head + "import data.shop as s\n\nwarn contains {\"rule\": \"shop.x\", \"msg\": \"no\"} if input.action.to > s.max\n", data: "shop: {min: 3}\n", want: []string{
			"data.yaml:1: shop.min: no policy refers to it [parameter]",
			"policies/p.rego:5: data.shop.max: no data file gives it and no rule is called so (there is min) [parameter]",
		}},
		{name: "asked with a default", policy: rule(`input.action.to > object.get(data.shop, "max", 3); object.get(data.shop, ["a", "b"], 1) == 1`), data: "shop:\n  a: {b: 2}\n  c: 1\n", want: []string{
			"data.yaml:3: shop.c: no policy refers to it [parameter]",
		}},
		{name: "dynamic", policy: rule("data.shop[input.environment.name].max == 1"), data: "shop: {prod: {max: 3, anything: 4}}\nshopp: {}\n", want: []string{
			"data.yaml:2: shopp: no policy refers to it (did you mean shop?) [parameter]",
		}},
		{name: "with a default and as a whole", policy: rule(`o := data.shop; object.get(o, "max", 1) == 1; o.min == 2`), data: "shop: {max: 3, min: 4, more: 5}\n"},
		{name: "by a test only", policy: rule("input.action.to > data.shop.max"), test: head + "test_it if data.shop.min == 3\n", data: "shop: {max: 3, min: 3}\n", want: []string{
			"data.yaml:1: shop.min: no policy refers to it [parameter]",
		}},
		{name: "as a whole", policy: rule("shop := data.shop; shop.max == 1"), data: "shop: {max: 3, anything: 4}\n"},
		{name: "a group of the library", policy: rule("true"), data: "rampart:\n  config:\n    rolout:\n      canary: {maxStuck: 3}\n    rollout:\n      freze: {timezone: UTC}\n      canary: {maxStuck: 3}\n", want: []string{
			"data.yaml:3: rampart.config: there is no group rolout (did you mean rollout?) []",
			"data.yaml:6: rampart.config.rollout: there is no rule freze (did you mean freeze?) []",
		}},
		{name: "an unknown key of the library", policy: rule("true"), data: "rampart:\n  config:\n    rollout:\n      canary: {maxStuk: 3}\n", want: []string{
			"data.yaml:4: rampart.config.rollout.canary: there is no parameter maxStuk (did you mean maxStuck?) []",
		}},
		{name: "almost rampart", policy: rule("true"), data: "rampat: {config: {rollout: {canary: {maxStuck: 3}}}}\n", want: []string{
			"data.yaml:1: rampat: no policy refers to it: rampart.config.rollout.canary is where the library looks [misplaced]",
		}},
		{name: "almost rampart, with little in it", policy: rule("true"), data: "rampat: {config: {}}\n", want: []string{
			"data.yaml:1: rampat: no policy refers to it (did you mean rampart?) [parameter]",
		}},
		{name: "a rule of the library without rampart.config", policy: rule("true"), data: "more: 1\nrollout:\n  freeze: {windows: []}\n", want: []string{
			"data.yaml:1: more: no policy refers to it [parameter]",
			"data.yaml:3: rollout: no policy refers to it: rampart.config.rollout.freeze is where the library looks [misplaced]",
		}},
		{name: "a rule of the library with dots in its key", policy: rule("true"), data: "rollout.freeze: {windows: []}\n", want: []string{
			"data.yaml:1: rollout.freeze: no policy refers to it: rampart.config.rollout.freeze is where the library looks, each name a key below the one before [misplaced]",
		}},
		{name: "all of it with dots in its key", policy: rule("true"), data: "rampart.config.rollout.freeze: {windows: []}\n", want: []string{
			"data.yaml:1: rampart.config.rollout.freeze: no policy refers to it: rampart.config.rollout.freeze is where the library looks, each name a key below the one before [misplaced]",
		}},
		{name: "a rule of the library by its parameter", policy: rule("true"), data: "freeze:\n  windows: []\n", want: []string{
			"data.yaml:1: freeze: no policy refers to it: rampart.config.rollout.freeze is where the library looks [misplaced]",
		}},
		{name: "a name of the library for something else", policy: rule("true"), data: "freeze: {mine: 1}\nrollout: {mine: 2}\n", want: []string{
			"data.yaml:1: freeze: no policy refers to it [parameter]",
			"data.yaml:2: rollout: no policy refers to it [parameter]",
		}},
		{name: "a name of the library that a policy looks at", policy: rule("data.rollout.freeze.windows == 1"), data: "rollout: {freeze: {windows: 1}}\n"},
		{name: "a test gives it", policy: rule("input.action.to > data.shop.max"), data: "shop: {max: 3}\n", test: head + "test_it if {\n\tcount(deny) == 0 with data.shop.min as 3\n\tdata.shop.min == 3\n\tdata.rampart.rollout.denny\n}\n", want: []string{
			"policies/p_test.rego:6: data.rampart.rollout.denny: no data file gives it and no rule is called so (did you mean deny?) [parameter]",
		}},

		// Syntax.
		{name: "rego.v1", policy: "package rampart.rollout\n\nimport rego.v1\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": \"no\"} if input.action.raises\n"},
		{name: "v0", policy: "package rampart.rollout\n\ndeny[{\"rule\": \"shop.x\", \"msg\": \"no\"}] {\n\tinput.action.raises\n}\n", want: []string{
			"policies/p.rego:3: this is Rego v0, and Rego v1 is expected: `contains` keyword is required for partial set rules (opa fmt --v0-v1 --write rewrites the file) [syntax]",
		}},
		{name: "nothing that is Rego", policy: "package rampart.rollout\n\ndeny contains {\n", want: []string{
			"policies/p.rego:4: unexpected eof token []",
			"policies/p.rego:4: unexpected eof token: expected rule key term (e.g., deny contains <VALUE> { ... }) []",
		}},
		{name: "a test that does not compile", policy: rule("true"), test: head + "test_it if nothing(1)\n", want: []string{
			"policies/p_test.rego:3: undefined function nothing [test]",
		}},
		{name: "a test that is Rego v0", policy: rule("true"), test: head + "test_it {\n\ttrue\n}\n", want: []string{
			"policies/p_test.rego:3: this is Rego v0, and Rego v1 is expected: `if` keyword is required before rule body (opa fmt --v0-v1 --write rewrites the file) [syntax]",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := policy.Config{Modules: []parse.Module{{Path: "policies/p.rego", Source: tc.policy}}}
			if tc.test != "" {
				cfg.Modules = append(cfg.Modules, parse.Module{Path: "policies/p_test.rego", Source: tc.test})
			}
			if tc.data != "" {
				cfg.Data = []parse.DataFile{{Path: "data.yaml", Content: tc.data}}
			}
			want := tc.want
			if want == nil {
				want = []string{}
			}
			require.Equal(t, want, lines(Check(cfg)))
		})
	}
}

// The library passes as if it were a repository's own, with its tests and its parameters.
func TestCheckLibrary(t *testing.T) {
	testneed.Plain(t)
	require.Empty(t, lines(Check(libraryAsOwn(func(source string) string { return source }))))
	// A mistake in it is found, in what is asked and in what helps.
	for _, tc := range []struct{ from, to, want string }{
		{"input.canary.worse", "input.canary.worst", "rampart/rollout/canary.rego: input.canary.worst: input.canary has no worst (did you mean worse?) [input]"},
		{"input.deployment.metadata.labels", "input.deployment.metadat.labels",
			"rampart/library/match.rego: input.deployment.metadat.labels[key]: input.deployment has no metadat (did you mean metadata?) [input]"},
		{"canary.maxStuck >= 0", "canary.maxStuk >= 0", "rampart/rollout/canary.rego: data.rampart.config.rollout.canary.maxStuk: " +
			"no data file gives it and no rule is called so (did you mean maxStuck?) [parameter]"},
	} {
		found := lines(Check(libraryAsOwn(func(source string) string { return strings.Replace(source, tc.from, tc.to, 1) })))
		for i, line := range found {
			found[i] = regexp.MustCompile(`:\d+: `).ReplaceAllString(line, ": ") // lines move with every edit
		}
		require.Contains(t, found, tc.want)
	}
}

// libraryAsOwn has what is asked of the library, its tests and its parameters as a repository's own.
func libraryAsOwn(edit func(source string) string) policy.Config {
	path, content := library.Data()
	cfg := policy.Config{Modules: library.Tests(), Data: []parse.DataFile{{Path: path, Content: content}}}
	for _, m := range library.Modules() {
		m.Source = edit(m.Source)
		if parse.AsksVerdicts(m.Path) {
			cfg.Modules = append(cfg.Modules, m)
		} else {
			cfg.Library = append(cfg.Library, m)
		}
	}
	return cfg
}

// The names that the library reports under are those of its annotations, so that all of them are reserved.
func TestLibraryNamesAreAnnotated(t *testing.T) {
	for _, m := range library.Modules() {
		parsed, err := parse.Rego(m)
		require.NoError(t, err)
		names := ruleNames(m)
		ast.WalkTerms(parsed, func(term *ast.Term) bool {
			if o, ok := term.Value.(ast.Object); ok && o.Get(ast.StringTerm("msg")) != nil {
				name, _ := input.Text(o, "rule")
				require.Contains(t, names, name, m.Path)
			}
			return false
		})
	}
}

// What only Check finds does not keep an engine from judging.
func TestCompileGoesOn(t *testing.T) {
	cfg := policy.Config{
		Modules: policytest.Modules("package rampart.rollout\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": \"no\"} if input.canary.candidte\n\n" +
			"denny contains {\"rule\": \"rollout.canary\"} if data.shop.max > 3\n"),
		Data: []parse.DataFile{{Path: "data.yaml", Content: "shopp: {}\n"}},
	}
	require.Len(t, Check(cfg), 4)
	require.Equal(t, Check(cfg), Check(cfg))
	e := policy.Compile(cfg)
	require.Empty(t, e.Problems())
}

// Without one of the modules it is not known what the others are there for.
func TestCheckWithoutAllModules(t *testing.T) {
	const (
		helper = "package rampart.rollout\n\nlate if input.action.step > data.shop.max\n"
		broken = "package rampart.rollout\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": m} if late\n"
		fixed  = "package rampart.rollout\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": \"no\"} if late\n"
	)
	data := []parse.DataFile{{Path: "data.yaml", Content: "shop: {max: 3}\nmore: 1\n"}}
	require.Equal(t, []string{"policies/p2.rego:3: var m is unsafe []"}, lines(Check(policy.Config{Modules: policytest.Modules(helper, broken), Data: data})))
	require.Equal(t, []string{"data.yaml:2: more: no policy refers to it [parameter]"}, lines(Check(policy.Config{Modules: policytest.Modules(helper, fixed), Data: data})))
}

// A package that another policy uses is a helper, whatever it is called.
func TestCheckHelpers(t *testing.T) {
	const (
		helper = "package rollout\n\ndeny contains {\"rule\": \"shop.x\", \"msg\": \"no\"} if input.action.raises\n"
		user   = "package rampart.rollout\n\nimport data.rollout\n\nwarn contains found if some found in rollout.deny\n"
	)
	require.Len(t, Check(policy.Config{Modules: policytest.Modules(helper)}), 1)
	require.Empty(t, lines(Check(policy.Config{Modules: policytest.Modules(helper, user)})))

	const (
		team   = "package acme.shop\n\ndeny contains \"no\" if input.action.raises\n"
		teams  = "package rampart.rollout\n\ndeny contains {\"rule\": \"acme.x\", \"msg\": m} if some m in data.acme[_].deny\n"
		others = "package rampart.rollout\n\ndeny contains {\"rule\": \"acme.x\", \"msg\": m} if some m in data.acne[_].deny\n"
	)
	require.Empty(t, lines(Check(policy.Config{Modules: policytest.Modules(team, teams)})), "by a name that is not constant")
	require.Contains(t, lines(Check(policy.Config{Modules: policytest.Modules(team, others)})),
		"policies/p1.rego:1: package acme.shop: nothing asks it and nothing uses it (did you mean rampart.rollout?) [package]")
}

// What the bot's own configuration demands is checked by itself: it sees none of the repository's data.
func TestCheckFloor(t *testing.T) {
	const demand = "package rampart.rollout\n\ndeny contains {\"rule\": \"acme.x\", \"msg\": \"no\"} if input.action.too > data.acme.max\n"
	require.Equal(t, []string{
		"acme/a.rego:3: data.acme.max: no data file gives it and no rule is called so (there is min) [parameter]",
		"acme/a.rego:3: input.action.too: input.action has no too (did you mean to?) [input]",
		"acme/data.yaml:1: acme.min: no policy refers to it [parameter]",
		"data.yaml:1: acme: no policy refers to it [parameter]",
	}, lines(Check(policy.Config{
		Data:  []parse.DataFile{{Path: "data.yaml", Content: "acme: {max: 3}\n"}},
		Floor: []policy.Layer{{Name: "acme", Modules: []parse.Module{{Path: "acme/a.rego", Source: demand}}, Data: []parse.DataFile{{Path: "acme/data.yaml", Content: "acme: {min: 3}\n"}}}},
	})))
}

// FuzzCheck: whatever is written, Check says something about it and does not panic.
func FuzzCheck(f *testing.F) {
	for _, m := range library.Tests() {
		if strings.HasPrefix(m.Path, "rampart/rollout/") {
			f.Add(m.Source, m.Source, "shop: {max: 3}")
		}
	}
	f.Add("package rampart.drift\n\naction[x].y contains object.get(input, [1], 2) if object.union(1)", "package t\n\ntest_x if f with input as object.union({}) with input[1] as f(1)\n\nf(x) := f(x)", "rampart: 1")
	f.Add("package rampart.spec\n\nx[input.a[data.b[c]]] := data[d].e if some c, d; internal.member_2(input.action.kind, [1])", "", "- 1")
	f.Fuzz(func(t *testing.T, source, test, data string) {
		problems := Check(policy.Config{Modules: []parse.Module{{Path: "p.rego", Source: source}, {Path: "p_test.rego", Source: test}},
			Data: []parse.DataFile{{Path: "data.yaml", Content: data}}})
		for _, p := range problems {
			if p.Path == "" || p.Message == "" {
				t.Errorf("a problem without place or message: %+v", p)
			}
		}
	})
}

func TestCheckExamples(t *testing.T) {
	folders, err := filepath.Glob("../../examples/*/policies")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		require.Empty(t, lines(Check(configOf(t, folder))), folder)
	}
}

// Policies as people write them, in which nothing is wrong.
func TestCheckFine(t *testing.T) {
	require.Empty(t, lines(Check(configOf(t, "testdata/check"))))
}

func configOf(t *testing.T, folder string) policy.Config {
	t.Helper()
	var cfg policy.Config
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, ".rego") {
			cfg.Modules = append(cfg.Modules, parse.Module{Path: name, Source: string(text)})
		} else {
			cfg.Data = append(cfg.Data, parse.DataFile{Path: name, Content: string(text)})
		}
	}
	return cfg
}
