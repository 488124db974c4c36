package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// CanonicalJSON gives the one way in which this package writes a JSON value. Keys are sorted by their bytes. There is
// no white space. Strings have the fewest escapes, and none for HTML. Numbers are written by their value. An integer of
// up to 64 bits is its decimal digits. Any other number is the shortest decimal that reads back as the same float64, in
// the form of ECMAScript. So 1, 1.0 and 1e0 are the same, as they are to Kubernetes, and so are 0644 and 420 in YAML.
func CanonicalJSON(data []byte) ([]byte, error) {
	v, err := DecodeJSON(data)
	if err != nil {
		return nil, err
	}
	return appendAny(make([]byte, 0, len(data)), v)
}

func appendAny(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendString(b, v), nil
	case json.Number:
		text, ok := canonicalNumber(string(v))
		if !ok {
			return nil, fmt.Errorf("number %s is out of range", quote(string(v)))
		}
		return append(b, text...), nil
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendAny(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			if b, err = appendAny(b, v[key]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	default:
		return nil, fmt.Errorf("unexpected %T", v)
	}
}

// canonicalNumber rewrites a JSON number. False: the text is not a number, or no float64 holds it.
func canonicalNumber(text string) (string, bool) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(i, 10), true
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return strconv.FormatUint(u, 10), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", false
	}
	return formatFloat(f), true
}

// formatFloat writes a finite number as ECMAScript does, as encoding/json does too.
func formatFloat(f float64) string {
	if f == 0 {
		return "0" // no negative zero
	}
	format := byte('f')
	if a := math.Abs(f); a < 1e-6 || a >= 1e21 {
		format = 'e'
	}
	b := strconv.AppendFloat(nil, f, format, -1, 64)
	// e-09 is written e-9
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-2] == '0' {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return string(b)
}

// appendString writes a JSON string: it escapes only what JSON demands. A byte that is not UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
