package gitops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// The commits that changed a path are those that gave it other content or took it away, the newest first.
func TestChangersAreListedNewestFirst(t *testing.T) {
	r := gittest.NewBareRepo(t)
	write := func(path, text string) string {
		return r.Commit(gittest.Commit{Write: map[string]string{path: text}})
	}
	paths := map[string]bool{"workers/a.yaml": true, "workers/b.yaml": true}
	first := write("workers/a.yaml", specYAML("shop", "a", "a:1"))
	write("other", "1")
	second := write("workers/b.yaml", specYAML("shop", "b", "b:1"))
	r.Commits(changersLook-2, func(int) gittest.Commit { return gittest.Commit{Write: map[string]string{"other": "2"}} })
	repo := open(t, r)
	require.Nil(t, repo.Changers(paths), "nothing was read yet")
	changers := func() []string {
		read(t, repo)
		got, err := repo.Changers(paths)(t.Context())
		require.NoError(t, err)
		return got
	}
	require.Equal(t, []string{second, first}, changers())
	search, found := repo.Changers(paths), make(chan []string)
	go func() {
		got, _ := search(t.Context())
		found <- got
	}()
	gone := r.Commit(gittest.Commit{Delete: []string{"workers/a.yaml"}})
	require.Equal(t, []string{gone, second}, changers(), "the first one is too long ago")
	require.Equal(t, []string{second, first}, <-found, "as of the read before, beside another")
	r.Commits(changersMost, func(i int) gittest.Commit {
		return gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", fmt.Sprintf("a:%d", i))}}
	})
	require.Len(t, changers(), changersMost)
	require.NotContains(t, changers(), gone)
}
