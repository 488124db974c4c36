package gitops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// ArchiveConfig says which repository an Archive is in, and which of its refs it is.
type ArchiveConfig struct {
	// URL of the repository, as in Config.
	URL string
	// Ref is the name in full that the refs are below, such as refs/rampart/decisions.
	Ref string
	// Dir is a folder for the archive's own mirror; it may be deleted at any time.
	Dir  string
	Auth git.Auth
	// Author and Email of commits.
	Author, Email string
	Log           *slog.Logger
	// Now gives the time that commits carry.
	Now func() time.Time
	// OnWrite is called before and after each push; nil: no call is made.
	OnWrite func(moment Moment)
}

// Archive is the refs below one name, each a commit whose tree is a list of files. The commits have no parents: what a
// push replaces is gone. It has a mirror of its own, so that reading specs never waits for it. It is used by one
// goroutine at a time.
type Archive struct {
	cfg    ArchiveConfig
	mirror *git.Mirror
}

// Folder is the files of one ref of an archive.
type Folder struct {
	// Name is the last part of the ref's name.
	Name string
	// Commit and Tree are zero where the ref does not exist.
	Commit, Tree git.Hash
	// Files are sorted by name.
	Files []git.Entry
}

// maxArchived bounds one file that is read, in bytes.
const maxArchived = 128 << 20

// OpenArchive opens the mirror; it does not talk to the server. Errors: a name that refs cannot be below, those of
// git.Open.
func OpenArchive(cfg ArchiveConfig) (*Archive, error) {
	if !strings.HasPrefix(cfg.Ref, "refs/") {
		return nil, fmt.Errorf("ref %q: want the full name, such as refs/rampart/decisions or "+
			"refs/heads/rampart-decisions",
			cfg.Ref)
	}
	m, err := git.Open(git.Config{URL: cfg.URL, Dir: cfg.Dir, Auth: cfg.Auth, Tips: true, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	return &Archive{cfg: cfg, mirror: m}, nil
}

// Close closes the mirror.
func (a *Archive) Close() error { return a.mirror.Close() }

// Empty drops what the mirror has, which grows with each push. The next Folder fetches what it needs.
func (a *Archive) Empty(ctx context.Context) error { return a.mirror.Empty(ctx) }

// Names are the last parts of the refs' names, sorted. Errors: those of git.Mirror.Branches.
func (a *Archive) Names(ctx context.Context) ([]string, error) {
	branches, err := a.mirror.Branches(ctx, a.branch(""))
	if err != nil {
		return nil, err
	}
	var out []string
	for branch := range branches {
		out = append(out, strings.TrimPrefix(branch, a.branch("")))
	}
	slices.Sort(out)
	return out, nil
}

// branch is what the mirror calls a ref.
func (a *Archive) branch(name string) string {
	return strings.TrimPrefix(a.cfg.Ref, "refs/heads/") + "/" + name
}

// Folder fetches a ref, without the content of its files where the server allows it. Errors: those of git.Mirror.Fetch.
func (a *Archive) Folder(ctx context.Context, name string) (Folder, error) {
	tip, err := a.mirror.Fetch(ctx, a.branch(name))
	var (
		none  *git.NoBranchError
		empty *git.EmptyRepositoryError
	)
	if errors.As(err, &none) || errors.As(err, &empty) {
		return Folder{Name: name}, nil
	}
	if err != nil {
		return Folder{}, err
	}
	files, err := a.mirror.Tree(tip.Tree)
	return Folder{name, tip.Commit, tip.Tree, files}, a.mirror.Needed(err)
}

// Files reads files of a folder, and fetches what is missing at once. Errors: those of git.Mirror.Bring and
// git.Mirror.Blob.
func (a *Archive) Files(ctx context.Context, files []git.Entry) ([][]byte, error) {
	var hashes []git.Hash
	for _, f := range files {
		hashes = append(hashes, f.Hash)
	}
	if err := a.mirror.Bring(ctx, hashes); err != nil {
		return nil, err
	}
	return readFiles(a.mirror.Blob, files)
}

func readFiles(blob func(git.Hash, int64) ([]byte, error), files []git.Entry) ([][]byte, error) {
	var out [][]byte
	for _, f := range files {
		data, err := blob(f.Hash, maxArchived)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name, err)
		}
		out = append(out, data)
	}
	return out, nil
}

// Replace pushes a commit with the changed files, and gives its hash. The ref has to be as it was read.
// Errors: those of git.Mirror.Push, such as *git.MovedError.
func (a *Archive) Replace(ctx context.Context, was Folder, changes []git.Change, message string,
) (git.Hash, error) {
	who := git.Signature{Name: a.cfg.Author, Email: a.cfg.Email, When: a.cfg.Now().UTC().Truncate(time.Second)}
	staged, err := a.mirror.Stage(git.CommitRequest{Branch: a.branch(was.Name), Expected: &was.Commit,
		BaseTree: was.Tree, Changes: changes, Message: message, Author: who, Committer: who})
	if err != nil {
		return git.Hash{}, fmt.Errorf("stage files of %s/%s: %w", a.cfg.Ref, was.Name, err)
	}
	a.write(Before)
	hash, err := a.mirror.Push(ctx, staged)
	a.write(After)
	return hash, err
}

func (a *Archive) write(m Moment) {
	if a.cfg.OnWrite != nil {
		a.cfg.OnWrite(m)
	}
}

// Delete deletes a ref. Errors: those of git.Mirror.Branches and git.Mirror.Delete.
func (a *Archive) Delete(ctx context.Context, name string) error {
	tips, err := a.mirror.Branches(ctx, a.branch(name))
	if err != nil {
		return err
	}
	return a.mirror.Delete(ctx, a.branch(name), tips[a.branch(name)])
}

// CloneArchive is an Archive as a clone has it.
type CloneArchive struct {
	*Clone
	ref string
}

// Archive gives the refs below a name in full. The clone has of them what was fetched.
func (c *Clone) Archive(ref string) *CloneArchive { return &CloneArchive{c, ref} }

// Names are the last parts of the refs' names, sorted. Errors: *NoRefError where there are none.
func (a *CloneArchive) Names(context.Context) ([]string, error) {
	refs, err := a.Refs()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ref := range refs {
		if name, ok := strings.CutPrefix(ref, a.ref+"/"); ok {
			out = append(out, name)
		}
	}
	if out == nil {
		return nil, &NoRefError{a.dir, a.ref + "/*"}
	}
	return out, nil
}

// Folder reads a ref.
func (a *CloneArchive) Folder(_ context.Context, name string) (Folder, error) {
	tip, err := a.tip(a.ref + "/" + name)
	if err != nil {
		return Folder{}, err
	}
	files, err := a.Tree(tip.Tree)
	return Folder{name, tip.Commit, tip.Tree, files}, err
}

// Files reads files of a folder.
func (a *CloneArchive) Files(_ context.Context, files []git.Entry) ([][]byte, error) {
	return readFiles(a.Blob, files)
}
