package git

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

func TestStage(t *testing.T) {
	base := gittest.Commit{
		Write:   map[string]string{"a": "1", "d/x": "1", "d/y": "1", "deep/er/still/f": "1", "d.txt": "1", "d0": "1"},
		Exec:    map[string]string{"run": "#!"},
		Links:   map[string]string{"link": "d", "d/link": "../a"},
		Modules: map[string]string{"mod": strings.Repeat("1", 40), "d/mod": strings.Repeat("2", 40)},
	}
	tests := []struct {
		name    string
		changes []Change
		write   map[string]string // against base, in the notation of gittest; "" means gone
		err     error
	}{
		{name: "add, change", changes: []Change{put("new/dir/file", "n"), put("a", "2"), put("d/z", "3")},
			write: map[string]string{"new/dir/file": "n", "a": "2", "d/z": "3"}},
		{name: "delete prunes", changes: []Change{del("deep/er/still/f")}, write: map[string]string{"deep/er/still/f": ""}},
		{name: "delete keeps what is not empty", changes: []Change{del("d/x"), del("d/y")}, write: map[string]string{"d/x": "", "d/y": ""}},
		{name: "over an executable", changes: []Change{put("run", "#!")}, write: map[string]string{"run": "#!"}},
		{name: "empty file", changes: []Change{{Path: "a"}}, write: map[string]string{"a": "\x00"}},
		{name: "file becomes directory", changes: []Change{put("a/b", "x"), del("a")}, write: map[string]string{"a": "", "a/b": "x"}},
		{name: "directory becomes file", changes: []Change{put("deep", "x"), del("deep/er/still/f")},
			write: map[string]string{"deep/er/still/f": "", "deep": "x"}},
		{name: "delete nothing below nothing", changes: []Change{del("p/q/r")}},

		{name: "file in the way", changes: []Change{put("a/b", "x")}, err: &PathError{"a", PathUnderFile}},
		{name: "delete below a file", changes: []Change{del("a/b")}, err: &PathError{"a", PathUnderFile}},
		{name: "directory in the way", changes: []Change{put("d", "x")}, err: &PathError{"d", PathIsDirectory}},
		{name: "directory not quite empty", changes: []Change{put("d", "x"), del("d/x")}, err: &PathError{"d", PathConflict}},
		{name: "both file and directory", changes: []Change{put("n/x", "x"), put("n", "x")}, err: &PathError{"n", PathConflict}},
		{name: "delete a directory", changes: []Change{del("d")}, err: &PathError{"d", PathIsDirectory}},
		{name: "twice", changes: []Change{put("n", "x"), put("n", "x")}, err: &PathError{"n", PathDuplicate}},
		{name: "written and deleted", changes: []Change{put("a", "x"), del("a")}, err: &PathError{"a", PathDuplicate}},
		{name: "through a link", changes: []Change{put("link/x", "x")}, err: &PathError{"link", PathIsSymlink}},
		{name: "over a link", changes: []Change{put("d/link", "x")}, err: &PathError{"d/link", PathIsSymlink}},
		{name: "delete a link", changes: []Change{del("link")}, err: &PathError{"link", PathIsSymlink}},
		{name: "into a submodule", changes: []Change{put("d/mod/x", "x")}, err: &PathError{"d/mod", PathIsSubmodule}},
		{name: "over a submodule", changes: []Change{put("mod", "x")}, err: &PathError{"mod", PathIsSubmodule}},
		{name: "bad path", changes: []Change{put("d/../../x", "x")}, err: &PathError{"d/../../x", PathComponent}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(base)
			m := openFile(t, r)
			tip := fetch(t, m, "main")
			want := r.Files("main")
			s, err := m.Stage(commitOn(tip, test.changes...))
			if test.err != nil {
				requireSame(t, test.err, err)
				return
			}
			require.NoError(t, err)
			slices.Reverse(test.changes)
			require.Equal(t, s.Tree, stage(t, m, commitOn(tip, test.changes...)).Tree, "in any order")
			if !s.Unchanged() {
				_, err = m.Push(t.Context(), s)
				require.NoError(t, err)
			}
			for path, data := range test.write {
				want[path] = strings.TrimPrefix(data, "\x00")
				if data == "" {
					delete(want, path)
				}
			}
			requireSame(t, want, r.Files("main"))
			r.Fsck()
		})
	}
}

