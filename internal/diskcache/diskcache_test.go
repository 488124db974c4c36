package diskcache

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

type words struct{ Known map[string]int }

func (w *words) CacheData() any { return *w }

func (w *words) LoadCacheData(decode func(any) error) error { return decode(w) }

func TestFileIsReadOnlyWithItsKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "cached")
	file := func(key string, parts ...Part) File { return File{Path: path, Key: key, Parts: parts} }
	one, two := &words{map[string]int{"one": 1}}, &words{map[string]int{"two": 2}}
	var none words
	require.NoError(t, file("v1", &none).Load(), "there is no file")
	require.NoError(t, file("v1", one, two).Save())

	var a, b words
	require.NoError(t, file("v1", &a, &b).Load())
	require.Equal(t, []words{*one, *two}, []words{a, b})

	require.NoError(t, file("v2", &none).Load())
	require.Zero(t, none, "another version's")

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, damaged := range [][]byte{nil, data[:10], data[:len(data)-1], append([]byte{data[0] ^ 1}, data[1:]...)} {
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		require.ErrorContains(t, file("v1", &none).Load(), "damaged")
		require.Zero(t, none)
	}
}
