package plainyaml

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// ParseAny reads any YAML with the library, and gives the root of each document that has content.
func ParseAny(data []byte) ([]*yaml.Node, error) {
	var roots []*yaml.Node
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document yaml.Node
		switch err := d.Decode(&document); {
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			return roots, err
		case len(document.Content) > 0:
			roots = append(roots, document.Content[0])
		}
	}
}
