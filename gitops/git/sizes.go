package git

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"

	"github.com/go-git/go-git/v5/plumbing"
)

// passPack hands a pack on while it is read, up to what is wrong with it. An object of more than most bytes is, too:
// go-git, which gets the pack, makes each whole in memory to find its name. So are more than maxObjects objects.
func passPack(to io.Writer, pack io.Reader, most int64) error {
	held := &held{from: pack, to: to}
	s := &sizes{in: bufio.NewReaderSize(held, 32<<10), most: uint64(most)}
	if err := s.read(); err != nil {
		return err
	}
	return held.release()
}

// held hands on what it read last when more is asked for: what was looked at.
type held struct {
	from io.Reader
	to   io.Writer
	last []byte
}

func (h *held) Read(p []byte) (int, error) {
	if err := h.release(); err != nil {
		return 0, err
	}
	n, err := h.from.Read(p)
	h.last = append(h.last, p[:n]...)
	return n, err
}

func (h *held) release() error {
	_, err := h.to.Write(h.last)
	h.last = h.last[:0]
	return err
}

// sizes reads a pack for how large its objects are.
type sizes struct {
	in       *bufio.Reader
	most     uint64
	inflater io.ReadCloser
}

// maxObjects is how many objects a pack may say that it has. go-git makes room for all of them before it reads the
// first one.
const maxObjects = 5_000_000

func (s *sizes) read() error {
	var header [packHeader]byte
	if _, err := io.ReadFull(s.in, header[:]); err != nil {
		return notItsEnd(err)
	}
	count := binary.BigEndian.Uint32(header[8:])
	if count > maxObjects {
		return fmt.Errorf("it has %d objects, more than the %d allowed", count, maxObjects)
	}
	for i := range int(count) {
		size, err := s.next()
		if err == nil && size > s.most {
			err = fmt.Errorf("it has %d bytes, or is made of as many, more than the %d that there is memory for: "+
				"raise GOMEMLIMIT to eight times as much, "+
				"where the machine has that, or let the Git server leave contents out", size, s.most)
		}
		if err != nil {
			return fmt.Errorf("object %d: %w", i, notItsEnd(err))
		}
	}
	_, err := s.in.WriteTo(io.Discard)
	return err
}

// next reads an object and says how large it is: of a delta the largest of itself, what it is on and what it makes. One
// that is too large is not read.
func (s *sizes) next() (uint64, error) {
	kind, size, err := packedHeader(s.in)
	if err == nil {
		err = s.skipBase(kind)
	}
	if err != nil || size > s.most {
		return size, err
	}
	if s.inflater == nil {
		s.inflater, err = zlib.NewReader(s.in)
	} else {
		err = s.inflater.(zlib.Resetter).Reset(s.in, nil)
	}
	if err != nil {
		return size, err
	}
	var start [2 * binary.MaxVarintLen64]byte
	n := 0
	if kind.IsDelta() {
		if n, err = io.ReadFull(s.inflater, start[:min(size, uint64(len(start)))]); err != nil {
			return size, err
		}
		base, k := binary.Uvarint(start[:n])
		result, m := binary.Uvarint(start[max(k, 0):n])
		if k <= 0 || m <= 0 {
			return size, errors.New("it is not a delta")
		}
		if most := max(size, base, result); most > s.most {
			return most, nil
		}
	}
	if _, err = io.CopyN(io.Discard, s.inflater, int64(size)-int64(n)); err != nil {
		return size, err
	}
	return size, atItsEnd(s.inflater)
}

// skipBase reads which object a delta is on.
func (s *sizes) skipBase(kind plumbing.ObjectType) error {
	switch kind {
	case plumbing.REFDeltaObject:
		_, err := s.in.Discard(len(Hash{}))
		return err
	case plumbing.OFSDeltaObject:
		for {
			if b, err := s.in.ReadByte(); err != nil || b&0x80 == 0 {
				return err
			}
		}
	}
	return nil
}
