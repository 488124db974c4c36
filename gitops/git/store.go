package git

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// store holds the objects: packs on disk, and what is new in memory until there is enough of it for a pack. Code
// that has the lock may use the packs; code that uses the packs may not wait for the lock.
type store struct {
	dir    string
	limits limits

	mu    sync.Mutex
	packs *packs
	fresh map[Hash]obj
	size  int64 // bytes in fresh
	bad   error // what was found damaged; the mirror is filled anew at the next fetch
	// partial says that blobs may be missing.
	partial bool
	// resting says that much was read and forgotten since the mirror was filled.
	resting bool
	// filled is how often the store was emptied, to be filled anew.
	filled int
}

// limits bound what is held in memory and fetched.
type limits struct {
	overlay int64 // bytes of objects in memory before they are written out
	fetch   int   // bytes of one incoming pack taken into memory; a larger one goes straight to disk
	// inflated is how many bytes such a pack may inflate to.
	inflated int64
	// object is how many bytes one object of a pack may have that goes straight to disk.
	object int64
	small  int   // bytes of one incoming pack that stays in memory alone
	cache  int64 // bytes of recently read objects, while much is read
	rest   int64 // the same after forget
	// increment is how many objects may come on top of what is there. When a branch was rewritten, the
	// server may have to send all of its history, because this mirror lacks the commit where it forked.
	increment uint32
	// wants is how many objects are asked for at once: a server may refuse requests of more than a megabyte.
	wants int
}

var defaultLimits = limits{overlay: 32 << 20, fetch: 128 << 20, inflated: 256 << 20, object: 1 << 30, small: 2 << 20,
	cache: 32 << 20, rest: 4 << 20, increment: 250_000, wants: 10_000}

// unlimitedObject is how many bytes an object may have in a pack that goes straight to disk, where the process has
// no memory limit. go-git takes up to five times as much to make it of a delta.
const unlimitedObject = 256 << 20

// process are the limits of a process whose memory is limited to so many bytes, on a machine that has so many. A
// limit of math.MaxInt64: it is not limited. A machine of 0: its memory is not known.
func (l limits) process(limit int64, machine uint64) limits {
	if limit == math.MaxInt64 {
		l.object = unlimitedObject
	}
	if machine > 0 && machine < math.MaxInt64 {
		limit = min(limit, int64(machine))
	}
	return l.within(limit)
}

// within are the limits of a process that has so many bytes of memory.
func (l limits) within(memory int64) limits {
	l.fetch = int(min(int64(l.fetch), memory/16))
	l.inflated, l.object = min(l.inflated, memory/8), min(l.object, memory/8)
	return l
}

func newStore(dir string, l limits) *store {
	return &store{dir: dir, limits: l, packs: newPacks(filepath.Join(dir, packDir), l.cache), fresh: map[Hash]obj{}}
}

// cacheSize is how much of what is read is kept, in bytes.
func (s *store) cacheSize() int64 {
	if s.resting {
		return s.limits.rest
	}
	return s.limits.cache
}

// forget gives up objects that were read and what their packs' indexes were made into, to be read again when they are
// needed. From now on few objects are kept. Many that are in memory alone go to disk.
func (s *store) forget() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resting = true
	if s.size <= s.limits.overlay/2 {
		return s.reopenLocked()
	}
	err := s.flushLocked()
	if err != nil { // they stay in memory
		err = errors.Join(fmt.Errorf("write what is new to the mirror: %w", err), s.reopenLocked())
	}
	return err
}

// reset starts over after the files on disk were replaced by change.
func (s *store) reset(change func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resting, s.fresh, s.size, s.bad = false, map[Hash]obj{}, 0, nil
	s.filled++
	return s.packs.anew(s.cacheSize(), change)
}

// close writes out what is only in memory and releases the files.
func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.flushLocked()
	return errors.Join(err, s.packs.anew(s.cacheSize(), nil))
}

// has says whether an object is there. Where the packs cannot be opened, that is noted as damage, and none on disk is.
func (s *store) has(h Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.fresh[h]; ok {
		return true
	}
	has := false
	s.inPacksLocked(func(on openPacks) { has = on.with(h) != nil })
	return has
}

// inPacksLocked has look use the packs, or none where they cannot be opened: the mirror is damaged then.
func (s *store) inPacksLocked(look func(openPacks)) {
	err := s.packs.use(func(on openPacks) error {
		look(on)
		return nil
	})
	if err != nil {
		s.bad = err
		look(nil)
	}
}

