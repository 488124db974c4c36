package decisions

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
)

// State is what the segments of an epoch, up to one of them, have taught: to code the next one, or to read it. It is
// rebuilt by decoding the epoch's segments in order.
type State struct {
	next32 int
	// check of the last segment, over all before it.
	check  uint32
	month  time.Time
	spoilt bool

	mem         *memory
	top         *place
	deployments map[string]*deployment
	// order of the deployments, the one that was decided last first.
	order []*deployment

	lasts        map[uint64]*node
	followers    map[uint64]*node
	sources      map[uint64]*place
	hits         map[uint32]uint8
	shapes       map[string]*shape
	shapeList    []*shape
	shapeAt      map[uint64]*shape
	templates    map[string]*template
	templateList []*template
	templateAt   map[uint64]*template
	labels       map[string]uint32
	labelList    []string
	labelAfter   map[uint64][]uint32
	history      []byte
	matches      []uint32
	lastTime     int64
}

// NewState is the state before an epoch's first segment.
func NewState() *State {
	return &State{mem: newMemory(), top: &place{like: 1, exact: 2, index: -1}, deployments: map[string]*deployment{}, lasts: map[uint64]*node{},
		followers: map[uint64]*node{}, sources: map[uint64]*place{}, hits: map[uint32]uint8{}, shapes: map[string]*shape{}, shapeAt: map[uint64]*shape{},
		templates: map[string]*template{}, templateAt: map[uint64]*template{}, labels: map[string]uint32{}, labelAfter: map[uint64][]uint32{},
		history: []byte{0}, matches: make([]uint32, 1<<16)}
}

// Next is the sequence of the segment that follows.
func (s *State) Next() int { return s.next32 }

// maxLearned bounds what a state holds: values in all its tables.
const maxLearned = 1 << 21

// Over reports whether a decision of time t (Unix seconds) has to begin a new epoch, with a NewState: it is of another
// month than the epoch, or the state has grown to its bounds.
func (s *State) Over(unix int64) bool {
	if s.next32 == 0 {
		return false
	}
	return !monthOf(time.Unix(unix, 0)).Equal(s.month) || s.full()
}

func (s *State) full() bool {
	return len(s.lasts)+len(s.followers)+len(s.sources)+len(s.templateList)+len(s.shapeAt) > maxLearned || len(s.templateList) >= maxTemplates-1024 ||
		len(s.deployments) > maxDeployments
}

const maxDeployments = 1 << 16