func TestEverythingDeleted(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a/b": "1", "c": "2"}})
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	s := stage(t, m, commitOn(tip, del("a/b"), del("c")))
	require.Equal(t, emptyTree, s.Tree)
	_, err := m.Push(t.Context(), s)
	require.NoError(t, err)
	r.Fsck()
	require.Empty(t, r.Files("main"))
	tip = fetch(t, m, "main")
	_, err = m.Push(t.Context(), stage(t, m, commitOn(tip, put("back", "x"))))
	require.NoError(t, err)
	requireSame(t, map[string]string{"back": "x"}, r.Files("main"))
}

func TestOnlyNewObjectsAreSent(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyFiles(50)})
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	s := stage(t, m, commitOn(tip, put("workers/team-01/app-0001/worker.yaml", "v2"), put("workers/team-01/app-0001/copy.yaml", "v2")))
	// one blob (twice), the trees app, team, workers and the root, the commit
	require.Len(t, s.objs, 6)
}

func TestCheckPath(t *testing.T) {
	long := strings.Repeat("x", 256)
	for path, want := range map[string]PathProblem{
		"a": "", "a/b.yaml": "", "a b": "", ".github/x": "", ".gitignore": "", ".gitattributes": "", "git": "", "x.git": "",
		".gi": "", "git~2": "", "gitmod~5": "", "gi7eba~": "", "GI7EBA": "", "é/ü": "", "...": "", "a..b": "", strings.Repeat("x", 255): "",
		"": PathEmpty, "/a": PathAbsolute, "//": PathAbsolute,
		"a//b": PathComponent, "a/": PathComponent, "a/./b": PathComponent, "..": PathComponent, "a/../b": PathComponent,
		".git": PathDotGit, "a/.GIT/config": PathDotGit, ".Git": PathDotGit, ".git.": PathDotGit, ".git ": PathDotGit, ".git . .": PathDotGit,
		".git::$INDEX_ALLOCATION": PathDotGit, ".git:x": PathDotGit, "git~1": PathDotGit, "GIT~1": PathDotGit, "git~1 .": PathDotGit,
		".g\u200cit": PathDotGit, "\ufeff.git": PathDotGit, ".gi\u202et": PathDotGit, ".git\u206f": PathDotGit, ".git\u200d .": PathDotGit,
		".gitmodules": PathDotGit, "x/.GITMODULES": PathDotGit, "gitmod~1": PathDotGit, "gi7eba~1": PathDotGit, "GI7EB~12": PathDotGit, "g~123456": PathDotGit,
		"a\\b": PathCharacter, "a\nb": PathCharacter, "a\x00": PathCharacter, "a\x7f": PathCharacter, "a\xff": PathCharacter,
		long: PathLong, strings.Repeat("abcdefg/", 513): PathLong,
	} {
		t.Run(fmt.Sprintf("%.40q", path), func(t *testing.T) {
			err := CheckPath(path)
			if want == "" {
				require.NoError(t, err)
				return
			}
			requireSame(t, &PathError{Path: path, Problem: want}, err)
		})
	}
}

