package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

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
