package git

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// anyBlob is a blob of any size.
var anyBlob = want{kind: plumbing.BlobObject, most: 1 << 40}

// A pack that arrives may build on what is only in memory. If it came to disk first, a crash would leave
// commits whose trees are not complete.
func TestMemoryGoesToDiskBeforeALaterPack(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, createLayout(dir, "file:///x"))
	s := newStore(dir, defaultLimits)
	earlier, later := newObj(plumbing.BlobObject, []byte("earlier")), newObj(plumbing.BlobObject, []byte("later"))
	require.NoError(t, s.add([]obj{earlier}))
	pack, err := encodePack([]obj{later})
	require.NoError(t, err)
	require.NoError(t, s.writePack(bytes.NewReader(pack.data)))

	after := newStore(dir, defaultLimits) // as if killed
	require.True(t, after.has(earlier.hash))
	require.True(t, after.has(later.hash))
}

// What is pushed and too large for memory goes to disk as it was sent, and what it may build on before it.
func TestMemoryGoesToDiskBeforeALargePush(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, createLayout(dir, "file:///x"))
	limits := defaultLimits
	limits.overlay = 100
	s := newStore(dir, limits)
	earlier, small := newObj(plumbing.BlobObject, []byte("earlier")), newObj(plumbing.BlobObject, []byte("small"))
	large := newObj(plumbing.BlobObject, bytes.Repeat([]byte("x"), 101))
	packed := func(objs ...obj) {
		pack, err := encodePack(objs)
		require.NoError(t, err)
		require.NoError(t, s.addPacked(objs, pack))
	}
	packed(earlier)
	require.Empty(t, filesIn(t, dir, "objects/pack/*"), "a small one stays in memory")
	packed(large)
	require.Len(t, filesIn(t, dir, "objects/pack/*.pack"), 2)
	require.Empty(t, s.fresh)
	packed(small)
	after := newStore(dir, limits) // as if killed
	for _, o := range []obj{earlier, large} {
		for _, s := range []*store{s, after} {
			data, err := s.read(o.hash, anyBlob)
			require.NoError(t, err)
			require.Equal(t, o.data, data)
		}
	}
	require.True(t, s.has(small.hash))
	require.False(t, after.has(small.hash))
}

func TestABrokenDownloadLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, createLayout(dir, "file:///x"))
	s := newStore(dir, defaultLimits)
	made, err := encodePack([]obj{newObj(plumbing.BlobObject, bytes.Repeat([]byte("x"), 1000))})
	require.NoError(t, err)
	pack := made.data
	for _, broken := range [][]byte{pack[:len(pack)/2], append([]byte("JUNK"), pack...), {}} {
		require.Error(t, s.writePack(bytes.NewReader(broken)))
	}
	require.Empty(t, filesIn(t, dir, "objects/pack/*"))
	require.NoError(t, s.writePack(bytes.NewReader(pack)))
	require.Len(t, filesIn(t, dir, "objects/pack/*"), 2)
}

