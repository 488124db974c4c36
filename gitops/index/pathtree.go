package index

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/source"
	"github.com/rampart-gitops/rampart/gitops/tree"
)

// pathTree is a tree whose files are found by path alone. It remembers the folders that were listed.
type pathTree struct {
	in   tree.Tree
	dirs map[string]map[string]tree.Entry
}

var _ source.Tree = (*pathTree)(nil)

func newPathTree(t tree.Tree) *pathTree { return &pathTree{t, map[string]map[string]tree.Entry{}} }

// Find gives what is at a path.
func (t *pathTree) Find(name string) (source.Entry, bool, error) {
	if name == "." {
		return source.Entry{Name: name, Kind: source.IsFolder, Hash: t.in.Root()}, true, nil
	}
	entries, err := t.entries(path.Dir(name))
	e, ok := entries[path.Base(name)]
	return asSource(e), ok, err
}

// List gives the entries of a folder.
func (t *pathTree) List(dir string) ([]source.Entry, error) {
	entries, err := t.entries(dir)
	out := make([]source.Entry, 0, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		out = append(out, asSource(entries[name]))
	}
	return out, err
}

func asSource(e tree.Entry) source.Entry {
	kind := source.IsOther
	switch e.Kind {
	case tree.IsFolder:
		kind = source.IsFolder
	case tree.IsFile:
		kind = source.IsFile
	}
	return source.Entry{Name: e.Name, Kind: kind, Hash: e.Hash}
}

// entries are those of a folder, by name; none where there is no folder.
func (t *pathTree) entries(dir string) (map[string]tree.Entry, error) {
	if known, ok := t.dirs[dir]; ok {
		return known, nil
	}
	at, ok, err := t.Find(dir)
	if err != nil || !ok || at.Kind != source.IsFolder {
		return nil, err
	}
	listed, err := t.in.List(dir, at.Hash)
	if bomb, ok := errors.AsType[*tree.Error](err); ok {
		return nil, &source.Error{File: bomb.Path, Message: bomb.Error()}
	}
	if err != nil {
		return nil, err
	}
	out := make(map[string]tree.Entry, len(listed))
	for _, e := range listed {
		if was, twice := out[e.Name]; !twice || was.Kind != tree.IsStray {
			out[e.Name] = e
		}
	}
	t.dirs[dir] = out
	return out, nil
}

// Read fills in the data of files.
func (t *pathTree) Read(files []source.File) error {
	if tree.IsPartial(t.in) {
		all := make([]git.Hash, 0, len(files))
		for _, f := range files {
			all = append(all, plumbing.NewHash(f.Blob))
		}
		if err := tree.Bring(t.in, all); err != nil {
			return err
		}
	}
	for i := range files {
		data, err := t.in.Read(files[i].Path, files[i].Blob)
		if p, ok := Unreadable(files[i].Path, err); ok {
			return &source.Error{File: p.File,
				Message: fmt.Sprintf("%s: move it out of the folder, which is built with all its files", p.Message)}
		}
		if err != nil {
			return err
		}
		files[i].Data = data
	}
	return nil
}

// same reports whether files and folders are what they were.
func (t *pathTree) same(was []source.At) (bool, error) {
	for _, at := range was {
		e, _, err := t.Find(at.Path)
		if _, ok := errors.AsType[*source.Error](err); ok {
			return false, nil
		}
		if err != nil || e.Hash != at.Hash {
			return false, err
		}
	}
	return true, nil
}
