package render

import (
	"fmt"
	"strings"
)

// The helpers here walk decoded JSON. A field that is null counts as missing, as it does to Kubernetes.

// objectIn gives the object in a field; made if it is missing.
func objectIn(m map[string]any, key string) (map[string]any, error) {
	switch v := m[key].(type) {
	case map[string]any:
		return v, nil
	case nil:
		made := map[string]any{}
		m[key] = made
		return made, nil
	}
	return nil, fmt.Errorf("%s is not an object", key)
}

// objectAt follows fields of objects. A missing one is an error.
func objectAt(m map[string]any, keys ...string) (map[string]any, error) {
	for i, key := range keys {
		next, ok := m[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", strings.Join(keys[:i+1], "."))
		}
		m = next
	}
	return m, nil
}

// listIn gives the list in a field, nil if it is missing.
func listIn(m map[string]any, key string) ([]any, error) {
	switch v := m[key].(type) {
	case []any:
		return v, nil
	case nil:
		return nil, nil
	}
	return nil, fmt.Errorf("%s is not a list", key)
}

// setAll sets fields to texts.
func setAll(m map[string]any, texts map[string]string) {
	for key, value := range texts {
		m[key] = value
	}
}

// setList leaves an empty list out, so that taking away what was added leaves no trace.
func setList(m map[string]any, key string, list []any) {
	if len(list) == 0 {
		delete(m, key)
		return
	}
	m[key] = list
}

// without gives the items that drop does not pick. The list that was given stays as it is.
func without(list []any, drop func(item map[string]any) bool) []any {
	kept := make([]any, 0, len(list)+1)
	for _, v := range list {
		if item, ok := v.(map[string]any); ok && drop(item) {
			continue
		}
		kept = append(kept, v)
	}
	return kept
}

func named(v any, name string) bool {
	m, ok := v.(map[string]any)
	return ok && m["name"] == name
}
