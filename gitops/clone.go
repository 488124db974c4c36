package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// Clone is a person's clone of a repository, which is read and never written. It is used by one goroutine at a time.
type Clone struct {
	// dir is the folder, and root the work tree that it is in, or the bare repository.
	dir, root string
	// prefix is where the folder is in the work tree.
	prefix string
	store  *filesystem.Storage
}

// OpenClone opens the clone that a folder is in: a work tree of it, or the bare repository itself.
func OpenClone(dir string) (*Clone, error) {
	c := &Clone{dir: dir}
	root, below, err := checkoutOf(dir)
	c.root = root
	if err == nil {
		root, c.prefix = filepath.Join(root, ".git"), below
	} else if root, c.root = dir, dir; !isGitDir(root) {
		return nil, &NoCloneError{dir, err}
	}
	if c.store, err = openObjects(root); err != nil {
		return nil, fmt.Errorf("open the clone %s: %w", dir, err)
	}
	return c, nil
}

// Close closes the clone's files.
func (c *Clone) Close() error { return c.store.Close() }

// isGitDir tells a bare repository.
func isGitDir(dir string) bool {
	head, err := os.Stat(filepath.Join(dir, "HEAD"))
	if err != nil || !head.Mode().IsRegular() {
		return false
	}
	objects, err := os.Stat(filepath.Join(dir, "objects"))
	return err == nil && objects.IsDir()
}

// NoCloneError says that a folder is in no clone.
type NoCloneError struct {
	Dir string
	Err error
}

func (e *NoCloneError) Error() string {
	return fmt.Sprintf("%s: %v: name a clone with -C, or the repository with --repo", e.Dir, e.Err)
}

// Unwrap gives the cause.
func (e *NoCloneError) Unwrap() error { return e.Err }

// NoRefError says that a clone does not have a ref.
type NoRefError struct{ Dir, Ref string }

func (e *NoRefError) Error() string {
	what := e.Ref + ":" + e.Ref
	if strings.HasSuffix(e.Ref, "*") {
		what = "'+" + what + "'" // refs without history, which are replaced
	}
	return fmt.Sprintf("the clone %s has no %s (bring it with: git -C %s fetch origin %s)", e.Dir, e.Ref, e.Dir, what)
}

// tip resolves a ref in full, or HEAD.
func (c *Clone) tip(ref string) (git.Tip, error) {
	r, err := storer.ResolveReference(c.store, plumbing.ReferenceName(ref))
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return git.Tip{}, &NoRefError{c.dir, ref}
	}
	if err != nil {
		return git.Tip{}, fmt.Errorf("resolve %s in %s: %w", ref, c.dir, err)
	}
	info, err := c.Commit(r.Hash())
	return git.Tip{Branch: ref, Commit: info.Hash, Tree: info.Tree}, err
}

