package webhook

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// How often a bell wakes somebody: so many times at once, then so often.
const (
	burst  = 10
	oneper = 2 * time.Second
)

// Bell wakes one waiter. However often it is rung before somebody waits, it wakes once.
type Bell struct {
	rung  chan struct{}
	limit *rate.Limiter
}

// NewBell makes a bell that has not rung yet.
func NewBell() *Bell {
	return &Bell{rung: make(chan struct{}, 1), limit: rate.NewLimiter(rate.Every(oneper), burst)}
}

// Ring wakes the caller of Wait that waits, or else the next one that does. It never blocks.
func (b *Bell) Ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// Wait waits for a time at most, less if the bell rings or was rung since the last Wait. One that rings too often wakes
// every two seconds. The error is the context's.
func (b *Bell) Wait(ctx context.Context, most time.Duration) error {
	end := time.NewTimer(most)
	defer end.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-end.C:
		return nil
	case <-b.rung:
	}
	turn := b.limit.Reserve()
	slow := time.NewTimer(turn.Delay())
	defer slow.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-end.C:
		turn.Cancel()
	case <-slow.C:
	}
	return nil
}
