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
	"github.com/rampart-gitops/rampart/internal/resync"
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

func (n *narrow) CountSlot(context.Context, v1alpha1.Connection, string) (func(), error) {
	return func() {}, nil
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

// pass lets a group observe worker deployments with so many slots, and gives which were read.
func (n *narrow) pass(t *testing.T, r *Reconciler, slots int, names ...string) []string {
	t.Helper()
	n.slots, n.read = slots, nil
	env := newScene(t).world.Environments[0]
	var rows []*rollout.IndexEntry
	for _, name := range names {
		s := env.Deployments[0]
		s.Deployment.Name = name
		rows = append(rows, &rollout.IndexEntry{Deployment: s.Deployment, Full: &s})
	}
	g := &group{env: env}
	for _, k := range r.firstDue(env, rows, &Report{}) {
		g.snapshots = append(g.snapshots, *k.Full)
	}
	seen := r.observe(t.Context(), g, g.snapshots)
	for _, s := range seen {
		if key := resync.KeyOf(&s); g.waiting[s.Deployment] {
			r.resync.Wait(key, r.Now())
		} else {
			r.resync.Served(key)
		}
	}
	require.Zero(t, n.open, "each slot was given back")
	for _, s := range seen {
		read := slices.Contains(n.read, s.Deployment.Name) && !n.busy[s.Deployment.Name]
		require.Equal(t, read, s.Observation.Problem == nil, "%s", s.Deployment)
		require.True(t, read || s.Observation.Problem.Busy)
	}
	return slices.Compact(n.read)
}

func narrowReconciler(t *testing.T) (*narrow, *Reconciler) {
	n, s := &narrow{}, newScene(t)
	r := s.reconciler()
	r.Observer, r.Slots, r.SlotPatience, r.Parallel = n, n, time.Minute, 1
	r.Now = func() time.Time { s.now = s.now.Add(time.Second); return s.now }
	return n, r
}

// Where Temporal has time for one in a cycle, ten worker deployments are read in turn.
func TestEachIsReadInTurn(t *testing.T) {
	n, r := narrowReconciler(t)
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	for round := range 3 {
		for i := range 10 {
			require.Equal(t, []string{names[i]}, n.pass(t, r, 1, names...), "round %d", round)
		}
	}
}

func TestWhoWaitsLongestIsReadFirst(t *testing.T) {
	n, r := narrowReconciler(t)
	require.Equal(t, []string{"a", "b"}, n.pass(t, r, 2, "a", "b", "c", "d"))
	require.Equal(t, []string{"d"}, n.pass(t, r, 1, "d", "e"), "c is settled meanwhile")
	require.Equal(t, []string{"c", "e"}, n.pass(t, r, 2, "a", "b", "c", "d", "e"))
	n.busy = map[string]bool{"a": true}
	require.Equal(t, []string{"a", "b", "d", "c"}, n.pass(t, r, 4, "a", "b", "c", "d", "e"))
	require.Equal(t, []string{"e", "a"}, n.pass(t, r, 2, "a", "b", "c", "d", "e"), "a had a slot, and no answer")
	n.busy = nil
	require.Equal(t, []string{"b", "c"}, n.pass(t, r, 2, "a", "b", "c"))

	r.SlotPatience = 0
	require.Len(t, n.pass(t, r, 0, "a", "b", "c", "d", "e"), 5, "as long as it takes")
}

func TestWhoIsGoneDoesNotWait(t *testing.T) {
	n, r := narrowReconciler(t)
	n.pass(t, r, 0, "a", "b")
	in := newScene(t).world.Environments[0].Environment.Name
	waiting := func() (names string) {
		for _, name := range []string{"a", "b"} {
			if !r.resync.Waiting(resync.Key{Env: in, Name: rollout.Name{Namespace: "shop", Name: name}}).IsZero() {
				names += name
			}
		}
		return names
	}
	require.Equal(t, "ab", waiting())
	env := newScene(t).world.Environments[0]
	env.Entries = []*rollout.IndexEntry{{Deployment: rollout.Name{Namespace: "shop", Name: "b"}}}
	report := newReport()
	r.forgetGone(reading{Survey: rollout.Survey{World: rollout.World{Environments: []rollout.EnvironmentWorld{env}}}}, &report)
	require.Equal(t, "b", waiting())
	r.forgetGone(reading{}, &report)
	require.Empty(t, waiting())
}

// cutOff answers when the time of its group is over, with what it got until then.
type cutOff struct{}

func (cutOff) Observe(ctx context.Context, _ v1alpha1.Connection, _ rollout.Ask) rollout.Observation {
	<-ctx.Done()
	return rollout.Observation{Exists: rollout.Yes}
}

// A worker deployment that the group's time was not enough for has its turn again first.
func TestLookThatWasCutOffCountsAsNoTurn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	look := &slotted{next: cutOff{}, now: time.Now}
	require.Nil(t, look.Observe(ctx, v1alpha1.Connection{}, rollout.Ask{}).Problem)
	require.True(t, look.refused)

	look = &slotted{next: cutOff{}, now: time.Now} // it comes too late
	require.True(t, look.Observe(ctx, v1alpha1.Connection{}, rollout.Ask{}).CutShort)

	for _, cut := range []bool{false, true} {
		look = &slotted{next: answers{CutShort: cut}, now: time.Now}
		look.Observe(t.Context(), v1alpha1.Connection{}, rollout.Ask{})
		require.Equal(t, cut, look.refused)
	}
}

// answers is an Observer that always says the same.
type answers rollout.Observation

func (a answers) Observe(context.Context, v1alpha1.Connection, rollout.Ask) rollout.Observation {
	return rollout.Observation(a)
}

// A look that there was not enough time or budget for raises nothing, and says nothing about that. The worker
// deployment is looked at again at once.
func TestNothingIsRaisedOnWhatWasCutShort(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	s.obs.CutShort = true
	report := s.once(r)
	require.Empty(t, report.Commits)
	require.True(t, report.More)
	s.obs.CutShort = false
	require.Len(t, s.once(r).Commits, 1)
	require.Equal(t, []string{"raise SetCurrent"}, s.calls)
}

// What a look shows to fail is lowered, whatever is missing.
func TestWhatWasCutShortIsLowered(t *testing.T) {
	s := newSpread(t, "n")
	r := s.reconciler()
	s.verdicts[s.name(0)] = rollback("rollout.canary")
	r.Observer = observing(func(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
		o := s.Observe(ctx, conn, ask)
		o.CutShort = true
		return o
	})
	s.once(r)
	require.Equal(t, []string{"lower w000"}, s.happened())
	r.Close()
}

// observing is an Observer.
type observing func(context.Context, v1alpha1.Connection, rollout.Ask) rollout.Observation

func (o observing) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	return o(ctx, conn, ask)
}
