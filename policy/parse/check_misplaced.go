package parse

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	library "github.com/rampart-gitops/rampart/rego"
)

// Misplaced is the parameter that data at a path is meant to be, by its name below rampart.config, and where that is;
// "": none. It is one by the names of a group and a rule, one in the other, or by that of a rule with one of its
// parameters in it.
func Misplaced(node *Node, path []string) (string, *Node) {
	var schema parameterSchema
	if json.Unmarshal([]byte(library.ConfigSchema()), &schema) != nil {
		return "", nil
	}
	// a key may be the whole name, with its dots
	return schema.misplaced(node, strings.Split(strings.Join(path, "."), "."))
}

// Nested says that keys are written one below the other where one of them has a dot.
func Nested(path []string) string {
	if slices.ContainsFunc(path, func(key string) bool { return strings.Contains(key, ".") }) {
		return ", each name a key below the one before"
	}
	return ""
}

func (s parameterSchema) misplaced(node *Node, path []string) (string, *Node) {
	name, above := path[len(path)-1], ""
	if len(path) > 1 {
		above = path[len(path)-2]
	}
	for _, group := range slices.Sorted(maps.Keys(s.Properties)) {
		if rule, ok := s.Properties[group].Properties[name]; ok && (above == group || rule.has(node)) {
			return parameterName([]string{group, name}), node
		}
	}
	for _, key := range slices.Sorted(maps.Keys(node.Fields)) {
		if meant, found := s.misplaced(node.Fields[key], append(slices.Clip(path), key)); meant != "" {
			return meant, found
		}
	}
	return "", nil
}

// has reports whether data gives one of a rule's parameters.
func (s parameterSchema) has(node *Node) bool {
	for key := range node.Fields {
		if _, ok := s.Properties[key]; ok {
			return true
		}
	}
	return false
}
