package decisions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Slots of a template. A text that has one of these bytes is spelled.
const (
	slotName   = '\x01' // one of the texts that name something
	slotNumber = '\x02'
	slotSpell  = '\x03' // letters and digits that mean nothing
)

// template is a text with its names and numbers taken out.
type template struct {
	id   uint32
	text string
	// last is what filled it last.
	last []string
}

const (
	maxTemplates = 1 << 16
	maxSlots     = 64
)

func wordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// split takes a text apart.
func split(s string, known []string) (string, []string, bool) {
	var form []byte
	var slots []string
	put := func(slot byte, text string) {
		form, slots = append(form, slot), append(slots, text)
	}
	for i := 0; i < len(s); {
		if s[i] < 4 {
			return "", nil, false
		}
		if i > 0 && wordByte(s[i-1]) && wordByte(s[i]) || !wordByte(s[i]) {
			form = append(form, s[i])
			i++
			continue
		}
		if name := longest(s[i:], known); name != "" {
			put(slotName, name)
			i += len(name)
			continue
		}
		end, digits, letters := i, 0, 0
		for ; end < len(s) && wordByte(s[end]); end++ {
			if s[end] <= '9' {
				digits++
			} else {
				letters++
			}
		}
		switch word := s[i:end]; {
		case digits > 0 && letters == 0 && len(word) < 16 && (word[0] != '0' || len(word) == 1):
			put(slotNumber, word)
		case digits > 1 && len(word) > 5:
			put(slotSpell, word)
		default:
			form = append(form, word...)
		}
		i = end
	}
	return string(form), slots, len(slots) <= maxSlots
}

// longest is the longest of the names that the text begins with, as words.
func longest(s string, known []string) string {
	best := ""
	for _, k := range known {
		if len(k) > len(best) && strings.HasPrefix(s, k) && (len(k) == len(s) || !wordByte(s[len(k)])) {
			best = k
		}
	}
	return best
}

// text codes a text as a template with what fills it, or spells it.
func (m *model) text(s string, at *place) string {
	want, fill, can := "", []string(nil), false
	if !m.reading {
		want, fill, can = split(s, m.of.known)
		can = can && (len(fill) > 0 || len(want) > 0) && len(m.templates) < maxTemplates
		if _, known := m.templates[want]; can && !known && len(fill) == 0 && at.key != "message" && at.key != "reason" && at.key != "msg" && len(want) > 64 {
			can = false
		}
	}
	m.contexts(askText<<24^at.like, mix(askText, at.like), mix(mix(askText, at.exact), m.label))
	if !m.flag(can) {
		return m.raw(s, at.like)
	}
	t := m.template(want, at)
	if !m.ok() {
		return ""
	}
	return m.filled(t, fill, at)
}

func (m *model) template(want string, at *place) *template {
	exact, like := uint64(at.exact)<<32|uint64(m.label), uint64(at.like)<<32
	var got *template
	for i, g := range [2]*template{m.templateAt[exact], m.templateAt[like]} {
		if g == nil || i == 1 && g == m.templateAt[exact] {
			continue
		}
		m.contexts(askTemplate<<24^at.like, mix(askTemplate+uint32(i)<<8, at.like), mix(mix(askTemplate+uint32(i)<<8, at.exact), m.label), mix(mix(askTemplate+uint32(i)<<8, at.like), g.id))
		if m.flag(!m.reading && g.text == want) {
			got = g
			break
		}
	}
	if got == nil {
		got = m.otherTemplate(want, at)
	}
	m.templateAt[exact], m.templateAt[like] = got, got
	return got
}

