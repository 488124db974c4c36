package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// tree has a rule of each outcome, and more of each than one screen shows.
func tree() *PolicyTree {
	value := func(name, v string) rollout.NamedValue { return rollout.NamedValue{Name: name, Value: v} }
	expression := func(text string, values ...rollout.NamedValue) rollout.Expression {
		return rollout.Expression{Location: "policies/x.rego:7", Text: text, Values: values}
	}
	deeper := expression("helper(x)", value("x", "3"))
	inner := expression("input.canary.enough", value("input.canary.enough", "false"))
	deeper.Because, deeper.Ways = &inner, 4
	finding := func(rule string, effect rollout.Effect) rollout.Finding {
		return rollout.Finding{Package: "rampart.rollout", Rule: rule, Effect: effect, Message: "message of " + rule + " \x1b[31m" + strings.Repeat("long ", 60)}
	}
	waived := finding("acme.waived", rollout.HoldEffect)
	waived.Waived = "hotfix (sam, until tomorrow: down)"
	frozen := finding("rollout.freeze", rollout.HoldEffect)
	frozen.Until, frozen.Message = now.Add(time.Hour), "frozen"
	clause := func(o rollout.RuleOutcome) rollout.ClauseExplanation {
		return rollout.ClauseExplanation{Set: "deny", Location: "policies/x.rego:5", Outcome: o}
	}
	fired, failed, unheard, waivedClause, passed, idle := clause(rollout.RuleFired), clause(rollout.RuleFailed), clause(rollout.RuleUnheard),
		clause(rollout.RuleWaived), clause(rollout.RulePassed), clause(rollout.RuleIdle)
	fired.Findings = []rollout.Finding{frozen}
	fired.True = []rollout.Expression{expression("some window in freeze.windows", value("window", `{"name": "tuesday"}`)),
		expression("input.action.raises", value("input.action.raises", "true"))}
	failed.Findings, failed.False = []rollout.Finding{finding("policy.error", rollout.HoldEffect)}, &deeper
	unheard.Findings, waivedClause.Findings = []rollout.Finding{finding("acme.unheard", rollout.HoldEffect)}, []rollout.Finding{waived}
	passed.False, passed.Ahead = &deeper, []rollout.NamedValue{value("input.canary.candidate.counted.closed", "12"), value("input.action.buildID", `"v2"`)}
	idle.False = &inner
	rule := func(name string, c rollout.ClauseExplanation) rollout.RuleExplanation {
		return rollout.RuleExplanation{Package: "rampart.rollout", Rule: name, Outcome: c.Outcome, Clauses: []rollout.ClauseExplanation{c}}
	}
	x := rollout.Explanation{Action: "Ramp/v2@5%", Kind: rollout.Ramp, Verdict: rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{frozen, waived}},
		Rules:  []rollout.RuleExplanation{rule("acme.failed", failed), rule("rollout.freeze", fired), rule("acme.unheard", unheard), rule("acme.waived", waivedClause)},
		Others: []rollout.Finding{{Rule: "policy.broken", Message: "does not compile", Location: "policies/y.rego:3"}}, Incomplete: "looking at each step took more than 10 steps"}
	x.Rules[1].Floor = true
	for i := range 8 {
		x.Rules = append(x.Rules, rule(fmt.Sprintf("acme.passed%d", i), passed))
	}
	for i := range 12 {
		x.Rules = append(x.Rules, rule(fmt.Sprintf("acme.about_something_else%d", i), idle))
	}
	t := &PolicyTree{DecisionID: "018f", At: now.Add(-time.Minute), PolicyDigest: "sha256:0123456789abcdef", RecordedDigest: "sha256:fedcba9876543210",
		Recorded: &rollout.Verdict{Effect: rollout.Allow}, Explanations: []rollout.Explanation{x}}
	for i := range 6 {
		t.Others = append(t.Others, NewOtherVerdict(fmt.Sprintf("Continue/v%d", i), rollout.Verdict{Effect: rollout.Warn,
			Findings: []rollout.Finding{{Rule: "acme.warn", Effect: rollout.Warn}, {Rule: "acme.warn", Effect: rollout.Warn}, {Rule: "acme.hold", Effect: rollout.HoldEffect, Waived: "x"}}}))
	}
	return t
}

func TestTree(t *testing.T) {
	text := func(style Style, all bool) string {
		var b strings.Builder
		tree().WriteText(&b, View{Style: style, All: all, Now: now})
		return b.String()
	}
	folded := text(Plain, false)
	golden(t, "tree", txtar.File{Name: "folded", Data: []byte(folded)}, txtar.File{Name: "unfolded", Data: []byte(text(Plain, true))})
	for line := range strings.SplitSeq(folded, "\n") {
		require.LessOrEqual(t, len([]rune(line)), screenWidth, line)
		require.NotContains(t, line, "\x1b")
	}
	require.LessOrEqual(t, strings.Count(folded, "\n"), 50)
	require.Contains(t, text(Colored, false), red+"[x] rollout.freeze: deny at policies/x.rego:5, demanded by the bot's configuration"+reset)
	for _, line := range []string{yellow + "[~] acme.unheard", green + "[ ] acme.passed0", yellow + "by other policies", yellow + "decided then",
		yellow + "not all is explained", "\n    and 2 other rules that passed"} {
		require.Contains(t, text(Colored, false), line)
	}
	require.Equal(t, folded, text(Plain, false))
	data, err := json.Marshal(tree())
	require.NoError(t, err)
	var back *PolicyTree
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, tree(), back)
}
