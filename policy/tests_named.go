package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/rampart-gitops/rampart/policy/parse"
)

// chosen is the filter for OPA's runner of the tests that an expression matches by the names that people see, such as
// rampart.rollout_test.test_frozen. The runner itself knows them by their references, from data on.
func chosen(modules map[string]*ast.Module, names *regexp.Regexp) string {
	if names == nil {
		return ""
	}
	times := map[string]int{}
	exact := []string{"^$"} // no test is called so
	for _, m := range modules {
		for _, r := range m.Rules {
			ref := testRef(r)
			if ref == nil {
				continue
			}
			plain := m.Package.Path.Extend(ref).String()
			ref = numbered(ref, times[plain])
			times[plain]++
			if names.MatchString(shownName(m, ref)) {
				exact = append(exact, "^"+regexp.QuoteMeta(m.Package.Path.Extend(ref).String())+"$")
			}
		}
	}
	return strings.Join(exact, "|")
}

// shownName is package and name, as a TestResult has them.
func shownName(m *ast.Module, ref ast.Ref) string { return parse.PackageName(m) + "." + ref.String() }

// testRef is the reference of a rule up to the part that makes it a test; nil: the rule is not a test.
func testRef(r *ast.Rule) ast.Ref {
	ref := r.Head.Ref().GroundPrefix()
	for i, term := range ref {
		if name := namePart(term); strings.HasPrefix(name, tester.TestPrefix) ||
			strings.HasPrefix(name, tester.SkipTestPrefix) {
			return ref[:i+1]
		}
	}
	return nil
}

func namePart(t *ast.Term) string {
	switch v := t.Value.(type) {
	case ast.Var:
		return string(v)
	case ast.String:
		return string(v)
	}
	return ""
}

// numbered is the reference of a test of whose name there were some before, as the runner makes it: test_a, test_a#01,
// test_a#02.
func numbered(ref ast.Ref, before int) ast.Ref {
	if before == 0 {
		return ref
	}
	ref = slices.Clone(ref)
	last := len(ref) - 1
	name := fmt.Sprintf("%s#%02d", namePart(ref[last]), before)
	ref[last] = ast.StringTerm(name)
	if last == 0 {
		ref[last] = ast.VarTerm(name)
	}
	return ref
}