// Whatever CheckPath lets through stays below the root, and native git, which is as careful as it can
// be told to be, takes it too.
func FuzzCheckPath(f *testing.F) {
	for _, seed := range []string{"a/b", ".git/config", "a/../b", "git~1", ".g\u200cit", "a\\b", "C:/x", "gi7eba~1", ".git::$INDEX_ALLOCATION"} {
		f.Add(seed)
	}
	repo := gittest.NewBareRepo(f)
	blob := repo.GitInput([]byte("x"), "hash-object", "-w", "--stdin")
	f.Fuzz(func(t *testing.T, path string) {
		if CheckPath(path) != nil {
			return
		}
		require.True(t, utf8.ValidString(path))
		require.True(t, filepath.IsLocal(filepath.FromSlash(path)))
		require.Equal(t, path, filepath.ToSlash(filepath.Clean(filepath.FromSlash(path))))
		require.NoError(t, updateIndex(t, repo, []string{"100644 " + blob + "\t" + path}))
	})
}

// updateIndex writes an index of its own with git's strictest checks on.
func updateIndex(t testing.TB, repo *gittest.Repo, lines []string) error {
	cmd := exec.Command("git", "--git-dir", repo.Dir, "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true",
		"update-index", "-z", "--index-info")
	cmd.Env = append(gittest.Env(), "GIT_INDEX_FILE="+filepath.Join(t.TempDir(), "index"))
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\x00") + "\x00")
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		return fmt.Errorf("git update-index: %v: %s", err, out)
	}
	return nil
}

// model applies changes to a map as Stage should to a tree; false when it should refuse.
func model(files map[string]string, changes []Change) (map[string]string, bool) {
	now := maps.Clone(files)
	for _, c := range changes {
		if c.Delete {
			delete(now, c.Path)
		}
	}
	for _, c := range changes {
		if !c.Delete {
			now[c.Path] = string(c.Data)
		}
	}
	for path := range now {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			if _, clash := now[dir]; clash {
				return nil, false
			}
		}
	}
	return now, true
}

// deletesOddly finds deletions whose meaning is not a matter of the map: of a directory, or below a file.
func deletesOddly(files map[string]string, changes []Change) bool {
	for _, c := range changes {
		for path := range files {
			if c.Delete && strings.HasPrefix(path, c.Path+"/") || strings.HasPrefix(c.Path, path+"/") && c.Delete {
				return true
			}
		}
	}
	return false
}

func TestStageEqualsNativeGit(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "a.b", "a0", "a-b", "C", "é"})
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/")
	})
	repo := gittest.NewBareRepo(t)
	m := openFile(t, repo)
	rapid.Check(t, func(rt *rapid.T) {
		start := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Change {
			return Change{Path: path.Draw(t, "path"), Data: []byte(rapid.SampledFrom([]string{"", "1", "22"}).Draw(t, "data"))}
		}), 0, 12, func(c Change) string { return c.Path }).Draw(rt, "start")
		files, ok := model(map[string]string{}, start)
		if !ok {
			return
		}
		changes := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Change {
			c := Change{Path: path.Draw(t, "path"), Delete: rapid.Bool().Draw(t, "delete")}
			if !c.Delete {
				c.Data = []byte(rapid.SampledFrom([]string{"", "1", "333"}).Draw(t, "data"))
			} else if len(files) > 0 && rapid.Bool().Draw(t, "existing") {
				c.Path = rapid.SampledFrom(slices.Sorted(maps.Keys(files))).Draw(t, "old")
			}
			return c
		}), 0, 12, func(c Change) string { return c.Path }).Draw(rt, "changes")
		base := stageNew(rt, m, Hash{}, start)
		if orEmpty(base.Tree) != nativeTree(t, repo, files) {
			rt.Fatalf("base differs: %v", files)
		}
		if err := m.store.add(base.objs); err != nil {
			rt.Fatal(err)
		}
		want, ok := model(files, changes)
		s, err := m.Stage(CommitRequest{Branch: "x", BaseTree: base.Tree, Changes: changes, Message: "m", Author: bot, Committer: bot})
		switch {
		case err != nil && (!ok || deletesOddly(files, changes)):
		case err != nil:
			rt.Fatalf("stage: %v", err)
		case !ok:
			rt.Fatalf("staged a conflict")
		default:
			if native := nativeTree(t, repo, want); orEmpty(s.Tree) != native {
				rt.Fatalf("tree %s, native git %s", s.Tree, native)
			}
		}
	})
}

