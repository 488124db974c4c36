package git

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

// LeaveTrees says that most trees are known from an earlier run: where a server can leave them out, and needs no
// conversation for each that is asked for, a mirror that has nothing yet begins with the root of each branch. Trees
// that are missing come when they are read.
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
	missing := f.store.lacking([]Hash{c.Tree})
	f.treeless = f.treeless || len(missing) > 0
	return f.bringAll(ctx, missing, noTrees)
}

// BringTrees makes sure that some trees are there. Those that are not come with all trees below them if below is set.
// It is Bring otherwise. Who asks for little time and again gets all that is below the root, if it is given.
func (m *Mirror) BringTrees(ctx context.Context, root Hash, trees []Hash, below bool) error {
	return m.bringLacking(ctx, trees, func(ctx context.Context, missing []Hash) error { return m.bringTrees(ctx, root, missing, below) })
}

// maxStrays is how many requests for single trees there are, before one is for all trees below the root. Those after it
// are for all below each.
const maxStrays = 16

// bringTrees is BringTrees for who has the turn.
func (m *Mirror) bringTrees(ctx context.Context, root Hash, trees []Hash, below bool) error {
	missing := m.store.lacking(trees)
	if len(missing) == 0 {
		return nil
	}
	if root.IsZero() {
		return m.bringSome(ctx, missing, below)
	}
	if m.strays++; m.strays <= maxStrays {
		return m.bringSome(ctx, missing, below)
	}
	if !m.widened {
		m.widened = true // whatever comes of it: it is a large request, which may not end in time
		if err := m.bringAll(ctx, append(slices.Clone(missing), root), noBlobs); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return m.bringSome(ctx, missing, true)
}

// bringSome asks for trees. A server that does not leave out any more what it left out before sends more.
func (m *Mirror) bringSome(ctx context.Context, trees []Hash, below bool) error {
	filter := noTrees
	if below {
		filter = noBlobs
	}
	err := m.bringAll(ctx, trees, filter)
	if refusesFilter(err) {
		return m.bringAll(ctx, trees, "")
	}
	return err
}

// refusesFilter says whether the server's own words are about a filter.
func refusesFilter(err error) bool {
	var access *AccessError
	var line *pktline.ErrorLine
	switch {
	case errors.As(err, &access):
		return access.Reason == ReasonServer && strings.Contains(access.Detail, "filter")
	case errors.As(err, &line):
		return strings.Contains(line.Text, "filter")
	}
	return false
}

// bringer is BringTrees or bringTrees.
type bringer func(ctx context.Context, root Hash, trees []Hash, below bool) error

// withTrees calls do, which reads trees on the way to what it looks for below a root. If trees are missing, it
// brings them and calls do again.
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

// TreeBelow is Tree for one below a root. A partial mirror that lacks it brings it with all trees below it; its errors
// are those of Bring, too.
func (m *Mirror) TreeBelow(ctx context.Context, root, h Hash) ([]Entry, error) {
	entries, err := m.Tree(h)
	if len(missingTrees(err)) > 0 && m.store.isPartial() {
		if err = m.BringTrees(ctx, root, []Hash{h}, true); err == nil {
			entries, err = m.Tree(h)
		}
	}
	return entries, err
}
