package git

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// A pack goes to disk unless one of its objects is larger than may be. An object may be so by itself, or as a delta, by
// what that is on or makes. go-git, which would make its objects whole, gets nothing of such a pack.
func TestPacksWithLargeObjects(t *testing.T) {
	_, ofGit := gitPack(t, 20, 3000, "--delta-base-offset")
	_, onNames := gitPack(t, 20, 3000)
	blob := func(size int) []byte {
		return entry(plumbing.BlobObject, size, nil, bytes.Repeat([]byte("x"), size))
	}
	delta := func(kind plumbing.ObjectType, base []byte, d ...byte) []byte { return entry(kind, len(d), base, d) }
	name := func(size int) []byte {
		h := plumbing.ComputeHash(plumbing.BlobObject, bytes.Repeat([]byte("x"), size))
		return h[:]
	}
	tooLarge := "more than the 8000 that there is memory for"
	for what, c := range map[string]struct {
		data []byte
		says string
	}{
		"of git, on offsets":       {ofGit, ""},
		"of git, on names":         {onNames, ""},
		"as large as may be":       {packOf(2, blob(8000), delta(plumbing.REFDeltaObject, name(8000), 0xc0, 0x3e, 4, 0x91, 2, 4)), ""},
		"a large one":              {packOf(2, blob(3), blob(8001)), "object 1: it has 8001 bytes"},
		"one that says it is":      {packOf(2, entry(plumbing.BlobObject, 1<<50, nil, []byte("x"))), tooLarge},
		"a large delta":            {packOf(2, blob(8), entry(plumbing.REFDeltaObject, 8001, name(8), []byte{8, 4})), tooLarge},
		"a delta on a large one":   {packOf(2, blob(8), delta(plumbing.REFDeltaObject, name(8), 0xc1, 0x3e, 4, 0x91, 2, 4)), "object 1: it has 8001 bytes, or is made of as many"},
		"a delta that makes one":   {packOf(2, blob(8), delta(plumbing.OFSDeltaObject, []byte{byte(len(blob(8)))}, 8, 0xc1, 0x3e, 0x91, 2, 4)), "object 1: it has 8001 bytes"},
		"a delta of nothing":       {packOf(2, blob(8), delta(plumbing.REFDeltaObject, name(8))), "object 1: it is not a delta"},
		"one that has more":        {packOf(2, entry(plumbing.BlobObject, 3, nil, []byte("four"))), "object 0: it inflates to more than it says"},
		"one that ends early":      {packOf(2, entry(plumbing.BlobObject, 5, nil, []byte("four"))), "object 0: unexpected EOF"},
		"one that is not there":    {checked([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01")), "object 0"},
		"too many":                 {checked([]byte("PACK\x00\x00\x00\x02\x7f\x00\x00\x00")), "it has 2130706432 objects, more than the 5000000 allowed"},
		"nothing":                  {nil, "unexpected EOF"},
		"a header that is too big": {packOf(2, bytes.Repeat([]byte{0xbf}, 12)), "invalid size"},
	} {
		t.Run(what, func(t *testing.T) {
			var passed bytes.Buffer
			err := passPack(&passed, iotest.OneByteReader(bytes.NewReader(c.data)), 8000)
			dir := t.TempDir()
			require.NoError(t, createLayout(dir, "file:///x"))
			s := newStore(dir, defaultLimits)
			s.limits.object = 8000
			written := s.writePack(bytes.NewReader(c.data))
			require.NoError(t, s.close())
			if c.says == "" {
				require.NoError(t, err)
				require.NoError(t, written)
				require.Equal(t, c.data, passed.Bytes())
				require.Len(t, filesIn(t, dir, "objects/pack/*.pack"), 1)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, written, c.says)
			require.Less(t, passed.Len(), max(1, len(c.data)), "go-git has no whole pack to read")
			require.Empty(t, filesIn(t, dir, "objects/pack/*"))
		})
	}
}

// A file that is larger than there is memory for is pushed to a repository that leaves contents out: it is left out.
func TestLargeFileIsPushed(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a": "1"}})
	m, _, _ := partialOf(t, r, t.TempDir())
	m.store.limits.inflated, m.store.limits.object = 1<<20, 1<<20
	fetch(t, m, "main")
	r.Commit(gittest.Commit{Write: map[string]string{"a": "2", "large": strings.Repeat("x", 2<<20)}})
	tip := fetch(t, m, "main")
	require.Equal(t, r.Tip("main"), tip.Commit.String())
	e, ok, err := m.Lookup(tip.Tree, "a")
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, m.Bring(t.Context(), []Hash{e.Hash}))
	data, err := m.Blob(e.Hash, 100)
	require.NoError(t, err)
	require.Equal(t, "2", string(data))

	whole := openFile(t, r) // its server leaves nothing out
	whole.store.limits.inflated, whole.store.limits.object = 1<<20, 1<<20
	_, err = whole.Fetch(soon(t), "main")
	require.ErrorContains(t, err, "more than the 1048576 that there is memory for")
	require.Empty(t, filesIn(t, whole.dir, "objects/pack/*"))
}
