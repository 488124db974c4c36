package webhook

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// waited is how long a wait took, by a clock that only waiting moves.
func waited(t *testing.T, b *Bell, most time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	require.NoError(t, b.Wait(t.Context(), most))
	return time.Since(start)
}

// Rings before a wait are one; a ring during it ends it.
func TestRingsBeforeAWaitAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBell()
		require.Equal(t, time.Hour, waited(t, b, time.Hour), "nobody rings")
		for range 100 {
			b.Ring()
		}
		require.Zero(t, waited(t, b, time.Hour))
		require.Equal(t, time.Hour, waited(t, b, time.Hour), "the rings were one")
		time.AfterFunc(time.Minute, b.Ring)
		require.Equal(t, time.Minute, waited(t, b, time.Hour))

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		require.ErrorIs(t, b.Wait(ctx, time.Hour), context.Canceled)
	})
}

// A flood wakes ten times at once, and then every two seconds; polling goes on at its own pace.
func TestBellInAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBell()
		var got []time.Duration
		for range burst + 3 {
			b.Ring()
			got = append(got, waited(t, b, time.Hour))
		}
		want := make([]time.Duration, burst)
		require.Equal(t, append(want, oneper, oneper, oneper), got)

		b.Ring()
		require.Equal(t, time.Second, waited(t, b, time.Second), "the interval is shorter")
		b.Ring()
		require.Equal(t, time.Second, waited(t, b, time.Hour), "the turn that was not taken is still there")

		b.Ring()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, b.Wait(ctx, time.Hour), context.Canceled)
	})
}

// The memory of deliveries is bounded by number and by time.
func TestMemoryOfDeliveriesIsBounded(t *testing.T) {
	s := newSeen()
	require.False(t, s.again("first", noon))
	require.True(t, s.again("first", noon.Add(rememberedFor)))
	require.False(t, s.again("first", noon.Add(rememberedFor+1)))
	for i := range 2 * remembered {
		require.False(t, s.again(fmt.Sprint(i), noon.Add(rememberedFor+1)))
		require.LessOrEqual(t, s.when.Len(), remembered)
	}
	require.True(t, s.again(fmt.Sprint(remembered+1), noon.Add(rememberedFor+1)))
	require.False(t, s.again("first", noon.Add(rememberedFor+1)), "it was the oldest")
}
