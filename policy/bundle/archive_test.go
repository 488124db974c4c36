package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

func TestBundleIsReadWithModulesAndData(t *testing.T) {
	archive := made{
		modules: map[string]string{"/b/org.rego": rule("no"), "/a/help.rego": "package acme.help\n\nyes := true\n",
			"/a/help_test.rego": "package acme.help_test\n\ntest_yes if true\n"},
		data:     map[string]any{"acme": map[string]any{"limit": 3}},
		manifest: bundle.Manifest{Revision: "r1", Roots: &[]string{"acme", "rampart/rollout"}},
	}.archive(t)
	c, err := reading{name: "org"}.read(archive)
	require.NoError(t, err)
	require.Equal(t, "r1", c.revision)
	require.Equal(t, policy.Layer{Name: "bundle:org", Modules: []parse.Module{
		{Path: "bundle:org/a/help.rego", Source: "package acme.help\n\nyes := true\n"},
		{Path: "bundle:org/a/help_test.rego", Source: "package acme.help_test\n\ntest_yes if true\n"},
		{Path: "bundle:org/b/org.rego", Source: rule("no")},
	}, Data: []parse.DataFile{{Path: "bundle:org/data.json", Content: "{\n  \"acme\": {\n    \"limit\": 3\n  }\n}"}}}, c.layer)
}

// bomb expands to much more than it is.
func bomb(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	size := int64(MaxExpanded) + 1<<20
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "x.rego", Typeflag: tar.TypeReg, Size: size, Mode: 0o644}))
	block := make([]byte, 1<<20)
	for range size / int64(len(block)) {
		_, err := w.Write(block)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, gz.Close())
	return out.Bytes()
}

// plainBomb is a gzipped tar, followed by so many zeros that it expands to more than MaxExpanded.
func plainBomb(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	_, err := gz.Write(tarBody(t))
	require.NoError(t, err)
	for range MaxExpanded >> 20 {
		_, err := gz.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, gz.Close())
	return out.Bytes()
}

// tarBody is a whole tar: a reader of tars ignores what follows it.
func tarBody(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	text := rule("x")
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "x.rego", Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644}))
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func many(t testing.TB) []byte {
	t.Helper()
	var entries []tar.Header
	for i := range MaxFiles + 1 {
		entries = append(entries, tar.Header{Name: strings.Repeat("a", i%200+1) + "/" + strings.Repeat("b", i/200+1) + ".txt"})
	}
	return tarOf(t, entries...)
}

// TestHostileArchives checks that an archive that is not a plain bundle is refused before anything reads it. The reason
// says what is wrong.
func TestHostileArchives(t *testing.T) {
	testneed.Plain(t)
	v0 := 0
	whole := good(t, "r1")
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"nothing":          {nil, "it is not a gzipped tar"},
		"a page":           {[]byte("<html>sign in</html>"), "it is not a gzipped tar"},
		"truncated":        {whole[:len(whole)-20], "the archive is damaged: unexpected EOF"},
		"no checksum":      {whole[:len(whole)-8], "the archive is damaged: unexpected EOF"},
		"bomb":             {bomb(t), "it expands to more than 32 MiB"},
		"bomb after":       {plainBomb(t), "it expands to more than 32 MiB"},
		"many":             {many(t), "more than 2000 files"},
		"out of it":        {tarOf(t, tar.Header{Name: "../../etc/x.rego"}), `"../../etc/x.rego": want a plain path`},
		"out of it inside": {tarOf(t, tar.Header{Name: "a/../../x.rego"}), "want a plain path"},
		"backslashes":      {tarOf(t, tar.Header{Name: `..\x.rego`}), "want a plain path"},
		"symlink":          {tarOf(t, tar.Header{Name: "x.rego", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), `"x.rego" is a link`},
		"hard link":        {tarOf(t, tar.Header{Name: "x.rego", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}), "is a link"},
		"device":           {tarOf(t, tar.Header{Name: "x.rego", Typeflag: tar.TypeChar}), "is a link or a special file"},
		"twice":            {tarOf(t, tar.Header{Name: "/x.rego"}, tar.Header{Name: "./x.rego"}), `"./x.rego" is in it twice`},
		"delta":            {made{patch: bundle.Patch{Data: []bundle.PatchOperation{{Op: "upsert", Path: "/a", Value: 1}}}}.archive(t), "delta bundle"},
		"wasm":             {made{modules: map[string]string{"/x.rego": rule("x")}, wasm: []byte{0}}.archive(t), "compiled policies (/policy.wasm)"},
		"Rego v0":          {made{modules: map[string]string{"/x.rego": "package acme\n\nok { true }\n"}, manifest: bundle.Manifest{RegoVersion: &v0}}.archive(t), "says Rego v0: expected v1"},
		"Rego v0 in one": {made{modules: map[string]string{"/x.rego": rule("x")},
			manifest: bundle.Manifest{Revision: "r", FileRegoVersions: map[string]int{"/x.rego": 0}}}.archive(t), "x.rego"},
		"no roots for it": {made{modules: map[string]string{"/x.rego": rule("x")}, manifest: bundle.Manifest{Roots: &[]string{"acme"}}}.archive(t), "roots [acme] do not permit"},
		"empty":           {made{}.archive(t), "no policy and no data"},
		"does not parse":  {made{modules: map[string]string{"/x.rego": "package acme\n\nx := \n"}}.archive(t), "rego_parse_error"},
		"does not compile": {made{modules: map[string]string{"/x.rego": "package rampart.rollout\n\ndeny contains y if true\n"}}.archive(t),
			"bundle:org/x.rego:3: var y is unsafe"},
		"asks the network": {made{modules: map[string]string{"/x.rego": "package acme\n\nx := http.send({})\n"}}.archive(t), "http.send"},
		"changes the library": {made{modules: map[string]string{"/x.rego": "package rampart.facts\n\nx := 1\n"}}.archive(t),
			"below rampart a policy may use"},
		"data of the library": {made{data: map[string]any{"rampart": map[string]any{"facts": 1}}}.archive(t), "may hold config only"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reading{name: "org"}.read(c.archive)
			if err == nil {
				_, refused := settle(set{&got.layer}, set{nil}, inProcess)
				err = refused[0]
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A sparse file is as large as it says, however little of it is written down.
func TestSparseSizesCount(t *testing.T) {
	seen := &entries{seen: map[string]bool{}}
	for _, name := range []string{"a", "b"} {
		require.NoError(t, seen.add(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: MaxExpanded / 2}))
	}
	require.ErrorContains(t, seen.add(&tar.Header{Name: "c", Typeflag: tar.TypeReg, Size: 1}), "expands to more than 32 MiB")
}

// FuzzArchive: whatever comes, reading ends, and what comes into force compiles.
func FuzzArchive(f *testing.F) {
	f.Add(good(f, "r1"))
	f.Add(tarOf(f, tar.Header{Name: "../x"}))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		c, err := reading{name: "org"}.read(archive)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, c.revision)
		accepted, refused := settle(set{&c.layer}, set{nil}, inProcess)
		require.Equal(t, refused[0] == nil, accepted[0] != nil)
		require.Empty(t, accepted.problems(inProcess))
	})
}
