package gitlab_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/test/forgetest"
)

// A branch tells who may push to it.
func TestBranchTellsWhoMayPush(t *testing.T) {
	s := site(t)
	is := func(token, name string) *forge.Branch {
		b, err := s.Checker(token).Branch(t.Context(), name)
		require.NoError(t, err)
		return b
	}
	require.Nil(t, is(s.Bot.Token, "not-there"))
	s.Branch("open/to-all")
	require.Equal(t, &forge.Branch{MayPush: true}, is(s.Bot.Token, "open/to-all"))
	s.SetRules(func(r *forgetest.Rules) { r.Protected = map[string][]string{"main": {s.Person.Login}} })
	require.Equal(t, &forge.Branch{Protected: true}, is(s.Bot.Token, "main"))
	require.Equal(t, &forge.Branch{Protected: true, MayPush: true}, is(s.Person.Token, "main"))
	_, err := s.Checker("wrong").Branch(t.Context(), "main")
	require.Error(t, err)
}

// What a token and its account lack is told by the token's scopes and the account's role.
func TestLacksOfATokenAreTold(t *testing.T) {
	s := site(t)
	lacks := func(token string) string {
		err := errors.Join(s.Checker(token).Lacks(t.Context(), true)...)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	require.Empty(t, lacks(s.Bot.Token))
	require.Equal(t, `the token has the scopes ["read_api"], and needs api to open merge requests and to set statuses`, lacks(s.ReadToken(s.Bot)))
	require.Contains(t, lacks(s.Reader.Token), "is below Developer: give it that role")
	require.Contains(t, lacks("wrong"), "unauthorized")
}

// Webhooks are listed to those who administer the project. GitLab turns off what fails.
func TestHooksAreListedToAdministrators(t *testing.T) {
	s := site(t)
	s.SetRules(func(r *forgetest.Rules) {
		r.MaxPage = 2
		r.Hooks = []forgetest.Hook{{URL: "https://a.example.com", Events: []string{"push", "pull_request"}, Code: 202}, {URL: "https://b.example.com", Events: []string{"push"}, Code: 500},
			{URL: "https://c.example.com", Off: true}}
	})
	var refused *forge.RefusedError
	_, err := s.Checker(s.Bot.Token).Hooks(t.Context())
	require.ErrorAs(t, err, &refused)
	s.World.SetAdmin(s.Bot, true)
	hooks, err := s.Checker(s.Bot.Token).Hooks(t.Context())
	require.NoError(t, err)
	require.Equal(t, []forge.Hook{{URL: "https://a.example.com", Active: true, Pushes: true},
		{URL: "https://b.example.com", Active: true, Pushes: true, Failed: true, Last: "GitLab has turned it off for a while, since deliveries fail"}, {URL: "https://c.example.com"}}, hooks)
}
