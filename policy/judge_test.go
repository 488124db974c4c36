package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
	"github.com/rampart-gitops/rampart/rego"
)

// What cannot be evaluated holds a raise, whatever it is, and in each case a revert still clears the ramp.
func TestFailsClosed(t *testing.T) {
	testneed.Plain(t)
	const loop = `	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j == -1
`
	const rules = "package rampart.rollout\n\n"
	library := func(keep func(rego.Module) bool) []parse.Module {
		out := []parse.Module{}
		for _, m := range rego.Modules() {
			if keep(m) {
				out = append(out, m)
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		cfg      Config
		rule     string // of the finding that holds
		message  string // part of it
		location string
	}{
		"no library at all": {Config{Library: []parse.Module{}}, "policy.empty", "no rule of the package is defined", ""},
		"a package that yields nothing": {Config{Library: library(func(m rego.Module) bool { return !strings.Contains(m.Path, "/rollout/") })},
			"policy.empty", "no rule of the package is defined", ""},
		"a complete rule that is undefined, and no library": {Config{Library: []parse.Module{}, Modules: policytest.Modules(rules + "deny := {1} if false\n")},
			"policy.empty", "no rule of the package is defined", ""},
		"a value that is no set": {Config{Library: []parse.Module{}, Modules: policytest.Modules(rules + "deny := false\n")},
			"policy.shape", "deny is a boolean, not a set", "policies/p1.rego:3"},
		"an array": {Config{Library: []parse.Module{}, Modules: policytest.Modules(rules + `deny := [{"rule": "a", "msg": "b"}]` + "\n")},
			"policy.shape", "deny is an array, not a set", "policies/p1.rego:3"},
		"a set of strings": {Config{Modules: policytest.Modules(rules + `deny contains "no"` + "\n")},
			"policy.shape", "deny has a string where an object", "policies/p1.rego:3"},
		"a warning that is a string": {Config{Modules: policytest.Modules(rules + `warn contains "careful"` + "\n")},
			"policy.shape", "warn has a string where an object", "policies/p1.rego:3"},
		"an object without a rule": {Config{Modules: policytest.Modules(rules + `deny contains {"msg": "no"}` + "\n")},
			"policy.shape", "deny has an object without rule where an object with the strings rule and msg is expected", "policies/p1.rego:3"},
		"an object without a message": {Config{Modules: policytest.Modules(rules + `deny contains {"rule": "a", "message": "no"}` + "\n")},
			"policy.shape", "deny has an object without msg where", "policies/p1.rego:3"},
		"an object without both": {Config{Modules: policytest.Modules(rules + `deny contains {"why": "no"}` + "\n")},
			"policy.shape", "deny has an object without rule and msg where", "policies/p1.rego:3"},
		"an empty message and no rule": {Config{Modules: policytest.Modules(rules + `deny contains {"msg": ""}` + "\n")},
			"policy.shape", "deny has an object without rule, whose msg is empty where", "policies/p1.rego:3"},
		"a message that is no string": {Config{Modules: policytest.Modules(rules + `hold contains {"rule": "a", "msg": 1}` + "\n")},
			"policy.shape", "hold has an object whose msg is a number where an object", "policies/p1.rego:3"},
		"an error of a builtin": {Config{Modules: policytest.Modules(rules + "deny contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\tto_number(input.action.kind) > 3\n}\n")},
			"policy.error", "to_number", "policies/p1.rego:4"},
		"an error in a helper": {Config{Modules: policytest.Modules(rules+"import data.acme\n\ndeny contains {\"rule\": \"a\", \"msg\": \"b\"} if acme.bad\n",
			"package acme\n\nbad if time.parse_rfc3339_ns(\"never\") > 0\n")},
			"policy.error", "time.parse_rfc3339_ns", "policies/p2.rego:3"},
		"two values of one rule": {Config{Modules: policytest.Modules(rules + "x := 1\n\nx := 2\n\ndeny contains {\"rule\": \"a\", \"msg\": \"b\"} if x == 1\n")},
			"policy.error", "conflicting values", "policies/p1.rego:5"},
		"two values of a function": {Config{Modules: policytest.Modules(rules + "f(_) := 1\n\nf(_) := 2\n\ndeny contains {\"rule\": \"a\", \"msg\": \"b\"} if f(1) == 1\n")},
			"policy.error", "conflicting values", "policies/p1.rego:5"},
		"a time-out": {Config{Bounds: Bounds{Timeout: 50 * time.Millisecond}, Modules: policytest.Modules(rules + "deny contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n" + loop + "}\n")},
			"policy.timeout", "took longer than 50ms", "policies/p1.rego:3"},
		"a module that does not parse": {Config{Modules: policytest.Modules(rules + "deny contains {\n")},
			"policy.broken", "unexpected eof", "policies/p1.rego:4"},
		"a module in an older Rego": {Config{Modules: policytest.Modules(rules + "deny[x] { x := {\"rule\": \"a\", \"msg\": \"b\"} }\n")},
			"policy.broken", "keyword is required", "policies/p1.rego:3"},
		"an empty module": {Config{Modules: policytest.Modules("")}, "policy.broken", "empty", "policies/p1.rego"},
		"a module that does not compile": {Config{Modules: policytest.Modules(rules + "deny contains {\"rule\": \"a\", \"msg\": \"b\"} if nosuch(1)\n")},
			"policy.broken", "undefined function nosuch", "policies/p1.rego:3"},
		"a forbidden builtin": {Config{Modules: policytest.Modules(rules + "deny contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\thttp.send({\"method\": \"get\", \"url\": \"http://localhost\"}).status_code == 200\n}\n")},
			"policy.broken", "undefined function http.send", "policies/p1.rego:4"},
		"a rule at odds with the library": {Config{Modules: policytest.Modules(rules + "deny := {1}\n")},
			"policy.broken", "conflict", "policies/p1.rego"},
		"a package of the library": {Config{Modules: policytest.Modules("package rampart.library.match\n\nenvironment(_) if false\n")},
			"policy.broken", "helpers go elsewhere", "policies/p1.rego:1"},
		"a misspelled package": {Config{Modules: policytest.Modules("package rampart.rollouts\n\ndeny contains {\"rule\": \"a\", \"msg\": \"b\"}\n")},
			"policy.broken", "rampart.rollout, rampart.drift and rampart.sunset", "policies/p1.rego:1"},
		"a rule in a file of tests": {Config{Modules: []parse.Module{{Path: "policies/gold_test.rego", Source: rules + "deny contains {\"rule\": \"a\", \"msg\": \"b\"}\n"}}},
			"policy.broken", "has no effect", "policies/gold_test.rego:3"},
		"a module that is too long": {Config{Modules: policytest.Modules(rules + strings.Repeat("#\n", parse.MaxFileSize/2))},
			"policy.broken", "are not read", "policies/p1.rego"},
		"a fact that is stale": {Config{Modules: policytest.Modules(rules + "import data.rampart.facts\n\ndeny contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\tfacts.require(\"latency\") > 500\n}\n")},
			"policy.fact", `fact "latency" is older than 2m (observed at 2026-03-03T11:30:00Z)`, "policies/p1.rego:6"},
		"a fact that is missing": {Config{Modules: policytest.Modules(rules + "import data.rampart.facts\n\ndeny contains {\"rule\": \"a\", \"msg\": \"b\"} if facts.require(\"nosuch\") > 500\n")},
			"policy.fact", `fact "nosuch" is not known`, "policies/p1.rego:5"},
		"data that is no YAML": {Config{Data: []parse.DataFile{{Path: "policies/data.yaml", Content: "rampart: [\n"}}},
			"policy.broken", "not valid YAML", "policies/data.yaml"},
		"a parameter of the wrong type": {Config{Data: []parse.DataFile{{Path: "policies/data.yaml", Content: "rampart:\n  config:\n    rollout:\n      freeze:\n        windows: weekends\n"}}},
			"policy.broken", `rampart.config.rollout.freeze.windows: "weekends" is given; expected: a list of objects`, "policies/data.yaml:5"},
		"a misspelled parameter": {Config{Data: []parse.DataFile{{Path: "policies/data.yaml", Content: "rampart:\n  config:\n    rollout:\n      freeze:\n        window: []\n"}}},
			"policy.broken", "there is no parameter window (did you mean windows?)", "policies/data.yaml:5"},
		"an unknown time zone": {Config{Data: []parse.DataFile{{Path: "policies/data.yaml", Content: "rampart: {config: {rollout: {freeze: {windows: [{name: a, days: [Mon], timezone: Mars/Olympus}]}}}}\n"}}},
			"policy.broken", "there is no time zone Mars/Olympus", "policies/data.yaml:1"},
		"data where a package is": {Config{Modules: policytest.Modules("package acme\n\nlimit := 3\n"), Data: []parse.DataFile{{Path: "policies/data.yaml", Content: "acme: {limit: 4}\n"}}},
			"policy.broken", "conflict", "policies/p1.rego"},
		"data instead of policies": {Config{Data: []parse.DataFile{{Path: "policies/data.yaml", Content: "rampart:\n  rollout:\n    deny: []\n"}}},
			"policy.broken", "config only", "policies/data.yaml:2"},
	} {
		t.Run(name, func(t *testing.T) {
			e := Compile(tc.cfg)
			v := judge(t, e, ramp())
			require.Equal(t, rollout.HoldEffect, v.Effect)
			f := v.Findings[0]
			require.Equal(t, tc.rule, f.Rule, "%+v", v.Findings)
			require.Contains(t, f.Message, tc.message)
			if tc.location == "" {
				require.Empty(t, f.Location)
			} else {
				require.True(t, f.Location == tc.location || strings.HasPrefix(f.Location, tc.location+":"), f.Location)
			}

			back := judge(t, e, reset())
			require.Equal(t, rollout.Allow, back.Effect)
			// A freeze does not look at what lowers.
			require.True(t, name == "an unknown time zone" || len(back.Findings) > 0, "it is still said")
			for _, f := range back.Findings {
				require.Equal(t, rollout.Warn, f.Effect)
			}
		})
	}
}

func TestAllowedByDefault(t *testing.T) {
	e := Compile(Config{})
	require.Empty(t, e.Problems())
	p := proposal()
	got := e.Judge(t.Context(), snapshot(t), p)
	want := rollout.Verdicts{PolicyDigest: e.Digest(), Spec: rollout.Verdict{Effect: rollout.Allow}, Actions: map[string]rollout.Verdict{}}
	for _, a := range p.Actions {
		want.Actions[a.ID] = rollout.Verdict{Effect: rollout.Allow}
	}
	require.Empty(t, cmp.Diff(want, got))
}

func TestStrictestWins(t *testing.T) {
	rule := func(set, name string) string {
		return fmt.Sprintf("package rampart.rollout\n\n%s contains {\"rule\": %q, \"msg\": \"because\", \"share\": input.action.to, \"who\": {\"b\", \"a\"}}\n", set, name)
	}
	all := []string{rule("warn", "a.warn"), rule("require_approval", "a.approve"), rule("hold", "a.hold"), rule("deny", "a.deny"), rule("rollback", "a.back")}
	for n, want := range []rollout.Effect{rollout.Allow, rollout.Allow, rollout.RequireApproval, rollout.HoldEffect, rollout.HoldEffect, rollout.RollbackEffect} {
		require.Equal(t, want, judge(t, of(all[:n]...), ramp()).Effect, "%d rules", n)
	}

	finding := func(rule string, effect rollout.Effect) rollout.Finding {
		return rollout.Finding{Package: "rampart.rollout", Rule: rule, Effect: effect, Message: "because", Evidence: json.RawMessage(`{"share":50,"who":["a","b"]}`)}
	}
	require.Empty(t, cmp.Diff(rollout.Verdict{Effect: rollout.RollbackEffect, Findings: []rollout.Finding{
		finding("a.back", rollout.RollbackEffect), finding("a.deny", rollout.HoldEffect), finding("a.hold", rollout.HoldEffect),
		finding("a.approve", rollout.RequireApproval), finding("a.warn", rollout.Warn),
	}}, judge(t, of(all...), ramp())))
}

func TestLoweringIsOnlyCommentedOn(t *testing.T) {
	e := of(`package rampart.rollout

deny contains {"rule": "a.deny", "msg": "no"}

rollback contains {"rule": "a.back", "msg": "back"}

require_approval contains {"rule": "a.ask", "msg": "ask"}
`, `package rampart.sunset

deny contains {"rule": "a.keep", "msg": "keep"}
`)
	down := ramp()
	down.To = 5
	for _, a := range []rollout.Action{reset(), {ID: "back", Kind: rollout.Rollback, BuildID: "v2", To: 100}, down,
		{ID: "aside", Kind: rollout.SetAsideKind, BuildID: "v1"}} {
		v := judge(t, e, a)
		require.Equal(t, rollout.Allow, v.Effect, a.Kind)
		require.NotEmpty(t, v.Findings)
		for _, f := range v.Findings {
			require.Equal(t, rollout.Warn, f.Effect)
		}
	}
	for _, kind := range []rollout.ActionKind{rollout.CreateVersion, rollout.UpdateVersion, rollout.ScaleVersion, rollout.Restore, rollout.UpdateResources,
		rollout.StartGate, rollout.Promote, rollout.Continue} {
		require.Equal(t, rollout.RollbackEffect, judge(t, e, rollout.Action{ID: "x", Kind: kind, BuildID: "v3"}).Effect, kind)
	}
	for _, kind := range []rollout.ActionKind{rollout.ScaleDown, rollout.DeleteVersion, rollout.RemoveFiles} {
		require.Equal(t, rollout.HoldEffect, judge(t, e, rollout.Action{ID: "x", Kind: kind, BuildID: "v1"}).Effect, kind)
	}
}

func TestUnknownKindIsHeld(t *testing.T) {
	require.Equal(t, rollout.HoldEffect, judge(t, Compile(Config{}), rollout.Action{ID: "x", Kind: "Explode"}).Effect)
}

// A broken module does not silence the others: what they and the library say still counts, the wish to roll back first.
func TestBrokenRulesDoNotHideOthers(t *testing.T) {
	testneed.Plain(t)
	const back = `package rampart.rollout

rollback contains {"rule": "acme.back", "msg": "it is bad"} if input.action.kind == "Continue"
`
	const slow = `package rampart.rollout

deny contains {"rule": "a", "msg": "b"} if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j == -1
}
`
	library := append(rego.Modules(), parse.Module{Path: "rampart/rollout/extra.rego", Source: strings.Replace(back, "acme.back", "library.back", 1)})
	keep := rollout.Action{ID: "keep", Kind: rollout.Continue, BuildID: "v3", From: 10, To: 10}
	for name, tc := range map[string]struct {
		broken string
		want   []string
	}{
		"does not parse":   {"package rampart.rollout\n\n)\n", []string{"acme.back", "library.back", "policy.broken"}},
		"does not compile": {"package rampart.rollout\n\ndeny contains x if x := nosuch(1)\n", []string{"acme.back", "library.back", "policy.broken"}},
		"fails in another set": {"package rampart.rollout\n\ndeny contains {\"rule\": \"a\", \"msg\": \"b\"} if to_number(\"x\") > 1\n",
			[]string{"acme.back", "library.back", "policy.error"}},
		"fails in the same set": {"package rampart.rollout\n\nrollback contains {\"rule\": \"a\", \"msg\": \"b\"} if to_number(\"x\") > 1\n",
			[]string{"library.back", "policy.error"}},
		"is slow": {slow, []string{"library.back", "policy.timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := Compile(Config{Library: library, Modules: policytest.Modules(back, tc.broken), Bounds: Bounds{Timeout: 200 * time.Millisecond}})
			v := judge(t, e, keep)
			require.Equal(t, rollout.RollbackEffect, v.Effect)
			var rules []string
			for _, f := range v.Findings {
				rules = append(rules, f.Rule)
			}
			require.Equal(t, tc.want, rules)
		})
	}
}

// A package that ran out of time is not asked again in the same call: a hostile policy costs one time-out a package.
func TestSlowPackageIsAskedOnce(t *testing.T) {
	e := Compile(Config{Bounds: Bounds{Timeout: 50 * time.Millisecond}, Modules: policytest.Modules(`package rampart.rollout

warn contains {"rule": "a", "msg": "b"} if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j == -1
}
`)})
	d, err := NewDocument(snapshot(t), proposal(ramp()))
	require.NoError(t, err)
	j := e.judgment(t.Context(), d, nil)
	input, _ := d.Input(ramp().ID)
	require.Equal(t, "policy.timeout", j.ask(e.books[0], parse.PackageRollout, input).failures[0].Rule)
	e.bounds.Timeout = time.Hour // asked again, it would take that long
	again := j.ask(e.books[0], parse.PackageRollout, input)
	require.Equal(t, "policy.timeout", again.failures[0].Rule)
	require.Contains(t, again.sets, "deny", "the library was asked")
}

func TestCancelledJudgingHoldsRaises(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := Compile(Config{}).Judge(ctx, snapshot(t), proposal(ramp(), reset()))
	require.Equal(t, rollout.HoldEffect, v.Spec.Effect)
	require.Equal(t, rollout.HoldEffect, v.Of(ramp().ID).Effect)
	require.Equal(t, rollout.Allow, v.Of(reset().ID).Effect)
}

func TestInputThatCannotBeMade(t *testing.T) {
	s := snapshot(t)
	s.Facts["bad"] = rollout.Fact{Value: json.RawMessage("{")}
	v := Compile(Config{}).Judge(t.Context(), s, proposal(ramp(), reset()))
	require.Equal(t, "policy.input", v.Of(ramp().ID).Findings[0].Rule)
	require.Equal(t, rollout.HoldEffect, v.Of(ramp().ID).Effect)
	require.Equal(t, rollout.Allow, v.Of(reset().ID).Effect)
}

func TestSpecIsJudgedWithEachProposal(t *testing.T) {
	s := snapshot(t)
	s.Spec = spec(t, "registry.example/checkout:latest")
	e := Compile(Config{})
	want := rollout.Verdict{Effect: rollout.Allow, Findings: []rollout.Finding{{Package: "rampart.spec", Rule: "spec.images", Effect: rollout.Warn,
		Message:  "container worker: tag latest of registry.example/checkout:latest moves; use a tag that stays, or a digest",
		Evidence: json.RawMessage(`{"image":"registry.example/checkout:latest"}`)}}}
	require.Empty(t, cmp.Diff(want, e.Judge(t.Context(), s, proposal()).Spec))
	require.Empty(t, cmp.Diff(want, e.Judge(t.Context(), s, rollout.Proposal{}).Spec))
	asked := Compile(Config{Data: []parse.DataFile{{Path: "d.yaml", Content: "rampart: {config: {spec: {images: {fixedTagEnvironments: [\"*\"]}}}}"}}})
	want.Effect, want.Findings[0].Effect = rollout.HoldEffect, rollout.HoldEffect
	require.Empty(t, cmp.Diff(want, asked.Judge(t.Context(), s, rollout.Proposal{}).Spec))

	// validate has no observation: rules of rampart.spec see none in either case, so both say the same.
	e = of("package rampart.spec\n\nwarn contains {\"rule\": \"a\", \"msg\": k} if some k, _ in input\n")
	bare := rollout.Snapshot{Now: s.Now, Deployment: s.Deployment, Environment: s.Environment, Spec: s.Spec, SpecPath: s.SpecPath, Git: s.Git}
	v := e.Judge(t.Context(), bare, rollout.Proposal{}).Spec
	require.Empty(t, cmp.Diff(e.Judge(t.Context(), s, proposal()).Spec, v))
	var seen []string
	for _, f := range v.Findings {
		if f.Rule != "spec.images" {
			seen = append(seen, f.Message)
		}
	}
	require.Equal(t, []string{"connection", "deployment", "environment", "git", "now", "waivers"}, seen)
}

func TestPoliciesDecideAboutDrift(t *testing.T) {
	testneed.Plain(t)
	lower := &rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftLower, Recorded: "current v2", Actual: "current v1"}
	higher := &rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftHigher, Recorded: "current v1", Actual: "current v2"}
	manifest := &rollout.Drift{Kind: rollout.DriftManifest, Path: "versions/v1/deployment.yaml", Recorded: "a", Actual: "b"}
	answer := func(a string) string {
		return fmt.Sprintf("package rampart.drift\n\naction contains {\"rule\": \"acme.drift\", \"msg\": \"so\", \"action\": %q}\n", a)
	}
	data := func(s string) Config { return Config{Data: []parse.DataFile{{Path: "data.yaml", Content: s}}} }
	for name, tc := range map[string]struct {
		cfg    Config
		drift  *rollout.Drift
		want   rollout.DriftAnswer
		effect rollout.Effect
	}{
		"lower":                         {Config{}, lower, rollout.DriftAdopt, rollout.Allow},
		"higher":                        {Config{}, higher, rollout.DriftRevert, rollout.Allow},
		"manifest":                      {Config{}, manifest, rollout.DriftRevert, rollout.Allow},
		"hold is stricter than revert":  {Config{Modules: policytest.Modules(answer("hold"))}, higher, rollout.DriftHold, rollout.HoldEffect},
		"revert is stricter than adopt": {Config{Modules: policytest.Modules(answer("adopt"))}, higher, rollout.DriftRevert, rollout.Allow},
		"revert never raises":           {Config{Modules: policytest.Modules(answer("revert"))}, lower, rollout.DriftAdopt, rollout.Allow},
		"an answer that is none":        {Config{Modules: policytest.Modules(answer("ignore"))}, higher, rollout.DriftHold, rollout.HoldEffect},
		"no answer":                     {Config{Library: []parse.Module{}, Modules: policytest.Modules("package rampart.drift\n\nwarn contains {\"rule\": \"a\", \"msg\": \"b\"}\n")}, higher, rollout.DriftHold, rollout.HoldEffect},
		"nothing defined":               {Config{Library: []parse.Module{}}, lower, rollout.DriftHold, rollout.HoldEffect},
		"broken":                        {Config{Modules: policytest.Modules("package")}, higher, rollout.DriftHold, rollout.HoldEffect},
		"configured to adopt":           {data("rampart: {config: {drift: {manifest: {answer: adopt}}}}"), manifest, rollout.DriftAdopt, rollout.Allow},
		"configured to hold":            {data("rampart: {config: {drift: {routing: {lower: hold}}}}"), lower, rollout.DriftHold, rollout.HoldEffect},
		"configured to raise":           {data("rampart: {config: {drift: {routing: {lower: revert}}}}"), lower, rollout.DriftHold, rollout.HoldEffect},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(t, Compile(tc.cfg), rollout.Action{ID: "drift", Kind: rollout.DriftAction, BuildID: "v1", Drift: tc.drift})
			require.Equal(t, tc.want, v.Drift, "%+v", v.Findings)
			require.Equal(t, tc.effect, v.Effect)
			require.NotEmpty(t, v.Findings)
		})
	}
}

