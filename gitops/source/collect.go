package source

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// EntryKind is what an entry of a folder is.
type EntryKind string

// The kinds of entries.
const (
	IsFile   EntryKind = "file"
	IsFolder EntryKind = "folder"
	// IsOther is a symbolic link or a submodule.
	IsOther EntryKind = "other"
)

// Entry of a folder. Hash is its Git hash; "" where that is not known.
type Entry struct {
	Name string
	Kind EntryKind
	Hash string
}

// Tree gives the files of a repository by their paths from its root; "." is the root.
type Tree interface {
	// Find gives what is at a path; false: nothing.
	Find(path string) (Entry, bool, error)
	// List gives the entries of a folder, none where there is no folder.
	List(dir string) ([]Entry, error)
	// Read fills in the data of files. Errors: *Error for one that can never be read.
	Read(files []File) error
}

// Collect gathers all that a build of a folder may look at. stands are the folders and files that this is: as long as
// each is the same, so is the input; they are there with an *Error, too. Errors: *Error where the folder cannot be
// built, else those of the tree.
func Collect(t Tree, f Folder) (in Input, stands []At, err error) {
	c := &collection{tree: t, folder: f, seen: map[string]bool{}, left: maxFiles}
	if f.Kind == Helm {
		err = c.chart()
	} else {
		err = c.kustomization(f.Dir())
	}
	if err == nil {
		slices.SortFunc(c.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	}
	return Input{Folder: f, Files: c.files}, c.stands, err
}

// collection is what was gathered so far.
type collection struct {
	tree   Tree
	folder Folder
	files  []File
	stands []At
	// seen are paths of files that are there, and of folders that were gone into.
	seen map[string]bool
	// left is how many more files there may be, and size how many bytes there are.
	left, size int
}

// fail is an error of the folder as a whole.
func (c *collection) fail(format string, args ...any) error {
	return &Error{File: c.folder.Marker, Message: fmt.Sprintf(format, args...)}
}

// find gives what is at a path, on which the input stands.
func (c *collection) find(name string) (Entry, bool, error) {
	e, ok, err := c.tree.Find(name)
	if err == nil {
		c.stands = append(c.stands, At{name, e.Hash})
	}
	return e, ok, err
}

// add adds all files below a folder.
func (c *collection) add(dir string) error {
	from := len(c.files)
	if err := c.list(dir); err != nil {
		return err
	}
	return c.read(from)
}

// read reads the files from an index on.
func (c *collection) read(from int) error {
	if err := c.tree.Read(c.files[from:]); err != nil {
		return err
	}
	for _, f := range c.files[from:] {
		c.size += len(f.Data)
	}
	if c.size > maxInput {
		return c.fail("has more than %d bytes of files, with all that it is built from: keep there what the build "+
			"needs, and move the rest away", maxInput)
	}
	return nil
}

func (c *collection) list(dir string) error {
	entries, err := c.tree.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if c.left--; c.left < 0 {
			return c.fail("has more than %d files and folders, with all that it is built from: keep there what the "+
				"build needs, and move the rest away", maxFiles)
		}
		switch e.Kind {
		case IsFolder:
			if err := c.list(name); err != nil {
				return err
			}
		case IsFile:
			if !c.seen[name] {
				c.seen[name] = true
				c.files = append(c.files, File{Path: name, Blob: e.Hash})
			}
		default:
			return &Error{File: name, Message: fmt.Sprintf("is a symbolic link or a submodule, which is not "+
				"followed, and %s may need it: put a file there", c.folder.Marker)}
		}
	}
	return nil
}

// chart gathers a chart and the values files that the environment names.
func (c *collection) chart() error {
	dir := c.folder.Dir()
	if _, _, err := c.find(dir); err != nil {
		return err
	}
	if err := c.add(dir); err != nil {
		return err
	}
	for _, v := range c.folder.Values {
		name := c.folder.valuesAt(v)
		e, ok, err := c.find(name)
		if err != nil {
			return err
		}
		if !ok || e.Kind != IsFile {
			return c.fail("%s, which helm.values of the environment names, is not a file here: add it (it may be "+
				"empty), or take it out of helm.values", name)
		}
		if !c.seen[name] {
			c.seen[name] = true
			c.files = append(c.files, File{Path: name, Blob: e.Hash})
			if err := c.read(len(c.files) - 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// valuesAt is the path of a values file.
func (f Folder) valuesAt(name string) string {
	if root, ok := strings.CutPrefix(name, "/"); ok {
		return path.Clean(root)
	}
	return path.Join(f.Dir(), name)
}
