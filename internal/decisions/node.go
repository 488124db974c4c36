package decisions

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind of a node.
type kind uint8

const (
	kNull kind = iota
	kFalse
	kTrue
	kNumber  // n · 10^-scale
	kInstant // n seconds since 1970, as RFC 3339 in UTC
	kText
	kLiteral // a number that is written in another way
	kArray
	kObject // keys from a shape
	kMap    // keys are data: nodes between the values
	kinds
)

// node is a JSON value. It is not changed once it is complete.
type node struct {
	kind  kind
	scale uint8
	// born is the count of the deployment's decisions at which it came.
	born uint32
	// size in all, about the bytes of its JSON.
	size uint32
	hash uint32
	n    int64
	text string
	// shape has the keys of an object, sorted.
	shape *shape
	kids  []*node
}

// shape is a set of keys.
type shape struct {
	id   uint32
	keys []string
}

// maxInteger is how many digits a number has at most that is coded as one.
const maxInteger = 17

func (k kind) leaf() bool { return k < kArray }

func newLeaf(k kind, n int64, scale uint8, text string) *node {
	x := &node{kind: k, n: n, scale: scale, text: text, size: uint32(len(text)) + 8}
	x.hash = mix(uint32(k)<<8|uint32(scale), mix(uint32(n), uint32(n>>32)))
	if text != "" {
		x.hash = mix(x.hash, hashText(text))
	}
	return x
}

func hashText(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// fill adds up what a container holds.
func (x *node) fill() *node {
	h, size := mix(uint32(x.kind), uint32(len(x.kids))), uint64(8)
	for i, k := range x.kids {
		h, size = mix(h, k.hash), size+uint64(k.size)
		if x.kind == kObject {
			h, size = mix(h, hashText(x.shape.keys[i])), size+uint64(len(x.shape.keys[i]))
		}
	}
	x.hash, x.size = h, uint32(min(size, 1<<31))
	return x
}

// same reports whether two values are the same.
func same(a, b *node) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.size == 0 || b.size == 0 || a.hash != b.hash || a.kind != b.kind || a.n != b.n || a.scale != b.scale || a.text != b.text || len(a.kids) != len(b.kids) {
		return false
	}
	if a.kind == kObject && !slices.Equal(a.shape.keys, b.shape.keys) {
		return false
	}
	for i := range a.kids {
		if !same(a.kids[i], b.kids[i]) {
			return false
		}
	}
	return true
}

// textNode is a text, or the instant that it says.
func textNode(s string) *node {
	if len(s) == 20 && s[19] == 'Z' && s[10] == 'T' {
		if t, err := time.Parse(time.RFC3339, s); err == nil && writeInstant(t.Unix()) == s {
			return newLeaf(kInstant, t.Unix(), 0, "")
		}
	}
	return newLeaf(kText, 0, 0, s)
}

func writeInstant(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

// The instants that RFC 3339 can say: the years 0 to 9999.
const (
	minInstant = -62167219200
	maxInstant = 253402300799
)

func numberNode(s string) *node {
	if n, scale, ok := parseNumber(s); ok && writeNumber(n, scale) == s {
		return newLeaf(kNumber, n, scale, "")
	}
	return newLeaf(kLiteral, 0, 0, s)
}

func parseNumber(s string) (n int64, scale uint8, ok bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if len(whole)+len(fraction) > maxInteger {
		return 0, 0, false
	}
	n, err := strconv.ParseInt(whole+fraction, 10, 64)
	return n, uint8(len(fraction)), err == nil
}

func writeNumber(n int64, scale uint8) string {
	s := strconv.FormatInt(n, 10)
	if scale == 0 {
		return s
	}
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for len(s) <= int(scale) {
		s = "0" + s
	}
	return sign + s[:len(s)-int(scale)] + "." + s[len(s)-int(scale):]
}

// member of an object, as the objects of JSON are given to nodes.
func nodeOf(v any, path ...string) *node {
	switch v := v.(type) {
	case nil:
		return newLeaf(kNull, 0, 0, "")
	case bool:
		if v {
			return newLeaf(kTrue, 0, 0, "")
		}
		return newLeaf(kFalse, 0, 0, "")
	case string:
		return textNode(v)
	case json.Number:
		return numberNode(v.String())
	case []any:
		x := &node{kind: kArray, kids: make([]*node, 0, len(v))}
		for _, e := range v {
			x.kids = append(x.kids, nodeOf(e, below(path, "*")...))
		}
		return x.fill()
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if slices.Equal(path, []string{resultRoot, "actions"}) {
			x := &node{kind: kMap}
			for _, k := range keys {
				x.kids = append(x.kids, textNode(k), nodeOf(v[k], below(path, "*")...))
			}
			return x.fill()
		}
		x := &node{kind: kObject, shape: &shape{keys: keys}, kids: make([]*node, 0, len(keys))}
		for _, k := range keys {
			x.kids = append(x.kids, nodeOf(v[k], below(path, k)...))
		}
		return x.fill()
	}
	return newLeaf(kNull, 0, 0, "")
}

// get is a member of an object; nil: there is none.
func (x *node) get(keys ...string) *node {
	for _, k := range keys {
		if x == nil || x.kind != kObject {
			return nil
		}
		i, ok := slices.BinarySearch(x.shape.keys, k)
		if !ok || i >= len(x.kids) {
			return nil // or not yet
		}
		x = x.kids[i]
	}
	return x
}

// said is a leaf's text.
func (x *node) said() string {
	if x == nil {
		return ""
	}
	switch x.kind {
	case kText, kLiteral:
		return x.text
	case kInstant:
		return writeInstant(x.n)
	case kNumber:
		return writeNumber(x.n, x.scale)
	}
	return ""
}

// appendJSON writes the value as canonical JSON.
func (x *node) appendJSON(b []byte) []byte {
	switch x.kind {
	case kFalse:
		return append(b, "false"...)
	case kTrue:
		return append(b, "true"...)
	case kNumber, kLiteral:
		return append(b, x.said()...)
	case kText, kInstant:
		return appendText(b, x.said())
	case kArray:
		return x.appendKids(append(b, '['), ']')
	case kObject, kMap:
		return x.appendKids(append(b, '{'), '}')
	}
	return append(b, "null"...)
}

func (x *node) appendKids(b []byte, end byte) []byte {
	for i, k := range x.kids {
		switch {
		case x.kind == kMap && i%2 == 1:
			b = append(b, ':')
		case i > 0:
			b = append(b, ',')
		}
		if x.kind == kObject {
			b = append(appendText(b, x.shape.keys[i]), ':')
		}
		b = k.appendJSON(b)
	}
	return append(b, end)
}

func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			written, err := canonical(s)
			if err != nil {
				return append(b, `""`...) // no text has one
			}
			return append(b, written...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
