package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// MergeQuery says which change to look at: Head, a revision of the clone that the folder Dir is in, on top of Base,
// another one. A revision is a branch, a remote's branch such as origin/main, a tag, HEAD, or the whole hash of a
// commit.
type MergeQuery struct{ Dir, Base, Head string }

// Merge is what merging a change would make of its base. It is read from the objects of a clone alone: no work tree, no
// network.
type Merge struct {
	// Base and Head are the commits that were named, Fork the one that they have in common. What changed is what is
	// between Fork and Head.
	Base, Head, Fork Tip
	// Before is the base as it is, and After the base with the change, judged by the base. That means its rampart.yaml,
	// policies, data and waivers, and with its records. Own is the same judged by what the change makes of all that,
	// which is in force once it is merged.
	Before, After, Own rollout.World
	// Conflicts are files that the base changed since, too. They are the change's here.
	Conflicts []string
	// Written are files below the outputs of the base that the change touches, which are the bot's to write. It has the
	// first of them, and how many there are. Records are the base's all the same.
	Written      []string
	WrittenCount int
	// Absent are the branches of outputs that the clone does not have: nothing is known of what the bot wrote there.
	Absent []string

	clone         *Clone
	before, after tree.Tree
}

// Close closes the clone's files, which Read needs.
func (m *Merge) Close() error { return m.clone.Close() }

// Tip is a commit by the name that was given for it.
type Tip struct {
	Name   string    `json:"name,omitempty"`
	Commit string    `json:"commit"`
	When   time.Time `json:"when"` // of the committer
}

// BasePrefix is what paths of the base begin with in messages.
func (m *Merge) BasePrefix() string { return m.Base.Name + ":" }

// Read gives a file as it is after the merge.
func (m *Merge) Read(file string) (string, error) { return readAt(m.after, file) }

// ReadBase gives a file of the base.
func (m *Merge) ReadBase(file string) (string, error) { return readAt(m.before, file) }

func readAt(t tree.Tree, file string) (string, error) {
	e, ok, err := tree.Lookup(t, file)
	if err != nil {
		return "", err
	}
	if !ok || e.Kind != tree.IsFile {
		return "", fmt.Errorf("read %q: there is no such file", file)
	}
	data, err := t.Read(file, e.Hash)
	return string(data), err
}

// ReadMerge reads a change. The author of the change is not trusted: the change is read within the same bounds as
// any repository, links are not followed, and nothing in it judges. The caller closes it. Errors: *NoCloneError,
// *NoMergeBaseError, the context's.
func ReadMerge(ctx context.Context, q MergeQuery, options ...index.Option) (*Merge, error) {
	clone, err := OpenClone(q.Dir)
	if err != nil {
		return nil, err
	}
	m := &Merge{clone: clone}
	if err := m.read(ctx, q, options); err != nil {
		return nil, errors.Join(err, clone.Close())
	}
	return m, nil
}

func (m *Merge) read(ctx context.Context, q MergeQuery, options []index.Option) (err error) {
	var trees [3]gitTree
	for i, side := range []struct {
		to       *Tip
		revision string
	}{{&m.Base, q.Base}, {&m.Head, q.Head}} {
		if *side.to, trees[i], err = m.clone.tipOf(side.revision); err != nil {
			return fmt.Errorf("read %s of the repository at %s: %w", side.revision, q.Dir, err)
		}
	}
	fork, err := m.clone.mergeBase(ctx, plumbing.NewHash(m.Base.Commit), plumbing.NewHash(m.Head.Commit))
	if none, ok := errors.AsType[*NoMergeBaseError](err); ok {
		none.Base, none.Head = q.Base, q.Head
	}
	if err != nil {
		return err
	}
	if m.Fork, trees[2], err = m.clone.tipOf(fork.String()); err != nil {
		return err
	}
	m.Fork.Name = ""
	return mergeReading{merge: m, base: trees[0], head: trees[1], fork: trees[2], options: options}.read(ctx)
}

// tipOf is the commit that a revision names, and its tree.
func (c *Clone) tipOf(revision string) (Tip, gitTree, error) {
	hash, err := c.resolve(revision)
	if err != nil {
		return Tip{}, gitTree{}, err
	}
	commit, err := c.Commit(hash)
	if err != nil {
		return Tip{}, gitTree{}, err
	}
	t, err := c.treeOf(hash)
	return Tip{Name: revision, Commit: hash.String(), When: commit.Committer.When.UTC()}, t, err
}

// mergeReading is the reading of one merge.
type mergeReading struct {
	merge            *Merge
	base, head, fork gitTree
	options          []index.Option
}

func (r mergeReading) read(ctx context.Context) error {
	merged := newMergedTree(ctx, r.base, r.fork, r.head)
	m := r.merge
	m.before, m.after = r.base, merged
	git := rollout.GitContext{Branch: r.branch()}
	outputs := &cloneOutputs{ctx: ctx, clone: m.clone, tree: r.base, tip: m.Base, branch: git.Branch}
	for _, world := range []struct {
		to    *rollout.World
		of    tree.Tree
		ruled bool
	}{{&m.Before, r.base, true}, {&m.After, merged, true}, {&m.Own, merged, false}} {
		reader := index.NewReader(r.options...)
		if world.ruled {
			reader.JudgedBy(r.base, m.BasePrefix())
		}
		read, err := reader.Read(world.of, outputs.of, git)
		if err != nil {
			return err
		}
		*world.to = read
	}
	for file := range merged.conflicts {
		m.Conflicts = append(m.Conflicts, file)
	}
	slices.Sort(m.Conflicts)
	slices.Sort(outputs.absent)
	m.Absent = slices.Compact(outputs.absent)
	return r.written()
}

// branch is the name of the base's branch at its server, "" where the base is not a branch.
func (r mergeReading) branch() string {
	if plumbing.IsHash(r.merge.Base.Name) {
		return ""
	}
	ref, err := r.merge.clone.ref(r.merge.Base.Name)
	if err != nil {
		return ""
	}
	return branchOf(ref.Name())
}

// written finds what of the change is the bot's to write.
func (r mergeReading) written() error {
	seen := map[string]bool{}
	for _, env := range r.merge.Before.Environments {
		dir := path.Clean(env.Environment.Output.Path)
		if own := cmp.Or(env.Environment.Output.Branch, r.branch()) != r.branch(); own || dir == "." || seen[dir] {
			continue
		}
		seen[dir] = true
		files, n, err := touched(r.fork, r.head, dir)
		if bomb, ok := errors.AsType[*tree.Error](err); ok {
			files, n, err = []string{bomb.Path}, 1, nil
		}
		if err != nil {
			return err
		}
		r.merge.Written, r.merge.WrittenCount = append(r.merge.Written, files...), r.merge.WrittenCount+n
	}
	r.merge.Written = r.merge.Written[:min(len(r.merge.Written), maxTouched)]
	return nil
}
