package cores

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each does all, each once.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 3, 1000} {
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
	back := room(manyToMake)
	require.Greater(t, percent(), usual)
	room(manyToMake)() // somebody has it
	require.Greater(t, percent(), usual)
	back()
	require.Equal(t, usual, percent())
	room(manyToMake - 1)
	require.Equal(t, usual, percent())
	debug.SetGCPercent(70)
	back = room(manyToMake)
	require.Equal(t, 70, percent())
	back()
	require.Equal(t, 70, percent())
}
