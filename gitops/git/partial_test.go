package git

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// partialOf is a mirror of a repository that leaves blobs out, and what it was asked for: how often for a pack.
func partialOf(t *testing.T, r *gittest.Repo, dir string) (m *Mirror, url string, packs *atomic.Int64) {
	t.Helper()
	r.Git("config", "uploadpack.allowFilter", "true")
	packs = &atomic.Int64{}
	served := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.URL.Path, "/git-upload-pack") {
				packs.Add(1)
			}
			next.ServeHTTP(w, req)
		})
	}})
	return openAt(t, dir, way{url: served.URL}), served.URL, packs
}

// blobsOf are the blobs below a folder.
func blobsOf(t *testing.T, m *Mirror, tree Hash, dir string) []Hash {
	t.Helper()
	var out []Hash
	require.NoError(t, m.Diff(Hash{}, tree, func(path string, e Entry) error {
		if strings.HasPrefix(path, dir) {
			out = append(out, e.Hash)
		}
		return nil
	}))
	return out
}

// Of a server that leaves blobs out only those come that are asked for: all of them in one request, and each once. What
// is pushed and what others push on top comes with its blobs. A run after it goes on with what is there, and git takes
// the mirror for a partial clone.
func TestPartial(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(20), Links: map[string]string{"link": "a"}})
	dir := t.TempDir()
	m, url, packs := partialOf(t, r, dir)
	tip := fetch(t, m, "main")
	require.EqualValues(t, 1, packs.Load())
	all := blobsOf(t, m, tip.Tree, "")
	require.Len(t, m.store.lacking(all), len(all), "trees are there, and no blob")

	wanted := blobsOf(t, m, tip.Tree, "workers/team-01/")
	require.NotEmpty(t, wanted)
	_, err := m.Blob(wanted[0], 1<<20)
	require.IsType(t, &MissingObjectError{}, err)
	require.NoError(t, m.store.damage(), "what is left out is no damage")
	require.NoError(t, m.Bring(t.Context(), wanted))
	require.NoError(t, m.Bring(t.Context(), append(wanted, wanted...)))
	require.EqualValues(t, 2, packs.Load())
	require.Len(t, m.store.lacking(all), len(all)-len(wanted))

	_, err = m.Push(t.Context(), stage(t, m, commitOn(tip, put("workers/team-02/app-0002/worker.yaml", "new"), del("workers/team-03/app-0003/worker.yaml"))))
	require.NoError(t, err)
	r.Commit(gittest.Commit{Write: map[string]string{"workers/team-04/x": "theirs"}})
	tip = fetch(t, m, "main")
	require.Equal(t, "forward", moveOf(tip))
	require.Empty(t, m.store.lacking(blobsOf(t, m, tip.Tree, "workers/team-04/x")))
	require.EqualValues(t, 3, packs.Load())
	require.NoError(t, m.Close())
	mirrorFsck(t, dir)

	m = openAt(t, dir, way{url: url})
	require.True(t, m.store.isPartial())
	tip = fetch(t, m, "main")
	require.Equal(t, "none", moveOf(tip))
	requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
	require.NoError(t, m.Close())
	mirrorFsck(t, dir)
}

// A tree that is missing is damage: trees are never left on the server. The mirror is filled anew.
func TestPartialLacksNoTree(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(2)})
	m, _, _ := partialOf(t, r, t.TempDir())
	tip := fetch(t, m, "main")
	workers, found, err := m.Lookup(tip.Tree, "workers")
	require.NoError(t, err)
	require.True(t, found)
	delete(m.store.fresh, workers.Hash)
	_, _, err = m.Lookup(tip.Tree, "workers/team-01/app-0001/worker.yaml")
	require.IsType(t, &MissingObjectError{}, err)
	require.Error(t, m.store.damage())
	tip = fetch(t, m, "main")
	requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
}

// A tree that a commit has and that is missing is damage wherever the search begins: at a commit of long ago too. What
// was looked for before the mirror was filled anew says nothing about the new one.
func TestLostTreeIsDamage(t *testing.T) {
	r := gittest.NewBareRepo(t)
	old := r.Commit(gittest.Commit{Write: map[string]string{"gone/file": "x", "rest": "y"}})
	r.Commit(gittest.Commit{Delete: []string{"gone/file"}})
	m, _, _ := partialOf(t, r, t.TempDir())
	tip := fetch(t, m, "main")
	wanted := Wanted{Path: "gone/file"}
	find := func() (Found, error) {
		found, _, err := m.FindInHistory(t.Context(), tip, wanted)
		return found, err
	}
	found, err := find()
	require.NoError(t, err)
	require.Equal(t, old, found.Commit.String())

	c, err := m.Commit(found.Commit)
	require.NoError(t, err)
	for name, search := range map[string]func() error{
		"find": func() error { _, err := find(); return err },
		"introduced": func() error {
			_, err := m.Introduced(t.Context(), Tip{Branch: "main", Commit: c.Hash, Tree: c.Tree}, []Wanted{wanted})
			return err
		},
	} {
		delete(m.store.fresh, c.Tree)
		before := search()
		require.IsType(t, &MissingObjectError{}, before, name)
		require.Error(t, m.store.damage(), name)
		fetch(t, m, "main")
		require.ErrorIs(t, m.Needed(before), before)
		require.NoError(t, m.store.damage(), name)
		_, err = find()
		require.NoError(t, err, name)
	}
}

