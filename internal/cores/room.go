package cores

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// garbage is how much lies around of what is left behind, in bytes.
	garbage = 160 << 20
	// more is how much garbage there is at least, in percent of what is in use.
	more = 125
	// least is what is taken to be in use where less is, in bytes: what is in use may grow.
	least = 32 << 20
	// usual is the runtime's own measure: as much garbage as there is in use, in percent.
	usual = 100
)

// roomy says that somebody has the room.
var roomy atomic.Bool

// room lets some garbage lie around for a while: to decide and render a thousand worker deployments leaves 100 MB behind, and the runtime
// would look for it every time as much was left as is in use, which takes a fifth of the time. A measure that somebody else chose stays,
// and so does a limit of memory.
func room() (back func()) {
	if !roomy.CompareAndSwap(false, true) {
		return func() {}
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	ours := max(more, int(garbage*usual/max(live[0].Value.Uint64(), least)))
	was := debug.SetGCPercent(ours)
	if was != usual {
		debug.SetGCPercent(was)
	}
	return func() {
		if is := debug.SetGCPercent(was); is != ours && was == usual { // somebody chose another meanwhile
			debug.SetGCPercent(is)
		}
		roomy.Store(false)
	}
}
