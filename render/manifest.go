package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// maxNodes bounds the size of a manifest with its aliases written out.
const maxNodes = 100_000

// parseManifest reads the one object of a manifest into the values of decoded JSON. Numbers keep their text, so that
// values without an edit are written back as they were. A plain scalar that readers disagree on is read as Kubernetes'
// own tools read it, because they are who applies it.
func parseManifest(data string) (map[string]any, error) {
	d := yamlv3.NewDecoder(strings.NewReader(data))
	var doc, more yamlv3.Node
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	r := nodeReader{left: maxNodes}
	v, err := r.value(doc.Content[0])
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return m, nil
}

type nodeReader struct{ left int }

func (r *nodeReader) value(n *yamlv3.Node) (any, error) {
	if r.left--; r.left < 0 {
		return nil, fmt.Errorf("line %d: more than %d values", n.Line, maxNodes)
	}
	if n.Style&yamlv3.TaggedStyle != 0 && n.ShortTag() != "!!str" {
		return nil, fmt.Errorf("line %d: tag %s is not supported", n.Line, n.Tag)
	}
	switch n.Kind {
	case yamlv3.AliasNode:
		return r.value(n.Alias)
	case yamlv3.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			v, err := r.value(c)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case yamlv3.MappingNode:
		return r.object(n)
	}
	return scalarValue(n)
}

func (r *nodeReader) object(n *yamlv3.Node) (map[string]any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, err := r.key(n.Content[i])
		if err != nil {
			return nil, err
		}
		if _, dup := m[k]; dup {
			return nil, fmt.Errorf("line %d: key %q is there twice", n.Content[i].Line, k)
		}
		if m[k], err = r.value(n.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (r *nodeReader) key(n *yamlv3.Node) (string, error) {
	if n.ShortTag() == "!!merge" {
		return "", fmt.Errorf("line %d: merge keys are not supported", n.Line)
	}
	v, err := r.value(n)
	if err != nil {
		return "", err
	}
	k, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("line %d: a key must be a string, quote it", n.Line)
	}
	return k, nil
}

func scalarValue(n *yamlv3.Node) (any, error) {
	const quoted = yamlv3.DoubleQuotedStyle | yamlv3.SingleQuotedStyle | yamlv3.LiteralStyle | yamlv3.FoldedStyle |
		yamlv3.TaggedStyle
	switch {
	case n.Style&quoted != 0, plainSafe(n.Value):
		return n.Value, nil
	case checkNumber(n.Value) == nil:
		return json.Number(n.Value), nil
	case n.Value == "" || n.Value == "null":
		return nil, nil
	case strings.ContainsRune(n.Value, '\n'), len(n.Value) > len("2006-01-02T15:04:05.999999999+00:00") &&
		!strings.ContainsRune("+-.0123456789", rune(n.Value[0])):
		return n.Value, nil // no reader takes these for anything else; a number can be as long as it likes
	}
	raw, err := yaml.YAMLToJSON([]byte("v: " + n.Value))
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	v, err := v1alpha1.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return nil, fmt.Errorf("line %d: %q cannot be read, quote it", n.Line, n.Value)
	}
	return m["v"], nil
}
