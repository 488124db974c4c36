package gitea

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// everything calls every method with what it may refuse.
func everything(ctx context.Context, f *Forge, number int64, commit string) map[string]error {
	errs := map[string]error{}
	_, errs["login"] = f.Login(ctx)
	_, errs["list"] = f.List(ctx, forge.Filter{})
	_, errs["get"] = f.Get(ctx, number)
	_, errs["open"] = f.Open(ctx, forge.Opening{Title: "t", Head: "second", Base: "main"})
	errs["title"] = f.Update(ctx, number, forge.Change{Title: "t"})
	errs["label"] = f.Update(ctx, number, forge.Change{Label: []string{"new"}})
	errs["comment"] = f.Update(ctx, number, forge.Change{Comment: "c"})
	errs["close"] = f.Update(ctx, number, forge.Change{Close: true})
	_, errs["merge"] = f.Merge(ctx, number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: commit})
	errs["status"] = f.SetStatus(ctx, commit, forge.Status{Context: "c", State: forge.StatusSuccess})
	return errs
}

// What the documentation asks for is enough for everything, and without each of it something is refused with its name.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	reviewed := w.open("reviewed")
	w.branch("second")
	w.branch("third")
	w.close(w.person, reviewed.Number)
	f := w.as(w.minimal())
	_, err := f.Login(t.Context())
	require.NoError(t, err)
	d, err := f.Get(t.Context(), reviewed.Number)
	require.NoError(t, err)
	require.Equal(t, w.person.Login, d.ClosedBy.Login)
	pr, err := f.Open(t.Context(), forge.Opening{Title: "t", Head: "third", Base: "main", Labels: []string{"l"}, Reviewers: []string{w.person.Login}})
	require.NoError(t, err)
	w.await(pr.Number, mergeable)
	require.NoError(t, f.SetStatus(t.Context(), pr.HeadCommit, forge.Status{Context: "c", State: forge.StatusSuccess}))
	require.NoError(t, f.Update(t.Context(), pr.Number, forge.Change{Title: "u", Body: "b", Label: []string{"m"}, Unlabel: []string{"l"}, Comment: "c"}))
	_, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.WhenReady, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	require.NoError(t, err)

	open := w.open("open")
	reading := w.bot.NewToken(t, "read:repository", "read:issue", "read:user")
	for name, err := range everything(t.Context(), w.as(reading), open.Number, open.HeadCommit) {
		if name == "login" || name == "list" || name == "get" {
			require.NoError(t, err, name)
			continue
		}
		var refused *forge.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, forge.ReasonForbidden, refused.Reason, name)
		need := "write:repository"
		if name == "label" || name == "comment" {
			need = "write:issue"
		}
		require.Contains(t, refused.Error(), "scope "+need, name)
		require.NotContains(t, refused.Error(), reading)
	}
	require.Equal(t, forge.StateOpen, w.get(open.Number).State)

	_, err = w.as(w.bot.NewToken(t, "write:repository")).Login(t.Context())
	require.ErrorContains(t, err, "read:user")
	_, err = w.as(w.bot.NewToken(t, "write:repository", "read:user")).Get(t.Context(), reviewed.Number)
	require.ErrorContains(t, err, "read:issue", "who closed it is told beside comments")
}

// Who may not write, or may not even see it, is told so.
func TestAccount(t *testing.T) {
	w := newWorld(t)
	open := w.open(head)
	w.branch("second")
	stranger := w.server.User(t, "stranger")
	for name, err := range everything(t.Context(), w.as(stranger.Token), open.Number, open.HeadCommit) {
		switch name {
		case "login", "list", "get", "comment": // it is a public repository
			require.NoError(t, err, name)
		default:
			var refused *forge.RefusedError
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, forge.ReasonForbidden, refused.Reason, "%s: %v", name, err)
		}
	}
	yes := true
	_, _, err := w.owner.Client(t).EditRepo(w.repo.Owner, w.repo.Name, sdk.EditRepoOption{Private: &yes})
	require.NoError(t, err)
	for name, err := range everything(t.Context(), w.as(stranger.Token), open.Number, open.HeadCommit) {
		if name == "login" {
			continue
		}
		var refused *forge.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, forge.ReasonNotFound, refused.Reason, name)
		require.Contains(t, refused.Need, "may see the repository")
	}
}

func TestWrongToken(t *testing.T) {
	w := newWorld(t)
	open := w.open(head)
	const wrong = "0123456789abcdef0123456789abcdef01234567"
	for name, err := range everything(t.Context(), w.as(wrong), open.Number, open.HeadCommit) {
		var refused *forge.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, forge.ReasonUnauthorized, refused.Reason, name)
		require.Contains(t, refused.Need, "give a new one")
		require.NotContains(t, err.Error(), wrong)
	}
}

// A forge that is not at the root of its host, behind a proxy that asks for patience and is away at times.
func TestBehindProxy(t *testing.T) {
	w := newWorld(t)
	pr := w.open(head)
	inner, err := url.Parse(w.server.URL)
	require.NoError(t, err)
	proxy := http.StripPrefix("/git", httputil.NewSingleHostReverseProxy(inner))
	answer := func(rw http.ResponseWriter, r *http.Request) { proxy.ServeHTTP(rw, r) }
	requests := 0
	outer := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { requests++; answer(rw, r) }))
	t.Cleanup(outer.Close)
	located, err := forge.Locate(forge.Location{Clone: outer.URL + "/git/" + w.repo.Owner + "/" + w.repo.Name + ".git", Kind: forge.KindGitea})
	require.NoError(t, err)
	now := time.Now()
	f, err := New(forge.Config{
		Repository: located, Now: func() time.Time { return now },
		Token: func(context.Context) (string, error) { return w.bot.Token, nil },
	})
	require.NoError(t, err)
	d, err := f.Get(t.Context(), pr.Number)
	require.NoError(t, err)
	require.Equal(t, head, d.Head)

	working := answer
	answer = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "90")
		rw.WriteHeader(http.StatusTooManyRequests)
	}
	var limited *forge.RateLimitError
	_, err = f.Get(t.Context(), pr.Number)
	require.ErrorAs(t, err, &limited)
	require.Equal(t, now.Add(90*time.Second), limited.Until)
	answer, requests = working, 0
	for _, err := range everything(t.Context(), f, pr.Number, pr.HeadCommit) {
		if err != nil { // who it is, is known
			require.ErrorAs(t, err, &limited)
		}
	}
	require.Zero(t, requests)
	now = limited.Until
	_, err = f.Get(t.Context(), pr.Number)
	require.NoError(t, err)

	var away *forge.UnavailableError
	answer = func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusBadGateway)
		_, _ = rw.Write([]byte("<html>" + w.bot.Token + strings.Repeat("x", 5000)))
	}
	_, err = f.Get(t.Context(), pr.Number)
	require.ErrorAs(t, err, &away)
	require.NotContains(t, err.Error(), w.bot.Token)
	require.Less(t, len(err.Error()), 600)
	_, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.NotAnymore})
	require.ErrorAs(t, err, &away)
	outer.CloseClientConnections()
	outer.Close()
	_, err = f.Get(t.Context(), pr.Number)
	require.ErrorAs(t, err, &away)
	require.Contains(t, away.Said, "connection refused")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Get(ctx, pr.Number)
	require.ErrorAs(t, err, &away)
	require.True(t, errors.Is(err, context.Canceled))
}
