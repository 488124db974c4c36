package takeover

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// object is one live object.
type object struct {
	file string
	node *yamlv3.Node
	// value is the object as decoded JSON.
	value            map[string]any
	apiVersion, kind string
	name             rollout.Name
}

// String is the object for people.
func (o *object) String() string { return o.kind + " " + o.name.String() }

// problem is something wrong with an object, at a field; "": the object.
func (o *object) problem(field, format string, args ...any) v1alpha1.Problem {
	return v1alpha1.Problem{Severity: v1alpha1.Error, File: o.file, Line: o.line(field), Path: field,
		Message: o.String() + ": " + fmt.Sprintf(format, args...)}
}

// line is where a field is, or else the nearest one above it.
func (o *object) line(field string) int {
	at := o.node
	for _, key := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(at, key)
		if next == nil {
			break
		}
		at = next
	}
	return at.Line
}

func child(n *yamlv3.Node, key string) *yamlv3.Node {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	case yamlv3.SequenceNode:
		if at, err := strconv.Atoi(key); err == nil && at < len(n.Content) {
			return n.Content[at]
		}
	}
	return nil
}

// read gives the objects of texts, those in lists too, in their order.
func read(files []rollout.TextFile) (out []*object, problems []v1alpha1.Problem) {
	for _, f := range files {
		d := yamlv3.NewDecoder(strings.NewReader(f.Text))
		for {
			var doc yamlv3.Node
			err := d.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				problems = append(problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: f.Path,
					Message: fmt.Sprintf("neither YAML nor JSON: %v", err)})
				break
			}
			for _, n := range items(doc.Content[0]) {
				o, err := newObject(f.Path, n)
				if err != nil {
					problems = append(problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: f.Path, Line: n.Line,
						Message: err.Error()})
				} else if o != nil {
					out = append(out, o)
				}
			}
		}
	}
	return out, problems
}

// items are the objects of a list, or the one object.
func items(n *yamlv3.Node) []*yamlv3.Node {
	kind := child(n, "kind")
	if list := child(n, "items"); kind != nil && strings.HasSuffix(kind.Value, "List") && list != nil {
		return list.Content
	}
	return []*yamlv3.Node{n}
}

// newObject reads an object; nil: there is nothing.
func newObject(file string, n *yamlv3.Node) (*object, error) {
	data, err := yamlv3.Marshal(n)
	if err != nil {
		return nil, err
	}
	raw, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	decoded, err := v1alpha1.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	if decoded == nil {
		return nil, nil
	}
	value, ok := decoded.(map[string]any)
	if !ok {
		return nil, errors.New("not an object: give what kubectl get -o yaml prints")
	}
	o := &object{file: file, node: n, value: value, apiVersion: text(value, "apiVersion"), kind: text(value, "kind"),
		name: rollout.Name{Namespace: text(value, "metadata", "namespace"), Name: text(value, "metadata", "name")}}
	if o.apiVersion == "" || o.kind == "" || o.name.Name == "" {
		return nil, errors.New("it has no apiVersion, kind or metadata.name: give what kubectl get -o yaml prints")
	}
	return o, nil
}

// at follows fields of objects; nil where one is missing.
func at(v any, keys ...string) any {
	for _, key := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// text is a text at a path of fields, "" where there is none.
func text(v any, keys ...string) string {
	s, _ := at(v, keys...).(string)
	return s
}

// objects are the objects in a list at a path of fields.
func objects(v any, keys ...string) []map[string]any {
	list, _ := at(v, keys...).([]any)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// number is a whole number at a path of fields; false: there is none.
func number(v any, keys ...string) (int64, bool) {
	n, ok := at(v, keys...).(interface{ Int64() (int64, error) })
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}
