package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// forgets is a Temporal that does not know the worker deployment.
func forgets(g *given) { g.Observation = rollout.Observation{At: noon, Exists: rollout.No} }

// returns is one that knows versions again, since their workers poll, and has no routing.
func returns(tags ...string) change {
	return func(g *given) {
		g.Observation = rollout.Observation{At: noon, Exists: rollout.Yes, ConflictToken: []byte("new")}
		for _, tag := range tags {
			up(tag)(g)
		}
	}
}

// lostRows are about a routing that Temporal has lost.
func lostRows() []rowCase {
	known := func(c func(*rollout.Observation)) change {
		return func(g *given) { c(&g.Observation) }
	}
	settled := promoted(100 * time.Hour)
	mid := rampsAt(10, time.Minute)
	seen := ago(time.Hour)
	return []rowCase{
		{row: "lost", name: "the worker deployment", given: all(settled, forgets), reason: rollout.RoutingDrift, stalled: true, but: returns("v1", "v2"), then: "first-version"},
		{row: "lost", name: "the first version", given: forgets, reason: rollout.RoutingDrift, stalled: true, but: returns("v1"), then: "first-version"},
		{row: "lost", name: "only another version is back", given: all(settled, returns("v1")), reason: rollout.RoutingDrift, stalled: true, but: returns("v1", "v2"), then: "first-version"},
		{row: "lost", name: "in mid-ramp", given: all(mid, returns("v1", "v2")), reason: rollout.RoutingDrift, stalled: true, but: asks("v1"), then: "first-version"},
		{row: "lost", name: "and made current by a person", given: all(mid, returns("v1", "v2")), reason: rollout.RoutingDrift, stalled: true,
			but: known(func(o *rollout.Observation) { o.Routing.Current, o.Routing.CurrentChangedAt = id("v1"), seen }), then: "drift"},
		{row: "lost", name: "before a new build", given: all(candidate(), returns("v1", "v2")), reason: rollout.RoutingDrift, stalled: true,
			but: func(g *given) { g.rec.Promotions = nil }, then: "first-version"},
		{row: "drift", name: "a person left it without a current version", given: all(settled, routes("", "", 0, time.Minute)), reason: rollout.RoutingDrift, stalled: true,
			actions: []string{"Drift v2 Lower"}, but: returns("v1", "v2"), then: "first-version"},
		{row: "drift", name: "and the server does not say when", given: all(settled, routes("", "", 0, time.Minute), func(g *given) {
			g.rec.Basis.Current, g.Observation.Routing = id("v1"), rollout.RoutingConfig{}
		}), reason: rollout.RoutingDrift, stalled: true, actions: []string{"Drift v2 Lower"},
			but: func(g *given) { g.listed("v1").Drainage = "" }, then: "first-version"},
	}
}

// TestLostRouting: a lost routing does not count as lowering. Git keeps what it knows, everything is kept, and the
// version that was current becomes so again, with policy's consent. No other one gets all the traffic merely because
// nothing else has any.
func TestLostRouting(t *testing.T) {
	for name, given := range map[string]change{
		"all of it": all(promoted(100*time.Hour), forgets), "in mid-ramp": all(rampsAt(10, time.Minute), forgets), "the first version": forgets,
		"versions that are back": all(rampsAt(10, time.Minute), returns("v1", "v2")),
	} {
		t.Run(name, func(t *testing.T) {
			s := of(given)
			for _, s := range []rollout.Snapshot{s, twice(s)} {
				p := decide(t, s, allowed)
				require.Nil(t, p.Raise)
				require.Nil(t, p.Lower)
				require.Empty(t, p.Versions)
				require.False(t, p.SecondRead)
				require.Equal(t, s.Record.Routing.Spec, *p.Record)
				require.Contains(t, condition(p.Status, v1alpha1.ConditionReady).Message, "Temporal knows nothing of the routing of payments/checkout, in which")
			}
		})
	}
	s := of(promoted(100*time.Hour), returns("v1", "v2"))
	p := decide(t, s, allowed)
	require.Equal(t, []string{"SetCurrent v2 0"}, sayCall(p.Raise))
	require.Equal(t, rollout.ClaimNeeded, p.Raise.Claim)
	require.Equal(t, s.Record.Routing.Spec.Promotions, p.Record.Promotions)
	held := decide(t, s, verdictOn(rollout.Promote, effect(rollout.HoldEffect)))
	require.Nil(t, held.Raise)
	require.Equal(t, s.Record.Routing.Spec, *held.Record)
	require.Nil(t, decide(t, of(promoted(100*time.Hour), returns("v1", "v2"), noPollers("v2")), allowed).Raise)
	require.Nil(t, decide(t, of(promoted(100*time.Hour), returns("v1", "v2"), barsBuild("v2")), allowed).Raise)

	// An edit waits, whatever it asks for, until there is a routing that it can be about.
	for _, edit := range []change{edits("v2", "", 0), edits("", "", 0), edits("v1", "", 0)} {
		s = of(rampsAt(10, time.Minute), returns("v1", "v2"), edit)
		p = decide(t, s, allowed)
		require.Equal(t, "lost", p.Row)
		require.Equal(t, s.Record.Routing.Spec, *p.Record)
	}
	s = of(promoted(100*time.Hour), edits("v1", "", 0), returns("v1", "v2"))
	held = decide(t, s, verdictOn(rollout.Promote, effect(rollout.HoldEffect)))
	require.Equal(t, s.Record.Routing.Spec, *held.Record)
}

