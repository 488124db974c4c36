package github

import (
	"testing"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/forgetest"
	"github.com/rampart-gitops/rampart/internal/githubtest"
)

func site(t *testing.T) (*forgetest.Site, *githubtest.Server) {
	t.Helper()
	server := githubtest.Start(t)
	return &forgetest.Site{
		T: t, World: server.World, Server: server.Server, Kind: forge.KindGitHub, Teams: true, Commits: true,
		Make: func(c forge.Config) (forge.Forge, error) { return New(c) },
		Allow: func(w *forgetest.World, m forge.Method) {
			w.SetRules(func(r *forgetest.Rules) { r.Methods = []string{string(m)} })
		},
	}, server
}

func TestForge(t *testing.T) {
	forgetest.Run(t, func(t *testing.T) *forgetest.Site {
		s, _ := site(t)
		return s
	})
}
