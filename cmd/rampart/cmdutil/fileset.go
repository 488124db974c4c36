package cmdutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// FileSet writes files into folders, all or none. The folders' own links are not followed out of them.
type FileSet struct {
	roots []*os.Root
	files []draft
}

// draft is a file to write.
type draft struct {
	root *os.Root
	name string
	data string
	// was is the content before; nil: there was none.
	was *string
}

// NewFileSet returns an empty set. Close it.
func NewFileSet() *FileSet { return &FileSet{} }

// Close closes the folders. It writes nothing.
func (s *FileSet) Close() error {
	var errs []error
	for _, r := range s.roots {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Add adds files to write into a folder, and returns their paths: those to write, and those that have that content
// already. Files with other content are an error, unless overwrite is set.
func (s *FileSet) Add(dir string, files []rollout.TextFile, overwrite bool) (write, unchanged []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	s.roots = append(s.roots, root)
	var others []string
	for _, f := range files {
		d := draft{root: root, name: filepath.FromSlash(f.Path), data: f.Text}
		was, err := root.ReadFile(d.name)
		switch text := string(was); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, nil, fmt.Errorf("write %s: %w", filepath.Join(dir, d.name), err)
		case text == f.Text:
			unchanged = append(unchanged, f.Path)
			continue
		default:
			d.was = &text
			if filepath.Base(d.name) != layout.Kustomization { // it lists what is there
				others = append(others, f.Path)
			}
		}
		s.files, write = append(s.files, d), append(write, f.Path)
	}
	if len(others) > 0 && !overwrite {
		return nil, nil, fmt.Errorf("nothing was written: these files exist with other content: %s: look at the "+
			"difference, then give --overwrite to replace them", strings.Join(others, ", "))
	}
	return write, unchanged, nil
}

// Write writes drafts beside all files, and then renames them. It undoes what it cannot finish.
func (s *FileSet) Write() error {
	for i, d := range s.files {
		err := d.root.MkdirAll(filepath.Dir(d.name), 0o755)
		if err == nil {
			err = d.root.WriteFile(d.draft(), []byte(d.data), 0o644)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("write %s: %w", d.name, err), s.dropDrafts(i+1))
		}
	}
	for i, d := range s.files {
		if err := d.root.Rename(d.draft(), d.name); err != nil {
			return errors.Join(fmt.Errorf("write %s: %w", d.name, err), s.undo(i), s.dropDrafts(len(s.files)))
		}
	}
	return nil
}

func (d draft) draft() string { return d.name + ".rampart-draft" }

func (s *FileSet) dropDrafts(n int) error {
	var errs []error
	for _, d := range s.files[:n] {
		if err := d.root.Remove(d.draft()); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// undo puts back the first files as they were.
func (s *FileSet) undo(n int) error {
	var errs []error
	for _, d := range s.files[:n] {
		if d.was == nil {
			errs = append(errs, d.root.Remove(d.name))
			continue
		}
		errs = append(errs, d.root.WriteFile(d.name, []byte(*d.was), 0o644))
	}
	return errors.Join(errs...)
}

// WriteTree writes files below a folder, which it makes if it is missing: all or none. It overwrites other content.
func WriteTree(a *App, dir string, files []rollout.TextFile) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	set := NewFileSet()
	defer func() { err = errors.Join(err, set.Close()) }()
	written, _, err := set.Add(dir, files, true)
	if err != nil {
		return err
	}
	if err := set.Write(); err != nil {
		return fmt.Errorf("below %s: %w", dir, err)
	}
	a.Say("%d of %d manifests written below %s, the others were as they are", len(written), len(files), dir)
	return nil
}
