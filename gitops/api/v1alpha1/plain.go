package v1alpha1

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxPlainKey is how long a key is that plain takes, in bytes. YAML itself ends at 1024.
const maxPlainKey = 128

// plain reads plain YAML, as this program writes its records and as most people write: one document of block mappings and lists, in
// printable ASCII, whose keys need no quotes, and whose scalars, lists in brackets and mappings in braces end on the line that they begin
// on, with nothing escaped. It gives what the YAML library gives but for comments, in a tenth of the time. Of anything else, and of
// whatever is no YAML at all, it says that it is not plain: the library is asked then, and its answer counts.
func plain(data []byte, nodes *slab[yaml.Node]) (root *yaml.Node, ok bool) {
	for _, c := range data {
		if c != '\n' && (c < ' ' || c > '~') {
			return nil, false
		}
	}
	p := &plainReader{left: data, nodes: nodes}
	if p.next(); string(p.rest) == "---" && p.column == 0 {
		p.next()
	}
	if p.bad || p.end || p.column != 0 {
		return nil, false
	}
	root = p.block(0)
	return root, !p.bad && p.end
}

// plainReader goes through lines. Once it is bad, nothing that it gives is of use.
type plainReader struct {
	left []byte // what begins on the next line
	line int    // from 1
	// rest of the line, and the column it begins in, from 0.
	rest     []byte
	column   int
	end, bad bool
	nodes    *slab[yaml.Node]
}

// next goes to the next line that has something on it.
func (p *plainReader) next() {
	for len(p.left) > 0 {
		line, left, _ := bytes.Cut(p.left, []byte{'\n'})
		p.left = left
		p.line++
		if bytes.IndexByte(line, '#') >= 0 {
			line = p.uncommented(line)
		}
		if len(line) == 0 {
			continue
		}
		p.rest = bytes.TrimLeft(line, " ")
		p.column = len(line) - len(p.rest)
		p.bad = p.bad || line[len(line)-1] == ' '
		return
	}
	p.end = true
}

// uncommented is a line without the comment at its end.
func (p *plainReader) uncommented(line []byte) []byte {
	for i, c := range line {
		switch {
		case c == '"' || c == '\'': // what follows may be quoted
			p.bad = true
			return line
		case c == '#' && (i == 0 || line[i-1] == ' '):
			return bytes.TrimRight(line[:i], " ")
		}
	}
	return line
}

// skip goes on by n bytes.
func (p *plainReader) skip(n int) { p.rest, p.column = p.rest[n:], p.column+n }

func (p *plainReader) fail() *yaml.Node {
	p.bad = true
	return nil
}

func (p *plainReader) node(kind yaml.Kind, tag, value string) *yaml.Node {
	n := p.nodes.next()
	n.Kind, n.Tag, n.Value, n.Line, n.Column = kind, tag, value, p.line, p.column+1
	return n
}

// atItem says whether an item of a list begins here.
func (p *plainReader) atItem() bool {
	return len(p.rest) > 2 && p.rest[0] == '-' && p.rest[1] == ' ' && p.rest[2] != ' '
}

// block reads a list or a mapping that begins here.
func (p *plainReader) block(depth int) *yaml.Node {
	switch {
	case depth > maxDepth:
		return p.fail()
	case p.atItem():
		return p.list(depth)
	}
	return p.mapping(depth)
}

func (p *plainReader) list(depth int) *yaml.Node {
	n, column := p.node(yaml.SequenceNode, "!!seq", ""), p.column
	for !p.bad && !p.end && p.column == column && p.atItem() {
		p.skip(2)
		var item *yaml.Node
		if p.atItem() || p.key() > 0 {
			item = p.block(depth + 1)
		} else {
			item = p.scalar(depth)
		}
		n.Content = append(n.Content, item)
	}
	return n
}

func (p *plainReader) mapping(depth int) *yaml.Node {
	n, column := p.node(yaml.MappingNode, "!!map", ""), p.column
	for !p.bad && !p.end && p.column == column && !p.atItem() {
		length := p.key()
		if length == 0 {
			return p.fail()
		}
		text := string(p.rest[:length])
		key := p.node(yaml.ScalarNode, plainTag(text), text)
		n.Content = append(n.Content, key, p.value(column, length, depth))
	}
	return n
}

// value reads what is behind a key: on its line, or in a block below it.
func (p *plainReader) value(column, key, depth int) *yaml.Node {
	if len(p.rest) > key+1 {
		p.skip(key + len(": "))
		return p.scalar(depth)
	}
	p.next()
	if p.end || p.column < column || p.column == column && !p.atItem() { // there is none
		return p.fail()
	}
	return p.block(depth + 1)
}

