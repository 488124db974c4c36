package gitops

import (
	"io"
	"log/slog"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// written are objects that are not checked.
type written struct {
	*memory.Storage
	hashes []plumbing.Hash
}

func (w *written) put(t *testing.T, kind plumbing.ObjectType, content string) plumbing.Hash {
	t.Helper()
	var o plumbing.MemoryObject
	o.SetType(kind)
	_, err := o.Write([]byte(content))
	require.NoError(t, err)
	h, err := w.SetEncodedObject(&o)
	require.NoError(t, err)
	w.hashes = append(w.hashes, h)
	return h
}

// trees writes what a text says: folders, with an empty line between them, each entry on a line of its own. That ends
// in a letter for what is there, which is one of the objects or the folder before this one, and begins with a mode and
// a name, of any bytes. What has no mode is written as it is.
func (w *written) trees(t *testing.T, text string, objects map[byte]plumbing.Hash) []plumbing.Hash {
	t.Helper()
	var out []plumbing.Hash
	for folder := range strings.SplitSeq(text, "\n\n") {
		var raw strings.Builder
		for line := range strings.SplitSeq(folder, "\n") {
			if _, _, ok := strings.Cut(line, " "); !ok {
				raw.WriteString(line)
				continue
			}
			last := len(line) - 1
			h, known := objects[line[last]]
			if !known {
				h = objects['s']
			}
			if line[last] == 't' && len(out) > 0 {
				h = out[len(out)-1]
			}
			raw.WriteString(line[:last] + "\x00" + string(h[:]))
		}
		out = append(out, w.put(t, plumbing.TreeObject, raw.String()))
	}
	return out
}

// mirrorOf is a mirror that has these objects.
func (w *written) mirrorOf(t *testing.T) *git.Mirror {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mirror")
	m, err := git.Open(git.Config{URL: "file:///nowhere", Dir: dir, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	into, err := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRU(0)).PackfileWriter()
	require.NoError(t, err)
	_, err = packfile.NewEncoder(into, w, false).Encode(w.hashes, 0)
	require.NoError(t, err)
	require.NoError(t, into.(io.Closer).Close())
	return m
}

// FuzzTrees: folders with any names and modes, of objects of any kind, as specs, policies and records of one
// environment. The bot and the preview see the same, of nothing that is elsewhere, and the other environment goes on.
func FuzzTrees(f *testing.F) {
	for _, seed := range []string{
		"100644 o.yaml\x00s\n120000 l.yamls\n160000 subc",
		"100644 routing.yamlr\n\n40000 othert\n\n40000 shopt",
		"100644 ../ok.regop\n100644 a/../../ok.regop\n100644 .p\n100644 ok.regop\n100644 ok.regop\n40000 ok.regot",
		"100644 routing.yamlr\n\n40000 ..t\n40000 .gitt\n40000 .t\n40000 .GIT t\n40000 a/bt\n40000 othert\n\n40000 shopt\n40000 ..t",
		"100644 x.yamlt\n\n100644 x.yamlt\n100644 y.yamlc\n40000 zs",
		"7777777777777 y.yamls", "9 y.yamls", "nothing", "100644 y.yamls\nmore", "40000 yt\n\n40755 yt\n\n100664 o.yamls\n120777 p.regop",
		"100644 a.yamlm", "40000 am", "100644 h.yamlh\n\n100644 routing.yamlh\n\n40000 othert\n\n40000 shopt", "0 x\n",
		"100644 b\n100644 a\n100644 as\n40000 at\n100644 a-s\n40000 a-t\n", "40000 a.yamlt\n\n40000 a.yamlt\n\n100644 a.yamls",
		"100644 o.yamls\n\n100644 x.yamlt", "100644 routing.yamlr\n\n40000 othert\n40000 othert\n\n40000 shopt",
	} {
		f.Add(seed)
	}
	huge := strings.Repeat("x: y\n", tree.MaxFileSize/5+1)
	f.Fuzz(func(t *testing.T, text string) {
		w := &written{Storage: memory.NewStorage()}
		blob := func(content string) plumbing.Hash { return w.put(t, plumbing.BlobObject, content) }
		objects := map[byte]plumbing.Hash{'s': blob(specYAML("shop", "other", "x")), 'r': blob(routingYAML("other", "a/o.yaml")), 'p': blob("package rampart.rollout\n"),
			'm': {1}, 'c': w.put(t, plumbing.CommitObject, "tree "+plumbing.ZeroHash.String()+"\n\nx")}
		if strings.Contains(text, "h\n") {
			objects['h'] = blob(huge)
		}
		objects['t'] = objects['s'] // where there is no folder before
		folder := func(entries ...string) plumbing.Hash {
			var raw string
			for i := 0; i < len(entries); i += 2 {
				raw += entries[i] + "\x00" + entries[i+1]
			}
			return w.put(t, plumbing.TreeObject, raw)
		}
		bytes := func(h plumbing.Hash) string { return string(h[:]) }
		all := w.trees(t, text, objects)
		of := func(i int) string { return bytes(all[max(0, len(all)-1-i)]) }
		b := folder("100644 c.yaml", bytes(blob(specYAML("shop", "cart", "x"))))
		root := folder("40000 a", of(0), "40000 b", bytes(b), "40000 deploy", bytes(folder("40000 a", of(0))), "40000 policies", of(1), "100644 "+layout.Config, bytes(blob(twoApart)))

		m := w.mirrorOf(t)
		defer func() { require.NoError(t, m.Close()) }()
		start := time.Now()
		bot := tree.Commit{Ctx: t.Context(), Mirror: m, Hash: root}
		asBot, err := (&index.Reader{}).Read(bot, in(bot), rollout.GitContext{})
		person := gitTree{w, root}
		asPerson, other := (&index.Reader{}).Read(person, in(person), rollout.GitContext{})
		require.Less(t, time.Since(start), 10*time.Second)
		if err != nil { // something is missing, and else nothing of anybody's
			require.Error(t, other)
			var missing *git.MissingObjectError
			require.ErrorAs(t, err, &missing)
			require.Contains(t, text, "m")
			return
		}
		require.NoError(t, other)
		require.Equal(t, asPerson, asBot)
		requireInside(t, asBot)
		require.Equal(t, []string{"shop/cart"}, names(asBot.Environments[1]))

		survey := index.NewReader().AsIndex()
		surveyed, err := survey.Read(bot, in(bot), rollout.GitContext{})
		require.NoError(t, err)
		require.Subset(t, problems(asBot), problems(surveyed), "a survey does not look into manifests")
		require.Len(t, surveyed.Environments[0].Entries, len(asBot.Environments[0].Deployments))
	})
}

// requireInside says that whatever was read is where its environment has it, each file once.
func requireInside(t *testing.T, w rollout.World) {
	t.Helper()
	below := func(file, dir string) {
		t.Helper()
		require.Equal(t, path.Clean(file), file)
		require.True(t, strings.HasPrefix(file, dir+"/"), "%q is not in %s", file, dir)
		for name := range strings.SplitSeq(file, "/") {
			require.NotEqual(t, ".git", strings.ToLower(name))
		}
	}
	for _, env := range w.Environments {
		name, seen := env.Environment.Name, map[string]bool{}
		for _, p := range env.Policies {
			below(p.Path, "policies")
			require.False(t, seen[p.Path], p.Path)
			seen[p.Path] = true
		}
		for _, d := range env.Deployments {
			below(d.Record.Dir, "deploy/"+name)
			require.False(t, seen[d.Record.Dir], d.Record.Dir)
			seen[d.Record.Dir] = true
			for file := range d.Record.Files {
				below(path.Join(d.Record.Dir, file), d.Record.Dir)
			}
			if d.SpecPath != "" {
				below(d.SpecPath, name)
			}
		}
	}
}
