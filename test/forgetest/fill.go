package forgetest

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// fill adds what a schema requires of a value and the tests do not care for: addresses, counts, settings.
func fill(schemas []*openapi3.Schema, value any) any {
	switch v := value.(type) {
	case []any:
		var items []*openapi3.Schema
		for _, s := range schemas {
			items = append(items, chosen(s.Items)...)
		}
		for i := range v {
			v[i] = fill(items, v[i])
		}
	case map[string]any:
		for _, s := range schemas {
			for _, name := range s.Required {
				if _, given := v[name]; !given {
					v[name] = zero(s.Properties[name])
				}
			}
		}
		for name, below := range v {
			for _, s := range schemas {
				if ref := s.Properties[name]; ref != nil {
					v[name] = fill(chosen(ref), below)
				}
			}
		}
	}
	return value
}

// chosen are a schema and what it is composed of, the first one where there is a choice.
func chosen(ref *openapi3.SchemaRef) (all []*openapi3.Schema) {
	if ref == nil || ref.Value == nil {
		return nil
	}
	all = append(all, ref.Value)
	for _, below := range ref.Value.AllOf {
		all = append(all, chosen(below)...)
	}
	for _, choice := range []openapi3.SchemaRefs{ref.Value.AnyOf, ref.Value.OneOf} {
		if i := slices.IndexFunc(choice, func(c *openapi3.SchemaRef) bool {
			return c.Value != nil && !c.Value.Type.Is("null")
		}); i >= 0 {
			all = append(all, chosen(choice[i])...)
		}
	}
	return all
}

// zero is the least that a schema takes.
func zero(ref *openapi3.SchemaRef) any {
	all := chosen(ref)
	if slices.ContainsFunc(all, func(s *openapi3.Schema) bool { return s.Nullable }) {
		return nil
	}
	for _, s := range all {
		switch {
		case len(s.Enum) > 0:
			return s.Enum[0]
		case s.Type == nil:
			continue
		case s.Type.Is("array"):
			return []any{}
		case s.Type.Is("boolean"):
			return false
		case s.Type.Is("integer"), s.Type.Is("number"):
			return 1
		case s.Type.Is("string"):
			return text(s.Format)
		}
	}
	return fill(all, map[string]any{})
}

func text(format string) string {
	switch {
	case format == "date-time":
		return "2026-03-04T05:06:07Z"
	case strings.HasPrefix(format, "uri"):
		return "https://forge.example.com/"
	}
	return "-"
}
