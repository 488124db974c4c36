package v1alpha1

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// validator holds the rules about values. It looks at an object and, for what was written and where, at its nodes; what
// has a wrong type was reported before and is passed over.
type validator struct {
	*report
}

// require gives a field that has to be there, nil if it is not or has a problem already.
func (v *validator) require(parent *node, key string) *node {
	if parent == nil || parent.kind != objectNode {
		return nil
	}
	field := parent.get(key)
	if field == nil || field.kind == nullNode && !field.bad {
		if slices.ContainsFunc(parent.kids, func(k *node) bool { return k.meant == key }) {
			return nil // it is there, misspelled, and that was said
		}
		at := &node{parent: parent, key: key, line: parent.line, column: parent.column}
		if field != nil {
			at = field
		}
		v.errorf(at, "is required")
		return nil
	}
	if field.bad {
		return nil
	}
	return field
}

// text is require for a string that must not be empty.
func (v *validator) text(parent *node, key string) *node {
	field := v.require(parent, key)
	if field != nil && field.str() == "" {
		v.errorf(field, "must not be empty")
		return nil
	}
	return field
}

// metadata checks the parts of metadata that go into files and to the cluster.
func (v *validator) metadata(n *node) *node {
	metadata := v.require(n, "metadata")
	if namespace := metadata.get("namespace"); namespace.present() && namespace.str() != "" {
		v.label(namespace, "a namespace")
	}
	for _, l := range metadata.get("labels").fields() {
		v.labelKey(l)
		if l.present() && len(validation.IsValidLabelValue(l.text)) > 0 {
			v.errorf(l, "%s is not a label's value: letters, digits and inner . _ -, at most 63 characters",
				quote(l.text))
		}
	}
	for _, a := range metadata.get("annotations").fields() {
		v.labelKey(a)
	}
	return metadata
}

func (v *validator) labelKey(n *node) {
	if len(validation.IsQualifiedName(strings.ToLower(n.key))) > 0 {
		v.errorf(n, "%s is not a key: a domain and / before it if need be, then letters, digits and inner . _ -, at "+
			"most 63 characters",
			quote(n.key))
	}
}

// label checks a name of at most 63 lower-case letters, digits and hyphens.
func (v *validator) label(n *node, what string) bool {
	return v.named(n, validation.IsDNS1123Label(n.str()),
		what+": lower-case letters, digits and inner hyphens, at most 63 characters")
}

// subdomain checks the name of a Kubernetes object that may have dots.
func (v *validator) subdomain(n *node, what string) bool {
	return v.named(n, validation.IsDNS1123Subdomain(n.str()),
		what+": lower-case letters, digits, inner hyphens and dots")
}

// named reports what one of Kubernetes' own checks has turned down, in words shorter than its.
func (v *validator) named(n *node, refused []string, what string) bool {
	if len(refused) == 0 {
		return true
	}
	v.errorf(n, "%s is not %s", quote(n.str()), what)
	return false
}

func (v *validator) matches(n *node, pattern *regexp.Regexp, what string) {
	if n != nil && !pattern.MatchString(n.str()) {
		v.errorf(n, "%s is not %s", quote(n.str()), what)
	}
}

// longestText is how long a free text may be, in bytes.
const longestText = 1000

// printable checks a free text that goes into files and calls: no control characters, and not endless.
func (v *validator) printable(n *node) {
	switch {
	case !n.present():
	case len(n.str()) > longestText:
		v.errorf(n, "is longer than %d bytes", longestText)
	case strings.ContainsFunc(n.str(), unicode.IsControl):
		v.errorf(n, "has control characters")
	}
}

// unique reports items of a list whose field has a value that an earlier item has.
func (v *validator) unique(items []*node, key, what string) {
	seen := make(map[string]*node, len(items))
	for _, item := range items {
		field := item.get(key)
		if field.str() == "" {
			continue
		}
		if first := seen[field.text]; first != nil {
			v.errorf(field, "%s %s is there already, on line %d", what, quote(field.text), first.line)
			continue
		}
		seen[field.text] = field
	}
}

// oneOf checks that exactly one of an object's fields is given, and gives that one.
func (v *validator) oneOf(parent *node, keys ...string) *node {
	if parent == nil || parent.kind != objectNode || parent.bad {
		return nil
	}
	var given []*node
	for _, key := range keys {
		if field := parent.get(key); field != nil && field.kind != nullNode {
			given = append(given, field)
		}
	}
	switch {
	case len(given) == 0:
		v.errorf(parent, "one of %s is required", strings.Join(keys, ", "))
		return nil
	case len(given) > 1:
		last := slices.MaxFunc(given, func(a, b *node) int { return cmp.Compare(a.line, b.line) })
		v.errorf(last, "only one of %s may be given", strings.Join(keys, ", "))
		return nil
	}
	return given[0]
}
