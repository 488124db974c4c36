package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// DecodeJSON reads one JSON value (RFC 8259): as a map[string]any, []any, string, bool, nil, or json.Number with a
// number as it is written. Most of what is judged and rendered comes this way; the library, which is asked about all
// that jsonReader does not read, takes four times as long. Errors: what is wrong with the text, or that there is more
// behind the value.
func DecodeJSON(raw []byte) (any, error) {
	r := jsonReader{text: string(raw)}
	if v, ok := r.value(0); ok && r.atEnd() {
		return v, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read JSON: more than one value")
	}
	return v, nil
}

// maxJSONDepth is how deep values are nested that jsonReader reads.
const maxJSONDepth = 500

// jsonReader reads JSON as the library does. Of text that is not JSON, or is nested deeper than any object, it only
// says that it does not read it. Strings are parts of the text.
type jsonReader struct {
	text string
	at   int
}

// next goes to the next byte that is not a space, and returns it; 0 at the end.
func (r *jsonReader) next() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) atEnd() bool {
	r.next()
	return r.at == len(r.text)
}

func (r *jsonReader) value(depth int) (v any, ok bool) {
	switch c := r.next(); {
	case depth > maxJSONDepth:
		return nil, false
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.list(depth)
	case c == '"':
		return r.str()
	case c == 't':
		return true, r.word("true")
	case c == 'f':
		return false, r.word("false")
	case c == 'n':
		return nil, r.word("null")
	}
	from := r.at
	for r.at < len(r.text) && strings.IndexByte("+-.0123456789Ee", r.text[r.at]) >= 0 {
		r.at++
	}
	number := r.text[from:r.at]
	return json.Number(number), json.Valid([]byte(number))
}

func (r *jsonReader) word(word string) bool {
	if !strings.HasPrefix(r.text[r.at:], word) {
		return false
	}
	r.at += len(word)
	return true
}

func (r *jsonReader) object(depth int) (any, bool) {
	out := map[string]any{}
	for r.at++; ; {
		switch c := r.next(); {
		case c == '}' && len(out) == 0:
			r.at++
			return out, true
		case c != '"':
			return nil, false
		}
		key, ok := r.str()
		if !ok || r.next() != ':' {
			return nil, false
		}
		r.at++
		v, ok := r.value(depth + 1)
		if !ok {
			return nil, false
		}
		out[key] = v
		end, ok := r.more('}')
		if !ok || end {
			return out, ok
		}
	}
}

func (r *jsonReader) list(depth int) (any, bool) {
	out := []any{}
	if r.at++; r.next() == ']' {
		r.at++
		return out, true
	}
	for {
		v, ok := r.value(depth + 1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
		end, ok := r.more(']')
		if !ok || end {
			return out, ok
		}
	}
}

// more goes behind a comma, or what closes.
func (r *jsonReader) more(closing byte) (end, ok bool) {
	c := r.next()
	if c != ',' && c != closing {
		return false, false
	}
	r.at++
	return c == closing, true
}

func (r *jsonReader) str() (string, bool) {
	from, escaped, ascii := r.at, false, true
	for r.at++; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			s := r.text[from+1 : r.at-1]
			switch {
			case escaped:
				err := json.Unmarshal([]byte(r.text[from:r.at]), &s)
				return s, err == nil
			case !ascii && !utf8.ValidString(s):
				return "", false
			}
			return s, true
		case c == '\\':
			escaped = true
			r.at++
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}
