package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	yamlv3 "go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

func TestYAMLQuotesOnlyWhatCouldBeMisread(t *testing.T) {
	plain := []string{
		"a", "worker", "v1.2", "10m", "1Gi", "500m", "-v", "--verbose", "-c=1", "a:b", "http://x/y?z=1", "a#b", "a, b", "x y", "été",
		"on time", "nobody", "yesterday", "payments/checkout", "registry.example.com:5000/a/b@sha256:0f", "v1.2.3-1f0c9a2e",
		"$(HOME)", "a'b", `a"b`, `a\b`, "日本", "😀", "tRuex", "0x", "1h30m", "2024-01", "4-5", "=x", "<<x", "~x",
	}
	quoted := []string{
		"", " ", " a", "a ", "y", "Y", "yes", "Yes", "YES", "n", "no", "NO", "on", "Off", "true", "FALSE", "null", "Null", "~", "<<", "=",
		"0", "1", "-1", "+1", "007", "08", "0o17", "0x1F", "0X1f", "0b11", "1_000", "1e3", "1E-3", ".5", "1.", "1.5", "-.5", "1.2.3",
		"10.0.0.1", ".inf", "-.Inf", "+.INF", ".nan", "190:20:30", "1:30", "2024-01-31", "2024-1-1T00:00:00Z", "2024-01-31 10:00:00",
		"0b-1", "0_x1F", "+", "-", ".", "- a", "---", "--- a", "...", "a: b", "a:", "a #b", "#a", "?", "? a", ":", ": a", ",a",
		"[a", "]", "{{a", "}", "&a", "*a", "!a", "|", ">a", "'a", `"a`, "%a", "@a", "`a", "a\tb", "a\nb ", "\n", "a\rb", "a\x00b", "\x7f",
		"a\u0085b", "\u00a0", "\u2028", "\ufeff", "\uffff",
	}
	for _, s := range plain {
		got, err := YAML(s)
		require.NoError(t, err)
		require.Equal(t, s+"\n", string(got))
	}
	for _, s := range quoted {
		got, err := YAML(s)
		require.NoError(t, err)
		require.Equal(t, byte('"'), got[0], "%q is written as %s", s, got)
		roundTrip(t, s)
	}
}

func TestYAMLForm(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"sorted keys", `{"b":1,"a":{"d":null,"c":[]}}`, "a:\n  c: []\n  d: null\nb: 1\n"},
		{"lists below their key", `{"a":[{"b":1,"c":[2,{}]},[3,[4]]]}`, "a:\n- b: 1\n  c:\n  - 2\n  - {}\n- - 3\n  - - 4\n"},
		{"top list", `[1,"a"]`, "- 1\n- a\n"},
		{"empty", `{}`, "{}\n"},
		{"numbers as written", `[1.50,1e5,-0,12345678901234567890]`, "- 1.50\n- 1e5\n- -0\n- 12345678901234567890\n"},
		{"literal", `{"a":"x\n\n  y\n","b":["p\nq"]}`, "a: |\n  x\n\n    y\nb:\n- |-\n  p\n  q\n"},
		{"literal at the top", `"x\ny"`, "|-\n  x\n  y\n"},
		{"no literal", `[" x\ny","x \ny","x\n\n","x\ry\n"]`, "- \" x\\ny\"\n- \"x \\ny\"\n- \"x\\n\\n\"\n- \"x\\ry\\n\"\n"},
		{"keys", `{"on":1,"a b":2,"a: b":3,"":4,"x\ny":5}`, "\"\": 4\na b: 2\n\"a: b\": 3\n\"on\": 1\n\"x\\ny\": 5\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := v1alpha1.DecodeJSON([]byte(tt.in))
			require.NoError(t, err)
			got, err := YAML(v)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
			roundTrip(t, v)
		})
	}
}

func TestYAMLKeepsIntegersExactly(t *testing.T) {
	for _, n := range []string{"9007199254740993", "-9223372036854775808", "18446744073709551615"} {
		out, err := YAML([]any{json.Number(n)})
		require.NoError(t, err)
		raw, err := yaml.YAMLToJSON(out)
		require.NoError(t, err)
		require.Equal(t, "["+n+"]", string(raw))
		var got []any
		require.NoError(t, yamlv3.Unmarshal(out, &got))
		require.Equal(t, n, fmt.Sprint(got[0]))
	}
}

func TestYAMLOfGoValues(t *testing.T) {
	type inner struct {
		B string `json:"b"`
	}
	got, err := YAML(map[string]any{"s": inner{"<&>"}, "m": map[string]string{"k": "v"}, "i": 3, "f": 0.5, "r": json.RawMessage(`{"x":1.0}`)})
	require.NoError(t, err)
	require.Equal(t, "f: 0.5\ni: 3\nm:\n  k: v\nr:\n  x: 1.0\ns:\n  b: <&>\n", string(got))
}

