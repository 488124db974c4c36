package git

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// node is the changes at one path and below it.
type node struct {
	path  string
	file  *Change
	below map[string]*node
}

// plan sorts changes into a tree of names. Errors: *PathError.
func plan(changes []Change) (*node, error) {
	root := &node{}
	for i := range changes {
		c := &changes[i]
		if err := checkChange(c); err != nil {
			return nil, err
		}
		at, end := root, -len("/")
		for name := range strings.SplitSeq(c.Path, "/") {
			end += len("/") + len(name)
			next := at.below[name]
			if next == nil {
				next = &node{path: c.Path[:end]}
				if at.below == nil {
					at.below = map[string]*node{}
				}
				at.below[name] = next
			}
			at = next
		}
		if at.file != nil {
			return nil, &PathError{Path: c.Path, Problem: PathDuplicate}
		}
		at.file = c
	}
	return root, nil
}

func checkChange(c *Change) error {
	if err := CheckPath(c.Path); err != nil {
		return err
	}
	if c.Delete && c.Data != nil {
		return fmt.Errorf("path %q is both written and deleted", c.Path)
	}
	return nil
}

// editor applies a plan to trees, keeping what is new.
type editor struct {
	mirror *Mirror
	blobs  map[string]obj // by path
	made   map[Hash]obj
}

func (e *editor) keep(o obj) Hash {
	e.made[o.hash] = o
	return o.hash
}

// tree reads a tree: one that was made, or one of the mirror.
func (e *editor) tree(h Hash) ([]Entry, error) {
	if o, ok := e.made[h]; ok {
		return parseTree(o.data)
	}
	entries, err := e.mirror.Tree(h)
	if err != nil {
		return nil, e.mirror.store.needed(err)
	}
	return entries, nil
}

// apply makes a tree of base and the changes below n; zero when nothing is left in it.
func (e *editor) apply(base Hash, n *node) (Hash, error) {
	entries, err := e.tree(base)
	if isUnusable(err) && n.path != "" {
		return Hash{}, &PathError{Path: n.path, Problem: PathUnreadable}
	}
	if err != nil {
		return Hash{}, err
	}
	before := make(map[string]Entry, len(entries))
	for _, old := range entries {
		before[old.Name] = old
	}
	edits := make(map[string]Entry, len(n.below)) // a zero hash: gone
	for _, name := range slices.Sorted(maps.Keys(n.below)) {
		old := before[name]
		now, err := e.edit(old, n.below[name])
		if err != nil {
			return Hash{}, err
		}
		now.Name = name
		if now.Hash != old.Hash || now.Mode != old.Mode {
			edits[name] = now
		}
	}
	if len(edits) == 0 {
		return base, nil
	}
	entries = merge(entries, edits)
	if err := checkNew(entries, edits, before, n); err != nil {
		return Hash{}, err
	}
	if len(entries) == 0 {
		return Hash{}, nil
	}
	return e.keep(newObj(plumbing.TreeObject, encodeTree(entries))), nil
}

// checkNew refuses names that are new and collide with another one.
func checkNew(entries []Entry, edits, before map[string]Entry, n *node) error {
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		if _, old := before[name]; old || edits[name].Hash.IsZero() {
			continue
		}
		for _, other := range entries {
			if collide(name, other.Name) {
				return &PathError{Path: n.below[name].path, Problem: PathCollision}
			}
		}
	}
	return nil
}

// merge replaces, adds and removes entries, in git's order.
func merge(entries []Entry, edits map[string]Entry) []Entry {
	merged := make([]Entry, 0, len(entries)+len(edits))
	for _, old := range entries {
		if _, edited := edits[old.Name]; !edited {
			merged = append(merged, old)
		}
	}
	for _, now := range edits {
		if !now.Hash.IsZero() {
			merged = append(merged, now)
		}
	}
	slices.SortFunc(merged, compareEntries)
	return merged
}

// edit gives what becomes of one entry; old is zero when there was none, the result when there is none.
func (e *editor) edit(old Entry, n *node) (Entry, error) {
	switch old.Mode & typeBits {
	case ModeSymlink:
		return Entry{}, &PathError{Path: n.path, Problem: PathIsSymlink}
	case ModeSubmodule:
		return Entry{}, &PathError{Path: n.path, Problem: PathIsSubmodule}
	}
	now := old
	if n.file != nil && n.file.Delete {
		if old.IsDir() {
			return Entry{}, &PathError{Path: n.path, Problem: PathIsDirectory}
		}
		now = Entry{}
	}
	if n.below != nil {
		var err error
		if now, err = e.editBelow(now, n); err != nil {
			return Entry{}, err
		}
	}
	if n.file == nil || n.file.Delete {
		return now, nil
	}
	return e.write(now, n)
}

// editBelow applies the changes below a path that is a directory, or nothing yet.
func (e *editor) editBelow(now Entry, n *node) (Entry, error) {
	if now.IsFile() {
		return Entry{}, &PathError{Path: n.path, Problem: PathUnderFile}
	}
	tree, err := e.apply(now.Hash, n)
	if err != nil || tree.IsZero() {
		return Entry{}, err
	}
	return Entry{Mode: ModeDir, Hash: tree}, nil
}

// write puts the file in place, where there may be a file but no directory.
func (e *editor) write(now Entry, n *node) (Entry, error) {
	if now.IsDir() {
		if n.below != nil {
			return Entry{}, &PathError{Path: n.path, Problem: PathConflict}
		}
		return Entry{}, &PathError{Path: n.path, Problem: PathIsDirectory}
	}
	blob := e.blobs[n.path]
	if blob.hash != now.Hash {
		e.keep(blob)
	}
	return Entry{Mode: ModeFile, Hash: blob.hash}, nil
}
