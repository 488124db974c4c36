package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

const (
	// maxDepth bounds the nesting of values; no manifest comes near it, and YAML readers have bounds of their own.
	maxDepth = 500
	// maxSimpleKey is how long a key may be before it needs the explicit form: readers give up after 1024 characters.
	maxSimpleKey = 1000
)

// YAML encodes v canonically, as one document: sorted keys, two spaces, lists not indented below their key, one
// trailing newline. Strings are quoted where a reader of YAML 1.1 or 1.2 could take them for something else. v is
// anything that encodes to JSON; numbers given as json.Number are written as they are. What comes out reads back as the
// same value with sigs.k8s.io/yaml and go.yaml.in/yaml/v3. Errors: values that JSON cannot hold, numbers beyond a
// float64, strings that are not UTF-8, nesting beyond 500.
func YAML(v any) ([]byte, error) {
	text, err := yamlText(v)
	return []byte(text), err
}

// yamlText is YAML as a string.
func yamlText(v any) (string, error) {
	e := &encoder{buf: make([]byte, 0, 4<<10)} // as long as most manifests are
	if err := e.value(v, alone, 0); err != nil {
		return "", fmt.Errorf("encode yaml: %w", err)
	}
	return string(e.buf), nil
}

// place is where a value stands.
type place int

const (
	alone place = iota // the whole document
	behindKey
	behindDash // its first line is that of the list item that it is
)

type encoder struct {
	buf  []byte
	keys []string // a stack, so that sorting the keys of a map costs no allocation of its own
}

func (e *encoder) mapping(m map[string]any, indent int, is place) error {
	if indent > 2*maxDepth {
		return errTooDeep
	}
	base := len(e.keys)
	for k := range m {
		e.keys = append(e.keys, k)
	}
	top := len(e.keys)
	slices.Sort(e.keys[base:top])
	for i := base; i < top; i++ {
		if is != behindDash || i > base {
			e.pad(indent)
		}
		k := e.keys[i]
		if err := e.key(k, indent); err != nil {
			return err
		}
		if err := e.value(m[k], behindKey, indent); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	e.keys = e.keys[:base]
	return nil
}

func (e *encoder) key(k string, indent int) error {
	from := len(e.buf)
	if err := e.flowString(k); err != nil {
		return err
	}
	if len(e.buf)-from > maxSimpleKey {
		e.buf = slices.Insert(e.buf, from, '?', ' ')
		e.buf = append(e.buf, '\n')
		e.pad(indent)
	}
	e.buf = append(e.buf, ':')
	return nil
}

// value writes a value behind what is there already. indent is that of the mapping, or of the list item, that it is in.
func (e *encoder) value(v any, is place, indent int) error {
	v, err := plainValue(v)
	if err != nil {
		return err
	}
	below := indent // of the lines of a mapping or a literal block
	if is == behindKey {
		below += 2
	}
	switch x := v.(type) {
	case map[string]any:
		if len(x) > 0 {
			e.endKey(is, '\n')
			return e.mapping(x, below, is)
		}
	case []any:
		if len(x) > 0 {
			e.endKey(is, '\n')
			return e.sequence(x, indent, is)
		}
	}
	if is == alone {
		below += 2
	}
	e.endKey(is, ' ')
	err = e.scalar(v, below)
	e.buf = append(e.buf, '\n')
	return err
}

// endKey writes what is between a key and its value.
func (e *encoder) endKey(is place, gap byte) {
	if is == behindKey {
		e.buf = append(e.buf, gap)
	}
}

func (e *encoder) sequence(list []any, indent int, is place) error {
	if indent > 2*maxDepth {
		return errTooDeep
	}
	for i, v := range list {
		if is != behindDash || i > 0 {
			e.pad(indent)
		}
		e.buf = append(e.buf, '-', ' ')
		if err := e.value(v, behindDash, indent+2); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// scalar writes what fits behind a key or a dash; indent is that of the lines of a literal block.
func (e *encoder) scalar(v any, indent int) error {
	switch x := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case bool:
		e.buf = strconv.AppendBool(e.buf, x)
	case string:
		if literalSafe(x) {
			e.literal(x, indent)
			return nil
		}
		return e.flowString(x)
	case json.Number:
		if err := checkNumber(string(x)); err != nil {
			return err
		}
		e.buf = append(e.buf, x...)
	case map[string]any:
		e.buf = append(e.buf, "{}"...)
	case []any:
		e.buf = append(e.buf, "[]"...)
	}
	return nil
}

const spaces = "                                "

func (e *encoder) pad(n int) {
	for ; n > len(spaces); n -= len(spaces) {
		e.buf = append(e.buf, spaces...)
	}
	e.buf = append(e.buf, spaces[:n]...)
}

// plainValue leaves the values of decoded JSON (numbers as json.Number) as they are and brings any other to that form.
func plainValue(v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, string, json.Number, map[string]any, []any:
		return v, nil
	case int:
		return json.Number(strconv.Itoa(x)), nil
	case json.RawMessage:
		return v1alpha1.DecodeJSON(x)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return v1alpha1.DecodeJSON(raw)
}

var errTooDeep = fmt.Errorf("nested deeper than %d", maxDepth)

// checkNumber takes the numbers of JSON that a float64 can hold: beyond that, readers of YAML take them for strings.
func checkNumber(s string) error {
	if s == "" || s[0] != '-' && !isDigit(s[0]) || !isDigit(s[len(s)-1]) || !json.Valid([]byte(s)) {
		return fmt.Errorf("expected a number as JSON writes it, such as 12 or 0.5, got %q", s)
	}
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return fmt.Errorf("number %s: %w", s, errors.Unwrap(err))
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
