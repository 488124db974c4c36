// Package atomicfile replaces files in one step: readers see what was there or what is there now, also after a crash.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Write replaces a file, or makes it; its folder has to be there. With an error the file is as it was. It may be called
// by several processes at once: the last one wins. What killed processes left of earlier writes is removed.
func Write(name string, data []byte, mode fs.FileMode) (err error) {
	dir, prefix := filepath.Dir(name), ".new-"+filepath.Base(name)+"-"
	removeStale(dir, prefix)
	f, err := os.CreateTemp(dir, prefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// stale is the age of a temporary file that no process writes any more.
const stale = time.Hour

// removeStale removes stale temporary files. One that cannot be removed stays for the next write.
func removeStale(dir, prefix string) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return // creating a file there says why
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), prefix) {
			continue
		}
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
	}
}
