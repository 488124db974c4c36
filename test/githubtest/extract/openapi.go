package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// operations are those that the adapter uses, by path.
var operations = map[string][]string{
	"/repos/{owner}/{repo}": {"get"},
	"/repos/{owner}/{repo}/collaborators/{username}/permission":     {"get"},
	"/repos/{owner}/{repo}/commits/{ref}":                           {"get"},
	"/repos/{owner}/{repo}/commits/{ref}/status":                    {"get"},
	"/repos/{owner}/{repo}/hooks":                                   {"get"},
	"/repos/{owner}/{repo}/issues/{issue_number}":                   {"get"},
	"/repos/{owner}/{repo}/issues/{issue_number}/comments":          {"post"},
	"/repos/{owner}/{repo}/issues/{issue_number}/labels":            {"post"},
	"/repos/{owner}/{repo}/labels":                                  {"post"},
	"/repos/{owner}/{repo}/labels/{name}":                           {"get"},
	"/repos/{owner}/{repo}/pulls":                                   {"get", "post"},
	"/repos/{owner}/{repo}/pulls/{pull_number}":                     {"get", "patch"},
	"/repos/{owner}/{repo}/pulls/{pull_number}/merge":               {"put"},
	"/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": {"post"},
	"/repos/{owner}/{repo}/pulls/{pull_number}/reviews":             {"get"},
	"/repos/{owner}/{repo}/rules/branches/{branch}":                 {"get"},
	"/repos/{owner}/{repo}/rulesets/{ruleset_id}":                   {"get"},
	"/repos/{owner}/{repo}/statuses/{sha}":                          {"post"},
}

// always are schemas of answers that are documented for all operations together.
var always = []string{"#/components/schemas/basic-error", "#/components/schemas/validation-error"}

// trimmer takes what is needed of a document.
type trimmer struct {
	document map[string]any
	taken    map[string]any // components, by their reference
}

func trimOpenAPI(text []byte) ([]byte, error) {
	t := trimmer{taken: map[string]any{}}
	if err := json.Unmarshal(text, &t.document); err != nil {
		return nil, err
	}
	paths := map[string]any{}
	for path, methods := range operations {
		item := map[string]any{}
		for _, method := range methods {
			operation, err := t.at("paths", path, method)
			if err != nil {
				return nil, err
			}
			if item[method], err = t.take(operation); err != nil {
				return nil, err
			}
		}
		paths[path] = item
	}
	for _, ref := range always {
		if err := t.follow(ref); err != nil {
			return nil, err
		}
	}
	components := map[string]map[string]any{}
	for ref, component := range t.taken {
		parts := strings.Split(ref, "/")
		kind, name := parts[2], parts[3]
		if components[kind] == nil {
			components[kind] = map[string]any{}
		}
		components[kind][name] = component
	}
	return indented(map[string]any{
		"openapi": t.document["openapi"], "components": components, "paths": paths,
		"info": map[string]any{
			"title": "Some operations of GitHub's REST API, taken from " + openAPIVersion +
				" (MIT) by make github-api. Do not edit.",
			"version": t.document["info"].(map[string]any)["version"],
		},
	})
}

func (t *trimmer) at(keys ...string) (any, error) {
	var value any = t.document
	for _, key := range keys {
		object, ok := value.(map[string]any)
		if !ok || object[key] == nil {
			return nil, fmt.Errorf("there is no %s", strings.Join(keys, " "))
		}
		value = object[key]
	}
	return value, nil
}

// take copies a value without what is for people, and takes what it refers to.
func (t *trimmer) take(value any) (any, error) {
	switch v := value.(type) {
	case []any:
		all := make([]any, 0, len(v))
		for _, one := range v {
			taken, err := t.take(one)
			if err != nil {
				return nil, err
			}
			all = append(all, taken)
		}
		return all, nil
	case map[string]any:
		if ref, is := v["$ref"].(string); is {
			return map[string]any{"$ref": ref}, t.follow(ref)
		}
		return t.object(v)
	}
	return value, nil
}

func (t *trimmer) object(v map[string]any) (any, error) {
	all := map[string]any{}
	for key, below := range v {
		if key == "properties" {
			fields, err := t.fields(below)
			if err != nil {
				return nil, err
			}
			all[key] = fields
			continue
		}
		if forPeople(key) {
			continue
		}
		taken, err := t.take(below)
		if err != nil {
			return nil, err
		}
		all[key] = taken
	}
	if _, response := all["content"]; response || isResponse(v) {
		all["description"] = "-" // OpenAPI wants one
	}
	return all, nil
}

// isResponse says that an object is an answer without a body.
func isResponse(v map[string]any) bool {
	_, described := v["description"].(string)
	return described && v["schema"] == nil && v["type"] == nil && v["in"] == nil && v["operationId"] == nil &&
		v["properties"] == nil &&
		v["allOf"] == nil && v["anyOf"] == nil && v["oneOf"] == nil
}

// fields are the properties of a schema, which may be called like what is for people.
func (t *trimmer) fields(value any) (any, error) {
	all := map[string]any{}
	named, ok := value.(map[string]any)
	if !ok {
		return t.take(value)
	}
	for name, schema := range named {
		taken, err := t.take(schema)
		if err != nil {
			return nil, err
		}
		all[name] = taken
	}
	return all, nil
}

func forPeople(key string) bool {
	switch key {
	case "description", "summary", "example", "examples", "externalDocs", "tags", "title":
		return true
	}
	return strings.HasPrefix(key, "x-")
}

func (t *trimmer) follow(ref string) error {
	if _, done := t.taken[ref]; done {
		return nil
	}
	component, err := t.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	if err != nil {
		return err
	}
	t.taken[ref] = nil // it may refer to itself
	t.taken[ref], err = t.take(component)
	return err
}
