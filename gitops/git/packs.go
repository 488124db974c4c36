package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// maxReaders is how many read packs at once, at most. Each has the packs' indexes in memory.
const maxReaders = 4

// packs are those on disk. go-git reads a pack for one goroutine at a time: they are opened once for each core, each
// time when those that are open are in use.
type packs struct {
	dir     string // of the packs
	readers []packReader
	// keep is how much of what they read the readers keep together, in bytes.
	keep int64
}

type packReader struct {
	mu     sync.Mutex
	isOpen bool
	opened openPacks
}

func newPacks(dir string, keep int64) *packs {
	return &packs{dir: dir, keep: keep, readers: make([]packReader, min(runtime.GOMAXPROCS(0), maxReaders))}
}

// use lends the packs to do, which no other goroutine uses at the same time. A goroutine that has them waits for no
// other one. Errors: do's, and *damageError where packs cannot be opened.
func (p *packs) use(do func(openPacks) error) error {
	for i := range p.readers {
		if r := &p.readers[i]; r.mu.TryLock() {
			defer r.mu.Unlock()
			return p.lend(r, do)
		}
	}
	first := &p.readers[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	return p.lend(first, do)
}

func (p *packs) lend(r *packReader, do func(openPacks) error) error {
	if !r.isOpen {
		opened, err := openIn(p.dir, cache.FileSize(p.keep/int64(len(p.readers))))
		if err != nil {
			return &damageError{err}
		}
		r.isOpen, r.opened = true, opened
	}
	return do(r.opened)
}

// anew has all readers look again at what is on disk, after change. It makes the change while no goroutine reads.
func (p *packs) anew(keep int64, change func() error) error {
	var errs []error
	for i := range p.readers {
		r := &p.readers[i]
		r.mu.Lock()
		defer r.mu.Unlock()
		errs = append(errs, r.opened.close())
		r.isOpen, r.opened = false, nil
	}
	p.keep = keep
	if change != nil { // the packs are about to go
		return change()
	}
	return errors.Join(errs...)
}

// packPrefix begins the name of a pack; its checksum follows.
const packPrefix = "pack-"

// openPacks are the packs of a folder, for one goroutine.
type openPacks []*packfile.Packfile

// openIn opens the packs of a folder, which keep so much of what they read together.
func openIn(dir string, keep cache.FileSize) (openPacks, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out openPacks
	kept, folder := cache.NewObjectLRU(keep), osfs.New(dir, osfs.WithBoundOS())
	for _, f := range files {
		stem, isPack := strings.CutSuffix(f.Name(), ".pack")
		if !isPack || !strings.HasPrefix(stem, packPrefix) {
			continue
		}
		p, err := openPack(folder, stem, kept)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open pack %s: %w", filepath.Join(dir, f.Name()), err), out.close())
		}
		out = append(out, p)
	}
	return out, nil
}

func openPack(folder billy.Filesystem, stem string, kept cache.Object) (*packfile.Packfile, error) {
	encoded, err := folder.Open(stem + ".idx")
	if err != nil {
		return nil, err
	}
	index := idxfile.NewMemoryIndex()
	if err := errors.Join(idxfile.NewDecoder(encoded).Decode(index), encoded.Close()); err != nil {
		return nil, err
	}
	if of := packPrefix + plumbing.Hash(index.PackfileChecksum).String(); of != stem {
		return nil, fmt.Errorf("its index is that of %s", of)
	}
	file, err := folder.Open(stem + ".pack")
	if err != nil {
		return nil, err
	}
	// of an object larger than MaxTree the beginning is read at most
	return packfile.NewPackfileWithCache(index, folder, file, kept, MaxTree), nil
}

// with is a pack that has an object, or nil.
func (o openPacks) with(h Hash) *packfile.Packfile {
	for _, p := range o {
		if has, err := p.Contains(h); has && err == nil {
			return p
		}
	}
	return nil
}

// object finds an object. A small one is read at once, a large one when its content is asked for. Errors:
// plumbing.ErrObjectNotFound, *damageError where its pack cannot be read.
func (o openPacks) object(h Hash) (plumbing.EncodedObject, error) {
	p := o.with(h)
	if p == nil {
		return nil, plumbing.ErrObjectNotFound
	}
	// Not by where it begins: for that go-git makes a table of all objects of the pack first.
	found, err := p.Get(h)
	if err != nil {
		return nil, &damageError{fmt.Errorf("its pack cannot be read there: %w", err)}
	}
	return found, nil
}

func (o openPacks) close() error {
	var errs []error
	for _, p := range o {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
