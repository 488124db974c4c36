package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/rego"
)

// strayEnvironments are patterns of environments, among the library's parameters, that are no environment's, and lists that are of
// none at all: what they are meant to protect is not. Whose the floor's patterns are is not known.
func strayEnvironments(cfg Config) []Problem {
	var out []Problem
	for _, list := range environmentLists(cfg.Data) {
		out = append(out, list.empty()...)
		if len(cfg.Environments) > 0 {
			out = append(out, list.strays(cfg.Environments)...)
		}
	}
	for _, l := range cfg.Floor {
		for _, list := range environmentLists(l.Data) {
			out = append(out, list.empty()...)
		}
	}
	return out
}

// environmentList is a list of patterns of environments among parameters, with its name.
type environmentList struct {
	name string
	*dataNode
}

// environmentLists are those among the library's parameters.
func environmentLists(files []DataFile) []environmentList {
	var out []environmentList
	for _, f := range files {
		root, err := readData(f)
		if err != nil || root == nil {
			continue // which is reported where it is loaded
		}
		out = append(out, root.fields["rampart"].field("config").environments()...)
	}
	return out
}

// empty reports a list that narrows a rule to no environment. Lists of other names, such as gateEnvironments, are empty where a rule is
// off, which is how the library has them.
func (l environmentList) empty() []Problem {
	if l.name != "environments" || l.items == nil || len(l.items) > 0 {
		return nil
	}
	p := l.problem("environments: [] matches no environment, which turns off what it is in: leave it out for all environments, or delete the whole entry")
	p.Check = CheckParameter
	return []Problem{p}
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
func (n *dataNode) environments() []environmentList {
	if n == nil {
		return nil
	}
	var out []environmentList
	for _, key := range slices.Sorted(maps.Keys(n.fields)) {
		if strings.HasSuffix(strings.ToLower(key), "environments") {
			out = append(out, environmentList{key, n.fields[key]})
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
		return fmt.Sprintf("%q is not a pattern of environments", pattern)
	case len(rs) == 0:
		return fmt.Sprintf("%q matches no environment%s", pattern, instead(pattern, names))
	}
	return ""
}
