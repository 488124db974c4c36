package git

import (
	"errors"
	"runtime"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// maxReaders is how many read packs at once, at most. Each has the packs' indexes in memory.
const maxReaders = 4

// packs are those on disk. go-git's storage reads for one at a time: there is one of it for each core, and the others
// are opened where the first one is in use.
type packs struct {
	dir     string
	readers []packReader
	// keep is how much of what they read they keep together, in bytes.
	keep int64
}

type packReader struct {
	mu     sync.Mutex
	opened *filesystem.Storage // nil: the next one opens it
}

func newPacks(dir string, keep int64) *packs {
	return &packs{dir: dir, keep: keep, readers: make([]packReader, min(runtime.GOMAXPROCS(0), maxReaders))}
}

// use lends a reader that no other goroutine uses at the same time. A goroutine that has a reader waits for no
// other one.
func (p *packs) use(do func(*filesystem.Storage) error) error {
	for i := range p.readers {
		if r := &p.readers[i]; r.mu.TryLock() {
			defer r.mu.Unlock()
			return do(p.open(r))
		}
	}
	first := &p.readers[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	return do(p.open(first))
}

func (p *packs) open(r *packReader) *filesystem.Storage {
	if r.opened == nil {
		// Without KeepDescriptors each read opens the pack again. ExclusiveAccess would be right too, but
		// makes HasEncodedObject deny whatever is in a pack.
		r.opened = filesystem.NewStorageWithOptions(packsOnly{osfs.New(p.dir, osfs.WithBoundOS())},
			cache.NewObjectLRU(cache.FileSize(p.keep/int64(len(p.readers)))),
			// of a larger one the beginning is read at most
			filesystem.Options{KeepDescriptors: true, LargeObjectThreshold: MaxTree})
	}
	return r.opened
}

// anew has all readers look again at what is on disk, after change. It makes the change while no goroutine reads.
func (p *packs) anew(keep int64, change func() error) error {
	var errs []error
	for i := range p.readers {
		r := &p.readers[i]
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.opened != nil {
			errs = append(errs, r.opened.Close())
			r.opened = nil
		}
	}
	p.keep = keep
	if change != nil { // the packs are about to go
		return change()
	}
	return errors.Join(errs...)
}
