package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// narrow is a Temporal that has time for a few worker deployments until the patience of those that wait for it is over.
type narrow struct {
	mu    sync.Mutex
	slots int
	// read are the worker deployments that were read, in their order, open are slots that were not given back.
	read []string
	open int
	busy map[string]bool
}

func (n *narrow) Slot(ctx context.Context, _ v1alpha1.Connection, _ string) (func(), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := ctx.Deadline(); ok && n.slots == 0 {
		return nil, errors.New("budget for describe calls is used up")
	}
	n.slots, n.open = n.slots-1, n.open+1
	return func() { n.open-- }, nil
}

func (n *narrow) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read = append(n.read, ask.Deployment.Name)
	if n.busy[ask.Deployment.Name] {
		return rollout.Observation{Problem: &rollout.Problem{Busy: true}}
	}
	return rollout.Observation{Exists: rollout.No}
}

// pass observes worker deployments with so many slots, and gives which were read.
func (n *narrow) pass(t *testing.T, p *Planner, slots int, names ...string) []string {
	t.Helper()
	n.slots, n.read = slots, nil
	base := newScene(t).world.Environments[0].Deployments[0]
	var snapshots []rollout.Snapshot
	for _, name := range names {
		s := base
		s.Deployment.Name = name
		snapshots = append(snapshots, s)
	}
	seen, err := p.observe(t.Context(), snapshots)
	require.NoError(t, err)
	require.Zero(t, n.open, "each slot was given back")
	for _, s := range seen {
		read := slices.Contains(n.read, s.Deployment.Name) && !n.busy[s.Deployment.Name]
		require.Equal(t, read, s.Observation.Problem == nil, "%s", s.Deployment)
		require.True(t, read || s.Observation.Problem.Busy)
	}
	return slices.Compact(n.read)
}

func narrowPlanner(t *testing.T) (*narrow, *Planner) {
	n, s := &narrow{}, newScene(t)
	p := s.reconciler().Planner
	p.Observer, p.SlotPatience, p.Parallel = n, time.Minute, 1
	p.Now = func() time.Time { s.now = s.now.Add(time.Second); return s.now }
	return n, p
}

// Where Temporal has time for one in a cycle, ten worker deployments are read in turn.
func TestEachIsReadInTurn(t *testing.T) {
	n, p := narrowPlanner(t)
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	for round := range 3 {
		for i := range 10 {
			require.Equal(t, []string{names[i]}, n.pass(t, p, 1, names...), "round %d", round)
		}
	}
}

func TestWhoWaitsLongestIsReadFirst(t *testing.T) {
	n, p := narrowPlanner(t)
	require.Equal(t, []string{"a", "b"}, n.pass(t, p, 2, "a", "b", "c", "d"))
	require.Equal(t, []string{"d"}, n.pass(t, p, 1, "d", "e"), "c is settled meanwhile")
	require.Equal(t, []string{"c", "e"}, n.pass(t, p, 2, "a", "b", "c", "d", "e"))
	n.busy = map[string]bool{"a": true}
	require.Equal(t, []string{"a", "b", "d", "c"}, n.pass(t, p, 4, "a", "b", "c", "d", "e"))
	require.Equal(t, []string{"e", "a"}, n.pass(t, p, 2, "a", "b", "c", "d", "e"), "a had a slot, and no answer")
	n.busy = nil
	require.Equal(t, []string{"b", "c"}, n.pass(t, p, 2, "a", "b", "c"))

	p.SlotPatience = 0
	require.Len(t, n.pass(t, p, 0, "a", "b", "c", "d", "e"), 5, "as long as it takes")
}

// What Temporal was too busy for is not asked again in the tries of the same cycle, and waits for no slot in them.
func TestTriesDoNotWaitAgain(t *testing.T) {
	n, p := narrowPlanner(t)
	p.memory = newRecall(p.Now, time.Minute)
	require.Equal(t, []string{"a"}, n.pass(t, p, 1, "a", "b"))
	p.memory.again()
	snapshots := newScene(t).world.Environments[0].Deployments
	snapshots[0].Deployment.Name = "b"
	n.slots, n.read = 5, nil
	seen, err := p.observe(t.Context(), snapshots)
	require.NoError(t, err)
	require.True(t, seen[0].Observation.Problem.Busy)
	require.Empty(t, n.read)
	require.Equal(t, 5, n.slots)
}

func TestWhoIsGoneDoesNotWait(t *testing.T) {
	n, p := narrowPlanner(t)
	n.pass(t, p, 0, "a", "b")
	require.Len(t, p.waiting, 2)
	env := newScene(t).world.Environments[0]
	env.Known = knownBy("b")
	p.forgetGone(rollout.World{Environments: []rollout.EnvironmentWorld{env}})
	require.Len(t, p.waiting, 1)
	p.forgetGone(rollout.World{})
	require.Empty(t, p.waiting)
}
