package bot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// The address that commits give the repository has no credentials, and is left out where it is for machines only.
func TestPageOf(t *testing.T) {
	for clone, want := range map[string]string{
		"https://bot:secret@git.example.com/platform/workers.git":         "https://git.example.com/platform/workers.git",
		"https://git.example.com/workers.git?private_token=secret#secret": "https://git.example.com/workers.git",
		"ssh://git@git.example.com:2222/platform/workers.git":             "ssh://git.example.com:2222/platform/workers.git",
		"git@git.example.com:platform/workers.git":                        "",
		"file:///srv/workers.git":                                         "",
		"/srv/workers.git":                                                "",
	} {
		require.Equal(t, want, pageOf(located{}, clone), clone)
	}
	at := forge.Repository{Kind: forge.KindGitHub, Base: "https://github.com", Owner: "platform", Name: "workers"}
	require.Equal(t, "https://github.com/platform/workers", pageOf(located{at: at}, "git@github.com:platform/workers.git"))
}
