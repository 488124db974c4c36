package lint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// strayEnvironments are patterns of environments, among the library's parameters, that are no environment's, and lists
// that are of none at all. What they are meant to protect is not. Whose the floor's patterns are is not known.
func strayEnvironments(cfg policy.Config) []parse.Problem {
	var out []parse.Problem
	for _, list := range environmentLists(cfg.Data) {
		out = append(out, list.empty()...)
		if len(cfg.Environments) > 0 {
			out = append(out, strays(list.Node, cfg.Environments)...)
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
	*parse.Node
}

// environmentLists are those among the library's parameters.
func environmentLists(files []parse.DataFile) []environmentList {
	var out []environmentList
	for _, f := range files {
		root, err := parse.ReadData(f)
		if err != nil || root == nil {
			continue // which is reported where it is loaded
		}
		out = append(out, environmentsIn(root.Fields["rampart"].Field("config"))...)
	}
	return out
}

// empty reports a list that narrows a rule to no environment. Lists of other names, such as gateEnvironments, are empty
// where a rule is off, which is how the library has them.
func (l environmentList) empty() []parse.Problem {
	if l.name != "environments" || l.Items == nil || len(l.Items) > 0 {
		return nil
	}
	p := l.Problemf("environments: [] matches no environment, which turns off what it is in: leave it out for all " +
		"environments, or delete the whole entry")
	p.Check = parse.CheckParameter
	return []parse.Problem{p}
}

// strays are patterns of a list that match no environment. These are all, if the list matches none at all; else those
// that look misspelled, as others may be for environments that are still to come.
func strays(n *parse.Node, names []string) []parse.Problem {
	var out, misspelled []parse.Problem
	for _, item := range n.Items {
		message := stray(item.Value, names)
		if message == "" {
			continue
		}
		p := item.Problemf("%s", message)
		p.Check = parse.CheckParameter
		out = append(out, p)
		if pattern, _ := item.Value.(string); !strings.Contains(pattern, "*") &&
			v1alpha1.Closest(pattern, names) != "" {
			misspelled = append(misspelled, p)
		}
	}
	if len(out) < len(n.Items) {
		return misspelled
	}
	return out
}

// environmentsIn are the lists of patterns of environments below a parameter: environments, and those whose names end
// so.
func environmentsIn(n *parse.Node) []environmentList {
	if n == nil {
		return nil
	}
	var out []environmentList
	for _, key := range slices.Sorted(maps.Keys(n.Fields)) {
		if strings.HasSuffix(strings.ToLower(key), "environments") {
			out = append(out, environmentList{key, n.Fields[key]})
			continue
		}
		out = append(out, environmentsIn(n.Fields[key])...)
	}
	for _, item := range n.Items {
		out = append(out, environmentsIn(item)...)
	}
	return out
}

// stray says what is wrong with a pattern, as the library reads it; "" for nothing.
func stray(value any, names []string) string {
	pattern, ok := value.(string)
	if !ok {
		return "" // which the schema says
	}
	options := []func(*rego.Rego){
		rego.Query(`some name in input.names; data.rampart.library.globs.fits(input.pattern, name)`),
		rego.Input(map[string]any{"names": names, "pattern": pattern}), rego.StrictBuiltinErrors(true)}
	for _, parsed := range parse.Library() {
		if parse.PackageName(parsed) == "rampart.library.globs" {
			options = append(options, rego.ParsedModule(parsed))
		}
	}
	if rs, err := rego.New(options...).Eval(context.Background()); err == nil && len(rs) > 0 {
		return ""
	}
	return fmt.Sprintf("%q matches no environment%s", pattern, parse.Instead(pattern, names))
}
