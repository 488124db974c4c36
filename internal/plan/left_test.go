package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// downFor is v1 drained, and scaled down for some time; its workers polled 20 s ago.
func downFor(since time.Duration) change {
	return all(promoted(100*time.Hour), drained("v1", since+time.Hour), scaledDown("v1", since))
}

// removed is v1 whose files were removed some time ago.
func removed(since time.Duration) change {
	return func(g *given) {
		g.rec.Versions = g.rec.Versions[1:]
		delete(g.Record.Files, layout.VersionFile(id("v1"), "deployment.yaml"))
		g.rec.Removed = []v1alpha1.RemovedVersion{{BuildID: id("v1"), Deployment: "checkout-v1", At: stamp(ago(since))}}
	}
}

// leftDown is v1 left behind since it was scaled down three hours ago.
func leftDown() v1alpha1.LeftBehind {
	return v1alpha1.LeftBehind{BuildID: id("v1"), Deployment: "checkout-v1", ScaledDownAt: stamp(ago(3 * time.Hour))}
}

// reported is a status that tells of v1 as left behind.
func reported(g *given) {
	g.Record.Status = &v1alpha1.WorkerDeployment{Spec: g.Spec.Spec, Status: &v1alpha1.WorkerDeploymentStatus{
		LeftBehind: []v1alpha1.LeftBehind{leftDown()}}}
}

func pollers(p rollout.Pollers) change {
	return func(g *given) { g.listed("v1").Queues[0].Pollers = p }
}

// A version is left behind once its workers polled long enough after its scale-down, or after its files were removed.
func TestLeftBehind(t *testing.T) {
	unknown, long := pollers(rollout.Pollers{Reason: "busy"}), downFor(3*time.Hour)
	lately := pollers(rollout.Pollers{Known: true, Count: 1, LastAccess: ago(2 * time.Minute)})
	for name, c := range map[string]struct {
		given change
		want  bool
	}{
		"polls for three hours":     {long, true},
		"polls for an hour":         {downFor(time.Hour + 21*time.Second), true},
		"polled within the hour":    {downFor(time.Hour + 19*time.Second), false},
		"polls, deleted soon":       {all(downFor(10*time.Minute), sunset(time.Minute, 5*time.Minute)), true},
		"its workers stopped":       {all(long, noPollers("v1")), false},
		"they stopped lately":       {all(long, lately), false},
		"reported, then stopped":    {all(long, noPollers("v1"), reported), false},
		"Temporal does not know it": {all(long, unlisted("v1"), counted("v1", 0), reported), false},
		"since nobody knows when":   {all(long, func(g *given) { g.version("v1").RetiredAt = v1alpha1.Time{} }), false},
		"guarded again":             {all(long, func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }), false},
		"not known":                 {all(long, unknown), false},
		"not known any more":        {all(long, unknown, reported), true},
		"queues not known":          {all(long, reported, func(g *given) { g.listed("v1").QueuesKnown = "" }), true},
		"Temporal is away": {all(long, reported, func(g *given) {
			g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed}}
		}), true},
		"one queue of two": {all(long, unknown, func(g *given) {
			g.listed("v1").Queues = append(g.listed("v1").Queues, polled("more"))
		}), true},
		"needed again":     {all(long, drains("v1")), false},
		"not scaled down":  {all(promoted(100*time.Hour), drained("v1", time.Minute)), false},
		"removed":          {all(long, removed(time.Hour)), true},
		"removed just now": {all(long, removed(10*time.Second)), false},
		"removed, and back in Git": {all(promoted(100*time.Hour), drained("v1", time.Minute), func(g *given) {
			g.rec.Removed = []v1alpha1.RemovedVersion{{BuildID: id("v1"), Deployment: "checkout-v1", At: stamp(ago(time.Hour))}}
		}), false},
		"removed, and gone":      {all(long, removed(time.Hour), unlisted("v1")), false},
		"removed, and no worker": {all(long, removed(time.Hour), noPollers("v1")), false},
		"never here":             {all(promoted(100*time.Hour), up("v0"), drained("v0", time.Hour)), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(t, of(c.given), allowed).Status.LeftBehind
			require.Equal(t, c.want, len(got) == 1, "%v", got)
		})
	}
	require.Equal(t, []v1alpha1.LeftBehind{leftDown()},
		decide(t, of(downFor(3*time.Hour)), allowed).Status.LeftBehind)
	require.Equal(t, []v1alpha1.LeftBehind{{BuildID: id("v1"), Deployment: "checkout-v1", RemovedAt: stamp(ago(time.Hour))}},
		decide(t, of(downFor(3*time.Hour), removed(time.Hour)), allowed).Status.LeftBehind)
}

