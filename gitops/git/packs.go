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

// maxReaders is how many read packs at once, at most.
const maxReaders = 4

// packs are those on disk. go-git reads a pack for one goroutine at a time: they are opened once for each core, each
// time when those that are open are in use.
type packs struct {
	dir     string // of the packs
	readers []packReader
	// keep is how much of what they read the readers keep together, in bytes.
	keep int64

	mu sync.Mutex
	// indexes of the packs by their names, decoded once for all readers: several goroutines may use one of go-git's.
	indexes map[string]idxfile.Index
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
		opened, err := p.open()
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
	p.keep, p.indexes = keep, nil
	if change != nil { // the packs are about to go
		return change()
	}
	return errors.Join(errs...)
}

// packPrefix begins the name of a pack; its checksum follows.
const packPrefix = "pack-"

// packsIn are the packs of a folder, by their names without ".pack".
func packsIn(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	var stems []string
	for _, f := range files {
		if stem, isPack := strings.CutSuffix(f.Name(), ".pack"); isPack && strings.HasPrefix(stem, packPrefix) {
			stems = append(stems, stem)
		}
	}
	return stems, err
}

// open opens the packs for one goroutine.
func (p *packs) open() (openPacks, error) {
	stems, err := packsIn(p.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out openPacks
	kept := cache.NewObjectLRU(cache.FileSize(p.keep / int64(len(p.readers))))
	folder := osfs.New(p.dir, osfs.WithBoundOS())
	for _, stem := range stems {
		index, err := p.index(folder, stem)
		var file billy.File
		if err == nil {
			file, err = folder.Open(stem + ".pack")
		}
		if err != nil {
			err = fmt.Errorf("open pack %s: %w", filepath.Join(p.dir, stem+".pack"), err)
			return nil, errors.Join(err, out.close())
		}
		// of an object larger than MaxTree the beginning is read at most
		out = append(out, packfile.NewPackfileWithCache(index, folder, file, kept, MaxTree))
	}
	return out, nil
}

// index gives a pack's index.
func (p *packs) index(folder billy.Filesystem, stem string) (idxfile.Index, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.indexes[stem]; known != nil {
		return known, nil
	}
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
	if p.indexes == nil {
		p.indexes = map[string]idxfile.Index{}
	}
	p.indexes[stem] = index
	return index, nil
}

// openPacks are the packs of a folder, for one goroutine.
type openPacks []*packfile.Packfile

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
