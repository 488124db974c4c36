package mirror

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the pack format's checksum; object names use the collision-detecting SHA-1
	"encoding/binary"
	"runtime"

	"github.com/klauspost/compress/zlib"
	"golang.org/x/sync/errgroup"

	"github.com/go-git/go-git/v5/plumbing"
)

// packParallel is the number of objects from which a pack is compressed on all cores.
const packParallel = 64

const packHeader = 12 // "PACK", version, count

// encodePack writes objects as a pack of whole objects. Looking for deltas costs far more than it saves
// at the size of a commit, here and on the server.
func encodePack(objs []obj) ([]byte, error) {
	workers := 1
	if len(objs) >= packParallel {
		workers = runtime.GOMAXPROCS(0)
	}
	parts := make([]bytes.Buffer, workers)
	per := (len(objs) + workers - 1) / workers
	var group errgroup.Group
	for i := range parts {
		group.Go(func() error {
			return deflate(&parts[i], objs[min(i*per, len(objs)):min((i+1)*per, len(objs))])
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
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
		out = append(out, parts[i].Bytes()...)
	}
	sum := sha1.Sum(out) //nolint:gosec // see the import
	return append(out, sum[:]...), nil
}

func deflate(out *bytes.Buffer, objs []obj) error {
	w, err := zlib.NewWriterLevel(out, zlib.BestSpeed)
	if err != nil {
		return err
	}
	for i := range objs {
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

// writeObjectHeader writes type and size: three bits of type and four of size in the first byte, seven
// bits of size in each that follows, the top bit saying that there is one more.
func writeObjectHeader(out *bytes.Buffer, kind plumbing.ObjectType, size int) {
	b := byte(kind)<<4 | byte(size&0x0f)
	for size >>= 4; size > 0; size >>= 7 {
		out.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	out.WriteByte(b)
}
