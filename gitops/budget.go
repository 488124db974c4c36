package gitops

import (
	"fmt"
	"path"
	"strings"
)

// Bounds of what an environment may have in one folder of specs or policies, or in its output. A few kilobytes of tree
// objects that name each other can be more files than any machine has room for, or deeper than any path is long.
const (
	maxEntries = 500_000
	maxPath    = 4096
)

// TreeError says that a tree is larger than any that is meant, or has a folder that can never be read.
type TreeError struct {
	// Path is where it was noticed.
	Path string
	what string
}

// Error says which bound was passed, or what is wrong with the folder.
func (e *TreeError) Error() string { return e.what }

// budget is what is left of the bounds of one walk.
type budget struct{ left int }

func newBudget() *budget { return &budget{maxEntries} }

// count takes an entry from the budget.
func (b *budget) count(dir, name string) error {
	if b.left--; b.left >= 0 && len(dir)+len("/")+len(name) <= maxPath {
		return nil
	}
	return b.enter(path.Join(dir, name))
}

// join is path.Join of a folder and what is in it. Most of these paths need no cleaning: it only puts them
// together.
func join(dir, name string) string {
	if dir == "." || name == "" || name[0] == '.' || strings.IndexByte(name, '/') >= 0 || path.Clean(dir) != dir {
		return path.Join(dir, name)
	}
	return dir + "/" + name
}

// take takes entries from the budget that were counted before.
func (b *budget) take(n int, path string) error {
	b.left -= n
	return b.enter(path)
}

// enter checks the bounds at a directory.
func (b *budget) enter(path string) error {
	switch {
	case b.left < 0:
		return &TreeError{Path: cut(path), what: fmt.Sprintf("there are more than %d files and folders", maxEntries)}
	case len(path) > maxPath:
		return &TreeError{Path: cut(path), what: fmt.Sprintf("folders are nested deeper than a path of %d bytes", maxPath)}
	}
	return nil
}

// cut keeps the beginning of a path for a message.
func cut(path string) string {
	const most = 100
	if len(path) <= most {
		return path
	}
	return path[:most] + "..."
}
