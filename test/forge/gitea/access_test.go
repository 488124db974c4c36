package gitea_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitea"
	"github.com/rampart-gitops/rampart/test/forgetest"
)

// What the documentation asks for is enough for everything, and without each of it something is refused with its name.
func TestDocumentedScopesAreEnough(t *testing.T) {
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
	w.awaitMergeable(pr.Number)
	require.NoError(t, f.SetStatus(t.Context(), pr.HeadCommit, forge.Status{Context: "c", State: forge.StatusSuccess}))
	require.NoError(t, f.Update(t.Context(), pr.Number, forge.Change{Title: "u", Body: "b", Label: []string{"m"}, Comment: "c"}))
	_, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.WhenReady, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	require.NoError(t, err)

	open := w.open("open")
	reading := w.bot.NewToken(t, "read:repository", "read:issue", "read:user")
	for name, err := range forgetest.Everything(t.Context(), w.as(reading), open.Number, open.HeadCommit) {
		if name == "login" || name == "list" || name == "get" || name == "statuses" {
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

// A forge that is not at the root of its host, behind a proxy, and then away.
func TestBehindProxy(t *testing.T) {
	w := newWorld(t)
	pr := w.open(head)
	inner, err := url.Parse(w.server.URL)
	require.NoError(t, err)
	outer := httptest.NewServer(http.StripPrefix("/git", httputil.NewSingleHostReverseProxy(inner)))
	t.Cleanup(outer.Close)
	located, err := forge.Locate(forge.Location{Clone: outer.URL + "/git/" + w.repo.Owner + "/" + w.repo.Name + ".git", Kind: forge.KindGitea})
	require.NoError(t, err)
	f, err := gitea.New(forge.Config{Repository: located, Token: func(context.Context) (string, error) { return w.bot.Token, nil }})
	require.NoError(t, err)
	d, err := f.Get(t.Context(), pr.Number)
	require.NoError(t, err)
	require.Equal(t, head, d.Head)
	outer.CloseClientConnections()
	outer.Close()
	_, err = f.Get(t.Context(), pr.Number)
	var away *forge.UnavailableError
	require.ErrorAs(t, err, &away)
	require.Contains(t, away.Said, "connection refused")
}
