package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/reconcile"
)

// pause gives the interval, less where something is due, never less than a second unless the interval is, and more and
// more after errors.
func TestPauseBetweenCycles(t *testing.T) {
	in := func(d time.Duration) reconcile.Report { return reconcile.Report{NextDue: now.Add(d)} }
	failure := errors.New("away")
	for name, c := range map[string]struct {
		interval time.Duration
		report   reconcile.Report
		err      error
		failed   int
		want     time.Duration
	}{
		"nothing due":     {10 * time.Second, reconcile.Report{}, nil, 3, 10 * time.Second},
		"due before":      {10 * time.Second, in(4 * time.Second), nil, 0, 4 * time.Second},
		"due after":       {10 * time.Second, in(time.Hour), nil, 0, 10 * time.Second},
		"due at once":     {10 * time.Second, in(0), nil, 0, time.Second},
		"overdue":         {10 * time.Second, in(-time.Hour), nil, 0, time.Second},
		"short interval":  {50 * time.Millisecond, in(-time.Hour), nil, 0, 50 * time.Millisecond},
		"first failure":   {10 * time.Second, in(0), failure, 0, 10 * time.Second},
		"third failure":   {10 * time.Second, in(0), failure, 2, 40 * time.Second},
		"many failures":   {10 * time.Second, in(0), failure, 1000, time.Minute},
		"failure, short":  {20 * time.Millisecond, in(0), failure, 0, time.Second},
		"longer interval": {time.Hour, in(time.Hour), failure, 9, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			l := loop{app: &app{now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler)}, interval: c.interval, failed: c.failed}
			got := l.pause(c.report, c.err)
			require.GreaterOrEqual(t, got, c.want)
			require.LessOrEqual(t, got, c.want+c.want/10+1)
			if c.err == nil {
				require.Zero(t, l.failed)
			} else {
				require.Equal(t, c.failed+1, l.failed)
			}
		})
	}
}

// A cycle under way is not cut off by the signal that ends the loop.
func TestCycleOutlivesTheSignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cycle, done := outlive(ctx)
	cancel()
	require.NoError(t, cycle.Err())
	done()
	require.Error(t, cycle.Err())
}
