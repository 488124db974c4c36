package gitea_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitea"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }

const (
	head     = "rampart/prod/payments/checkout"
	patience = 30 * time.Second
	tick     = 50 * time.Millisecond
)

// world is a repository of an organization, with the bot and a person who may write to it.
type world struct {
	*testing.T
	server             *giteatest.Server
	owner, bot, person giteatest.User
	repo               giteatest.Repository
	front              *front
	forge              *gitea.Forge
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := giteatest.Start(t)
	w := &world{T: t, server: s, front: new(front), owner: s.User(t, "owner"), bot: s.User(t, "bot"), person: s.User(t, "person")}
	w.repo = s.Repository(t, s.Organization(t, w.owner))
	w.repo.Collaborators(t, w.bot, w.person)
	w.forge = w.as(w.bot.Token)
	return w
}

// as is the forge of somebody with that token.
func (w *world) as(token string) *gitea.Forge {
	w.Helper()
	f, err := gitea.New(forge.Config{Repository: w.located(), Token: func(context.Context) (string, error) { return token, nil },
		HTTP: &http.Client{Transport: w.front}})
	require.NoError(w, err)
	return f
}

func (w *world) located() forge.Repository {
	w.Helper()
	r, err := forge.Locate(forge.Location{Clone: w.repo.URL() + ".git", Kind: forge.KindGitea})
	require.NoError(w, err)
	return r
}

// minimal is a token with what the documentation asks for, and no more.
func (w *world) minimal() string {
	return w.bot.NewToken(w, "write:repository", "write:issue", "read:user")
}

// branch makes a branch with a commit of the bot, and gives the commit.
func (w *world) branch(name string) string {
	w.Helper()
	return w.repo.Commit(w, w.bot, giteatest.Commit{Branch: name, From: "main", Path: name + "/" + time.Now().Format("150405.000000000"), Text: "x"})
}

// open opens a pull request from a new branch.
func (w *world) open(head string) forge.PullRequest {
	w.Helper()
	w.branch(head)
	pr, err := w.forge.Open(w.Context(), forge.Opening{Title: "Ramp checkout", Body: "why", Head: head, Base: "main"})
	require.NoError(w, err)
	return pr
}

func (w *world) get(number int64) forge.Details {
	w.Helper()
	d, err := w.forge.Get(w.Context(), number)
	require.NoError(w, err)
	return d
}

// await waits for what Gitea does in the background.
func (w *world) await(number int64, what func(forge.Details) bool) forge.Details {
	w.Helper()
	end := time.Now().Add(patience)
	for d := w.get(number); ; d = w.get(number) {
		if what(d) {
			return d
		}
		require.True(w, time.Now().Before(end), "it did not come to that in %s", patience)
		<-time.After(tick)
	}
}

// awaitMergeable waits until Gitea has found no conflict. A check of Gitea's that failed is only made again after
// another push.
func (w *world) awaitMergeable(number int64) {
	w.Helper()
	again := time.Now().Add(patience / 4)
	w.await(number, func(d forge.Details) bool {
		if !d.Mergeable && time.Now().After(again) {
			at := time.Now().String()
			w.repo.Commit(w, w.person, giteatest.Commit{Branch: "main", Path: "checked-again " + at, Text: at})
			again = time.Now().Add(patience / 4)
		}
		return d.Mergeable
	})
}

// close closes it as somebody.
func (w *world) close(by giteatest.User, number int64) {
	w.Helper()
	closed := sdk.StateClosed
	_, _, err := by.Client(w).EditPullRequest(w.repo.Owner, w.repo.Name, number, sdk.EditPullRequestOption{State: &closed})
	require.NoError(w, err)
}
