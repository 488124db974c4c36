package tree

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// Commit is the tree of a commit in a mirror.
type Commit struct {
	// Ctx ends the reading of what is still on the server.
	Ctx    context.Context
	Mirror *git.Mirror
	Hash   git.Hash
}

var _ Tree = Commit{}

// Root implements Tree.
func (t Commit) Root() string {
	if t.Hash.IsZero() {
		return ""
	}
	return t.Hash.String()
}

// List implements Tree.
func (t Commit) List(dir, hash string) ([]Entry, error) {
	h := plumbing.NewHash(hash)
	if hash == "" {
		return nil, nil
	}
	entries, err := t.Mirror.Tree(h)
	if err != nil {
		return nil, ListError(dir, err)
	}
	return EntriesOf(entries), nil
}

// Read implements Tree. What is still on the server is brought.
func (t Commit) Read(file, hash string) ([]byte, error) {
	h := plumbing.NewHash(hash)
	b, err := t.Mirror.Blob(h, MaxFileSize)
	if _, ok := errors.AsType[*git.MissingObjectError](err); ok && t.Mirror.Partial() {
		if err = t.Mirror.Bring(t.Ctx, []git.Hash{h}); err == nil {
			b, err = t.Mirror.Blob(h, MaxFileSize)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	return b, nil
}

// IsPartial reports whether files of a tree may still be on a server. Each can be read; many are better brought at once
// before.
func IsPartial(t Tree) bool {
	c, ok := t.(Commit)
	return ok && c.Mirror.Partial()
}

// Bring makes sure that files can be read without a request for each. They may be of any tree of the same repository.
// Nothing is to be done where they are not on a server.
func Bring(t Tree, files []git.Hash) error {
	if c, ok := t.(Commit); ok {
		return c.Mirror.Bring(c.Ctx, files)
	}
	return nil
}

// Within is the tree for another caller, whose context ends the reading of what is still on a server.
func Within(ctx context.Context, t Tree) Tree {
	if c, ok := t.(Commit); ok {
		c.Ctx = ctx
		return c
	}
	return t
}

// WithContextOf is a tree with the context of another one.
func WithContextOf(t, other Tree) Tree {
	if c, ok := other.(Commit); ok {
		return Within(c.Ctx, t)
	}
	return t
}

// EntriesOf says what the entries of a tree object, in git's order, are. They are the same for the bot and for
// people who look at a clone.
func EntriesOf(raw []git.Entry) []Entry {
	out := make([]Entry, 0, len(raw))
	for i, e := range raw {
		kind := IsOther
		switch {
		case !counts(e.Name), isAgain(raw, i):
			kind = IsStray
		case e.IsDir():
			kind = IsFolder
		case e.IsFile():
			kind = IsFile
		}
		out = append(out, Entry{e.Name, kind, hexOf(e.Hash)})
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

// hexOf is String of a hash, with one copy less: there are many.
func hexOf(h git.Hash) string {
	var text [2 * len(h)]byte
	hex.Encode(text[:], h[:])
	return string(text[:])
}

// ListError says that a folder could not be listed, and which one can never be.
func ListError(dir string, err error) error {
	var large *git.TooLargeError
	var unusable *git.UnusableObjectError
	switch {
	case errors.As(err, &large):
		return &Error{Path: cut(dir), what: fmt.Sprintf("a folder is larger than %d bytes", large.Limit)}
	case errors.As(err, &unusable):
		return &Error{Path: cut(dir), what: fmt.Sprintf("it cannot be read as a folder (object %s: %v)", unusable.Hash,
			unusable.Err)}
	}
	return fmt.Errorf("list %q: %w", dir, err)
}
