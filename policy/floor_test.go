package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// frozen is a freeze on the day of the tests.
const frozen = "rampart: {config: {rollout: {freeze: {windows: [{name: floor, days: [Tue]}]}}}}\n"

func rulesOf(v rollout.Verdict) map[string]rollout.Effect {
	out := map[string]rollout.Effect{}
	for _, f := range v.Findings {
		out[f.Rule] = f.Effect
	}
	return out
}

// What the bot's own configuration demands holds, whatever the repository says.
func TestFloorCannotBeLoosened(t *testing.T) {
	floor := []Layer{{Name: "floor", Data: []parse.DataFile{{Path: "floor.yaml", Content: frozen}, {Path: "limit.yaml", Content: "acme: {limit: 20}\n"}}, Modules: []parse.Module{
		{Path: "policies/p1.rego", Source: `package rampart.rollout

import data.acme.helpers

deny contains {"rule": "acme.limit", "msg": "too much"} if helpers.beyond(data.acme.limit)

rollback contains {"rule": "acme.seen", "msg": "the repository's data are seen"} if data.theirs
`},
		{Path: "policies/helpers.rego", Source: "package acme.helpers\n\nbeyond(n) if input.action.to > n\n"},
		{Path: "policies/drift.rego", Source: "package rampart.drift\n\naction contains {\"rule\": \"acme.drift\", \"msg\": \"so\", \"action\": \"hold\"}\n"},
	}}}
	for name, theirs := range map[string]Config{
		"nothing":                    {},
		"wider parameters":           {Data: []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {rollout: {freeze: {windows: []}, approval: {rules: []}}}}\ntheirs: true\n"}}},
		"data at the floor's path":   {Data: []parse.DataFile{{Path: "limit.yaml", Content: "acme: {limit: 100}\ntheirs: true\n"}}},
		"another action in a window": {Data: []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {rollout: {freeze: {actions: [DeleteVersion]}}}}\n"}}},
		"helpers of the same name":   {Modules: policytest.Modules("package acme.helpers\n\nbeyond(_) := false\n\nlimit := 100\n")},
		"a package where data are":   {Modules: policytest.Modules("package acme\n\nlimit := 100\n")},
		"modules at the same paths":  {Modules: []parse.Module{{Path: "policies/p1.rego", Source: "package rampart.rollout\n"}, {Path: "policies/helpers.rego", Source: "package acme.helpers\n\nbeyond(_) := false\n"}}},
		"with": {Modules: policytest.Modules(`package rampart.rollout

warn contains {"rule": "acme.limit", "msg": "it is fine"} if count(deny) >= 0 with input.action.to as 1 with data.acme.limit as 100

x := 1 if data.rampart.rollout.deny == set() with data.rampart.config as {}
`)},
		"their name":           {Modules: policytest.Modules(policytest.Rules(`warn contains {"rule": "rollout.freeze", "msg": "lifted"}`), policytest.Rules(`require_approval contains {"rule": "acme.limit", "msg": "approved"}`))},
		"drift":                {Modules: policytest.Modules("package rampart.drift\n\naction contains {\"rule\": \"acme.drift\", \"msg\": \"mine\", \"action\": \"adopt\"}\n")},
		"a thousand of theirs": {Modules: policytest.Modules(policytest.Rules(`deny contains {"rule": "a", "msg": sprintf("%d", [i])} if some i in numbers.range(1, 900)`))},
		"too many of theirs":   {Modules: policytest.Modules(policytest.Rules(`deny contains {"rule": "a", "msg": sprintf("%d", [i])} if some i in numbers.range(1, 2000)`))},
	} {
		t.Run(name, func(t *testing.T) {
			theirs.Floor, theirs.Waivable = floor, []string{"a", "theirs.*"}
			e := Compile(theirs)
			s := snapshot(t)
			s.Waivers = []v1alpha1.Waiver{waiver("all", "rollout.freeze"), waiver("limit", "acme.limit"), waiver("drift", "acme.drift"), waiver("many", "a")}
			drift := rollout.Action{ID: "drift", Kind: rollout.DriftAction, BuildID: "v3",
				Drift: &rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftHigher, Recorded: "a", Actual: "b"}}
			v := e.Judge(t.Context(), s, proposal(ramp(), reset(), drift))
			raise := v.Of(ramp().ID)
			require.Equal(t, rollout.HoldEffect, raise.Effect)
			require.NotContains(t, rulesOf(raise), "acme.seen", "the floor does not see the repository's data")
			require.Equal(t, rollout.DriftHold, v.Of("drift").Drift)
			require.Equal(t, rollout.Allow, v.Of(reset().ID).Effect)
			if name == "a thousand of theirs" {
				return // more than are shown
			}
			var held []string
			for _, f := range raise.Findings {
				if f.Effect == rollout.HoldEffect && f.Waived == "" && (f.Rule == "rollout.freeze" || f.Rule == "acme.limit") {
					held = append(held, f.Rule)
				}
			}
			require.ElementsMatch(t, []string{"acme.limit", "rollout.freeze"}, held)
		})
	}
	// The approval that the floor asks for.
	e := Compile(Config{Floor: []Layer{{Data: []parse.DataFile{{Path: "floor.yaml", Content: "rampart: {config: {rollout: {approval: {rules: [{environments: [prod], atLeast: 50}]}}}}\n"}}}},
		Data: []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {rollout: {approval: {rules: []}}}}\n"}}})
	require.Empty(t, e.Problems())
	require.Equal(t, rollout.RequireApproval, judge(t, e, ramp()).Effect)
}

