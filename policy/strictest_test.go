package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/rego"
)

// contribution is a rule of somebody's: of the library, of an organization, or of the repository.
type contribution struct{ pkg, set, action string }

func (c contribution) source(name string) string {
	action := ""
	if c.action != "" {
		action = fmt.Sprintf(", \"action\": %q", c.action)
	}
	return fmt.Sprintf("package %s\n\n%s contains {\"rule\": %q, \"msg\": \"so\"%s}\n", c.pkg, c.set, name, action)
}

// judged is the verdict where the first contribution is the library's and the others come from modules of their own,
// whatever their order.
func judged(t *testing.T, a rollout.Action, all ...contribution) rollout.Verdict {
	t.Helper()
	var first rollout.Verdict
	for turn := range all {
		cfg := Config{Library: rego.Modules()}
		for i := range all {
			source := all[(i+turn)%len(all)].source(fmt.Sprintf("rule.%d", (i+turn)%len(all)))
			if i == 0 {
				cfg.Library = append(cfg.Library, parse.Module{Path: "rampart/extra.rego", Source: source})
				continue
			}
			cfg.Modules = append(cfg.Modules, parse.Module{Path: fmt.Sprintf("team%d/p.rego", i), Source: source})
		}
		e := Compile(cfg)
		require.Empty(t, e.Problems())
		v := judge(t, e, a)
		if turn == 0 {
			first = v
		}
		require.Equal(t, first, v, "it does not matter who says it, or in which file")
	}
	return first
}

// TestStrictestOfSeveralWins checks that the strictest finding wins, no matter which module contributes it. The others
// are still shown.
func TestStrictestOfSeveralWins(t *testing.T) {
	testneed.Plain(t)
	rules := func(sets ...string) []contribution {
		var out []contribution
		for _, set := range sets {
			out = append(out, contribution{pkg: parse.PackageRollout, set: set})
		}
		return out
	}
	for _, tc := range []struct {
		sets []string
		want rollout.Effect
	}{
		{[]string{"warn", "warn"}, rollout.Allow},
		{[]string{"warn", "require_approval"}, rollout.RequireApproval},
		{[]string{"require_approval", "require_approval"}, rollout.RequireApproval},
		{[]string{"require_approval", "hold"}, rollout.HoldEffect},
		{[]string{"require_approval", "deny"}, rollout.HoldEffect},
		{[]string{"hold", "deny"}, rollout.HoldEffect},
		{[]string{"warn", "deny", "require_approval"}, rollout.HoldEffect},
		{[]string{"hold", "rollback"}, rollout.RollbackEffect},
		{[]string{"deny", "rollback"}, rollout.RollbackEffect},
		{[]string{"require_approval", "rollback"}, rollout.RollbackEffect},
		{[]string{"warn", "rollback", "hold", "require_approval", "deny"}, rollout.RollbackEffect},
	} {
		t.Run(strings.Join(tc.sets, " "), func(t *testing.T) {
			v := judged(t, ramp(), rules(tc.sets...)...)
			require.Equal(t, tc.want, v.Effect)
			require.Len(t, v.Findings, len(tc.sets))
			for i := 1; i < len(v.Findings); i++ {
				require.GreaterOrEqual(t, v.Findings[i-1].Effect.Strictness(), v.Findings[i].Effect.Strictness(), "the strictest first")
			}
		})
	}
}

// What one package says has no say about what another one is asked about; the spec's verdict is one of its own.
func TestPackagesSpeakForThemselves(t *testing.T) {
	all := []contribution{{pkg: parse.PackageSpec, set: "deny"}, {pkg: parse.PackageRollout, set: "require_approval"}, {pkg: parse.PackageSunset, set: "warn"},
		{pkg: parse.PackageDrift, set: "action", action: "adopt"}}
	v := judged(t, ramp(), all...)
	require.Equal(t, rollout.RequireApproval, v.Effect)
	require.Len(t, v.Findings, 1)
	zero := int32(0)
	v = judged(t, rollout.Action{ID: "down", Kind: rollout.ScaleDown, BuildID: "v1", Replicas: &zero}, all...)
	require.Equal(t, rollout.Allow, v.Effect)
	require.Equal(t, "rampart.sunset", v.Findings[0].Package)

	e := of(all[0].source("a"), all[1].source("b"))
	got := e.Judge(t.Context(), snapshot(t), proposal())
	require.Equal(t, rollout.HoldEffect, got.Spec.Effect)
	require.Equal(t, rollout.RequireApproval, got.Of(ramp().ID).Effect, "the planner combines it with the spec's")
}

// Of several answers to drift the strictest wins too: hold, then revert, then adopt. What would raise is never
// reverted.
func TestStrictestAnswerToDrift(t *testing.T) {
	testneed.Plain(t)
	higher := rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftHigher, Recorded: "a", Actual: "b"}
	lower := rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftLower, Recorded: "a", Actual: "b"}
	manifest := rollout.Drift{Kind: rollout.DriftManifest, Path: "versions/v1/deployment.yaml", Recorded: "a", Actual: "b"}
	for _, tc := range []struct {
		drift   rollout.Drift
		answers []string // beside the library's: revert of what is higher and of manifests, adopt of what is lower
		want    rollout.DriftAnswer
		effect  rollout.Effect
	}{
		{higher, []string{"adopt", "adopt"}, rollout.DriftRevert, rollout.Allow},
		{higher, []string{"adopt", "hold"}, rollout.DriftHold, rollout.HoldEffect},
		{higher, []string{"revert", "adopt", "hold"}, rollout.DriftHold, rollout.HoldEffect},
		{lower, []string{"adopt", "revert"}, rollout.DriftAdopt, rollout.Allow},
		{lower, []string{"revert", "hold"}, rollout.DriftHold, rollout.HoldEffect},
		{manifest, []string{"adopt", "revert"}, rollout.DriftRevert, rollout.Allow},
		{manifest, []string{"adopt", "hold"}, rollout.DriftHold, rollout.HoldEffect},
	} {
		t.Run(fmt.Sprintf("%s %s %v", tc.drift.Kind, tc.drift.Direction, tc.answers), func(t *testing.T) {
			var all []contribution
			for _, answer := range tc.answers {
				all = append(all, contribution{parse.PackageDrift, "action", answer})
			}
			v := judged(t, rollout.Action{ID: "drift", Kind: rollout.DriftAction, BuildID: "v1", Drift: &tc.drift}, all...)
			require.Equal(t, tc.want, v.Drift)
			require.Equal(t, tc.effect, v.Effect)
		})
	}
	warned := judged(t, rollout.Action{ID: "drift", Kind: rollout.DriftAction, BuildID: "v1", Drift: &higher},
		contribution{parse.PackageDrift, "warn", ""}, contribution{parse.PackageDrift, "action", "adopt"})
	require.Equal(t, rollout.DriftRevert, warned.Drift)
	require.Equal(t, rollout.Allow, warned.Effect, "a warning is no answer")
}

// Where one contributor is broken, what the others say still counts: a rollback stays one, and an approval becomes a
// hold.
func TestBrokenContributor(t *testing.T) {
	for _, tc := range []struct {
		set  string
		want rollout.Effect
	}{{"rollback", rollout.RollbackEffect}, {"require_approval", rollout.HoldEffect}, {"warn", rollout.HoldEffect}} {
		e := of(contribution{pkg: parse.PackageRollout, set: tc.set}.source("good"), "package rampart.rollout\n\n)\n")
		v := judge(t, e, ramp())
		require.Equal(t, tc.want, v.Effect, tc.set)
		require.Len(t, v.Findings, 2)
	}
}
