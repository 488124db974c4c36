package v1alpha1

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	template "text/template/parse"
	"unicode"
	"unicode/utf8"
)

// MaxQuery is the length of a metric's query in bytes, and MaxMetrics their number in one spec.
const (
	MaxQuery   = 8 << 10
	MaxMetrics = 20
)

// queryValues are the names of what a query's placeholders stand for: {{ .BuildID }} and so on.
var queryValues = []string{"BuildID", "CurrentBuildID", "Deployment", "Environment", "Name", "Namespace",
	"TemporalNamespace"}

// Query is a parsed PrometheusQuery: text with placeholders, each inside a string literal of the query.
type Query struct {
	// parts alternate: text, placeholder, text, …
	text   []string
	values []placeholder
}

type placeholder struct {
	name string
	// pattern says that the string is a regular expression, since it follows =~ or !~.
	pattern bool
}

// ParseQuery parses a query. It is written like a text/template, and of that only {{ .Name }} is there: who writes a
// spec is half trusted, and a loop in a template would be the bot's. A placeholder has to be inside a string in single
// or double quotes, where its value can be escaped; anywhere else a build ID such as 1-2 would be a difference.
func ParseQuery(text string) (*Query, error) {
	if len(text) > MaxQuery {
		return nil, fmt.Errorf("is longer than %d bytes", MaxQuery)
	}
	tree := template.New("query")
	tree.Mode = template.SkipFuncCheck
	trees := map[string]*template.Tree{}
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		return nil, fmt.Errorf("line %s", strings.TrimPrefix(err.Error(), "template: query:"))
	}
	if len(trees) > 1 || tree.Root == nil {
		return nil, errOnlyValues()
	}
	q, at := &Query{text: []string{""}}, promQL{}
	for _, n := range tree.Root.Nodes {
		switch n := n.(type) {
		case *template.TextNode:
			q.text[len(q.text)-1] += string(n.Text)
			at.read(string(n.Text))
		case *template.ActionNode:
			name, err := valueName(n)
			if err == nil {
				err = at.holds(name)
			}
			if err != nil {
				return nil, err
			}
			q.values = append(q.values, placeholder{name: name, pattern: at.pattern})
			q.text = append(q.text, "")
		default:
			return nil, errOnlyValues()
		}
	}
	if at.quote != 0 {
		return nil, fmt.Errorf("a string that begins with %c does not end", at.quote)
	}
	return q, nil
}

func errOnlyValues() error {
	return fmt.Errorf("may use {{ .%s }} and no other template actions", strings.Join(queryValues, " }}, {{ ."))
}

// valueName is the name in {{ .Name }}.
func valueName(n *template.ActionNode) (string, error) {
	if len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) != 1 || len(n.Pipe.Cmds[0].Args) != 1 {
		return "", errOnlyValues()
	}
	field, ok := n.Pipe.Cmds[0].Args[0].(*template.FieldNode)
	if !ok || len(field.Ident) != 1 {
		return "", errOnlyValues()
	}
	if name := field.Ident[0]; !slices.Contains(queryValues, name) {
		if near := Closest(name, queryValues); near != "" {
			return "", fmt.Errorf("there is no {{ .%s }}: did you mean {{ .%s }}?", name, near)
		}
		return "", fmt.Errorf("has {{ .%s }}, and %w", name, errOnlyValues())
	}
	return field.Ident[0], nil
}

// Render fills values in, by name. One that is needed and is not there, or empty, is an error: a label that equals ""
// is on every series that lacks it.
func (q *Query) Render(values map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString(q.text[0])
	for i, p := range q.values {
		value := values[p.name]
		switch {
		case value == "":
			return "", fmt.Errorf("needs {{ .%s }}, and there is none", p.name)
		case !utf8.ValidString(value):
			return "", fmt.Errorf("{{ .%s }} is not UTF-8", p.name)
		}
		if p.pattern {
			value = regexp.QuoteMeta(value)
		}
		b.WriteString(escape(value))
		b.WriteString(q.text[i+1])
	}
	return b.String(), nil
}

// escape makes a value part of a string literal, whichever quotes it has.
func escape(value string) string {
	var b strings.Builder
	for _, r := range value {
		if r < utf8.RuneSelf && (unicode.IsControl(r) || strings.ContainsRune("\\\"'`", r)) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// promQL follows a query's text as far as it has to be known: whether a place is inside a string, and which.
type promQL struct {
	quote   rune // 0: outside of strings
	escaped bool // the next character of the string is
	comment bool // to the end of the line
	pattern bool // the string follows =~ or !~
	before  [2]rune
}

func (p *promQL) read(text string) {
	for _, r := range text {
		switch {
		case p.comment:
			p.comment = r != '\n'
		case p.escaped:
			p.escaped = false
		case p.quote != 0:
			p.inside(r)
		case r == '#':
			p.comment = true
		case strings.ContainsRune("\"'`", r):
			p.quote = r
			p.pattern = p.before == [2]rune{'=', '~'} || p.before == [2]rune{'!', '~'}
			p.before = [2]rune{}
		case !unicode.IsSpace(r):
			p.before = [2]rune{p.before[1], r}
		}
	}
}

func (p *promQL) inside(r rune) {
	switch {
	case r == p.quote:
		p.quote, p.pattern = 0, false
	case r == '\\' && p.quote != '`':
		p.escaped = true
	}
}

// holds says why a placeholder can't be here, nil if it can.
func (p *promQL) holds(name string) error {
	switch {
	case p.quote == '`':
		return fmt.Errorf("{{ .%s }} is inside ``, where nothing can be escaped: use \"\"", name)
	case p.quote == 0:
		return fmt.Errorf("{{ .%s }} is outside of a string: write it as a label's value, \"{{ .%s }}\"", name, name)
	case p.escaped:
		return errors.New(`a placeholder follows a backslash`)
	}
	return nil
}
