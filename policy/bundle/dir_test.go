package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// folder makes a directory; a text that begins with "->" is a link.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range sorted(files) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		if to, ok := strings.CutPrefix(files[name], "->"); ok {
			require.NoError(t, os.Symlink(to, file))
			continue
		}
		require.NoError(t, os.WriteFile(file, []byte(files[name]), 0o600))
	}
	return dir
}

func TestReadDir(t *testing.T) {
	dir := folder(t, map[string]string{"b.rego": rule("b"), "a/a.rego": rule("a"), "a/a_test.rego": "package acme_test\n", "README.md": "x",
		".git/x.rego": "no", "data.yaml": "rampart: {config: {rollout: {steps: {maxPercentage: 50}}}}\n", "acme/limits/data.json": `{"most": 3}`})
	got, err := ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, policy.Layer{Name: dir, Modules: []parse.Module{
		{Path: dir + "/a/a.rego", Source: rule("a")}, {Path: dir + "/a/a_test.rego", Source: "package acme_test\n"}, {Path: dir + "/b.rego", Source: rule("b")},
	}, Data: []parse.DataFile{
		{Path: dir + "/acme/limits/data.json", Content: `{"acme":{"limits":{"most":3}}}`},
		{Path: dir + "/data.yaml", Content: "rampart: {config: {rollout: {steps: {maxPercentage: 50}}}}\n"},
	}}, got)
	require.Empty(t, policy.Compile(policy.Config{Floor: []policy.Layer{got}}).Problems())
}

// A ConfigMap is mounted as links into a folder that is replaced as a whole.
func TestMountedConfigMap(t *testing.T) {
	dir := folder(t, map[string]string{"..2026_03_02/org.rego": rule("a"), "..data": "->..2026_03_02", "org.rego": "->..data/org.rego"})
	got, err := ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, []parse.Module{{Path: dir + "/org.rego", Source: rule("a")}}, got.Modules)
}

func TestDirectoriesThatAreRefused(t *testing.T) {
	outside := folder(t, map[string]string{"x.rego": rule("x"), "sub/x.rego": rule("x")})
	crowd := map[string]string{}
	for i := range MaxFiles + 1 {
		crowd[fmt.Sprintf("%d.txt", i)] = ""
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"link out":         {map[string]string{"x.rego": "->" + outside + "/x.rego"}, "x.rego: path escapes from parent"},
		"folder out":       {map[string]string{"sub": "->" + outside + "/sub"}, "sub: path escapes from parent"},
		"link up":          {map[string]string{"a/x.rego": "->../../x.rego"}, "escapes"},
		"dangling":         {map[string]string{"x.rego": "->y.rego"}, "no such file"},
		"link back":        {map[string]string{"a/b": "->../a", "x.rego": rule("x")}, "link"},
		"too many":         {crowd, "more than 2000 files"},
		"too large":        {map[string]string{"x.rego": strings.Repeat("#", parse.MaxFileSize+1)}, "x.rego is larger than 1048576 bytes"},
		"nothing":          {map[string]string{"README": "x"}, "no *.rego and no data"},
		"data in no place": {map[string]string{"x.rego": rule("x"), "settings.yaml": "{}"}, "settings.yaml is not read: data is in files named data.yaml"},
		"broken data":      {map[string]string{"a/data.yaml": "{"}, "a/data.yaml: yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, c.files)
			_, err := ReadDir(dir)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, dir)
		})
	}
	_, err := ReadDir(filepath.Join(outside, "none"))
	require.ErrorContains(t, err, "none: no such file or directory")
}

// A directory is read again; what cannot be read leaves what was.
func TestDirectoryIsReadAgain(t *testing.T) {
	dir := folder(t, map[string]string{"x.rego": rule("one")})
	b := newBench(t, newServer(t), func(c *Config) { c.Dirs, c.Bundles = []string{dir}, nil })
	first := b.store.Floor()
	require.Equal(t, rule("one"), first.Layers[0].Modules[0].Source)
	require.Equal(t, first, b.refresh())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.rego"), []byte(rule("two")), 0o600))
	second := b.refresh()
	require.Equal(t, rule("two"), second.Layers[0].Modules[0].Source)
	require.NotEqual(t, first.Key, second.Key)

	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "etc")))
	require.Equal(t, second, b.refresh())
	require.Contains(t, b.log.String(), "it stays as it was")
	b.refresh()
	require.Equal(t, 1, strings.Count(b.log.String(), "it stays as it was"), "said once")
}

// How long ago a directory could last be read is a fact, whose value is what was read then until it is too old.
func TestTheAgeOfADirectory(t *testing.T) {
	dir := folder(t, map[string]string{"x.rego": rule("one")})
	b := newBench(t, newServer(t), func(c *Config) { c.Dirs, c.Bundles, c.MaxAge = []string{dir}, nil, time.Hour })
	fact := func() rollout.Fact { return b.refresh().Facts["dir."+dir] }
	first := fact()
	require.Equal(t, rollout.Fact{Value: first.Value, ObservedAt: b.clock, MaxAge: time.Hour, Source: "policy directory " + dir}, first)
	require.Regexp(t, `^"sha256:[0-9a-f]{12}"$`, string(first.Value))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.rego"), []byte(rule("two")), 0o600))
	second := fact()
	require.NotEqual(t, first.Value, second.Value)

	key := b.store.Floor().Key
	require.NoError(t, os.Rename(dir, dir+".away"))
	b.clock = b.clock.Add(time.Hour)
	require.Equal(t, second, fact(), "as old as the last reading, and good for as long as a bundle's")
	require.True(t, second.Fresh(b.clock))
	b.clock = b.clock.Add(time.Second)
	old := fact()
	require.False(t, old.Fresh(b.clock))
	require.Equal(t, "it cannot be read any more: read policies: open "+dir+": no such file or directory", old.Error)
	require.Equal(t, key, b.store.Floor().Key, "the policies stay, however old they are")

	require.NoError(t, os.Rename(dir+".away", dir))
	back := fact()
	require.Equal(t, second.Value, back.Value)
	require.Equal(t, b.clock, back.ObservedAt)
	require.Contains(t, b.log.String(), "can be read again")
}
