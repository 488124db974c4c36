package bot

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/reconcile"
)

// pause gives the interval, less where something is due, and never less than a second unless the interval is. Errors
// change nothing about it, but for very short intervals.
func TestPauseBetweenCycles(t *testing.T) {
	in := func(d time.Duration) reconcile.Report { return reconcile.Report{NextDue: cmdtest.Now.Add(d)} }
	failure := errors.New("away")
	for name, c := range map[string]struct {
		interval time.Duration
		report   reconcile.Report
		err      error
		want     time.Duration
	}{
		"nothing due":    {10 * time.Second, reconcile.Report{}, nil, 10 * time.Second},
		"due before":     {10 * time.Second, in(4 * time.Second), nil, 4 * time.Second},
		"due after":      {10 * time.Second, in(time.Hour), nil, 10 * time.Second},
		"due at once":    {10 * time.Second, in(0), nil, time.Second},
		"overdue":        {10 * time.Second, in(-time.Hour), nil, time.Second},
		"more to do":     {10 * time.Second, reconcile.Report{More: true}, nil, 100 * time.Millisecond},
		"short interval": {50 * time.Millisecond, in(-time.Hour), nil, 50 * time.Millisecond},
		"failure":        {10 * time.Second, reconcile.Report{More: true}, failure, 10 * time.Second},
		"failure, short": {20 * time.Millisecond, in(0), failure, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := loop{App: &cmdutil.App{Now: func() time.Time { return cmdtest.Now }, Log: slog.New(slog.DiscardHandler)}, interval: c.interval}
			got := l.pause(c.report, c.err)
			require.GreaterOrEqual(t, got, c.want)
			require.LessOrEqual(t, got, c.want+c.want/10+1)
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
