package mirror

import (
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

// unpack reads a whole pack into its objects, in the pack's order. They take limit bytes at most, what deltas are made of counted in. Each object is inflated once, where go-git's parser, which is for packs of any size, does so twice or more.
// Errors: errBatchFull; what is wrong with the pack.
func unpack(data []byte, limit int64) ([]obj, pack, error) {
	if len(data) < packHeader+sha1.Size || string(data[:4]) != "PACK" {
		return nil, pack{}, errors.New("it is no pack")
	}
	if version := binary.BigEndian.Uint32(data[4:]); version != packVersion {
		return nil, pack{}, fmt.Errorf("it is of version %d, not %d", version, packVersion)
	}
	end := len(data) - sha1.Size
	if sum := sha1.Sum(data[:end]); !bytes.Equal(sum[:], data[end:]) { //nolint:gosec // see the import
		return nil, pack{}, errors.New("its checksum is another one")
	}
	count := int64(binary.BigEndian.Uint32(data[8:]))
	if count > int64(end-packHeader)/leastObject {
		return nil, pack{}, errors.New("it has more objects than there are bytes for")
	}
	if count*perObject > limit {
		return nil, pack{}, errBatchFull
	}
	u := &unpacking{data: data[:end], at: packHeader, left: limit - count*perObject, objs: make([]obj, count), starts: make([]int, count)}
	for i := range u.objs {
		if err := u.next(i); err != nil {
			return nil, pack{}, fmt.Errorf("object %d, at byte %d: %w", i, u.starts[i], err)
		}
	}
	if u.at != end {
		return nil, pack{}, fmt.Errorf("%d bytes are of no object", end-u.at)
	}
	if err := u.resolve(); err != nil {
		return nil, pack{}, err
	}
	return u.objs, pack{data, u.starts}, nil
}

const (
	packVersion = 2
	// leastObject is how many bytes of a pack an object takes at the very least: one, and a zlib stream of nothing.
	leastObject = 9
	// perObject is what an object in memory takes beside its data, in bytes.
	perObject = 100
	// usualObject is what objects take in memory on an average, in bytes, if they are small: so many that this is too much are not tried.
	usualObject = 400
)

// unpacking is a pack while it is read.
type unpacking struct {
	data   []byte // without its checksum
	at     int    // bytes of it that were read
	left   int64  // bytes that may still be inflated
	objs   []obj  // of a delta that is not resolved the data is the delta
	starts []int

	inflater io.ReadCloser
	from     bytes.Reader
	// deltas are those on an object, by its index; named are those on one that is named by its hash.
	deltas map[int][]int
	named  map[Hash][]int
}

// next reads the next object.
func (u *unpacking) next(i int) error {
	u.starts[i] = u.at
	kind, size, err := u.header()
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

var errCut = errors.New("it ends before its end")

func (u *unpacking) byte() (byte, error) {
	if u.at >= len(u.data) {
		return 0, errCut
	}
	u.at++
	return u.data[u.at-1], nil
}

// take counts what is about to be inflated.
func (u *unpacking) take(size uint64) error {
	if size > uint64(u.left) {
		return errBatchFull
	}
	u.left -= int64(size)
	return nil
}

// header is the inverse of writeObjectHeader.
func (u *unpacking) header() (plumbing.ObjectType, uint64, error) {
	b, err := u.byte()
	if err != nil {
		return 0, 0, err
	}
	kind, size := plumbing.ObjectType(b>>4&7), uint64(b&0x0f)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = u.byte(); err != nil {
			return 0, 0, err
		}
		if shift > 56 {
			return 0, 0, errors.New("its size is no size")
		}
		size |= uint64(b&0x7f) << shift
	}
	return kind, size, nil
}

// onOffset notes a delta on the object that begins so many bytes before it.
func (u *unpacking) onOffset(i int) error {
	b, err := u.byte()
	if err != nil {
		return err
	}
	back := int64(b & 0x7f)
	for b&0x80 != 0 && back <= int64(len(u.data)) {
		if b, err = u.byte(); err != nil {
			return err
		}
		back = (back+1)<<7 | int64(b&0x7f)
	}
	base, ok := -1, false
	if back <= int64(u.starts[i]) {
		base, ok = slices.BinarySearch(u.starts[:i], u.starts[i]-int(back))
	}
	if !ok {
		return errors.New("it is a delta on what is no object")
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
	if u.at += copy(base[:], u.data[u.at:]); u.at >= len(u.data) {
		return errCut
	}
	if u.named == nil {
		u.named = map[Hash][]int{}
	}
	u.named[base] = append(u.named[base], i)
	return nil
}

// inflate reads what follows, which has to inflate to so many bytes.
func (u *unpacking) inflate(size int) (_ []byte, err error) {
	u.from.Reset(u.data[u.at:]) // a byte reader: no more of it is read than is needed
	if u.inflater == nil {
		u.inflater, err = zlib.NewReader(&u.from)
	} else {
		err = u.inflater.(zlib.Resetter).Reset(&u.from, nil)
	}
	if err != nil {
		return nil, err
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(u.inflater, out); err != nil {
		return nil, err
	}
	var more [1]byte
	if n, err := u.inflater.Read(more[:]); n > 0 || !errors.Is(err, io.EOF) { // its checksum is looked at here
		return nil, errors.Join(errors.New("it inflates to more than it says, or is damaged"), err)
	}
	u.at = len(u.data) - u.from.Len()
	return out, nil
}

// resolve names all objects, and makes those of deltas that are only that: first what is whole, then what is a delta on it, and so on.
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
