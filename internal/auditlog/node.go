package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/valyala/fastjson"
)

// node is a JSON value that is never changed: an object with its members sorted by key, or the text of any other value.
type node struct {
	// text of an object is nil, unless it was read in the form in which it is written.
	text    []byte
	members []member
	object  bool
}

// member of an object. Its key is JSON text, with its quotes.
type member struct {
	key   []byte
	value *node
}

var null = &node{text: []byte("null")}

// compareKeys orders members as encoding/json orders those of a map.
func compareKeys(a, b member) int {
	if bytes.Equal(a.key, b.key) {
		return 0
	}
	return bytes.Compare(unquoted(a.key), unquoted(b.key))
}

func unquoted(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key[1 : len(key)-1]
	}
	var s string
	_ = json.Unmarshal(key, &s) // it was read as JSON
	return []byte(s)
}

// parseNode reads one JSON value. It keeps parts of data.
func parseNode(data []byte) (*node, error) {
	if !valid(data) {
		return nil, errors.New("it is not JSON")
	}
	p := parser{data: data}
	return p.value(), nil
}

// maxNested is how deep encoding/json follows values within values.
const maxNested = 10_000

// valid is json.Valid, in less than half the time: that was a third of what reading a decision takes. fastjson goes as
// deep as the data does.
func valid(data []byte) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > maxNested {
		return json.Valid(data)
	}
	return fastjson.ValidateBytes(data) == nil
}

// parser takes apart JSON that is known to be valid.
type parser struct {
	data []byte
	at   int
	// other counts deviations from the form in which nodes are written: white space, and objects that are not sorted.
	other int
	// members are those of the objects that it is in.
	members []member
}

// next skips white space, and gives the byte that follows.
func (p *parser) next() byte {
	for p.data[p.at] == ' ' || p.data[p.at] == '\t' || p.data[p.at] == '\n' || p.data[p.at] == '\r' {
		p.at++
		p.other++
	}
	return p.data[p.at]
}

func (p *parser) value() *node {
	if p.next() != '{' {
		start := p.at
		p.skip()
		return &node{text: p.data[start:p.at:p.at]}
	}
	n, start, other, outer := &node{object: true}, p.at, p.other, len(p.members)
	p.at++
	for p.next() != '}' {
		if p.data[p.at] == ',' {
			p.at++
			p.next()
		}
		from := p.at
		p.skip()
		key := p.data[from:p.at:p.at]
		p.next()
		p.at++ // the colon
		value := p.value()
		p.members = append(p.members, member{key, value})
	}
	p.at++
	n.members = slices.Clone(p.members[outer:])
	p.members = p.members[:outer]
	if !slices.IsSortedFunc(n.members, compareKeys) {
		slices.SortStableFunc(n.members, compareKeys)
		p.other++
	}
	if p.other == other {
		n.text = p.data[start:p.at:p.at]
	}
	return n
}

// skip goes behind a string, a list, a number or a literal.
func (p *parser) skip() {
	data, at, depth := p.data, p.at, 0 // in registers: this loop sees each byte
	for ; at < len(data); at++ {
		switch data[at] {
		case '"':
			for at++; data[at] != '"'; at++ {
				if data[at] == '\\' {
					at++
				}
			}
			if depth == 0 {
				p.at = at + 1
				return
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 { // behind a number or a literal
				p.at = at
				return
			}
			if depth--; depth == 0 {
				p.at = at + 1
				return
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				p.at = at
				return
			}
		}
	}
	p.at = at
}

// appendJSON adds the value as JSON without spaces where it was read without.
func (n *node) appendJSON(b []byte) []byte {
	if n.text != nil || !n.object {
		return append(b, n.text...)
	}
	b = append(b, '{')
	for i, m := range n.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, m.key...), ':')
		b = m.value.appendJSON(b)
	}
	return append(b, '}')
}

// get is a member of an object; nil where there is none. The key needs no escapes.
func (n *node) get(keys ...string) *node {
	for _, key := range keys {
		if n == nil {
			return nil
		}
		quoted := `"` + key + `"`
		i := slices.IndexFunc(n.members, func(m member) bool { return string(m.key) == quoted })
		if i < 0 {
			return nil
		}
		n = n.members[i].value
	}
	return n
}

// with is an object with a member set.
func (n *node) with(key string, value *node) *node {
	return merge(n, &node{object: true, members: []member{{[]byte(`"` + key + `"`), value}}})
}

// unmarshal reads a value that may be missing.
func (n *node) unmarshal(into any) error {
	if n == nil {
		return nil
	}
	return json.Unmarshal(n.appendJSON(nil), into)
}

// merge applies a JSON merge patch (RFC 7386). What does not change is shared with the old value, which may be nil.
func merge(old, patch *node) *node {
	if !patch.object {
		return patch
	}
	n := &node{object: true}
	var before []member
	if old != nil {
		before = old.members
	}
	n.members = make([]member, 0, len(before)+len(patch.members))
	pairs(before, patch.members, func(key []byte, old, patch *node) {
		switch {
		case patch == nil:
			n.members = append(n.members, member{key, old})
		case !bytes.Equal(patch.text, null.text):
			n.members = append(n.members, member{key, merge(old, patch)})
		}
	})
	return n
}

// diff is the merge patch that makes now of old, which may not hold a null; nil where they are the same.
func diff(old, now *node) *node {
	if !old.object || !now.object {
		if old.object == now.object && bytes.Equal(old.text, now.text) {
			return nil
		}
		return now
	}
	n := &node{object: true}
	pairs(old.members, now.members, func(key []byte, old, now *node) {
		change := now
		switch {
		case now == nil:
			change = null
		case old != nil:
			if change = diff(old, now); change == nil {
				return
			}
		}
		n.members = append(n.members, member{key, change})
	})
	if len(n.members) == 0 {
		return nil
	}
	return n
}

// pairs calls visit with each key of two objects, in order; nil where one has no such member.
func pairs(a, b []member, visit func(key []byte, a, b *node)) {
	for len(a) > 0 || len(b) > 0 {
		var order int
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = compareKeys(a[0], b[0])
		}
		switch {
		case order < 0:
			visit(a[0].key, a[0].value, nil)
			a = a[1:]
		case order > 0:
			visit(b[0].key, nil, b[0].value)
			b = b[1:]
		default:
			visit(a[0].key, a[0].value, b[0].value)
			a, b = a[1:], b[1:]
		}
	}
}
