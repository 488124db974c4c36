package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

var first = map[string]string{
	"README.md": "hello\n", "rampart.yaml": "kind: Config\n",
	"workers/pay/checkout/worker.yaml": "image: v1\n", "workers/pay/refund/worker.yaml": "image: v1\n",
	"workers/pay.txt": "sorts before pay/\n", "workers/pay0": "sorts after pay/\n",
}

func TestFetchReadPushOverEveryTransport(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		one := r.Commit(gittest.Commit{Write: first, Links: map[string]string{"link": "README.md"},
			Exec: map[string]string{"run.sh": "#!/bin/sh\n"}, Modules: map[string]string{"vendor/x": strings.Repeat("1", 40)}})
		m := openMirror(t, w)

		tip := fetch(t, m, "main")
		requireSame(t, Tip{Branch: "main", Commit: plumbing.NewHash(one), Tree: treeOf(r, one)}, tip)
		requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
		again := fetch(t, m, "main")
		requireSame(t, Tip{Branch: "main", Commit: tip.Commit, Tree: tip.Tree, Previous: tip.Commit}, again)

		two := r.Commit(gittest.Commit{Write: map[string]string{"workers/pay/checkout/worker.yaml": "image: v2\n"},
			Delete: []string{"workers/pay/refund/worker.yaml"}})
		moved := fetch(t, m, "main")
		requireSame(t, Tip{Branch: "main", Commit: plumbing.NewHash(two), Tree: treeOf(r, two), Previous: tip.Commit}, moved)
		requireSame(t, []string{"+ workers/pay/checkout/worker.yaml 100644", "- workers/pay/refund/worker.yaml"},
			diffOf(t, m, tip.Tree, moved.Tree))

		s := stage(t, m, commitOn(moved, put("workers/pay/checkout/status.yaml", "Ready\n"), del("README.md")))
		pushed, err := m.Push(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, pushed.String(), r.Tip("main"))
		r.Fsck()
		requireSame(t, r.Files("main"), readAll(t, m, s.Tree))
		requireSame(t, Tip{Branch: "main", Commit: pushed, Tree: s.Tree, Previous: pushed}, fetch(t, m, "main"))
		require.Equal(t, "rampart: change", r.Git("log", "-1", "--format=%s", "main"))
		require.Equal(t, "Rampart <rampart@example.com> 2026-05-06T07:08:09+02:00 Rampart",
			r.Git("log", "-1", "--format=%an <%ae> %aI %cn", "main"))

		c, err := m.Commit(pushed)
		require.NoError(t, err)
		require.Equal(t, "rampart: change\n\nRampart-Spec: sha256:0\n", c.Message)
		require.Equal(t, []Hash{moved.Commit}, c.Parents)
		require.True(t, bot.When.Equal(c.Author.When))

		require.NoError(t, m.Close())
		mirrorFsck(t, m.dir)
	})
}

func treeOf(r *gittest.Repo, rev string) Hash {
	return plumbing.NewHash(r.Git("rev-parse", rev+"^{tree}"))
}

// mirrorFsck looks at a closed mirror with native git.
func mirrorFsck(t *testing.T, dir string) {
	t.Helper()
	gittest.OpenRepo(t, dir).Fsck()
}

func TestTwoBranches(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	r.Commit(gittest.Commit{Branch: "deploy/prod", Parent: "none", Write: map[string]string{"out.yaml": "a\n"}})
	m := openFile(t, r)
	specs, out := fetch(t, m, "main"), fetch(t, m, "deploy/prod")
	_, err := m.Push(t.Context(), stage(t, m, commitOn(out, put("out.yaml", "b\n"))))
	require.NoError(t, err)
	requireSame(t, map[string]string{"out.yaml": "b\n"}, r.Files("deploy/prod"))
	require.Equal(t, "none", moveOf(fetch(t, m, "main")))
	require.Equal(t, specs.Commit.String(), r.Tip("main"))
}

