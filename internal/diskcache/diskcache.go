// Package diskcache keeps on disk what only saves work: what a run knew, for the next one to begin with.
//
// A file that is missing, damaged or of another version is nothing to begin with, which costs work and nothing else. It
// is as trusted as the folder that it is in, which is the bot's own. A File is used by one goroutine at a time.
package diskcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rampart-gitops/rampart/internal/atomicfile"
)

// Part has data that a File keeps.
type Part interface {
	// CacheData gives what is known, for gob to encode.
	CacheData() any
	// LoadCacheData takes the CacheData of an earlier run, which decode decodes. With an error it has taken nothing.
	LoadCacheData(decode func(into any) error) error
}

// File is a cache file.
type File struct {
	// Path of the file; its folder is made when it is missing.
	Path string
	// Key names what everything in it depends on, such as the version of the program: another key is another file.
	Key string
	// Parts in the order in which they are kept.
	Parts []Part
}

// Load gives the parts what Save kept. A file that is not there, or has another key, gives no error and the parts get
// nothing.
func (f File) Load() error {
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read cache: %w", err)
	}
	sum, body := data[:min(sha256.Size, len(data))], data[min(sha256.Size, len(data)):]
	if is := sha256.Sum256(body); !bytes.Equal(sum, is[:]) {
		return fmt.Errorf("read cache %s: it is damaged, and nothing of it is used", f.Path)
	}
	decoder := gob.NewDecoder(bytes.NewReader(body))
	var key string
	if err := decoder.Decode(&key); err != nil || key != f.Key {
		return err
	}
	for _, p := range f.Parts {
		if err := p.LoadCacheData(decoder.Decode); err != nil {
			return fmt.Errorf("read cache %s: %w", f.Path, err)
		}
	}
	return nil
}

// Save keeps what the parts know, in place of what was kept before, or changes nothing.
func (f File) Save() error {
	var body bytes.Buffer
	encoder := gob.NewEncoder(&body)
	if err := encoder.Encode(f.Key); err != nil {
		return fmt.Errorf("write cache: %w", err)
	}
	for _, p := range f.Parts {
		if err := encoder.Encode(p.CacheData()); err != nil {
			return fmt.Errorf("write cache: %w", err)
		}
	}
	sum := sha256.Sum256(body.Bytes())
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return fmt.Errorf("write cache: %w", err)
	}
	if err := atomicfile.Write(f.Path, append(sum[:], body.Bytes()...), 0o600); err != nil {
		return fmt.Errorf("write cache: %w", err)
	}
	return nil
}
