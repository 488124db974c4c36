package git

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/rampart-gitops/rampart/internal/cores"
)

// Change is what becomes of one file: it is deleted, or has Data, where nil is an empty file.
type Change struct {
	Path   string // slash-separated, from the root; see CheckPath
	Data   []byte // the new content; not to be written to afterwards
	Delete bool   // a file that is not there is no error
}

// CommitRequest is what to commit.
type CommitRequest struct {
	Branch string
	// Parent is the tip that the branch is expected to have; zero: the branch must not exist.
	Parent Hash
	// Expected is the tip that the branch has before, where that is not Parent. Zero: the branch must not exist.
	// The commit replaces what the branch had. Only for branches that no others write to. Nil: Parent.
	Expected *Hash
	// BaseTree is the tree that Changes are made to. With a Parent it is the parent's and may be left
	// zero; without one it is where a new branch starts from, zero being the empty tree.
	BaseTree  Hash
	Changes   []Change // in any order
	Message   string
	Author    Signature
	Committer Signature
	// Sign gives the signature of a commit as git stores it, armoured; nil: it is not signed.
	Sign func(commit []byte) ([]byte, error)
	// Then are commits that follow, each on top of the one before: they are pushed together. What changes nothing makes
	// no commit.
	Then []Step
}

// Step is one more commit of a request.
type Step struct {
	Changes []Change
	Message string
}

// Staged is a commit, or several on top of each other, that exist in memory only. Its fields describe it; Push sends
// it.
type Staged struct {
	Branch   string
	Expected Hash // the tip that the branch has before
	Tree     Hash // of the last; that of the base when the changes change nothing
	Commit   Hash // the last; zero when the changes change nothing

	objs []obj
}

// Unchanged says that there is nothing to push.
func (s *Staged) Unchanged() bool { return s.Commit.IsZero() }

// Stage applies the changes to the tree and makes a commit of it, in memory. The same changes in any order give the
// same tree. Deletions are made before anything is written, and directories that they leave empty go. Symbolic links
// and submodules are carried over and never touched. Errors: *PathError, *MissingObjectError, *CorruptObjectError, or
// what is wrong with the request.
func (m *Mirror) Stage(req CommitRequest) (*Staged, error) {
	if err := checkBranch(req.Branch); err != nil {
		return nil, err
	}
	base, err := m.stageBase(req)
	if err != nil {
		return nil, err
	}
	e := &editor{mirror: m, made: map[Hash]obj{}}
	s := &Staged{Branch: req.Branch, Expected: req.Parent, Tree: base}
	if req.Expected != nil {
		s.Expected = *req.Expected
	}
	parent := req.Parent
	for _, step := range append([]Step{{req.Changes, req.Message}}, req.Then...) {
		tree, err := e.step(s.Tree, step.Changes)
		if err != nil {
			return nil, err
		}
		if tree == s.Tree {
			continue
		}
		commit, err := encodeCommit(tree, parent, step.Message, &req)
		if err != nil {
			return nil, err
		}
		s.Tree, s.Commit = tree, e.keep(commit)
		parent = s.Commit
	}
	if s.Commit.IsZero() {
		return s, nil
	}
	s.objs = slices.SortedFunc(maps.Values(e.made), compareObjs)
	return s, nil
}

// step makes the tree of one commit.
func (e *editor) step(base Hash, changes []Change) (Hash, error) {
	root, err := plan(changes)
	if err != nil {
		return Hash{}, err
	}
	e.blobs = hashContents(changes)
	tree, err := e.apply(base, root)
	if err == nil && tree.IsZero() && !base.IsZero() { // everything was deleted
		tree = e.keep(newObj(plumbing.TreeObject, nil))
	}
	return tree, err
}

// compareObjs orders a pack as git does, commits first, so that the same commit gives the same pack.
func compareObjs(a, b obj) int {
	if a.kind != b.kind {
		return int(a.kind) - int(b.kind)
	}
	return slices.Compare(a.hash[:], b.hash[:])
}

// stageBase finds the tree to start from.
func (m *Mirror) stageBase(req CommitRequest) (Hash, error) {
	if req.Parent.IsZero() {
		return req.BaseTree, nil
	}
	parent, err := m.Commit(req.Parent)
	if err != nil {
		return Hash{}, err
	}
	if !req.BaseTree.IsZero() && req.BaseTree != parent.Tree {
		// Anything else would silently take back what the parent did.
		return Hash{}, fmt.Errorf("stage on %s: base tree %s is not the parent's %s", req.Parent, req.BaseTree,
			parent.Tree)
	}
	return parent.Tree, nil
}

// hashContents makes the blobs, on all cores when there are many. Those of deletions stay zero.
func hashContents(changes []Change) map[string]obj {
	blobs := make([]obj, len(changes))
	cores.Each(len(changes), func(i int) {
		if c := &changes[i]; !c.Delete {
			blobs[i] = newObj(plumbing.BlobObject, c.Data)
		}
	})
	byPath := make(map[string]obj, len(changes))
	for i := range changes {
		byPath[changes[i].Path] = blobs[i]
	}
	return byPath
}

func encodeCommit(tree, parent Hash, text string, req *CommitRequest) (obj, error) {
	author, err := signature("author", req.Author)
	if err != nil {
		return obj{}, err
	}
	committer, err := signature("committer", req.Committer)
	if err != nil {
		return obj{}, err
	}
	message := strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
	if message == "" {
		return obj{}, errors.New("commit message is empty")
	}
	c := object.Commit{Author: author, Committer: committer, Message: message + "\n", TreeHash: tree}
	if !parent.IsZero() {
		c.ParentHashes = []Hash{parent}
	}
	data, err := encoded(&c)
	if err != nil {
		return obj{}, err
	}
	if req.Sign != nil {
		signature, err := req.Sign(data)
		if err != nil {
			return obj{}, err
		}
		c.PGPSignature = string(signature) // of whatever kind: it is the header gpgsig
		if data, err = encoded(&c); err != nil {
			return obj{}, err
		}
	}
	return newObj(plumbing.CommitObject, data), nil
}

func encoded(c *object.Commit) ([]byte, error) {
	var raw plumbing.MemoryObject
	if err := c.Encode(&raw); err != nil {
		return nil, err
	}
	return content(&raw)
}

// signature removes what would end the field early, as git does.
func signature(what string, s Signature) (object.Signature, error) {
	clean := func(text string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' || r == 0x7f {
				return -1
			}
			return r
		}, text))
	}
	out := object.Signature{Name: clean(s.Name), Email: clean(s.Email), When: s.When}
	switch {
	case out.Name == "":
		return out, fmt.Errorf("commit %s has no name", what)
	case out.Email == "":
		return out, fmt.Errorf("commit %s has no e-mail address", what)
	case s.When.IsZero():
		return out, fmt.Errorf("commit %s has no time", what)
	}
	return out, nil
}
