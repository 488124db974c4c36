package policy

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// statusesIn are the contexts that modules write out.
func statusesIn(modules []*ast.Module) map[string]bool {
	out := map[string]bool{}
	for _, m := range modules {
		ast.WalkTerms(m, func(t *ast.Term) bool {
			if s, ok := t.Value.(ast.String); ok {
				if context, is := strings.CutPrefix(string(s), rollout.StatusFacts); is && context != "" &&
					!strings.ContainsAny(context, " %") {
					out[context] = true
				}
			}
			return false
		})
	}
	return out
}

// addConfigured adds the contexts that the parameters of rollout.statuses name.
func addConfigured(out map[string]bool, data map[string]any) {
	for _, r := range configuredAt(data, "rollout", "statuses", "required") {
		one, _ := r.(map[string]any)
		if context, _ := one["context"].(string); context != "" {
			out[context] = true
		}
	}
}

// configuredAt gives a list of the library's configuration, by the keys below rampart.config; nil: there is none.
func configuredAt(data map[string]any, keys ...string) []any {
	list, _ := parse.ValueAt(data, append([]string{"rampart", "config"}, keys...)).([]any)
	return list
}
