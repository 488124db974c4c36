package tree

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// MaxFileSize is the size in bytes above which a file of the repository is refused.
const MaxFileSize = 1 << 20

// Kind is what an entry of a directory is.
type Kind string

// The kinds of entries.
const (
	IsFolder Kind = "directory"
	IsFile   Kind = "file"
	IsOther  Kind = "other" // links and submodules: never followed
	// IsStray is what nothing can be told from by its name: it is reported, and otherwise as if it were not there.
	IsStray Kind = "stray"
)

// Entry of a directory. Its hash identifies the content; "" where that is not known.
type Entry struct {
	Name string
	Kind Kind
	Hash string
}

// Tree gives files at one moment.
type Tree interface {
	// Root is the hash of the root directory, "" where that is not known.
	Root() string
	// List gives the entries of a directory by its path ("." is the root) and hash; none for a directory that does not
	// exist. One that can never be read is an *Error.
	List(dir, hash string) ([]Entry, error)
	// Read gives a file by its path and hash. One larger than MaxFileSize is a *git.TooLargeError, and an object that
	// is not a file is a *git.UnusableObjectError.
	Read(file, hash string) ([]byte, error)
}

// Lookup finds a path in a tree.
func Lookup(t Tree, file string) (Entry, bool, error) {
	dir, hash := ".", t.Root()
	parts := strings.Split(path.Clean(file), "/")
	for i, part := range parts {
		entries, err := t.List(dir, hash)
		if err != nil {
			return Entry{}, false, err
		}
		at := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == part && e.Kind != IsStray })
		if at < 0 {
			return Entry{}, false, nil
		}
		e := entries[at]
		if i == len(parts)-1 {
			return e, true, nil
		}
		if e.Kind != IsFolder {
			return Entry{}, false, nil
		}
		dir, hash = path.Join(dir, part), e.Hash
	}
	return Entry{}, false, nil
}

// StrayProblem says that something in a folder is left out.
func StrayProblem(severity v1alpha1.Severity, dir, name string) v1alpha1.Problem {
	return v1alpha1.Problem{Severity: severity, File: dir,
		Message: fmt.Sprintf("has an entry %q that is there twice, or is a path or .git: it is left out; write the "+
			"folder anew with git", cut(name))}
}
