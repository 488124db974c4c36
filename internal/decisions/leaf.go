package decisions

import (
	"encoding/json"
	"fmt"
	"slices"
)

// leaf codes a value that is not the one before.
func (m *model) leaf(k kind, cur, prev *node, at *place, up *node) *node {
	if k < kNumber {
		return newLeaf(k, 0, 0, "")
	}
	exact := uint64(at.exact)<<32 | uint64(m.label)
	var tried [5]*node
	guesses := [5]*node{m.source(exact), m.source(uint64(at.like) << 32), m.follows(prev, at, m.label), m.lasts[exact], m.lasts[uint64(at.like)<<32]}
	if r := ratio(at, up); r != nil {
		guesses[1] = r
	}
	var got *node
	for i, g := range guesses {
		if g == nil || g.kind != k || m.was(g, prev) || slices.ContainsFunc(tried[:i], func(t *node) bool { return t != nil && same(t, g) }) {
			continue
		}
		tried[i] = g
		if i >= 3 && k == kInstant {
			continue
		}
		m.contexts(askHit<<24^at.like^uint32(i)<<20, mix(askHit+uint32(i)<<8, at.like), mix(mix(askHit+uint32(i)<<8, at.exact), m.label), mix(askHit+uint32(i)<<8, uint32(k)),
			mix(mix(askHit+uint32(i)<<8, at.exact), uint32(m.hits[at.like^uint32(i)])|256))
		hit := m.flag(cur != nil && same(cur, g))
		h := m.hits[at.like^uint32(i)] << 1 & 15
		if hit {
			h |= 1
		}
		m.hits[at.like^uint32(i)] = h
		if hit {
			got = g
			break
		}
	}
	if got == nil {
		got = m.spelled(k, cur, prev, at)
	} else {
		got = newLeaf(got.kind, got.n, got.scale, got.text)
	}
	m.learn(got, prev, at, exact)
	return got
}

// was reports whether a guess is the value before, which it is not any more.
func (m *model) was(g, prev *node) bool { return prev != nil && same(g, prev) }

// source is the value where this one was copied from last time.
func (m *model) source(context uint64) *node {
	p := m.sources[context]
	if p == nil {
		return nil
	}
	x := p.find(m.root)
	if x == nil || !x.kind.leaf() {
		return nil
	}
	return x
}

func (m *model) follows(prev *node, at *place, label uint32) *node {
	if prev == nil {
		return nil
	}
	return m.followers[uint64(mix(at.like, prev.hash))<<32|uint64(label)]
}

// learn notes where the value was before, and what it followed.
func (m *model) learn(x, prev *node, at *place, exact uint64) {
	if s := m.of.where[x.hash&255]; s.at != nil && s.hash == x.hash && s.at != at {
		if y := s.at.find(m.root); y != nil && same(x, y) {
			m.sources[exact], m.sources[uint64(at.like)<<32] = s.at, s.at
		}
	}
	if prev != nil && x.kind != kInstant && prev.kind.leaf() && (prev.kind != kNumber || prev.n < 1000) {
		m.followers[uint64(mix(at.like, prev.hash))<<32|uint64(m.label)] = x
	}
}

// ratio is failed of closed, where a rate stands beside them: keys are sorted, so that it comes last.
func ratio(at *place, up *node) *node {
	if at.key != "rate" {
		return nil
	}
	closed, failed := up.get("closed"), up.get("failed")
	if closed == nil || failed == nil || closed.kind != kNumber || failed.kind != kNumber || closed.scale+failed.scale > 0 ||
		closed.n <= 0 || failed.n < 0 || failed.n > 1<<40 || closed.n > 1<<40 {
		return nil
	}
	return rounded(failed.n, closed.n)
}

// rounded is a/b with four significant digits, as the input has rates.
func rounded(a, b int64) *node {
	if a == 0 {
		return newLeaf(kNumber, 0, 0, "")
	}
	scale := uint8(0)
	for ; scale < 10 && a < 1000*b && a < 1<<56; scale++ {
		a *= 10
	}
	n := (2*a + b) / (2 * b)
	for scale > 0 && n%10 == 0 {
		n, scale = n/10, scale-1
	}
	return newLeaf(kNumber, n, scale, "")
}

