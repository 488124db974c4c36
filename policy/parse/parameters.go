package parse

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/rego"

	library "github.com/rampart-gitops/rampart/rego"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// parameters are the library's parameters, all files merged, and where they were given.
type parameters struct {
	config  any
	schema  parameterSchema
	sources []*Node
	// violations of the schema, by the parameter's name below rampart.config.
	violations map[string]bool
}

// parameterSchema is what the messages need of config.schema.json. Whether a value is valid is decided by all of it.
type parameterSchema struct {
	Ref                  string                     `json:"$ref"`
	Title                string                     `json:"title"`
	Type                 string                     `json:"type"`
	Enum                 []string                   `json:"enum"`
	Minimum              *float64                   `json:"minimum"`
	Maximum              *float64                   `json:"maximum"`
	Items                *parameterSchema           `json:"items"`
	Properties           map[string]parameterSchema `json:"properties"`
	AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	Required             []string                   `json:"required"`
	AnyOf                []parameterSchema          `json:"anyOf"`
	Dependencies         map[string][]string        `json:"dependencies"`
	Definitions          map[string]parameterSchema `json:"definitions"`
}

// checkConfig checks the library's parameters against their schema, and for what can never take effect. A problem is
// placed where the value was given last.
func checkConfig(data map[string]any, sources []*Node) []Problem {
	root, _ := data["rampart"].(map[string]any)
	p := parameters{config: root["config"], sources: sources, violations: map[string]bool{}}
	var whole any
	for _, into := range []any{&whole, &p.schema} {
		if err := json.Unmarshal([]byte(library.ConfigSchema()), into); err != nil {
			return []Problem{{Path: "config.schema.json", Message: err.Error()}}
		}
	}
	query := rego.New(rego.Query(`[_, errors] = json.match_schema(input.config, input.schema)`),
		rego.Input(map[string]any{"config": p.config, "schema": whole}), rego.StrictBuiltinErrors(true))
	rs, err := query.Eval(context.Background())
	if err != nil || len(rs) != 1 {
		return []Problem{{Path: "config.schema.json",
			Message: fmt.Sprintf("rampart.config could not be checked: %v", err)}}
	}
	found, _ := rs[0].Bindings["errors"].([]any)
	var problems []Problem
	for _, e := range found {
		violation, _ := e.(map[string]any)
		problems = append(problems, p.explain(violation)...)
	}
	problems = append(problems, p.windows()...)
	slices.SortFunc(problems, CompareProblems)
	return slices.Compact(problems)
}

// explain says what a violation of the schema is about: what was given, and what is expected.
func (p *parameters) explain(violation map[string]any) []Problem {
	text := func(key string) string { s, _ := violation[key].(string); return s }
	var keys []string
	p.violations[text("field")] = true
	if field := text("field"); field != "" && !strings.EqualFold(field, "(root)") {
		keys = strings.Split(field, ".")
	}
	value := ValueAt(p.config, keys)
	s, ok := p.schemaAt(keys)
	object, _ := value.(map[string]any)
	switch {
	case !ok:
		return []Problem{p.problem(keys, "%s", text("desc"))}
	case text("type") == "additional_property_not_allowed":
		return p.unknown(keys, s, object)
	case text("type") == "required", text("type") == "missing_dependency":
		return p.incomplete(keys, s, object)
	case text("type") == "number_any_of":
		if len(p.unknown(keys, s, object))+len(p.incomplete(keys, s, object)) > 0 {
			return nil // which says it better
		}
		return []Problem{p.problem(keys, "give %s", s.alternatives())}
	}
	return []Problem{p.problem(keys, "%s is given; expected: %s%s", given(value), p.expected(s),
		didYouMean(value, s.Enum))}
}

// unknown are the keys of an object that there are not.
func (p *parameters) unknown(keys []string, s parameterSchema, object map[string]any) []Problem {
	var out []Problem
	what := []string{"group", "rule"}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if _, ok := s.Properties[key]; ok {
			continue
		}
		kind := "parameter"
		if len(keys) < len(what) {
			kind = what[len(keys)]
		}
		message := fmt.Sprintf("%s: there is no %s %s%s", parameterName(keys), kind, key,
			Instead(key, slices.Collect(maps.Keys(s.Properties))))
		out = append(out, p.nearest(append(slices.Clip(keys), key)).Problemf("%s", message))
	}
	return out
}

