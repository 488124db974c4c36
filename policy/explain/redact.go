package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// hidden is shown in place of what may be a secret.
const hidden = `"(hidden)"`

// redactor hides the values of environment variables of specs, wherever a policy carries them. A value that is
// elsewhere in the input too, such as the name of the environment, does not count as a secret.
type redactor struct{ secrets []string }

// leastSecret is how long a value has to be to be hidden within longer text.
const leastSecret = 4

func newRedactor(input ast.Value) *redactor {
	secret, public := map[string]bool{}, map[string]bool{}
	collect(input, secret, public)
	r := &redactor{}
	for s := range secret {
		if !public[s] && s != "" {
			r.secrets = append(r.secrets, s)
		}
	}
	// The longest first: one may be within another.
	slices.SortFunc(r.secrets, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	return r
}

// collect finds the values of environment variables, and all other text.
func collect(v ast.Value, secret, public map[string]bool) {
	switch v := v.(type) {
	case ast.String:
		public[string(v)] = true
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { collect(t.Value, secret, public) })
	case ast.Object:
		variable := isVariable(v)
		v.Foreach(func(k, t *ast.Term) {
			s, ok := t.Value.(ast.String)
			if variable && ok && k.Equal(ast.InternedTerm("value")) {
				secret[string(s)] = true
				return
			}
			collect(t.Value, secret, public)
		})
	}
}

// isVariable reports whether an object is an entry of a container's env: a name, and a value or where it comes from.
func isVariable(o ast.Object) bool {
	if o.Get(ast.InternedTerm("name")) == nil || o.Get(ast.InternedTerm("value")) == nil {
		return false
	}
	other := o.Len() - 2
	if o.Get(ast.InternedTerm("valueFrom")) != nil {
		other--
	}
	return other == 0
}

// secret reports whether a path leads to the value of an environment variable.
func (r *redactor) secret(path ast.Ref) bool {
	n := len(path)
	return n > 3 && path[n-1].Equal(ast.InternedTerm("value")) && path[n-3].Equal(ast.InternedTerm("env"))
}

// value is a value to be shown.
func (r *redactor) value(v ast.Value) ast.Value {
	switch v := v.(type) {
	case ast.String:
		return ast.String(r.text(string(v)))
	case *ast.Array:
		items := make([]*ast.Term, 0, v.Len())
		v.Foreach(func(t *ast.Term) { items = append(items, ast.NewTerm(r.value(t.Value))) })
		return ast.NewArray(items...)
	case ast.Set:
		out := ast.NewSet()
		v.Foreach(func(t *ast.Term) { out.Add(ast.NewTerm(r.value(t.Value))) })
		return out
	case ast.Object:
		variable := isVariable(v)
		out := ast.NewObject()
		v.Foreach(func(k, t *ast.Term) {
			if variable && k.Equal(ast.InternedTerm("value")) {
				out.Insert(k, ast.StringTerm("(hidden)"))
				return
			}
			out.Insert(ast.NewTerm(r.value(k.Value)), ast.NewTerm(r.value(t.Value)))
		})
		return out
	}
	return v
}

func (r *redactor) text(s string) string {
	for _, secret := range r.secrets {
		if s == secret {
			return "(hidden)"
		}
		if len(secret) >= leastSecret {
			s = strings.ReplaceAll(s, secret, "(hidden)")
		}
	}
	return s
}