func TestFindingsAreBounded(t *testing.T) {
	e := of(`package rampart.rollout

warn contains {"rule": "acme.many", "msg": sprintf("%04d", [i])} if some i in numbers.range(1, 500)

deny contains {"rule": concat("", [x | some i in numbers.range(1, 300); x := "é"]), "msg": concat("", [x | some i in numbers.range(1, 9000); x := "é"])}

hold contains {"rule": "acme.big", "msg": "b", "data": numbers.range(1, 5000)}
`)
	v := judge(t, e, ramp())
	require.Len(t, v.Findings, maxFindings+1)
	require.Equal(t, "acme.big", v.Findings[0].Rule)
	require.Regexp(t, `^\{"omitted":"(\d+ bytes|more than can be shown)"\}$`, string(v.Findings[0].Evidence))
	require.LessOrEqual(t, len(v.Findings[1].Rule), parse.MaxRule)
	require.LessOrEqual(t, len(v.Findings[1].Message), parse.MaxMessage)
	require.True(t, strings.HasSuffix(v.Findings[1].Message, "é…"))
	require.Equal(t, "0001", v.Findings[2].Message)
	require.Equal(t, "policy.truncated", v.Findings[maxFindings].Rule)
}

func TestSameInputSameVerdicts(t *testing.T) {
	e := Compile(Config{Modules: tenRules()})
	same := Compile(Config{Modules: tenRules()})
	s, p := snapshot(t), proposal(ramp(), reset(), rollout.Action{ID: "down", Kind: rollout.ScaleDown, BuildID: "v3"})
	want, err := json.Marshal(e.Judge(t.Context(), s, p))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			engine := e
			if i%2 == 1 {
				engine = same
			}
			for range 20 {
				got, err := json.Marshal(engine.Judge(context.Background(), s, p))
				if err != nil || string(got) != string(want) {
					t.Errorf("%s, not %s (%v)", got, want, err)
				}
			}
		})
	}
	wg.Wait()
}

