package decisions

// coder is a binary arithmetic coder whose bits are predicted by mixing what several contexts have seen (source: M. Mahoney,
// "Adaptive Weighing of Context Models for Lossless Data Compression", Florida Tech CS-2005-16; lpaq1). All arithmetic is in
// integers, so that every machine predicts the same. The same calls write and read: a writer is given the bits, a reader
// gives them.
type coder struct {
	m *memory
	// ctx are the contexts of the next bits; the last of them may be left over.
	ctx [maxContexts + 1]uint32
	n   int
	// sel is the mixer's choice of weights.
	sel uint32

	low, high uint32
	reading   bool
	code      uint32
	data      []byte
	at        int
	bits      int
}

const (
	maxContexts = 7
	// What is read may ask for so many bits, and so many more for each byte: a writer adds bytes where it needs more.
	freeBits    = 1 << 20
	bitsPerByte = 4096
)

func newWriter(m *memory) *coder { return &coder{m: m, high: 1<<32 - 1} }

func newReader(m *memory, data []byte) *coder {
	c := &coder{m: m, high: 1<<32 - 1, reading: true, data: data}
	for range 4 {
		c.code = c.code<<8 | uint32(c.next())
	}
	return c
}

// next is the next byte; behind the end there are zeros.
func (c *coder) next() byte {
	c.at++
	if c.at > len(c.data) {
		return 0
	}
	return c.data[c.at-1]
}

// overrun reports whether more was read than there is, or more work was asked for than there may be.
func (c *coder) overrun() bool {
	return c.reading && (c.at > len(c.data)+4 || c.bits > freeBits+bitsPerByte*len(c.data))
}

// finish gives what was written. Zeros at the end say nothing.
func (c *coder) finish() []byte {
	if c.low > 0 {
		c.data = append(c.data, byte(c.low>>24)+1)
	}
	if lacking := (c.bits-freeBits)/bitsPerByte + 1 - len(c.data); lacking > 0 && c.bits > freeBits {
		c.data = append(c.data, make([]byte, lacking)...)
	}
	return c.data
}

func mix(a, b uint32) uint32 {
	h := (a ^ b*0x9E3779B1) * 0x85EBCA6B
	h ^= h >> 15
	h *= 0xC2B2AE35
	return h ^ h>>13
}

// contexts are set for the bits that follow; sel chooses the mixer's weights.
func (c *coder) contexts(sel uint32, ctx ...uint32) {
	c.sel = sel
	c.n = copy(c.ctx[:], ctx)
	for i := range c.n {
		c.ctx[i] = mix(c.ctx[i], uint32(i)+1)
	}
}

// bit codes one bit; node tells it from the others of the same symbol.
func (c *coder) bit(b int, node uint32) int {
	m, n := c.m, c.n
	m.ask(&c.ctx, n, node)
	w := &m.weights[mix(c.sel, node)&(1<<mixerBits-1)]
	dot := int64(0)
	for i := range n {
		dot += int64(m.said[i]) * int64(w[i])
	}
	p := m.squashed(int(dot >> 16))
	b = c.arith(b, uint32(min(max(p*16+8, 24), 65512)))
	m.learn(w, n, answer{b, p})
	return b
}

// arith codes a bit that is 1 with a probability of p in 65536.
func (c *coder) arith(b int, p uint32) int {
	c.bits++
	mid := c.low + uint32(uint64(c.high-c.low)*uint64(p)>>16)
	if c.reading {
		b = 0
		if c.code <= mid {
			b = 1
		}
	}
	if b == 1 {
		c.high = mid
	} else {
		c.low = mid + 1
	}
	for (c.low^c.high)>>24 == 0 {
		if c.reading {
			c.code = c.code<<8 | uint32(c.next())
		} else {
			c.data = append(c.data, byte(c.high>>24))
		}
		c.low, c.high = c.low<<8, c.high<<8|255
	}
	return b
}

// flag codes a yes or no.
func (c *coder) flag(b bool) bool {
	x := 0
	if b {
		x = 1
	}
	return c.bit(x, 1) == 1
}

// symbol codes one of 1<<bits.
func (c *coder) symbol(v uint32, bits int) uint32 {
	node := uint32(1)
	for i := bits - 1; i >= 0; i-- {
		node = node<<1 | uint32(c.bit(int(v>>i&1), node))
	}
	return node - 1<<bits
}

// number codes how long it is, and then its bits: the three highest by all contexts, the others nearly as they are.
func (c *coder) number(v uint64) uint64 {
	n := 0
	for ; ; n++ {
		more := 0
		if v>>n > 0 {
			more = 1
		}
		if n == 63 || c.bit(more, 1000+uint32(n)) == 0 {
			break
		}
	}
	if n == 0 {
		return 0
	}
	out := uint64(1)
	for i := n - 2; i >= 0; i-- {
		b := int(v >> i & 1)
		if n-2-i < 8 {
			b = c.bit(b, uint32(n)<<20|uint32(out&0xFFFF)|1<<30)
		} else {
			b = c.arith(b, 1<<15)
		}
		out = out<<1 | uint64(b)
	}
	return out
}

// signed codes a number with its sign.
func (c *coder) signed(v int64) int64 {
	u := uint64(v) << 1
	if v < 0 {
		u = ^u
	}
	u = c.number(u)
	if u&1 == 1 {
		return ^int64(u >> 1)
	}
	return int64(u >> 1)
}
