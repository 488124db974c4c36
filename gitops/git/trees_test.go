package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// treesOf are all trees below a tree, and itself.
func treesOf(t *testing.T, r *gittest.Repo, tree string) []Hash {
	t.Helper()
	out := []Hash{plumbing.NewHash(r.Git("rev-parse", tree))}
	for line := range strings.SplitSeq(r.Git("ls-tree", "-r", "-d", tree), "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "tree" {
			out = append(out, plumbing.NewHash(f[2]))
		}
	}
	return out
}

// A mirror that begins without trees has the root. Others come as they are asked for: one by one on the way to a path,
// and with all below them where that is asked for. What is pushed is right, and git takes the mirror for a partial
// clone.
func TestLeaveTrees(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(20)})
	dir := t.TempDir()
	m, url, packs := partialOf(t, r, dir)
	m.LeaveTrees()
	tip := fetch(t, m, "main")
	require.EqualValues(t, 2, packs.Load(), "a commit, and its tree")
	all := treesOf(t, r, "main^{tree}")
	lacking := func() int { return len(m.store.lacking(all)) }
	require.Equal(t, len(all)-1, lacking())

	e, found, err := m.Lookup(t.Context(), tip.Tree, "workers/team-02/app-0002/worker.yaml")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, r.Git("rev-parse", "main:workers/team-02/app-0002/worker.yaml"), e.Hash.String())
	require.Equal(t, len(all)-4, lacking(), "those on its way")
	require.EqualValues(t, 5, packs.Load())

	team := treesOf(t, r, "main:workers/team-03")
	require.Greater(t, len(team), 2)
	require.Len(t, m.store.lacking(team), len(team))
	_, err = m.TreeBelow(t.Context(), tip.Tree, team[0])
	require.NoError(t, err)
	require.Empty(t, m.store.lacking(team), "with all below it")
	require.EqualValues(t, 6, packs.Load())
	require.NoError(t, m.BringTrees(t.Context(), tip.Tree, team, true))
	require.EqualValues(t, 6, packs.Load(), "what is there is not asked for")
	require.NoError(t, m.store.damage(), "what is left out is no damage")
	require.NoError(t, m.Close())
	mirrorFsck(t, dir)

	m = openAt(t, dir, way{url: url})
	require.Equal(t, MoveNone, fetch(t, m, "main").Move)
	_, err = m.Push(t.Context(), stage(t, m, commitOn(tip, put("workers/team-04/app-0004/worker.yaml", "new"), del("workers/team-05/app-0005/worker.yaml"))))
	require.NoError(t, err)
	r.Fsck()
	require.Positive(t, lacking())
	tip = fetch(t, m, "main")
	requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
	require.NoError(t, m.Close())
	mirrorFsck(t, dir)
}

// A caller that needs one tree after another gets all of them in one request, and sees each difference once.
func TestManyTreesComeTogether(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(60)})
	m, _, packs := partialOf(t, r, t.TempDir())
	m.LeaveTrees()
	tip := fetch(t, m, "main")
	seen := map[string]int{}
	require.NoError(t, m.Diff(t.Context(), Hash{}, tip.Tree, func(path string, _ Entry) error { seen[path]++; return nil }))
	want := map[string]int{}
	for path := range r.Files("main") {
		want[path] = 1
	}
	require.Equal(t, want, seen)
	all := treesOf(t, r, "main^{tree}")
	require.Greater(t, len(all), maxStrays+10)
	require.EqualValues(t, 2+maxStrays+1, packs.Load())
	require.True(t, m.widened)
	require.Empty(t, m.store.lacking(all))
}

// A server that leaves blobs out and no trees gives all trees at once. One that needs a conversation for each object is
// not asked to.
func TestTreesAreLeftWhereTheyCanBeHad(t *testing.T) {
	for name, setting := range map[string][]string{
		"http":     {"uploadpackfilter.tree.allow", "true"},
		"no trees": {"uploadpackfilter.tree.allow", "false"},
		"ssh":      {"uploadpack.allowReachableSHA1InWant", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: manyFiles(5)})
			r.Git("config", "uploadpack.allowFilter", "true")
			r.Git(append([]string{"config"}, setting...)...)
			at := way{}
			for _, each := range ways(t, r) {
				if each.name == name || name == "no trees" && each.name == "http" {
					at = each
				}
			}
			m := openMirror(t, at)
			m.LeaveTrees()
			tip := fetch(t, m, "main")
			require.True(t, m.store.isPartial())
			require.Equal(t, name == "http", len(m.store.lacking(treesOf(t, r, "main^{tree}"))) > 0)
			requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
		})
	}
}

