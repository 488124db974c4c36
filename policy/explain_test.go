package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// explain explains an action of the rollout in motion.
func explained(t *testing.T, cfg Config, action string, change ...func(*rollout.Snapshot)) Explanation {
	t.Helper()
	s := snapshot(t)
	for _, c := range change {
		c(&s)
	}
	d, err := NewDocument(s, proposal())
	require.NoError(t, err)
	return explainDocument(t, cfg, action, d)
}

func explainDocument(t *testing.T, cfg Config, action string, d *Document) Explanation {
	t.Helper()
	e := Compile(cfg)
	x, err := e.Explain(t.Context(), d, action)
	require.NoError(t, err)
	require.Empty(t, x.Incomplete)
	verdicts := e.JudgeDocument(t.Context(), d)
	want := verdicts.Spec
	if action != "" {
		want = verdicts.Of(action)
	}
	require.Equal(t, want, x.Verdict, "an explanation is of the verdict as it is")
	// It survives JSON: programs read it too.
	b, err := json.Marshal(x)
	require.NoError(t, err)
	var back Explanation
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, x, back)
	return x
}

// rule is the explanation of one rule.
func rule(t *testing.T, x Explanation, name string) rollout.RuleExplanation {
	t.Helper()
	i := slices.IndexFunc(x.Rules, func(r rollout.RuleExplanation) bool { return r.Rule == name })
	require.GreaterOrEqual(t, i, 0, "no rule %s in %v", name, namesOf(x))
	return x.Rules[i]
}

func namesOf(x Explanation) []string {
	var out []string
	for _, r := range x.Rules {
		out = append(out, fmt.Sprintf("%s %s", r.Rule, r.Outcome))
	}
	return out
}

// tree writes clauses as lines: what an expression saw is beside it, what is within it below it.
func treeText(r rollout.RuleExplanation) string {
	var b strings.Builder
	var expression func(mark string, e *rollout.Expression)
	expression = func(mark string, e *rollout.Expression) {
		if e == nil {
			return
		}
		fmt.Fprintf(&b, "%s %s: %s", mark, e.Location, e.Text)
		for _, v := range e.Values {
			fmt.Fprintf(&b, " | %s = %s", v.Name, v.Value)
		}
		if e.Ways > 1 {
			fmt.Fprintf(&b, " (%d ways)", e.Ways)
		}
		b.WriteString("\n")
		expression("  "+mark, e.Because)
	}
	for _, c := range r.Clauses {
		fmt.Fprintf(&b, "%s %s %s\n", c.Outcome, c.Set, c.Location)
		for _, f := range c.Findings {
			fmt.Fprintf(&b, "  %s: %s\n", f.Effect, f.Message)
		}
		for _, e := range c.True {
			expression("  +", &e)
		}
		expression("  -", c.False)
		for _, v := range c.Ahead {
			fmt.Fprintf(&b, "  > %s = %s\n", v.Name, v.Value)
		}
	}
	// Where something is in the library is the library's affair.
	return regexp.MustCompile(`(rampart/[a-z/]+\.rego):\d+`).ReplaceAllString(b.String(), "$1")
}

const freezeTuesdays = `rampart: {config: {rollout: {freeze: {windows: [{name: weekend, days: [Sat, Sun]}, {name: tuesday, days: [Tue]}]}}}}`

// A rule that fired shows what was true. A rule that did not shows the line that decided, in a helper too, and what it
// saw there.
func TestExplainRules(t *testing.T) {
	x := explained(t, Config{Data: []parse.DataFile{{Path: "data.yaml", Content: freezeTuesdays}}}, "Ramp/v3@50%")
	require.Equal(t, rollout.Ramp, x.Kind)
	require.Empty(t, x.Others)
	names := namesOf(x)
	require.Equal(t, "rollout.freeze Fired", names[0])
	require.Less(t, slices.Index(names, "rollout.backlog Passed"), slices.Index(names, "rollout.steps Passed"))
	require.Less(t, slices.Index(names, "rollout.steps Passed"), slices.Index(names, "rollout.approval Idle"))
	require.Contains(t, names, "rollout.restart Idle")
	require.Equal(t, `Fired deny rampart/rollout/freeze.rego
  hold: frozen: tuesday (Tue)
  + rampart/rollout/freeze.rego: some window in freeze.windows | window = {"days": ["Tue"], "name": "tuesday"}
  + rampart/rollout/freeze.rego: input.action.kind in freeze.actions | input.action.kind = "Ramp" | data.rampart.config.rollout.freeze.actions = ["UpdateVersion", "Ramp", "Promote"]
  + rampart/rollout/freeze.rego: not input.action.lowers | input.action.lowers = false
  + rampart/rollout/freeze.rego: not input.action.update == "Connection" | input.action.update = undefined
  + rampart/rollout/freeze.rego: match.scope(window) | window = {"days": ["Tue"], "name": "tuesday"}
  + rampart/rollout/freeze.rego: windows.open(window, freeze.timezone) | data.rampart.config.rollout.freeze.timezone = "UTC" | window = {"days": ["Tue"], "name": "tuesday"}
`, treeText(rule(t, x, "rollout.freeze")))
	steps := treeText(rule(t, x, "rollout.steps"))
	require.Contains(t, steps, `Passed deny rampart/rollout/steps.rego
  - rampart/rollout/steps.rego: input.action.to > progress.ceiling | input.action.to = 50 | data.rampart.library.progress.ceiling = 50
`)
	require.Contains(t, steps, `Idle deny rampart/rollout/steps.rego
  - rampart/rollout/steps.rego: input.action.kind == "Promote" | input.action.kind = "Ramp"
`)
	require.Contains(t, steps, `input.action.to - progress.share > steps.maxIncrease | input.action.to = 50 | data.rampart.library.progress.share = 10 | `+
		`input.action.to - progress.share = 40 | data.rampart.config.rollout.steps.maxIncrease = 100`)
	require.Contains(t, treeText(rule(t, x, "rollout.canary")), `Idle rollback rampart/rollout/canary.rego
  - rampart/rollout/canary.rego: candidate.judged
    - rampart/library/candidate.rego: input.action.kind == "Continue" | input.action.kind = "Ramp"
`)
}

