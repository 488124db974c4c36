package git

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // the pack format's checksum; object names use the collision-detecting SHA-1
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zlib"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/rampart-gitops/rampart/internal/cores"
)

// errBatchFull says that a pack inflates to more than is taken into memory.
var errBatchFull = errors.New("pack is too large for memory")

// readPack reads a whole pack of most bytes at most, and inflates its objects while the rest is on its way. It inflates
// each once; go-git's parser, which is for packs of any size, does so twice or more. They take limit bytes at most.
// Errors: errBatchFull, with what was read; what is wrong with the pack.
func readPack(from io.Reader, most int, limit int64) (*unpacking, error) {
	came := &came{from: from, most: most}
	u := &unpacking{came: came, in: bufio.NewReaderSize(came, 64<<10), left: limit}
	if err := u.read(); err != nil {
		return u, err
	}
	return u, nil
}

// came is what came of a pack, in pieces: it may be large, and how large is not known until it is there.
type came struct {
	from   io.Reader
	pieces [][]byte
	size   int // bytes of them
	most   int // bytes that are taken
}

// Bounds of a piece of what came, in bytes.
const (
	leastPiece = 4 << 10
	mostPiece  = 1 << 20
)

func (c *came) Read(p []byte) (int, error) {
	if c.size >= c.most {
		return 0, errBatchFull
	}
	n, err := c.from.Read(p[:min(len(p), c.most-c.size)])
	for p = p[:n]; len(p) > 0; {
		last := len(c.pieces) - 1
		if last < 0 || len(c.pieces[last]) == cap(c.pieces[last]) {
			c.pieces = append(c.pieces, make([]byte, 0, min(max(c.size, leastPiece), mostPiece)))
			last++
		}
		k := min(len(p), cap(c.pieces[last])-len(c.pieces[last]))
		c.pieces[last] = append(c.pieces[last], p[:k]...)
		p, c.size = p[k:], c.size+k
	}
	return n, err
}

// whole is all that came.
func (c *came) whole() []byte {
	if len(c.pieces) != 1 {
		c.pieces = [][]byte{bytes.Join(c.pieces, nil)}
	}
	return c.pieces[0]
}

// read reads all of it.
func (u *unpacking) read() error {
	var header [packHeader]byte
	if _, err := io.ReadFull(u.in, header[:]); err != nil || string(header[:4]) != "PACK" {
		return errors.Join(errors.New("it is not a pack"), err)
	}
	if version := binary.BigEndian.Uint32(header[4:]); version != packVersion {
		return fmt.Errorf("it is of version %d, not %d", version, packVersion)
	}
	count := int64(binary.BigEndian.Uint32(header[8:]))
	if u.left -= count * perObject; u.left < 0 {
		return errBatchFull
	}
	for i := range int(count) {
		u.starts = append(u.starts, u.at())
		u.objs = append(u.objs, obj{})
		if err := u.next(i); err != nil {
			return fmt.Errorf("object %d, at byte %d: %w", i, u.starts[i], notItsEnd(err))
		}
	}
	end := u.at()
	var sum [sha1.Size]byte
	if _, err := io.ReadFull(u.in, sum[:]); err != nil {
		return fmt.Errorf("its checksum: %w", notItsEnd(err))
	}
	if is := sha1.Sum(u.came.whole()[:end]); is != sum { //nolint:gosec // see the import
		return errors.New("its checksum is another one")
	}
	if n, err := u.in.WriteTo(io.Discard); n > 0 || err != nil {
		return errors.Join(fmt.Errorf("%d bytes are of no object", n), err)
	}
	return nil
}

// notItsEnd is an error in the middle of a pack.
func notItsEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// objects are those of the pack, in its order, and the pack. What deltas make counts, too.
// Errors: errBatchFull; what is wrong with the pack.
func (u *unpacking) objects() ([]obj, pack, error) {
	p := pack{u.came.whole(), u.starts}
	if err := u.resolve(); err != nil {
		return nil, p, err
	}
	return u.objs, p, nil
}

const (
	packVersion = 2
	// perObject is what an object in memory takes beside its data, in bytes.
	perObject = 100
	// usualObject is what objects take in memory on an average, in bytes, if they are small. A pack with so many that
	// this is too much is not tried.
	usualObject = 400
)

// unpacking is a pack while it is read.
type unpacking struct {
	came   *came
	in     *bufio.Reader // of what came
	left   int64         // bytes that may still be inflated
	objs   []obj         // of a delta that is not resolved the data is the delta
	starts []int

	inflater io.ReadCloser
	// deltas are those on an object, by its index; named are those on one that is named by its hash.
	deltas map[int][]int
	named  map[Hash][]int
}

// at is how many bytes of it were read.
func (u *unpacking) at() int { return u.came.size - u.in.Buffered() }

// next reads the next object.
func (u *unpacking) next(i int) error {
	kind, size, err := packedHeader(u.in)
	if err != nil {
		return err
	}
	switch kind {
	case plumbing.OFSDeltaObject:
		err = u.onOffset(i)
	case plumbing.REFDeltaObject:
		err = u.onHash(i)
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	default:
		err = fmt.Errorf("there are no objects of kind %d", kind)
	}
	if err != nil {
		return err
	}
	u.objs[i].kind = kind
	if err := u.take(size); err != nil {
		return err
	}
	u.objs[i].data, err = u.inflate(int(size))
	return err
}

