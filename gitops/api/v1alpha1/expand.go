package v1alpha1

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The bounds of a file. They are far above any real one: a spec of 40 lines has 100 nodes and a depth of 9.
const (
	// MaxFileSize in bytes of a file that is read at all.
	MaxFileSize = 1 << 20
	// maxNodes of all objects in a file, with aliases and merges expanded.
	maxNodes = 200_000
	// maxLooked is how many keys of a file are looked at to find out what its documents are.
	maxLooked = 20 * maxNodes
	// maxText is the length of all keys and scalars in a file, with aliases and merges expanded.
	maxText = 4 * MaxFileSize
	// maxDepth of nested objects and lists.
	maxDepth = 100
)

// position in a file.
type position struct{ line, column int }

// expander turns YAML's nodes into ours. One expander serves one file, so that its bounds hold for the file.
type expander struct {
	report *report
	// nodes and text are what is left of the bounds.
	nodes, text int
	// active are the anchored nodes being expanded: an alias to one of them is within itself.
	active []*yaml.Node
}

func newExpander(r *report) *expander {
	return &expander{report: r, nodes: maxNodes, text: maxText}
}

// object expands a document's root. Nil: it can't be used, and the report says why.
func (e *expander) object(root *yaml.Node) *node {
	n := e.new(nil, position{root.Line, root.Column})
	if n == nil || !e.fill(n, root, 0) {
		return nil
	}
	return n
}

// new gives a node; nil when the file's bound is used up.
func (e *expander) new(parent *node, at position) *node {
	if e.nodes <= 0 {
		e.stop(at, "the file has more than "+strconv.Itoa(maxNodes)+" values when its aliases are expanded")
		return nil
	}
	e.nodes--
	return &node{parent: parent, line: at.line, column: at.column}
}

// stop reports that a file is not read further.
func (e *expander) stop(at position, message string) {
	e.report.add(Problem{Severity: Error, Line: at.line, Column: at.column, Message: message})
}

// spend counts the text of a scalar or a key.
func (e *expander) spend(n *node, text string) bool {
	e.text -= len(text)
	if e.text < 0 {
		e.stop(position{n.line, n.column}, "the file has more than "+strconv.Itoa(maxText)+
			" bytes when its aliases are expanded")
		return false
	}
	return true
}

// fill gives n the value of y. False: the file's bounds are exceeded, and nothing more of it is read.
func (e *expander) fill(n *node, y *yaml.Node, depth int) bool {
	if depth > maxDepth {
		e.stop(position{n.line, n.column}, "nested more than "+strconv.Itoa(maxDepth)+" deep")
		return false
	}
	switch y.Kind {
	case yaml.AliasNode:
		if slices.Contains(e.active, y.Alias) {
			e.stop(position{n.line, n.column}, "alias *"+y.Value+" is inside what it stands for")
			return false
		}
		e.active = append(e.active, y.Alias)
		ok := e.fill(n, y.Alias, depth+1)
		e.active = e.active[:len(e.active)-1]
		return ok
	case yaml.MappingNode:
		if y.Tag != "!!map" {
			e.badTag(n, y)
		}
		defer e.within(y)()
		return e.mapping(n, y, depth)
	case yaml.SequenceNode:
		if y.Tag != "!!seq" {
			e.badTag(n, y)
		}
		defer e.within(y)()
		return e.sequence(n, y, depth)
	default:
		e.scalar(n, y)
		return e.spend(n, n.text)
	}
}

// within marks an anchored collection as being expanded, until it is done.
func (e *expander) within(y *yaml.Node) (done func()) {
	if y.Anchor == "" || slices.Contains(e.active, y) {
		return func() {}
	}
	e.active = append(e.active, y)
	return func() { e.active = e.active[:len(e.active)-1] }
}

func (e *expander) sequence(n *node, y *yaml.Node, depth int) bool {
	n.kind = listNode
	n.kids = make([]*node, 0, min(len(y.Content), e.nodes))
	for i, item := range y.Content {
		k := e.new(n, position{item.Line, item.Column})
		if k == nil {
			return false
		}
		k.index = i
		n.kids = append(n.kids, k)
		if !e.fill(k, item, depth+1) {
			return false
		}
	}
	return true
}

func (e *expander) mapping(n *node, y *yaml.Node, depth int) bool {
	n.kind = objectNode
	n.kids = make([]*node, 0, min(len(y.Content)/2, e.nodes))
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Tag == "!!merge" && key.Kind == yaml.ScalarNode {
			if merges = append(merges, key, value); len(merges) > 2 {
				e.report.errorf(n, "<< is given more than once: give a list of aliases to one <<")
			}
			continue
		}
		k := e.new(n, position{key.Line, key.Column})
		if k == nil {
			return false
		}
		text, ok := keyText(key)
		k.key = text
		if !ok {
			e.report.errorf(k, "a key has to be a string: put it in quotes")
			continue
		}
		if !e.spend(k, text) || !e.fill(k, value, depth+1) {
			return false
		}
		n.kids = append(n.kids, k)
	}
	n.sort()
	e.dropDuplicates(n)
	if len(merges) > 0 {
		return e.merge(n, merges[1], position{merges[0].Line, merges[0].Column}, depth)
	}
	return true
}