// incomplete are the keys that an object lacks.
func (p *parameters) incomplete(keys []string, s parameterSchema, object map[string]any) []Problem {
	var out []Problem
	for _, key := range s.Required {
		if _, ok := object[key]; !ok {
			out = append(out, p.problem(keys, "%s is missing", key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Dependencies)) {
		for _, other := range s.Dependencies[key] {
			_, is := object[key]
			if _, ok := object[other]; is && !ok {
				out = append(out, p.problem(keys, "%s is given without %s", key, other))
			}
		}
	}
	return out
}

// alternatives are sets of keys; one of these sets has to be given.
func (s parameterSchema) alternatives() string {
	var out []string
	for _, a := range s.AnyOf {
		out = append(out, strings.Join(a.Required, " and "))
	}
	slices.SortStableFunc(out, func(a, b string) int { return strings.Count(a, " ") - strings.Count(b, " ") })
	return strings.Join(out[:len(out)-1], ", ") + ", or " + out[len(out)-1]
}

// problem at a parameter.
func (p *parameters) problem(keys []string, format string, args ...any) Problem {
	return p.nearest(keys).Problemf("%s: %s", parameterName(keys), fmt.Sprintf(format, args...))
}

func parameterName(keys []string) string {
	return strings.Join(append([]string{"rampart.config"}, keys...), ".")
}

// nearest is where a parameter was given last, or else what is nearest above it.
func (p *parameters) nearest(keys []string) *Node {
	keys = slices.Concat([]string{"rampart", "config"}, keys)
	best, depth := p.sources[0], -1
	for _, s := range p.sources {
		if n, d := s.nearest(keys); d >= depth {
			best, depth = n, d
		}
	}
	return best
}

// ValueAt follows keys of objects and indexes of lists to a value; nil: there is no such value.
func ValueAt(value any, keys []string) any {
	for _, k := range keys {
		switch v := value.(type) {
		case map[string]any:
			value = v[k]
		case []any:
			i, err := strconv.Atoi(k)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// schemaAt is the schema of a parameter. False: the schema does not name the parameter, such as a label.
func (p *parameters) schemaAt(keys []string) (parameterSchema, bool) {
	s := p.resolve(p.schema)
	for _, k := range keys {
		next, ok := s.Properties[k]
		switch {
		case ok:
		case s.Items != nil:
			next = *s.Items
		case json.Unmarshal(s.AdditionalProperties, &next) != nil:
			return s, false
		}
		s = p.resolve(next)
	}
	return s, true
}

func (p *parameters) resolve(s parameterSchema) parameterSchema {
	if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		return p.schema.Definitions[name]
	}
	return s
}

// expected says in words what a parameter may be.
func (p *parameters) expected(s parameterSchema) string {
	switch {
	case s.Title != "" && s.Type != "object":
		return s.Title
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, ", ")
	case s.Items != nil && p.resolve(*s.Items).Type == "object":
		return "a list of objects"
	case s.Items != nil:
		return "a list of " + p.expected(p.resolve(*s.Items))
	case s.Type == "string":
		return "a text that is not empty"
	case s.Type == "object":
		return "an object"
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%s from %v to %v", s.Type, *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("%s from %v on", s.Type, *s.Minimum)
	}
	return s.Type
}

// given says what somebody wrote.
func given(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case string:
		if len(v) > 100 {
			return "a long text"
		}
		return strconv.Quote(v)
	case []any:
		if len(v) == 0 {
			return "an empty list"
		}
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprint(value)
}

// didYouMean offers the value of a list that is most like a misspelled one.
func didYouMean(value any, values []string) string {
	name, _ := value.(string)
	if near := v1alpha1.Closest(name, values); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}

// Conflicts are parameters of the library that two files of an environment set differently: the later one would replace
// what the earlier one protects. A parameter that both set alike does not conflict; objects are merged, and compared
// key by key.
func Conflicts(files []DataFile) []Problem {
	given := map[string]*Node{}
	var out []Problem
	for _, f := range files {
		root, err := ReadData(f)
		if err != nil || root == nil {
			continue // which is reported where it is loaded
		}
		if config := root.Fields["rampart"].Field("config"); config != nil {
			out = append(out, config.conflicts(nil, given)...)
		}
	}
	return out
}

// conflicts adds what is below a parameter to what files before it gave.
func (n *Node) conflicts(keys []string, given map[string]*Node) []Problem {
	name := parameterName(keys)
	before, twice := given[name]
	if !twice {
		given[name] = n
	}
	switch {
	case twice && (before.Fields == nil || n.Fields == nil) && !reflect.DeepEqual(before.any(), n.any()):
		return []Problem{n.Problemf("%s: %s sets it too, and differently: give it in one place", name,
			Problem{Path: before.path, Line: before.line}.Location())}
	case n.Fields == nil:
		return nil
	}
	var out []Problem
	for _, key := range slices.Sorted(maps.Keys(n.Fields)) {
		out = append(out, n.Fields[key].conflicts(append(slices.Clip(keys), key), given)...)
	}
	return out
}
