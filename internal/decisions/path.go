package decisions

import "slices"

// place is where in a decision a value is: a key or an index below another place.
type place struct {
	// like is the same for all elements of an array; exact is not.
	like, exact uint32
	key         string
	index       int
	// from the root to this one, without the root.
	steps    []*place
	members  map[string]*place
	elements []*place
}

func (p *place) member(key string) *place {
	if m := p.members[key]; m != nil {
		return m
	}
	if p.members == nil {
		p.members = map[string]*place{}
	}
	h := hashText(key)
	m := &place{like: mix(p.like, h), exact: mix(p.exact, h), key: key, index: -1}
	m.steps = append(slices.Clip(p.steps), m)
	p.members[key] = m
	return m
}

func (p *place) element(i int) *place {
	for len(p.elements) <= i {
		n := len(p.elements)
		e := &place{like: mix(p.like, 0xA77A), exact: mix(p.exact, uint32(n)+0xA77B), index: n}
		e.steps = append(slices.Clip(p.steps), e)
		p.elements = append(p.elements, e)
	}
	return p.elements[i]
}

// find is the value at the place; nil: there is none, or not yet.
func (p *place) find(root *node) *node {
	x := root
	for _, s := range p.steps {
		switch {
		case x == nil:
			return nil
		case s.index >= 0:
			if x.kind != kArray && x.kind != kMap || s.index >= len(x.kids) {
				return nil
			}
			x = x.kids[s.index]
		default:
			x = x.get(s.key)
		}
	}
	return x
}
