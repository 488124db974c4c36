package gitea

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

func numbers(list []forge.PullRequest) (n []int64) {
	for _, pr := range list {
		n = append(n, pr.Number)
	}
	return n
}

// A list that would be longer than is read fails. What was closed has no commit in it: Gitea shows what the branch is now.
func TestTooMany(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	w.branch(head)
	for range 3 {
		pr, err := w.forge.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
		require.NoError(t, err)
		w.close(w.person, pr.Number)
	}
	w.forge.page, w.forge.pages = 1, 3
	list, err := w.forge.List(t.Context(), forge.Filter{Head: head})
	require.NoError(t, err)
	require.Equal(t, []int64{3, 2, 1}, numbers(list))
	for _, pr := range list {
		require.Equal(t, forge.StateClosed, pr.State)
		require.Empty(t, pr.HeadCommit)
	}
	w.forge.pages = 2
	_, err = w.forge.List(t.Context(), forge.Filter{Head: head})
	var many *forge.TooManyError
	require.ErrorAs(t, err, &many)
	require.Equal(t, 2, many.Most)
}

// Since a moment, only what changed since, and no more pages than that takes.
func TestSince(t *testing.T) {
	w := newWorld(t)
	var prs []forge.PullRequest
	for _, name := range []string{"a", "b", "c", "d"} {
		prs = append(prs, w.open(name))
	}
	last := prs[3].Updated
	require.Eventually(t, func() bool { return time.Now().After(last.Add(2 * time.Second)) }, patience, tick) // it counts in seconds
	w.close(w.person, prs[0].Number)
	w.forge.page, w.forge.pages = 2, 1 // the first page tells that there is no need for the second
	closed := w.get(prs[0].Number).Updated
	list, err := w.forge.List(t.Context(), forge.Filter{Since: closed})
	require.NoError(t, err)
	require.Equal(t, []int64{prs[0].Number}, numbers(list))
	list, err = w.forge.List(t.Context(), forge.Filter{Since: closed, Head: "b"})
	require.NoError(t, err)
	require.Empty(t, list)
}

// One that is opened between two pages moves others to the next page, where they are not counted twice.
func TestListWhileOneIsOpened(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.open(name)
	}
	between := func(page string) {
		if page == "2" {
			w.open("e")
		}
	}
	f, err := New(forge.Config{
		Repository: w.located(), Token: func(context.Context) (string, error) { return w.bot.Token, nil },
		HTTP: &http.Client{Transport: before(between)},
	})
	require.NoError(t, err)
	f.page = 2
	list, err := f.List(t.Context(), forge.Filter{})
	require.NoError(t, err)
	require.Equal(t, []int64{4, 3, 2, 1}, numbers(list))
}

// before is called with the page that is asked for next.
type before func(page string)

func (b before) RoundTrip(req *http.Request) (*http.Response, error) {
	b(req.URL.Query().Get("page"))
	return http.DefaultTransport.RoundTrip(req)
}
