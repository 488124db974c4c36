package lint

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// tree is what is below data: the objects of data files, and the packages and rules of modules. A nil tree is a value
// or a rule; the check does not look into it.
type tree map[string]tree

func treeOf(data map[string]any) tree {
	out := tree{}
	for k, v := range data {
		out[k] = nil
		if o, ok := v.(map[string]any); ok {
			out[k] = treeOf(o)
		}
	}
	return out
}

// put adds a path with a tree at its end; a nil end says that the check does not look below it.
func (t tree) put(path []string, end tree) {
	for i, key := range path {
		next, ok := t[key]
		switch {
		case ok && next == nil:
			return
		case i == len(path)-1 && (!ok || end == nil):
			t[key] = end
			return
		case !ok:
			next = tree{}
			t[key] = next
		}
		t = next
	}
}

// missing is the position in a path of the first element that is not there, and what there is instead; -1: all is
// there.
func (t tree) missing(path []string) (int, []string) {
	for i, key := range path {
		next, ok := t[key]
		if !ok {
			return i, slices.Sorted(maps.Keys(t))
		}
		if next == nil {
			break
		}
		t = next
	}
	return -1, nil
}

// dataUse is a reference to data as far as it is constant.
type dataUse struct {
	path []string
	at   *ast.Location
	// optional says that it is asked for with a default.
	optional bool
}

// parameters compares what policies refer to below data with what there is.
func (c *checker) parameters(compiled *ast.Compiler, files []parse.DataFile) {
	if !c.whole {
		return
	}
	there := treeOf(c.data)
	for _, key := range sortedModules(compiled) {
		m := compiled.Modules[key]
		there.put(constant(m.Package.Path), tree{})
		for _, r := range m.Rules {
			there.put(constant(r.Ref().GroundPrefix()), nil)
		}
	}
	var uses []dataUse
	for _, key := range sortedModules(compiled) {
		m := compiled.Modules[key]
		found := dataUses(m)
		if !isTest(m.Package.Location) {
			uses = append(uses, found...)
		}
		switch {
		case isTest(m.Package.Location):
			c.notGiven(there, found, replaced(m))
		case c.checked(m):
			c.notGiven(there, found, nil)
		}
	}
	for _, f := range files {
		node, err := parse.ReadData(f)
		if err == nil && node != nil {
			c.notRead(node, nil, uses)
		}
	}
}

// notGiven reports references to data that does not exist. A reference to what a test replaces is not reported.
func (c *checker) notGiven(there tree, uses []dataUse, replaced [][]string) {
	for _, u := range uses {
		at, others := there.missing(u.path)
		if at < 0 || u.optional || slices.ContainsFunc(replaced, func(p []string) bool { return related(p, u.path) }) {
			continue
		}
		name := u.path[at]
		if at > 0 && strings.HasPrefix(name, sentinel) {
			continue
		}
		others = slices.DeleteFunc(others, func(n string) bool { return strings.HasPrefix(n, sentinel) })
		c.add(parse.CheckParameter, u.at, "data.%s: no data file gives it and no rule is called so%s",
			strings.Join(u.path[:at+1], "."), parse.Instead(name, others))
	}
}

// notRead reports the topmost parts of a data file that no policy refers to.
func (c *checker) notRead(node *parse.Node, path []string, uses []dataUse) {
	for _, key := range slices.Sorted(maps.Keys(node.Fields)) {
		at := append(slices.Clip(path), key)
		whole, part := false, false
		var siblings []string
		for _, u := range uses {
			switch {
			case starts(at, u.path):
				whole = true
			case starts(u.path, at):
				part = true
			case len(u.path) >= len(at) && starts(u.path, path):
				siblings = append(siblings, u.path[len(at)-1])
			}
		}
		field := node.Fields[key]
		switch {
		case whole:
		case part && field.Fields != nil:
			c.notRead(field, at, uses)
		case !part:
			near := v1alpha1.Closest(key, siblings)
			if near != "" {
				near = " (did you mean " + near + "?)"
			}
			p := field.Problemf("%s: no policy refers to it%s", strings.Join(at, "."), near)
			p.Check = parse.CheckParameter
			if meant, found := parse.Misplaced(field, at); meant != "" {
				p = found.Problemf("%s: no policy refers to it: %s is where the library looks%s", strings.Join(at, "."),
					meant, parse.Nested(at))
				p.Check = parse.CheckMisplaced
			}
			c.problems = append(c.problems, p)
		}
	}
}

// starts reports whether a path begins with another.
func starts(path, with []string) bool {
	return len(with) <= len(path) && slices.Equal(path[:len(with)], with)
}

func related(a, b []string) bool { return starts(a, b) || starts(b, a) }

// constant are the elements of a reference below data up to the first that is not a constant text.
func constant(ref ast.Ref) []string {
	out := []string{}
	for _, t := range ref[1:] {
		s, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		out = append(out, string(s))
	}
	return out
}

// dataUses are the references of a compiled module to data.
func dataUses(m *ast.Module) []dataUse {
	var out []dataUse
	for _, r := range m.Rules {
		defaults := defaulted(r)
		ast.WalkTerms(r, func(t *ast.Term) bool {
			ref, ok := t.Value.(ast.Ref)
			if !ok || !ref[0].Equal(ast.DefaultRootDocument) {
				return false
			}
			u := dataUse{path: constant(ref), at: t.Location}
			if keys, ok := defaults[t]; ok && len(u.path) == len(ref)-1 {
				u.path, u.optional = slices.Concat(u.path, keys), true
			}
			if u.at == nil {
				u.at = r.Location
			}
			out = append(out, u)
			return false
		})
	}
	return out
}

// defaulted are the references of a compiled rule that are asked through object.get, and nowhere else, with the keys
// that are asked for below them.
func defaulted(r *ast.Rule) map[*ast.Term][]string {
	times := map[ast.Var]int{}
	values := map[ast.Var]*ast.Term{}
	ast.WalkVars(r, func(v ast.Var) bool {
		times[v]++
		return false
	})
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if e.IsEquality() {
			if v, ok := e.Operand(0).Value.(ast.Var); ok {
				values[v] = e.Operand(1)
			}
		}
		return false
	})
	out := map[*ast.Term][]string{}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if !e.IsCall() || e.Operator().String() != ast.ObjectGet.Name || len(e.Operands()) < 3 {
			return false
		}
		object, keys := e.Operand(0), keysOf(e.Operand(1))
		if v, ok := object.Value.(ast.Var); ok && times[v] == 2 && values[v] != nil { // where it is set, and here
			object = values[v]
		}
		if keys != nil {
			out[object] = keys
		}
		return false
	})
	return out
}

// keysOf the path that object.get is given; nil: it is not constant.
func keysOf(t *ast.Term) []string {
	var out []string
	switch v := t.Value.(type) {
	case ast.String:
		out = []string{string(v)}
	case *ast.Array:
		for i := range v.Len() {
			s, ok := v.Elem(i).Value.(ast.String)
			if !ok {
				return nil
			}
			out = append(out, string(s))
		}
	}
	return out
}

// replaced are the paths below data that the tests of a module give values to.
func replaced(m *ast.Module) [][]string {
	var out [][]string
	ast.WalkWiths(m, func(w *ast.With) bool {
		if ref, ok := w.Target.Value.(ast.Ref); ok && ref[0].Equal(ast.DefaultRootDocument) {
			out = append(out, constant(ref))
		}
		return false
	})
	return out
}

func sortedModules(c *ast.Compiler) []string { return slices.Sorted(maps.Keys(c.Modules)) }
