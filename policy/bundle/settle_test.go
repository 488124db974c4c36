package bundle

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// module of package acme.NAME, with one function of some arguments, that calls another.
func module(name, arguments, calls string) string {
	return fmt.Sprintf("package acme.%s\n\nown(%s) := x if {\n\tx := %s\n}\n", name, arguments, calls)
}

func layerWith(name, source string) *policy.Layer {
	return &policy.Layer{Name: Prefix + name, Modules: []parse.Module{{Path: Prefix + name + "/x.rego", Source: source}}}
}

// What fits together comes into force together, and what does not leaves the others alone.
func TestBundlesThatFitComeIntoForceTogether(t *testing.T) {
	testneed.Plain(t)
	const undefined = "undefined function data.acme.b.own"
	one := func(name string) *policy.Layer { return layerWith(name, module(name, "_", "1")) }
	calls := func(name, call string) *policy.Layer { return layerWith(name, module(name, "_", call)) }
	oldB, newB := one("b"), layerWith("b", module("b", "_, _", "2"))
	oldA, newA := calls("a", "data.acme.b.own(1)"), calls("a", "data.acme.b.own(1, 2)")
	c, brokenC := one("c"), calls("c", "y")
	// No file of z's is named in what it breaks.
	z := layerWith("z", module("a", "_, _, _", "3"))
	for name, tc := range map[string]struct {
		fresh, inForce, want set
		refused              map[int]string
	}{
		"nothing new":                {set{nil, nil}, set{oldA, oldB}, set{oldA, oldB}, nil},
		"both at once":               {set{oldA, oldB}, set{nil, nil}, set{oldA, oldB}, nil},
		"one without the other":      {set{oldA, nil}, set{nil, nil}, set{nil, nil}, map[int]string{0: undefined}},
		"the other comes":            {set{oldA, nil}, set{nil, oldB}, set{oldA, oldB}, nil},
		"both change":                {set{newA, newB}, set{oldA, oldB}, set{newA, newB}, nil},
		"half of a change":           {set{newA, nil}, set{oldA, oldB}, set{oldA, oldB}, map[int]string{0: "beside the bot's other policies: bundle:a/x.rego:4: "}},
		"the other half":             {set{nil, newB}, set{oldA, oldB}, set{oldA, oldB}, map[int]string{1: "beside the bot's other policies: bundle:a/x.rego:4: "}},
		"a third is broken":          {set{newA, newB, brokenC}, set{oldA, oldB, c}, set{newA, newB, c}, map[int]string{2: "bundle:c/x.rego:4: var y is unsafe"}},
		"a third breaks others":      {set{newA, newB, z}, set{oldA, oldB, nil}, set{newA, newB, nil}, map[int]string{2: "beside the bot's other policies: "}},
		"one is broken, one is fine": {set{calls("a", "y"), newB, c}, set{nil, nil, nil}, set{nil, newB, c}, map[int]string{0: "bundle:a/x.rego:4: var y is unsafe"}},
		"what was broken before":     {set{nil, nil, c}, set{oldA, nil, nil}, set{oldA, nil, c}, nil},
		"what mends it":              {set{nil, oldB}, set{oldA, nil}, set{oldA, oldB}, nil},
		"two are broken":             {set{oldA, calls("c", "y"), calls("d", "z"), oldB}, set{nil, nil, nil, nil}, set{oldA, nil, nil, oldB}, map[int]string{1: "var y is unsafe", 2: "var z is unsafe"}},
		"blamed for another's fault": {set{oldA, calls("b", "y"), c}, set{nil, oldB, nil}, set{oldA, oldB, c}, map[int]string{1: "bundle:b/x.rego:4: var y is unsafe"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, refused := settle(tc.fresh, tc.inForce, inProcess)
			for i := range tc.want {
				require.Same(t, tc.want[i], got[i], "source %d: %v", i, refused)
			}
			require.Len(t, refused, len(tc.refused))
			for i, want := range tc.refused {
				require.ErrorContains(t, refused[i], want)
			}
		})
	}
}

// servesBoth serves bundles a and b by their paths.
func servesBoth(s *server, a, b []byte) {
	s.does(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(map[string][]byte{"/a.tar.gz": a, "/b.tar.gz": b}[r.URL.Path])
	})
}

func bundleWith(t *testing.T, revision, source string) []byte {
	t.Helper()
	return made{modules: map[string]string{"/x.rego": source}, manifest: bundle.Manifest{Revision: revision}}.archive(t)
}

// Two bundles that compile only together come, change and come back from the cache together.
func TestBundlesOfOneKind(t *testing.T) {
	s := newServer(t)
	b := newBench(t, s, func(c *Config) {
		c.Bundles = []Bundle{{Name: "a", URL: s.URL + "/a.tar.gz"}, {Name: "b", URL: s.URL + "/b.tar.gz"}}
	})
	revisions := func(f Floor) string { return string(f.Facts["bundle.a"].Value) + string(f.Facts["bundle.b"].Value) }
	a1, b1 := bundleWith(t, "a1", module("a", "_", "data.acme.b.own(1)")), bundleWith(t, "b1", module("b", "_", "1"))
	a2, b2 := bundleWith(t, "a2", module("a", "_", "data.acme.b.own(1, 2)")), bundleWith(t, "b2", module("b", "_, _", "2"))
	servesBoth(s, a1, b1)
	first := b.refresh()
	require.Equal(t, `"a1""b1"`, revisions(first), "%s", b.log)
	require.Empty(t, holds(first))
	servesBoth(s, a2, b1)
	require.Equal(t, first.Key, b.refresh().Key, "half of a change")
	require.Contains(t, b.log.String(), "is refused: beside the bot's other policies: bundle:a/x.rego:4: ")
	servesBoth(s, a2, b2)
	second := b.refresh()
	require.Equal(t, `"a2""b2"`, revisions(second))
	require.Empty(t, holds(second))

	servesBoth(s, bundleWith(t, "a3", "package acme.a\n\nx := y\n"), bundleWith(t, "b3", module("b", "_, _", "3")))
	require.Equal(t, `"a2""b3"`, revisions(b.refresh()), "a bad one does not keep the other back")

	s.says(http.StatusServiceUnavailable)
	b.start()
	require.Equal(t, `"a2""b3"`, revisions(b.store.Floor()))
	require.Empty(t, holds(b.store.Floor()))
}

// A bundle may build on a directory.
func TestABundleOnADirectory(t *testing.T) {
	s := newServer(t)
	dir := folder(t, map[string]string{"b.rego": module("b", "_", "1")})
	s.has(bundleWith(t, "r1", module("a", "_", "data.acme.b.own(1)")), `"one"`)
	b := newBench(t, s, func(c *Config) { c.Dirs = []string{dir} })
	require.Equal(t, `"r1"`, revision(b.refresh()), "%s", b.log)
	b.start()
	require.Equal(t, `"r1"`, revision(b.store.Floor()), "from the cache")

	// Both change at once.
	s.has(bundleWith(t, "r2", module("a", "_", "data.acme.b.own(1, 2)")), `"two"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.rego"), []byte(module("b", "_, _", "2")), 0o600))
	f := b.refresh()
	require.Equal(t, `"r2"`, revision(f))
	require.Empty(t, holds(f))
}