func monthOf(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// Encoder makes segments.
type Encoder struct{ s *State }

// NewEncoder makes segments that follow those that the state has seen. Nothing else may use the state meanwhile.
func NewEncoder(s *State) *Encoder { return &Encoder{s} }

// entry is a decision to code.
type entry struct {
	now  int64
	name string
	doc  *node
}

// Append codes decisions, in the order in which they are given, as the epoch's next segment. An error names the decision and
// leaves the state as it was. A segment that could not be written has to be written before the next one: where something
// else was written in its place, the state is rebuilt from what was written and the decisions are coded anew.
func (e *Encoder) Append(ds []Decision) ([]byte, error) {
	s := e.s
	if len(ds) == 0 || len(ds) > maxDecisions {
		return nil, fmt.Errorf("%d decisions are no segment: it has 1 to %d", len(ds), maxDecisions)
	}
	entries, size := make([]entry, len(ds)), uint64(0)
	for i := range ds {
		x, err := entryOf(&ds[i])
		if err != nil {
			return nil, fmt.Errorf("decision %d (%s): %w", i+1, ds[i].ID, err)
		}
		if size += uint64(x.doc.size); size > maxSizeOfAll/8 {
			return nil, fmt.Errorf("decision %d (%s): the segment gets larger than %d bytes: flush more often", i+1, ds[i].ID, maxSizeOfAll/8)
		}
		entries[i] = x
	}
	m := &model{State: s, coder: newWriter(s.mem)}
	head := s.header(entries)
	for i := range entries {
		m.decision(&entries[i])
	}
	body := append(head, m.finish()...)
	s.month = monthOf(time.Unix(entries[0].now, 0))
	return s.seal(body), nil
}

func entryOf(d *Decision) (entry, error) {
	name, err := d.Deployment()
	if err != nil {
		return entry{}, err
	}
	if d.Timestamp.Nanosecond() != 0 {
		return entry{}, fmt.Errorf("its time %s is not in whole seconds", d.Timestamp)
	}
	if now := d.Timestamp.Unix(); now < 0 || now > maxInstant {
		return entry{}, fmt.Errorf("its time %s is before 1970, or after the year 9999", d.Timestamp)
	}
	input, err := parsed(inputRoot, d.Input)
	if err != nil {
		return entry{}, err
	}
	result, err := parsed(resultRoot, d.Result)
	if err != nil {
		return entry{}, err
	}
	doc := map[string]any{"path": d.Path, inputRoot: input, resultRoot: result}
	rest, err := json.Marshal(struct {
		Labels  map[string]string
		Bundles map[string]Bundle
		Erased  []string
	}{d.Labels, d.Bundles, d.Erased})
	if err != nil {
		return entry{}, fmt.Errorf("encode its labels: %w", err)
	}
	if doc["meta"], err = parse(rest); err != nil {
		return entry{}, fmt.Errorf("encode its labels: %w", err)
	}
	tree := nodeOfDocument(doc)
	if depth(tree) >= maxDepth || tree.size > maxSize {
		return entry{}, fmt.Errorf("its JSON is nested more than %d deep, or larger than %d bytes", maxDepth, maxSize)
	}
	return entry{d.Timestamp.Unix(), name.String(), tree}, nil
}

func nodeOfDocument(doc map[string]any) *node { return nodeOf(doc) }

func depth(x *node) int {
	deepest := 0
	for _, k := range x.kids {
		deepest = max(deepest, depth(k))
	}
	return deepest + 1
}

// header is version, sequence, number of decisions, time of the earliest and how much later the latest is.
func (s *State) header(entries []entry) []byte {
	first, last := entries[0].now, entries[0].now
	for _, e := range entries {
		first, last = min(first, e.now), max(last, e.now)
	}
	b := []byte{Version}
	b = binary.AppendUvarint(b, uint64(s.next32))
	b = binary.AppendUvarint(b, uint64(len(entries)))
	b = binary.AppendUvarint(b, uint64(first))
	return binary.AppendUvarint(b, uint64(last-first))
}

// seal ends a segment with a check over it and all before it in the epoch.
func (s *State) seal(body []byte) []byte {
	s.check = follow(s.check, body)
	s.next32++
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

// Decoder reads segments.
type Decoder struct{ s *State }

// NewDecoder reads segments that follow those that the state has seen. Nothing else may use the state meanwhile.
func NewDecoder(s *State) *Decoder { return &Decoder{s} }

// Decode gives the decisions of the next segment that the filter wants, in the order in which they were given to Append.
// Errors: ErrVersion, ErrOrder, or bytes that are damaged. After an error the state is of no use any more.
func (d *Decoder) Decode(segment []byte, f Filter) ([]Decision, error) {
	s := d.s
	h, body, err := readHeader(segment)
	if err != nil {
		return nil, err
	}
	if s.spoilt {
		return nil, fmt.Errorf("%w: an earlier segment could not be read", ErrOrder)
	}
	if h.Sequence != s.next32 {
		return nil, fmt.Errorf("%w: it is number %d of its epoch, expected was %d", ErrOrder, h.Sequence, s.next32)
	}
	check := follow(s.check, segment[:len(segment)-4])
	if check != binary.BigEndian.Uint32(segment[len(segment)-4:]) {
		s.spoilt = true
		return nil, fmt.Errorf("%w, or it is of another epoch", errDamaged)
	}
	s.spoilt = true // until it has been read
	m := &model{State: s, coder: newReader(s.mem, body)}
	var out []Decision
	size := uint64(0)
	for i := range h.Decisions {
		x := m.decision(nil)
		if !m.ok() {
			return nil, fmt.Errorf("segment %d, decision %d: %w", h.Sequence, i+1, m.err)
		}
		if !f.wants(&x) {
			continue
		}
		if size += uint64(x.doc.size); size > maxSizeOfAll {
			return nil, fmt.Errorf("segment %d, decision %d: %w: there is too much in it", h.Sequence, i+1, errDamaged)
		}
		got, err := x.decision()
		if err != nil {
			return nil, fmt.Errorf("segment %d, decision %d: %w: %w", h.Sequence, i+1, errDamaged, err)
		}
		out = append(out, got)
		if i == 0 {
			s.month = monthOf(got.Timestamp)
		}
	}
	s.month = monthOf(h.First)
	s.check, s.spoilt = check, false
	s.next32++
	return out, nil
}

func (f Filter) wants(e *entry) bool {
	t := time.Unix(e.now, 0)
	return (f.Deployment == "" || f.Deployment == e.name) && (f.Since.IsZero() || !t.Before(f.Since)) && (f.Until.IsZero() || t.Before(f.Until))
}

// decision makes the JSON.
func (e *entry) decision() (Decision, error) {
	d := Decision{Timestamp: time.Unix(e.now, 0).UTC(), Path: e.doc.get("path").said()}
	var rest struct {
		Labels  map[string]string
		Bundles map[string]Bundle
		Erased  []string
	}
	input, result, meta := e.doc.get(inputRoot), e.doc.get(resultRoot), e.doc.get("meta")
	if input == nil || result == nil || meta == nil {
		return d, fmt.Errorf("it has no input, result or labels")
	}
	if err := json.Unmarshal(meta.appendJSON(nil), &rest); err != nil {
		return d, fmt.Errorf("its labels: %w", err)
	}
	d.Labels, d.Bundles, d.Erased = rest.Labels, rest.Bundles, rest.Erased
	d.Input, d.Result = input.appendJSON(nil), result.appendJSON(nil)
	d.ID = d.digest()
	return d, nil
}

// decision codes one decision.
func (m *model) decision(e *entry) entry {
	var out entry
	var cur *node
	label := ""
	if e != nil {
		out, cur = *e, e.doc
		label = labelOf(e.doc)
	}
	m.contexts(askWhen<<24, askWhen, mix(askWhen, 1))
	m.now = m.lastTime + m.signed(out.now-m.lastTime)
	if m.now < 0 || m.now > maxInstant {
		m.fail(fmt.Errorf("%w: an instant is out of bounds", errDamaged))
		return out
	}
	m.lastTime, out.now = m.now, m.now
	if m.of = m.who(out.name); m.of == nil || !m.ok() {
		return out
	}
	out.name = m.of.name
	m.of.seq++
	m.label = m.kindOfDecision(label)
	hold := &node{}
	m.root = hold
	prev := m.of.last
	m.rooted(cur, prev, hold)
	if !m.ok() {
		return out
	}
	out.doc = hold.kids[0]
	m.of.last, m.of.now = out.doc, m.now
	return out
}

// rooted codes the whole, with the part that there is so far in m.root.
func (m *model) rooted(cur, prev, hold *node) {
	if prev == nil {
		prev = m.lasts[uint64(m.top.like)<<32]
	}
	x := &node{kind: kObject, born: m.of.seq}
	m.root = x
	m.object(x, cur, prev, m.top)
	if x.fill().size > maxSize {
		m.fail(fmt.Errorf("%w: a decision is larger than %d bytes", errDamaged, maxSize))
	}
	m.remember(x, m.top)
	hold.kids = append(hold.kids, x)
}

// who codes the deployment: how many others were decided about since it was last.
func (m *model) who(name string) *deployment {
	at := uint64(0) // 0: one that is new
	if !m.reading {
		at = uint64(slices.IndexFunc(m.order, func(d *deployment) bool { return d.name == name }) + 1)
	}
	m.contexts(askWho<<24, askWho, mix(askWho, size(int64(len(m.order)))))
	at = m.number(at)
	if at > uint64(len(m.order)) {
		m.fail(fmt.Errorf("%w: it is about a deployment that was never named", errDamaged))
		return nil
	}
	if at > 0 {
		d := m.order[at-1]
		copy(m.order[1:at], m.order[:at-1])
		m.order[0] = d
		return d
	}
	d := &deployment{name: m.raw(name, askWho)}
	if m.deployments[d.name] != nil || len(m.order) > 2*maxDeployments {
		m.fail(fmt.Errorf("%w: a deployment is named twice", errDamaged))
		return nil
	}
	m.deployments[d.name] = d
	m.order = slices.Insert(m.order, 0, d)
	return d
}

// kindOfDecision codes the label: one that followed the last two, the last, one that was seen, or a new one.
func (m *model) kindOfDecision(want string) uint32 {
	id, known := m.labels[want]
	if !known {
		id = 0
	}
	l := &m.of.labels
	two, one := uint64(l[0])<<32|uint64(l[1])|1<<63, uint64(l[0])
	got := uint32(0)
	for i, g := range slices.Concat(m.labelAfter[two], m.labelAfter[one]) {
		m.contexts(askLabel<<24, mix(mix(askLabel+uint32(i)<<8, l[0]), l[1]), mix(askLabel+uint32(i)<<8, l[0]), mix(mix(askLabel+uint32(i)<<8, l[0]), g))
		if m.flag(g == id) {
			got = g
			break
		}
	}
	if got == 0 {
		m.contexts(askLabel<<24^1, mix(askLabel, 1), mix(askLabel+1, l[0]))
		n := m.number(uint64(id))
		if n > uint64(len(m.labelList)) {
			m.fail(fmt.Errorf("%w: a decision is of a kind that never was", errDamaged))
			return 0
		}
		if got = uint32(n); got == 0 {
			got = m.newLabel(want)
		}
	}
	for _, k := range [2]uint64{two, one} {
		a := m.labelAfter[k]
		if i := slices.Index(a, got); i >= 0 {
			a = slices.Delete(a, i, i+1)
		}
		m.labelAfter[k] = slices.Insert(a, 0, got)[:min(len(a)+1, 3)]
	}
	l[1], l[0] = l[0], got
	return got
}

func (m *model) newLabel(want string) uint32 {
	want = m.raw(want, askLabel)
	if id := m.labels[want]; id > 0 {
		return id
	}
	m.labelList = append(m.labelList, want)
	m.labels[want] = uint32(len(m.labelList))
	return uint32(len(m.labelList))
}

// labelOf says in short what kind of decision it is: decisions with the same are alike.
func labelOf(doc *node) string {
	input, result := doc.get(inputRoot), doc.get(resultRoot)
	b := []byte(input.get("plan", "row").said())
	if a := input.get("actions"); a != nil {
		for _, k := range a.kids {
			b = append(append(b, ' '), k.get("kind").said()...)
		}
	}
	if a := result.get("actions"); a != nil {
		for _, k := range a.kids {
			if k.kind != kObject {
				continue
			}
			b = append(append(b, '|'), k.get("effect").said()...)
			if f := k.get("findings"); f != nil {
				for _, one := range f.kids {
					b = append(append(b, ','), one.get("rule").said()...)
				}
			}
		}
	}
	b = append(append(b, ' '), input.get("canary", "phase").said()...)
	if r := input.get("gate", "runs"); r != nil {
		for _, k := range r.kids {
			b = append(append(b, ';'), k.get("state").said()...)
		}
	}
	return string(b)
}