// take counts what is about to be inflated.
func (u *unpacking) take(size uint64) error {
	if size > uint64(u.left) {
		return errBatchFull
	}
	u.left -= int64(size)
	return nil
}

// packedHeader is the inverse of writeObjectHeader.
func packedHeader(in *bufio.Reader) (plumbing.ObjectType, uint64, error) {
	b, err := in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size := plumbing.ObjectType(b>>4&7), uint64(b&0x0f)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = in.ReadByte(); err != nil {
			return 0, 0, err
		}
		if shift > 56 {
			return 0, 0, errors.New("it has an invalid size")
		}
		size |= uint64(b&0x7f) << shift
	}
	return kind, size, nil
}

// onOffset notes a delta on the object that begins so many bytes before it.
func (u *unpacking) onOffset(i int) error {
	b, err := u.in.ReadByte()
	if err != nil {
		return err
	}
	back := int64(b & 0x7f)
	for b&0x80 != 0 && back <= int64(u.starts[i]) {
		if b, err = u.in.ReadByte(); err != nil {
			return err
		}
		back = (back+1)<<7 | int64(b&0x7f)
	}
	base, ok := -1, false
	if back <= int64(u.starts[i]) {
		base, ok = slices.BinarySearch(u.starts[:i], u.starts[i]-int(back))
	}
	if !ok {
		return errors.New("it is a delta on something other than an object")
	}
	if u.deltas == nil {
		u.deltas = map[int][]int{}
	}
	u.deltas[base] = append(u.deltas[base], i)
	return nil
}

// onHash notes a delta on the object of a name.
func (u *unpacking) onHash(i int) error {
	var base Hash
	if _, err := io.ReadFull(u.in, base[:]); err != nil {
		return err
	}
	if u.named == nil {
		u.named = map[Hash][]int{}
	}
	u.named[base] = append(u.named[base], i)
	return nil
}

// inflate reads what follows, which has to inflate to so many bytes.
func (u *unpacking) inflate(size int) (_ []byte, err error) {
	if u.inflater == nil { // from a byte reader: no more of it is read than is needed
		u.inflater, err = zlib.NewReader(u.in)
	} else {
		err = u.inflater.(zlib.Resetter).Reset(u.in, nil)
	}
	if err != nil {
		return nil, err
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(u.inflater, out); err != nil {
		return nil, err
	}
	return out, atItsEnd(u.inflater)
}

// atItsEnd says whether all of an object was read.
func atItsEnd(inflater io.Reader) error {
	var more [1]byte
	switch n, err := inflater.Read(more[:]); { // its checksum is looked at here
	case n > 0:
		return errors.New("it inflates to more than it says")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// resolve names all objects, and makes those that are deltas. It begins with the whole ones, goes on with deltas on
// these, and so on.
func (u *unpacking) resolve() error {
	var now []int
	for i := range u.objs {
		if !u.objs[i].kind.IsDelta() {
			now = append(now, i)
		}
	}
	resolved := 0
	for len(now) > 0 {
		cores.Each(len(now), func(k int) {
			o := &u.objs[now[k]]
			o.hash = plumbing.ComputeHash(o.kind, o.data)
		})
		resolved += len(now)
		next, err := u.onto(now)
		if err != nil {
			return err
		}
		now = next
	}
	if resolved < len(u.objs) {
		return fmt.Errorf("%d deltas are on objects that are not in it", len(u.objs)-resolved)
	}
	return nil
}

// onto makes the objects of the deltas that are on some objects.
func (u *unpacking) onto(bases []int) ([]int, error) {
	type step struct{ base, delta int }
	var steps []step
	for _, base := range bases {
		for _, d := range u.deltas[base] {
			steps = append(steps, step{base, d})
		}
		if on := u.named[u.objs[base].hash]; on != nil {
			delete(u.named, u.objs[base].hash) // two objects of one name are the same
			for _, d := range on {
				steps = append(steps, step{base, d})
			}
		}
	}
	out := make([]int, len(steps))
	for k, s := range steps {
		out[k] = s.delta
		size, err := targetSize(u.objs[s.delta].data)
		if err == nil {
			err = u.take(size)
		}
		if err != nil {
			return nil, fmt.Errorf("object %d, at byte %d: %w", s.delta, u.starts[s.delta], err)
		}
	}
	errs := make([]error, len(steps))
	cores.Each(len(steps), func(k int) {
		base, o := &u.objs[steps[k].base], &u.objs[steps[k].delta]
		o.kind = base.kind
		o.data, errs[k] = packfile.PatchDelta(base.data, o.data)
		if cap(o.data) > len(o.data)+len(o.data)/4 { // it grew on the way
			o.data = bytes.Clone(o.data)
		}
	})
	if k := slices.IndexFunc(errs, func(err error) bool { return err != nil }); k >= 0 {
		return nil, fmt.Errorf("object %d, at byte %d: %w", steps[k].delta, u.starts[steps[k].delta], errs[k])
	}
	return out, nil
}

// targetSize is what a delta says of the size of what it makes, in bytes.
func targetSize(delta []byte) (uint64, error) {
	_, n := binary.Uvarint(delta) // the size of what it is on
	if n <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	size, m := binary.Uvarint(delta[n:])
	if m <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	return size, nil
}
