package cores

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each does all, each once.
func TestEachRunsEveryIndexOnce(t *testing.T) {
	for _, n := range []int{0, 1, 3, 1007} {
		done := make([]int, n)
		Each(n, func(i int) { done[i]++ })
		for i := range done {
			require.Equal(t, 1, done[i], i)
		}
	}
}
