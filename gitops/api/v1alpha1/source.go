package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/gitops/api/internal/plainyaml"
)

// MayHoldObjects says whether a file can hold an object of this package's kinds. It can if one of their API groups
// is spelled anywhere in it, or the one kind that no other project has, or if what it holds is elsewhere. It costs a
// fraction of Decode: what it turns down needs no decoding.
func MayHoldObjects(data []byte) bool {
	return SpellsGroup(data) || bytes.Contains(data, []byte(KindTemporalWorkerDeployment))
}

// SpellsGroup says whether one of the API groups is spelled anywhere in a file, or what it holds is elsewhere. A file
// without one need not be YAML: it may be a template that mentions a kind.
func SpellsGroup(data []byte) bool {
	return bytes.Contains(data, []byte("temporal.io")) || bytes.Contains(data, []byte("rampart.dev")) ||
		IsPointer(data) || isUTF16(data)
}

// isUTF16 says whether a file spells one of the API groups in UTF-16, which some editors save.
func isUTF16(data []byte) bool {
	if len(data) < 2 || data[0] != 0 && data[1] != 0 && !hasUTF16Mark(data) {
		return false
	}
	for _, group := range []string{"temporal.io", "rampart.dev"} {
		if bytes.Contains(data, []byte(strings.Join(strings.Split(group, ""), "\x00"))) { // in either order of bytes
			return true
		}
	}
	return false
}

func hasUTF16Mark(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
}

// IsPointer says whether a file is a pointer of Git LFS, which stands for one that Git does not hold.
func IsPointer(data []byte) bool {
	return bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/"))
}

// readable checks what can be checked of a file before it is parsed.
func readable(r *report, data []byte) bool {
	p := Problem{Severity: Error}
	switch {
	case len(data) > MaxFileSize:
		p.Message = fmt.Sprintf("the file has %d bytes; more than %d are not read", len(data), MaxFileSize)
	case hasUTF16Mark(data), isUTF16(data):
		p.Line, p.Message = 1, "the file is UTF-16: save it as UTF-8"
	case !utf8.Valid(data):
		valid := 0
		for valid < len(data) {
			c, size := utf8.DecodeRune(data[valid:])
			if c == utf8.RuneError && size == 1 {
				break
			}
			valid += size
		}
		p.Line, p.Message = 1+bytes.Count(data[:valid], []byte{'\n'}), "the file is not UTF-8 text"
	case IsPointer(data):
		p.Line, p.Message = 1, "the file is in Git LFS, which is not read: keep specs out of it (git lfs untrack), "+
			"or this file out of the specs"
	default:
		return true
	}
	if !SpellsGroup(data) || IsPointer(data) {
		p.Severity = Warning
	}
	r.add(p)
	return false
}

// parse gives the roots of a file's YAML documents. After a syntax error the rest of the file is not read. A file that
// does not spell one of our API groups gets a warning for it: a chart's templates, say, are no YAML.
func parse(r *report, data []byte) []*yaml.Node {
	if root, ok := plainyaml.Parse(data); ok {
		return []*yaml.Node{root}
	}
	data = jsonAsYAML(bytes.ReplaceAll(data, []byte("\n%YAML 1.2"), []byte("\n%YAML 1.1")))
	if bytes.HasPrefix(data, []byte("%YAML 1.2")) {
		data = append([]byte("%YAML 1.1"), data[len("%YAML 1.2"):]...) // which the parser knows; it reads both alike
	}
	roots, err := plainyaml.ParseAny(data)
	if err == nil {
		return roots
	}
	p := Problem{Severity: Error}
	p.Line, p.Message = SyntaxError(data, err)
	if !SpellsGroup(data) {
		p.Severity = Warning
	}
	r.add(p)
	return roots
}

// SyntaxError gives the line, from 1, of an error of the YAML package about some data, and says what is wrong there.
func SyntaxError(data []byte, err error) (line int, message string) {
	line, message = syntaxError(err)
	line = firstLine(data, err.Error(), line)
	if text := lineOf(data, line); strings.HasPrefix(strings.TrimLeft(text, " "), "\t") {
		message = "tabs can't indent; use spaces"
	}
	return line, "not valid YAML: " + message
}

// syntaxError takes the YAML package's error apart. It has no typed errors: the line is in the text, and left out on
// the first line.
func syntaxError(err error) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				return max(n, 1), text
			}
		}
	}
	return 1, message
}

// firstLine finds the line on which a syntax error shows. The parser names the start of the enclosing block instead,
// which may be a page above. What it says of a text that is cut off after the right line or later is the same; so that
// line is found by halving.
func firstLine(data []byte, message string, reported int) int {
	const most = 64 << 10 // a larger file would be parsed too often
	if len(data) > most {
		return reported
	}
	var ends []int
	for i, c := range data {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	ends = append(ends, len(data))
	low, high := 0, len(ends)-1
	for low < high {
		middle := (low + high) / 2
		if _, err := plainyaml.ParseAny(data[:ends[middle]]); err != nil && err.Error() == message {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low + 1
}

// lineOf gives the text of a line, counted from 1.
func lineOf(data []byte, line int) string {
	for ; line > 1; line-- {
		_, rest, ok := bytes.Cut(data, []byte{'\n'})
		if !ok {
			return ""
		}
		data = rest
	}
	text, _, _ := bytes.Cut(data, []byte{'\n'})
	return string(text)
}

// jsonAsYAML rewrites the few things that JSON strings may hold and the YAML parser does not read. These are escaped
// surrogate pairs, escaped slashes, and characters that YAML calls unprintable. Lines stay what they are.
func jsonAsYAML(data []byte) []byte {
	start := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	if len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return data
	}
	if !bytes.Contains(data, []byte(`\u`)) && !bytes.Contains(data, []byte(`\/`)) &&
		!bytes.ContainsFunc(data, unprintable) ||
		!json.Valid(start) {
		return data
	}
	out := make([]byte, 0, len(start)+64)
	lead := bytes.Count(data[:len(data)-len(start)], []byte{'\n'})
	out = append(out, bytes.Repeat([]byte{'\n'}, lead)...)
	for i := 0; i < len(start); {
		if start[i] == '\\' {
			if pair, ok := surrogates(start[i:]); ok {
				out = fmt.Appendf(out, `\U%08x`, pair)
				i += 12
				continue
			}
			if start[i+1] != '/' { // JSON is valid: something follows
				out = append(out, '\\')
			}
			out = append(out, start[i+1])
			i += 2
			continue
		}
		c, size := utf8.DecodeRune(start[i:])
		if unprintable(c) {
			out = fmt.Appendf(out, `\u%04x`, c)
		} else {
			out = append(out, start[i:i+size]...)
		}
		i += size
	}
	return out
}

// unprintable characters are those that JSON strings hold as they are and YAML's reader refuses.
func unprintable(c rune) bool {
	return c == 0x7f || 0x80 <= c && c <= 0x9f && c != 0x85 || c == 0xfffe || c == 0xffff || c == '\ufeff'
}

func surrogates(b []byte) (rune, bool) {
	if len(b) < 12 || b[1] != 'u' || b[6] != '\\' || b[7] != 'u' {
		return 0, false
	}
	high, err1 := strconv.ParseUint(string(b[2:6]), 16, 16)
	low, err2 := strconv.ParseUint(string(b[8:12]), 16, 16)
	c := utf16.DecodeRune(rune(high), rune(low))
	return c, err1 == nil && err2 == nil && c != utf8.RuneError
}