// A server that left trees out and gives none is asked three times. Then the mirror is filled anew, as a whole.
func TestMissingTreesAreGivenUp(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	served := refuses(t, r)
	m := openMirror(t, way{url: served.url, leaveTrees: true})
	tip := fetch(t, m, "main")
	served.refuse.Store(true)
	for range maxRefusals {
		require.NoError(t, m.store.damage())
		_, err := m.Stage(t.Context(), commitOn(tip, put("workers/a/worker.yaml", "new")))
		require.ErrorContains(t, err, "not our ref")
	}
	require.Error(t, m.store.damage())
	served.refuse.Store(false)
	tip = fetch(t, m, "main")
	require.False(t, m.store.isPartial())
	requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
}

// A server that left trees out, and does not do so any more, sends more than is needed. A root that did not come with
// its commit comes with the next fetch.
func TestTreesAreNotLeftAnyMore(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(5)})
	r.Git("config", "uploadpack.allowFilter", "true")
	cut, cancel := context.WithCancel(t.Context())
	var packs atomic.Int64
	served := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.URL.Path, "/git-upload-pack") && packs.Add(1) == 2 {
				cancel() // before the root
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, req)
		})
	}})
	dir := t.TempDir()
	m := openAt(t, dir, way{url: served.URL, leaveTrees: true})
	_, err := m.Fetch(cut, "main")
	require.ErrorIs(t, err, context.Canceled)
	packs.Store(10)
	tip := fetch(t, m, "main")
	require.EqualValues(t, 11, packs.Load(), "the root alone")
	_, err = m.Tree(tip.Tree)
	require.NoError(t, err)
	require.NoError(t, m.Close())

	r.Git("config", "uploadpackfilter.tree.allow", "false")
	m = openAt(t, dir, way{url: served.URL})
	tip = fetch(t, m, "main")
	requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
	require.NoError(t, m.store.damage())
}

// Folders that are gone come with all below them once many were asked for one by one: all trees of the tip are not sent
// again.
func TestOldTreesComeTogether(t *testing.T) {
	r := gittest.NewBareRepo(t)
	files, gone := manyFiles(5), map[string]string{}
	for i := range 40 {
		gone[fmt.Sprintf("old/%d/%d/x", i%4, i)] = strconv.Itoa(i)
	}
	maps.Copy(files, gone)
	r.Commit(gittest.Commit{Write: files})
	m, _, packs := partialOf(t, r, t.TempDir())
	m.LeaveTrees()
	before := fetch(t, m, "main")
	r.Commit(gittest.Commit{Delete: slices.Collect(maps.Keys(gone))})
	tip := fetch(t, m, "main")
	m.strays, m.widened = maxStrays, true
	asked := packs.Load()
	seen := 0
	require.NoError(t, m.Diff(t.Context(), before.Tree, tip.Tree, func(string, Entry) error { seen++; return nil }))
	require.Equal(t, 40, seen)
	require.EqualValues(t, asked+1, packs.Load())
	require.NotEmpty(t, m.store.lacking(treesOf(t, r, "main^{tree}")), "nobody looked there")
}

// The one request for all trees may be too large to end. Trees come on their own then.
func TestAllTreesAreTooMany(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(30)})
	r.Git("config", "uploadpack.allowFilter", "true")
	root := r.Git("rev-parse", "main^{tree}")
	var wide atomic.Int64
	served := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if body, err := io.ReadAll(req.Body); err == nil && req.Method == http.MethodPost {
				if bytes.Contains(body, []byte(root)) && bytes.Contains(body, []byte("blob:none")) {
					wide.Add(1)
					panic(http.ErrAbortHandler)
				}
				req.Body = io.NopCloser(bytes.NewReader(body))
			}
			next.ServeHTTP(w, req)
		})
	}})
	m := openMirror(t, way{url: served.URL, leaveTrees: true})
	tip := fetch(t, m, "main")
	requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
	require.LessOrEqual(t, wide.Load(), int64(2), "one request, and a try with another conversation")
	require.Positive(t, wide.Load())
	require.NoError(t, m.store.damage())
}
