package printable

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestTextEscapesHiddenCharacters(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"plain\n\ttext, größer, 漢字 🚀": "plain\n\ttext, größer, 漢字 🚀",
		"user\u202etxt.exe":           `user\u202etxt.exe`,
		"a\u2066b\u2069":              `a\u2066b\u2069`,
		"zero\u200bwidth\ufeff":       `zero\u200bwidth\ufeff`,
		"soft\u00adhyphen":            `soft\u00adhyphen`,
		"\x1b[2Jgone\r":               `\u001b[2Jgone\u000d`,
		"next\u0085line\u2028":        `next\u0085line\u2028`,
		"hangul\u3164filler\u034f":    `hangul\u3164filler\u034f`,
		"tag\U000e0041 \ufe0f":        `tag\udb40\udc41 \ufe0f`,
		"no\xffutf8":                  "no\ufffdutf8",
		"no\u00a0break":               "no\u00a0break",
		"private\ue000":               `private\ue000`,
	} {
		require.Equal(t, want, Text(in))
		var b bytes.Buffer
		w := NewWriter(&b)
		n, err := w.Write([]byte(in))
		require.NoError(t, err)
		require.Equal(t, len(in), n)
		if !strings.Contains(in, "\xff") {
			require.Equal(t, want, b.String())
		}
	}
}

func TestLineIsOneLine(t *testing.T) {
	for in, want := range map[string]string{
		" a \n\t b\r\nc ": "a b c", "forged\u2028Rampart-Policy: x": "forged Rampart-Policy: x", "a\u00a0b\u3000c": "a b c", "\u202eabc": `\u202eabc`, "\x00": `\u0000`,
	} {
		require.Equal(t, want, Line(in))
	}
}

// Nothing that Text gives is hidden, and all that cannot be seen is: whatever has no glyph by the Unicode standard.
func TestHidden(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		invisible := unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Join_Control, unicode.Other_Default_Ignorable_Code_Point,
			unicode.Variation_Selector) && r != '\n' && r != '\t'
		if invisible {
			require.True(t, Hidden(r), "%U", r)
		}
	}
	for _, r := range "\n\t aZ~äß漢🚀é€\u00a0" {
		require.False(t, Hidden(r), "%U", r)
	}
}

// JSON whose texts are escaped is the same JSON.
func TestJSONStaysTheSame(t *testing.T) {
	was := map[string]string{"a\u202e": "b\u200b\U000e0041", "c": "\x1b[31m"}
	data, err := json.Marshal(was)
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = NewWriter(&b).Write(data)
	require.NoError(t, err)
	require.NotContains(t, b.String(), "\u202e")
	var is map[string]string
	require.NoError(t, json.Unmarshal(b.Bytes(), &is))
	require.Equal(t, was, is)
}

// Characters that come in parts are whole, and colors stay.
func TestWriterKeepsColorsAndSplitCharacters(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	text := "\x1b[31mbad\x1b[0m \u202e漢\x1b[2J\x1b]0;title\a"
	colors := strings.Index(text, " ")
	_, err := w.Write([]byte(text[:colors]))
	require.NoError(t, err)
	for _, c := range []byte(text[colors:]) {
		n, err := w.Write([]byte{c})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.Equal(t, "\x1b[31mbad\x1b[0m "+`\u202e漢\u001b[2J\u001b]0;title\u0007`, b.String())
	require.Same(t, &b, Under(w))
	require.Same(t, os.Stdout, Under(NewWriter(NewWriter(os.Stdout))))
}
