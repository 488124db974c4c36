package github_test

import (
	"testing"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/github"
	"github.com/rampart-gitops/rampart/test/forgetest"
	"github.com/rampart-gitops/rampart/test/githubtest"
)

func site(t *testing.T) *forgetest.Site {
	t.Helper()
	server := githubtest.Start(t)
	s := forgetest.Simulated(t, server.World, server.Server)
	s.Kind, s.Make = forge.KindGitHub, func(c forge.Config) (forge.Forge, error) { return github.New(c) }
	s.Teams, s.Commits = true, true
	return s
}

func TestForgePassesTheSuite(t *testing.T) {
	forgetest.Run(t, site)
	forgetest.RunSimulated(t, site)
}
