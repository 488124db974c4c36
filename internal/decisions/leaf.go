package decisions

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// leaf codes a value that is not the one before.
func (m *model) leaf(k kind, s spot) *node {
	cur, prev, at := s.cur, s.prev, s.at
	if k < kNumber {
		return newLeaf(k, 0, 0, "")
	}
	exact := uint64(at.exact)<<32 | uint64(m.label)
	like := uint64(at.like) << 32
	var tried [6]*node
	guesses := [6]*node{m.source(exact), m.source(like), m.source(like | 2), m.follows(prev, at, m.label), m.lasts[exact], m.lasts[like]}
	if d := m.derived(at, s.up); d != nil {
		guesses[1] = d
	}
	var got *node
	for i, g := range guesses {
		if g == nil || g.kind != k || m.was(g, prev) || slices.ContainsFunc(tried[:i], func(t *node) bool { return t != nil && same(t, g) }) {
			continue
		}
		tried[i] = g
		if i >= 4 && k == kInstant {
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
		got = m.spelled(k, s)
	} else {
		got = newLeaf(got.kind, got.n, got.scale, got.text)
	}
	m.learn(got, prev, at)
	if k == kNumber {
		m.recent[at.like] = got
	}
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
func (m *model) learn(x, prev *node, at *place) {
	exact := uint64(at.exact)<<32 | uint64(m.label)
	if s := m.of.where[x.hash&255]; s.at != nil && s.hash == x.hash && s.at != at {
		if y := s.at.find(m.root); y != nil && same(x, y) {
			like := uint64(at.like) << 32
			if was := m.sources[like]; was != s.at {
				m.sources[like], m.sources[like|2] = s.at, was
			}
			m.sources[exact] = s.at
		}
	}
	if prev != nil && x.kind != kInstant && recurs(prev) {
		m.followers[uint64(mix(at.like, prev.hash))<<32|uint64(m.label)] = x
	}
}

// recurs reports whether a value may come again in the same place: a word, or a small whole number.
func recurs(x *node) bool {
	switch x.kind {
	case kNumber:
		return x.scale == 0 && x.n < 200
	case kText:
		return len(x.text) <= 64 && !strings.ContainsAny(x.text, "0123456789")
	}
	return x.kind.leaf()
}

// derived is what follows from values that are there already (keys are sorted); nil: nothing does.
func (m *model) derived(at *place, up *node) *node {
	n := len(at.steps)
	switch {
	case at.key == "rate":
		closed, failed := whole(up.get("closed")), whole(up.get("failed"))
		if closed > 0 && failed >= 0 && closed < 1<<40 && failed <= closed {
			return rounded(failed, closed)
		}
	case at.key == "deployment":
		if build := up.get("buildID"); build != nil && build.kind == kText {
			return newLeaf(kText, 0, 0, dashed(m.of.name+"-"+build.text))
		}
	case n > 3 && at.steps[n-2].key == "closed" && at.steps[n-3].index >= 0:
		// The counts of a version are those of the side of the comparison that it is on.
		build := at.steps[n-3].find(m.root).get("buildID")
		canary := m.root.get(inputRoot, "canary")
		for _, side := range [2]string{"candidate", "current"} {
			if s := canary.get(side); build != nil && same(s.get("buildID"), build) {
				if x := s.get(at.key); x != nil && x.kind.leaf() {
					return x
				}
			}
		}
	}
	return nil
}

// dashed is the name of a Kubernetes Deployment: namespace/name-build, without the namespace.
func dashed(s string) string {
	_, s, _ = strings.Cut(s, "/")
	return strings.ToLower(strings.ReplaceAll(s, ".", "-"))
}

// whole is a count; -1: it is none.
func whole(x *node) int64 {
	if x == nil || x.kind != kNumber || x.scale != 0 || x.n < 0 {
		return -1
	}
	return x.n
}

// beside is a number that this one is near to; nil: none is known.
func (m *model) beside(at *place, up *node) *node {
	switch at.key {
	case "dispatchRate":
		return up.get("addRate")
	case "closed":
		if n := len(at.steps); n > 1 && at.steps[n-2].key == "counted" {
			return at.steps[n-3].find(m.root).get("completed")
		}
	case "failed":
		if n := len(at.steps); n > 1 && at.steps[n-2].key == "counted" {
			c, d := whole(up.get("closed")), whole(at.steps[n-3].find(m.root).get("completed"))
			if c >= d && d >= 0 {
				return newLeaf(kNumber, c-d, 0, "")
			}
		}
	}
	return m.recent[at.like]
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
func (m *model) spelled(k kind, s spot) *node {
	text := ""
	if s.cur != nil {
		text = s.cur.text
	}
	switch k {
	case kInstant:
		return m.instant(s)
	case kNumber:
		return m.numeral(s, m.beside(s.at, s.up))
	case kText:
		return newLeaf(kText, 0, 0, m.text(text, s.at))
	}
	if text = m.raw(text, s.at.like); m.ok() && m.reading && !isNumber(text) {
		m.fail(fmt.Errorf("%w: a number is none", errDamaged))
	}
	return newLeaf(kLiteral, 0, 0, text)
}

func isNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	return json.Valid([]byte(s))
}

// instant codes an instant by its distance from the decision, or from what it was.
func (m *model) instant(s spot) *node {
	cur, prev, at := s.cur, s.prev, s.at
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

// numeral codes a number, or by how much it differs from what it was or from one near to it.
func (m *model) numeral(s spot, near *node) *node {
	cur, prev, at := s.cur, s.prev, s.at
	var v int64
	scale, was, beside := uint8(0), uint32(99), uint32(99)
	if cur != nil {
		v, scale = cur.n, cur.scale
	}
	if prev != nil && prev.kind == kNumber {
		was = uint32(prev.scale)
	}
	if near != nil && near.kind == kNumber {
		beside = uint32(near.scale)
	}
	m.contexts(askScale<<24^at.like, mix(askScale+was<<8, at.like), mix(mix(askScale, at.exact), m.label), mix(askScale+was<<8+beside<<16, at.like))
	if scale = uint8(m.symbol(uint32(scale), 5)); scale > maxInteger {
		m.fail(fmt.Errorf("%w: a number has %d digits behind the point", errDamaged, scale))
		return newLeaf(kNumber, 0, 0, "")
	}
	bases := [3]int64{0, 0, 0}
	choices, best := uint32(0), uint32(0)
	sizes := [3]uint32{0, 99, 99}
	for i, b := range [3]*node{nil, prev, near} {
		if b == nil || b.kind != kNumber || b.scale != scale {
			continue
		}
		bases[i], sizes[i] = b.n, size(b.n)
		choices |= 1 << i
		if abs(v-b.n) < abs(v-bases[best]) && abs(v-b.n) < abs(v)/2+2 {
			best = uint32(i)
		}
	}
	if choices != 0 {
		m.contexts(askDelta<<24^at.like, mix(askDelta+choices<<8, at.like), mix(mix(askDelta+choices<<8, at.exact), m.label), mix(mix(askDelta+choices<<8, at.like), sizes[1]<<8|sizes[2]))
		if best = m.symbol(best, 2); best > 2 || best > 0 && choices>>best&1 == 0 {
			m.fail(fmt.Errorf("%w: a number is said to be near one that is not there", errDamaged))
			return newLeaf(kNumber, 0, 0, "")
		}
	}
	q := askNumber + best<<8 + uint32(scale)<<16
	m.contexts(q<<24^at.like, mix(q, at.like), mix(mix(q, at.exact), m.label), mix(mix(q, at.like), m.label), mix(mix(q, at.like), sizes[1]<<8|sizes[2]|1<<24))
	return m.bounded(bases[best]+m.signed(v-bases[best]), scale)
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
