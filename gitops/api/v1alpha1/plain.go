package v1alpha1

import (
	"strings"
	"unsafe"

	"go.yaml.in/yaml/v3"
)

// maxPlainKey is how long a key is that plain takes, in bytes. YAML itself ends at 1024.
const maxPlainKey = 128

// plain reads plain YAML, as this program writes its records and as most people write. Plain is one document of
// block mappings and lists, in printable ASCII, whose keys need no quotes, and whose scalars, lists in brackets and
// mappings in braces end on the line that they begin on, with nothing escaped. It gives what the YAML library
// gives, except comments, in a tenth of the time. Of anything else, and of text that is not YAML at all, it says
// that it is not plain: then the library is asked, and its answer counts. Its texts are parts of the data.
func plain(data []byte, space *workspace) (root *yaml.Node, ok bool) {
	for _, c := range data {
		if c != '\n' && (c < ' ' || c > '~') {
			return nil, false
		}
	}
	p := &plainReader{left: unsafe.String(unsafe.SliceData(data), len(data)), space: space}
	if p.next(); p.rest == "---" && p.column == 0 {
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
	left string // what begins on the next line
	line int    // from 1
	// rest of the line, and the column it begins in, from 0.
	rest     string
	column   int
	end, bad bool
	space    *workspace
	// open are the parts of all lists and mappings that are not read to their end.
	open []*yaml.Node
}

// next goes to the next line that has something on it.
func (p *plainReader) next() {
	for len(p.left) > 0 {
		line, left, _ := strings.Cut(p.left, "\n")
		p.left = left
		p.line++
		if strings.IndexByte(line, '#') >= 0 {
			line = p.uncommented(line)
		}
		if len(line) == 0 {
			continue
		}
		p.rest = strings.TrimLeft(line, " ")
		p.column = len(line) - len(p.rest)
		p.bad = p.bad || line[len(line)-1] == ' '
		return
	}
	p.end = true
}

// uncommented is a line without the comment at its end.
func (p *plainReader) uncommented(line string) string {
	for i := range len(line) {
		switch c := line[i]; {
		case c == '"' || c == '\'': // what follows may be quoted
			p.bad = true
			return line
		case c == '#' && (i == 0 || line[i-1] == ' '):
			return strings.TrimRight(line[:i], " ")
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
	n := p.space.parsed.next()
	n.Kind, n.Tag, n.Value, n.Line, n.Column = kind, tag, value, p.line, p.column+1
	return n
}

// close ends a list or a mapping whose parts are the open ones from there on.
func (p *plainReader) close(n *yaml.Node, from int) *yaml.Node {
	if len(p.open) > from {
		n.Content = append(p.space.contents.next(len(p.open)-from), p.open[from:]...)
		p.open = p.open[:from]
	}
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
	n, column, from := p.node(yaml.SequenceNode, "!!seq", ""), p.column, len(p.open)
	for !p.bad && !p.end && p.column == column && p.atItem() {
		p.skip(2)
		var item *yaml.Node
		if p.atItem() || p.key() > 0 {
			item = p.block(depth + 1)
		} else {
			item = p.scalar(depth)
		}
		p.open = append(p.open, item)
	}
	return p.close(n, from)
}

func (p *plainReader) mapping(depth int) *yaml.Node {
	n, column, from := p.node(yaml.MappingNode, "!!map", ""), p.column, len(p.open)
	for !p.bad && !p.end && p.column == column && !p.atItem() {
		length := p.key()
		if length == 0 {
			return p.fail()
		}
		text := p.rest[:length]
		p.open = append(p.open, p.node(yaml.ScalarNode, plainTag(text), text))
		value := p.value(column, length, depth)
		p.open = append(p.open, value)
	}
	return p.close(n, from)
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
	length := strings.IndexByte(p.rest, ':')
	if length < 1 || length > maxPlainKey || !isLetter(p.rest[0]) {
		return 0
	}
	if after := p.rest[length+1:]; len(after) > 0 && (len(after) < 2 || after[0] != ' ' || after[1] == ' ') {
		return 0
	}
	for i := range length {
		if !isPlain(p.rest[i]) {
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
		if end := strings.IndexByte(text[1:], text[0]); end < 0 || end != len(text)-2 ||
			text[0] == '"' && strings.IndexByte(text, '\\') >= 0 {
			return p.fail()
		}
		n = p.quoted(len(text) - 2)
	case text[0] == '{' || text[0] == '[':
		if n = p.flow(depth); len(p.rest) > 0 {
			return p.fail()
		}
	case !beginsPlain(text) || text[len(text)-1] == ':' || strings.Contains(text, ": "):
		return p.fail()
	default:
		n = p.node(yaml.ScalarNode, plainTag(text), text)
	}
	p.next()
	return n
}

// quoted is the text of so many bytes between the quotes that begin here.
func (p *plainReader) quoted(length int) *yaml.Node {
	n := p.node(yaml.ScalarNode, "!!str", p.rest[1:1+length])
	if n.Style = yaml.DoubleQuotedStyle; p.rest[0] == '\'' {
		n.Style = yaml.SingleQuotedStyle
	}
	return n
}

// flow reads what is in the brackets or braces that begin here, and goes on behind them.
func (p *plainReader) flow(depth int) *yaml.Node {
	n, closing, from := p.node(yaml.MappingNode, "!!map", ""), byte('}'), len(p.open)
	if p.rest[0] == '[' {
		n.Kind, n.Tag, closing = yaml.SequenceNode, "!!seq", ']'
	}
	n.Style = yaml.FlowStyle
	p.bad = p.bad || depth > maxDepth
	p.skip(1)
	for p.spaces(); !p.bad && len(p.rest) > 0; p.spaces() {
		if p.rest[0] == closing {
			p.skip(1)
			return p.close(n, from)
		}
		if len(p.open) > from {
			if !strings.HasPrefix(p.rest, ", ") {
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
			text := p.rest[:length]
			p.open = append(p.open, p.node(yaml.ScalarNode, plainTag(text), text))
			p.skip(length + len(": "))
		}
		value := p.within(depth)
		p.open = append(p.open, value)
	}
	return p.fail()
}

func (p *plainReader) spaces() { p.skip(len(p.rest) - len(strings.TrimLeft(p.rest, " "))) }

// within reads one value in brackets or braces, and goes on behind it.
func (p *plainReader) within(depth int) *yaml.Node {
	switch text := p.rest; {
	case len(text) == 0:
		return p.fail()
	case text[0] == '{' || text[0] == '[':
		return p.flow(depth + 1)
	case text[0] == '"' || text[0] == '\'':
		length := strings.IndexByte(text[1:], text[0])
		if length < 0 || text[0] == '"' && strings.IndexByte(text[:length+1], '\\') >= 0 {
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
		n := p.node(yaml.ScalarNode, plainTag(text[:length]), text[:length])
		p.skip(length)
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
