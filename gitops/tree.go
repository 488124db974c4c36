package gitops

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
)

// MaxFileSize is the size in bytes above which a file of the repository is refused.
const MaxFileSize = 1 << 20

// entryKind is what an entry of a directory is.
type entryKind string

const (
	dirEntry   entryKind = "directory"
	fileEntry  entryKind = "file"
	otherEntry entryKind = "other" // links and submodules: never followed
	// strayEntry is what nothing can be told from by its name: it is reported, and otherwise as if it were not there.
	strayEntry entryKind = "stray"
)

// entry of a directory. Its hash identifies the content; "" where that is not known.
type entry struct {
	name string
	kind entryKind
	hash string
}

// tree gives files at one moment.
type tree interface {
	// root is the hash of the root directory, "" where that is not known.
	root() string
	// list gives the entries of a directory by its path ("." is the root) and hash; none for a directory that does not
	// exist. One that can never be read is a *TreeError.
	list(dir, hash string) ([]entry, error)
	// read gives a file by its path and hash. One larger than MaxFileSize is a *git.TooLargeError, and an object that
	// is not a file is a *git.UnusableObjectError.
	read(file, hash string) ([]byte, error)
}

// commitTree is the tree of a commit in a mirror.
type commitTree struct {
	// ctx ends the reading of what is still on the server.
	ctx    context.Context
	mirror *git.Mirror
	hash   git.Hash
}

func (t commitTree) root() string {
	if t.hash.IsZero() {
		return ""
	}
	return t.hash.String()
}

func (t commitTree) list(dir, hash string) ([]entry, error) {
	h := plumbing.NewHash(hash)
	if hash == "" {
		return nil, nil
	}
	entries, err := t.mirror.Tree(h)
	if err != nil {
		return nil, listError(dir, err)
	}
	return entriesOf(entries), nil
}

// entriesOf says what the entries of a tree object, in git's order, are. They are the same for the bot and for
// people who look at a clone.
func entriesOf(raw []git.Entry) []entry {
	out := make([]entry, 0, len(raw))
	for i, e := range raw {
		kind := otherEntry
		switch {
		case !counts(e.Name), isAgain(raw, i):
			kind = strayEntry
		case e.IsDir():
			kind = dirEntry
		case e.IsFile():
			kind = fileEntry
		}
		out = append(out, entry{e.Name, kind, hexOf(e.Hash)})
	}
	return out
}

// counts says whether a name is that of something in a folder. No git makes the others, but somebody who writes objects
// by hand can: a path leads elsewhere, and git checks none of them out.
func counts(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/") && !strings.EqualFold(name, ".git")
}

// isAgain says whether an entry has the name of an earlier one. In git's order what is between the two begins with that
// name.
func isAgain(raw []git.Entry, i int) bool {
	for j := i - 1; j >= 0 && strings.HasPrefix(raw[j].Name, raw[i].Name); j-- {
		if len(raw[j].Name) == len(raw[i].Name) {
			return true
		}
	}
	return false
}

// strays says that something in a folder is left out.
func strays(severity v1alpha1.Severity, dir, name string) v1alpha1.Problem {
	return v1alpha1.Problem{Severity: severity, File: dir,
		Message: fmt.Sprintf("has an entry %q that is there twice, or is a path or .git: it is left out; write the folder anew with git", cut(name))}
}

// listError says that a folder could not be listed, and which one can never be.
func listError(dir string, err error) error {
	var large *git.TooLargeError
	var unusable *git.UnusableObjectError
	switch {
	case errors.As(err, &large):
		return &TreeError{Path: cut(dir), what: fmt.Sprintf("a folder is larger than %d bytes", large.Limit)}
	case errors.As(err, &unusable):
		return &TreeError{Path: cut(dir), what: fmt.Sprintf("it cannot be read as a folder (object %s: %v)", unusable.Hash, unusable.Err)}
	}
	return fmt.Errorf("list %q: %w", dir, err)
}

// hexOf is String of a hash, with one copy less: there are many.
func hexOf(h git.Hash) string {
	var text [2 * len(h)]byte
	hex.Encode(text[:], h[:])
	return string(text[:])
}

func (t commitTree) read(file, hash string) ([]byte, error) {
	h := plumbing.NewHash(hash)
	b, err := t.mirror.Blob(h, MaxFileSize)
	var missing *git.MissingObjectError
	if errors.As(err, &missing) && t.mirror.Partial() {
		if err = t.mirror.Bring(t.ctx, []git.Hash{h}); err == nil {
			b, err = t.mirror.Blob(h, MaxFileSize)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	return b, nil
}

// folder is a plain folder on disk. Links are not followed, .git is not entered.
type folder struct{ dir string }

func (f folder) root() string { return "" }

func (f folder) list(dir, _ string) ([]entry, error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", dir, err)
	}
	var out []entry
	for _, e := range entries {
		switch {
		case !counts(e.Name()):
		case e.IsDir():
			out = append(out, entry{e.Name(), dirEntry, ""})
		case e.Type().IsRegular():
			out = append(out, entry{e.Name(), fileEntry, ""})
		default:
			out = append(out, entry{e.Name(), otherEntry, ""})
		}
	}
	return out, nil
}

func (f folder) read(file, _ string) ([]byte, error) {
	name := filepath.Join(f.dir, filepath.FromSlash(file))
	info, err := os.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	if info.Size() > MaxFileSize {
		return nil, fmt.Errorf("read %q: %w", file, &git.TooLargeError{Size: info.Size(), Limit: MaxFileSize})
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	return b, nil
}

// lookup finds a path in a tree.
func lookup(t tree, file string) (entry, bool, error) {
	dir, hash := ".", t.root()
	parts := strings.Split(path.Clean(file), "/")
	for i, part := range parts {
		entries, err := t.list(dir, hash)
		if err != nil {
			return entry{}, false, err
		}
		at := slices.IndexFunc(entries, func(e entry) bool { return e.name == part && e.kind != strayEntry })
		if at < 0 {
			return entry{}, false, nil
		}
		e := entries[at]
		if i == len(parts)-1 {
			return e, true, nil
		}
		if e.kind != dirEntry {
			return entry{}, false, nil
		}
		dir, hash = path.Join(dir, part), e.hash
	}
	return entry{}, false, nil
}