// TestWaivedFindingsHideNothing checks that waived findings do not push other findings out of sight.
func TestWaivedFindingsHideNothing(t *testing.T) {
	e := Compile(Config{Waivable: []string{"a"}, Data: []parse.DataFile{{Path: "data.yaml", Content: frozen}},
		Modules: policytest.Modules(policytest.Rules(`deny contains {"rule": "a", "msg": sprintf("%d", [i])} if some i in numbers.range(1, 900)`))})
	s := snapshot(t)
	s.Waivers = []v1alpha1.Waiver{waiver("many", "a")}
	require.Equal(t, rollout.HoldEffect, e.Judge(t.Context(), s, proposal(ramp())).Of(ramp().ID).Effect)
}

func waiver(name, rule string) v1alpha1.Waiver {
	return v1alpha1.Waiver{Metadata: v1alpha1.ObjectMeta{Name: name}, Spec: v1alpha1.WaiverSpec{Rule: rule, Reason: "hotfix", Approver: "ada",
		ExpiresAt: v1alpha1.NewTime(now.Add(time.Hour))}}
}

func TestWaiversCountWithinTheirScope(t *testing.T) {
	testneed.Plain(t)
	const by = "w (ada, until 2026-03-03T13:00:00Z: hotfix)"
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Waiver)
		waived string
		spec   map[string]rollout.Effect // what is said of the waiver itself
	}{
		"everywhere":          {func(*v1alpha1.Waiver) {}, by, map[string]rollout.Effect{}},
		"environment":         {func(w *v1alpha1.Waiver) { w.Spec.Scope.Environment = "prod" }, by, map[string]rollout.Effect{}},
		"another environment": {func(w *v1alpha1.Waiver) { w.Spec.Scope.Environment = "staging" }, "", map[string]rollout.Effect{}},
		"deployment":          {func(w *v1alpha1.Waiver) { w.Spec.Scope.Deployment = "payments/checkout" }, by, map[string]rollout.Effect{}},
		"another deployment":  {func(w *v1alpha1.Waiver) { w.Spec.Scope.Deployment = "payments/check" }, "", map[string]rollout.Effect{}},
		"build":               {func(w *v1alpha1.Waiver) { w.Spec.Scope.BuildID = "v3" }, by, map[string]rollout.Effect{}},
		"another build":       {func(w *v1alpha1.Waiver) { w.Spec.Scope.BuildID = "v2" }, "", map[string]rollout.Effect{}},
		"another rule":        {func(w *v1alpha1.Waiver) { w.Spec.Rule = "acme.other" }, "", map[string]rollout.Effect{}},
		"all at once":         {func(w *v1alpha1.Waiver) { w.Spec.Rule = "acme.*" }, "", map[string]rollout.Effect{"waiver.refused": rollout.Warn}},
		"not waivable":        {func(w *v1alpha1.Waiver) { w.Spec.Rule = "rollout.steps" }, "", map[string]rollout.Effect{"waiver.refused": rollout.Warn}},
		"the last second": {func(w *v1alpha1.Waiver) { w.Spec.ExpiresAt = v1alpha1.NewTime(now.Add(time.Second)) },
			"w (ada, until 2026-03-03T12:00:01Z: hotfix)", map[string]rollout.Effect{}},
		"the second after": {func(w *v1alpha1.Waiver) { w.Spec.ExpiresAt = v1alpha1.NewTime(now) }, "", map[string]rollout.Effect{"waiver.expired": rollout.Warn}},
		"no expiry":        {func(w *v1alpha1.Waiver) { w.Spec.ExpiresAt = v1alpha1.Time{} }, "", map[string]rollout.Effect{"waiver.expired": rollout.Warn}},
	} {
		t.Run(name, func(t *testing.T) {
			w := waiver("w", "acme.freeze")
			tc.change(&w)
			s := snapshot(t)
			s.Waivers = []v1alpha1.Waiver{w}
			e := Compile(Config{Waivable: []string{"acme.freeze", "acme.other"}, Modules: policytest.Modules(policytest.Rules(`deny contains {"rule": "acme.freeze", "msg": "m"}`))})
			v := e.Judge(t.Context(), s, proposal(ramp()))
			want := rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{
				{Package: parse.PackageRollout, Rule: "acme.freeze", Effect: rollout.HoldEffect, Message: "m", Waived: tc.waived}}}
			if tc.waived != "" {
				want.Effect = rollout.Allow
			}
			if name == "all at once" {
				require.Empty(t, tc.waived)
			}
			require.Empty(t, cmp.Diff(want, v.Of(ramp().ID)), "a waived finding is still shown")
			require.Equal(t, rollout.Allow, v.Spec.Effect)
			require.Equal(t, tc.spec, rulesOf(v.Spec))
			for _, f := range v.Spec.Findings {
				require.Contains(t, f.Message, "waiver w")
			}
		})
	}
}

