package decisions

import "math/bits"

const (
	slotBits     = 20
	mixerBits    = 12
	ways         = 4
	countLimit   = 126
	firstWeight  = 1 << 14
	learningRate = 10
)

// memory is what the contexts have seen in the epoch. It is laid out for the processor: what one context asks for is in one line of its
// cache, and all that a bit asks for is fetched at a time.
type memory struct {
	buckets []bucket
	shift   int
	weights [][maxContexts + 1]int32
	stretch [4096]int16
	squash  [4097]int16
	share   [countLimit + 1]int64

	// at are the slots of the contexts of one bit, and said what they predict.
	at   [maxContexts + 1]*uint32
	said [maxContexts + 1]int32
	// touched keeps the compiler from leaving out what is fetched early.
	touched uint64
}

// bucket is the slots that a context has the choice of. A slot has a probability (22 bits) and how often the context was seen (10 bits);
// checks, of 16 bits each, say whose a slot is: 0 is nobody.
type bucket struct {
	slots  [ways]uint32
	checks uint64
	_      uint64
}

func newMemory(bits int) *memory {
	m := &memory{shift: 32 - bits + 2, buckets: make([]bucket, 1<<bits/ways), weights: make([][maxContexts + 1]int32, 1<<mixerBits)}
	for i := range m.weights {
		for j := range maxContexts {
			m.weights[i][j] = firstWeight
		}
	}
	at := 0
	for x := -2047; x <= 2047; x++ {
		for v := squash(x); at <= v; at++ {
			m.stretch[at] = int16(x)
		}
	}
	for ; at < 4096; at++ {
		m.stretch[at] = 2047
	}
	for i := range m.squash {
		m.squash[i] = int16(squash(i - 2048))
	}
	for i := range m.share {
		m.share[i] = 65536 * 2 / int64(2*i+3)
	}
	return m
}

// squash turns ln(p/(1-p))·256 into p·4096.
func squash(d int) int {
	table := [33]int{1, 2, 3, 6, 10, 16, 27, 45, 73, 120, 194, 310, 488, 747, 1101, 1546, 2047, 2549, 2994, 3348, 3607, 3785,
		3901, 3975, 4022, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094}
	switch {
	case d > 2047:
		return 4095
	case d < -2047:
		return 0
	}
	w := d & 127
	d = d>>7 + 16
	return (table[d]*(128-w) + table[d+1]*w + 64) >> 7
}

// squashed is squash, looked up.
func (m *memory) squashed(d int) int {
	return int(m.squash[min(max(d, -2048), 2048)+2048])
}

const (
	lowest16  = 0x0001_0001_0001_0001
	highest16 = 0x8000_8000_8000_8000
)

// ask finds the slots of n contexts, and what they predict.
func (m *memory) ask(ctx *[maxContexts + 1]uint32, n int, node uint32) {
	var hashes [maxContexts + 1]uint32
	touched := uint64(0)
	for i := range n {
		h := mix(ctx[i&maxContexts], node)
		hashes[i&maxContexts] = h
		touched ^= m.buckets[h>>(m.shift&31)].checks
	}
	m.touched = touched
	for i := range n {
		h := hashes[i&maxContexts]
		b := &m.buckets[h>>(m.shift&31)]
		slot := &b.slots[b.way(uint16(h)|1)&(ways-1)]
		m.at[i&maxContexts] = slot
		said := int32(0)
		if *slot&1023 > 0 {
			said = int32(m.stretch[*slot>>20])
		}
		m.said[i&maxContexts] = said
	}
}

// way is the slot of a context: its own, or the one of those that it may have that was used least.
func (b *bucket) way(check uint16) int {
	x := b.checks ^ uint64(check)*lowest16
	if own := (x - lowest16) &^ x & highest16; own != 0 { // the lowest of these is the first that is equal
		return bits.TrailingZeros64(own) >> 4
	}
	least := 0
	for i := 1; i < ways; i++ {
		if b.slots[i]&1023 < b.slots[least&(ways-1)]&1023 {
			least = i
		}
	}
	b.checks = b.checks&^(0xFFFF<<(least<<4&63)) | uint64(check)<<(least<<4&63)
	b.slots[least&(ways-1)] = 1 << 31
	return least
}

// answer is the bit that came, and how probable 1 was in 4096.
type answer struct{ bit, p int }

// learn takes down what came of what was asked.
func (m *memory) learn(w *[maxContexts + 1]int32, n int, a answer) {
	err := int64(a.bit<<12-a.p) * learningRate
	want := int64(a.bit) * (1<<22 - 1)
	for i := range n {
		w[i&maxContexts] += int32((int64(m.said[i&maxContexts])*err + 1<<13) >> 14)
		slot := m.at[i&maxContexts]
		prob, n := int64(*slot>>10), *slot&1023
		prob += ((want - prob) * m.share[n]) >> 16
		if n < countLimit {
			n++
		}
		*slot = uint32(prob)<<10 | n
	}
}
