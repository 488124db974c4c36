package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// misnamed adds to the refusal of a package below rampart which one may have been meant.
func (c *checker) misnamed(m *ast.Module) {
	name := parse.PackageName(m)
	if parse.AllowedPackage(m, name) == nil {
		return
	}
	near := v1alpha1.Closest(name, contractPackages())
	for i, p := range c.problems {
		if near != "" && p.Path == m.Package.Location.File && strings.HasPrefix(p.Message, "package "+name+":") {
			c.problems[i].Check = parse.CheckPackage
			c.problems[i].Message += fmt.Sprintf(" (did you mean %s?)", near)
		}
	}
}

func contractPackages() []string {
	return []string{parse.PackageSpec, parse.PackageRollout, parse.PackageDrift, parse.PackageSunset}
}

// packages finds those that nothing asks and that look as if something did. They do by their name, or by a rule that is
// named like one of the contract's, as conftest's and Gatekeeper's are. A package that another one uses is a helper.
func (c *checker) packages() {
	for _, m := range c.sources {
		name := parse.PackageName(m)
		if parse.AllowedPackage(m, name) != nil || parse.Contract()[name] != nil || c.imported(m) {
			continue
		}
		if meant := meantPackage(m, name); meant != "" {
			c.add(parse.CheckPackage, m.Package.Location,
				"package %s: nothing asks it and nothing uses it (did you mean %s?)", name, meant)
		}
	}
}

// meantPackage is the package of the contract that a module looks as if it were of; "" if it does not.
func meantPackage(m *ast.Module, name string) string {
	for _, p := range contractPackages() {
		if strings.EqualFold(name, strings.TrimPrefix(p, "rampart.")) && hasContractRule(m, p) || alike(name, p) {
			return p
		}
	}
	// which have every rule of the contract between them
	for _, p := range []string{parse.PackageRollout, parse.PackageDrift} {
		if hasContractRule(m, p) {
			return p
		}
	}
	if slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return headName(r) == "violation" }) {
		return parse.PackageRollout // where it is deny
	}
	return ""
}

// alike reports whether a name differs from another by a slip.
func alike(name, other string) bool {
	return v1alpha1.Closest(name, []string{other}) != "" && max(len(name), len(other))-min(len(name), len(other)) <= 2
}

func hasContractRule(m *ast.Module, pkg string) bool {
	return slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return setOf(pkg, headName(r)) != nil })
}

// imported reports whether another policy refers to a module's package, or to what may be it, such as
// data.acme[team].deny.
func (c *checker) imported(m *ast.Module) bool {
	for _, other := range c.sources {
		if other.Package.Path.Equal(m.Package.Path) {
			continue
		}
		used := false
		refers := ast.NewGenericVisitor(func(x any) bool {
			if _, ok := x.(*ast.Package); ok {
				return true // it names itself
			}
			if r, ok := x.(ast.Ref); ok {
				used = used || leadsTo(r, m.Package.Path)
			}
			return used
		})
		refers.Walk(other)
		if used {
			return true
		}
	}
	return false
}

// leadsTo reports whether a reference is to a package, to what is in it, or to what it is in.
func leadsTo(r, pkg ast.Ref) bool {
	if len(r) < 2 || !r[0].Equal(pkg[0]) {
		return false
	}
	for i := 1; i < min(len(r), len(pkg)); i++ {
		if _, ok := r[i].Value.(ast.String); ok && !r[i].Equal(pkg[i]) {
			return false
		}
	}
	return true
}

func headName(r *ast.Rule) string {
	if v, ok := r.Head.Ref()[0].Value.(ast.Var); ok {
		return string(v)
	}
	return ""
}

// setOf finds a contract rule; nil if the package has none of that name.
func setOf(pkg, name string) *parse.RuleSet {
	for _, set := range parse.Contract()[pkg] {
		if set.Name == name {
			return &set
		}
	}
	return nil
}

func setNames(pkg string) []string {
	var out []string
	for _, set := range parse.Contract()[pkg] {
		out = append(out, set.Name)
	}
	return out
}

