// Package plainyaml reads the part of YAML that records are in, and that most people write. It takes a tenth of the
// time that the YAML library takes. Whatever else a text holds, it leaves to the library.
package plainyaml

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxKey is how long a key is that is read here, in bytes. YAML itself ends at 1024.
	maxKey = 128
	// maxDepth of nested lists and mappings that are read here.
	maxDepth = 100
)

// Parse reads plain YAML. Plain is one document of block mappings and lists, in printable ASCII, whose keys need no
// quotes, and whose scalars, lists in brackets and mappings in braces end on the line that they begin on, with nothing
// escaped. The root is what the library gives for the document's content, to line and column, except for comments. Of
// anything else, and of text that is not YAML at all, Parse says that it is not plain: then the library is to be asked,
// and its answer counts.
func Parse(data []byte) (root *yaml.Node, ok bool) {
	for _, c := range data {
		if c != '\n' && (c < ' ' || c > '~') {
			return nil, false
		}
	}
	r := &reader{left: string(data)}
	if r.next(); r.rest == "---" && r.column == 0 {
		r.next()
	}
	if r.bad || r.end || r.column != 0 {
		return nil, false
	}
	root = r.block(0)
	return root, !r.bad && r.end
}

// reader goes through lines. Once it is bad, nothing that it gives is of use.
type reader struct {
	left string // what begins on the next line
	line int    // from 1
	// rest of the line, and the column it begins in, from 0.
	rest     string
	column   int
	end, bad bool
	// open are the parts of all lists and mappings that are not read to their end.
	open []*yaml.Node
}

// next goes to the next line that has something on it.
func (r *reader) next() {
	for len(r.left) > 0 {
		line, left, _ := strings.Cut(r.left, "\n")
		r.left = left
		r.line++
		if strings.IndexByte(line, '#') >= 0 {
			line = r.uncommented(line)
		}
		if len(line) == 0 {
			continue
		}
		r.rest = strings.TrimLeft(line, " ")
		r.column = len(line) - len(r.rest)
		r.bad = r.bad || line[len(line)-1] == ' '
		return
	}
	r.end = true
}

// uncommented is a line without the comment at its end.
func (r *reader) uncommented(line string) string {
	for i := range len(line) {
		switch c := line[i]; {
		case c == '"' || c == '\'': // what follows may be quoted
			r.bad = true
			return line
		case c == '#' && (i == 0 || line[i-1] == ' '):
			return strings.TrimRight(line[:i], " ")
		}
	}
	return line
}

// skip goes on by n bytes.
func (r *reader) skip(n int) { r.rest, r.column = r.rest[n:], r.column+n }

func (r *reader) fail() *yaml.Node {
	r.bad = true
	return nil
}

func (r *reader) node(kind yaml.Kind, tag, value string) *yaml.Node {
	return &yaml.Node{Kind: kind, Tag: tag, Value: value, Line: r.line, Column: r.column + 1}
}

// close ends a list or a mapping whose parts are the open ones from there on.
func (r *reader) close(n *yaml.Node, from int) *yaml.Node {
	if len(r.open) > from {
		n.Content = slices.Clone(r.open[from:])
		r.open = r.open[:from]
	}
	return n
}

// atItem says whether an item of a list begins here.
func (r *reader) atItem() bool {
	return len(r.rest) > 2 && r.rest[0] == '-' && r.rest[1] == ' ' && r.rest[2] != ' '
}

// block reads a list or a mapping that begins here.
func (r *reader) block(depth int) *yaml.Node {
	switch {
	case depth > maxDepth:
		return r.fail()
	case r.atItem():
		return r.list(depth)
	}
	return r.mapping(depth)
}

func (r *reader) list(depth int) *yaml.Node {
	n, column, from := r.node(yaml.SequenceNode, "!!seq", ""), r.column, len(r.open)
	for !r.bad && !r.end && r.column == column && r.atItem() {
		r.skip(2)
		var item *yaml.Node
		if r.atItem() || r.key() > 0 {
			item = r.block(depth + 1)
		} else {
			item = r.scalar(depth)
		}
		r.open = append(r.open, item)
	}
	return r.close(n, from)
}

func (r *reader) mapping(depth int) *yaml.Node {
	n, column, from := r.node(yaml.MappingNode, "!!map", ""), r.column, len(r.open)
	for !r.bad && !r.end && r.column == column && !r.atItem() {
		length := r.key()
		if length == 0 {
			return r.fail()
		}
		text := r.rest[:length]
		r.open = append(r.open, r.node(yaml.ScalarNode, plainTag(text), text))
		value := r.value(column, length, depth)
		r.open = append(r.open, value)
	}
	return r.close(n, from)
}

// value reads what is behind a key: on its line, or in a block below it.
func (r *reader) value(column, key, depth int) *yaml.Node {
	if len(r.rest) > key+1 {
		r.skip(key + len(": "))
		return r.scalar(depth)
	}
	r.next()
	if r.end || r.column < column || r.column == column && !r.atItem() { // there is none
		return r.fail()
	}
	return r.block(depth + 1)
}

// key is the length of the key that begins here; 0: there is none.
func (r *reader) key() int {
	length := strings.IndexByte(r.rest, ':')
	if length < 1 || length > maxKey || !isLetter(r.rest[0]) {
		return 0
	}
	if after := r.rest[length+1:]; len(after) > 0 && (len(after) < 2 || after[0] != ' ' || after[1] == ' ') {
		return 0
	}
	for i := range length {
		if !isPlain(r.rest[i]) {
			return 0
		}
	}
	return length
}

