package auditlog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// values are JSON values of some depth without a null.
func values(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]any{true, false}).Draw(t, "bool")
		case 1:
			return rapid.IntRange(0, 3).Draw(t, "number")
		case 2:
			return rapid.SampledFrom([]string{"", "a", `"`, `\`, `[{`, "}]", "\u2028", "é", "<>"}).Draw(t, "text")
		case 3:
			return map[string]any{}
		case 4:
			return rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "list")
		}
		keys := rapid.SampledFrom([]string{"a", "a!", "Z", `a"`, `\`, "é", "<"})
		return rapid.MapOfN(keys, values(depth-1), 0, 4).Draw(t, "object")
	})
}

func nodeOf(t require.TestingT, v any) (*node, string) {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	n, err := parseNode(text)
	require.NoError(t, err)
	return n, string(text)
}

// A patch makes one value of another, by RFC 7386 as others implement it too, and what is read is written as it was.
func TestPatchesGiveBackWhatTheyWereMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, _ := nodeOf(t, values(3).Draw(t, "old"))
		now, text := nodeOf(t, values(3).Draw(t, "now"))
		require.Equal(t, text, string(now.appendJSON(nil)))
		patch := diff(old, now)
		if patch == nil {
			require.Equal(t, string(now.appendJSON(nil)), string(old.appendJSON(nil)))
			return
		}
		require.Equal(t, text, string(merge(old, patch).appendJSON(nil)))
	})
}

// The examples of RFC 7386, appendix A.
func TestMergePatch(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		old, err := parseNode([]byte(c[0]))
		require.NoError(t, err)
		patch, err := parseNode([]byte(" " + strings.ReplaceAll(c[1], ":", " : ") + "\n"))
		require.NoError(t, err)
		require.Equal(t, c[2], string(merge(old, patch).appendJSON(nil)), "%s with %s", c[0], c[1])
	}
}

// FuzzValid: what is taken for JSON is what encoding/json takes for it.
func FuzzValid(f *testing.F) {
	for _, text := range []string{`{"a":[1,-0.5e+7,"\u00e9\n",true,false,null,{}]}`, `[`, `01`, `1.`, `-`, `"\x"`, "\"\x01\"", "\"\xff\"", `{"a":1,}`, ` [ ] `, `[1]]`, ``,
		`"\ud800"`, `{"a" : 1 , "a" : 2}`, `nul`, `1e`, `+1`, `.5`, `"\"`, `[,]`, `{"a"}`, "\ufeff1", "1 2", strings.Repeat("[", 10001) + strings.Repeat("]", 10001)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { require.Equal(t, json.Valid(data), valid(data)) })
}
