// Package printable escapes what people cannot see in texts of others. These are control characters, which a terminal
// obeys, characters that change the direction of what follows, and those that take no room. A name that holds one looks
// like another name, and a line like two.
//
// An escape is what JSON has: \u and four hexadecimal digits, twice for characters beyond 16 bits. So JSON with its
// texts escaped is the same JSON. All of it may be used by several goroutines.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// blank are letters, marks and signs that show nothing, beside those of categories that never do.
const blank = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"

// Hidden reports whether a character cannot be seen for what it is. Spaces, tabs and line feeds are not hidden.
func Hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case unicode.Is(unicode.Zs, r):
		return false
	}
	return !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || strings.ContainsRune(blank, r)
}

// Text is text of several lines with what is hidden in it escaped. Bytes that are no UTF-8 become U+FFFD.
func Text(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if !strings.ContainsFunc(s, Hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if Hidden(r) {
			b.Write(escape(nil, r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line is text as one line: spaces, tabs and line ends are one space, and none at its ends. What is hidden in it is
// escaped.
func Line(s string) string {
	return Text(strings.Join(strings.FieldsFunc(s, separates), " "))
}

// separates reports whether a character separates words. Of control characters those that end lines do.
func separates(r rune) bool {
	return unicode.IsSpace(r) || r == '\u2028' || r == '\u2029'
}

// escape appends a character as an escape.
func escape(to []byte, r rune) []byte {
	for _, half := range utf16.AppendRune(nil, r) {
		to = fmt.Appendf(to, `\u%04x`, half)
	}
	return to
}
