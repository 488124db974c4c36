package resync

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Worker deployments that were described together are described again over half of the interval.
func TestIntervalsAreSpread(t *testing.T) {
	parts := map[time.Duration]int{}
	for i := range 1000 {
		of := jittered(rollout.Name{Namespace: "shop", Name: fmt.Sprintf("w%d", i)})
		require.LessOrEqual(t, of, Interval)
		require.Greater(t, of, Interval/2)
		parts[of.Truncate(30*time.Second)]++
	}
	require.Len(t, parts, 5)
	for from, n := range parts {
		require.InDelta(t, 200, n, 60, "from %s", from)
	}
}
