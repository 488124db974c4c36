package decisions

import (
	"errors"
	"fmt"
	"slices"
)

// Bounds of what a segment may say.
const (
	maxDecisions = 1 << 14
	maxKids      = 1 << 14
	maxText      = 1 << 20
	maxShape     = 1 << 12
	// maxSize of a decision, about the bytes of its JSON, and of all of a segment.
	maxSize      = 4 << 20
	maxSizeOfAll = 1 << 28
)

var errDamaged = errors.New("the segment is damaged")

// model codes decisions: the same code writes them, when it is given one, and reads them.
type model struct {
	*lane
	*coder
	err error
	// of is the deployment, seq the count of its decisions, now the decision's time.
	of  *deployment
	now int64
	// label is what kind of decision it is.
	label uint32
	root  *node
	// recent are the last numbers in places alike, of this decision.
	recent map[uint32]*node
	// trail are the last answers to whether a value is as it was.
	trail uint32
}

// deployment is what the epoch knows of one.
type deployment struct {
	name   string
	lane   int
	seq    uint32
	last   *node
	now    int64
	labels [2]uint32
	// known are texts that name things, the last one first.
	known []string
	// where a value was, by its hash.
	where [256]sighting
}

type sighting struct {
	hash uint32
	at   *place
}

const maxKnown = 40

// Symbols, which keep the contexts of different questions apart.
const (
	askSame uint32 = iota + 1
	askKind
	askShape
	askKids
	askAlign
	askHit
	askScale
	askDelta
	askNumber
	askInstant
	askText
	askTemplate
	askSlot
	askByte
	askLength
	askIndex
	askLabel
	askWho
	askWhen
)

func (m *model) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// ok reports whether to go on.
func (m *model) ok() bool {
	if m.err == nil && m.overrun() {
		m.err = errDamaged
	}
	return m.err == nil
}

// spot is a value to code: cur, which a reader does not know, at a place, as the index-th of up, and what was there before.
type spot struct {
	cur, prev *node
	at        *place
	up        *node
	index     int
}

// value codes what is at a spot and puts it there.
func (m *model) value(s spot) {
	if !m.ok() {
		return
	}
	known := uint32(1) // what was there before is the deployment's own, not one like it
	if s.prev == nil {
		known, s.prev = 0, m.like(s.at)
	}
	if s.prev != nil && m.unchanged(s, known) {
		if s.prev.size == 0 {
			m.fail(fmt.Errorf("%w: a value is inside itself", errDamaged))
			return
		}
		s.up.kids[s.index] = s.prev
		return
	}
	k := m.kind(s)
	if k.leaf() {
		x := m.leaf(k, s)
		x.born = m.of.seq
		s.up.kids[s.index] = x
		m.sight(x, s.at)
		m.remember(x, s.at)
		return
	}
	if len(s.at.steps) >= maxDepth {
		m.fail(fmt.Errorf("%w: it is nested more than %d deep", errDamaged, maxDepth))
		return
	}
	if s.prev != nil && s.prev.kind != k {
		s.prev = nil
	}
	x := &node{kind: k, born: m.of.seq}
	s.up.kids[s.index] = x
	if k == kObject {
		m.object(x, s)
	} else {
		m.array(x, s)
	}
	m.complete(x)
	m.remember(x, s.at)
}

// complete ends a container, all of whose values are there unless something failed.
func (m *model) complete(x *node) {
	if m.ok() && x.fill().size > maxSize {
		m.fail(fmt.Errorf("%w: a decision is larger than %d bytes", errDamaged, maxSize))
	}
}

// like is the last value in the same place of a decision like this one, or of any.
func (m *model) like(at *place) *node {
	if x := m.lasts[uint64(at.exact)<<32|uint64(m.label)]; x != nil {
		return x
	}
	return m.lasts[uint64(at.like)<<32]
}

func (m *model) remember(x *node, at *place) {
	m.lasts[uint64(at.exact)<<32|uint64(m.label)] = x
	m.lasts[uint64(at.like)<<32] = x
}

// sight notes where a leaf is whose value may come again.
func (m *model) sight(x *node, at *place) {
	switch {
	case x.kind == kText && len(x.text) < 3, x.kind == kNumber && x.n > -10 && x.n < 10, x.kind < kNumber:
		return
	}
	m.of.where[x.hash&255] = sighting{x.hash, at}
	if x.kind == kText && names(x.text, at.key) {
		m.know(x.text)
	}
}

