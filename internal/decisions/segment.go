package decisions

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"time"
)

// Version of the coding of segments that Encoder writes: a segment's first byte. A reader keeps reading all versions that
// there ever were.
const Version = 1

// ErrVersion is what a segment of an unknown version is refused with: it is from a newer Rampart, or it is no segment.
var ErrVersion = errors.New("unknown version")

// ErrOrder is what a segment is refused with that does not follow the last one that the state has seen.
var ErrOrder = errors.New("the segment does not follow the one before it")

// Header of a segment, which can be read without the segments before it.
type Header struct {
	// Version of the coding.
	Version int
	// Sequence of the segment in its epoch: the first is 0, and needs no other segment.
	Sequence int
	// Decisions in the segment.
	Decisions int
	// First and Last are the times of the earliest and the latest decision: whole seconds, UTC.
	First, Last time.Time
}

// Filter says which decisions are wanted. Its zero value wants all.
type Filter struct {
	// Deployment as namespace/name; "" is any.
	Deployment string
	// Since and Until bound the time: Since is included, Until is not. Zero: no bound.
	Since, Until time.Time
}

// Encoder makes segments.
type Encoder struct{ s *State }

// NewEncoder makes segments that follow those that the state has seen. Nothing else may use the state meanwhile.
func NewEncoder(s *State) *Encoder { return &Encoder{s} }

// Append codes decisions, in the order in which they are given, as the epoch's next segment. An error names the decision and
// leaves the state as it was, but for an error in what the state has decoded before. A segment that could not be written has to
// be written before the next one: where something else was written in its place, the state is rebuilt from what was written and
// the decisions are coded anew.
func (e *Encoder) Append(ds []Decision) ([]byte, error) {
	s := e.s
	if len(ds) == 0 || len(ds) > maxDecisions {
		return nil, fmt.Errorf("%d decisions are no segment: it has 1 to %d", len(ds), maxDecisions)
	}
	entries, size := make([]*entry, len(ds)), uint64(0)
	for i := range ds {
		x, err := entryOf(&ds[i])
		if err != nil {
			return nil, fmt.Errorf("decision %d (%s): %w", i+1, ds[i].ID, err)
		}
		if size += uint64(x.doc.size); size > maxSizeOfAll {
			return nil, fmt.Errorf("decision %d (%s): the segment gets larger than %d bytes of JSON: flush more often", i+1, ds[i].ID, maxSizeOfAll)
		}
		entries[i] = x
	}
	if err := s.catchUp(); err != nil {
		return nil, err
	}
	h := &head{State: s, coder: newWriter(s.mem)}
	for _, x := range entries {
		if err := h.entry(x); err != nil {
			return nil, err
		}
	}
	segment := s.seal(s.join(entries, h.finish()))
	if s.sequence == 1 { // as a reader learns it from the epoch's first segment
		first := slices.MinFunc(entries, func(a, b *entry) int { return cmp.Compare(a.now, b.now) })
		s.month = monthOf(first.now)
	}
	return segment, nil
}

// catchUp reads what nobody asked for before.
func (s *State) catchUp() error {
	if s.err == nil {
		s.err = s.inLanes(func(l *lane) error { return l.read() })
	}
	return s.err
}

// inLanes does something in all lanes, side by side. The error is that of the first of them.
func (s *State) inLanes(do func(*lane) error) error {
	var errs [lanes]error
	var all sync.WaitGroup
	for i, l := range s.lanes {
		if l != nil {
			all.Go(func() { errs[i] = do(l) })
		}
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// parts are the decisions of each lane.
func (s *State) parts(entries []*entry) [lanes][]*entry {
	var parts [lanes][]*entry
	for _, e := range entries {
		n := e.of.lane
		parts[n] = append(parts[n], e)
		if s.lanes[n] == nil {
			s.lanes[n] = &lane{}
		}
	}
	return parts
}

// join codes the lanes: header, head and parts, each but the last with its length before it.
func (s *State) join(entries []*entry, head []byte) []byte {
	parts := s.parts(entries)
	var written [lanes][]byte
	var all sync.WaitGroup
	for i, p := range parts {
		if len(p) > 0 {
			all.Go(func() { written[i] = s.lanes[i].write(p) })
		}
	}
	all.Wait()
	b := s.header(entries)
	b = append(binary.AppendUvarint(b, uint64(len(head))), head...)
	for i, w := range written {
		if len(parts[i]) > 0 {
			b = append(binary.AppendUvarint(b, uint64(len(w))), w...)
		}
	}
	return b
}

// header is version, sequence, number of decisions, time of the earliest and how much later the latest is.
func (s *State) header(entries []*entry) []byte {
	first, last := entries[0].now, entries[0].now
	for _, e := range entries {
		first, last = min(first, e.now), max(last, e.now)
	}
	b := []byte{Version}
	b = binary.AppendUvarint(b, uint64(s.sequence))
	b = binary.AppendUvarint(b, uint64(len(entries)))
	b = binary.AppendUvarint(b, uint64(first))
	return binary.AppendUvarint(b, uint64(last-first))
}

// seal ends a segment with a check over it and all before it in the epoch.
func (s *State) seal(body []byte) []byte {
	s.check = follow(s.check, body)
	s.sequence++
	return binary.BigEndian.AppendUint32(body, s.check)
}

func follow(check uint32, body []byte) uint32 {
	return crc32.Update(check, crc32.MakeTable(crc32.Castagnoli), body)
}

// ReadHeader reads a segment's header. Errors: ErrVersion, or bytes that are damaged.
func ReadHeader(segment []byte) (Header, error) {
	h, _, err := readHeader(segment)
	return h, err
}

func readHeader(segment []byte) (Header, []byte, error) {
	if len(segment) == 0 {
		return Header{}, nil, fmt.Errorf("%w: it is empty", errDamaged)
	}
	if segment[0] != Version {
		return Header{}, nil, fmt.Errorf("%w %d of a segment of decisions: this Rampart reads %d", ErrVersion, segment[0], Version)
	}
	r := bytes.NewReader(segment[1:])
	var v [4]uint64
	for i, most := range [4]uint64{1 << 30, maxDecisions, maxInstant, maxInstant} {
		var err error
		if v[i], err = binary.ReadUvarint(r); err != nil || v[i] > most {
			return Header{}, nil, fmt.Errorf("%w: its header cannot be read", errDamaged)
		}
	}
	if r.Len() < 4 || v[1] == 0 || v[2]+v[3] > maxInstant {
		return Header{}, nil, fmt.Errorf("%w: its header cannot be read", errDamaged)
	}
	h := Header{Version: Version, Sequence: int(v[0]), Decisions: int(v[1]), First: time.Unix(int64(v[2]), 0).UTC(), Last: time.Unix(int64(v[2]+v[3]), 0).UTC()}
	return h, segment[len(segment)-r.Len() : len(segment)-4], nil
}
