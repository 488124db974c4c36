package gitops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// The commits that changed a path are those that gave it other content or took it away, the newest first.
func TestChangers(t *testing.T) {
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
	got, err := repo.Changers(t.Context(), paths)
	require.NoError(t, err)
	require.Empty(t, got, "nothing was read yet")
	read(t, repo)
	got, err = repo.Changers(t.Context(), paths)
	require.NoError(t, err)
	require.Equal(t, []string{second, first}, got)
	gone := r.Commit(gittest.Commit{Delete: []string{"workers/a.yaml"}})
	read(t, repo)
	got, err = repo.Changers(t.Context(), paths)
	require.NoError(t, err)
	require.Equal(t, []string{gone, second}, got, "the first one is too long ago")
}
