package cores

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// manyToMake is how many things are made one after the other that leave much behind.
	manyToMake = 500
	// garbage is how much of that may lie around, in bytes.
	garbage = 192 << 20
	// usual is the runtime's own measure: as much garbage as there is in use, in percent.
	usual = 100
)

// roomy says that somebody has the room.
var roomy atomic.Bool

// room lets garbage lie around for a while, where there is little in use: to decide and render a thousand worker deployments leaves 100 MB
// behind, and the runtime would look for it every time as much was left as is in use, which takes a fifth of the time. A measure that
// somebody else chose stays, and so does a limit of memory.
func room(n int) (back func()) {
	if n < manyToMake || !roomy.CompareAndSwap(false, true) {
		return func() {}
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	was := debug.SetGCPercent(usual)
	if percent := garbage * 100 / max(int(live[0].Value.Uint64()), 1<<20); was == usual && percent > usual {
		debug.SetGCPercent(percent)
	} else {
		debug.SetGCPercent(was)
	}
	return func() {
		debug.SetGCPercent(was)
		roomy.Store(false)
	}
}
