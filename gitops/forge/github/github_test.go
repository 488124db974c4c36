package github

import (
	"testing"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/forgetest"
	"github.com/rampart-gitops/rampart/internal/githubtest"
)

func site(t *testing.T) *forgetest.Site {
	t.Helper()
	server := githubtest.Start(t)
	s := forgetest.Simulated(t, server.World, server.Server)
	s.Kind, s.Make = forge.KindGitHub, func(c forge.Config) (forge.Forge, error) { return New(c) }
	s.Teams, s.Commits = true, true
	return s
}

func TestForge(t *testing.T) {
	forgetest.Run(t, site)
	forgetest.RunSimulated(t, site)
}
