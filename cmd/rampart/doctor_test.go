package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/forgetest"
	"github.com/rampart-gitops/rampart/internal/githubtest"
	"github.com/rampart-gitops/rampart/internal/gitlabtest"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// doctor compares its clock with that of a Git server, whether that gives credentials a look or not, and says which way it is wrong.
func TestDoctorClock(t *testing.T) {
	server := gittest.ServeHTTP(t, gittest.NewBareRepo(t), gittest.HTTPConfig{User: "bot", Password: "a-token-of-tests"})
	for off, want := range map[time.Duration]string{0: "", 8 * time.Second: "", -8 * time.Second: "", 2 * time.Minute: " ahead of 127.0.0.1:", -time.Hour: " behind 127.0.0.1:"} {
		d := &doctor{app: &app{now: func() time.Time { return time.Now().Add(off) }, variable: func(string) (string, bool) { return "", false }}, repository: repositoryFlags{url: server.URL}}
		d.clock(t.Context())
		require.Len(t, d.checks, 1, off)
		if want == "" {
			require.Equal(t, checkPassed, d.checks[0].Verdict, off)
			continue
		}
		require.Equal(t, checkWarning, d.checks[0].Verdict, off)
		require.Contains(t, d.checks[0].Found, want)
	}
	for _, url := range []string{"git@git.example.com:a/b.git", "file:///srv/git/a.git", "http://127.0.0.1:1/a.git"} {
		d := &doctor{app: &app{now: time.Now, variable: func(string) (string, bool) { return "", false }}, repository: repositoryFlags{url: url}}
		d.clock(t.Context())
		require.Empty(t, d.checks, url)
	}
}

// doctor tells of each forge that it has an interface for what the token lacks, whether branches take pushes, and
// whether webhooks arrive.
func TestDoctorOnForges(t *testing.T) {
	const here = "https://rampart.example.com/webhook"
	events := []string{"push", "pull_request"}
	for kind, start := range map[string]func() (*forgetest.World, string){
		"github": func() (*forgetest.World, string) { s := githubtest.Start(t); return s.World, s.URL },
		"gitlab": func() (*forgetest.World, string) { s := gitlabtest.Start(t); return s.World, s.URL },
	} {
		world, url := start()
		env := rollout.EnvironmentWorld{}
		look := func(token, webhook string) string {
			var out bytes.Buffer
			d := &doctor{app: &app{out: &out, now: time.Now, variable: func(name string) (string, bool) { return token, name == variableForgeToken }}, webhook: webhook,
				repository: repositoryFlags{url: url + "/" + world.Owner + "/" + world.Name + ".git", branch: "main"}, forge: forgeFlags{kind: kind, url: url}}
			d.reviews(t.Context(), rollout.World{Environments: []rollout.EnvironmentWorld{env}})
			_ = d.tell(t.Context(), formatText) // it counts what failed
			for _, c := range d.checks {
				require.Equal(t, c.Verdict == checkPassed, c.Do == "", "what to do is said of what is wrong: %v", c)
			}
			return out.String()
		}
		bot := world.Bot.Token
		said := look(bot, "")
		require.Contains(t, said, "ok       forge: accepts the token of rampart-bot, for all that the bot does there", kind)
		require.Contains(t, said, "warning  branch main: is not protected", kind)
		require.NotContains(t, said, "webhooks", kind)
		world.SetRules(func(r *forgetest.Rules) { r.Protected = map[string][]string{"main": {"person"}} })
		require.Contains(t, look(bot, ""), "warning  branch main: is protected, and the forge does not let this account push to it", kind)
		world.SetRules(func(r *forgetest.Rules) { r.Protected = map[string][]string{"main": {"rampart-bot"}} })
		require.Contains(t, look(bot, ""), "ok       branch main: is protected, and lets this account push", kind)
		require.Contains(t, look(world.ReadToken(world.Bot), ""), "failed   forge: ", kind)
		if kind == "github" { // where statuses have a permission of their own
			require.Contains(t, look(world.ReadToken(world.Bot), ""), "set commit statuses")
			env.Environment.CommitStatuses = v1alpha1.NoCommitStatuses
			require.NotContains(t, look(world.ReadToken(world.Bot), ""), "set commit statuses")
		}

		require.Contains(t, look(bot, here), "warning  webhooks: list the webhooks at ", kind)
		world.SetAdmin(world.Bot, true)
		require.Contains(t, look(bot, here), "failed   webhooks: none of the repository's webhooks (0) leads to "+here, kind)
		for _, c := range []struct {
			hook forgetest.Hook
			want string
		}{
			{forgetest.Hook{URL: here + "/", Events: events, Code: 202}, "ok       webhooks: a webhook leads to " + here},
			{forgetest.Hook{URL: here, Events: events}, "the forge does not tell whether deliveries arrive"},
			{forgetest.Hook{URL: here, Events: events, Code: 401}, "failed   webhooks: the last delivery to " + here + " failed: "},
			{forgetest.Hook{URL: here, Events: events, Off: true}, "failed   webhooks: the webhook to " + here + " is turned off"},
			{forgetest.Hook{URL: here, Events: []string{"pull_request"}, Code: 202}, "failed   webhooks: the webhook to " + here + " does not tell of pushes"},
		} {
			world.SetRules(func(r *forgetest.Rules) {
				r.Hooks = []forgetest.Hook{{URL: "https://elsewhere.example.com", Events: events}, c.hook}
			})
			require.Contains(t, look(bot, here), c.want, kind)
		}
	}
}