func TestReadingBesideFetches(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(20)})
	m := openFile(t, r)
	m.store.limits.overlay, m.store.limits.fetch = 2<<10, 1<<10
	tip := fetch(t, m, "main")
	want := r.Files("main")
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := m.Diff(Hash{}, tip.Tree, func(path string, e Entry) error {
					data, err := m.Blob(e.Hash, 1<<20)
					if err == nil && string(data) != want[path] {
						err = fmt.Errorf("%s has changed", path)
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 10 {
		r.Commit(gittest.Commit{Write: map[string]string{"x": strings.Repeat(fmt.Sprint(i), 100*i)}})
		now := fetch(t, m, "main")
		_, err := m.Push(t.Context(), stage(t, m, commitOn(now, put("y", fmt.Sprint(i)))))
		require.NoError(t, err)
	}
	close(stop)
	readers.Wait()
}

func TestHTTPConnectionIsKept(t *testing.T) {
	r := gittest.NewBareRepo(t)
	tip := r.Commit(gittest.Commit{Write: first})
	refs := ""
	for i := range 200 { // answers in several chunks, whose end go-git does not read
		refs += fmt.Sprintf("create refs/heads/b%d %s\n", i, tip)
	}
	r.GitInput([]byte(refs), "update-ref", "--stdin")
	var mu sync.Mutex
	peers := map[string]int{}
	server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			mu.Lock()
			peers[req.RemoteAddr]++
			mu.Unlock()
			next.ServeHTTP(w, req)
		})
	}})
	m := openMirror(t, way{url: server.URL})
	for i := range 5 {
		tip := fetch(t, m, "main")
		_, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put("x", fmt.Sprint(i)))))
		require.NoError(t, err)
		_, err = m.Push(t.Context(), stage(t, m, commitOn(tip, put("x", "stale"))))
		var moved *MovedError
		require.ErrorAs(t, err, &moved)
	}
	mu.Lock()
	defer mu.Unlock()
	// A connection becomes free a moment after its answer was read, so a second one may be made.
	require.LessOrEqual(t, len(peers), 3, "connections serve many requests")
}

// A mirror has packs alone, and no file is looked for that an object would be in by itself.
func TestNoLooseObjectIsLookedFor(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, createLayout(dir, "file:///x"))
	s := newStore(dir, defaultLimits)
	here, loose := newObj(plumbing.BlobObject, []byte("here")), newObj(plumbing.BlobObject, []byte("loose"))
	pack, err := encodePack([]obj{here})
	require.NoError(t, err)
	require.NoError(t, s.writePack(bytes.NewReader(pack.data)))
	require.Equal(t, loose.hash.String(), gittest.OpenRepo(t, dir).GitInput([]byte("loose"), "hash-object", "-w", "--stdin"))
	require.Equal(t, []Hash{loose.hash}, s.lacking([]Hash{here.hash, loose.hash}))
}

func BenchmarkLacking(b *testing.B) {
	dir := b.TempDir()
	require.NoError(b, createLayout(dir, "file:///x"))
	s := newStore(dir, defaultLimits)
	var objs []obj
	var hashes []Hash
	for i := range 10_000 {
		o := newObj(plumbing.BlobObject, fmt.Appendf(nil, "%d", i))
		objs, hashes = append(objs, o), append(hashes, o.hash)
	}
	pack, err := encodePack(objs)
	require.NoError(b, err)
	require.NoError(b, s.writePack(bytes.NewReader(pack.data)))
	for b.Loop() {
		require.Empty(b, s.lacking(hashes))
	}
}

// Where memory is limited, less of it is taken for packs, and nowhere more.
func TestLimitsWithinMemory(t *testing.T) {
	require.Equal(t, defaultLimits, defaultLimits.within(math.MaxInt64))
	unlimited := defaultLimits
	unlimited.object = 256 << 20
	require.Equal(t, unlimited, defaultLimits.process(math.MaxInt64, 0), "nobody limits it, nor knows what the machine has")
	require.Equal(t, unlimited, defaultLimits.process(math.MaxInt64, 64<<30))
	require.Equal(t, defaultLimits.within(1<<30), defaultLimits.process(math.MaxInt64, 1<<30), "the machine is small")
	require.Equal(t, defaultLimits, defaultLimits.process(16<<30, 64<<30))
	require.Equal(t, defaultLimits.within(1<<30), defaultLimits.process(16<<30, 1<<30))
	small := defaultLimits.within(512 << 20)
	require.EqualValues(t, 32<<20, small.fetch)
	require.EqualValues(t, 64<<20, small.inflated)
	require.EqualValues(t, 64<<20, small.object)
	small.fetch, small.inflated, small.object = defaultLimits.fetch, defaultLimits.inflated, defaultLimits.object
	require.Equal(t, defaultLimits, small, "the others are small")

	limit := debug.SetMemoryLimit(512 << 20)
	defer debug.SetMemoryLimit(limit)
	require.EqualValues(t, 64<<20, openFile(t, gittest.NewBareRepo(t)).store.limits.inflated)
}

