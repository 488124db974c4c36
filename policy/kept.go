package policy

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/input"
)

// keptSpecs remembers what was found about specs. A rollout is judged in many cycles, and its spec is the same in all
// of them. Only what the spec's input alone decides is kept: nothing that looks at the time, and nothing that failed.
type keptSpecs struct {
	// timeless says that the rules about specs look at no clock.
	timeless bool
	of       *lru.Cache[keptName, keptSpec]
}

type keptName struct {
	environment string
	deployment  rollout.Name
}

type keptSpec struct {
	subject []input.Field
	found   []rollout.Finding
}

// mostKept is how many specs are remembered: rollouts in motion at a time are few.
const mostKept = 256

func newKeptSpecs() keptSpecs {
	of, _ := lru.New[keptName, keptSpec](mostKept) // no error: the size is above zero
	return keptSpecs{of: of}
}

// keyNow is the part of the input that no two decisions share.
const keyNow = "now"

// recall gives what was found about the spec of a document when it was the same.
func (k *keptSpecs) recall(d *Document) ([]rollout.Finding, bool) {
	was, ok := k.of.Get(keptName{d.environment, d.deployment})
	if !ok || !slices.EqualFunc(was.subject, d.subject, func(a, b input.Field) bool {
		return a.Key == b.Key && (a.Key == keyNow || ast.ValueEqual(a.Value, b.Value))
	}) {
		return nil, false
	}
	return was.found, true
}

func (k *keptSpecs) keep(d *Document, found []rollout.Finding) {
	k.of.Add(keptName{d.environment, d.deployment}, keptSpec{d.subject, found})
}

// timeless reports whether no rule of a package, nor any that those lean on, looks at the time. That is at input.now,
// at the whole input, or at a builtin that answers otherwise another time.
func timeless(c *ast.Compiler, pkg string) bool {
	return !anyBehind(c, c.GetRulesWithPrefix(ast.MustParseRef("data."+pkg)), looksAtTime)
}

// anyBehind reports whether something holds for one of some rules, or of those that they lean on.
func anyBehind(c *ast.Compiler, rules []*ast.Rule, holds func(*ast.Rule) bool) bool {
	seen := map[*ast.Rule]bool{}
	next := slices.Clone(rules)
	for len(next) > 0 {
		r := next[0]
		next = next[1:]
		if seen[r] {
			continue
		}
		seen[r] = true
		if holds(r) {
			return true
		}
		for dependency := range c.Graph.Dependencies(r) {
			next = append(next, dependency.(*ast.Rule))
		}
	}
	return false
}

func looksAtTime(r *ast.Rule) bool {
	found := false
	visitRefs(r, func() { found = true }, func(ref ast.Ref, part string, ofInput bool) {
		b, called := ast.BuiltinMap[ref.String()]
		found = found || ofInput && part == keyNow || called && b.Nondeterministic
	})
	return found
}
