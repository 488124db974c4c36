// Package cores does many small things that have nothing to do with each other, on all cores.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each does n things, by their index from 0, and returns when all are done. A core takes some at a time: of few things
// one, of many so many that taking them costs nothing.
func Each(n int, do func(i int)) {
	var taken atomic.Int64
	var group sync.WaitGroup
	cores := min(runtime.GOMAXPROCS(0), n)
	some := 1 + n/(64*max(cores, 1))
	for range cores {
		group.Go(func() {
			for end := int(taken.Add(int64(some))); end-some < n; end = int(taken.Add(int64(some))) {
				for i := end - some; i < min(end, n); i++ {
					do(i)
				}
			}
		})
	}
	group.Wait()
}