// names reports whether a text names something that other texts may speak of.
func names(s, key string) bool {
	if len(s) < 3 || len(s) > 120 {
		return false
	}
	digit, letter := false, false
	for i := range len(s) {
		switch b := s[i]; {
		case b <= ' ' || b > '~' || b == '/' || b == ':' || b == '@':
			return false
		case b >= '0' && b <= '9':
			digit = true
		default:
			letter = true
		}
	}
	return digit && letter || key == "name" || key == "namespace"
}

func (m *model) know(s string) {
	k := m.of.known
	if i := slices.Index(k, s); i >= 0 {
		copy(k[1:i+1], k[:i])
		k[0] = s
		return
	}
	if len(k) < maxKnown {
		k = append(k, "")
	}
	copy(k[1:], k)
	k[0] = s
	m.of.known = k
}

func (m *model) unchanged(s spot, known uint32) bool {
	cur, prev, at := s.cur, s.prev, s.at
	age := uint32(0)
	for d := m.of.seq - prev.born; d > 0 && age < 6; d >>= 1 {
		age++
	}
	value := uint32(0)
	if prev.kind.leaf() && (prev.kind != kNumber || prev.n < 200) && prev.kind != kInstant {
		value = prev.hash
	}
	m.contexts(askSame<<24^at.like,
		mix(askSame+known<<8, at.like),
		mix(mix(askSame+known<<8, at.exact), m.label),
		mix(mix(askSame+known<<8, at.exact), m.label^age<<20^m.of.labels[0]*3),
		mix(mix(askSame+known<<8+age<<16, at.like), m.label),
		mix(mix(askSame+known<<8, at.like), m.trail&7|8),
		mix(mix(askSame+known<<8, at.like^m.label*5), value))
	yes := m.flag(cur != nil && same(cur, prev))
	m.trail <<= 1
	if yes {
		m.trail |= 1
	}
	return yes
}

func (m *model) kind(s spot) kind {
	cur, prev, at := s.cur, s.prev, s.at
	was, value := kinds, uint32(0)
	if prev != nil {
		was, value = prev.kind, prev.hash
	}
	m.contexts(askKind<<24^at.like, mix(askKind+uint32(was)<<8, at.like), mix(mix(askKind+uint32(was)<<8, at.exact), m.label), mix(askKind, value))
	k := kNull
	if cur != nil {
		k = cur.kind
	}
	k = kind(m.symbol(uint32(k), 4))
	if k >= kinds {
		m.fail(fmt.Errorf("%w: a value is of kind %d", errDamaged, k))
		return kNull
	}
	return k
}

// object codes the keys, and then the members in their order: but the first of two reads is nearly the second one, which
// therefore comes before it.
func (m *model) object(x *node, s spot) {
	x.shape = m.shape(s)
	x.kids = make([]*node, len(x.shape.keys))
	again := -1
	for i, key := range x.shape.keys {
		if key == firstRead && s.at.key == inputRoot {
			again = i
			continue
		}
		m.member(x, s, i)
	}
	if again >= 0 {
		s.prev = &node{kind: kObject, shape: &shape{keys: []string{firstRead}}, kids: []*node{x}}
		m.member(x, s, again)
	}
}

const firstRead = "firstRead"

func (m *model) member(x *node, s spot, i int) {
	if !m.ok() {
		return
	}
	key := x.shape.keys[i]
	one := spot{prev: s.prev.get(key), at: s.at.member(key), up: x, index: i}
	if s.cur != nil {
		one.cur = s.cur.kids[i]
	}
	m.value(one)
}

// shape codes the keys of an object: those it had, those that were there last, one that was seen, or new ones.
func (m *model) shape(s spot) *shape {
	cur, prev, at := s.cur, s.prev, s.at
	var want *shape
	if cur != nil {
		want = cur.shape
	}
	var tried [3]*shape
	guesses := [3]*shape{nil, m.shapeAt[uint64(at.exact)<<32|uint64(m.label)], m.shapeAt[uint64(at.like)<<32]}
	if prev != nil {
		guesses[0] = prev.shape
	}
	var got *shape
	for i, g := range guesses {
		if g == nil || slices.Contains(tried[:i], g) {
			continue
		}
		tried[i] = g
		m.contexts(askShape<<24^at.like, mix(askShape+uint32(i)<<8, at.like), mix(mix(askShape+uint32(i)<<8, at.exact), m.label), mix(mix(askShape+uint32(i)<<8, at.like), g.id^m.label*7))
		if m.flag(want != nil && slices.Equal(want.keys, g.keys)) {
			got = g
			break
		}
	}
	if got == nil {
		got = m.otherShape(want, at)
	}
	m.shapeAt[uint64(at.exact)<<32|uint64(m.label)], m.shapeAt[uint64(at.like)<<32] = got, got
	return got
}

