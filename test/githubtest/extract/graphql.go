package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

// fields are what the adapter asks for, by type. What they take is taken whole.
var fields = map[string][]string{
	"Query":                              {"repository", "viewer"},
	"Repository":                         {"ref", "viewerPermission"},
	"Ref":                                {"refUpdateRule"},
	"RefUpdateRule":                      {"viewerCanPush"},
	"User":                               {"databaseId", "login"},
	"Mutation":                           {"disablePullRequestAutoMerge", "enablePullRequestAutoMerge"},
	"DisablePullRequestAutoMergePayload": {"clientMutationId", "pullRequest"},
	"EnablePullRequestAutoMergePayload":  {"clientMutationId", "pullRequest"},
	"PullRequest":                        {"number"},
}

// whole are types that those fields take.
var whole = []string{
	"DisablePullRequestAutoMergeInput", "EnablePullRequestAutoMergeInput", "GitObjectID", "PullRequestMergeMethod",
	"RepositoryPermission",
}

func trimGraphQL(text []byte) ([]byte, error) {
	document, err := parser.ParseSchema(&ast.Source{Name: graphQLFile, Input: string(text)})
	if err != nil {
		return nil, err
	}
	var kept ast.DefinitionList
	for _, definition := range document.Definitions {
		names, some := fields[definition.Name]
		if !some && !slices.Contains(whole, definition.Name) {
			continue
		}
		trimmed := *definition
		trimmed.Description, trimmed.Interfaces = "", nil
		trimmed.Directives = nil
		trimmed.Fields = nil
		for _, field := range definition.Fields {
			if some && !slices.Contains(names, field.Name) {
				continue
			}
			one := *field
			one.Description, one.Directives = "", nil
			for i := range one.Arguments {
				one.Arguments[i].Description, one.Arguments[i].Directives = "", nil
			}
			trimmed.Fields = append(trimmed.Fields, &one)
		}
		if some && len(trimmed.Fields) != len(names) {
			return nil, fmt.Errorf("%s has not all of %v", definition.Name, names)
		}
		for i := range trimmed.EnumValues {
			trimmed.EnumValues[i].Description = ""
		}
		kept = append(kept, &trimmed)
	}
	if want := len(fields) + len(whole); len(kept) != want {
		return nil, fmt.Errorf("%d of %d types are there", len(kept), want)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Some of GitHub's GraphQL schema, taken from %s (MIT) by make github-api. Do not edit.\n\n",
		graphQLVersion)
	formatter.NewFormatter(&out).FormatSchemaDocument(&ast.SchemaDocument{Definitions: kept})
	return out.Bytes(), nil
}
