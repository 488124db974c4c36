package cmdutil

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/render"
)

// The formats of data.
const (
	FormatText  = "text"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	FormatSARIF = "sarif"
)

// AddOutput adds -o with its formats to a command; the first one is the default.
func AddOutput(cmd *cobra.Command, c *Choice, formats ...string) {
	*c = NewChoice(formats[0], formats...)
	cmd.Flags().VarP(c, "output", "o", "format: "+c.List())
	CompleteFlag(cmd, "output", c.Complete)
}

// Print writes a value to standard output: by text in that format, else as JSON or YAML.
func (a *App) Print(format string, v any, text func() error) error {
	if format == FormatText {
		return text()
	}
	return a.Encode(format, v)
}

// Encode writes a value to standard output as JSON or YAML, with a line end.
func (a *App) Encode(format string, v any) error {
	data, err := encode(format, v)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(data)
	return err
}

func encode(format string, v any) ([]byte, error) {
	if format == FormatYAML {
		return render.YAML(v)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // what is embedded as JSON has to come back byte for byte
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %s: %w", format, err)
	}
	return b.Bytes(), nil
}

// SortedKeys gives the keys of a map, sorted.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