// Refs are the full names of all refs that the clone has, such as refs/heads/main, sorted; symbolic ones are left out.
func (c *Clone) Refs() ([]string, error) {
	refs, err := c.store.IterReferences()
	if err != nil {
		return nil, fmt.Errorf("list the refs of %s: %w", c.dir, err)
	}
	var out []string
	err = refs.ForEach(func(r *plumbing.Reference) error {
		if r.Type() == plumbing.HashReference {
			out = append(out, r.Name().String())
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

// Commit reads a commit.
func (c *Clone) Commit(h git.Hash) (git.CommitInfo, error) {
	o, err := bounded{c.store}.find(h, plumbing.CommitObject)
	if err != nil {
		return git.CommitInfo{}, c.unread(h, err)
	}
	data, err := beginning(o, git.MaxCommit)
	if err != nil {
		return git.CommitInfo{}, c.unread(h, err)
	}
	info, err := git.ParseCommit(h, data)
	if err != nil {
		return git.CommitInfo{}, c.unread(h, err)
	}
	return info, nil
}

// bounded are the objects of a clone, each read within bounds.
type bounded struct{ storer.EncodedObjectStorer }

// find finds an object without reading it, unless it is small. Errors: plumbing.ErrObjectNotFound;
// *git.UnusableObjectError where it is of another kind.
func (c bounded) find(h git.Hash, kind plumbing.ObjectType) (plumbing.EncodedObject, error) {
	o, err := c.EncodedObject(plumbing.AnyObject, h)
	if err == nil && o.Type() != kind {
		return nil, &git.UnusableObjectError{Hash: h, Err: fmt.Errorf("expected a %s, found a %s", kind, o.Type())}
	}
	return o, err
}

// read reads an object of at most so many bytes. Errors: those of find; *git.TooLargeError.
func (c bounded) read(h git.Hash, kind plumbing.ObjectType, most int64) ([]byte, error) {
	o, err := c.find(h, kind)
	if err != nil {
		return nil, err
	}
	if o.Size() > most {
		return nil, &git.TooLargeError{Hash: h, Size: o.Size(), Limit: most}
	}
	return beginning(o, most)
}

// tree reads the entries of a tree. Errors: those of read.
func (c bounded) tree(h git.Hash) ([]git.Entry, error) {
	data, err := c.read(h, plumbing.TreeObject, git.MaxTree)
	if err != nil {
		return nil, err
	}
	entries, err := git.ParseTree(data)
	if err != nil {
		return nil, &git.UnusableObjectError{Hash: h, Err: err}
	}
	return entries, nil
}

// beginning reads at most so many bytes of an object.
func beginning(o plumbing.EncodedObject, most int64) ([]byte, error) {
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, most))
	return data, errors.Join(err, r.Close())
}

func (c *Clone) unread(h git.Hash, err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return fmt.Errorf("the clone %s lacks %s: it may be shallow or partial (git fetch --unshallow): %w", c.dir, h,
			err)
	}
	return fmt.Errorf("read %s in %s: %w", h, c.dir, err)
}

// Tree reads the entries of a tree.
func (c *Clone) Tree(h git.Hash) ([]git.Entry, error) {
	entries, err := bounded{c.store}.tree(h)
	if err != nil {
		return nil, c.unread(h, err)
	}
	return entries, nil
}

// Lookup finds a path below a tree; false when there is nothing.
func (c *Clone) Lookup(tree git.Hash, path string) (git.Entry, bool, error) {
	at := git.Entry{Mode: git.ModeDir, Hash: tree}
	for name := range strings.SplitSeq(path, "/") {
		if !at.IsDir() {
			return git.Entry{}, false, nil
		}
		entries, err := c.Tree(at.Hash)
		if err != nil {
			return git.Entry{}, false, err
		}
		i := slices.IndexFunc(entries, func(e git.Entry) bool { return e.Name == name })
		if i < 0 {
			return git.Entry{}, false, nil
		}
		at = entries[i]
	}
	return at, true, nil
}

// Blob reads a blob of at most limit bytes.
func (c *Clone) Blob(h git.Hash, limit int64) ([]byte, error) {
	data, err := bounded{c.store}.read(h, plumbing.BlobObject, limit)
	if err != nil {
		return nil, c.unread(h, err)
	}
	return data, nil
}

// History calls visit with a tip's commit and its ancestors, newest first, until visit says false or history ends.
// In a shallow clone history ends where it was cut.
func (c *Clone) History(ctx context.Context, tip git.Tip, visit func(git.CommitInfo) (bool, error)) error {
	cut, err := c.cuts()
	if err != nil {
		return err
	}
	first, err := c.Commit(tip.Commit)
	if err != nil {
		return err
	}
	parent := func(of git.CommitInfo, h git.Hash) (at git.CommitInfo, here bool, err error) {
		if err := ctx.Err(); err != nil || cut[of.Hash] {
			return at, false, err
		}
		at, err = c.Commit(h)
		return at, true, err
	}
	return git.Ancestors(first, parent, visit)
}