func (m *model) otherTemplate(want string, at *place) *template {
	id := uint64(0) // 0: new
	if t := m.templates[want]; !m.reading && t != nil {
		id = uint64(t.id) + 1
	}
	m.contexts(askIndex<<24^at.like, mix(askIndex+1, at.like), mix(mix(askIndex+1, at.exact), m.label))
	if id = m.number(id); id > 0 {
		if id > uint64(len(m.templateList)) {
			m.fail(fmt.Errorf("%w: it names a text that was never said", errDamaged))
			return nil
		}
		return m.templateList[id-1]
	}
	want = m.raw(want, at.like)
	if t := m.templates[want]; t != nil {
		return t
	}
	t := &template{id: uint32(len(m.templateList)), text: want}
	if len(m.templateList) < maxTemplates {
		m.templates[want] = t
		m.templateList = append(m.templateList, t)
	}
	return t
}

// filled codes what fills a template.
func (m *model) filled(t *template, fill []string, at *place) string {
	var out []byte
	slot := 0
	now := make([]string, 0, len(t.last))
	for i := 0; i < len(t.text) && m.ok(); i++ {
		b := t.text[i]
		if b >= 4 || b == 0 {
			out = append(out, b)
			continue
		}
		want := ""
		if !m.reading {
			want = fill[slot]
		}
		got := m.slot(slotAsk{of: t, kind: b, index: slot, want: want, done: now}, at)
		now, out = append(now, got), append(out, got...)
		if slot++; slot > maxSlots || len(out) > maxText {
			m.fail(fmt.Errorf("%w: a text is too long", errDamaged))
			return ""
		}
	}
	t.last = now
	if m.reading && !utf8.Valid(out) {
		m.fail(fmt.Errorf("%w: a text is not UTF-8", errDamaged))
	}
	return string(out)
}

type slotAsk struct {
	of    *template
	kind  byte
	index int
	want  string
	done  []string
}

// slot codes what fills one place of a template: the value that did last time, one beside it, or another.
func (m *model) slot(a slotAsk, at *place) string {
	id := mix(a.of.id<<8|uint32(a.index), askSlot)
	here := uint64(mix(id, at.like))<<32 | 1
	guesses := [4]string{}
	for i, context := range [2]uint64{uint64(mix(id, at.exact))<<32 | uint64(m.label), here} {
		if x := m.source(context); x != nil {
			guesses[i] = x.said()
		}
	}
	for _, d := range a.done {
		if a.kind == slotName {
			guesses[2] = d
			break
		}
	}
	if a.index < len(a.of.last) {
		guesses[3] = a.of.last[a.index]
	}
	got, hit := "", false
	for i, g := range guesses {
		if g == "" || slices.Contains(guesses[:i], g) || !fits(a.kind, g) {
			continue
		}
		m.contexts(askSlot<<24^id, mix(askSlot+uint32(i)<<8, id), mix(mix(askSlot+uint32(i)<<8, at.exact), m.label^id), mix(askSlot+uint32(i)<<8, uint32(a.kind)))
		if hit = m.flag(a.want == g); hit {
			got = g
			break
		}
	}
	if !hit {
		got = m.slotSpelled(a, id)
	}
	x := textNode(got)
	if a.kind == slotNumber {
		x = numberNode(got)
	}
	if s := m.of.where[x.hash&255]; s.at != nil && s.hash == x.hash {
		m.sources[uint64(mix(id, at.exact))<<32|uint64(m.label)], m.sources[here] = s.at, s.at
	}
	return got
}

// fits reports whether a guess may fill a slot.
func fits(slot byte, s string) bool {
	if slot != slotNumber {
		return true
	}
	n, err := strconv.ParseUint(s, 10, 62)
	return err == nil && strconv.FormatUint(n, 10) == s
}

func (m *model) slotSpelled(a slotAsk, id uint32) string {
	switch a.kind {
	case slotName:
		i := uint64(max(slices.Index(m.of.known, a.want), 0))
		m.contexts(askIndex<<24^id, mix(askIndex+2, id), mix(askIndex+2, 0))
		if i = m.number(i); i >= uint64(len(m.of.known)) {
			m.fail(fmt.Errorf("%w: it names something that was never named", errDamaged))
			return ""
		}
		return m.of.known[i]
	case slotNumber:
		n, _ := strconv.ParseUint(a.want, 10, 62)
		m.contexts(askNumber<<24^id, mix(askNumber+2, id), mix(mix(askNumber+2, id), m.label))
		return strconv.FormatUint(m.number(n), 10)
	}
	return m.raw(a.want, id)
}

