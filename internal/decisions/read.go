package decisions

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Decoder reads segments.
type Decoder struct{ s *State }

// NewDecoder reads segments that follow those that the state has seen. Nothing else may use the state meanwhile.
func NewDecoder(s *State) *Decoder { return &Decoder{s} }

// Decode gives the decisions of the next segment that the filter wants, in the order in which they were given to Append. What a
// filter does not want is read when it is asked for, with a later segment, or when it is needed to code one: a filter by
// deployment is quick. Errors: ErrVersion, ErrOrder, or bytes that are damaged, be they of an earlier segment. After an error the
// state is of no use any more.
func (d *Decoder) Decode(segment []byte, f Filter) ([]Decision, error) {
	var out []Decision
	_, err := d.Each(context.Background(), [][]byte{segment}, Visitor{f, func(ds []Decision) bool { out = ds; return true }})
	return out, err
}

// Visitor wants decisions.
type Visitor struct {
	Filter Filter
	// Visit is called with the wanted decisions of each segment, which may be none, in the order of the segments. It says whether to go on.
	Visit func(ds []Decision) bool
}

// Each reads the next segments, as Decode does one after the other; lanes are read side by side, some segments ahead of what is visited.
// An error comes with the number of segments before the one that it is about; it is Decode's, or the context's. After it, and after Visit
// said that it has enough, the state is of no use any more.
func (d *Decoder) Each(ctx context.Context, segments [][]byte, v Visitor) (int, error) {
	s := d.s
	if s.err != nil {
		return 0, fmt.Errorf("%w: an earlier one could not be read: %w", ErrOrder, s.err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := reading{State: s, ctx: ctx, filter: v.Filter, opened: make(chan *opened, ahead)}
	r.all.Go(func() { r.open(segments) })
	defer r.all.Wait()
	defer cancel(errEnough)
	n := 0
	for ; n < len(segments); n++ {
		var ds []Decision
		o, err := r.next()
		if err == nil {
			ds, err = o.decisions()
		}
		if err != nil {
			s.err = err
			return n, err
		}
		if !v.Visit(ds) {
			s.err = errEnough
			return n, nil
		}
	}
	return n, nil
}

var errEnough = errors.New("the reader had enough")

// ahead is how many segments are read before they are visited.
const ahead = 32

// reading is a run of Each: segments are opened one after the other, and each lane does what is asked of it in that order.
type reading struct {
	*State
	ctx    context.Context
	filter Filter
	opened chan *opened
	jobs   [lanes]chan job
	all    sync.WaitGroup
}

// opened is a segment of which time and deployment of the decisions are known.
type opened struct {
	entries []*entry
	filter  Filter
	// lanes are done with it; size is of what is wanted.
	lanes sync.WaitGroup
	size  atomic.Uint64
	errs  [lanes]error
	err   error
}

// job is what a lane has to read for a segment: its part of that, and of those before it that nobody asked for.
type job struct {
	of    *opened
	parts []part
}

// next is the next segment, when the lanes are done with it.
func (r *reading) next() (*opened, error) {
	select {
	case o := <-r.opened:
		o.lanes.Wait()
		return o, nil
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}

// open opens the segments until one cannot be.
func (r *reading) open(segments [][]byte) {
	defer func() {
		for _, jobs := range r.jobs {
			if jobs != nil {
				close(jobs)
			}
		}
	}()
	for _, segment := range segments {
		o := &opened{filter: r.filter}
		if o.entries, o.err = r.State.open(segment); o.err == nil {
			r.ask(o)
		}
		select {
		case r.opened <- o:
		case <-r.ctx.Done():
			return
		}
		if o.err != nil {
			return
		}
	}
}

// ask asks those lanes that have something that is wanted.
func (r *reading) ask(o *opened) {
	var wanted [lanes]bool
	for _, e := range o.entries {
		e.wanted = r.filter.wants(e)
		wanted[e.of.lane] = wanted[e.of.lane] || e.wanted
	}
	for i, l := range r.lanes {
		if !wanted[i] {
			continue
		}
		if r.jobs[i] == nil {
			r.jobs[i] = make(chan job, ahead)
			r.all.Go(func() { r.lane(i) })
		}
		o.lanes.Add(1)
		r.jobs[i] <- job{o, l.pending} // there is room, unless the lane is that far behind
		l.pending = nil
	}
}

// lane does what is asked of a lane, until something fails.
func (r *reading) lane(i int) {
	var failed error
	for j := range r.jobs[i] {
		for _, p := range j.parts {
			if failed == nil {
				failed = context.Cause(r.ctx)
			}
			if failed == nil {
				failed = r.lanes[i].decode(p)
			}
		}
		if failed == nil {
			failed = j.of.fill(j.parts[len(j.parts)-1])
		}
		j.of.errs[i] = failed
		j.of.lanes.Done()
	}
}

// fill makes the wanted decisions of a part.
func (o *opened) fill(p part) (err error) {
	for i, e := range p.entries {
		if e.wanted {
			if o.size.Add(uint64(e.doc.size)) > maxSizeOfAll {
				return fmt.Errorf("segment %d: %w: there is too much in it", p.sequence, errDamaged)
			}
			if e.made, err = e.decision(); err != nil {
				return fmt.Errorf("segment %d, decision %d of its lane: %w", p.sequence, i+1, err)
			}
		}
		e.doc = nil
	}
	return nil
}

// decisions are those that are wanted.
func (o *opened) decisions() ([]Decision, error) {
	for _, err := range append(o.errs[:], o.err) {
		if err != nil {
			return nil, err
		}
	}
	var out []Decision
	for _, e := range o.entries {
		if e.wanted {
			out = append(out, e.made)
		}
	}
	return out, nil
}

// open reads time and deployment of each decision, and gives the rest to the lanes: it is pending there.
func (s *State) open(segment []byte) ([]*entry, error) {
	h, body, err := readHeader(segment)
	switch {
	case err != nil:
		return nil, err
	case h.Sequence != s.sequence:
		return nil, fmt.Errorf("%w: it is number %d of its epoch, expected was %d", ErrOrder, h.Sequence, s.sequence)
	}
	check := follow(s.check, segment[:len(segment)-4])
	if check != binary.BigEndian.Uint32(segment[len(segment)-4:]) {
		return nil, fmt.Errorf("%w, or it is of another epoch", errDamaged)
	}
	data, body, err := chunk(body)
	if err != nil {
		return nil, err
	}
	entries := make([]*entry, h.Decisions)
	r := &head{State: s, coder: newReader(s.mem, data)}
	for i := range entries {
		entries[i] = &entry{}
		if err := r.entry(entries[i]); err != nil {
			return nil, err
		}
		if r.overrun() {
			return nil, errDamaged
		}
	}
	for i, p := range s.parts(entries) {
		if len(p) == 0 {
			continue
		}
		if data, body, err = chunk(body); err != nil {
			return nil, err
		}
		s.lanes[i].pending = append(s.lanes[i].pending, part{h.Sequence, p, data})
	}
	if len(body) > 0 {
		return nil, fmt.Errorf("%w: %d bytes are left over", errDamaged, len(body))
	}
	if s.sequence == 0 {
		s.month = monthOf(h.First.Unix())
	}
	s.check = check
	s.sequence++
	return entries, nil
}

// chunk takes off bytes with their length before them.
func chunk(b []byte) (data, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, fmt.Errorf("%w: it is cut off", errDamaged)
	}
	return b[size : size+int(n)], b[size+int(n):], nil
}

func (f Filter) wants(e *entry) bool {
	t := time.Unix(e.now, 0)
	return (f.Deployment == "" || f.Deployment == e.of.name) && (f.Since.IsZero() || !t.Before(f.Since)) && (f.Until.IsZero() || t.Before(f.Until))
}
