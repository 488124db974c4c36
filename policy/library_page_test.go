package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/rego"
)

const libraryPage = "../docs/policy-library.md"

// TestLibraryPage: docs/policy-library.md says what the annotations, the defaults and the schema of the library say.
func TestLibraryPage(t *testing.T) {
	want := newLibraryBook(t).page()
	if *update {
		require.NoError(t, os.WriteFile(libraryPage, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(libraryPage)
	require.NoError(t, err)
	require.Equal(t, strings.Split(want, "\n"), strings.Split(string(got), "\n"), "run the test with -update")
}

// schema is the part of JSON Schema that the schema of the parameters is written in.
type schema struct {
	Ref         string            `json:"$ref"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Type        string            `json:"type"`
	Enum        []string          `json:"enum"`
	Minimum     *float64          `json:"minimum"`
	Maximum     *float64          `json:"maximum"`
	Items       *schema           `json:"items"`
	Required    []string          `json:"required"`
	Properties  map[string]schema `json:"properties"`
	Definitions map[string]schema `json:"definitions"`
}

// part is what one annotation says of a rule of the library.
type part struct {
	title, description string
	parameters         map[string]string
}

// libraryRule is one rule: all annotations that name it, and the sets that it adds to.
type libraryRule struct {
	name, pkg, file string
	parts           []part
	sets            []string
}

type libraryBook struct {
	t        *testing.T
	rules    []libraryRule
	schema   schema
	defaults map[string]any
}

func newLibraryBook(t *testing.T) *libraryBook {
	t.Helper()
	b := &libraryBook{t: t}
	require.NoError(t, json.Unmarshal([]byte(rego.ConfigSchema()), &b.schema))
	data, problems := parse.LoadData(nil)
	require.Empty(t, problems)
	b.defaults = data["rampart"].(map[string]any)["config"].(map[string]any)
	byName := map[string]*libraryRule{}
	for _, m := range rego.Modules() {
		parsed, err := ast.ParseModuleWithOpts(m.Path, m.Source, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		require.NoError(t, err)
		pkg := parse.PackageName(parsed)
		if _, asked := parse.Contract()[pkg]; !asked {
			continue
		}
		for _, a := range parsed.Annotations {
			name := a.Custom["rule"].(string)
			if byName[name] == nil {
				byName[name] = &libraryRule{name: name, pkg: pkg, file: strings.TrimPrefix(m.Path, "rampart/")}
			}
			require.NotEmpty(t, a.Description, name)
			p := part{title: a.Title, description: a.Description, parameters: map[string]string{}}
			for parameter, text := range a.Custom["parameters"].(map[string]any) {
				p.parameters[parameter] = text.(string)
			}
			byName[name].parts = append(byName[name].parts, p)
		}
		for _, r := range parsed.Rules {
			require.NotNil(t, r.Head.Key, "%s: %s", m.Path, r)
			rule, _ := input.Text(r.Head.Key.Value.(ast.Object), "rule")
			require.Contains(t, byName, rule, m.Path)
			byName[rule].sets = append(byName[rule].sets, string(r.Head.Ref()[0].Value.(ast.Var)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		b.rules = append(b.rules, *byName[name])
	}
	order := []string{parse.PackageRollout, parse.PackageSunset, parse.PackageDrift, parse.PackageSpec}
	slices.SortStableFunc(b.rules, func(x, y libraryRule) int {
		return cmp.Compare(slices.Index(order, x.pkg), slices.Index(order, y.pkg))
	})
	return b
}

// effects of a rule: the sets that it adds to, the strictest first.
func (r libraryRule) effects() string {
	var out []string
	for _, set := range parse.Contract()[r.pkg] {
		if slices.Contains(r.sets, set.Name) {
			out = append(out, "`"+set.Name+"`")
		}
	}
	return strings.Join(out, ", ")
}

func (b *libraryBook) page() string {
	var w strings.Builder
	w.WriteString(`# The policy library

<!-- Written by: go test ./policy -run TestLibraryPage -update. What it says is in rego/: annotations, data.yaml, config.schema.json. -->

These rules are part of Rampart and always asked. Their parameters are below ` + "`rampart.config`" + ` in the environment's data files, and are
checked: a misspelled group, rule or parameter, or a value that makes no sense, holds every raise, and ` + "`rampart validate`" + ` shows its file
and line.
[policies.md](policies.md) says how policies work, the [guides](guides/README.md) how to use them.

| rule | what | package | says |
| --- | --- | --- | --- |
`)
	for _, r := range b.rules {
		var titles []string
		for _, p := range r.parts {
			titles = append(titles, p.title)
		}
		fmt.Fprintf(&w, "| [`%s`](#%s) | %s | `%s` | %s |\n", r.name, strings.ReplaceAll(r.name, ".", ""), strings.Join(titles, "; "), r.pkg, r.effects())
	}
	for _, r := range b.rules {
		b.rule(&w, r)
	}
	return w.String()
}

func (b *libraryBook) rule(w *strings.Builder, r libraryRule) {
	fmt.Fprintf(w, "\n## %s\n", r.name)
	for _, p := range r.parts {
		fmt.Fprintf(w, "\n**%s.** %s\n", p.title, wrapped(p.description, len(p.title)+len("**.** ")))
	}
	group, rule, _ := strings.Cut(r.name, ".")
	properties := b.schema.Properties[group].Properties[rule].Properties
	defaults := b.defaults[group].(map[string]any)[rule].(map[string]any)
	fmt.Fprintf(w, "\n| `rampart.config.%s` | type | default | |\n| --- | --- | --- | --- |\n", r.name)
	var items []string
	for _, p := range r.parts {
		for _, name := range slices.Sorted(maps.Keys(p.parameters)) {
			require.Contains(b.t, properties, name, "%s has no schema", r.name)
			value, err := json.Marshal(defaults[name])
			require.NoError(b.t, err)
			fmt.Fprintf(w, "| `%s` | %s | `%s` | %s |\n", name, b.typeOf(properties[name], 0), spaced(string(value)), cell(p.parameters[name]))
			if s := b.itemOf(properties[name]); len(s.Properties) > 0 {
				items = append(items, b.items(name, s))
			}
		}
	}
	w.WriteString(strings.Join(items, ""))
	fmt.Fprintf(w, "\nIts Rego: [%s](../rego/%[1]s)\n", r.file)
}

// items is the table of what an item of a list may have.
func (b *libraryBook) items(parameter string, s schema) string {
	var w strings.Builder
	fmt.Fprintf(&w, "\n| an item of `%s` | type | |\n| --- | --- | --- |\n", parameter)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		require.NotEmpty(b.t, p.Description, "%s.%s", parameter, name)
		required := ""
		if slices.Contains(s.Required, name) {
			required = ", required"
		}
		fmt.Fprintf(&w, "| `%s` | %s%s | %s |\n", name, b.typeOf(p, 0), required, cell(p.Description))
	}
	return w.String()
}

func (b *libraryBook) resolve(s schema) schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		require.Contains(b.t, b.schema.Definitions, name)
		return b.schema.Definitions[name]
	}
	return s
}

func (b *libraryBook) itemOf(s schema) schema {
	if s = b.resolve(s); s.Items == nil {
		return schema{}
	}
	return b.resolve(*s.Items)
}

// typeOf says in words what a parameter may be.
func (b *libraryBook) typeOf(s schema, depth int) string {
	require.Less(b.t, depth, 3)
	s = b.resolve(s)
	switch {
	case s.Title != "":
		return s.Title
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Items != nil:
		return "list of " + b.typeOf(*s.Items, depth+1)
	case s.Type == "object":
		return "objects"
	case s.Type == "string":
		return "text"
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%s from %v to %v", s.Type, *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("%s from %v on", s.Type, *s.Minimum)
	}
	require.NotEmpty(b.t, s.Type)
	return s.Type
}

// spaced writes compact JSON as a person writes it.
func spaced(s string) string { return strings.NewReplacer(",", ", ", ":", ": ").Replace(s) }

// cell is text for a table: one line, the bar escaped.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// wrapped breaks text into lines; the first line begins at a column.
func wrapped(s string, column int) string {
	var w strings.Builder
	for i, word := range strings.Fields(s) {
		switch {
		case i == 0:
		case column+1+len(word) > 120:
			w.WriteString("\n")
			column = -1
		default:
			w.WriteString(" ")
		}
		w.WriteString(word)
		column += 1 + len(word)
	}
	return w.String()
}