func TestMissingBranchAndEmptyRepositoryCanBeStarted(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		m := openMirror(t, w)
		_, err := m.Fetch(t.Context(), "main")
		var empty *EmptyRepositoryError
		require.ErrorAs(t, err, &empty)
		require.Equal(t, "main", empty.Branch)

		start := CommitRequest{Branch: "main", Changes: []Change{put("a/b.txt", "x")}, Message: "start", Author: bot, Committer: bot}
		s := stage(t, m, start)
		_, err = m.Push(t.Context(), s)
		require.NoError(t, err)
		requireSame(t, map[string]string{"a/b.txt": "x"}, r.Files("main"))

		_, err = m.Fetch(t.Context(), "output")
		var none *NoBranchError
		require.ErrorAs(t, err, &none)
		require.Equal(t, []string{"main"}, none.Branches)
		start.Branch, start.BaseTree = "output", s.Tree
		start.Changes = []Change{put("a/c.txt", "y")}
		_, err = m.Push(t.Context(), stage(t, m, start))
		require.NoError(t, err)
		requireSame(t, map[string]string{"a/b.txt": "x", "a/c.txt": "y"}, r.Files("output"))
		require.Equal(t, "1", r.Git("rev-list", "--count", "output"))
		r.Fsck()

		_, err = m.Push(t.Context(), stage(t, m, CommitRequest{Branch: "main", Changes: []Change{put("z", "z")},
			Message: "again", Author: bot, Committer: bot}))
		var moved *MovedError
		require.ErrorAs(t, err, &moved)
		requireSame(t, &MovedError{Branch: "main", Actual: s.Commit}, moved)
	})
}

func TestRestartReadsWhatIsOnDisk(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	dir := t.TempDir()
	w := way{url: r.URL()}
	m := openAt(t, dir, w)
	tip := fetch(t, m, "main")
	pushed, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put("x", "y"))))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.ErrorIs(t, m.Close(), ErrClosed)
	_, err = m.Fetch(t.Context(), "main")
	require.ErrorIs(t, err, ErrClosed)

	m = openAt(t, dir, w)
	next := fetch(t, m, "main")
	require.Equal(t, "none", moveOf(next), "the mirror knew the tip")
	require.Equal(t, pushed, next.Commit)
	requireSame(t, r.Files("main"), readAll(t, m, next.Tree))
	require.NoError(t, m.Close())

	r.Commit(gittest.Commit{Write: map[string]string{"while": "away"}})
	m = openAt(t, dir, w)
	require.Equal(t, "forward", moveOf(fetch(t, m, "main")))
}

func TestDamagedMirrorIsFilledAnew(t *testing.T) {
	damages := map[string]func(t *testing.T, dir string){
		"pack cut short":    func(t *testing.T, dir string) { cutFile(t, only(t, dir, "objects/pack/*.pack")) },
		"pack gone":         func(t *testing.T, dir string) { remove(t, only(t, dir, "objects/pack/*.pack")) },
		"index gone":        func(t *testing.T, dir string) { remove(t, only(t, dir, "objects/pack/*.idx")) },
		"index cut short":   func(t *testing.T, dir string) { cutFile(t, only(t, dir, "objects/pack/*.idx")) },
		"refs are nonsense": func(t *testing.T, dir string) { overwrite(t, filepath.Join(dir, refsFile), "nonsense\n") },
		"shallow nonsense":  func(t *testing.T, dir string) { overwrite(t, filepath.Join(dir, shallowFile), "nonsense\n") },
		"another repository": func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, configFile), configText("file:///x", false))
		},
		"objects gone": func(t *testing.T, dir string) { remove(t, filepath.Join(dir, objectsDir)) },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: first})
			dir := t.TempDir()
			m := openAt(t, dir, way{url: r.URL()})
			fetch(t, m, "main")
			require.NoError(t, m.Close())
			damage(t, dir)

			log := &logs{}
			m, err := Open(Config{URL: r.URL(), Dir: dir, Log: log.logger()})
			require.NoError(t, err)
			defer m.Close()
			require.Contains(t, log.String(), "filled anew")
			requireSame(t, r.Files("main"), readAll(t, m, fetch(t, m, "main").Tree))
		})
	}
}

