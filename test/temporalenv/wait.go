package temporalenv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/status"
)

// The pause between two looks at a condition is ten times what the last look took, within these bounds. A look at a ref
// costs nothing, one at a Gitea or by a process of git some hundredths of a second of a core that those need who are
// waited for.
const (
	shortestPause = 20 * time.Millisecond
	longestPause  = 200 * time.Millisecond
)

// until calls check until it returns nil, and gives its last error when ctx ends first.
func until(ctx context.Context, check func(context.Context) error) error {
	for {
		start := time.Now()
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(max(10*time.Since(start), shortestPause), longestPause)):
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), fmt.Errorf("last seen: %w", err))
		}
	}
}

// Until calls check up to fifty times a second, less often the longer it takes, until it returns nil. When ctx ends
// first, the error holds the cause and check's last error.
func Until(ctx context.Context, check func(context.Context) error) error { return until(ctx, check) }

func statusOf(err error) *status.Status {
	st, _ := status.FromError(err)
	return st
}
