package gitops

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ReadFiles reads files that were gathered from anywhere as if they were all there is of a repository: no Git, no disk,
// no network. Paths are as in a repository (slashes, no leading one, no ".."); the last of two files with the same path
// counts.
func ReadFiles(files []rollout.TextFile, options ...Option) (rollout.World, error) {
	t := gathered{dirs: map[string][]entry{}, files: map[string]string{}}
	for _, f := range files {
		if err := git.CheckPath(f.Path); err != nil {
			return rollout.World{}, err
		}
		t.add(f)
	}
	r := newReader(options)
	return r.read(t, func(v1alpha1.Environment) (tree, string, error) { return t, "", nil }, rollout.GitContext{})
}

// gathered is a tree of files in memory.
type gathered struct {
	dirs  map[string][]entry
	files map[string]string
}

func (t gathered) add(f rollout.TextFile) {
	t.files[f.Path] = f.Text
	kind := fileEntry
	for name := f.Path; name != "."; name = path.Dir(name) {
		e := entry{path.Base(name), kind, ""}
		if dir := path.Dir(name); !slices.Contains(t.dirs[dir], e) {
			t.dirs[dir] = append(t.dirs[dir], e)
			slices.SortFunc(t.dirs[dir], func(a, b entry) int { return strings.Compare(a.name, b.name) })
		}
		kind = dirEntry
	}
}

func (t gathered) root() string { return "" }

func (t gathered) list(dir, _ string) ([]entry, error) { return t.dirs[path.Clean(dir)], nil }

func (t gathered) read(file, _ string) ([]byte, error) {
	text, ok := t.files[file]
	if !ok {
		return nil, fmt.Errorf("read %q: not given", file)
	}
	if len(text) > MaxFileSize {
		return nil, fmt.Errorf("read %q: %w", file, &git.TooLargeError{Size: int64(len(text)), Limit: MaxFileSize})
	}
	return []byte(text), nil
}
