package cores

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each does all, each once.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 3, batch - 1, batch, 2*batch + 7} {
		done := make([]int, n)
		Each(n, func(i int) { done[i]++ })
		for i := range done {
			require.Equal(t, 1, done[i], i)
		}
	}
}

// Room is made where much is made, is given back, and is nobody's who chose another measure.
func TestRoom(t *testing.T) {
	percent := func() int {
		is := debug.SetGCPercent(usual)
		debug.SetGCPercent(is)
		return is
	}
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	back := room()
	most := garbage * usual / least
	require.Greater(t, percent(), usual)
	require.LessOrEqual(t, percent(), most)
	room()() // somebody has it
	require.Greater(t, percent(), usual)
	back()
	require.Equal(t, usual, percent())

	held := make([]byte, garbage)
	runtime.GC()
	back = room()
	require.Equal(t, more, percent(), "as much is in use")
	back()
	runtime.KeepAlive(held)

	debug.SetGCPercent(70)
	back = room()
	require.Equal(t, 70, percent())
	back()
	require.Equal(t, 70, percent())

	debug.SetGCPercent(usual)
	runtime.GC()
	back = room()
	debug.SetGCPercent(60)
	back()
	require.Equal(t, 60, percent(), "somebody chose it meanwhile")
}

// Many things are done with room, and few without.
func TestEachHasRoom(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	runtime.GC()
	for n, want := range map[int]bool{batch - 1: false, batch: true} {
		var had atomic.Bool
		Each(n, func(i int) {
			if i == 0 {
				had.Store(roomy.Load())
			}
		})
		require.Equal(t, want, had.Load(), n)
	}
	require.Equal(t, usual, debug.SetGCPercent(usual))
}