func TestWhatIsWaived(t *testing.T) {
	e := Compile(Config{Waivable: []string{"acme.*", "policy.*", "policy.error"}, Modules: policytest.Modules(
		policytest.Rules("rollback contains {\"rule\": \"acme.back\", \"msg\": \"m\"}"),
		"package rampart.drift\n\naction contains {\"rule\": \"acme.drift\", \"msg\": \"m\", \"action\": \"hold\"}\n",
		"package rampart.spec\n\ndeny contains {\"rule\": \"acme.spec\", \"msg\": \"m\"}\n",
		"package rampart.sunset\n\nwarn contains {\"rule\": \"x\", \"msg\": \"m\"} if to_number(\"x\") > 0\n")})
	s := snapshot(t)
	keep := rollout.Action{ID: "keep", Kind: rollout.Continue, BuildID: "v3", From: 10, To: 10}
	drift := rollout.Action{ID: "drift", Kind: rollout.DriftAction, BuildID: "v3", Drift: &rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftHigher}}
	down := rollout.Action{ID: "down", Kind: rollout.ScaleDown, BuildID: "v1"}
	before := e.Judge(t.Context(), s, proposal(keep, drift, down))
	require.Equal(t, rollout.RollbackEffect, before.Of("keep").Effect)
	require.Equal(t, rollout.DriftHold, before.Of("drift").Drift)
	require.Equal(t, rollout.HoldEffect, before.Spec.Effect)

	s.Waivers = []v1alpha1.Waiver{waiver("back", "acme.back"), waiver("drift", "acme.drift"), waiver("spec", "acme.spec"), waiver("error", "policy.error")}
	after := e.Judge(t.Context(), s, proposal(keep, drift, down))
	require.Equal(t, rollout.Allow, after.Of("keep").Effect)
	require.Equal(t, rollout.DriftRevert, after.Of("drift").Drift, "the library's answer")
	require.Equal(t, rollout.Allow, after.Spec.Effect)
	require.Equal(t, rollout.HoldEffect, after.Of("down").Effect, "what policies fail with can't be waived")
	require.Equal(t, rollout.Warn, rulesOf(after.Spec)["waiver.refused"])
}
