package render

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rampart-gitops/rampart/internal/printable"
)

var (
	// number covers integers and floats of YAML 1.1 and 1.2 with their underscores taken out. These are binary, octal,
	// hexadecimal, base 60, exponents, and what YAML 1.1's own pattern allows beyond that (1.2.3 is a float to it).
	number = regexp.MustCompile(
		`^[-+]?(0([bBoO][-+]?)?[0-7]+|0[xX][0-9a-fA-F]+|[0-9]+(:[0-9]+)+(\.[0-9]*)?|[0-9.]*([eE][-+]?[0-9]+)?)$`)
	date = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?$`)
)

var errNotUTF8 = errors.New("string is not valid UTF-8")

// flowString writes s on one line, plain if no reader could misread it, else in double quotes.
func (e *encoder) flowString(s string) error {
	if plainSafe(s) {
		e.buf = append(e.buf, s...)
		return nil
	}
	if !utf8.ValidString(s) {
		return errNotUTF8
	}
	e.buf = append(e.buf, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			e.buf = append(e.buf, '\\', byte(r))
		case r == '\n':
			e.buf = append(e.buf, `\n`...)
		case r == '\t':
			e.buf = append(e.buf, `\t`...)
		case r == '\r':
			e.buf = append(e.buf, `\r`...)
		case isPrintable(r):
			e.buf = utf8.AppendRune(e.buf, r)
		case r > 0xffff:
			e.buf = fmt.Appendf(e.buf, `\U%08X`, r)
		default:
			e.buf = fmt.Appendf(e.buf, `\u%04X`, r)
		}
	}
	e.buf = append(e.buf, '"')
	return nil
}

// literal writes a text of several lines as a block.
func (e *encoder) literal(s string, indent int) {
	e.buf = append(e.buf, '|')
	text, ended := strings.CutSuffix(s, "\n")
	if !ended {
		e.buf = append(e.buf, '-')
	}
	for line := range strings.SplitSeq(text, "\n") {
		e.buf = append(e.buf, '\n')
		if line != "" {
			e.pad(indent)
			e.buf = append(e.buf, line...)
		}
	}
}

// literalSafe reports whether s is a text of several lines that every reader gets back from a literal block. It does
// not begin with white space (which would set the indentation) nor end in an empty line, and no line ends in white
// space.
func literalSafe(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasSuffix(s, "\n\n") {
		return false
	}
	if c := s[0]; c == ' ' || c == '\t' || c == '\n' {
		return false
	}
	last := rune(0)
	for _, r := range s {
		switch {
		case r == '\n':
			if last == ' ' || last == '\t' {
				return false
			}
		case r == utf8.RuneError || r != '\t' && !isPrintable(r):
			return false
		}
		last = r
	}
	return last != ' ' && last != '\t'
}

// isPrintable reports whether a character stands for itself. The others are control characters, the line breaks that
// only YAML 1.1 knows, and what people would not see in a difference: spaces and marks without a width, and what
// turns the direction of the text.
func isPrintable(r rune) bool {
	return r >= 0x20 && r != 0xA0 && !printable.Hidden(r)
}

// plainSafe reports whether s may be written without quotes, as a key or as a value in a block.
func plainSafe(s string) bool {
	if s == "" || s[len(s)-1] == ' ' {
		return false
	}
	switch s[0] {
	case ' ', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`':
		return false
	case '-':
		if len(s) == 1 || s[1] == ' ' || strings.HasPrefix(s, "---") {
			return false
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ':' && (i+1 == len(s) || s[i+1] == ' '), c == '#' && s[i-1] == ' ', c < 0x20:
			return false
		case c >= 0x7F:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || !isPrintable(r) {
				return false
			}
			i += size - 1
		}
	}
	return !ambiguous(s)
}

// ambiguous reports whether a reader may take the plain s for something other than a string.
func ambiguous(s string) bool {
	switch s[0] {
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '-', '.':
		return numeric(s)
	case '~', '<', '=', 'y', 'Y', 'n', 'N', 't', 'T', 'f', 'F', 'o', 'O':
	default:
		return false
	}
	if len(s) > len("false") {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "yes", "n", "no", "true", "false", "on", "off", "null", "~", "<<", "=":
		return true
	}
	return false
}

// numeric reports whether s may be taken for a number or a date.
func numeric(s string) bool {
	hex := strings.ContainsAny(s, "xX")
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', strings.IndexByte("_+-.:bBeEoOxX", c) >= 0,
			hex && ('a' <= c && c <= 'f' || 'A' <= c && c <= 'F'):
		default: // the many that are no number: hashes, 10m, 1Gi, -v; but for the words
			return infinite(s) || isDate(s)
		}
	}
	return number.MatchString(strings.ReplaceAll(s, "_", "")) || isDate(s)
}

func isDate(s string) bool {
	const year = len("2006")
	return len(s) > year && s[year] == '-' && date.MatchString(s)
}

func infinite(s string) bool {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".inf", ".nan":
		return true
	}
	return false
}