// spelled codes a value by itself.
func (m *model) spelled(k kind, cur, prev *node, at *place) *node {
	switch k {
	case kInstant:
		return m.instant(cur, prev, at)
	case kNumber:
		return m.numeral(cur, prev, at)
	case kText:
		s := ""
		if cur != nil {
			s = cur.text
		}
		before := ""
		if prev != nil && prev.kind == kText {
			before = prev.text
		}
		return newLeaf(kText, 0, 0, m.text(s, before, at))
	}
	s := ""
	if cur != nil {
		s = cur.text
	}
	if s = m.raw(s, at.like); m.ok() && m.reading && !isNumber(s) {
		m.fail(fmt.Errorf("%w: a number is none", errDamaged))
	}
	return newLeaf(kLiteral, 0, 0, s)
}

func isNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	return json.Valid([]byte(s))
}

// instant codes an instant by its distance from the decision, or from what it was.
func (m *model) instant(cur, prev *node, at *place) *node {
	var v, n int64
	own := prev != nil && prev.kind == kInstant
	fromNow := true
	if cur != nil {
		v = cur.n
		if own && abs(v-prev.n) < abs(v-m.now) {
			fromNow = false
		}
	}
	if own {
		m.contexts(askDelta<<24^at.like, mix(askDelta, at.like), mix(mix(askDelta, at.exact), m.label))
		fromNow = m.flag(fromNow)
	}
	base := m.now
	if !fromNow {
		base = prev.n
	}
	kind := askInstant
	if fromNow {
		kind += 64
	}
	lag := uint32(0) // how far from its decision it was before
	if own {
		lag = uint32(min(max(m.of.now-prev.n, -1), 1000)) + 2
	}
	m.contexts(kind<<24^at.like, mix(kind, at.like), mix(mix(kind, at.exact), m.label), mix(mix(kind, at.like), m.label), mix(mix(kind, at.like), lag))
	n = m.signed(base - v)
	if n > 1<<40 || n < -1<<40 || base-n < minInstant || base-n > maxInstant {
		m.fail(fmt.Errorf("%w: an instant is out of bounds", errDamaged))
		return newLeaf(kInstant, 0, 0, "")
	}
	return newLeaf(kInstant, base-n, 0, "")
}

func abs(n int64) int64 { return max(n, -n) }

// numeral codes a number, or by how much it changed.
func (m *model) numeral(cur, prev *node, at *place) *node {
	var v int64
	scale, was := uint8(0), uint32(99)
	if cur != nil {
		v, scale = cur.n, cur.scale
	}
	own := prev != nil && prev.kind == kNumber
	if own {
		was = uint32(prev.scale)
	}
	m.contexts(askScale<<24^at.like, mix(askScale+was<<8, at.like), mix(mix(askScale, at.exact), m.label))
	if scale = uint8(m.symbol(uint32(scale), 5)); scale > maxInteger {
		m.fail(fmt.Errorf("%w: a number has %d digits behind the point", errDamaged, scale))
		return newLeaf(kNumber, 0, 0, "")
	}
	if own && prev.scale == scale {
		m.contexts(askDelta<<24^at.like, mix(askDelta, at.like), mix(mix(askDelta, at.exact), m.label), mix(mix(askDelta, at.like), size(prev.n)))
		if m.flag(abs(v-prev.n) < abs(v)/2) {
			m.contexts(askNumber<<24^at.like^1, mix(askNumber+256, at.like), mix(mix(askNumber+256, at.exact), m.label), mix(mix(askNumber+256, at.like), size(prev.n)))
			v = prev.n + m.signed(v-prev.n)
			return m.bounded(v, scale)
		}
	}
	last := uint32(0)
	if own {
		last = size(prev.n)
	}
	m.contexts(askNumber<<24^at.like, mix(askNumber, at.like), mix(mix(askNumber, at.exact), m.label), mix(mix(askNumber+uint32(scale)<<8, at.like), m.label), mix(mix(askNumber+uint32(scale)<<16, at.like), last))
	return m.bounded(m.signed(v), scale)
}

func (m *model) bounded(v int64, scale uint8) *node {
	if v > 1<<57 || v < -1<<57 {
		m.fail(fmt.Errorf("%w: a number is out of bounds", errDamaged))
		v = 0
	}
	return newLeaf(kNumber, v, scale, "")
}

// size is the number of bits.
func size(n int64) uint32 {
	s := uint32(1)
	for n = abs(n); n > 0; n >>= 1 {
		s++
	}
	return s
}
