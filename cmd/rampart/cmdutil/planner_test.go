package cmdutil

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A server that is too busy is asked again, and not for ever.
func TestBusyServerIsAskedAgain(t *testing.T) {
	a, _ := testApp(t)
	require.NoError(t, os.WriteFile(filepath.Join(a.Dir, "spec.yaml"), []byte(cmdtest.Spec), 0o644))
	// A read that works is followed by one of what the rows look at.
	for _, c := range []struct{ busy, reads int64 }{{0, 2}, {2, 4}, {99, busyTries}} {
		var reads atomic.Int64
		planner, err := a.NewPlanner(PlannerPorts{folder{dir: a.Dir}, cmdtest.Observer{Observation: func(rollout.Ask) rollout.Observation {
			if reads.Load() <= c.busy {
				return rollout.Observation{Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "too many requests", Busy: true}}
			}
			return rollout.Observation{Exists: rollout.No}
		}, Reads: &reads}, &Judges{}, nil}, TemporalFlags{})
		require.NoError(t, err)
		_, decided, err := PlanWithRetries(t.Context(), planner, time.Millisecond)
		require.NoError(t, err)
		require.Equal(t, c.reads, reads.Load())
		require.Equal(t, c.busy >= busyTries, decided[0][0].Snapshot.Observation.Problem != nil)
	}
}
