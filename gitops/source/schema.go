package source

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// checkSchema holds values against the values.schema.json of a chart and of those in charts/. Schemas elsewhere are not
// read.
func checkSchema(c *chart.Chart, values common.Values) error {
	if c.Schema != nil {
		if err := satisfies(c.Schema, values); err != nil {
			return fmt.Errorf("values of %s: %w", c.Name(), err)
		}
	}
	for _, d := range c.Dependencies() {
		if given, ok := values[d.Name()].(map[string]any); ok {
			if err := checkSchema(d, given); err != nil {
				return err
			}
		}
	}
	return nil
}

func satisfies(schema []byte, values common.Values) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	const name = "values.schema.json"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(name, doc); err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	return compiled.Validate(map[string]any(maps.Clone(values)))
}

// noLoader refuses schemas outside of values.schema.json. The library has those of the standard itself.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is in another place, and nothing is fetched: write the schema into values.schema.json",
		url)
}