// A server that offers to leave contents out, and then refuses to, gives everything.
func TestOfferedFilterIsRefused(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(2)})
	r.Git("config", "uploadpackfilter.allow", "false")
	for name, url := range map[string]string{"HTTP": gittest.ServeHTTP(t, r, gittest.HTTPConfig{}).URL, "file": "file://" + r.Dir} {
		t.Run(name, func(t *testing.T) {
			r.Git("config", "uploadpack.allowFilter", "true")
			r.Git("config", "uploadpack.allowReachableSHA1InWant", "true")
			m := openMirror(t, way{url: url})
			tip := fetch(t, m, "main")
			requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
			r.Commit(gittest.Commit{Write: map[string]string{"new": name}})
			tip = fetch(t, m, "main")
			requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
		})
	}
}

// Where many are asked for, they come in several requests, by way of memory or of the disk. What goes wrong on the way
// is asked for again, and what the server has not got is said to be missing.
func TestManyBlobsComeInParts(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(20)})
	r.Git("config", "uploadpack.allowFilter", "true")
	for name, c := range map[string]struct {
		limits  func(*limits)
		disk    bool  // all of it is there
		damaged int64 // the answer that is, by its number: the first one is that to the fetch
		more    []Hash
	}{
		"in memory":             {},
		"on disk":               {limits: func(l *limits) { l.small = 0 }, disk: true},
		"some straight to disk": {limits: func(l *limits) { l.fetch, l.small = 800, 0 }, disk: true},
		"too much to inflate":   {limits: func(l *limits) { l.inflated, l.small = 1<<10, 0 }, disk: true},
		"the first is damaged":  {damaged: 2},
		"one is damaged":        {damaged: 4},
		"one is not there":      {more: []Hash{{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			var answers atomic.Int64
			served := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if !strings.HasSuffix(req.URL.Path, "/git-upload-pack") || answers.Add(1) != c.damaged {
						next.ServeHTTP(w, req)
						return
					}
					said := httptest.NewRecorder()
					next.ServeHTTP(said, req)
					body := said.Body.Bytes()
					at := bytes.Index(body, []byte("PACK")) + packHeader + 20
					body[at] ^= 0xff
					maps.Copy(w.Header(), said.Header())
					_, _ = w.Write(body)
				})
			}})
			dir := t.TempDir()
			m := openAt(t, dir, way{url: served.URL})
			tip := fetch(t, m, "main")
			if c.limits != nil {
				c.limits(&m.store.limits)
			}
			m.store.limits.wants = 7
			all := blobsOf(t, m, tip.Tree, "")
			err := m.Bring(t.Context(), slices.Concat(all, c.more))
			parts := int64(len(all)+6) / 7
			if c.more != nil {
				require.ErrorContains(t, err, "not our ref")
				require.Empty(t, m.store.lacking(all[:len(all)/2]), "what came before stays")
				return
			}
			require.NoError(t, err)
			if c.damaged == 0 {
				require.Equal(t, 1+parts, answers.Load())
			} else {
				require.Greater(t, answers.Load(), 1+parts)
			}
			requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
			if c.disk {
				_ = m.lock.Close() // as if killed
				m = openAt(t, dir, way{url: served.URL})
				require.Equal(t, "none", moveOf(fetch(t, m, "main")))
				require.Empty(t, m.store.lacking(all))
			}
			require.NoError(t, m.Close())
			mirrorFsck(t, dir)
			m = openAt(t, dir, way{url: served.URL})
			requireSame(t, r.Files("main"), readAll(t, m, tip.Tree))
		})
	}
}

// History comes without blobs, but for the file that is looked for.
func TestPartialHistory(t *testing.T) {
	r := gittest.NewBareRepo(t)
	for i := range 5 {
		r.Commit(gittest.Commit{Write: map[string]string{"x": fmt.Sprint("x", i), "big": strings.Repeat(fmt.Sprint(i), 1000)}})
	}
	m, _, _ := partialOf(t, r, t.TempDir())
	tip := fetch(t, m, "main")
	want := Wanted{Path: "x", Blob: newObj(plumbing.BlobObject, []byte("x1")).hash}
	found, ok, err := m.FindInHistory(t.Context(), tip, want)
	require.NoError(t, err)
	require.True(t, ok)
	data, err := m.Blob(found.Entry.Hash, 10)
	require.NoError(t, err)
	require.Equal(t, "x1", string(data))
	for i := range 5 {
		require.False(t, m.store.has(newObj(plumbing.BlobObject, []byte(strings.Repeat(fmt.Sprint(i), 1000))).hash))
	}
}

