package tree

import (
	"fmt"
	"path"
	"strings"
	"sync/atomic"
)

// Bounds of what an environment may have in one folder of specs or policies, or in its output. A few kilobytes of tree
// objects that name each other can be more files than any machine has room for, or deeper than any path is long.
const (
	maxEntries = 500_000
	MaxPath    = 4096 // bytes
)

// Error says that a tree is larger than any that is meant, or has a folder that can never be read. It is also what a
// branch ends with that cannot be fetched.
type Error struct {
	// Path is where it was noticed.
	Path string
	what string
}

// Unfetched says that a branch cannot be fetched: its tree cannot be read.
func Unfetched(branch string, err error) *Error {
	return &Error{Path: "branch " + branch, what: fmt.Sprintf("cannot be fetched: %v", err)}
}

// Error says which bound was passed, or what is wrong with the folder.
func (e *Error) Error() string { return e.what }

// Budget is what is left of the bounds of one walk. Several goroutines may take from it.
type Budget struct{ left atomic.Int64 }

// NewBudget is that of one walk.
func NewBudget() *Budget {
	b := &Budget{}
	b.SetLeft(maxEntries)
	return b
}

// Left is how many entries may still be counted; below 0 once there were too many.
func (b *Budget) Left() int { return int(b.left.Load()) }

// SetLeft says how many entries may be counted from now on.
func (b *Budget) SetLeft(n int) { b.left.Store(int64(n)) }

// Folder takes the entries of a folder from the budget, before what is below them is listed. So all folders that are
// walked at the same time are bounded together. Errors: *Error.
func (b *Budget) Folder(dir string, entries []Entry) error {
	if err := b.Take(len(entries), dir); err != nil {
		return err
	}
	for _, e := range entries {
		if len(dir)+len("/")+len(e.Name) > MaxPath {
			return b.Enter(path.Join(dir, e.Name))
		}
	}
	return nil
}

// Join is path.Join of a folder and what is in it. Most of these paths need no cleaning: it only puts them
// together.
func Join(dir, name string) string {
	if dir == "." || name == "" || name[0] == '.' || strings.IndexByte(name, '/') >= 0 || path.Clean(dir) != dir {
		return path.Join(dir, name)
	}
	return dir + "/" + name
}

// Take takes entries from the budget that were counted before.
func (b *Budget) Take(n int, path string) error {
	b.left.Add(-int64(n))
	return b.Enter(path)
}

// Enter checks the bounds at a directory.
func (b *Budget) Enter(path string) error {
	switch {
	case b.Left() < 0:
		return &Error{Path: cut(path), what: fmt.Sprintf("there are more than %d files and folders", maxEntries)}
	case len(path) > MaxPath:
		return &Error{Path: cut(path), what: fmt.Sprintf("folders are nested deeper than a path of %d bytes", MaxPath)}
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