// contractRules checks how the contract rules of a module are written.
func (c *checker) contractRules(m *ast.Module) {
	pkg := parse.PackageName(m)
	for _, r := range m.Rules {
		set := setOf(pkg, headName(r))
		if set == nil {
			continue
		}
		if r.Head.RuleKind() != ast.MultiValue || len(r.Head.Ref()) > 1 || len(r.Head.Args) > 0 {
			c.add(parse.CheckShape, r.Location, "%s is not a set: write %s contains {\"rule\": …, \"msg\": …} if …",
				set.Name, set.Name)
			c.conflicts(m, set.Name)
			continue
		}
		c.finding(set, r)
	}
}

// conflicts takes back that a rule is in conflict with the library's: that it is not a set says it better.
func (c *checker) conflicts(m *ast.Module, set string) {
	about := fmt.Sprintf("conflicting rules data.%s.%s", parse.PackageName(m), set)
	c.problems = slices.DeleteFunc(c.problems, func(p parse.Problem) bool {
		return p.Check == "" && p.Path == m.Package.Location.File && strings.Contains(p.Message, about)
	})
}

// finding checks the object that a rule adds to its set as far as it is written out.
func (c *checker) finding(set *parse.RuleSet, r *ast.Rule) {
	o, ok := written(r, r.Head.Key).Value.(ast.Object)
	if !ok {
		return // its type tells more
	}
	for _, key := range []string{"rule", "msg"} {
		v := o.Get(ast.StringTerm(key))
		if v == nil {
			continue
		}
		if s, ok := written(r, v).Value.(ast.String); ok && s == "" {
			c.add(parse.CheckShape, r.Location, "%s has an empty %s", set.Name, key)
		}
	}
	if set.Name != parse.SetAction {
		return
	}
	answers := []string{string(rollout.DriftRevert), string(rollout.DriftAdopt), string(rollout.DriftHold)}
	if v := o.Get(ast.StringTerm(parse.SetAction)); v != nil {
		if s, ok := written(r, v).Value.(ast.String); ok && !slices.Contains(answers, string(s)) {
			c.add(parse.CheckShape, r.Location, "action answers %q; it may be revert, adopt or hold", string(s))
		}
	}
}

// written follows a variable to the term that the rule's body assigns to it.
func written(r *ast.Rule, t *ast.Term) *ast.Term {
	v, ok := t.Value.(ast.Var)
	if !ok {
		return t
	}
	for _, e := range r.Body {
		if e.IsAssignment() && e.Operand(0).Value.Compare(v) == 0 {
			return e.Operand(1)
		}
	}
	return t
}

// findingNames finds names that are the library's in what others report.
func (c *checker) findingNames(m *ast.Module) {
	ast.WalkRules(m, func(r *ast.Rule) bool {
		ast.WalkTerms(r, func(t *ast.Term) bool {
			o, ok := t.Value.(ast.Object)
			if !ok || o.Get(ast.StringTerm("msg")) == nil {
				return false
			}
			name := o.Get(ast.StringTerm("rule"))
			if name == nil {
				return false
			}
			s, _ := written(r, name).Value.(ast.String)
			switch {
			case slices.Contains(c.reserved, string(s)):
				c.add(parse.CheckName, name.Location, "%s is a rule of the library: report under a name of your own",
					string(s))
			case strings.HasPrefix(string(s), "policy."):
				c.add(parse.CheckName, name.Location,
					"%s: names that begin with policy. are what the engine reports under", string(s))
			}
			return false
		})
		return false
	})
}

// typed are the policies, each with a rule more for each contract rule: its type is what that one rule adds to its set.
func (c *checker) typed() []*ast.Module {
	out := make([]*ast.Module, 0, len(c.policies))
	for _, m := range c.policies {
		copied := m.Copy()
		for i, r := range m.Rules {
			if setOf(parse.PackageName(m), headName(r)) == nil || r.Head.RuleKind() != ast.MultiValue ||
				len(r.Head.Ref()) > 1 || len(r.Head.Args) > 0 {
				continue
			}
			more := r.Copy()
			more.Module = copied
			more.Head.Name = ast.Var(typedName(m, i))
			more.Head.Reference = ast.Ref{ast.VarTerm(typedName(m, i)).SetLocation(r.Location)}
			copied.Rules = append(copied.Rules, more)
		}
		out = append(out, copied)
	}
	return out
}

// typedName is unique among the modules, which may share a package.
func typedName(m *ast.Module, i int) string {
	return fmt.Sprintf("%s%x_%d", sentinel, m.Package.Location.File, i)
}

