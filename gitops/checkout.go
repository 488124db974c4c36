package gitops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/tree"
)

// gitTree is a tree in the repository of a checkout.
type gitTree struct {
	objects storer.EncodedObjectStorer
	hash    plumbing.Hash
}

var _ tree.Tree = gitTree{}

// openCommit finds the tree of a commit that stands for a folder of a checkout.
func openCommit(dir, revision string) (gitTree, error) {
	clone, err := OpenClone(dir)
	if err != nil {
		return gitTree{}, err
	}
	hash, err := clone.resolve(revision)
	if err != nil {
		return gitTree{}, err
	}
	return clone.treeOf(hash)
}

// checkoutOf is the checkout that a folder is in, and where in it, with slashes; "." for the checkout itself.
func checkoutOf(dir string) (root, below string, err error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return "", "", err
	}
	for root = full; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			below, err = filepath.Rel(root, full)
			return root, filepath.ToSlash(below), err
		}
		if root == filepath.Dir(root) {
			return "", "", errors.New("it is not a checkout of a Git repository")
		}
	}
}

// openObjects opens a .git, which in a second checkout of a repository is a file that says where to look.
func openObjects(dotGit string) (*filesystem.Storage, error) {
	info, err := os.Stat(dotGit)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		text, err := os.ReadFile(dotGit)
		if err != nil {
			return nil, err
		}
		to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !ok {
			return nil, fmt.Errorf("%s does not say where the repository is", dotGit)
		}
		dotGit = beside(filepath.Dir(dotGit), to)
	}
	fs, common := osfs.New(dotGit), osfs.New(dotGit)
	if text, err := os.ReadFile(filepath.Join(dotGit, "commondir")); err == nil {
		common = osfs.New(beside(dotGit, strings.TrimSpace(string(text))))
	}
	return filesystem.NewStorageWithOptions(dotgit.NewRepositoryFilesystem(fs, common), cache.NewObjectLRUDefault(),
		filesystem.Options{AlternatesFS: osfs.New("/"), LargeObjectThreshold: git.MaxTree}), nil
}

// beside is a path that is meant from a folder.
func beside(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// resolve finds the commit that a revision names. That is a branch, a remote's branch such as origin/main, a tag, HEAD,
// or the whole hash of a commit.
func (c *Clone) resolve(revision string) (plumbing.Hash, error) {
	hash := plumbing.NewHash(revision)
	if !plumbing.IsHash(revision) {
		ref, err := c.ref(revision)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		hash = ref.Hash()
	}
	commit, err := commitAt(c.store, hash)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("commit %s is not here; fetch it first: %w", hash, err)
	}
	return commit, nil
}

// ref finds the ref that a revision names, as Git looks for it.
func (c *Clone) ref(revision string) (*plumbing.Reference, error) {
	rules := plumbing.RefRevParseRules[1:]
	if revision == string(plumbing.HEAD) || strings.HasPrefix(revision, "refs/") {
		rules = plumbing.RefRevParseRules[:1]
	}
	for _, rule := range rules {
		name := plumbing.ReferenceName(fmt.Sprintf(rule, revision))
		ref, err := storer.ResolveReference(c.store, name)
		if err == nil {
			return plumbing.NewHashReference(name, ref.Hash()), nil
		}
		if !errors.Is(err, plumbing.ErrReferenceNotFound) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("there is no branch, tag or commit %q here: expected such as origin/main or a whole hash, "+
		"which was fetched", revision)
}

// commitAt is a commit by its hash, or by that of a tag of it.
func commitAt(objects storer.EncodedObjectStorer, hash plumbing.Hash) (plumbing.Hash, error) {
	if tag, err := object.GetTag(objects, hash); err == nil {
		hash = tag.Target
	}
	_, err := bounded{objects}.find(hash, plumbing.CommitObject)
	return hash, err
}

func (t gitTree) Root() string { return t.hash.String() }

func (t gitTree) List(dir, hash string) ([]tree.Entry, error) {
	if hash == "" {
		return nil, nil
	}
	found, err := bounded{t.objects}.tree(plumbing.NewHash(hash))
	if err != nil {
		return nil, tree.ListError(dir, err)
	}
	return tree.EntriesOf(found), nil
}

func (t gitTree) Read(file, hash string) ([]byte, error) {
	data, err := bounded{t.objects}.read(plumbing.NewHash(hash), plumbing.BlobObject, tree.MaxFileSize)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	return data, nil
}
