package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// polledAt: all workers polled last at a time.
func polledAt(t time.Time) change {
	return func(g *given) {
		for _, o := range g.Observation.Versions {
			for i := range o.Queues {
				o.Queues[i].Pollers.LastAccess = t
			}
		}
	}
}

// podsPolledAt: the pods of pools polled last at a time.
func podsPolledAt(t time.Time) change {
	return func(g *given) {
		for _, o := range g.Observation.Versions {
			for name, own := range o.Workers {
				own.LastAccess = t
				o.Workers[name] = own
			}
		}
	}
}

// A poll of the future says that our clock is behind: how old the poll is, is not known. Ten seconds are within what
// clocks differ.
func TestPollerAheadOfOurClock(t *testing.T) {
	for name, c := range map[string]struct {
		given    change
		polledAt func(time.Time) change
	}{"queues": {candidate(), polledAt}, "pools": {pooled(), podsPolledAt}} {
		within := decide(t, of(c.given, c.polledAt(noon.Add(10*time.Second))), allowed)
		require.NotNil(t, within.Raise, name)
		p := decide(t, of(c.given, c.polledAt(noon.Add(10*time.Second+1))), allowed)
		require.Nil(t, p.Raise, name)
		require.Equal(t, "wait-for-pollers", p.Row)
		ready := condition(p.Status, "Ready")
		require.Equal(t, string(rollout.StaleFacts), ready.Reason)
		require.Contains(t, ready.Message, "polled 10s after the time of our clock")
	}
	back := decide(t, of(promoted(time.Minute), wants("v1"), polledAt(noon.Add(time.Minute))), allowed)
	require.Nil(t, back.Lower, "and so is whether anybody takes the traffic back")
}