// TestExplainSamples checks that no rule holds while the bot waits for samples: the counts that the canary's rule
// looked at are there, whatever it said.
func TestExplainSamples(t *testing.T) {
	p := proposal()
	p.Canary = &rollout.Canary{Candidate: "v3", Against: "v2", Phase: rollout.PhaseRamp, Bound: 100,
		CandidateCounts: rollout.ArmCounts{Closed: 12}, AgainstCounts: rollout.ArmCounts{Closed: 900, Failed: 4}}
	d, err := NewDocument(snapshot(t), p)
	require.NoError(t, err)
	x := explainDocument(t, Config{}, "Continue/v3", d)
	require.Equal(t, rollout.Allow, x.Verdict.Effect)
	canary := rule(t, x, "rollout.canary")
	require.Equal(t, rollout.RulePassed, canary.Outcome)
	require.Contains(t, treeText(canary), `Passed rollback rampart/rollout/canary.rego
  - rampart/rollout/canary.rego: input.canary.enough | input.canary.enough = false
  > input.canary.candidate.counted.rate = 0
  > input.canary.candidate.counted.failed = 0
  > input.canary.candidate.counted.closed = 12
`)
	require.Contains(t, treeText(canary), "input.canary.aboveCeiling | input.canary.aboveCeiling = false\n")
}

// What cannot be evaluated says where; what is fired beside it and does not count says so; other clauses are still
// explained.
func TestExplainFailures(t *testing.T) {
	x := explained(t, Config{Modules: policytest.Modules(`package rampart.rollout

import data.rampart.facts

hold contains {"rule": "acme.latency", "msg": "slow"} if {
	input.action.raises
	facts.require("latency") > 100
}

hold contains {"rule": "acme.always", "msg": "never"} if input.action.raises
`, "package rampart.rollout\n\ndeny contains {\"rule\": \"acme.broken\", \"msg\": x} if true\n")}, "Ramp/v3@50%")
	latency := rule(t, x, "acme.latency")
	require.Equal(t, rollout.RuleFailed, latency.Outcome)
	require.Equal(t, `Failed hold policies/p1.rego:5
  hold: fact "latency" is older than 2m (observed at 2026-03-03T11:30:00Z)
  - policies/p1.rego:7: facts.require("latency") > 100
    - rampart/facts/facts.rego: to_number(sprintf("fact %q %s", [name, state(name)])) | sprintf("fact %q %s", [name, state(name)]) = "fact \"latency\" is older than 2m (observed at 2026-03-03T11:30:00Z)"
`, treeText(latency))
	require.Equal(t, rollout.RuleUnheard, rule(t, x, "acme.always").Outcome)
	require.Len(t, x.Others, 1)
	require.Equal(t, []string{"policy.broken", "policies/p2.rego:3"}, []string{x.Others[0].Rule, x.Others[0].Location})
}

// A waived finding is shown as waived, and one that the bot's own configuration makes as its own.
func TestExplainWaivedAndFloor(t *testing.T) {
	waive := func(s *rollout.Snapshot) {
		s.Waivers = []v1alpha1.Waiver{{Metadata: v1alpha1.ObjectMeta{Name: "hotfix"}, Spec: v1alpha1.WaiverSpec{Rule: "rollout.freeze",
			Reason: "the shop is down", Approver: "sam", ExpiresAt: v1alpha1.NewTime(now.Add(time.Hour))}}}
	}
	cfg := Config{Data: []parse.DataFile{{Path: "data.yaml", Content: freezeTuesdays}}, Waivable: []string{"rollout.freeze"}}
	x := explained(t, cfg, "Ramp/v3@50%", waive)
	require.Equal(t, rollout.Allow, x.Verdict.Effect)
	freeze := rule(t, x, "rollout.freeze")
	require.Equal(t, rollout.RuleWaived, freeze.Outcome)
	require.Contains(t, freeze.Clauses[0].Findings[0].Waived, "hotfix (sam")

	x = explained(t, Config{Floor: []Layer{{Name: "bot", Data: []parse.DataFile{{Path: "bot.yaml", Content: freezeTuesdays}}}}}, "Ramp/v3@50%")
	var floors []string
	for _, r := range x.Rules {
		if r.Floor {
			floors = append(floors, r.Rule+" "+string(r.Outcome))
		}
	}
	require.Equal(t, []string{"rollout.freeze Fired"}, floors)
}