// key is the length of the key that begins here; 0: there is none.
func (p *plainReader) key() int {
	length := bytes.IndexByte(p.rest, ':')
	if length < 1 || length > maxPlainKey || !isLetter(p.rest[0]) {
		return 0
	}
	if after := p.rest[length+1:]; len(after) > 0 && (len(after) < 2 || after[0] != ' ' || after[1] == ' ') {
		return 0
	}
	for _, c := range p.rest[:length] {
		if !isPlain(c) {
			return 0
		}
	}
	return length
}

// scalar reads the rest of the line, which is a scalar or in brackets or braces, and goes to the next.
func (p *plainReader) scalar(depth int) *yaml.Node {
	var n *yaml.Node
	switch text := p.rest; {
	case len(text) == 0:
		return p.fail()
	case text[0] == '"' || text[0] == '\'':
		if end := bytes.IndexByte(text[1:], text[0]); end < 0 || end != len(text)-2 || text[0] == '"' && bytes.IndexByte(text, '\\') >= 0 {
			return p.fail()
		}
		n = p.quoted(len(text) - 2)
	case text[0] == '{' || text[0] == '[':
		if n = p.flow(depth); len(p.rest) > 0 {
			return p.fail()
		}
	case !beginsPlain(text) || text[len(text)-1] == ':' || bytes.Contains(text, []byte(": ")):
		return p.fail()
	default:
		value := string(text)
		n = p.node(yaml.ScalarNode, plainTag(value), value)
	}
	p.next()
	return n
}

// quoted is the text of so many bytes between the quotes that begin here.
func (p *plainReader) quoted(length int) *yaml.Node {
	n := p.node(yaml.ScalarNode, "!!str", string(p.rest[1:1+length]))
	if n.Style = yaml.DoubleQuotedStyle; p.rest[0] == '\'' {
		n.Style = yaml.SingleQuotedStyle
	}
	return n
}

// flow reads what is in the brackets or braces that begin here, and goes on behind them.
func (p *plainReader) flow(depth int) *yaml.Node {
	n, closing := p.node(yaml.MappingNode, "!!map", ""), byte('}')
	if p.rest[0] == '[' {
		n.Kind, n.Tag, closing = yaml.SequenceNode, "!!seq", ']'
	}
	n.Style = yaml.FlowStyle
	p.bad = p.bad || depth > maxDepth
	p.skip(1)
	for p.spaces(); !p.bad && len(p.rest) > 0; p.spaces() {
		if p.rest[0] == closing {
			p.skip(1)
			return n
		}
		if len(n.Content) > 0 {
			if !bytes.HasPrefix(p.rest, []byte(", ")) {
				break
			}
			p.skip(1)
			p.spaces()
		}
		if n.Kind == yaml.MappingNode {
			length := p.key()
			if length == 0 || len(p.rest) == length+1 {
				break
			}
			text := string(p.rest[:length])
			n.Content = append(n.Content, p.node(yaml.ScalarNode, plainTag(text), text))
			p.skip(length + len(": "))
		}
		n.Content = append(n.Content, p.within(depth))
	}
	return p.fail()
}

func (p *plainReader) spaces() { p.skip(len(p.rest) - len(bytes.TrimLeft(p.rest, " "))) }

// within reads one value in brackets or braces, and goes on behind it.
func (p *plainReader) within(depth int) *yaml.Node {
	switch text := p.rest; {
	case len(text) == 0:
		return p.fail()
	case text[0] == '{' || text[0] == '[':
		return p.flow(depth + 1)
	case text[0] == '"' || text[0] == '\'':
		length := bytes.IndexByte(text[1:], text[0])
		if length < 0 || text[0] == '"' && bytes.IndexByte(text[:length+1], '\\') >= 0 {
			return p.fail()
		}
		n := p.quoted(length)
		p.skip(length + 2)
		return n
	default:
		length := 0
		for length < len(text) && isPlain(text[length]) {
			length++
		}
		if length == 0 || !beginsPlain(text[:length]) {
			return p.fail()
		}
		value := string(text[:length])
		n := p.node(yaml.ScalarNode, plainTag(value), value)
		p.skip(length)
		return n
	}
}

// beginsPlain says whether a scalar without quotes may begin so. Some more may in YAML.
func beginsPlain(text []byte) bool {
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
	case isDigit(c) && strings.ContainsAny(text, "ghijklmnqrsuvwyzGHIJKLMNPQRSUVWY/"): // no hexadecimal digit, exponent, or part of a time
		return "!!str"
	case '1' <= c && c <= '9' && len(text) < 18 && strings.Trim(text, "0123456789") == "":
		return "!!int"
	}
	return (&yaml.Node{Kind: yaml.ScalarNode, Value: text}).ShortTag()
}
