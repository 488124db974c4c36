package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the pack format's checksum
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zlib"
	"github.com/stretchr/testify/require"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// goGitsObjects is what go-git's parser makes of a pack.
func goGitsObjects(data []byte) (map[Hash]string, error) {
	into := memory.NewStorage()
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(data)), into)
	if err != nil {
		return nil, err
	}
	if _, err := parser.Parse(); err != nil {
		return nil, err
	}
	out := map[Hash]string{}
	for h, o := range into.Objects {
		data, err := content(o)
		if err != nil {
			return nil, err
		}
		out[h] = o.Type().String() + " " + string(data)
	}
	return out, nil
}

func byHash(objs []obj) map[Hash]string {
	out := map[Hash]string{}
	for _, o := range objs {
		out[o.hash] = o.kind.String() + " " + string(o.data)
	}
	return out
}

// gitPack is a pack as git makes it, of a history of files that change a little each time: with chains of deltas. The
// largest has some more than so many bytes.
func gitPack(tb testing.TB, commits, size int, options ...string) (*gittest.Repo, []byte) {
	r := gittest.NewBareRepo(tb)
	r.Commits(commits, func(i int) gittest.Commit {
		return gittest.Commit{Write: map[string]string{
			"large": noise(1, size) + fmt.Sprint(i) + noise(2, 3000), "grows": strings.Repeat("line\n", 10*i), fmt.Sprintf("in/a/folder/%d", i): fmt.Sprint(i),
		}}
	})
	objects := r.Git("rev-list", "--objects", "--no-object-names", "main")
	args := append([]string{"pack-objects", "--stdout", "-q", "--window=50", "--depth=50"}, options...)
	return r, []byte(r.GitInput([]byte(objects+"\n"), args...))
}

// A pack of git's, its deltas on an offset or on a name, is read as go-git and git read it. The index that is
// written beside it is git's.
func TestUnpackReadsWhatGitPacks(t *testing.T) {
	testneed.Plain(t)
	for name, options := range map[string][]string{"on names": nil, "on offsets": {"--delta-base-offset"}, "whole": {"--depth=0"}} {
		t.Run(name, func(t *testing.T) {
			r, data := gitPack(t, 60, 3000, options...)
			objs, p, err := unpack(data, 1<<30)
			require.NoError(t, err)
			theirs, err := goGitsObjects(data)
			require.NoError(t, err)
			require.Equal(t, theirs, byHash(objs))
			for _, o := range objs {
				require.Equal(t, r.Git("cat-file", "-t", o.hash.String()), o.kind.String())
			}
			kinds := kindsIn(p)
			switch name {
			case "on names":
				require.NotZero(t, kinds[plumbing.REFDeltaObject])
			case "on offsets":
				require.NotZero(t, kinds[plumbing.OFSDeltaObject])
			}

			dir := t.TempDir()
			require.NoError(t, p.writeTo(dir, objs))
			stem := filepath.Join(dir, "pack-"+p.sum().String())
			r.Git("index-pack", "-o", stem+".theirs", stem+".pack")
			ours, err := os.ReadFile(stem + ".idx")
			require.NoError(t, err)
			git, err := os.ReadFile(stem + ".theirs")
			require.NoError(t, err)
			require.True(t, bytes.Equal(git, ours))
		})
	}
}

// kindsIn counts what entries of a pack are: objects, or deltas.
func kindsIn(p pack) map[plumbing.ObjectType]int {
	kinds := map[plumbing.ObjectType]int{}
	for _, start := range p.starts {
		kinds[plumbing.ObjectType(p.data[start]>>4&7)]++
	}
	return kinds
}

