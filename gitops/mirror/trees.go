package mirror

import (
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// LeaveTrees says that most trees are known from an earlier run: where a server can leave them out, and needs no conversation for each that is
// asked for, a mirror that has nothing yet begins with the root of each branch. Trees that are missing come when they are read.
func (m *Mirror) LeaveTrees() {
	_, m.leaveTrees = m.remote.(*httpRemote)
}

// bringRoot brings the root of the tip.
func (f *fetcher) bringRoot(ctx context.Context) error {
	if f.state.left != noTrees {
		return nil
	}
	c, err := f.Commit(f.tip)
	if err != nil {
		return err
	}
	return f.bringAll(ctx, f.store.lacking([]Hash{c.Tree}), noTrees)
}

// BringTrees makes sure that some trees are there. Those that are not come with all trees below them if below is set. It is Bring otherwise. Who
// asks for little time and again gets all that is below the root, if it is given.
func (m *Mirror) BringTrees(ctx context.Context, root Hash, trees []Hash, below bool) error {
	missing := m.store.lacking(trees)
	if len(missing) == 0 {
		return nil
	}
	if !m.store.isPartial() {
		return m.store.needed(&MissingObjectError{Hash: missing[0]})
	}
	ctx, give, err := m.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	if missing = m.store.lacking(missing); len(missing) == 0 { // somebody else had the turn before
		return nil
	}
	return m.bringTrees(ctx, root, missing, below)
}

// maxStrays is how many requests for single trees there are, before the next one is for all trees below the root, and those after it for all
// below each.
const maxStrays = 16

// bringTrees is BringTrees for who has the turn, and for trees that are missing.
func (m *Mirror) bringTrees(ctx context.Context, root Hash, missing []Hash, below bool) error {
	if root.IsZero() {
		return m.bringSome(ctx, missing, below)
	}
	if m.strays++; m.strays <= maxStrays {
		return m.bringSome(ctx, missing, below)
	}
	if m.complete {
		return m.bringSome(ctx, missing, true)
	}
	err := m.bringSome(ctx, append(slices.Clone(missing), root), true)
	m.complete = err == nil
	return err
}

// bringSome has one request. A server that does not leave out what it left out before sends more.
func (m *Mirror) bringSome(ctx context.Context, trees []Hash, below bool) error {
	filter := noTrees
	if below {
		filter = noBlobs
	}
	err := m.bringAll(ctx, trees, filter)
	if err != nil && ctx.Err() == nil && isProtocol(err) && !isRefusal(err) {
		return m.bringAll(ctx, trees, "")
	}
	return err
}

// bringer is BringTrees or bringTrees.
type bringer func(ctx context.Context, root Hash, trees []Hash, below bool) error

// withTrees does something that reads trees on the way to what it looks for below a root, and does it again when those that were missing have
// come.
func (m *Mirror) withTrees(ctx context.Context, root Hash, bring bringer, do func() error) error {
	var last []Hash
	for {
		err := do()
		missing := missingTrees(err)
		if len(missing) == 0 || slices.Equal(missing, last) || !m.store.isPartial() {
			return err
		}
		last = missing
		if err := bring(ctx, root, missing, false); err != nil {
			return err
		}
	}
}

// missingTrees are those that an error, or several that were joined, are about.
func missingTrees(err error) []Hash {
	var out []Hash
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, missingTrees(e)...)
		}
		return out
	}
	var missing *MissingObjectError
	if errors.As(err, &missing) && missing.kind == plumbing.TreeObject {
		out = append(out, missing.Hash)
	}
	return out
}

// TreeBelow is Tree for one below a root. A partial mirror that lacks it brings it with all trees below it; its errors are those of Bring, too.
func (m *Mirror) TreeBelow(ctx context.Context, root, h Hash) ([]Entry, error) {
	entries, err := m.Tree(h)
	var missing *MissingObjectError
	if errors.As(err, &missing) && m.store.isPartial() {
		if err = m.BringTrees(ctx, root, []Hash{h}, true); err == nil {
			entries, err = m.Tree(h)
		}
	}
	return entries, err
}
