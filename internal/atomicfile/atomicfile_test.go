package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWriteLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, mode := range []fs.FileMode{0o600, 0o644} {
		require.NoError(t, Write(name, []byte(mode.String()), mode))
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, mode.String(), string(text))
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
	}
	require.ErrorIs(t, Write(filepath.Join(dir, "none", "file"), nil, 0o600), fs.ErrNotExist)
	require.Error(t, Write(dir, nil, 0o600), "a folder is not replaced")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left behind")
	beside, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".new-*"))
	require.NoError(t, err)
	require.Empty(t, beside)
}

// What a killed process left goes with the next write of the same file; what another process writes now does not.
func TestWriteRemovesWhatKilledProcessesLeft(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{".new-file-1": 2 * stale, ".new-file-2": stale / 2, ".new-other-1": 2 * stale} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
	require.NoError(t, Write(filepath.Join(dir, "file"), nil, 0o600))
	var names []string
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	require.Equal(t, []string{".new-file-2", ".new-other-1", "file"}, names)
}
