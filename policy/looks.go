package policy

import (
	"fmt"
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
// does. The library's own rule about references counts where it is configured, and that about candidates as
// lookAtCounts has it.
func (b *rulebook) lookBehind(configured map[string]bool, data map[string]any) {
	c := b.all.compiler
	if c == nil || c.Failed() {
		b.lookAtCounts(data)
		for _, phase := range []rollout.CanaryPhase{rollout.PhaseNone, rollout.PhaseRamp, rollout.PhaseBake} {
			b.looks[rollout.PartCounts(phase)] = true // what a library that does not compile looks at is not known
		}
		return
	}
	b.looks[input.References], b.looks[rollout.PartCluster] = configured[input.RuleReferences], false
	for pkg := range parse.Contract() {
		all := c.GetRulesWithPrefix(ast.MustParseRef("data." + pkg))
		ours := func(r *ast.Rule) bool { return r.Location != nil && b.ours[r.Location.File] }
		others := slices.DeleteFunc(slices.Clone(all), ours)
		if looksBehind(c, others, input.References) {
			b.looks[input.References] = true
		}
		if looksBehind(c, all, rollout.PartCluster) {
			b.looks[rollout.PartCluster] = true
		}
		library := slices.DeleteFunc(slices.Clone(all), func(r *ast.Rule) bool { return !ours(r) })
		if (b.only == nil || b.only[ruleCanary]) && looksBehind(c, library, partCanary) {
			b.lookAtCounts(data)
		}
		canary := looksBehind(c, others, partCanary)
		versions := looksBehind(c, others, partVersions) || looksBehind(c, others, partFirstRead)
		for _, phase := range rollout.CanaryPhases() {
			// Versions have counts of their own. In the rollback window they never had them for that alone.
			if canary || versions && phase != rollout.PhaseWindow {
				b.looks[rollout.PartCounts(phase)] = true
			}
		}
	}
}

// The parts of the input that have counts, and the library's rule that looks at them.
const (
	partCanary   = "canary"
	partVersions = "versions"
	// partFirstRead has versions, too.
	partFirstRead = "firstRead"
	ruleCanary    = "rollout.canary"
)

// lookAtCounts notes in which phases the library's rule about candidates looks at counts. These are the phases that it
// is given, and with minSamples all in which a version with traffic may get more.
func (b *rulebook) lookAtCounts(data map[string]any) {
	phases := configuredAt(data, "rollout", "canary", "phases")
	given := parse.ValueAt(data, []string{"rampart", "config", "rollout", "canary", "phases"})
	if given != nil && phases == nil {
		for _, phase := range rollout.CanaryPhases() { // without a list it may have any
			phases = append(phases, phase)
		}
	}
	for _, phase := range phases {
		b.looks[rollout.PartCounts(rollout.CanaryPhase(fmt.Sprint(phase)))] = true
	}
	least := parse.ValueAt(data, []string{"rampart", "config", "rollout", "canary", "minSamples"})
	if least != nil && fmt.Sprint(least) != "0" {
		b.looks[rollout.PartCounts(rollout.PhaseRamp)], b.looks[rollout.PartCounts(rollout.PhaseBake)] = true, true
	}
}

// looksBehind reports whether one of some rules, or of those that they lean on, may look at a part of the input.
func looksBehind(c *ast.Compiler, rules []*ast.Rule, part string) bool {
	return anyBehind(c, rules, func(r *ast.Rule) bool { return ruleLooksAt(r, part) })
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
		if looksBehind(c, clauses, part) {
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
