package temporalenv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/status"
)

// tick is the pause between two looks at a condition.
const tick = 20 * time.Millisecond

// until calls check until it returns nil, and gives its last error when ctx ends first.
func until(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), fmt.Errorf("last seen: %w", err))
		}
	}
}

// Until calls check every 20 ms until it returns nil. When ctx ends first, the error holds the cause and check's last error.
func Until(ctx context.Context, check func(context.Context) error) error { return until(ctx, check) }

func statusOf(err error) *status.Status {
	st, _ := status.FromError(err)
	return st
}