// orEmpty is the tree that git knows for one that was left out.
func orEmpty(tree Hash) Hash {
	if tree.IsZero() {
		return emptyTree
	}
	return tree
}

func stageNew(rt *rapid.T, m *Mirror, base Hash, changes []Change) *Staged {
	s, err := m.Stage(CommitRequest{Branch: "x", BaseTree: base, Changes: changes, Message: "m", Author: bot, Committer: bot})
	if err != nil {
		rt.Fatal(err)
	}
	return s
}

// nativeTree lets git make a tree of files, through an index.
func nativeTree(t *testing.T, repo *gittest.Repo, files map[string]string) Hash {
	index := filepath.Join(t.TempDir(), "index")
	git := func(input string, args ...string) string {
		cmd := exec.Command("git", append([]string{"--git-dir", repo.Dir}, args...)...)
		cmd.Env = append(gittest.Env(), "GIT_INDEX_FILE="+index)
		cmd.Stdin = strings.NewReader(input)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	lines := ""
	for path, data := range files {
		mode, content := "100644", data
		if rest, exec := strings.CutPrefix(data, "* "); exec {
			mode, content = "100755", rest
		}
		lines += mode + " " + newObj(3, []byte(content)).hash.String() + "\t" + path + "\x00"
	}
	if lines != "" {
		git(lines, "update-index", "-z", "--index-info")
	}
	return hashOf(git("", "write-tree", "--missing-ok"))
}

// Several commits are pushed together, each on top of the one before; what changes nothing makes none.
func TestStageSeveralCommits(t *testing.T) {
	r := gittest.NewBareRepo(t)
	base := r.Commit(gittest.Commit{Write: map[string]string{"a/x": "1", "a/y": "1", "b/z": "1"}})
	m := openMirror(t, way{url: r.URL()})
	_, err := m.Fetch(t.Context(), "main")
	require.NoError(t, err)
	write := func(path, data string) Change { return Change{Path: path, Data: []byte(data)} }
	request := CommitRequest{Branch: "main", Parent: plumbing.NewHash(base), Author: bot, Committer: bot, Message: "nothing", Changes: []Change{write("a/x", "1")}, Then: []Step{
		{Changes: []Change{write("a/x", "2"), write("c/d/e", "1")}, Message: "one"},
		{Changes: []Change{write("c/d/e", "1")}, Message: "nothing either"},
		{Changes: []Change{write("c/d/f", "1"), {Path: "a/y", Delete: true}}, Message: "two"},
		{Changes: []Change{{Path: "c/d/e", Delete: true}, {Path: "c/d/f", Delete: true}, {Path: "b/z", Delete: true}, {Path: "a/x", Delete: true}}, Message: "three"},
		{Changes: []Change{write("new", "1")}, Message: "four"},
	}}
	staged, err := m.Stage(request)
	require.NoError(t, err)
	hash, err := m.Push(t.Context(), staged)
	require.NoError(t, err)
	require.Equal(t, r.Tip("main"), hash.String())
	require.Equal(t, "four\nthree\ntwo\none", r.Git("log", "--format=%s", base+"..main"))
	require.Equal(t, map[string]string{"a/x": "2", "a/y": "1", "b/z": "1", "c/d/e": "1"}, r.Files("main~3"))
	require.Equal(t, map[string]string{"a/x": "2", "b/z": "1", "c/d/e": "1", "c/d/f": "1"}, r.Files("main~2"))
	require.Empty(t, r.Files("main~1"))
	require.Equal(t, map[string]string{"new": "1"}, r.Files("main"))
	r.Fsck()

	request.Parent, request.Then = hash, []Step{{Changes: []Change{write("new/er", "1")}, Message: "below a file"}}
	request.Changes = []Change{write("new", "2")}
	_, err = m.Stage(request)
	var refused *PathError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, PathUnderFile, refused.Problem)
}