func TestDamageFoundLaterIsHealedByTheNextFetch(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	dir := t.TempDir()
	m := openAt(t, dir, way{url: r.URL()})
	fetch(t, m, "main")
	require.NoError(t, m.Close())

	// A byte in the middle: the pack's ends look right.
	pack := only(t, dir, "objects/pack/*.pack")
	data, err := os.ReadFile(pack)
	require.NoError(t, err)
	m = openAt(t, dir, way{url: r.URL()})
	tip := fetch(t, m, "main")
	e, found, err := m.Lookup(tip.Tree, "README.md")
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, os.Chmod(pack, 0o600))
	for i := packHeader; i < len(data)-20; i++ {
		data[i] ^= 0xff
	}
	require.NoError(t, os.WriteFile(pack, data, 0o600))
	_, err = m.Blob(e.Hash, 100)
	require.Error(t, err)

	requireSame(t, r.Files("main"), readAll(t, m, fetch(t, m, "main").Tree))
}

func TestOpenRefusesWhatIsNotItsOwn(t *testing.T) {
	r := gittest.NewBareRepo(t)
	dir := t.TempDir()
	overwrite(t, filepath.Join(dir, "precious"), "data")
	_, err := Open(Config{URL: r.URL(), Dir: dir, Log: (&logs{}).logger()})
	require.ErrorIs(t, err, errForeign)
	_, err = Open(Config{URL: r.URL(), Dir: r.Dir, Log: (&logs{}).logger()})
	require.ErrorIs(t, err, errForeign, "someone's repository is not emptied")

	mine := t.TempDir()
	openAt(t, mine, way{url: r.URL()})
	_, err = Open(Config{URL: r.URL(), Dir: mine, Log: (&logs{}).logger()})
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	info, err := os.Stat(filepath.Join(openAt(t, filepath.Join(t.TempDir(), "new"), way{url: r.URL()}).dir))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestOverlayIsBounded(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	dir := t.TempDir()
	m := openAt(t, dir, way{url: r.URL()})
	m.store.limits.overlay = 4 << 10
	tip := fetch(t, m, "main")
	for i := range 20 {
		s := stage(t, m, commitOn(tip, put("big", strings.Repeat(string(rune('a'+i)), 1<<10))))
		_, err := m.Push(t.Context(), s)
		require.NoError(t, err)
		tip = fetch(t, m, "main")
		require.LessOrEqual(t, m.store.size, m.store.limits.overlay)
	}
	require.Greater(t, len(filesIn(t, dir, "objects/pack/*.pack")), 2)
	requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
	require.Empty(t, filesIn(t, dir, "objects/??"), "no loose objects")
	require.NoError(t, m.Close())
	mirrorFsck(t, dir)
}

func TestLargeFetchesGoToDisk(t *testing.T) {
	for name, limit := range map[string]limits{
		"pack too large":    {overlay: 1 << 20, fetch: 64, object: 1 << 20, cache: 1 << 20, increment: 1000, wants: 1000},
		"content too large": {overlay: 1 << 10, fetch: 1 << 20, inflated: 1 << 10, object: 1 << 20, cache: 1 << 20, increment: 1000, wants: 1000},
		"not small":         {overlay: 1 << 20, fetch: 1 << 20, inflated: 1 << 20, small: 64, cache: 1 << 20, increment: 1000, wants: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: first})
			dir := t.TempDir()
			m := openAt(t, dir, way{url: r.URL()})
			fetch(t, m, "main")
			m.store.limits = limit
			r.Commit(gittest.Commit{Write: map[string]string{"big": strings.Repeat("0123456789", 1000)}})
			tip := fetch(t, m, "main")
			requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
			require.Zero(t, m.store.size)
			_ = m.lock.Close() // as if killed: what is on disk must do
			m = openAt(t, dir, way{url: r.URL()})
			again := fetch(t, m, "main")
			require.Equal(t, "none", moveOf(again))
			requireSame(t, r.Files("main"), readAll(t, m, again.Tree))
		})
	}
}

