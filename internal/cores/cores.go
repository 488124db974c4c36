// Package cores does many small things that have nothing to do with each other, on all cores.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// batch is how many things are done before it is looked again how much memory is in use.
const batch = 500

// Each does n things, by their index from 0, and returns when all are done. Where they are many, garbage is collected less often meanwhile.
func Each(n int, do func(i int)) {
	for from := 0; from < n; from += batch {
		part(from, min(from+batch, n), do)
	}
}

// part does the things from one index to before another.
func part(from, to int, do func(i int)) {
	if to-from == batch {
		defer room()()
	}
	var next atomic.Int64
	var group sync.WaitGroup
	next.Store(int64(from))
	for range min(runtime.GOMAXPROCS(0), to-from) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < to; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}
