package github_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/test/forgetest"
)

// A branch tells who may push to it, by its protection and by its rulesets.
func TestBranchTellsWhoMayPush(t *testing.T) {
	s := site(t)
	is := func(name string) *forge.Branch {
		b, err := s.Checker(s.Bot.Token).Branch(t.Context(), name)
		require.NoError(t, err)
		return b
	}
	require.Nil(t, is("not-there"))
	require.Equal(t, &forge.Branch{MayPush: true}, is("main"))
	for _, c := range []struct {
		rules forgetest.Rules
		want  forge.Branch
	}{
		{forgetest.Rules{Protected: map[string][]string{"main": {s.Person.Login}}}, forge.Branch{Protected: true}},
		{forgetest.Rules{Protected: map[string][]string{"main": {s.Bot.Login}}}, forge.Branch{Protected: true, MayPush: true}},
		{forgetest.Rules{Ruled: map[string][]string{"main": {s.Person.Login}}}, forge.Branch{Protected: true}},
		{forgetest.Rules{Ruled: map[string][]string{"main": {s.Bot.Login}}}, forge.Branch{Protected: true, MayPush: true}},
		{forgetest.Rules{Protected: map[string][]string{"main": {s.Bot.Login}}, Ruled: map[string][]string{"main": {s.Person.Login}}}, forge.Branch{Protected: true}},
	} {
		s.SetRules(func(r *forgetest.Rules) { r.Protected, r.Ruled = c.rules.Protected, c.rules.Ruled })
		require.Equal(t, &c.want, is("main"), "%+v", c.rules)
	}
	s.SetRules(func(r *forgetest.Rules) { r.Protected, r.Ruled = nil, nil })
	b, err := s.Checker(s.Reader.Token).Branch(t.Context(), "main")
	require.NoError(t, err)
	require.Equal(t, &forge.Branch{}, b)
	_, err = s.Checker("wrong").Branch(t.Context(), "main")
	require.Error(t, err)
}

// What a token lacks is told without a change: by its scopes, or by what is refused.
func TestLacksOfATokenAreTold(t *testing.T) {
	s := site(t)
	lacks := func(token string, statuses bool) string {
		err := errors.Join(s.Checker(token).Lacks(t.Context(), statuses)...)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	require.Empty(t, lacks(s.Bot.Token, true))
	require.Empty(t, lacks(s.World.ClassicToken(s.Bot, "repo"), true))
	require.Empty(t, lacks(s.World.ClassicToken(s.Bot, "public_repo"), true))
	require.Contains(t, lacks(s.World.ClassicToken(s.Bot, "repo:status", "read:org"), true), `the token has the scopes ["repo:status" "read:org"], and needs repo`)
	s.SetRules(func(r *forgetest.Rules) { r.Private = true })
	require.Contains(t, lacks(s.World.ClassicToken(s.Bot, "public_repo"), true), "needs repo")
	read := lacks(s.ReadToken(s.Bot), true)
	require.Contains(t, read, "change pull requests")
	require.Contains(t, read, "Issues, read and write")
	require.Contains(t, read, "Commit statuses, write")
	require.NotContains(t, lacks(s.ReadToken(s.Bot), false), "Commit statuses")
	require.Contains(t, lacks(s.Reader.Token, false), "give it the role Write")
	require.Contains(t, lacks("wrong", true), "unauthorized")
	all, err := s.As(s.Bot.Token).List(t.Context(), forge.Filter{})
	require.NoError(t, err)
	require.Empty(t, all)
}

// Webhooks are listed, with how the last delivery went, to those who administer the repository.
func TestHooksAreListedToAdministrators(t *testing.T) {
	s := site(t)
	s.SetRules(func(r *forgetest.Rules) {
		r.MaxPage = 2
		r.Hooks = []forgetest.Hook{{URL: "https://a.example.com", Events: []string{"push", "pull_request"}, Code: 202}, {URL: "https://b.example.com", Events: []string{"*"}, Code: 401},
			{URL: "https://c.example.com", Events: []string{"issues"}, Off: true}}
	})
	var refused *forge.RefusedError
	_, err := s.Checker(s.Bot.Token).Hooks(t.Context())
	require.ErrorAs(t, err, &refused)
	s.World.SetAdmin(s.Bot, true)
	hooks, err := s.Checker(s.Bot.Token).Hooks(t.Context())
	require.NoError(t, err)
	require.Equal(t, []forge.Hook{{URL: "https://a.example.com", Active: true, Pushes: true, Last: "HTTP 202 Accepted"},
		{URL: "https://b.example.com", Active: true, Pushes: true, Last: "HTTP 401 Unauthorized", Failed: true}, {URL: "https://c.example.com"}}, hooks)
}
