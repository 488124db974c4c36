package gitea

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/giteatest"
)

func numbers(list []forge.PullRequest) (n []int64) {
	for _, pr := range list {
		n = append(n, pr.Number)
	}
	return n
}

// More than a page of the same head, among those of others and those of forks, the newest first.
func TestList(t *testing.T) {
	w := newWorld(t)
	w.branch(head)
	var want []int64
	for range 7 {
		pr, err := w.forge.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
		require.NoError(t, err)
		want = append([]int64{pr.Number}, want...)
		require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Close: true}))
	}
	other := w.open("rampart/prod/payments/refunds")
	w.fork(head)
	w.forge.page = 3

	list, err := w.forge.List(t.Context(), forge.Filter{Head: head})
	require.NoError(t, err)
	require.Equal(t, want, numbers(list))
	for _, pr := range list {
		require.Equal(t, forge.StateClosed, pr.State)
		require.Empty(t, pr.HeadCommit, "what the branch is now is not what was closed")
	}
	list, err = w.forge.List(t.Context(), forge.Filter{})
	require.NoError(t, err)
	require.Equal(t, append([]int64{other.Number}, want...), numbers(list))
	list, err = w.forge.List(t.Context(), forge.Filter{Open: true})
	require.NoError(t, err)
	require.Equal(t, []int64{other.Number}, numbers(list))
	list, err = w.forge.List(t.Context(), forge.Filter{Head: head, Open: true})
	require.NoError(t, err)
	require.Empty(t, list)

	w.forge.pages = 2
	_, err = w.forge.List(t.Context(), forge.Filter{Head: head})
	var many *forge.TooManyError
	require.ErrorAs(t, err, &many)
	require.Equal(t, 6, many.Most)
}

// fork opens a pull request from a branch of that name in a fork.
func (w *world) fork(branch string) {
	w.Helper()
	stranger := w.server.User(w, "stranger")
	_, _, err := stranger.Client(w).CreateFork(w.repo.Owner, w.repo.Name, sdk.CreateForkOption{})
	require.NoError(w, err)
	theirs := w.repo
	theirs.Owner = stranger.Login
	theirs.Commit(w, stranger, giteatest.Commit{Branch: branch, Path: "evil", Text: "x"})
	_, _, err = stranger.Client(w).CreatePullRequest(w.repo.Owner, w.repo.Name, sdk.CreatePullRequestOption{
		Head: stranger.Login + ":" + branch, Base: "main", Title: "rampart",
	})
	require.NoError(w, err)
	all, _, err := w.person.Client(w).ListRepoPullRequests(w.repo.Owner, w.repo.Name, sdk.ListPullRequestsOptions{State: sdk.StateOpen})
	require.NoError(w, err)
	require.Equal(w, branch, all[0].Head.Name)
	_, err = w.forge.Get(w.Context(), all[0].Index)
	var refused *forge.RefusedError
	require.ErrorAs(w, err, &refused)
	require.Equal(w, forge.ReasonNotFound, refused.Reason)
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

// Of those who open the same at once, one does, and the others find it.
func TestOpenAtOnce(t *testing.T) {
	w := newWorld(t)
	w.branch(head)
	_, err := w.forge.Login(t.Context())
	require.NoError(t, err)
	const bots = 4
	var (
		wg     sync.WaitGroup
		got    [bots]forge.PullRequest
		errs   [bots]error
		exists *forge.ExistsError
	)
	for i := range bots {
		wg.Go(func() {
			got[i], errs[i] = w.forge.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
		})
	}
	wg.Wait()
	opened := 0
	for i, err := range errs {
		if err == nil {
			opened++
		} else {
			require.ErrorAs(t, err, &exists)
			require.Equal(t, exists.PullRequest, got[i])
		}
	}
	require.Equal(t, 1, opened, errors.Join(errs[:]...))
	list, err := w.forge.List(t.Context(), forge.Filter{Head: head, Open: true})
	require.NoError(t, err)
	require.Len(t, list, 1)
	for _, pr := range got {
		require.Equal(t, list[0].Number, pr.Number)
	}
	all, err := w.forge.List(t.Context(), forge.Filter{Head: head})
	require.NoError(t, err)
	t.Logf("%d were opened, of which one stands", len(all))
}

// One that was there is found, whatever was asked for it, and closed ones do not count; to another base it is another one.
func TestExists(t *testing.T) {
	w := newWorld(t)
	first := w.open(head)
	w.close(w.person, first.Number)
	second, err := w.forge.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
	require.NoError(t, err)
	w.branch("release")
	release, err := w.forge.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "release"})
	require.NoError(t, err)
	require.NotEqual(t, second.Number, release.Number)
	got, err := w.forge.Open(t.Context(), forge.Opening{Title: "another", Head: head, Base: "main", Labels: []string{"l"}})
	var exists *forge.ExistsError
	require.ErrorAs(t, err, &exists)
	require.Equal(t, second.Number, got.Number)
	require.Equal(t, "t", w.get(second.Number).Title)
}

// The old name of a repository that was renamed leads to it.
func TestRenamed(t *testing.T) {
	w := newWorld(t)
	pr := w.open(head)
	name := w.repo.Name + "-renamed"
	_, _, err := w.owner.Client(t).EditRepo(w.repo.Owner, w.repo.Name, sdk.EditRepoOption{Name: &name})
	require.NoError(t, err)
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Title: "Still here", Comment: "c", Label: []string{"l"}}))
	d := w.get(pr.Number)
	require.Equal(t, "Still here", d.Title)
	require.Contains(t, d.URL, name)
	w.await(pr.Number, mergeable)
	w.merge(pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodRebase, Commit: pr.HeadCommit})
}
