package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// Folder is a plain folder on disk. Links are not followed, .git is not entered.
type Folder struct{ Dir string }

// Root implements Tree: the hash is not known.
func (f Folder) Root() string { return "" }

// List implements Tree.
func (f Folder) List(dir, _ string) ([]Entry, error) {
	entries, err := os.ReadDir(filepath.Join(f.Dir, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", dir, err)
	}
	var out []Entry
	for _, e := range entries {
		switch {
		case !counts(e.Name()):
		case e.IsDir():
			out = append(out, Entry{e.Name(), IsFolder, ""})
		case e.Type().IsRegular():
			out = append(out, Entry{e.Name(), IsFile, ""})
		default:
			out = append(out, Entry{e.Name(), IsOther, ""})
		}
	}
	return out, nil
}

// Read implements Tree.
func (f Folder) Read(file, _ string) ([]byte, error) {
	name := filepath.Join(f.Dir, filepath.FromSlash(file))
	info, err := os.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	if info.Size() > MaxFileSize {
		return nil, fmt.Errorf("read %q: %w", file, &git.TooLargeError{Size: info.Size(), Limit: MaxFileSize})
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	return b, nil
}