func TestKilledWithoutCloseLosesNothing(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	dir := t.TempDir()
	m := openAt(t, dir, way{url: r.URL()})
	tip := fetch(t, m, "main")
	_, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put("x", "y"))))
	require.NoError(t, err)
	_ = m.lock.Close() // as if killed

	m = openAt(t, dir, way{url: r.URL()})
	requireSame(t, r.Files("main"), readAll(t, m, fetch(t, m, "main").Tree))
}

func TestReading(t *testing.T) {
	r := gittest.NewBareRepo(t)
	big := strings.Repeat("x", 100_000)
	r.Commit(gittest.Commit{Write: map[string]string{"a/b/c": "text", "big": big, "empty": ""},
		Links: map[string]string{"l": "a"}})
	m := openFile(t, r)
	tip := fetch(t, m, "main")

	for path, want := range map[string]bool{"a": true, "a/b/c": true, "a/b/d": false, "a/b/c/d": false, "l/b": false, "": false, "x": false} {
		e, found, err := m.Lookup(tip.Tree, path)
		require.NoError(t, err)
		require.Equal(t, want, found, path)
		if found {
			require.Equal(t, r.Git("rev-parse", "main:"+path), e.Hash.String())
		}
	}
	e, _, err := m.Lookup(tip.Tree, "big")
	require.NoError(t, err)
	_, err = m.Blob(e.Hash, 99_999)
	requireSame(t, &TooLargeError{Hash: e.Hash, Size: 100_000, Limit: 99_999}, err.(*TooLargeError))
	data, err := m.Blob(e.Hash, 100_000)
	require.NoError(t, err)
	require.Equal(t, big, string(data))

	absent := plumbing.NewHash(strings.Repeat("ab", 20))
	_, err = m.Tree(absent)
	require.Equal(t, absent, err.(*MissingObjectError).Hash)
	_, err = m.Commit(tip.Tree)
	var unusable *UnusableObjectError
	require.ErrorAs(t, err, &unusable)
	require.NoError(t, m.store.damage(), "asking for the wrong thing is no damage")

	stop := context.Canceled
	require.Equal(t, stop, m.Diff(Hash{}, tip.Tree, func(string, Entry) error { return stop }))
	require.Len(t, readAll(t, m, emptyTree), 0)
}

func TestDiffAgainstNativeGit(t *testing.T) {
	r := gittest.NewBareRepo(t)
	one := r.Commit(gittest.Commit{Write: map[string]string{"a": "1", "b/x": "1", "b/y": "1", "c": "1", "d/e/f": "1", "same/x": "1"}})
	m := openFile(t, r)
	before := fetch(t, m, "main")
	two := r.Commit(gittest.Commit{
		Write:  map[string]string{"a/now/dir": "1", "b": "a file now", "d/e/g": "2", "new": "3"},
		Exec:   map[string]string{"c": "1"},
		Delete: []string{"a", "b/x", "b/y"},
	})
	after := fetch(t, m, "main")
	var want []string
	fields := strings.Split(strings.TrimRight(r.Git("diff-tree", "-r", "-z", "--no-renames", one, two), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		meta := strings.Fields(fields[i])
		if meta[4] == "D" {
			want = append(want, "- "+fields[i+1])
		} else {
			want = append(want, "+ "+fields[i+1]+" "+meta[1])
		}
	}
	requireSame(t, want, diffOf(t, m, before.Tree, after.Tree))
}

func filesIn(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	return names
}

func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	names := filesIn(t, dir, pattern)
	require.Len(t, names, 1)
	return names[0]
}

func cutFile(t *testing.T, name string) {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(name, 0o600))
	require.NoError(t, os.Truncate(name, info.Size()-10))
}

func remove(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(name))
}

func overwrite(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}
