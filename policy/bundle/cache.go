package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rampart-gitops/rampart/internal/atomicfile"
)

// cacheFile keeps the last good archive of one bundle: a line of JSON, then the archive. It is replaced as a whole.
type cacheFile struct{ path, url string }

// cached is what a cacheFile holds.
type cached struct {
	archive   []byte
	etag      string
	confirmed time.Time
}

// cacheHead is the first line of a cacheFile.
type cacheHead struct {
	Format int    `json:"format"`
	URL    string `json:"url"`
	ETag   string `json:"etag,omitempty"`
	// Confirmed is when the server last said that this is its bundle.
	Confirmed time.Time `json:"confirmed"`
	SHA256    string    `json:"sha256"`
}

const (
	cacheFormat = 1
	maxHead     = 16 << 10
)

// newCacheFile names the file by the bundle and its whole URL: another URL is another bundle.
func newCacheFile(dir string, b Bundle) cacheFile {
	id := sha256Of([]byte(b.URL))
	return cacheFile{filepath.Join(dir, "bundles", b.Name+"-"+id[:16]), id}
}

// read gives what was kept; nil if nothing was. The archive is not looked into.
func (c cacheFile) read() (*cached, error) {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxDownload+maxHead))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	line, archive, _ := bytes.Cut(text, []byte("\n"))
	var head cacheHead
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	switch {
	case head.Format != cacheFormat:
		return nil, fmt.Errorf("it has format %d: expected %d", head.Format, cacheFormat)
	case head.URL != c.url:
		return nil, errors.New("it is of another URL")
	case head.SHA256 != sha256Of(archive):
		return nil, errors.New("it is damaged: its content is not what was written")
	}
	return &cached{archive, head.ETag, head.Confirmed}, nil
}

// write replaces the file, or leaves it as it is.
func (c cacheFile) write(v cached) error {
	head, err := json.Marshal(cacheHead{cacheFormat, c.url, v.etag, v.confirmed, sha256Of(v.archive)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(c.path, append(append(head, '\n'), v.archive...), 0o600)
}
