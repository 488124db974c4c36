package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

const root = "../../.."

// packages are the tarballs that make octokit fetches.
func packages(t *testing.T) (openAPI, graphQL string) {
	t.Helper()
	openAPI, graphQL = filepath.Join(root, "bin", "octokit-openapi-23.0.2.tgz"), filepath.Join(root, "bin", "octokit-graphql-schema-15.26.1.tgz")
	for _, file := range []string{openAPI, graphQL} {
		if _, err := os.Stat(file); err != nil {
			testneed.Missing(t, "what GitHub publishes of its API is not there: run make octokit")
		}
	}
	return openAPI, graphQL
}

// What the tests are held to is what GitHub publishes, byte for byte.
func TestKeptExtractIsWhatGitHubPublishes(t *testing.T) {
	openAPI, graphQL := packages(t)
	fresh := t.TempDir()
	require.NoError(t, run(openAPI, graphQL, fresh))
	for _, name := range []string{openAPIExtract, graphQLExtract} {
		want, err := os.ReadFile(filepath.Join(fresh, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("..", "testdata", name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s: run make github-api", name)
	}
	require.ErrorContains(t, run(graphQL, openAPI, fresh), "its digest is", "another package is not taken for it")
}

// What is for people goes, fields of that name stay, and what is referred to comes along.
func TestTrimKeepsWhatIsReferredTo(t *testing.T) {
	document := `{"openapi": "3.0.3", "info": {"version": "7"}, "paths": {}, "components": {"schemas": {
		"a": {"type": "object", "description": "words", "x-github": {}, "properties": {"description": {"type": "string", "example": "x"}, "b": {"$ref": "#/components/schemas/b"}}},
		"b": {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/a"}}}, "unused": {"type": "string"}}}}`
	tr := trimmer{taken: map[string]any{}}
	require.NoError(t, json.Unmarshal([]byte(document), &tr.document))
	require.NoError(t, tr.follow("#/components/schemas/a"))
	require.Equal(t, map[string]any{
		"#/components/schemas/a": map[string]any{"type": "object", "properties": map[string]any{
			"description": map[string]any{"type": "string"}, "b": map[string]any{"$ref": "#/components/schemas/b"},
		}},
		"#/components/schemas/b": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/components/schemas/a"}}},
	}, tr.taken)
	require.ErrorContains(t, tr.follow("#/components/schemas/none"), "there is no components schemas none")
	_, err := trimOpenAPI([]byte(document))
	require.ErrorContains(t, err, "there is no paths /repos/", "an operation that is not there any more is told")
	_, err = trimGraphQL([]byte("type Query { viewer: User! }\ntype User { login: String! }"))
	require.ErrorContains(t, err, "has not all of")
}