// scalar reads the rest of the line, which is a scalar or in brackets or braces, and goes to the next.
func (r *reader) scalar(depth int) *yaml.Node {
	var n *yaml.Node
	switch text := r.rest; {
	case len(text) == 0:
		return r.fail()
	case text[0] == '"' || text[0] == '\'':
		if end := strings.IndexByte(text[1:], text[0]); end < 0 || end != len(text)-2 ||
			text[0] == '"' && strings.IndexByte(text, '\\') >= 0 {
			return r.fail()
		}
		n = r.quoted(len(text) - 2)
	case text[0] == '{' || text[0] == '[':
		if n = r.flow(depth); len(r.rest) > 0 {
			return r.fail()
		}
	case !beginsPlain(text) || text[len(text)-1] == ':' || strings.Contains(text, ": "):
		return r.fail()
	default:
		n = r.node(yaml.ScalarNode, plainTag(text), text)
	}
	r.next()
	return n
}

// quoted is the text of so many bytes between the quotes that begin here.
func (r *reader) quoted(length int) *yaml.Node {
	n := r.node(yaml.ScalarNode, "!!str", r.rest[1:1+length])
	if n.Style = yaml.DoubleQuotedStyle; r.rest[0] == '\'' {
		n.Style = yaml.SingleQuotedStyle
	}
	return n
}

// flow reads what is in the brackets or braces that begin here, and goes on behind them.
func (r *reader) flow(depth int) *yaml.Node {
	n, closing, from := r.node(yaml.MappingNode, "!!map", ""), byte('}'), len(r.open)
	if r.rest[0] == '[' {
		n.Kind, n.Tag, closing = yaml.SequenceNode, "!!seq", ']'
	}
	n.Style = yaml.FlowStyle
	r.bad = r.bad || depth > maxDepth
	r.skip(1)
	for r.spaces(); !r.bad && len(r.rest) > 0; r.spaces() {
		if r.rest[0] == closing {
			r.skip(1)
			return r.close(n, from)
		}
		if len(r.open) > from {
			if !strings.HasPrefix(r.rest, ", ") {
				break
			}
			r.skip(1)
			r.spaces()
		}
		if n.Kind == yaml.MappingNode {
			length := r.key()
			if length == 0 || len(r.rest) == length+1 {
				break
			}
			text := r.rest[:length]
			r.open = append(r.open, r.node(yaml.ScalarNode, plainTag(text), text))
			r.skip(length + len(": "))
		}
		value := r.within(depth)
		r.open = append(r.open, value)
	}
	return r.fail()
}

func (r *reader) spaces() { r.skip(len(r.rest) - len(strings.TrimLeft(r.rest, " "))) }

// within reads one value in brackets or braces, and goes on behind it.
func (r *reader) within(depth int) *yaml.Node {
	switch text := r.rest; {
	case len(text) == 0:
		return r.fail()
	case text[0] == '{' || text[0] == '[':
		return r.flow(depth + 1)
	case text[0] == '"' || text[0] == '\'':
		length := strings.IndexByte(text[1:], text[0])
		if length < 0 || text[0] == '"' && strings.IndexByte(text[:length+1], '\\') >= 0 {
			return r.fail()
		}
		n := r.quoted(length)
		r.skip(length + 2)
		return n
	default:
		length := 0
		for length < len(text) && isPlain(text[length]) {
			length++
		}
		if length == 0 || !beginsPlain(text[:length]) {
			return r.fail()
		}
		n := r.node(yaml.ScalarNode, plainTag(text[:length]), text[:length])
		r.skip(length)
		return n
	}
}

// beginsPlain says whether a scalar without quotes may begin so. Some more may in YAML.
func beginsPlain(text string) bool {
	for n := 0; n < 2 && len(text) > 1 && text[0] == '-'; n++ { // as flags do
		text = text[1:]
	}
	c := text[0]
	return isLetter(c) || isDigit(c) || c == '/' || c == '.'
}

// isPlain says whether a character means nothing but itself wherever it is behind another one.
func isPlain(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' || c == '/' || c == '-' }

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// plainTag is what a scalar without quotes is taken for. The library finds that out; most need no finding out.
func plainTag(text string) string {
	switch c := text[0]; {
	case isLetter(c) && (len(text) > len("false") || !strings.ContainsRune("tTfFnN", rune(c))), c == '/':
		return "!!str"
	case isDigit(c) && noNumber(text):
		return "!!str"
	case '1' <= c && c <= '9' && len(text) < 18 && strings.Trim(text, "0123456789") == "":
		return "!!int"
	}
	return (&yaml.Node{Kind: yaml.ScalarNode, Value: text}).ShortTag()
}

// noNumber says whether a scalar that begins with a digit is plainly neither a number nor a time. It is neither if
// it has a letter that is in none of them, or more than one dot.
func noNumber(text string) bool {
	based, dots := text[0] == '0', 0 // hexadecimal, octal and binary ones begin so
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.':
			dots++
		case !isLetter(c) || c == '_' || strings.IndexByte("eEtTzZ", c) >= 0:
		case !based || strings.IndexByte("xXoObBaAcCdDfFpP", c) < 0:
			return true
		}
	}
	return dots > 1
}
