package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	library "github.com/rampart-gitops/rampart/rego"
)

// Bounds of all data files together, their aliases expanded.
const (
	maxValues = 200_000
	maxText   = 4 * MaxFileSize
	MaxDepth  = 100
)

// LoadData merges the library's defaults and the data files. A file that cannot be used is left out and reported.
func LoadData(files []DataFile) (map[string]any, []Problem) {
	path, content := library.Data()
	data := map[string]any{}
	sources := make([]*Node, 0, len(files)+1)
	var problems []Problem
	left := newDataBounds()
	for _, f := range slices.Concat([]DataFile{{path, content}}, files) {
		node, err := left.readData(f)
		if err == nil && node != nil {
			err = reserved(node)
		}
		if p := (Problem{}); errors.As(err, &p) {
			problems = append(problems, p)
			continue
		}
		if node == nil {
			continue
		}
		data = merge(data, node.object())
		sources = append(sources, node)
	}
	return data, append(problems, checkConfig(data, sources)...)
}

// merge lays over on base: objects key by key, anything else replaces what was there. Neither is changed.
func merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for k, v := range over {
		b, isObject := out[k].(map[string]any)
		if o, ok := v.(map[string]any); ok && isObject {
			v = merge(b, o)
		}
		out[k] = v
	}
	return out
}

// reserved refuses data where policies are.
func reserved(root *Node) error {
	r, ok := root.Fields["rampart"]
	if !ok {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(r.Fields)) {
		if k != "config" {
			return r.Fields[k].Problemf("data below rampart may hold config only, not %q%s", k,
				didYouMean(k, []string{"config"}))
		}
	}
	if r.Fields == nil {
		return r.Problemf("rampart has to be an object with config")
	}
	return nil
}

// Node is one value of a data file and where it is.
type Node struct {
	path   string
	line   int
	Fields map[string]*Node
	Items  []*Node
	Value  any // of anything else
}

// Problemf is a problem at the node's line.
func (n *Node) Problemf(format string, args ...any) Problem {
	return Problem{Path: n.path, Line: n.line, Message: fmt.Sprintf(format, args...)}
}

// object is the value of an object.
func (n *Node) object() map[string]any {
	out := make(map[string]any, len(n.Fields))
	for k, f := range n.Fields {
		out[k] = f.any()
	}
	return out
}

func (n *Node) any() any {
	switch {
	case n.Fields != nil:
		return n.object()
	case n.Items != nil:
		out := make([]any, len(n.Items))
		for i, item := range n.Items {
			out[i] = item.any()
		}
		return out
	}
	return n.Value
}

// nearest follows keys as far as they lead, and says how far that was.
func (n *Node) nearest(keys []string) (*Node, int) {
	for i, k := range keys {
		next := n.Fields[k]
		if at, err := strconv.Atoi(k); err == nil && n.Items != nil && at < len(n.Items) {
			next = n.Items[at]
		}
		if next == nil {
			return n, i
		}
		n = next
	}
	return n, len(keys)
}

// dataBounds are what is left of the bounds of data.
type dataBounds struct{ values, text int }

func newDataBounds() *dataBounds { return &dataBounds{values: maxValues, text: maxText} }

// ReadData reads one data file by itself.
func ReadData(f DataFile) (*Node, error) { return newDataBounds().readData(f) }

// readData reads one data file. Nil: it is empty. Its errors are Problems.
func (b *dataBounds) readData(f DataFile) (*Node, error) {
	if len(f.Content) > MaxFileSize {
		return nil, Problem{Path: f.Path, Message: fmt.Sprintf("the file has %d bytes; more than %d are not read",
			len(f.Content), MaxFileSize)}
	}
	d := yaml.NewDecoder(bytes.NewReader([]byte(f.Content)))
	var document, more yaml.Node
	err := d.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		p := Problem{Path: f.Path}
		p.Line, p.Message = v1alpha1.SyntaxError([]byte(f.Content), err)
		return nil, p
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, Problem{Path: f.Path, Line: max(more.Line, 1), Message: "a data file holds one YAML document"}
	}
	if len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	r := &dataReader{path: f.Path, dataBounds: *b}
	root, err := r.read(document.Content[0], 0)
	if err != nil {
		return nil, err
	}
	*b = r.dataBounds
	if root.Fields == nil {
		return nil, root.Problemf("a data file has to hold an object")
	}
	return root, nil
}

// dataReader turns YAML into values as JSON has them, within bounds.
type dataReader struct {
	path string
	dataBounds
}

func (r *dataReader) read(y *yaml.Node, depth int) (*Node, error) {
	n := &Node{path: r.path, line: y.Line}
	r.values--
	r.text -= len(y.Value)
	switch {
	case r.values < 0 || r.text < 0:
		return nil, n.Problemf("more than %d values or %d bytes in all data files when aliases are expanded", maxValues,
			maxText)
	case depth > MaxDepth:
		return nil, n.Problemf("nested more than %d deep, or an alias within itself", MaxDepth)
	}
	switch y.Kind {
	case yaml.AliasNode:
		return r.read(y.Alias, depth+1)
	case yaml.SequenceNode:
		n.Items = make([]*Node, 0, len(y.Content))
		for _, item := range y.Content {
			v, err := r.read(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, v)
		}
		return n, nil
	case yaml.MappingNode:
		return n, r.mapping(n, y, depth)
	}
	value, err := scalar(y)
	if err != nil {
		return nil, n.Problemf("%v", err)
	}
	n.Value = value
	return n, nil
}

func (r *dataReader) mapping(n *Node, y *yaml.Node, depth int) error {
	n.Fields = make(map[string]*Node, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		at := &Node{path: r.path, line: key.Line}
		r.text -= len(key.Value)
		switch _, twice := n.Fields[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			return at.Problemf("a key has to be a string")
		case key.ShortTag() == "!!merge":
			return at.Problemf("merge keys (<<) are not read in data files")
		case twice:
			return at.Problemf("key %q is given twice", key.Value)
		}
		v, err := r.read(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		v.line = key.Line
		n.Fields[key.Value] = v
	}
	return nil
}

// scalar gives a scalar as JSON has it. What YAML takes for a time stays the text that was written.
func scalar(y *yaml.Node) (any, error) {
	switch y.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		err := y.Decode(&b)
		return b, err
	case "!!int":
		var i int64
		if y.Decode(&i) == nil {
			return json.Number(strconv.FormatInt(i, 10)), nil
		}
		fallthrough
	case "!!float":
		var f float64
		if err := y.Decode(&f); err != nil {
			return nil, err
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%s cannot be written as a JSON number", y.Value)
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
	case "!!str", "!!timestamp":
		return y.Value, nil
	}
	return nil, fmt.Errorf("tag %s is not read in data files", y.Tag)
}

// ConfiguredRules are the rules of the library whose parameters data files give, by name. Files that cannot be read
// configure nothing; that they cannot is a problem elsewhere.
func ConfiguredRules(files []DataFile) map[string]bool {
	out := map[string]bool{}
	for _, f := range files {
		node, err := ReadData(f)
		if err != nil || node == nil {
			continue
		}
		config := node.Fields["rampart"].Field("config")
		if config == nil {
			continue
		}
		for group, rules := range config.Fields {
			for name := range rules.Fields {
				out[group+"."+name] = true
			}
		}
	}
	return out
}

// Field is a field of an object, nil where there is none.
func (n *Node) Field(name string) *Node {
	if n == nil {
		return nil
	}
	return n.Fields[name]
}
