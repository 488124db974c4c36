package lint

import (
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/policy/parse"
)

// testPrefix is how the names of tests begin.
const testPrefix = "test_"

// misspelledTests finds rules of a file of tests that look like tests, but are not run and that no test uses.
func (c *checker) misspelledTests(m *ast.Module) {
	for _, r := range m.Rules {
		name := headName(r)
		if len(r.Head.Args) > 0 || strings.HasPrefix(name, testPrefix) || strings.HasPrefix(name, "todo_"+testPrefix) {
			continue
		}
		if meant := meantTest(name); meant != "" && !c.usedInTests(name) {
			c.add(parse.CheckTest, r.Location, "%s is not run: the name of a test begins with %s, and nothing uses a "+
				"rule of this name (did you mean %s?)", name, testPrefix, meant)
		}
	}
}

// meantTest is the name of a test whose beginning was misspelled by two letters at most; "": it does not look like one.
func meantTest(name string) string {
	best, meant := 3, ""
	for n := len(testPrefix) - 1; n <= min(len(testPrefix)+1, len(name)-1); n++ {
		if d := levenshtein.ComputeDistance(strings.ToLower(name[:n]), testPrefix); d < best {
			best, meant = d, testPrefix+strings.TrimPrefix(name[n:], "_")
		}
	}
	return meant
}

// usedInTests reports whether a body or a value in a file of tests names a rule.
func (c *checker) usedInTests(name string) bool {
	used := false
	see := func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Var:
			used = used || string(v) == name
		case ast.String: // as in data.shop_test.name
			used = used || string(v) == name
		}
		return used
	}
	for _, m := range c.tests {
		for _, r := range m.Rules {
			for ; r != nil; r = r.Else {
				ast.WalkTerms(r.Body, see)
				for _, t := range []*ast.Term{r.Head.Key, r.Head.Value} {
					if t != nil {
						ast.WalkTerms(t, see)
					}
				}
			}
		}
	}
	return used
}
