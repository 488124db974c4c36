package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the pack format's checksum; object names use the collision-detecting SHA-1
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zlib"
	"golang.org/x/sync/errgroup"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// packParallel is the number of objects from which a pack is compressed on all cores.
const packParallel = 64

const packHeader = 12 // "PACK", version, count

// pack is a pack as it goes to disk.
type pack struct {
	data []byte
	// starts are where the objects begin, in bytes and in their order.
	starts []int
}

// encodePack writes objects as a pack of whole objects. Looking for deltas costs far more than it saves
// at the size of a commit, here and on the server.
func encodePack(objs []obj) (pack, error) {
	workers := 1
	if len(objs) >= packParallel {
		workers = runtime.GOMAXPROCS(0)
	}
	parts := make([]bytes.Buffer, workers)
	starts := make([]int, len(objs))
	per := (len(objs) + workers - 1) / workers
	part := func(i int) (from, to int) { return min(i*per, len(objs)), min((i+1)*per, len(objs)) }
	var group errgroup.Group
	for i := range parts {
		group.Go(func() error {
			from, to := part(i)
			return deflate(&parts[i], objs[from:to], starts[from:to])
		})
	}
	if err := group.Wait(); err != nil {
		return pack{}, err
	}
	size := packHeader + sha1.Size
	for i := range parts {
		size += parts[i].Len()
	}
	out := make([]byte, 0, size)
	out = append(out, "PACK"...)
	out = binary.BigEndian.AppendUint32(out, 2)
	out = binary.BigEndian.AppendUint32(out, uint32(len(objs)))
	for i := range parts {
		from, to := part(i)
		for k := range starts[from:to] {
			starts[from+k] += len(out)
		}
		out = append(out, parts[i].Bytes()...)
	}
	sum := sha1.Sum(out) //nolint:gosec // see the import
	return pack{append(out, sum[:]...), starts}, nil
}

// sum is what the pack is named by.
func (p pack) sum() Hash { return Hash(p.data[len(p.data)-sha1.Size:]) }

// index makes the index of a pack of these objects. All of it is known: code that makes it of the pack alone has to
// inflate and hash each object again.
func (p pack) index(objs []obj) (*idxfile.MemoryIndex, error) {
	var w idxfile.Writer
	if err := w.OnHeader(uint32(len(objs))); err != nil {
		return nil, err
	}
	end := len(p.data) - sha1.Size
	for i := len(objs) - 1; i >= 0; i-- {
		w.Add(objs[i].hash, uint64(p.starts[i]), crc32.ChecksumIEEE(p.data[p.starts[i]:end]))
		end = p.starts[i]
	}
	if err := w.OnFooter(p.sum()); err != nil {
		return nil, err
	}
	return w.Index()
}

// writeTo writes the pack into a folder of packs, and its index before it, each whole or not at all.
func (p pack) writeTo(dir string, objs []obj) error {
	index, err := p.index(objs)
	if err != nil {
		return err
	}
	var encoded bytes.Buffer
	if _, err := idxfile.NewEncoder(&encoded).Encode(index); err != nil {
		return err
	}
	name := packPrefix + p.sum().String()
	if err := writeWhole(dir, name+".idx", encoded.Bytes()); err != nil {
		return err
	}
	return writeWhole(dir, name+".pack", p.data)
}

// writeWhole writes a file that is never written again.
func writeWhole(dir, name string, data []byte) error {
	const readOnly = 0o444 // as git's are
	tmp := filepath.Join(dir, temporary+name)
	if err := os.WriteFile(tmp, data, readOnly); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, name))
}

// deflaters are used again: each has tables of hundreds of kilobytes, and most packs a few objects.
var deflaters = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if err != nil {
		panic(err) // there is such a level
	}
	return w
}}

// deflate appends objects, and says where each begins.
func deflate(out *bytes.Buffer, objs []obj, starts []int) error {
	w := deflaters.Get().(*zlib.Writer)
	defer func() { w.Reset(nil); deflaters.Put(w) }()
	for i := range objs {
		starts[i] = out.Len()
		writeObjectHeader(out, objs[i].kind, len(objs[i].data))
		w.Reset(out)
		if _, err := w.Write(objs[i].data); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// writeObjectHeader writes type and size. The first byte has three bits of type and four of size. Each that follows has
// seven bits of size. The top bit says that there is one more.
func writeObjectHeader(out *bytes.Buffer, kind plumbing.ObjectType, size int) {
	b := byte(kind)<<4 | byte(size&0x0f)
	for size >>= 4; size > 0; size >>= 7 {
		out.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	out.WriteByte(b)
}