// What came as a pack stays in memory alone if it is small, packed and unpacked.
func TestReceivedInMemory(t *testing.T) {
	objs := []obj{newObj(plumbing.BlobObject, make([]byte, 1000))}
	pack, err := encodePack(objs)
	require.NoError(t, err)
	for _, c := range []struct {
		overlay int64
		disk    bool
	}{{overlay: 4 * 1000}, {overlay: 4*1000 - 1, disk: true}} {
		dir := t.TempDir()
		require.NoError(t, createLayout(dir, "file:///x"))
		s := newStore(dir, defaultLimits)
		s.limits.overlay = c.overlay
		onDisk, err := s.addReceived(objs, pack)
		require.NoError(t, err)
		require.Equal(t, c.disk, onDisk)
		require.Len(t, filesIn(t, dir, "objects/pack/*.pack"), map[bool]int{true: 1}[c.disk])
		require.True(t, s.has(objs[0].hash))
	}
}

// An index that is another pack's, and a pack that ends before what its index says. Both are damage, and never objects
// that are missing on the server too.
func TestDamagedPacks(t *testing.T) {
	objs := []obj{newObj(plumbing.BlobObject, []byte("one")), newObj(plumbing.BlobObject, []byte("two"))}
	for name, damage := range map[string]func(stems []string) error{
		"an index of another pack": func(stems []string) error {
			data, err := os.ReadFile(stems[0] + ".idx")
			return errors.Join(err, os.WriteFile(stems[1]+".idx", data, 0o600))
		},
		"a pack that ends":        func(stems []string) error { return os.Truncate(stems[0]+".pack", packHeader) },
		"a pack without an index": func(stems []string) error { return os.Remove(stems[0] + ".idx") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, createLayout(dir, "file:///x"))
			s := newStore(dir, defaultLimits)
			var stems []string
			for _, o := range objs {
				p, err := encodePack([]obj{o})
				require.NoError(t, err)
				require.NoError(t, s.writePack(bytes.NewReader(p.data)))
				stems = append(stems, filepath.Join(dir, packDir, "pack-"+p.sum().String()))
			}
			for _, stem := range stems {
				require.NoError(t, errors.Join(os.Chmod(stem+".pack", 0o600), os.Chmod(stem+".idx", 0o600)))
			}
			require.NoError(t, damage(stems))
			if name != "a pack that ends" { // its index is right, and so are the answers
				require.True(t, !s.has(objs[0].hash) && s.damage() != nil)
				s.spoil(nil)
				require.True(t, len(s.lacking([]Hash{objs[0].hash})) == 1 && s.damage() != nil)
				s.spoil(nil)
			}
			_, err := s.read(objs[0].hash, anyBlob)
			var corrupt *CorruptObjectError
			require.ErrorAs(t, err, &corrupt)
			require.ErrorAs(t, s.damage(), &corrupt)
		})
	}
}

// What is forgotten is read again, also while others read, and what is only in memory stays.
func TestForget(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(40)})
	m := openFile(t, r)
	m.store.limits.fetch = 64 // to disk
	tip := fetch(t, m, "main")
	pushed, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put("new", "only in memory"))))
	require.NoError(t, err)
	c, err := m.Commit(pushed)
	require.NoError(t, err)
	want := r.Files("main")
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			return m.Diff(Hash{}, c.Tree, func(path string, e Entry) error {
				data, err := m.Blob(e.Hash, 1<<20)
				if err == nil && string(data) != want[path] {
					err = fmt.Errorf("%s is %q", path, data)
				}
				return err
			})
		})
	}
	for range 20 {
		m.Forget()
	}
	require.NoError(t, group.Wait())
	require.NoError(t, m.store.damage())
	require.True(t, m.store.resting)
	requireSame(t, want, readAll(t, m, c.Tree))
}

