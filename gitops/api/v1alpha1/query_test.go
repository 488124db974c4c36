package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

func TestQueryRender(t *testing.T) {
	values := map[string]string{"BuildID": "v1.2-abc", "CurrentBuildID": `a"b'c` + "`d\\e\n", "Namespace": "payments", "Name": "checkout",
		"Deployment": "payments/checkout", "TemporalNamespace": "päyments", "Environment": "\xff"}
	for _, c := range []struct{ query, want, err string }{
		{query: `up`, want: `up`},
		{query: `sum(rate(x{b="{{ .BuildID }}",n='{{.Namespace}}'}[5m]))`, want: `sum(rate(x{b="v1.2-abc",n='payments'}[5m]))`},
		{query: `x{a="{{ .CurrentBuildID }}"}`, want: `x{a="a\x22b\x27c\x60d\x5ce\x0a"}`},
		{query: `x{a='{{ .CurrentBuildID }}'}`, want: `x{a='a\x22b\x27c\x60d\x5ce\x0a'}`},
		{query: `x{a=~"{{ .BuildID }}|w", b!~'{{ .BuildID }}', c!="{{ .BuildID }}"}`,
			want: `x{a=~"v1\x5c.2-abc|w", b!~'v1\x5c.2-abc', c!="v1.2-abc"}`},
		{query: `x{a="\"{{ .Name }}\\{{ .Name }}"} # "`, want: `x{a="\"checkout\\checkout"} # "`},
		{query: "x{a=`b\"`,d=\"{{- .Deployment -}}\"} {{/* nothing */}}# '\n+ y{d='{{ .Deployment }}'}",
			want: "x{a=`b\"`,d=\"payments/checkout\"} # '\n+ y{d='payments/checkout'}"},
		{query: "x{a=`b\\`,c=\"{{ .Name }}\"}", want: "x{a=`b\\`,c=\"checkout\"}"},
		{query: `x{a="{{ .TemporalNamespace }}"}`, want: `x{a="päyments"}`},
		{query: `x{a="{{ .Environment }}"}`, err: "{{ .Environment }} is not UTF-8"},
	} {
		q, err := v1alpha1.ParseQuery(c.query)
		require.NoError(t, err, c.query)
		got, err := q.Render(values)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	q, err := v1alpha1.ParseQuery(`x{a="{{ .CurrentBuildID }}"}`)
	require.NoError(t, err)
	for _, none := range []map[string]string{nil, {"CurrentBuildID": ""}} {
		_, err = q.Render(none)
		require.EqualError(t, err, "needs {{ .CurrentBuildID }}, and there is none")
	}
}

func TestQueryRefused(t *testing.T) {
	const only = "may use {{ .BuildID }}, {{ .CurrentBuildID }}, {{ .Deployment }}, {{ .Environment }}, {{ .Name }}, {{ .Namespace }}, " +
		"{{ .TemporalNamespace }} and no other template actions"
	for query, want := range map[string]string{
		`x{a="{{ .BuildID"}`:                  "line 1: ",
		"\n" + `x{a="{{ end }}"}`:             "line 2: unexpected {{end}}",
		`x{a="{{ .BuildId }}"}`:               "there is no {{ .BuildId }}: did you mean {{ .BuildID }}?",
		`x{a="{{ .Cluster }}"}`:               "has {{ .Cluster }}, and " + only,
		`x{a="{{ . }}"}`:                      only,
		`x{a="{{ BuildID }}"}`:                only,
		`x{a="{{ .BuildID | html }}"}`:        only,
		`x{a="{{ .BuildID.Name }}"}`:          only,
		`x{a="{{ printf "%99999d" 1 }}"}`:     only,
		`x{a="{{ $a := .Name }}"}`:            only,
		`x{a="{{ range 10 }}x{{ end }}"}`:     only,
		`{{ define "a" }}x{{ end }}y`:         only,
		`x - {{ .BuildID }}`:                  "is outside of a string: write it as a label's value",
		`x{a="b"} - {{ .BuildID }}`:           "is outside of a string",
		"x{a=`{{ .BuildID }}`}":               "is inside ``, where nothing can be escaped",
		`x{a="\{{ .BuildID }}"}`:              "follows a backslash",
		`x{a="b}`:                             `a string that begins with " does not end`,
		`x # "` + "\n" + `- {{ .Namespace }}`: "is outside of a string",
		strings.Repeat("x", 8193):             "is longer than 8192 bytes",
		strings.Repeat("{{ if 1 }}", 800):     "line 1: ",
	} {
		_, err := v1alpha1.ParseQuery(query)
		require.ErrorContains(t, err, want, query)
	}
}

// FuzzQuery: whatever the value, what follows a placeholder is read as it was written: a value never ends its string.
func FuzzQuery(f *testing.F) {
	f.Add(`x{a="{{ .BuildID }}",b='c'}`, `"} or y{a="`)
	f.Add(`x{a='{{ .BuildID }}'} # {{ "`, `\`)
	f.Add(`x{a=~"{{ .BuildID }}"}`, "'`\n")
	f.Fuzz(func(t *testing.T, text, value string) {
		q, err := v1alpha1.ParseQuery(text)
		if err != nil {
			return
		}
		got, err := q.Render(map[string]string{"BuildID": value})
		if err != nil {
			return
		}
		plain, err := q.Render(map[string]string{"BuildID": "x"})
		require.NoError(t, err)
		require.Equal(t, literals(plain), literals(got))
	})
}

// literals is a query without what is inside its strings and comments.
func literals(query string) string {
	var out strings.Builder
	for i := 0; i < len(query); i++ {
		c := query[i]
		out.WriteByte(c)
		switch c {
		case '#':
			for i+1 < len(query) && query[i+1] != '\n' {
				i++
			}
		case '"', '\'', '`':
			for i++; i < len(query) && query[i] != c; i++ {
				if query[i] == '\\' && c != '`' {
					i++
				}
			}
			out.WriteByte(c)
		}
	}
	return out.String()
}