// raw spells a text, byte by byte.
func (m *model) raw(s string, ctx uint32) string {
	m.contexts(askLength<<24^ctx, mix(askLength, ctx), askLength)
	n := m.number(uint64(len(s)))
	if n > maxText {
		m.fail(fmt.Errorf("%w: a text has %d bytes", errDamaged, n))
		return ""
	}
	out := make([]byte, 0, min(n, 1<<12))
	for i := range n {
		if i&63 == 0 && !m.ok() {
			return ""
		}
		var b byte
		if !m.reading {
			b = s[i]
		}
		out = append(out, m.spell(b, out, ctx, uint32(n-i)))
	}
	m.spelledText(out)
	if m.reading && !utf8.Valid(out) {
		m.fail(fmt.Errorf("%w: a text is not UTF-8", errDamaged))
		return ""
	}
	return string(out)
}

// spell codes one byte, by those before it and by where they stood last.
func (m *model) spell(b byte, before []byte, ctx, left uint32) byte {
	var h1, h2, h3, h5 uint32
	h3 = hashTail(before, 3)
	h1, h2, h5 = hashTail(before, 1), hashTail(before, 2), hashTail(before, 5)
	expect, length := m.expected(before)
	place := uint32(len(before))
	m.contexts(askByte<<24^min(length, 15), mix(mix(askByte, ctx), h1), mix(askByte+256, h2), mix(askByte+512, h3), mix(askByte+1024, h5),
		mix(mix(askByte+2048, uint32(expect)), min(length, 15)), mix(mix(askByte+4096, ctx), min(place, 40)|class(before)<<8), mix(askByte+8192, class(before)<<8|min(left, 9)))
	return byte(m.symbol(uint32(b), 8))
}

// class says what the last bytes were: digits of a hash, a word, or others.
func class(before []byte) uint32 {
	c := uint32(0)
	for i := len(before) - 1; i >= 0 && i >= len(before)-4; i-- {
		b := before[i]
		k := uint32(3)
		switch {
		case b >= '0' && b <= '9':
			k = 0
		case b >= 'a' && b <= 'f':
			k = 1
		case b >= 'g' && b <= 'z':
			k = 2
		}
		c = c<<2 | k
	}
	return c | uint32(min(len(before), 4))<<8
}

func hashTail(b []byte, n int) uint32 {
	if len(b) < n {
		n = len(b)
	}
	h := uint32(n)
	for _, x := range b[len(b)-n:] {
		h = mix(h, uint32(x))
	}
	return h
}

const (
	historySize = 1 << 18
	matchBytes  = 4
)

// expected is the byte that followed the last time when the same went before, and how long the same was; 0: nothing did.
func (m *model) expected(before []byte) (byte, uint32) {
	if len(before) < matchBytes {
		return 0, 0
	}
	p := m.matches[hashTail(before, matchBytes)&(1<<16-1)]
	if p == 0 || int(p) >= len(m.history) {
		return 0, 0
	}
	n := 0
	for n < len(before) && n < 31 && int(p)-1-n >= 0 && m.history[int(p)-1-n] == before[len(before)-1-n] {
		n++
	}
	if n < matchBytes {
		return 0, 0
	}
	return m.history[p], uint32(n)
}

// spelledText adds a text to what later ones are compared with.
func (m *model) spelledText(s []byte) {
	if len(m.history)+len(s) > historySize {
		keep := len(m.history) / 2
		m.history = slices.Clone(m.history[keep:])
		for i := range m.matches {
			m.matches[i] = uint32(max(int(m.matches[i])-keep, 0))
		}
	}
	start := len(m.history)
	if len(s) > historySize/4 {
		s = s[:historySize/4]
	}
	m.history = append(m.history, s...)
	for i := matchBytes; i <= len(s); i++ {
		m.matches[hashTail(s[:i], matchBytes)&(1<<16-1)] = uint32(start + i)
	}
}