// The clock of policies is the snapshot's.
func TestClockOfPoliciesIsTheSnapshots(t *testing.T) {
	e := Compile(Config{Data: []parse.DataFile{{Path: "data.yaml", Content: `rampart:
  config:
    rollout:
      freeze:
        timezone: Europe/Berlin
        windows:
          - {name: weekend, days: [Sat, Sun]}
          - {name: christmas, start: 2026-12-20T00:00:00Z, end: 2027-01-06T00:00:00Z}
`}}})
	require.Empty(t, e.Problems())
	s, p := snapshot(t), proposal(ramp(), reset())
	for at, want := range map[string]string{
		"2026-03-06T22:59:59Z": "",
		"2026-03-06T23:00:00Z": "frozen: weekend (Sat, Sun)",
		"2026-12-23T08:00:00Z": "frozen: christmas (until 2027-01-06T00:00:00Z)",
	} {
		when, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		s.Now, s.Observation.At = when, when
		v := e.Judge(t.Context(), s, p)
		require.Equal(t, rollout.Allow, v.Of(reset().ID).Effect)
		if want == "" {
			require.Equal(t, rollout.Verdict{Effect: rollout.Allow}, v.Of(ramp().ID))
			continue
		}
		require.Equal(t, rollout.HoldEffect, v.Of(ramp().ID).Effect)
		require.Equal(t, "rollout.freeze", v.Of(ramp().ID).Findings[0].Rule)
		require.Equal(t, want, v.Of(ramp().ID).Findings[0].Message)
	}
}
