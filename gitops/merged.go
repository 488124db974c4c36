package gitops

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// mergedTree is what merging a change makes of its base, file by file: a file that only one side changed since they
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

var _ tree = mergedTree{}

// threeWay are the entries of one name in the three trees; the zero entry where there is none.
type threeWay struct{ base, fork, head entry }

func newMergedTree(ctx context.Context, base, fork, head gitTree) mergedTree {
	return mergedTree{ctx, base, fork, head, map[string]threeWay{}, map[string]bool{}}
}

func (t mergedTree) root() string {
	dir := func(of gitTree) entry { return entry{kind: dirEntry, hash: of.root()} }
	merged, _ := t.merge(".", threeWay{dir(t.base), dir(t.fork), dir(t.head)})
	return merged.hash
}

// merge gives what is there after the merge; false: nothing.
func (t mergedTree) merge(file string, of threeWay) (entry, bool) {
	same := func(a, b entry) bool { return a.kind == b.kind && a.hash == b.hash }
	pick := func(e entry) (entry, bool) { return e, e.kind != "" }
	switch {
	case same(of.fork, of.head):
		return pick(of.base)
	case same(of.fork, of.base), same(of.head, of.base):
		return pick(of.head)
	}
	folders := true
	for _, e := range []entry{of.base, of.fork, of.head} {
		folders = folders && (e.kind == dirEntry || e.kind == "")
	}
	if !folders {
		t.conflicts[file] = true
		return pick(of.head)
	}
	e := entry{kind: dirEntry, hash: strings.Join([]string{"merge", of.base.hash, of.fork.hash, of.head.hash}, ":")}
	t.folders[e.hash] = of
	return e, true
}

func (t mergedTree) list(dir, hash string) ([]entry, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	of, mixed := t.folders[hash]
	if !mixed {
		return t.base.list(dir, hash)
	}
	names := map[string]threeWay{}
	var out []entry
	for _, side := range []struct {
		of  entry
		set func(*threeWay, entry)
	}{
		{of.base, func(w *threeWay, e entry) { w.base = e }},
		{of.fork, func(w *threeWay, e entry) { w.fork = e }},
		{of.head, func(w *threeWay, e entry) { w.head = e }},
	} {
		entries, err := t.base.list(dir, side.of.hash)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.kind == strayEntry { // it may have the name of another one
				if side.of == of.head {
					out = append(out, e)
				}
				continue
			}
			w := names[e.name]
			side.set(&w, e)
			names[e.name] = w
		}
	}
	for name, w := range names {
		if e, there := t.merge(path.Join(dir, name), w); there {
			e.name = name
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

func (t mergedTree) read(file, hash string) ([]byte, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	return t.base.read(file, hash)
}

// touched are the files below a folder that differ between two trees, sorted, and how many; at most some of them are
// named.
func touched(from, to tree, dir string) ([]string, int, error) {
	var sides [2]map[string]string
	for i, t := range []tree{from, to} {
		sides[i] = map[string]string{}
		e, ok, err := lookup(t, dir)
		if err != nil {
			return nil, 0, err
		}
		if !ok || e.kind != dirEntry {
			continue
		}
		all, err := below(t, dir, e.hash, walk{globs: []string{"**"}, budget: newBudget()})
		if err != nil {
			return nil, 0, err
		}
		for _, f := range all.files {
			sides[i][f.path] = f.hash
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
	e, ok, err := lookup(t, c.prefix)
	if err != nil {
		return gitTree{}, err
	}
	if !ok || e.kind != dirEntry {
		return gitTree{}, fmt.Errorf("commit %s has no folder %s", hash, c.prefix)
	}
	return gitTree{c.store, plumbing.NewHash(e.hash)}, nil
}
