package v1alpha1

import (
	"sync"

	"go.yaml.in/yaml/v3"
)

// slab holds values that are needed for as long as a file is read: the next file gets the same ones. Its zero value is ready.
type slab[T any] struct {
	chunks [][]T
	used   int
}

const slabChunk = 64

// next gives a value that nobody uses; it is zero.
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

// workspace is what reading a file takes: nodes that nothing refers to once the objects are made of them. Made anew for each file they
// were a quarter of all memory that cycles used.
type workspace struct {
	parsed slab[yaml.Node]
	nodes  slab[node]
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

func newWorkspace() *workspace { return workspaces.Get().(*workspace) }

// giveBack ends the use of all nodes.
func (w *workspace) giveBack() {
	w.parsed.reset()
	w.nodes.reset()
	workspaces.Put(w)
}
