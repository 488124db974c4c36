package webhook_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/logtest"
	"github.com/rampart-gitops/rampart/internal/webhook"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }

// secret is the bot's.
const secret = "0123456789abcdef0123456789abcdef"

// giteaWorld is a repository on a real Gitea that sends webhooks to a handler.
type giteaWorld struct {
	*testing.T
	log              logtest.Buffer
	rung             atomic.Int64
	repo             giteatest.Repository
	bot, person      giteatest.User
	client, asPerson *sdk.Client
	url              string
}

func newGiteaWorld(t *testing.T) *giteaWorld {
	t.Helper()
	server := giteatest.Start(t)
	w := &giteaWorld{T: t, bot: server.User(t, "bot"), person: server.User(t, "person")}
	w.repo = server.Repository(t, server.Organization(t, w.person))
	w.repo.Collaborators(t, w.bot, w.person)
	w.client, w.asPerson = w.bot.Client(t), w.person.Client(t)
	handler, err := webhook.NewHandler(t.Context(), webhook.Config{
		Repository: w.repo.Owner + "/" + w.repo.Name, Proposals: []string{"rampart/"},
		Watched: func(b string) bool { return b == "main" },
		Secrets: func(context.Context) (string, error) { return secret, nil },
		Ring:    func() { w.rung.Add(1) }, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	at := webhook.ServerConfig{Address: "127.0.0.1:0", Path: "/webhook", Log: slog.New(slog.DiscardHandler)}
	s, err := webhook.Listen(t.Context(), at, handler)
	require.NoError(t, err)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	w.url = "http://" + s.Address() + "/webhook"
	return w
}

// hook makes a webhook with the events that the documentation lists.
func (w *giteaWorld) hook(secret, contentType string) {
	w.Helper()
	_, _, err := w.asPerson.CreateRepoHook(w.repo.Owner, w.repo.Name, sdk.CreateHookOption{Type: sdk.HookTypeGitea, Active: true,
		Config: map[string]string{"url": w.url, "content_type": contentType, "secret": secret},
		Events: []string{"push", "delete", "pull_request_only", "pull_request_sync", "pull_request_label", "pull_request_review"}})
	require.NoError(w, err)
}

// logs waits until the handler's log has lines that hold some text, so many of them.
func (w *giteaWorld) logs(count int, parts ...string) {
	w.Helper()
	require.Eventually(w, func() bool {
		n := 0
		for line := range strings.Lines(w.log.String()) {
			all := true
			for _, p := range parts {
				all = all && strings.Contains(line, p)
			}
			if all {
				n++
			}
		}
		return n >= count
	}, 30*time.Second, 20*time.Millisecond, "%q", parts)
}

// A real Gitea wakes the bot by what happens to branches and proposals, and by nothing else.
func TestGiteaWakesTheBotByBranchesAndProposals(t *testing.T) {
	w := newGiteaWorld(t)
	w.hook(secret, "json")
	accepted, proposal := "level=INFO msg=webhook forge=gitea", "rampart/prod/shop/checkout"
	require.Zero(t, w.rung.Load())

	w.repo.Commit(t, w.person, giteatest.Commit{Branch: "main", Path: "a", Text: "a"})
	w.logs(1, accepted, "event=push", "ref=refs/heads/main", "proof=hmac")
	w.repo.Commit(t, w.person, giteatest.Commit{Branch: "feature", From: "main", Path: "b", Text: "b"})
	w.logs(1, `msg="webhook ignored"`, "event=push", `it is about another branch, \"feature\"`)
	w.repo.Commit(t, w.bot, giteatest.Commit{Branch: proposal, From: "main", Path: "c", Text: "c"})
	w.logs(1, accepted, "event=push", "ref=refs/heads/"+proposal)

	pull, _, err := w.client.CreatePullRequest(w.repo.Owner, w.repo.Name, sdk.CreatePullRequestOption{Head: proposal, Base: "main", Title: "ramp"})
	require.NoError(t, err)
	w.logs(1, accepted, "event=pull_request ")
	_, _, err = w.asPerson.CreatePullRequest(w.repo.Owner, w.repo.Name, sdk.CreatePullRequestOption{Head: "feature", Base: "main", Title: "mine"})
	require.NoError(t, err)
	w.logs(1, `msg="webhook ignored"`, "event=pull_request ", "not a proposal")
	for i, state := range []sdk.StateType{sdk.StateClosed, sdk.StateOpen} {
		_, _, err = w.asPerson.EditPullRequest(w.repo.Owner, w.repo.Name, pull.Index, sdk.EditPullRequestOption{State: &state})
		require.NoError(t, err)
		w.logs(2+i, accepted, "event=pull_request ")
	}
	label, _, err := w.asPerson.CreateLabel(w.repo.Owner, w.repo.Name, sdk.CreateLabelOption{Name: "hold", Color: "#ff0000"})
	require.NoError(t, err)
	_, _, err = w.asPerson.AddIssueLabels(w.repo.Owner, w.repo.Name, pull.Index, sdk.IssueLabelsOption{Labels: []int64{label.ID}})
	require.NoError(t, err)
	w.logs(4, accepted, "event=pull_request ")
	w.repo.Commit(t, w.bot, giteatest.Commit{Branch: proposal, Path: "d", Text: "d"})
	w.logs(2, accepted, "event=push", "ref=refs/heads/"+proposal)
	w.logs(5, accepted, "event=pull_request ")
	for _, r := range []struct {
		state sdk.ReviewStateType
		event string
	}{{sdk.ReviewStateRequestChanges, "pull_request_rejected"}, {sdk.ReviewStateApproved, "pull_request_approved"}} {
		_, _, err = w.asPerson.CreatePullReview(w.repo.Owner, w.repo.Name, pull.Index, sdk.CreatePullReviewOptions{State: r.state, Body: "see"})
		require.NoError(t, err)
		w.logs(1, accepted, "event="+r.event)
	}
	require.Eventually(t, func() bool { // Gitea has to have looked at the commit
		merged, _, err := w.asPerson.MergePullRequest(w.repo.Owner, w.repo.Name, pull.Index, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge})
		return err == nil && merged
	}, 30*time.Second, 50*time.Millisecond)
	w.logs(6, accepted, "event=pull_request ")
	w.logs(2, accepted, "event=push", "ref=refs/heads/main")
	_, _, err = w.client.DeleteRepoBranch(w.repo.Owner, w.repo.Name, proposal)
	require.NoError(t, err)
	w.logs(1, accepted, "event=delete", "ref="+proposal)
	require.NotContains(t, w.log.String(), "refused")
	require.GreaterOrEqual(t, int(w.rung.Load()), strings.Count(w.log.String(), accepted))
}

// What Gitea sends without the secret, with another one, or in a form is refused, and the log says what to do.
func TestGiteaRefused(t *testing.T) {
	for name, c := range map[string]struct{ secret, contentType, says string }{
		"no secret":      {"", "json", "does the forge's webhook have a secret?"},
		"another secret": {"another", "json", "the signature is wrong"},
		"a form":         {secret, "form", "set the webhook's content type to application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGiteaWorld(t)
			w.hook(c.secret, c.contentType)
			w.repo.Commit(t, w.person, giteatest.Commit{Branch: "main", Path: "a", Text: "a"})
			w.logs(1, `msg="webhook refused"`, c.says)
			require.Zero(t, w.rung.Load())
		})
	}
}

// A webhook of the organization tells of all of its repositories; only ours counts.
func TestGiteaOrganization(t *testing.T) {
	w := newGiteaWorld(t)
	_, _, err := w.asPerson.CreateOrgHook(w.repo.Owner, sdk.CreateHookOption{Type: sdk.HookTypeGitea, Active: true,
		Config: map[string]string{"url": w.url, "content_type": "json", "secret": secret}, Events: []string{"push"}})
	require.NoError(t, err)
	other := giteatest.Start(t).Repository(t, w.repo.Owner)
	other.Collaborators(t, w.person)
	other.Commit(t, w.person, giteatest.Commit{Branch: "main", Path: "a", Text: "a"})
	w.logs(1, `msg="webhook ignored"`, fmt.Sprintf(`it is about another repository, \"%s/%s\"`, other.Owner, other.Name))
	w.repo.Commit(t, w.person, giteatest.Commit{Branch: "main", Path: "a", Text: "a"})
	w.logs(1, "level=INFO msg=webhook forge=gitea", "event=push")
	require.Equal(t, int64(1), w.rung.Load())
}