// types reports type errors, and contract rules whose findings are of the wrong type.
func (c *checker) types(compiled *ast.Compiler) {
	for _, e := range compiled.Errors {
		kind := parse.CheckType
		switch e.Details.(type) {
		case *ast.RefErrInvalidDetail, *ast.RefErrUnsupportedDetail:
			kind = parse.CheckInput
		}
		c.add(kind, e.Location, "%s", typeError(e))
	}
	for _, m := range c.policies {
		for i, r := range m.Rules {
			path := m.Package.Path.Append(ast.StringTerm(typedName(m, i)))
			set, ok := compiled.TypeEnv.GetByRef(path).(*types.Set)
			if !ok {
				continue
			}
			name := headName(r)
			switch wrong := wrongFinding(set.Of()); {
			case wrong != "":
				c.add(parse.CheckShape, r.Location,
					"%s has %s where an object with the strings rule and msg is expected", name, wrong)
			case name == parse.SetAction && lacks(set.Of(), parse.SetAction):
				c.add(parse.CheckShape, r.Location, "action has an object without an action (revert, adopt or hold)")
			}
		}
	}
}

// wrongFinding says what is wrong with the type of a finding; "" if it may be one.
func wrongFinding(t types.Type) string {
	if either, ok := t.(types.Any); ok {
		for _, one := range either {
			if wrongFinding(one) == "" {
				return ""
			}
		}
		if len(either) == 0 {
			return ""
		}
		return wrongFinding(either[0])
	}
	o, ok := t.(*types.Object)
	if !ok {
		return kindOf(t)
	}
	for _, key := range []string{"rule", "msg"} {
		if lacks(t, key) {
			return "an object without " + key
		}
		if v := o.Select(key); v != nil && !mayBe(v, types.S) {
			return fmt.Sprintf("an object whose %s is %s", key, kindOf(v))
		}
	}
	return ""
}

// lacks reports whether an object can never have a key.
func lacks(t types.Type, key string) bool {
	o, ok := t.(*types.Object)
	return ok && o.Select(key) == nil
}

func mayBe(t, one types.Type) bool {
	if either, ok := t.(types.Any); ok {
		return len(either) == 0 || either.Contains(one)
	}
	return types.Compare(t, one) == 0
}

// kindOf is a type in words, without its parts.
func kindOf(t types.Type) string {
	name := "a value"
	switch t.(type) {
	case types.String:
		name = "a string"
	case types.Number:
		name = "a number"
	case types.Boolean:
		name = "a boolean"
	case types.Null:
		name = "null"
	case *types.Array:
		name = "an array"
	case *types.Set:
		name = "a set"
	case *types.Object:
		name = "an object"
	}
	return name
}

// unread finds rules in the packages that are asked which nothing reads.
func (c *checker) unread(compiled *ast.Compiler) {
	if !c.whole {
		return
	}
	said := map[string]bool{}
	for _, key := range sortedModules(compiled) {
		m := compiled.Modules[key]
		pkg := parse.PackageName(m)
		if parse.Contract()[pkg] == nil || !c.checked(m) {
			continue
		}
		for _, r := range m.Rules {
			name := string(r.Ref()[len(m.Package.Path)].Value.(ast.String))
			if setOf(pkg, name) != nil || strings.HasPrefix(name, sentinel) || readByRule(compiled, r) ||
				said[pkg+"."+name] {
				continue
			}
			said[pkg+"."+name] = true
			c.add(parse.CheckRule, r.Location, "%s.%s: nothing asks for this rule and none uses it%s", pkg, name,
				parse.Instead(name, setNames(pkg)))
		}
	}
}

// readByRule reports whether a rule outside of tests refers to a rule of the same name.
func readByRule(compiled *ast.Compiler, r *ast.Rule) bool {
	for _, same := range compiled.GetRulesExact(r.Ref().GroundPrefix()) {
		for d := range compiled.Graph.Dependents(same) {
			if by, ok := d.(*ast.Rule); ok && !isTest(by.Location) && !by.Ref().Equal(r.Ref()) {
				return true
			}
		}
	}
	for d := range compiled.Graph.Dependents(r) {
		if by, ok := d.(*ast.Rule); ok && !isTest(by.Location) {
			return true
		}
	}
	return false
}