// lacking are those of the objects that are not there, each once; with packs that cannot be opened as has.
func (s *store) lacking(hashes []Hash) []Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Hash
	seen := map[Hash]bool{}
	s.inPacksLocked(func(on openPacks) {
		for _, h := range hashes {
			if _, ok := s.fresh[h]; ok || seen[h] || h == emptyTree || on.with(h) != nil {
				continue
			}
			seen[h] = true
			out = append(out, h)
		}
	})
	return out
}

func (s *store) isPartial() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partial
}

// becomePartial says that blobs may be missing from now on.
func (s *store) becomePartial() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = true
	return markPromised(filepath.Join(s.dir, packDir))
}

// spoil notes that the mirror is of no use as it is.
func (s *store) spoil(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = reason
}

// damage is what was found wrong since the last reset, or nil.
func (s *store) damage() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad
}

// add takes objects into memory. Together with what the store holds they must be complete.
func (s *store) add(objs []obj) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objs {
		if _, ok := s.fresh[o.hash]; !ok {
			s.fresh[o.hash] = o
			s.size += int64(len(o.data))
		}
	}
	if s.size > s.limits.overlay {
		return s.flushLocked()
	}
	return nil
}

// sizeOf is how many bytes are in objects.
func sizeOf(objs []obj) int64 {
	var size int64
	for i := range objs {
		size += int64(len(objs[i].data))
	}
	return size
}

// addPacked takes objects in that a pack of is there already: one that is too large for memory goes to disk as it is.
func (s *store) addPacked(objs []obj, p pack) error {
	if sizeOf(objs) <= s.limits.overlay {
		return s.add(objs)
	}
	return s.toDisk(objs, p)
}

// addReceived takes objects in that came as a pack. It says whether they went to disk.
func (s *store) addReceived(objs []obj, p pack) (onDisk bool, err error) {
	if len(p.data) <= s.limits.small && sizeOf(objs) <= s.limits.overlay/4 {
		return false, s.add(objs)
	}
	return true, s.toDisk(objs, p)
}

// toDisk writes a pack of these objects. What is in memory goes to disk first: see the package's invariants.
func (s *store) toDisk(objs []obj, p pack) error {
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.writeWithIndex(p, objs); err != nil {
		return err
	}
	return s.show()
}

// flush writes what is only in memory to disk.
func (s *store) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushLocked()
}

func (s *store) flushLocked() error {
	if len(s.fresh) == 0 {
		return nil
	}
	objs := make([]obj, 0, len(s.fresh))
	for _, o := range s.fresh {
		objs = append(objs, o)
	}
	pack, err := encodePack(objs)
	if err != nil {
		return err
	}
	if err := s.writeWithIndex(pack, objs); err != nil {
		return err
	}
	s.fresh, s.size = map[Hash]obj{}, 0
	return s.showLocked()
}

// writeWithIndex writes a pack of these objects to disk. It needs no lock: the pack is there as a whole, or not at all.
func (s *store) writeWithIndex(p pack, objs []obj) error {
	dir := filepath.Join(s.dir, packDir)
	if err := p.writeTo(dir, objs); err != nil {
		return errors.Join(fmt.Errorf("write pack: %w", err), removeTemporary(dir))
	}
	return nil
}

// writePack stores a pack and its index. What is in memory goes to disk first: see the package's invariants.
func (s *store) writePack(pack io.Reader) error {
	if err := s.flush(); err != nil {
		return err
	}
	// The download happens here, so reads must not wait for it: the pack is stored beside the open ones.
	side := filesystem.NewStorage(osfs.New(s.dir, osfs.WithBoundOS()), cache.NewObjectLRU(0))
	to, err := side.PackfileWriter()
	if err == nil {
		err = cmp.Or(passPack(to, pack, s.limits.object), to.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write pack: %w", err), removeTemporary(filepath.Join(s.dir, packDir)))
	}
	return s.show()
}

// show makes packs visible that came to disk by another way than theirs, and marks those of a partial mirror.
func (s *store) show() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.showLocked()
}

func (s *store) showLocked() error {
	var err error
	if s.partial {
		err = markPromised(filepath.Join(s.dir, packDir))
	}
	return errors.Join(err, s.reopenLocked())
}

// reopenLocked has the packs opened anew.
func (s *store) reopenLocked() error {
	return s.packs.anew(s.cacheSize(), nil)
}
