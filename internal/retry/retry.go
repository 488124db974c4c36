// Package retry has the pauses between tries.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
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

// Pause is the pause before a try, from 1. It doubles from 50 ms, with jitter so that two writers do not keep meeting.
func Pause(try int) time.Duration {
	d := 50 * time.Millisecond << try
	return d/2 + rand.N(d/2)
}
