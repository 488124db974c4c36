package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers stay as they are written, and of a key that is there twice the last one counts.
func TestDecodeJSON(t *testing.T) {
	got, err := DecodeJSON([]byte(` {"a": -1.50e+3, "b": [true, null, "\u003c\n\\é", {}, []], "c": {"d": 1}, "c": 2} `))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": json.Number("-1.50e+3"), "b": []any{true, nil, "<\n\\é", map[string]any{}, []any{}}, "c": json.Number("2")}, got)
}

func TestDecodeJSONRefuses(t *testing.T) {
	for _, text := range []string{"", " ", "1\x00", "{", "}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, "[", "[1,]", "[,]", "[1 2]", "[1", `"`, `"\`, `"\q"`, "\"\n\"",
		"tru", "truex", "nul", "01", "1.", "-", "+1", "1e", "1 2", "{}{}", `{"a" 1}`, `{"a":1 "b":2}`, "\x00"} {
		_, err := DecodeJSON([]byte(text))
		require.ErrorContains(t, err, "read JSON: ", "%q", text)
	}
}
