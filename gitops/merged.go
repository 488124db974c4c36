package gitops

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/tree"
)

// mergedTree is what merging a change makes of its base, file by file. A file that only one side changed since they
// went apart is that side's; one that both changed is the change's, and a conflict, since contents are not merged.
//
// A folder that both sides changed has no hash of its own, but a name that stands for the three that it is made of.
type mergedTree struct {
	// ctx ends the reading of a tree that is too large to wait for.
	ctx              context.Context
	base, fork, head gitTree
	// folders are those that both sides changed, by the names that stand for them.
	folders map[string]threeWay
	// conflicts are paths of files that both sides changed.
	conflicts map[string]bool
}

var _ tree.Tree = mergedTree{}

// threeWay are the entries of one name in the three trees; the zero entry where there is none.
type threeWay struct{ base, fork, head tree.Entry }

func newMergedTree(ctx context.Context, base, fork, head gitTree) mergedTree {
	return mergedTree{ctx, base, fork, head, map[string]threeWay{}, map[string]bool{}}
}

func (t mergedTree) Root() string {
	dir := func(of gitTree) tree.Entry { return tree.Entry{Kind: tree.IsFolder, Hash: of.Root()} }
	merged, _ := t.merge(".", threeWay{dir(t.base), dir(t.fork), dir(t.head)})
	return merged.Hash
}

// merge gives what is there after the merge; false: nothing.
func (t mergedTree) merge(file string, of threeWay) (tree.Entry, bool) {
	same := func(a, b tree.Entry) bool { return a.Kind == b.Kind && a.Hash == b.Hash }
	pick := func(e tree.Entry) (tree.Entry, bool) { return e, e.Kind != "" }
	switch {
	case same(of.fork, of.head):
		return pick(of.base)
	case same(of.fork, of.base), same(of.head, of.base):
		return pick(of.head)
	}
	folders := true
	for _, e := range []tree.Entry{of.base, of.fork, of.head} {
		folders = folders && (e.Kind == tree.IsFolder || e.Kind == "")
	}
	if !folders {
		t.conflicts[file] = true
		return pick(of.head)
	}
	e := tree.Entry{Kind: tree.IsFolder, Hash: strings.Join([]string{"merge", of.base.Hash, of.fork.Hash, of.head.Hash},
		":")}
	t.folders[e.Hash] = of
	return e, true
}

func (t mergedTree) List(dir, hash string) ([]tree.Entry, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	of, mixed := t.folders[hash]
	if !mixed {
		return t.base.List(dir, hash)
	}
	names := map[string]threeWay{}
	var out []tree.Entry
	for _, side := range []struct {
		of  tree.Entry
		set func(*threeWay, tree.Entry)
	}{
		{of.base, func(w *threeWay, e tree.Entry) { w.base = e }},
		{of.fork, func(w *threeWay, e tree.Entry) { w.fork = e }},
		{of.head, func(w *threeWay, e tree.Entry) { w.head = e }},
	} {
		entries, err := t.base.List(dir, side.of.Hash)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Kind == tree.IsStray { // it may have the name of another one
				if side.of == of.head {
					out = append(out, e)
				}
				continue
			}
			w := names[e.Name]
			side.set(&w, e)
			names[e.Name] = w
		}
	}
	for name, w := range names {
		if e, there := t.merge(path.Join(dir, name), w); there {
			e.Name = name
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b tree.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (t mergedTree) Read(file, hash string) ([]byte, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	return t.base.Read(file, hash)
}

// touched are the files below a folder that differ between two trees, sorted, and how many; at most some of them are
// named.
func touched(from, to tree.Tree, dir string) ([]string, int, error) {
	var sides [2]map[string]string
	for i, t := range []tree.Tree{from, to} {
		sides[i] = map[string]string{}
		e, ok, err := tree.Lookup(t, dir)
		if err != nil {
			return nil, 0, err
		}
		if !ok || e.Kind != tree.IsFolder {
			continue
		}
		if sides[i], err = index.Below(t, dir, e.Hash); err != nil {
			return nil, 0, err
		}
	}
	var out []string
	for _, pair := range [][2]map[string]string{{sides[0], sides[1]}, {sides[1], sides[0]}} {
		for file, hash := range pair[0] {
			if other, ok := pair[1][file]; !ok || other != hash {
				out = append(out, file)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxTouched)], len(out), nil
}

// maxTouched is how many touched files are named.
const maxTouched = 20

// treeOf is the tree of a commit in a clone, or the folder of it that the clone was opened by.
func (c *Clone) treeOf(hash plumbing.Hash) (gitTree, error) {
	commit, err := c.Commit(hash)
	if err != nil {
		return gitTree{}, err
	}
	t := gitTree{c.store, commit.Tree}
	if c.prefix == "" || c.prefix == "." {
		return t, nil
	}
	e, ok, err := tree.Lookup(t, c.prefix)
	if err != nil {
		return gitTree{}, err
	}
	if !ok || e.Kind != tree.IsFolder {
		return gitTree{}, fmt.Errorf("commit %s has no folder %s", hash, c.prefix)
	}
	return gitTree{c.store, plumbing.NewHash(e.Hash)}, nil
}
