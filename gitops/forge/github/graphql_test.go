package github

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Where GraphQL is, of each kind of GitHub.
func TestGraphQLURL(t *testing.T) {
	for base, want := range map[string]string{
		"https://github.com": "https://api.github.com/graphql", "https://acme.ghe.com": "https://api.acme.ghe.com/graphql",
		"https://git.example.com": "https://git.example.com/api/graphql", "https://example.com/github": "https://example.com/github/api/graphql",
	} {
		repo := forge.Repository{Kind: forge.KindGitHub, Base: base, Owner: "acme", Name: "workers"}
		require.Equal(t, want, graphqlURL(repo.API()), base)
	}
}
