// Package retry has the pauses between tries.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Sleep waits for a duration, or returns the context's error when the context ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Pauses gives pauses that double from the first one to the longest.
func Pauses(first, longest time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: first, MaxInterval: longest, Multiplier: 2}
}

// Pause is the pause of a writer before a try, from 1, after another one was faster. It doubles from 50 to 100 ms, with
// jitter so that two writers do not keep meeting.
func Pause(try int) time.Duration {
	p := Pauses(75*time.Millisecond, time.Minute)
	p.RandomizationFactor = 1. / 3
	for range try - 1 {
		p.NextBackOff()
	}
	return p.NextBackOff()
}