func TestYAMLRefuses(t *testing.T) {
	deep := any("x")
	for range maxDepth + 2 {
		deep = map[string]any{"a": deep}
	}
	for name, v := range map[string]any{
		"number beyond float64": json.Number("1e400"),
		"no number":             json.Number("0x1F"),
		"empty number":          json.Number(""),
		"not UTF-8":             "a\xff",
		"not UTF-8 in a key":    map[string]any{"a\xff": 1},
		"not UTF-8 in a text":   "a\nb\xff",
		"no JSON":               make(chan int),
		"too deep":              deep,
	} {
		_, err := YAML(map[string]any{"v": v})
		require.Error(t, err, name)
	}
}

func TestYAMLLongKeys(t *testing.T) {
	for _, n := range []int{127, 128, 999, 1000, 1001, 1024, 3000} {
		k := strings.Repeat("k", n)
		roundTrip(t, map[string]any{k: "v", k + " :": map[string]any{"a": []any{map[string]any{k: []any{"x"}}}}, k + "l": []any{"x"}})
	}
}

func TestYAMLRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { roundTrip(t, jsonValue(4).Draw(t, "value")) })
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{`{"a":[1,"yes",null]}`, `"a\nb\n"`, `[[[]],{"":{}}]`, `"0b-1"`, `{"<<":{"a":1}}`, `["-","- -","?","a: "]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := v1alpha1.DecodeJSON(raw)
		if err != nil {
			return
		}
		if _, err := YAML(v); err != nil {
			return // numbers beyond a float64, nesting
		}
		roundTrip(t, v)
	})
}

func FuzzYAMLString(f *testing.F) {
	for _, s := range []string{"yes", "0x_1", "a\n b\n", "\u2028", "1:2", "...", "---\n", "# a", "\t", "<<"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		roundTrip(t, s)
		roundTrip(t, map[string]any{s: []any{s, map[string]any{s: s}}})
	})
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// roundTrip encodes v and reads it back with each reader, our own for manifests among them.
func roundTrip(t tester, v any) {
	t.Helper()
	out, err := YAML(v)
	if err != nil {
		t.Fatalf("encode %#v: %v", v, err)
	}
	check := func(reader string, got any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s cannot read %q: %v", reader, out, err)
		}
		if diff := cmp.Diff(values(v), values(got)); diff != "" {
			t.Fatalf("%s reads %q otherwise (-want +got):\n%s", reader, out, diff)
		}
	}
	raw, err := yaml.YAMLToJSONStrict(out)
	var got any
	if err == nil {
		got, err = v1alpha1.DecodeJSON(raw)
	}
	check("sigs.k8s.io/yaml", got, err)

	got = nil
	err = yamlv3.Unmarshal(out, &got)
	check("go.yaml.in/yaml/v3", got, err)

	if m, ok := v.(map[string]any); ok {
		got, err := parseManifest(string(out))
		check("parseManifest", got, err)
		again, err := YAML(got)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q is written as %q when read again (%v); from %v", out, again, err, m)
		}
	}
}

// values brings numbers to one form, their value.
func values(v any) any {
	switch x := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, v := range x {
			m[k] = values(v)
		}
		return m
	case []any:
		list := make([]any, len(x))
		for i, v := range x {
			list[i] = values(v)
		}
		return list
	case string, bool, nil:
		return v
	}
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		return fmt.Sprintf("no number: %v", v)
	}
	return f
}

// jsonValue generates JSON values, with a liking for strings that look like something else.
func jsonValue(depth int) *rapid.Generator[any] {
	str := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[-+]?[0-9a-fxXoOeE_.:]{0,8}`),
		rapid.StringMatching(`[-?:,\[\]{}#&*!|>'"%@ \n\t\ra~=<]{0,6}`),
		rapid.StringMatching(`([a-z #:-]{0,5}\n){0,4}[a-z ]{0,3}`),
		rapid.StringMatching(`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[Tt ]?([0-9:.]{0,8})Z?`),
		rapid.SampledFrom([]string{"yes", "No", "on", "OFF", "null", "~", "<<", "=", "true", ".inf", ".NaN", "\u0085", "\u2029", "\ufeffx"}),
	)
	scalar := rapid.OneOf(
		rapid.Map(str, func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
		rapid.Map(rapid.Int64(), func(n int64) any { return json.Number(fmt.Sprint(n)) }),
		rapid.Map(rapid.Float64(), func(f float64) any {
			raw, _ := json.Marshal(f)
			return json.Number(raw)
		}),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,4})?([eE][-+]?[0-9]{1,2})?`), func(s string) any { return json.Number(s) }),
	)
	if depth == 0 {
		return scalar
	}
	child := rapid.Deferred(func() *rapid.Generator[any] { return jsonValue(depth - 1) })
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(child, 0, 4), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(str, child, 0, 4), func(m map[string]any) any { return m }),
	)
}
