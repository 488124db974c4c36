package cmdutil

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A symbolic link in the cache folder is not followed, wherever it leads: another user who may write there could have
// the bot write elsewhere. The folder itself may be one, since the person who runs the bot named it.
func TestLinksInTheCacheFolder(t *testing.T) {
	outside := t.TempDir()
	for name, link := range map[string]string{"a mirror": "mirror/0123456789abcdef", "all mirrors": "mirror", "a file": "mirror/0123456789abcdef/rampart.json",
		"what a run remembers": "remembered-0123", "bundles": "bundles", "one that leads nowhere": "bundles/gone"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			full := filepath.Join(dir, link)
			require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o700))
			got, err := CacheDir(dir)
			require.NoError(t, err)
			require.Equal(t, dir, got)

			to := outside
			if name == "one that leads nowhere" {
				to = filepath.Join(outside, "nowhere")
			}
			require.NoError(t, os.Symlink(to, full))
			_, err = CacheDir(dir)
			require.EqualError(t, err, full+" is a symbolic link, and Rampart makes none in its cache folder "+dir+
				": remove it, or give another folder with --cache-dir")
			_, err = (&App{}).OpenRepository(RepositoryFlags{URL: "file:///nowhere", CacheDir: dir})
			require.ErrorContains(t, err, "is a symbolic link", "before anything is read or written")
		})
	}
	dir := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.Symlink(outside, dir))
	_, err := CacheDir(dir)
	require.NoError(t, err)
	_, err = CacheDir(filepath.Join(t.TempDir(), "not there yet"))
	require.NoError(t, err)
}
