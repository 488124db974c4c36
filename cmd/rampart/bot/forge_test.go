package bot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitea"
	"github.com/rampart-gitops/rampart/gitops/forge/github"
	"github.com/rampart-gitops/rampart/gitops/forge/gitlab"
)

// Each kind of forge has its adapter, told by the host or said.
func TestForgeKinds(t *testing.T) {
	a := &cmdutil.App{LookupEnv: func(name string) (string, bool) { return "secret", name == variableForgeToken }}
	for _, c := range []struct {
		kind, url string
		want      forge.Forge
	}{
		{"", "https://github.com/acme/workers.git", &github.Forge{}},
		{"", "git@gitlab.com:acme/platform/workers.git", &gitlab.Forge{}},
		{"", "https://git.example.com/acme/workers.git", forge.None{}},
		{"github", "https://git.example.com/acme/workers.git", &github.Forge{}},
		{"gitlab", "https://git.example.com/acme/platform/workers.git", &gitlab.Forge{}},
		{"gitea", "https://git.example.com/acme/workers.git", &gitea.Forge{}},
		{"none", "https://github.com/acme/workers.git", forge.None{}},
	} {
		got, _, err := openForge(a, forgeFlags{kind: c.kind}, cmdutil.RepositoryFlags{URL: c.url})
		require.NoError(t, err, c)
		require.IsType(t, c.want, got, c)
	}
	_, _, err := openForge(a, forgeFlags{kind: "bitbucket"}, cmdutil.RepositoryFlags{URL: "https://git.example.com/acme/workers.git"})
	require.ErrorContains(t, err, "there is github, gitlab, gitea and none")
}
