package tree

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Gathered is a tree of files in memory.
type Gathered struct {
	dirs  map[string][]Entry
	files map[string]string
}

// NewGathered is one without files.
func NewGathered() Gathered { return Gathered{dirs: map[string][]Entry{}, files: map[string]string{}} }

// Add adds a file. The last of two with the same path counts.
func (t Gathered) Add(f rollout.TextFile) {
	t.files[f.Path] = f.Text
	kind := IsFile
	for name := f.Path; name != "."; name = path.Dir(name) {
		e := Entry{path.Base(name), kind, ""}
		if dir := path.Dir(name); !slices.Contains(t.dirs[dir], e) {
			t.dirs[dir] = append(t.dirs[dir], e)
			slices.SortFunc(t.dirs[dir], func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		}
		kind = IsFolder
	}
}

// Root implements Tree: the hash is not known.
func (t Gathered) Root() string { return "" }

// List implements Tree.
func (t Gathered) List(dir, _ string) ([]Entry, error) { return t.dirs[path.Clean(dir)], nil }

// Read implements Tree.
func (t Gathered) Read(file, _ string) ([]byte, error) {
	text, ok := t.files[file]
	if !ok {
		return nil, fmt.Errorf("read %q: not given", file)
	}
	if len(text) > MaxFileSize {
		return nil, fmt.Errorf("read %q: %w", file, &git.TooLargeError{Size: int64(len(text)), Limit: MaxFileSize})
	}
	return []byte(text), nil
}
