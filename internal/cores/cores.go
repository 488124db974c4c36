// Package cores does many small things that have nothing to do with each other, on all cores.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each does n things, by their index from 0, and returns when all are done.
func Each(n int, do func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}
