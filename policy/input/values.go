package input

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Text is the string that an object has under a key; false: it has none.
func Text(o ast.Object, key string) (string, bool) {
	v := o.Get(ast.InternedTerm(key))
	if v == nil {
		return "", false
	}
	s, ok := v.Value.(ast.String)
	return string(s), ok
}

// Article is the name of a term's type with its article, such as "an object".
func Article(t *ast.Term) string {
	name := ast.ValueName(t.Value)
	if strings.ContainsRune("aeiou", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}
