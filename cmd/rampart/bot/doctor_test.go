package bot

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// doctor compares its clock with that of a Git server, whether that gives credentials a look or not, and says which way
// it is wrong.
func TestDoctorClock(t *testing.T) {
	server := gittest.ServeHTTP(t, gittest.NewBareRepo(t), gittest.HTTPConfig{User: "bot", Password: "a-token-of-tests"})
	for off, want := range map[time.Duration]string{0: "", 8 * time.Second: "", -8 * time.Second: "", 2 * time.Minute: " ahead of 127.0.0.1:", -time.Hour: " behind 127.0.0.1:"} {
		d := &doctor{App: &cmdutil.App{Now: func() time.Time { return time.Now().Add(off) }, LookupEnv: func(string) (string, bool) { return "", false }}, repository: cmdutil.RepositoryFlags{URL: server.URL}}
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
		d := &doctor{App: &cmdutil.App{Now: time.Now, LookupEnv: func(string) (string, bool) { return "", false }}, repository: cmdutil.RepositoryFlags{URL: url}}
		d.clock(t.Context())
		require.Empty(t, d.checks, url)
	}
}

// checkedForge answers doctor's questions about a forge.
type checkedForge struct {
	forge.None
	login  string
	lacks  map[bool][]error // by whether commit statuses are a part of the work
	branch forge.Branch
	hooks  []forge.Hook
	err    error // of listing webhooks
}

func (f *checkedForge) Login(context.Context) (string, error) { return f.login, nil }

func (f *checkedForge) Lacks(_ context.Context, statuses bool) []error { return f.lacks[statuses] }

func (f *checkedForge) Branch(context.Context, string) (*forge.Branch, error) { return &f.branch, nil }

func (f *checkedForge) Hooks(context.Context) ([]forge.Hook, error) { return f.hooks, f.err }

// doctor tells of a forge what the token lacks, whether branches take pushes, and whether webhooks arrive.
func TestDoctorOnForges(t *testing.T) {
	const here = "https://rampart.example.com/webhook"
	on := &checkedForge{login: "rampart-bot"}
	env := rollout.EnvironmentWorld{}
	look := func(webhook string) string {
		var out bytes.Buffer
		d := &doctor{App: &cmdutil.App{Out: &out}, webhook: webhook, repository: cmdutil.RepositoryFlags{Branch: "main"}}
		d.accepts(t.Context(), on, rollout.World{Environments: []rollout.EnvironmentWorld{env}})
		_ = d.tell(t.Context(), cmdutil.FormatText) // it counts what failed
		for _, c := range d.checks {
			require.Equal(t, c.Verdict == checkPassed, c.Do == "", "what to do is said of what is wrong: %v", c)
		}
		return out.String()
	}
	said := look("")
	require.Contains(t, said, "ok       forge: accepts the token of rampart-bot, for all that the bot does there")
	require.NotContains(t, said, "webhooks")
	for branch, want := range map[forge.Branch]string{
		{MayPush: true}:                  "warning  branch main: is not protected",
		{Protected: true}:                "warning  branch main: is protected, and the forge does not let this account push to it",
		{Protected: true, MayPush: true}: "ok       branch main: is protected, and lets this account push",
		{}:                               "failed   branch main: the forge does not let this account push to it",
	} {
		on.branch = branch
		require.Contains(t, look(""), want)
	}
	on.lacks = map[bool][]error{true: {errors.New("set commit statuses: forbidden")}}
	require.Contains(t, look(""), "failed   forge: set commit statuses: forbidden")
	env.Environment.CommitStatuses = v1alpha1.NoCommitStatuses
	require.NotContains(t, look(""), "set commit statuses")

	on.err = &forge.RefusedError{Op: "list the webhooks", Reason: forge.ReasonForbidden}
	require.Contains(t, look(here), "warning  webhooks: list the webhooks")
	on.err = nil
	require.Contains(t, look(here), "failed   webhooks: none of the repository's webhooks (0) leads to "+here)
	for _, c := range []struct {
		hook forge.Hook
		want string
	}{
		{forge.Hook{URL: here + "/", Active: true, Pushes: true, Last: "HTTP 202 Accepted"},
			"ok       webhooks: a webhook leads to " + here},
		{forge.Hook{URL: here, Active: true, Pushes: true}, "the forge does not tell whether deliveries arrive"},
		{forge.Hook{URL: here, Active: true, Pushes: true, Last: "HTTP 401", Failed: true},
			"failed   webhooks: the last delivery to " + here + " failed: HTTP 401"},
		{forge.Hook{URL: here, Pushes: true}, "failed   webhooks: the webhook to " + here + " is turned off"},
		{forge.Hook{URL: here, Active: true}, "failed   webhooks: the webhook to " + here + " does not tell of pushes"},
	} {
		on.hooks = []forge.Hook{{URL: "https://elsewhere.example.com", Active: true, Pushes: true}, c.hook}
		require.Contains(t, look(here), c.want)
	}
}