// TestLostStory: Temporal comes back with nothing, and all is as Git has it.
func TestLostStory(t *testing.T) {
	w := currentV2(t)
	w.run(time.Hour)
	was := w.routing()
	w.server.routing, w.server.manager = rollout.RoutingConfig{}, ""
	for id := range w.server.versions {
		delete(w.server.versions, id)
	}
	w.cycle()
	require.Equal(t, "RoutingDrift", w.reason())
	w.started = map[string]time.Time{}
	w.run(5 * time.Minute)
	require.Equal(t, []string{"v2 current"}, w.server.calls)
	require.Equal(t, "RolloutComplete*", w.reason())
	require.Equal(t, was.Promotions, w.routing().Promotions)
	require.Nil(t, w.routing().Hold)
	w.settle()
}

// gitLost is a version that the record does not have any more.
func gitLost(tag string) change {
	return func(g *given) {
		g.rec.Versions = slices.DeleteFunc(g.rec.Versions, func(v v1alpha1.RecordedVersion) bool { return v.BuildID == id(tag) })
		delete(g.Record.Files, layout.VersionFile(id(tag), "deployment.yaml"))
	}
}

// TestLostVersions: a version that Temporal has a use for and Git does not have is lost. One that is not needed, or is
// somebody else's, is not lost.
func TestLostVersions(t *testing.T) {
	at := func(tag string, change func(*rollout.VersionObservation)) change {
		return func(g *given) { change(g.listed(tag)) }
	}
	v0 := all(inGit("v0"), up("v0"), gitLost("v0"))
	for name, c := range map[string]struct {
		given change
		want  []string
	}{
		"draining":           {all(v0, drains("v0")), []string{id("v0")}},
		"drained":            {all(v0, drained("v0", time.Hour)), nil},
		"never had traffic":  {v0, nil},
		"nobody knows":       {all(v0, at("v0", func(o *rollout.VersionObservation) { o.DeactivatedAt = ago(time.Hour) })), []string{id("v0")}},
		"current":            {gitLost("v1"), []string{id("v1")}},
		"ramping":            {all(rampsAt(10, time.Minute), gitLost("v2")), []string{id("v2")}},
		"two":                {all(rampsAt(10, time.Minute), gitLost("v2"), gitLost("v1")), []string{id("v1"), id("v2")}},
		"in Git":             {all(inGit("v0"), up("v0"), drains("v0")), nil},
		"somebody else's":    {all(v0, drains("v0"), foreign()), nil},
		"retired":            {all(v0, drains("v0"), func(g *given) { g.rec.Retire = &v1alpha1.Retire{} }), nil},
		"no record":          {all(v0, drains("v0"), func(g *given) { g.Record.Routing = nil }), []string{id("v0"), id("v1")}},
		"an unusable record": {all(v0, drains("v0"), func(g *given) { g.Record.RoutingProblem = &rollout.Problem{} }), nil},
		"no spec":            {all(v0, drains("v0"), func(g *given) { g.Spec = nil }), nil},
		"Temporal is away":   {all(v0, drains("v0"), func(g *given) { g.Observation.Problem = &rollout.Problem{} }), nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Look(of(c.given)).LostVersions()) })
	}
}

// TestLostVersionIsPutBack: a version that was found in history is recorded as it was, and its files are put back. Then
// there is nothing left to do about it.
func TestLostVersionIsPutBack(t *testing.T) {
	lost := func(g *given) {
		g.Lost = []v1alpha1.RecordedVersion{*g.version("v0")}
		gitLost("v0")(g)
	}
	s := of(inGit("v0"), up("v0"), drains("v0"), lost)
	plan := decide(t, s, allowed)
	require.Equal(t, []rollout.VersionWrite{{BuildID: id("v0"), Op: rollout.RestoreFiles, Replicas: replicas(2), Guard: v1alpha1.GuardOn,
		Blobs: map[string]string{"deployment.yaml": "hash-of-v0"}}}, plan.Versions)
	require.Equal(t, []v1alpha1.RecordedVersion{*rollout.FindVersion(s.Record.Routing.Spec.Versions, id("v1")), s.Lost[0]}, plan.Record.Versions)
	require.Empty(t, plan.Status.UnrecordedVersions)
	require.Empty(t, decide(t, of(inGit("v0"), up("v0"), drains("v0")), allowed).Versions)

	// The one that is current, with nothing left of the record.
	s = of(func(g *given) {
		g.Lost = []v1alpha1.RecordedVersion{*g.version("v1")}
		gitLost("v1")(g)
		g.Record.Routing = nil
	})
	plan = decide(t, s, allowed)
	require.Equal(t, rollout.RestoreFiles, plan.Versions[0].Op, "as it was, and not rendered anew")
	again := s.Lost[0]
	again.Attempts = 2
	require.Equal(t, []v1alpha1.RecordedVersion{again}, plan.Record.Versions)
}