// Objects that are of another kind, or cannot be decoded, are damage of the mirror only where their content does
// not have their name.
func TestOddOrDamaged(t *testing.T) {
	odd := []obj{newObj(plumbing.BlobObject, []byte("another kind")), newObj(plumbing.TreeObject, []byte("no tree")), newObj(plumbing.CommitObject, []byte("no commit"))}
	reads := func(m *Mirror, objs []obj) []error {
		_, kind := m.Tree(objs[0].hash)
		_, tree := m.Tree(objs[1].hash)
		_, commit := m.Commit(objs[2].hash)
		_, _, lookup := m.Lookup(objs[1].hash, "x")
		return []error{kind, tree, commit, lookup}
	}
	for name, c := range map[string]struct {
		change byte // of names
		disk   bool
		want   int // reads that find damage
	}{
		"in memory": {0, false, 0}, "on disk": {0, true, 0}, "damaged on disk": {1, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := openFile(t, gittest.NewBareRepo(t))
			objs := slices.Clone(odd)
			for i := range objs {
				objs[i].hash[0] ^= c.change
			}
			require.NoError(t, m.store.add(objs))
			if c.disk {
				require.NoError(t, m.store.flush())
			}
			found := 0
			for i, err := range reads(m, objs) {
				var unusable *UnusableObjectError
				var corrupt *CorruptObjectError
				switch {
				case errors.As(err, &corrupt):
					found++
				case i < 3:
					require.ErrorAs(t, err, &unusable)
				default:
					require.NoError(t, err, "there is nothing in it")
				}
			}
			require.Equal(t, c.want, found)
			require.Equal(t, c.want > 0, m.store.damage() != nil)
		})
	}
}

// Trees and commits are read within bounds, in memory and on disk. Of a large commit the beginning is known, unless
// that ends before its message.
func TestLargeTreesAndCommits(t *testing.T) {
	testneed.Plain(t)
	header := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n"
	commit := func(text string) obj { return newObj(plumbing.CommitObject, []byte(header+text)) }
	long, endless := commit("\n"+strings.Repeat("m", 40<<20)), commit(strings.Repeat("x y\n", MaxCommit/4))
	tree := newObj(plumbing.TreeObject, bytes.Repeat([]byte("100644 name\x00hhhhhhhhhhhhhhhhhhhh"), MaxTree/32+1))
	m := openFile(t, gittest.NewBareRepo(t))
	require.NoError(t, m.store.add([]obj{commit("\nsmall"), long, endless, tree}))
	for range 2 {
		c, err := m.Commit(long.hash)
		require.NoError(t, err)
		require.Equal(t, emptyTree, c.Tree)
		require.Equal(t, strings.Repeat("m", MaxMessage), c.Message)
		var large *TooLargeError
		_, err = m.RawCommit(long.hash)
		require.ErrorAs(t, err, &large)
		_, err = m.Tree(tree.hash)
		require.ErrorAs(t, err, &large)
		_, err = m.Commit(endless.hash)
		require.ErrorContains(t, err, "header")
		c, err = m.Commit(commit("\nsmall").hash)
		require.NoError(t, err)
		require.Equal(t, "small", c.Message)
		require.NoError(t, m.store.damage())
		require.NoError(t, m.store.flush())
	}
}

// A tip whose root is not a tree is the repository's fault, not the mirror's. A mirror is not filled anew for it when
// it is opened.
func TestOddRootIsKept(t *testing.T) {
	w, dir := way{url: gittest.NewBareRepo(t).URL()}, t.TempDir()
	root := newObj(plumbing.TreeObject, []byte("no tree"))
	tip := newObj(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx", root.hash))
	m := openAt(t, dir, w)
	require.NoError(t, m.store.add([]obj{root, tip}))
	m.state.tips["main"] = tip.hash
	require.NoError(t, m.Close())
	m = openAt(t, dir, w)
	require.Zero(t, m.Filled())
	require.True(t, m.store.has(root.hash))
	require.NoError(t, m.Close())
}