// dropDuplicates reports keys that are given twice and keeps the first. The fields are sorted, and stably.
func (e *expander) dropDuplicates(n *node) {
	kept := n.kids[:0]
	for _, k := range n.kids {
		if last := len(kept) - 1; last >= 0 && kept[last].key == k.key {
			e.report.errorf(k, "key is given twice, first on line %d", kept[last].line)
			continue
		}
		kept = append(kept, k)
	}
	n.kids = kept
}

// merge adds the fields of a <<: what the object itself has wins, and then what an earlier one of a list has.
func (e *expander) merge(n *node, y *yaml.Node, at position, depth int) bool {
	source := e.new(n.parent, at)
	if source == nil {
		return false
	}
	source.key, source.index = n.key, n.index
	if !e.fill(source, y, depth+1) {
		return false
	}
	sources := []*node{source}
	if source.kind == listNode {
		sources = source.kids
	}
	seen := make(map[string]bool, len(n.kids))
	for _, k := range n.kids {
		seen[k.key] = true
	}
	for _, s := range sources {
		if s.kind != objectNode {
			e.report.errorf(source, "<< takes an object or a list of objects, got %s", s.kind)
			return true
		}
		for _, k := range s.kids {
			if !seen[k.key] {
				seen[k.key] = true
				k.parent = n
				n.kids = append(n.kids, k)
			}
		}
	}
	n.sort()
	return true
}

func (e *expander) badTag(n *node, y *yaml.Node) {
	e.report.errorf(n, "tag %s is not supported", quote(y.Tag))
	n.bad = true
}

// keyText gives the text of a key. Kubernetes' tools take numbers and true or false for strings there; so are they
// here, where there is only one way to write them.
func keyText(key *yaml.Node) (string, bool) {
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	if key.Kind != yaml.ScalarNode {
		return "?", false
	}
	switch key.Tag {
	case "!!str", "!!timestamp", "!!merge":
		return key.Value, true
	case "!!bool":
		return strings.ToLower(key.Value), true
	case "!!int":
		text, ok := integer(key.Value)
		return key.Value, ok && text == key.Value
	default:
		return key.Value, false
	}
}

// scalar gives n the JSON value of a YAML scalar, as Kubernetes' tools read it.
func (e *expander) scalar(n *node, y *yaml.Node) {
	ok := true
	switch y.Tag {
	case "!!str":
		n.kind, n.text = stringNode, y.Value
		n.word = y.Style == 0 && isWord(y.Value)
	case "!!timestamp", "!!merge":
		n.kind, n.text = stringNode, y.Value
	case "!!null":
		n.kind = nullNode
	case "!!bool":
		n.kind, n.text = boolNode, strings.ToLower(y.Value)
		ok = n.text == "true" || n.text == "false"
	case "!!int":
		n.kind = numberNode
		n.text, ok = integer(y.Value)
	case "!!float":
		n.kind = numberNode
		n.text, ok = float(y.Value)
	default:
		n.kind, n.text = stringNode, y.Value
		e.badTag(n, y)
	}
	if !ok {
		e.report.errorf(n, "%s is not a JSON value", quote(y.Value))
		n.kind, n.text, n.bad = nullNode, "", true
	}
}

// integer reads YAML's integers: decimal, 0x, 0o, 0b, the octal 0644 of YAML 1.1 (file modes), with _ between digits.
func integer(s string) (string, bool) {
	if len(s) > 1 && (s[0] == '+' || strings.Contains(s, "_")) {
		s = strings.TrimPrefix(strings.ReplaceAll(s, "_", ""), "+")
	}
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		return strconv.FormatInt(i, 10), true
	}
	if u, err := strconv.ParseUint(s, 0, 64); err == nil {
		return strconv.FormatUint(u, 10), true
	}
	return float(s)
}

// float reads YAML's numbers with a fraction or an exponent. Infinities and .nan have no JSON form.
func float(s string) (string, bool) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", false
	}
	return formatFloat(f), true
}

// isWord says whether readers of YAML 1.1 take a plain scalar for true or false.
func isWord(s string) bool {
	if len(s) < 1 || len(s) > 3 {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "yes", "on", "n", "no", "off":
		return true
	}
	return false
}

// wordValue is what such a reader takes it for, as JSON.
func wordValue(s string) string {
	switch strings.ToLower(s) {
	case "y", "yes", "on":
		return "true"
	}
	return "false"
}
