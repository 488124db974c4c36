package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/rego"
)

// strayEnvironments are patterns of environments, among the library's parameters, that are no environment's: what they are meant
// to protect is not.
func strayEnvironments(cfg Config) []Problem {
	if len(cfg.Environments) == 0 {
		return nil
	}
	var out []Problem
	for _, f := range cfg.Data {
		root, err := readData(f)
		if err != nil || root == nil {
			continue // which is reported where it is loaded
		}
		for _, list := range root.fields["rampart"].field("config").environments() {
			out = append(out, list.strays(cfg.Environments)...)
		}
	}
	return out
}

// strays are patterns of a list that match no environment: all, if the list matches none at all; else those that look misspelt, as
// others may be for environments that are still to come.
func (n *dataNode) strays(names []string) []Problem {
	var out, misspelt []Problem
	for _, item := range n.items {
		message := stray(item.value, names)
		if message == "" {
			continue
		}
		p := item.problem("%s", message)
		p.Check = CheckParameter
		out = append(out, p)
		if pattern, _ := item.value.(string); !strings.Contains(pattern, "*") && nearest(pattern, names) != "" {
			misspelt = append(misspelt, p)
		}
	}
	if len(out) < len(n.items) {
		return misspelt
	}
	return out
}

// environments are the lists of patterns of environments below a parameter: environments, and those whose names end so.
func (n *dataNode) environments() []*dataNode {
	if n == nil {
		return nil
	}
	var out []*dataNode
	for _, key := range slices.Sorted(maps.Keys(n.fields)) {
		if strings.HasSuffix(strings.ToLower(key), "environments") {
			out = append(out, n.fields[key])
			continue
		}
		out = append(out, n.fields[key].environments()...)
	}
	for _, item := range n.items {
		out = append(out, item.environments()...)
	}
	return out
}

// stray says what is wrong with a pattern, as glob.match of the library's policies reads it; "" for nothing.
func stray(value any, names []string) string {
	pattern, ok := value.(string)
	if !ok {
		return "" // which the schema says
	}
	rs, err := rego.New(rego.Query(`some name in input.names; glob.match(input.pattern, [], name)`),
		rego.Input(map[string]any{"names": names, "pattern": pattern}), rego.StrictBuiltinErrors(true)).Eval(context.Background())
	switch {
	case err != nil:
		return fmt.Sprintf("%q is no pattern of environments", pattern)
	case len(rs) == 0:
		return fmt.Sprintf("%q matches no environment%s", pattern, instead(pattern, names))
	}
	return ""
}
