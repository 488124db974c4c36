package lint

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
	library "github.com/rampart-gitops/rampart/rego"
)

// RuleNames are the names that policies report findings under, sorted. They are those of the library, and of other
// modules, the bot's own too, those that are written out. all says that there are no others: that no module makes a
// name or a finding of something else, and that each can be read.
func RuleNames(cfg policy.Config) (names []string, all bool) {
	if cfg.Library == nil {
		cfg.Library = library.Modules()
	}
	for _, m := range cfg.Library {
		names = append(names, ruleNames(m)...)
	}
	all = true
	for _, m := range cfg.Foreign() {
		if library.IsTest(m.Path) {
			continue
		}
		parsed, err := parse.Rego(m)
		if err != nil {
			all = false
			continue
		}
		found, literal := writtenNames(parsed)
		names, all = append(names, found...), all && literal
	}
	slices.Sort(names)
	return slices.Compact(names), all
}

// writtenNames are the names of findings that a module writes out, and whether it writes all that it reports.
func writtenNames(m *ast.Module) (names []string, all bool) {
	all = true
	ast.WalkRules(m, func(r *ast.Rule) bool {
		if setOf(parse.PackageName(m), headName(r)) != nil && r.Head.Key != nil {
			_, literal := written(r, r.Head.Key).Value.(ast.Object)
			all = all && literal
		}
		ast.WalkTerms(r, func(t *ast.Term) bool {
			o, ok := t.Value.(ast.Object)
			if !ok {
				return false
			}
			if name := o.Get(ast.StringTerm("rule")); name != nil {
				s, literal := written(r, name).Value.(ast.String)
				if all = all && literal; literal {
					names = append(names, string(s))
				}
			}
			return false
		})
		return false
	})
	return names, all
}
