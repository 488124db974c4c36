package policy

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Looks is what the policies may look at.
func (e *Engine) Looks() rollout.Looks {
	out, statuses := rollout.Looks{Parts: map[string]bool{}}, map[string]bool{}
	for _, b := range e.books {
		out.All = out.All || b.looksAll
		for part, looks := range b.looks {
			out.Parts[part] = out.Parts[part] || looks
		}
		maps.Copy(statuses, b.statuses)
	}
	out.Statuses = slices.Sorted(maps.Keys(statuses))
	return out
}

// lookBehind notes of the parts that functions of the library look at, for the policies that call them, whether any
// does. The library's own rule about references counts where it is configured, and that about candidates where its
// phases have the rollback window.
func (b *rulebook) lookBehind(configured map[string]bool, data map[string]any) {
	b.looks[rollout.PartWindow] = slices.Contains(configuredAt(data, "rollout", "canary", "phases"),
		any(string(rollout.PhaseWindow)))
	c := b.all.compiler
	if c == nil || c.Failed() {
		return
	}
	b.looks[input.References] = configured[input.RuleReferences]
	for pkg := range parse.Contract() {
		others := slices.Clone(c.GetRulesWithPrefix(ast.MustParseRef("data." + pkg)))
		others = slices.DeleteFunc(others, func(r *ast.Rule) bool {
			return r.Location != nil && b.ours[r.Location.File]
		})
		for part, named := range map[string]string{input.References: input.References, rollout.PartWindow: "canary"} {
			if anyBehind(c, others, func(r *ast.Rule) bool { return ruleLooksAt(r, named) }) {
				b.looks[part] = true
			}
		}
	}
	b.looks[rollout.PartCluster] = slices.ContainsFunc(slices.Collect(maps.Keys(parse.Contract())),
		func(pkg string) bool {
			return anyBehind(c, c.GetRulesWithPrefix(ast.MustParseRef("data."+pkg)), func(r *ast.Rule) bool {
				return ruleLooksAt(r, rollout.PartCluster)
			})
		})
}

// ClauseLooksAt reports whether a clause of a package may look at a part of the input, such as git. It follows the
// rules that the clause leans on. The location is the clause's, as an Explanation has it. For an unknown clause it
// reports true.
func (e *Engine) ClauseLooksAt(pkg, location, part string) bool {
	found := false
	for _, b := range e.books {
		c := b.all.compiler
		clauses := slices.DeleteFunc(slices.Clone(c.GetRulesWithPrefix(ast.MustParseRef("data."+pkg))),
			func(r *ast.Rule) bool {
				return r.Location == nil || parse.LineOf(r.Location) != location
			})
		found = found || len(clauses) > 0
		if anyBehind(c, clauses, func(r *ast.Rule) bool { return ruleLooksAt(r, part) }) {
			return true
		}
	}
	return !found
}

// ruleLooksAt reports whether a rule may look at a part of the input.
func ruleLooksAt(r *ast.Rule, part string) bool {
	found := false
	visitRefs(r, func() { found = true }, func(_ ast.Ref, named string, ofInput bool) {
		found = found || ofInput && named == part
	})
	return found
}

// visitRefs tells of each reference in a module or a rule. It tells of the input as a whole, and of all others, with
// the part that one of the input names.
func visitRefs(in any, whole func(), ref func(r ast.Ref, part string, ofInput bool)) {
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Var:
			if x.Equal(ast.InputRootDocument.Value) {
				whole()
			}
		case ast.Ref:
			part, ofInput := partOfInput(x)
			ref(x, part, ofInput)
			if ofInput { // the variable of the whole input is its beginning
				for _, t := range x[1:] {
					visitor.Walk(t)
				}
			}
			return ofInput
		}
		return false
	})
	visitor.Walk(in)
}
