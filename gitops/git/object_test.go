package git

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

func mkfifo(name string) error { return syscall.Mkfifo(name, 0o600) }

func TestEntriesSortAsInGit(t *testing.T) {
	entries := []Entry{{Name: "a", Mode: ModeDir}, {Name: "a", Mode: ModeFile}, {Name: "a.b", Mode: ModeFile}, {Name: "a0", Mode: ModeDir},
		{Name: "a-b", Mode: ModeDir}, {Name: "ab", Mode: ModeFile}, {Name: "B", Mode: ModeFile}, {Name: "é", Mode: ModeFile}}
	slices.SortFunc(entries, compareEntries)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			e.Name += "/"
		}
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"B", "a", "a-b/", "a.b", "a/", "a0/", "ab", "é"}, names)
}

// A tree that parses is written back as it was, and is what go-git reads.
func FuzzParseTree(f *testing.F) {
	hash := strings.Repeat("h", 20)
	f.Add([]byte("100644 a\x00" + hash + "40000 b\x00" + hash))
	f.Add([]byte("040000 b\x00" + hash))
	f.Add([]byte("100644 \x00" + hash))
	f.Add([]byte("160000 m\x00" + hash[1:]))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		if err != nil {
			return
		}
		again, err := parseTree(encodeTree(entries))
		require.NoError(t, err)
		require.Equal(t, entries, again)
		for i, e := range entries {
			found, ok, err := findEntry(data, e.Name)
			require.NoError(t, err)
			require.True(t, ok)
			if i == slices.IndexFunc(entries, func(o Entry) bool { return o.Name == e.Name }) {
				require.Equal(t, e, found)
			}
		}
		var theirs object.Tree
		raw := &plumbing.MemoryObject{}
		raw.SetType(plumbing.TreeObject)
		_, err = raw.Write(data)
		require.NoError(t, err)
		if theirs.Decode(raw) != nil {
			return
		}
		require.Len(t, entries, len(theirs.Entries))
		for i := range entries {
			require.Equal(t, theirs.Entries[i].Name, entries[i].Name)
			require.Equal(t, theirs.Entries[i].Hash, entries[i].Hash)
		}
	})
}

// What is written to disk is what git would have made of it, index included, with no more than it needs to be read.
func TestPackIsReadByGoGitAndIndexedAsByGit(t *testing.T) {
	for _, count := range []int{1, 2, packParallel - 1, packParallel, 1000} {
		want := map[Hash]obj{}
		for i := range count {
			o := newObj(plumbing.BlobObject, bytes.Repeat([]byte{byte(i), byte(i >> 8)}, i*i%5000))
			want[o.hash] = o
		}
		list := make([]obj, 0, count)
		for _, o := range want {
			list = append(list, o)
		}
		pack, err := encodePack(list)
		require.NoError(t, err)
		got, as, err := unpack(pack.data, 1<<30)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		require.Equal(t, pack.starts, as.starts)
		for _, o := range got {
			require.True(t, bytes.Equal(want[o.hash].data, o.data))
		}

		r := gittest.NewBareRepo(t)
		dir := filepath.Join(r.Dir, "objects", "pack")
		require.NoError(t, pack.writeTo(dir, list))
		files := filesIn(t, dir, "*")
		require.Len(t, files, 2, "and no temporary one")
		stem := strings.TrimSuffix(files[0], filepath.Ext(files[0]))
		require.Equal(t, "pack-"+pack.sum().String(), filepath.Base(stem))
		r.Git("verify-pack", stem)
		ours, err := os.ReadFile(stem + ".idx")
		require.NoError(t, err)
		r.Git("index-pack", "-o", stem+".theirs", stem+".pack")
		theirs, err := os.ReadFile(stem + ".theirs")
		require.NoError(t, err)
		require.True(t, bytes.Equal(theirs, ours), "%d objects", count)
	}
}

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " a\n\tb ": "a b", "\x1b[31mred\x07": `\u001b[31mred\u0007`, "bad\xff\xfebytes": "bad bytes", "é\u202eevil": `é\u202eevil`,
		strings.Repeat("é", 300): strings.Repeat("é", 200) + "...",
	} {
		require.Equal(t, want, cleanText(in))
	}
}
