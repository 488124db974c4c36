package gitlab_test

import (
	"testing"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitlab"
	"github.com/rampart-gitops/rampart/test/forgetest"
	"github.com/rampart-gitops/rampart/test/gitlabtest"
)

func site(t *testing.T) *forgetest.Site {
	t.Helper()
	server := gitlabtest.Start(t)
	s := forgetest.Simulated(t, server.World, server.Server)
	s.Kind, s.Make = forge.KindGitLab, func(c forge.Config) (forge.Forge, error) { return gitlab.New(c) }
	return s
}

func TestForgePassesTheSuite(t *testing.T) {
	forgetest.Run(t, site)
	forgetest.RunSimulated(t, site)
}