// A server that cannot leave blobs out, or does not give single ones, gives all at once.
func TestPartialOnlyWhereBlobsCanBeHad(t *testing.T) {
	for name, w := range map[string]way{
		"no filter":                  {name: "http"},
		"blobs cannot be asked for":  {name: "ssh", filter: []string{"allowFilter"}},
		"a ref beside the branches":  {name: "http", filter: []string{"allowFilter"}},
		"a filter, tips alone":       {name: "http", filter: []string{"allowFilter"}, tips: true},
		"a filter and single blobs":  {name: "ssh", filter: []string{"allowFilter", "allowReachableSHA1InWant"}},
		"a filter and any object":    {name: "ssh", filter: []string{"allowFilter", "allowAnySHA1InWant"}},
		"a filter, without a memory": {name: "http", filter: []string{"allowFilter"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: first})
			for _, setting := range w.filter {
				r.Git("config", "uploadpack."+setting, "true")
			}
			branch := "main"
			if name == "a ref beside the branches" {
				branch = "refs/rampart/decisions"
				r.Git("update-ref", branch, "main")
			}
			at := way{}
			for _, each := range ways(t, r) {
				if each.name == w.name {
					at = each
					at.tips = w.tips
				}
			}
			m := openMirror(t, at)
			tip := fetch(t, m, branch)
			partial := strings.HasPrefix(name, "a filter")
			require.Equal(t, partial, m.store.isPartial())
			require.Equal(t, partial, len(m.store.lacking(blobsOf(t, m, tip.Tree, ""))) > 0)
			requireSame(t, r.Files(branch), readAll(t, m, tip.Tree))
		})
	}
}

// refusing serves a repository that leaves out what it is asked to, until it refuses to give it, or is busy.
type refusing struct {
	url          string
	refuse, busy atomic.Bool
}

func refuses(t *testing.T, r *gittest.Repo) *refusing {
	t.Helper()
	r.Git("config", "uploadpack.allowFilter", "true")
	s := &refusing{}
	s.url = gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if s.busy.Load() && strings.HasSuffix(req.URL.Path, "/git-upload-pack") {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			if s.refuse.Load() && strings.HasSuffix(req.URL.Path, "/git-upload-pack") {
				w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				_, _ = w.Write([]byte("0031ERR upload-pack: not our ref, says the server"))
				return
			}
			next.ServeHTTP(w, req)
		})
	}}).URL
	return s
}

// A server that left blobs out and does not give them is asked three times. Then the mirror is filled anew, with all of
// them. Until then what is there stays.
func TestPartialIsGivenUp(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	served := refuses(t, r)
	dir := t.TempDir()
	m := openAt(t, dir, way{url: served.url})
	tip := fetch(t, m, "main")
	served.busy.Store(true)
	for range maxRefusals + 1 {
		require.ErrorContains(t, m.Bring(t.Context(), blobsOf(t, m, tip.Tree, "")), "503")
		require.NoError(t, m.store.damage(), "a server that cannot answer refuses nothing")
	}
	served.busy.Store(false)
	served.refuse.Store(true)
	for range maxRefusals {
		require.NoError(t, m.store.damage())
		_, err := m.Tree(tip.Tree)
		require.NoError(t, err)
		require.ErrorContains(t, m.Bring(t.Context(), blobsOf(t, m, tip.Tree, "")), "not our ref")
	}
	served.refuse.Store(false)
	tip = fetch(t, m, "main")
	require.False(t, m.store.isPartial())
	require.Empty(t, m.store.lacking(blobsOf(t, m, tip.Tree, "")))
	config, err := os.ReadFile(filepath.Join(dir, configFile))
	require.NoError(t, err)
	require.NotContains(t, string(config), "partial")

	require.NoError(t, m.Close())
	m = openAt(t, dir, way{url: served.url})
	r.Git("branch", "other", "main")
	fetch(t, m, "other")
	require.False(t, m.store.isPartial(), "what is whole stays whole")
}

// A mirror of tips fetches a ref that was replaced without the files that stayed.
func TestTipsAlone(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Git("config", "uploadpack.allowFilter", "true")
	const ref = "refs/rampart/decisions/2026-11"
	replace := func(files map[string]string) {
		r.Git("update-ref", ref, r.Commit(gittest.Commit{Branch: "apart", Parent: "none", Write: files}))
		r.Git("update-ref", "-d", "refs/heads/apart")
	}
	replace(map[string]string{"a": "1"})
	m := openMirror(t, way{url: gittest.ServeHTTP(t, r, gittest.HTTPConfig{}).URL, tips: true})
	fetch(t, m, ref)
	replace(map[string]string{"a": "1", "b": "2"})
	tip := fetch(t, m, ref)
	blobs := blobsOf(t, m, tip.Tree, "")
	require.Len(t, m.store.lacking(blobs), 2)
	require.NoError(t, m.Bring(t.Context(), blobs[:1]))
	require.Len(t, m.store.lacking(blobs), 1)
	there, err := m.Branches(t.Context(), "refs/rampart/")
	require.NoError(t, err)
	require.Equal(t, map[string]Hash{ref: tip.Commit}, there)

	require.NoError(t, m.Empty(t.Context()))
	require.Len(t, m.store.lacking(blobs), 2)
	require.Equal(t, tip.Commit, fetch(t, m, ref).Commit)
}
