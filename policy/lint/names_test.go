package lint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/lint"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// A name that is not found may be warned of only where all are known.
func TestRuleNames(t *testing.T) {
	const head = "package rampart.rollout\n\n"
	for _, tc := range []struct {
		name, module string
		want         []string
		all          bool
	}{
		{"written out", head + `deny contains {"rule": "shop.a", "msg": "no"} if input.action.raises`, []string{"shop.a"}, true},
		{"assigned", head + "deny contains f if {\n\tname := \"shop.b\"\n\tf := {\"rule\": name, \"msg\": \"no\"}\n}", []string{"shop.b"}, true},
		{"two", head + "deny contains {\"rule\": \"shop.a\", \"msg\": \"no\"}\n\nwarn contains {\"rule\": \"shop.c\", \"msg\": \"no\"}", []string{"shop.a", "shop.c"}, true},
		{"made up", head + `deny contains {"rule": concat(".", ["shop", "a"]), "msg": "no"}`, nil, false},
		{"from data", head + `deny contains {"rule": data.shop.name, "msg": "no"}`, nil, false},
		{"by a function", head + "found(name) := {\"rule\": name, \"msg\": \"no\"}\n\ndeny contains found(\"shop.d\")", nil, false},
		{"by another package", head + "deny contains f if some f in data.shop.findings", nil, false},
		{"a helper", "package shop\n\nfindings contains {\"rule\": \"shop.e\", \"msg\": \"no\"}", []string{"shop.e"}, true},
		{"that can't be read", "package shop\n\nfindings {", nil, false},
	} {
		for where, cfg := range map[string]policy.Config{
			"repository": {Modules: []parse.Module{{Path: "p.rego", Source: tc.module}}},
			"bot":        {Floor: []policy.Layer{{Modules: []parse.Module{{Path: "p.rego", Source: tc.module}}}}},
		} {
			got, all := lint.RuleNames(cfg)
			require.Equal(t, tc.all, all, "%s (%s)", tc.name, where)
			require.Subset(t, got, append([]string{"rollout.freeze", "sunset.evidence"}, tc.want...), tc.name)
		}
	}
	names, all := lint.RuleNames(policy.Config{Modules: []parse.Module{{Path: "p_test.rego", Source: head + `deny contains {"rule": "shop.t", "msg": "no"}`}}})
	require.True(t, all)
	require.NotContains(t, names, "shop.t")
}