// Deltas are read from disk, also of large objects, whichever way their pack went there. Servers are asked for none on
// offsets: go-git finds what those are on in a table of all objects of the pack, which takes a start of the bot long.
func TestDeltasOnDisk(t *testing.T) {
	for name, options := range map[string][]string{"on names": nil, "on offsets": {"--delta-base-offset"}} {
		r, data := gitPack(t, 10, 20_000, options...)
		objs, p, err := unpack(data, 1<<30)
		require.NoError(t, err)
		for way, write := range map[string]func(*store) error{
			"as it came":    func(s *store) error { return s.writePack(bytes.NewReader(data)) },
			"with an index": func(s *store) error { return s.writeWithIndex(p, objs) },
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				dir := t.TempDir()
				require.NoError(t, createLayout(dir, "file:///x"))
				s := newStore(dir, defaultLimits)
				require.NoError(t, write(s))
				for _, o := range objs {
					got, err := s.read(o.hash, want{kind: o.kind, most: 1 << 20})
					require.NoError(t, err)
					require.True(t, bytes.Equal(o.data, got))
				}
			})
		}

		m := openFile(t, r)
		m.store.limits.fetch, m.store.limits.inflated = 64, 64 // to disk
		require.NoError(t, m.History(t.Context(), fetch(t, m, "main"), func(CommitInfo) (bool, error) { return true, nil }))
		kinds := map[plumbing.ObjectType]int{}
		for _, name := range filesIn(t, m.dir, "objects/pack/*.pack") {
			came, err := os.ReadFile(name)
			require.NoError(t, err)
			_, p, err := unpack(came, 1<<30)
			require.NoError(t, err)
			for kind, n := range kindsIn(p) {
				kinds[kind] += n
			}
		}
		require.NotZero(t, kinds[plumbing.REFDeltaObject])
		require.Zero(t, kinds[plumbing.OFSDeltaObject])
	}
}

// unpack reads a whole pack.
func unpack(data []byte, limit int64) ([]obj, pack, error) {
	u, err := readPack(bytes.NewReader(data), math.MaxInt, limit)
	if err != nil {
		return nil, pack{}, err
	}
	return u.objects()
}

// packOf is a pack of entries that were written by hand.
func packOf(version uint32, entries ...[]byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte("PACK"), version)
	out = binary.BigEndian.AppendUint32(out, uint32(len(entries)))
	out = append(out, bytes.Join(entries, nil)...)
	return checked(out)
}

// checked ends a pack with its checksum.
func checked(data []byte) []byte {
	sum := sha1.Sum(data) //nolint:gosec // see the import
	return append(data, sum[:]...)
}

