package gitea_test

import (
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

// What was closed has no commit in a list: Gitea shows what the branch is now.
func TestListOfClosed(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	w.branch(head)
	for range 3 {
		pr, err := w.forge.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
		require.NoError(t, err)
		w.close(w.person, pr.Number)
	}
	w.front.limit(1)
	list, err := w.forge.List(t.Context(), forge.Filter{Head: head})
	require.NoError(t, err)
	require.Equal(t, []int64{3, 2, 1}, numbers(list))
	for _, pr := range list {
		require.Equal(t, forge.StateClosed, pr.State)
		require.Empty(t, pr.HeadCommit)
	}
}

// Since a moment, only what changed since, and no more pages than that takes.
func TestListSinceReadsOnlyWhatChanged(t *testing.T) {
	w := newWorld(t)
	var prs []forge.PullRequest
	for _, name := range []string{"a", "b", "c", "d"} {
		prs = append(prs, w.open(name))
	}
	last := prs[3].Updated
	require.Eventually(t, func() bool { return time.Now().After(last.Add(2 * time.Second)) }, patience, tick) // it counts in seconds
	w.close(w.person, prs[0].Number)
	closed := w.get(prs[0].Number).Updated
	w.front.limit(2)
	asked := w.front.Asked()
	list, err := w.forge.List(t.Context(), forge.Filter{Since: closed})
	require.NoError(t, err)
	require.Equal(t, []int64{prs[0].Number}, numbers(list))
	list, err = w.forge.List(t.Context(), forge.Filter{Since: closed, Head: "b"})
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, 2, w.front.Asked()-asked, "the first page tells that there is no need for the second")
}

// One that is opened between two pages moves others to the next page, where they are not counted twice.
func TestListWhileOneIsOpened(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.open(name)
	}
	w.front.limit(2)
	w.front.SetBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("page") == "2" {
			w.front.SetBefore(nil)
			w.open("e")
		}
		return false
	})
	list, err := w.forge.List(t.Context(), forge.Filter{})
	require.NoError(t, err)
	require.Equal(t, []int64{4, 3, 2, 1}, numbers(list))
}
