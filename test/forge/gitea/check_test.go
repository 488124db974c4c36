package gitea_test

import (
	"errors"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// A branch tells who may push to it.
func TestBranchTellsWhoMayPush(t *testing.T) {
	w := newWorld(t)
	is := func(name string) *forge.Branch {
		b, err := w.forge.Branch(t.Context(), name)
		require.NoError(t, err)
		return b
	}
	require.Nil(t, is("not-there"))
	require.Equal(t, &forge.Branch{MayPush: true}, is("main"))
	w.repo.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main", EnablePush: true, EnablePushWhitelist: true, PushWhitelistUsernames: []string{w.person.Login}})
	require.Equal(t, &forge.Branch{Protected: true}, is("main"))
	w.branch("open/to-bot")
	w.repo.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "open/*", EnablePush: true, EnablePushWhitelist: true, PushWhitelistUsernames: []string{w.bot.Login}})
	require.Equal(t, &forge.Branch{Protected: true, MayPush: true}, is("open/to-bot"))
	_, err := w.as("wrong").Branch(t.Context(), "main")
	require.Error(t, err)
}

// What a token lacks is told without a change, by the scope that the documentation names.
func TestLacksOfATokenAreTold(t *testing.T) {
	w := newWorld(t)
	require.Empty(t, w.as(w.minimal()).Lacks(t.Context(), true))
	for _, c := range []struct {
		scopes []sdk.AccessTokenScope
		want   []string
	}{
		{[]sdk.AccessTokenScope{"read:repository", "write:issue"}, []string{"scope write:repository"}},
		{[]sdk.AccessTokenScope{"write:repository", "read:issue"}, []string{"scope write:issue"}},
		{[]sdk.AccessTokenScope{"read:repository"}, []string{"scope write:repository", "scope write:issue"}},
		{[]sdk.AccessTokenScope{"write:issue"}, []string{"scope read:repository"}},
	} {
		lacks := w.as(w.bot.NewToken(t, c.scopes...)).Lacks(t.Context(), true)
		require.Len(t, lacks, len(c.want), "%v: %v", c.scopes, errors.Join(lacks...))
		for i, want := range c.want {
			require.ErrorContains(t, lacks[i], want)
		}
	}
	w.repo.Collaborator(t, w.bot, sdk.AccessModeRead)
	require.ErrorContains(t, errors.Join(w.as(w.minimal()).Lacks(t.Context(), true)...), "and not write to it")
	prs, err := w.forge.List(t.Context(), forge.Filter{})
	require.NoError(t, err)
	require.Empty(t, prs)
}

// Webhooks are listed to those who administer the repository.
func TestHooksAreListedToAdministrators(t *testing.T) {
	w := newWorld(t)
	create := func(url string, active bool, events ...string) {
		_, _, err := w.owner.Client(t).CreateRepoHook(w.repo.Owner, w.repo.Name, sdk.CreateHookOption{Type: sdk.HookTypeGitea, Active: active, Events: events,
			Config: map[string]string{"url": url, "content_type": "json"}})
		require.NoError(t, err)
	}
	create("https://a.example.com/webhook", true, "push", "pull_request")
	create("https://b.example.com/webhook", false, "issues")
	var refused *forge.RefusedError
	_, err := w.forge.Hooks(t.Context())
	require.ErrorAs(t, err, &refused)
	w.repo.Collaborator(t, w.bot, sdk.AccessModeAdmin)
	hooks, err := w.forge.Hooks(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []forge.Hook{{URL: "https://a.example.com/webhook", Active: true, Pushes: true}, {URL: "https://b.example.com/webhook"}}, hooks)
}