// entry is an object of a pack: says is the size that it is said to have.
func entry(kind plumbing.ObjectType, says int, base, data []byte) []byte {
	var out bytes.Buffer
	writeObjectHeader(&out, kind, says)
	out.Write(base)
	w := zlib.NewWriter(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

// What is wrong with a pack is said, and nothing of it is taken.
func TestUnpackRefusesWhatIsWrong(t *testing.T) {
	blob := func(s string) []byte { return entry(plumbing.BlobObject, len(s), nil, []byte(s)) }
	delta := func(base []byte, kind plumbing.ObjectType, d ...byte) []byte { return entry(kind, len(d), base, d) }
	name := func(s string) []byte { h := plumbing.ComputeHash(plumbing.BlobObject, []byte(s)); return h[:] }
	base, good := "0123456789", []byte{10, 4, 0x91, 2, 4} // ten bytes become four: those from the third one on
	whole := packOf(2, blob(base), blob("x"))
	damaged, sum := bytes.Clone(whole), bytes.Clone(whole)
	damaged[len(damaged)-sha1.Size-1] ^= 1 // the last object's own checksum
	sum[len(sum)-1] ^= 1
	for what, c := range map[string]struct {
		data  []byte
		limit int64
		says  string
	}{
		"nothing":                     {says: "not a pack"},
		"another file":                {data: checked([]byte("another file, which is long enough")), says: "not a pack"},
		"version":                     {data: packOf(3, blob(base)), says: "version 3"},
		"checksum":                    {data: sum, says: "checksum"},
		"a checksum that is cut":      {data: whole[:len(whole)-1], says: "its checksum: unexpected EOF"},
		"cut":                         {data: whole[:len(whole)-sha1.Size-3], says: "object 1, at byte 36: unexpected EOF"},
		"more behind its checksum":    {data: append(bytes.Clone(whole), "more"...), says: "4 bytes are of no object"},
		"an object's checksum":        {data: checked(damaged[:len(damaged)-sha1.Size]), says: "object 1"},
		"too many objects":            {data: checked([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xffx")), says: errBatchFull.Error()},
		"too many objects for memory": {data: whole, limit: perObject, says: errBatchFull.Error()},
		"an object more":              {data: checked([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x03" + string(whole[packHeader:len(whole)-sha1.Size]))), says: "object 2"},
		"bytes more":                  {data: checked([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01" + string(whole[packHeader:len(whole)-sha1.Size]))), says: "checksum"},
		"longer than it says":         {data: packOf(2, entry(plumbing.BlobObject, 9, nil, []byte(base))), says: "more than it says"},
		"shorter than it says":        {data: packOf(2, entry(plumbing.BlobObject, 11, nil, []byte(base))), says: "object 0"},
		"a kind that there is not":    {data: packOf(2, entry(5, len(base), nil, []byte(base))), says: "kind 5"},
		"a size that is none":         {data: packOf(2, bytes.Repeat([]byte{0xbf}, 12)), says: "invalid size"},
		"too large":                   {data: whole, limit: 10 + 2*perObject, says: errBatchFull.Error()},
		"too large, by deltas":        {data: packOf(2, blob(base), delta(name(base), plumbing.REFDeltaObject, good...)), limit: 16 + 2*perObject, says: errBatchFull.Error()},
		"a delta on no offset":        {data: packOf(2, blob(base), delta([]byte{3}, plumbing.OFSDeltaObject, good...)), says: "other than an object"},
		"a delta on a far offset":     {data: packOf(2, blob(base), delta(bytes.Repeat([]byte{0xff}, 30), plumbing.OFSDeltaObject, good...)), says: "other than an object"},
		"a delta on itself":           {data: packOf(2, blob(base), delta([]byte{0}, plumbing.OFSDeltaObject, good...)), says: "other than an object"},
		"a delta on what is not here": {data: packOf(2, blob(base), delta(name("elsewhere"), plumbing.REFDeltaObject, good...)), says: "1 deltas"},
		"a delta that is cut":         {data: packOf(2, blob(base), delta(name(base), plumbing.REFDeltaObject, 10)), says: "object 1"},
		"a delta of another size":     {data: packOf(2, blob(base), delta(name(base), plumbing.REFDeltaObject, 11, 4, 0x91, 2, 4)), says: "object 1"},
		"a delta that copies more":    {data: packOf(2, blob(base), delta(name(base), plumbing.REFDeltaObject, 10, 4, 0x91, 9, 4)), says: "object 1"},
	} {
		t.Run(what, func(t *testing.T) {
			limit := c.limit
			if limit == 0 {
				limit = 1 << 20
			}
			objs, _, err := unpack(c.data, limit)
			require.ErrorContains(t, err, c.says)
			require.Nil(t, objs)
		})
	}
	for what, on := range map[string][]byte{
		"name": delta(name(base), plumbing.REFDeltaObject, good...), "offset": delta([]byte{byte(len(blob(base)))}, plumbing.OFSDeltaObject, good...),
	} {
		objs, _, err := unpack(packOf(2, blob(base), on), 1<<20)
		require.NoError(t, err, what)
		require.Equal(t, "2345", string(objs[1].data), what)
	}
	objs, _, err := unpack(packOf(2, delta(name(base), plumbing.REFDeltaObject, good...), blob(base)), 1<<20)
	require.NoError(t, err, "a delta before what it is on")
	require.Equal(t, "2345", string(objs[0].data))
}

// A pack is the same in however many pieces it comes. What came of one that is too large, or ends early, is there
// still.
func TestPackComesInPieces(t *testing.T) {
	_, data := gitPack(t, 20, 3000, "--delta-base-offset")
	want, _, err := unpack(data, 1<<30)
	require.NoError(t, err)
	u, err := readPack(iotest.OneByteReader(bytes.NewReader(data)), len(data)+1, 1<<30)
	require.NoError(t, err)
	objs, p, err := u.objects()
	require.NoError(t, err)
	require.Equal(t, want, objs)
	require.Equal(t, data, p.data)

	for _, most := range []int{packHeader, 100, len(data) / 2, len(data) - 1, len(data)} {
		rest := bytes.NewReader(data)
		u, err := readPack(iotest.HalfReader(rest), most, 1<<30)
		require.ErrorIs(t, err, errBatchFull)
		left, err := io.ReadAll(rest)
		require.NoError(t, err)
		require.Equal(t, data, append(u.came.whole(), left...))

		broken := errors.New("broken")
		_, err = readPack(io.MultiReader(bytes.NewReader(data[:most]), iotest.ErrReader(broken)), len(data)+1, 1<<30)
		require.ErrorIs(t, err, broken)
	}
}

func BenchmarkUnpack(b *testing.B) {
	_, data := gitPack(b, 300, 3000, "--delta-base-offset")
	for name, do := range map[string]func() error{
		"ours":   func() error { _, _, err := unpack(data, 1<<30); return err },
		"go-git": func() error { _, err := goGitsObjects(data); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, do())
			}
		})
	}
}
