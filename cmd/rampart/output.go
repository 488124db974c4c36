package main

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
	formatText  = "text"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatSARIF = "sarif"
)

// addOutput gives a command -o; the first format is the default.
func (a *app) addOutput(cmd *cobra.Command, c *choice, formats ...string) {
	*c = newChoice(formats[0], formats...)
	cmd.Flags().VarP(c, "output", "o", "format: "+c.list())
	a.completeFlag(cmd, "output", c.complete)
}

// encode writes a value as JSON or YAML, with a line end.
func (a *app) encode(format string, v any) error {
	data, err := encode(format, v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(data)
	return err
}

func encode(format string, v any) ([]byte, error) {
	if format == formatYAML {
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
