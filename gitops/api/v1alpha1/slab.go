package v1alpha1

import (
	"sync"

	"go.yaml.in/yaml/v3"
)

// slab holds values that are needed for as long as a file is read: the next file gets the same ones. Its zero value is
// ready.
type slab[T any] struct {
	chunks [][]T
	used   int
}

const slabChunk = 64

// next gives a zero value that is not in use.
func (s *slab[T]) next() *T {
	chunk := s.used / slabChunk
	if chunk == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabChunk))
	}
	v := &s.chunks[chunk][s.used%slabChunk]
	s.used++
	return v
}

// reset takes all values back. Those of an unusually large file are not kept.
func (s *slab[T]) reset() {
	const most = 64
	for i := 0; i < len(s.chunks) && i*slabChunk < s.used; i++ {
		clear(s.chunks[i])
	}
	s.used = 0
	if len(s.chunks) > most {
		s.chunks = nil
	}
}

// lists holds lists of pointers, whose lengths are known when they are made, for as long as a file is read. Its zero
// value is ready.
type lists[T any] struct {
	chunks [][]*T
	// chunk is the one in use, and used how many of it are.
	chunk, used int
}

const listsChunk = 1024

// next gives a list with nothing in it that takes so many without growing.
func (l *lists[T]) next(n int) []*T {
	if n > listsChunk {
		return make([]*T, 0, n)
	}
	if l.used+n > listsChunk {
		l.chunk, l.used = l.chunk+1, 0
	}
	if l.chunk == len(l.chunks) {
		l.chunks = append(l.chunks, make([]*T, listsChunk))
	}
	from := l.used
	l.used += n
	return l.chunks[l.chunk][from:from:l.used]
}

// reset takes all lists back. Those of an unusually large file are not kept.
func (l *lists[T]) reset() {
	const most = 8
	if len(l.chunks) > most {
		l.chunks = nil
	}
	l.chunk, l.used = 0, 0
}

// workspace is what reading a file takes: nodes that nothing refers to once the objects are made of them. Made anew for
// each file they were a quarter of all memory that cycles used.
type workspace struct {
	parsed   slab[yaml.Node]
	contents lists[yaml.Node]
	nodes    slab[node]
	kids     lists[node]
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

func newWorkspace() *workspace { return workspaces.Get().(*workspace) }

func (w *workspace) giveBack() {
	w.parsed.reset()
	w.contents.reset()
	w.nodes.reset()
	w.kids.reset()
	workspaces.Put(w)
}