// The values of environment variables stay hidden: as they are, in what holds them, in text made of them, whatever they
// are called.
func TestExplainHidesVariables(t *testing.T) {
	x := explained(t, Config{Modules: policytest.Modules(`package rampart.spec

warn contains {"rule": "acme.env", "msg": "no"} if {
	some c in input.deployment.spec.template.spec.containers
	some e in c.env
	secret := e.value
	described := sprintf("%s is %s", [e.name, e.value])
	upper(secret) == "x"
	described == "nothing"
	c.env == []
	input.deployment.spec.template.spec.containers[0].env[1].value == "x"
}

warn contains {"rule": "acme.direct", "msg": "no"} if input.deployment.spec.template.spec.containers[0].env[1].value == "x"

warn contains {"rule": "acme.whole", "msg": "no"} if {
	e := input.deployment.spec.template.spec.containers[0].env
	e == ["x"]
}

warn contains {"rule": "acme.text", "msg": "no"} if {
	text := concat(" ", [e.value | some e in input.deployment.spec.template.spec.containers[0].env])
	text == "x"
}
`)}, "")
	require.Len(t, x.Rules, 8)
	all := ""
	for _, r := range x.Rules {
		all += treeText(r)
	}
	require.NotContains(t, all, "eu-central-1")
	require.Contains(t, all, `input.deployment.spec.template.spec.containers[0].env[1].value = "(hidden)"`)
	require.Contains(t, all, `{"name": "REGION", "value": "(hidden)"}`)
	require.Contains(t, all, `text = "(hidden) (hidden)"`)
}

// TestExplainHidesVariablesAsSuch has a variable whose value is elsewhere in the input too. The value does not count as
// a secret there, and is hidden where it is the variable's.
func TestExplainHidesVariablesAsSuch(t *testing.T) {
	d, err := NewDocument(snapshot(t), proposal())
	require.NoError(t, err)
	body, err := json.Marshal(d)
	require.NoError(t, err)
	d, err = DecodeDocument(bytes.ReplaceAll(body, []byte(`"eu-central-1"`), []byte(`"prod"`)))
	require.NoError(t, err)
	x := explainDocument(t, Config{Modules: policytest.Modules(`package rampart.spec

warn contains {"rule": "acme.env", "msg": "no"} if {
	input.deployment.spec.template.spec.containers[0].env[1].value == input.environment.name
	input.deployment.spec.template.spec.containers[0].env[1] == {}
}

warn contains {"rule": "acme.path", "msg": "no"} if input.deployment.spec.template.spec.containers[0].env[1].value == "x"

warn contains {"rule": "acme.name", "msg": "no"} if input.environment.name == "x"
`)}, "", d)
	require.Contains(t, treeText(rule(t, x, "acme.env")), `{"name": "REGION", "value": "(hidden)"}`)
	require.Contains(t, treeText(rule(t, x, "acme.path")), `value = "(hidden)"`)
	require.Contains(t, treeText(rule(t, x, "acme.name")), `input.environment.name = "prod"`)
}

// Of several ways that a clause was tried, the one that got furthest is shown, wherever it came.
func TestExplainFurthest(t *testing.T) {
	for _, order := range []string{"[1, 3, 2]", "[3, 1, 2]"} {
		x := explained(t, Config{Modules: policytest.Modules(`package rampart.rollout

warn contains {"rule": "acme.far", "msg": "no"} if {
	some n in ` + order + `
	n > 2
	n == 7
}
`)}, "Ramp/v3@50%")
		require.Equal(t, `Idle warn policies/p1.rego:3
  - policies/p1.rego:6: n == 7 | n = 3
`, treeText(rule(t, x, "acme.far")), order)
	}
}

// What there is to say about has its bounds, and so has the time that is taken; explaining ends with its context.
func TestExplainBounds(t *testing.T) {
	d, err := NewDocument(snapshot(t), proposal())
	require.NoError(t, err)
	heavy := Compile(Config{Bounds: Bounds{Steps: 10_000}, Modules: policytest.Modules(`package rampart.rollout

warn contains {"rule": "acme.heavy", "msg": "heavy"} if {
	xs := numbers.range(1, 3000)
	some a in xs
	some b in xs
	a + b == -1
}
`)})
	x, err := heavy.Explain(t.Context(), d, "Ramp/v3@50%")
	require.NoError(t, err)
	require.Contains(t, x.Incomplete, "took more than")
	require.Greater(t, len(x.Rules), 5, "other rule sets are explained")

	_, err = of().Explain(t.Context(), d, "Ramp/none")
	require.ErrorContains(t, err, `the input has no action "Ramp/none"; it has: Ramp/v3@50%, Continue/v2`)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = of().Explain(ended, d, "Ramp/v3@50%")
	require.ErrorIs(t, err, context.Canceled)
}