// What has traffic is not left behind, though Git removed it: somebody gave it that.
func TestRemovedWithTraffic(t *testing.T) {
	s := of(downFor(3*time.Hour), removed(time.Hour), routes("v1", "", 0, time.Minute))
	require.Empty(t, Look(s).mayBeLeft(s.Record.Routing.Spec.Versions, s.Record.Routing.Spec.Removed))
}

// The pollers of a version are asked for when they would be left behind, and then until it is deleted. Workflows are
// not counted for that.
func TestAskLeftBehind(t *testing.T) {
	for name, c := range map[string]struct {
		given change
		want  bool
	}{
		"within the hour":     {downFor(time.Hour), false},
		"after the hour":      {downFor(time.Hour + time.Second), true},
		"Temporal lost it":    {all(downFor(3*time.Hour), removed(time.Hour), unlisted("v1")), false},
		"removed":             {all(downFor(time.Hour), removed(time.Minute)), true},
		"nobody's":            {all(promoted(100*time.Hour), up("v0"), drained("v0", time.Hour)), false},
		"the spec is no spec": {all(downFor(3*time.Hour), func(g *given) { g.Spec = nil }), false},
	} {
		t.Run(name, func(t *testing.T) {
			a := Look(of(c.given)).Ask()
			require.Equal(t, c.want, len(a.Queues) == 1 && a.Queues[0] == id("v1"), a.Queues)
			require.Empty(t, a.OpenPinned)
		})
	}
	soon := decide(t, of(downFor(time.Minute)), allowed)
	require.True(t, soon.Settled)
	require.Equal(t, noon.Add(59*time.Minute), soon.NextDue)
	deletion := decide(t, of(downFor(time.Minute), drained("v1", 23*time.Hour+30*time.Minute)), allowed)
	require.Equal(t, noon.Add(30*time.Minute), deletion.NextDue)
	later := decide(t, of(downFor(2*time.Hour)), allowed)
	require.True(t, later.Settled, "what is left behind is looked at in its turn")
	require.Equal(t, noon.Add(21*time.Hour), later.NextDue)
}

// A question says whether it is the second one in a cycle, which is not answered from what the first one read.
func TestAskTwice(t *testing.T) {
	s := of(downFor(time.Hour))
	require.False(t, Look(s).Ask().Second)
	require.True(t, Look(twice(s)).Ask().Second)
}

// A record remembers the last versions that were removed, until they are made again.
func TestRemovedVersions(t *testing.T) {
	gone := all(downFor(80*time.Hour), noPollers("v1"), unlisted("v1"), counted("v1", 0))
	p := decide(t, twice(of(gone)), allowed)
	want := v1alpha1.RemovedVersion{BuildID: id("v1"), Deployment: "checkout-v1", At: stamp(noon)}
	require.Equal(t, []v1alpha1.RemovedVersion{want}, p.Record.Removed)
	many := func(g *given) {
		for i := range maxRemoved {
			g.rec.Removed = append(g.rec.Removed, v1alpha1.RemovedVersion{BuildID: fmt.Sprint(i), At: stamp(ago(time.Hour))})
		}
	}
	s := twice(of(gone, many))
	p = decide(t, s, allowed)
	require.Len(t, p.Record.Removed, maxRemoved)
	require.Equal(t, "1", p.Record.Removed[0].BuildID)
	require.Equal(t, id("v1"), p.Record.Removed[maxRemoved-1].BuildID)
	require.Equal(t, "0", s.Record.Routing.Spec.Removed[0].BuildID, "the record as it was read stays")
	old := all(promoted(100*time.Hour), drained("v1", time.Minute), removed(time.Hour), unlisted("v1"))
	again := decide(t, of(old, asks("v1")), allowed)
	require.NotNil(t, rollout.FindVersion(again.Record.Versions, id("v1")))
	require.Empty(t, again.Record.Removed)
}
