package auditlog

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// File is a file that lines are added to. When it was moved away or removed, which is what rotates logs, the next write
// makes a new one. It is safe for concurrent use.
type File struct {
	name string
	mu   sync.Mutex
	file *os.File
}

var _ io.WriteCloser = (*File)(nil)

// OpenFile opens a file for adding to it, made with mode 0600 when missing.
func OpenFile(name string) (*File, error) {
	f := &File{name: name}
	return f, f.open()
}

func (f *File) open() (err error) {
	f.file, err = os.OpenFile(f.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return err
}

// Write adds to the file, all or nothing where the file is a regular one.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.follow(); err != nil {
		return 0, err
	}
	before, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	n, err := f.file.Write(p)
	if err != nil && n > 0 && before.Mode().IsRegular() {
		if cut := f.file.Truncate(before.Size()); cut != nil {
			return n, fmt.Errorf("%w; remove the partial last line by hand, since truncating to %d bytes failed: %w",
				err, before.Size(), cut)
		}
		n = 0
	}
	return n, err
}

// follow opens the file anew when its name is not that file's any more.
func (f *File) follow() error {
	if f.file == nil {
		return f.open()
	}
	is, err := f.file.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Stat(f.name); err == nil && os.SameFile(is, named) {
		return nil
	}
	_ = f.file.Close() // what was written to it is written
	f.file = nil
	return f.open()
}

// Close closes the file. It does not wait for a write, which may hang where the file is a pipe: that is an error, and
// the file stays open.
func (f *File) Close() error {
	if !f.mu.TryLock() {
		return fmt.Errorf("close %s: it is being written to", f.name)
	}
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
