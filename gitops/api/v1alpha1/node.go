package v1alpha1

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// kindOf is the JSON type of a node.
type kindOf uint8

const (
	nullNode kindOf = iota + 1
	boolNode
	numberNode
	stringNode
	objectNode
	listNode
)

// String names the type for a message.
func (k kindOf) String() string {
	return [...]string{"nothing", "null", "true or false", "a number", "a string", "an object", "a list"}[k]
}

// node is one value of an object in a file, with aliases and merges expanded. It knows its place, so that a problem
// found at any later point has its line and its path.
type node struct {
	parent *node
	// key in an object, index in a list.
	key   string
	index int
	kind  kindOf
	// word: a plain yes, no, on or off, which is true or false to older readers of YAML.
	word bool
	// bad: it has a problem already, so that rules about its value say nothing.
	bad bool
	// meant is the known field that an unknown one was probably meant to be.
	meant string
	// line and column of the key in an object, of the item in a list.
	line, column int
	// text of a string; the canonical JSON of a number, of true and of false.
	text string
	// kids are an object's fields, sorted by key, or a list's items.
	kids []*node
}

// get gives the field with a key, nil if there is none or if n is nil or no object.
func (n *node) get(key string) *node {
	if n == nil || n.kind != objectNode {
		return nil
	}
	i, ok := slices.BinarySearchFunc(n.kids, key, func(k *node, key string) int { return strings.Compare(k.key, key) })
	if !ok {
		return nil
	}
	return n.kids[i]
}

// at gives a field by a path of keys, nil if there is none.
func (n *node) at(keys ...string) *node {
	for _, key := range keys {
		n = n.get(key)
	}
	return n
}

// item gives an item of a list, nil if there is none.
func (n *node) item(i int) *node {
	if n == nil || n.kind != listNode || i >= len(n.kids) {
		return nil
	}
	return n.kids[i]
}

// items returns the items of a list, nil if n is not a list.
func (n *node) items() []*node {
	if n == nil || n.kind != listNode {
		return nil
	}
	return n.kids
}

// fields returns the fields of an object, nil if n is not an object.
func (n *node) fields() []*node {
	if n == nil || n.kind != objectNode {
		return nil
	}
	return n.kids
}

// present says whether there is a value that rules can look at: not missing, not null, of the right type.
func (n *node) present() bool { return n != nil && n.kind != nullNode && !n.bad }

// str returns the text of a string, "" if n is not a string.
func (n *node) str() string {
	if n == nil || n.kind != stringNode {
		return ""
	}
	return n.text
}

func (n *node) drop(key string) {
	n.kids = slices.DeleteFunc(n.kids, func(k *node) bool { return k.key == key })
}

func (n *node) sort() {
	slices.SortStableFunc(n.kids, func(a, b *node) int { return strings.Compare(a.key, b.key) })
}

// path of the node inside its object, such as spec.rollout.steps[1].rampPercentage.
func (n *node) path() string {
	var b strings.Builder
	n.writePath(&b)
	return b.String()
}

func (n *node) writePath(b *strings.Builder) {
	if n.parent == nil {
		return
	}
	n.parent.writePath(b)
	switch {
	case n.parent.kind == listNode:
		b.WriteString("[" + strconv.Itoa(n.index) + "]")
	case isPlainKey(n.key):
		if n.parent.parent != nil {
			b.WriteByte('.')
		}
		b.WriteString(n.key)
	default:
		b.WriteString("[" + quote(n.key) + "]")
	}
}

// isPlainKey says whether a key needs no quotes in a path.
func isPlainKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return key != "" && len(key) <= maxNameLength
}

// find gives the node that a path names, or the nearest one above it.
func (n *node) find(path string) *node {
	for path != "" {
		var next *node
		var key string
		switch {
		case strings.HasPrefix(path, `["`):
			quoted, err := strconv.QuotedPrefix(path[1:])
			if err != nil {
				return n
			}
			key, _ = strconv.Unquote(quoted)
			next = n.get(key)
			path = strings.TrimPrefix(path[1+len(quoted):], "]")
		case path[0] == '[':
			inside, rest, _ := strings.Cut(path[1:], "]")
			if i, err := strconv.Atoi(inside); err == nil && i >= 0 {
				next = n.item(i)
			}
			path = rest
		default:
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			next = n.get(path[:end])
			path = path[end:]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// json is the node as canonical JSON, in no more memory than it takes.
func (n *node) json() []byte {
	const usual = 2 << 10
	return bytes.Clone(n.appendJSON(make([]byte, 0, usual)))
}

// appendJSON writes the node as canonical JSON (see CanonicalJSON).
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case nullNode:
		return append(b, "null"...)
	case boolNode, numberNode:
		return append(b, n.text...)
	case stringNode:
		return appendString(b, n.text)
	case listNode:
		b = append(b, '[')
		for i, k := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			b = k.appendJSON(b)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, k := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, k.key), ':')
			b = k.appendJSON(b)
		}
		return append(b, '}')
	}
}
