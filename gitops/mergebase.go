package gitops

import (
	"context"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// NoMergeBaseError says that two commits have no ancestor in common, as far as a clone knows.
type NoMergeBaseError struct {
	Dir, Base, Head string
	// Shallow says that the clone lacks history.
	Shallow bool
}

func (e *NoMergeBaseError) Error() string {
	out := fmt.Sprintf("%s and %s have no commit in common", e.Base, e.Head)
	if e.Shallow {
		return out + fmt.Sprintf(" in the clone %s, whose history is cut: fetch all of it (git fetch --unshallow; in "+
			"a workflow fetch-depth: 0)", e.Dir)
	}
	return out + ": a change has to come from a branch of the same repository, or of a fork of it"
}

// Where a commit was reached from.
const (
	fromBase = 1 << iota
	fromHead
	fromCommon // an ancestor of one that both reached: no best one any more
)

// mergeBase is the newest of the best common ancestors of two commits, as git merge-base gives it. What is beyond the
// cut of a shallow clone is not there. Errors: *NoMergeBaseError without names.
//
// It goes from both to older commits, the newest first, until all that is left is older than what both reached (Git's
// own way: paint down to common). Clocks that go wrong can leave several: those that are ancestors of another one are
// left out.
func (c *Clone) mergeBase(ctx context.Context, base, head git.Hash) (git.Hash, error) {
	found, err := c.commonAncestors(ctx, base, head)
	if err != nil {
		return git.Hash{}, err
	}
	if len(found) == 0 {
		cuts, err := c.store.Shallow()
		if err != nil {
			return git.Hash{}, fmt.Errorf("read %s: %w", c.dir, err)
		}
		return git.Hash{}, &NoMergeBaseError{Dir: c.dir, Shallow: len(cuts) > 0}
	}
	for i, candidate := range found {
		redundant := false
		for j, other := range found {
			if i != j && !redundant {
				if redundant, err = c.isAncestor(ctx, candidate, other); err != nil {
					return git.Hash{}, err
				}
			}
		}
		if !redundant {
			return candidate, nil
		}
	}
	return found[0], nil
}

// commonAncestors are candidates for the best common ancestors, the newest first.
func (c *Clone) commonAncestors(ctx context.Context, base, head git.Hash) ([]git.Hash, error) {
	cut, err := c.cuts()
	if err != nil {
		return nil, err
	}
	flags := map[git.Hash]int{}
	var queue git.Newest
	reach := func(h git.Hash, flag int) error {
		if flags[h]&flag == flag {
			return nil
		}
		flags[h] |= flag
		commit, err := c.Commit(h)
		if err == nil {
			queue.Add(commit)
		}
		return err
	}
	if err := reach(base, fromBase); err != nil {
		return nil, err
	}
	if err := reach(head, fromHead); err != nil {
		return nil, err
	}
	var found []git.Hash
	open := func(commit *git.CommitInfo) bool { return flags[commit.Hash]&fromCommon == 0 }
	for slices.ContainsFunc(queue, open) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := queue.Next()
		flag := flags[at.Hash]
		if flag == fromBase|fromHead {
			if !slices.Contains(found, at.Hash) {
				found = append(found, at.Hash)
			}
			flag |= fromCommon
		}
		if cut[at.Hash] {
			continue
		}
		for _, parent := range at.Parents {
			if err := reach(parent, flag); err != nil {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(found, func(h git.Hash) bool { return flags[h]&fromCommon != 0 }), nil
}

// isAncestor reports whether a commit is among the ancestors of another one.
func (c *Clone) isAncestor(ctx context.Context, h, of git.Hash) (bool, error) {
	there := false
	err := c.History(ctx, git.Tip{Commit: of}, func(at git.CommitInfo) (bool, error) {
		there = there || at.Hash == h
		return !there, nil
	})
	return there, err
}

// cuts are the commits whose parents a shallow clone does not have.
func (c *Clone) cuts() (map[git.Hash]bool, error) {
	list, err := c.store.Shallow()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.dir, err)
	}
	out := map[git.Hash]bool{}
	for _, h := range list {
		out[h] = true
	}
	return out, nil
}
