package cmdutil

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Where one file cannot be put in its place, those before it are as they were, and no draft is left.
func TestFilesAreWrittenAllOrNone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("before"), 0o600))
	set := NewFileSet()
	_, _, err := set.Add(dir, []rollout.TextFile{{Path: "a.yaml", Text: "after"}, {Path: "b/c.yaml", Text: "new"}, {Path: "d.yaml", Text: "new"}}, true)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "d.yaml", "full"), 0o700)) // meanwhile
	require.ErrorContains(t, set.Write(), "write d.yaml")
	require.NoError(t, set.Close())
	text, err := os.ReadFile(filepath.Join(dir, "a.yaml"))
	require.NoError(t, err)
	require.Equal(t, "before", string(text))
	var left []string
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			left = append(left, filepath.Base(p))
		}
		return err
	}))
	require.Equal(t, []string{"a.yaml"}, left)
}