func (m *model) otherShape(want *shape, at *place) *shape {
	id := uint64(0) // 0: new
	if want != nil {
		if known := m.shapes[shapeKey(want.keys)]; known != nil {
			id = uint64(known.id) + 1
		}
	}
	m.contexts(askIndex<<24, mix(askIndex, at.like), mix(askIndex, 1))
	if id = m.number(id); id > 0 {
		if id > uint64(len(m.shapeList)) {
			m.fail(fmt.Errorf("%w: it names keys that were never said", errDamaged))
			return &shape{}
		}
		return m.shapeList[id-1]
	}
	n := uint64(0)
	if want != nil {
		n = uint64(len(want.keys))
	}
	m.contexts(askKids<<24, mix(askKids, at.like), mix(askKids, 2))
	if n = m.number(n); n > maxShape {
		m.fail(fmt.Errorf("%w: an object has %d keys", errDamaged, n))
		return &shape{}
	}
	s := &shape{id: uint32(len(m.shapeList))}
	for i := range n {
		key := ""
		if want != nil {
			key = want.keys[i]
		}
		if key = m.raw(key, mix(askShape, 77)); !m.ok() {
			return &shape{}
		}
		if i > 0 && key <= s.keys[i-1] {
			m.fail(fmt.Errorf("%w: the keys of an object are not sorted", errDamaged))
			return &shape{}
		}
		s.keys = append(s.keys, key)
	}
	if m.shapes[shapeKey(s.keys)] == nil {
		m.shapes[shapeKey(s.keys)] = s
		m.shapeList = append(m.shapeList, s)
	}
	return s
}

func shapeKey(keys []string) string {
	var b []byte
	for _, k := range keys {
		b = append(b, k...)
		b = append(b, 0)
	}
	return string(b)
}

// array codes the elements, each against the one that it was before.
func (m *model) array(x *node, s spot) {
	had, n := 0, uint64(0)
	if s.prev != nil {
		had = len(s.prev.kids)
	}
	if s.cur != nil {
		n = uint64(len(s.cur.kids))
	}
	at := s.at
	m.contexts(askKids<<24^at.like, mix(askKids+uint32(had)<<8, at.like), mix(mix(askKids+uint32(had)<<8, at.exact), m.label), mix(mix(askKids, at.exact), m.label))
	if n = m.number(n); n > maxKids {
		m.fail(fmt.Errorf("%w: a list has %d elements", errDamaged, n))
		return
	}
	var before []*node // that none was found to be any more
	if s.prev != nil {
		before = s.prev.kids
	}
	for i := range int(n) {
		if !m.ok() {
			return
		}
		one := spot{at: at.element(i), up: x, index: i}
		if s.cur != nil {
			one.cur = s.cur.kids[i]
		}
		if skip := m.align(one, before, int(n)-i); skip >= 0 {
			one.prev, before = before[skip], before[skip+1:]
		}
		x.kids = append(x.kids, nil)
		m.value(one)
	}
	if x.kind == kMap && len(x.kids)%2 != 0 {
		m.fail(fmt.Errorf("%w: a key has no value", errDamaged))
	}
}

// align codes which element of those before this one was: -1 for none. left is how many there are to code.
func (m *model) align(s spot, before []*node, left int) int {
	if len(before) == 0 {
		return -1
	}
	want := uint64(0) // none
	if s.cur != nil {
		want = uint64(slices.IndexFunc(before, func(b *node) bool { return alike(s.cur, b) }) + 1)
	}
	both := uint32(len(before))<<8 | uint32(left)
	m.contexts(askAlign<<24^s.at.like, mix(askAlign, s.at.like), mix(mix(askAlign, s.at.exact), m.label), mix(mix(askAlign+256, s.at.like), both), mix(mix(askAlign+512, s.at.like), m.label^both))
	got := m.number(want)
	if got > uint64(len(before)) {
		m.fail(fmt.Errorf("%w: it names an element that was not there", errDamaged))
		return -1
	}
	return int(got) - 1
}

// identity are the members by which elements of a list are told from each other.
var identity = [...]string{"buildID", "id", "name", "type", "workflowID", "rule", "kind"}

// alike reports whether two elements are about the same thing.
func alike(a, b *node) bool {
	if a.kind != b.kind {
		return false
	}
	if a.kind != kObject {
		return same(a, b)
	}
	any := false
	for _, key := range identity {
		x, y := a.get(key), b.get(key)
		if x != nil && !x.kind.leaf() || y != nil && !y.kind.leaf() {
			continue
		}
		if !same(x, y) {
			return false
		}
		any = any || x != nil
	}
	return any || same(a, b)
}
