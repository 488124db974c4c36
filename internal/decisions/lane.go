package decisions

import (
	"fmt"
	"slices"
)

// lane is what the epoch has taught about the deployments in it. Lanes know nothing of each other, so that they are coded side
// by side, and those that nobody asks for are not read.
type lane struct {
	mem *memory
	top *place

	// last values, what followed a value, and where it was copied from, by place and kind of decision.
	lasts     map[uint64]*node
	followers map[uint64]*node
	sources   map[uint64]*place
	// hits are the last answers to whether guesses were right.
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
	// history are the texts that were spelled, and matches where in it some bytes were last.
	history []byte
	matches []uint32

	// pending are parts of segments that were not read yet: nobody asked for them.
	pending []part
}

// part is a lane's part of a segment: the decisions, of which time and deployment are known, and what codes the rest of them.
type part struct {
	sequence int
	entries  []*entry
	data     []byte
}

// begin makes room to learn: a lane that nobody asks for takes none.
func (l *lane) begin() {
	if l.mem != nil {
		return
	}
	l.mem, l.top = newMemory(slotBits), &place{like: 1, exact: 2, index: -1}
	l.lasts, l.followers, l.sources, l.hits = map[uint64]*node{}, map[uint64]*node{}, map[uint64]*place{}, map[uint32]uint8{}
	l.shapes, l.shapeAt = map[string]*shape{}, map[uint64]*shape{}
	l.templates, l.templateAt = map[string]*template{}, map[uint64]*template{}
	l.labels, l.labelAfter = map[string]uint32{}, map[uint64][]uint32{}
	l.history, l.matches = []byte{0}, make([]uint32, 1<<16)
}

func (l *lane) learned() int {
	return len(l.lasts) + len(l.followers) + len(l.sources) + len(l.shapeAt) + len(l.templateAt)
}

// write codes the decisions.
func (l *lane) write(entries []*entry) []byte {
	l.begin()
	m := &model{lane: l, coder: newWriter(l.mem)}
	for _, e := range entries {
		m.decision(e)
	}
	return m.finish()
}

// read decodes what is pending.
func (l *lane) read() error {
	for len(l.pending) > 0 {
		if err := l.decode(l.pending[0]); err != nil {
			return err
		}
		l.pending = l.pending[1:]
	}
	l.pending = nil
	return nil
}

func (l *lane) decode(p part) error {
	l.begin()
	m := &model{lane: l, coder: newReader(l.mem, p.data)}
	for _, e := range p.entries {
		if m.decision(e); !m.ok() {
			return fmt.Errorf("segment %d: %w", p.sequence, m.err)
		}
	}
	return nil
}

// decision codes what is said of one decision beside its time and its deployment.
func (m *model) decision(e *entry) {
	label := ""
	if !m.reading {
		label = labelOf(e.doc)
	}
	m.of, m.now = e.of, e.now
	m.of.seq++
	m.label = m.kindOfDecision(label)
	m.recent = map[uint32]*node{}
	prev := m.of.last
	if prev == nil {
		prev = m.lasts[uint64(m.top.like)<<32]
	}
	x := &node{kind: kObject, born: m.of.seq}
	m.root = x
	m.object(x, spot{cur: e.doc, prev: prev, at: m.top})
	if m.complete(x); !m.ok() {
		return
	}
	m.remember(x, m.top)
	e.doc = x
	m.of.last, m.of.now = x, m.now
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
