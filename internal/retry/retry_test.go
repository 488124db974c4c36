package retry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/retry"
)

func TestPausesDouble(t *testing.T) {
	var got []time.Duration
	for p := retry.Pauses(2*time.Second, 15*time.Second); len(got) < 5; {
		got = append(got, p.NextBackOff())
	}
	require.Equal(t, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second}, got)
}

// Each try has a pause between half of its longest one and all of it.
func TestPauseOfAWriter(t *testing.T) {
	longest := 100 * time.Millisecond
	for try := 1; try < 8; try++ {
		for range 100 {
			require.InDelta(t, longest*3/4, retry.Pause(try), float64(longest)/4+1)
		}
		longest *= 2
	}
}
