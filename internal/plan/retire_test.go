package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func retires(current v1alpha1.RetireCurrent, since time.Duration) change {
	return func(g *given) {
		g.rec.Retire = &v1alpha1.Retire{Current: current, By: "ada", Reason: "moved", At: stamp(ago(since))}
	}
}

func annotated(value string) change {
	return func(g *given) { g.Spec.Metadata.Annotations = map[string]string{rollout.AnnotationRetire: value} }
}

func used(tag string, n int64) change {
	return func(g *given) { g.listed(tag).InUse = rollout.Counted(n) }
}

// specGone: the spec is the status's, since its own file is gone.
func specGone(g *given) { g.SpecPath = "" }

// ended is a worker deployment that has nothing running.
func ended() change {
	return all(retires(v1alpha1.UnrouteProven, time.Hour), routes("", "", 0, time.Hour), desires("", "", 0), unlisted("v1"), func(g *given) {
		g.rec.Versions = nil
		g.Record.Files = map[string]rollout.File{"routing.yaml": {}, "status.yaml": {}, "kustomization.yaml": {}}
	})
}

// retireRows end a worker deployment.
func retireRows() []rowCase {
	asked := func(since time.Duration) change { return retires(v1alpha1.UnrouteProven, since) }
	unversioned := func(g *given) { g.listed("v1").Queues[0].Unversioned = rollout.Yes }
	unroute := []string{"Unroute v1 100->0 Person approved"}
	resumed := func(g *given) { g.rec.Retire = nil }
	return []rowCase{
		{row: "retire", name: "current stays", given: retires(v1alpha1.KeepCurrent, time.Hour), reason: rollout.Retiring, stalled: true, but: resumed, then: "complete"},
		{row: "retire", name: "by annotation", given: annotated("true"), reason: rollout.Retiring, stalled: true, but: annotated("false"), then: "complete"},
		{row: "retire", name: "annotated before", given: all(retires(v1alpha1.KeepCurrent, time.Hour), func(g *given) { g.rec.Retire.By = byAnnotation }, annotated("true")),
			reason: rollout.Retiring, stalled: true, but: annotated(""), then: "complete"},
		{row: "retire", name: "the ramp first", given: all(rampsAt(10, time.Minute), asked(time.Hour)), reason: rollout.Retiring,
			actions: []string{"ResetRamp v2 10->0 Person"}, but: resumed, then: "pause"},
		{row: "retire", name: "what was asked for is not created", given: all(asks("v2"), retires(v1alpha1.KeepCurrent, time.Hour)), reason: rollout.Retiring, stalled: true,
			but: resumed, then: "create"},
		{row: "retire", name: "owned by another", given: all(asked(2*time.Hour), used("v1", 0), foreign()), reason: rollout.OwnedByAnother, stalled: true,
			but: all(resumed, func(g *given) { g.Observation.ManagerIdentity = owner }), then: "complete"},
		{row: "retire", name: "owned by another, and its ramp stays", given: all(rampsAt(10, time.Minute), asked(time.Hour), foreign()), reason: rollout.OwnedByAnother, stalled: true,
			but: all(resumed, func(g *given) { g.Observation.ManagerIdentity = owner }), then: "pause"},
		{row: "retire", name: "nothing uses it", given: all(asked(61*time.Minute), used("v1", 0)), reason: rollout.Retiring, actions: unroute, but: resumed, then: "complete"},
		{row: "retire", name: "asked for too lately", given: all(asked(time.Hour), used("v1", 0)), reason: rollout.Retiring, but: resumed, then: "complete"},
		{row: "retire", name: "a minute at least", given: all(asked(time.Minute), used("v1", 0), sunset(0, 0)), reason: rollout.Retiring, but: resumed, then: "complete"},
		{row: "retire", name: "a minute is enough", given: all(asked(time.Minute+1), used("v1", 0), sunset(0, 0)), reason: rollout.Retiring, actions: unroute,
			but: resumed, then: "complete"},
		{row: "retire", name: "in use", given: all(asked(2*time.Hour), used("v1", 1)), reason: rollout.Retiring, but: resumed, then: "complete"},
		{row: "retire", name: "use not known", given: asked(2 * time.Hour), reason: rollout.Retiring, but: resumed, then: "complete"},
		{row: "retire", name: "unversioned workers are there", given: all(asked(0), used("v1", 7), unversioned), reason: rollout.Retiring, actions: unroute, but: resumed, then: "complete"},
		{row: "retire", name: "but not on every queue", given: all(asked(0), used("v1", 7), unversioned, func(g *given) {
			g.listed("v1").Queues = append(g.listed("v1").Queues, polled("refunds"))
		}), reason: rollout.Retiring, but: resumed, then: "complete"},
		{row: "retire", name: "an old read", given: all(asked(2*time.Hour), used("v1", 0), func(g *given) { g.Observation.At = ago(61 * time.Second) }), reason: rollout.StaleFacts,
			but: func(g *given) { g.rec.Retire, g.Observation.At = nil, noon }, then: "complete"},
		{row: "retire", name: "without proof", given: all(retires(v1alpha1.UnrouteAnyway, 0), used("v1", 7)), reason: rollout.Retiring, actions: unroute, but: resumed, then: "complete"},
		{row: "retire", name: "without proof, and not listed", given: all(retires(v1alpha1.UnrouteAnyway, 0), unlisted("v1")), reason: rollout.StaleFacts, but: resumed, then: "complete"},
		{row: "retire", name: "versions are left", given: all(asked(0), routes("", "", 0, time.Hour), desires("", "", 0), drains("v1")), reason: rollout.Retiring,
			but: resumed, then: "first-version"},
		{row: "retire", name: "the spec is left", given: ended(), reason: rollout.Retiring, stalled: true, but: resumed, then: "create"},
		{row: "retire", name: "files of others are left", given: all(ended(), specGone, func(g *given) { g.Record.Files["notes.md"] = rollout.File{} }),
			reason: rollout.Retiring, stalled: true, but: resumed, then: "create"},
		{row: "retire", name: "nothing is left", given: all(ended(), specGone), reason: rollout.Retiring, but: resumed, then: "create"},
		{row: "retire", name: "in the namespace that it was in", given: all(retires(v1alpha1.KeepCurrent, time.Hour), func(g *given) { g.Spec.Spec.WorkerOptions.TemporalNamespace = "other" }),
			reason: rollout.Retiring, stalled: true, but: resumed, then: "spec-unusable"},
	}
}

// askedCases are versions that a person asked to go.
func askedCases() []otherCase {
	asked := func(g *given) {
		g.version("v1").Retire = &v1alpha1.Asked{By: "ada", At: stamp(noon)}
	}
	fresh := all(promoted(2*time.Minute), drained("v1", time.Minute))
	down := all(fresh, scaledDown("v1", time.Minute), noPollers("v1"))
	forget := func(g *given) { g.version("v1").Retire = nil }
	return []otherCase{
		{row: "scale-down", name: "asked for, in the window", given: all(fresh, asked), actions: []string{"ScaleDown v1 approved x0"}, but: forget, then: "window"},
		{row: "scale-down", name: "asked for, never routed", given: all(inactive(time.Minute), asked), actions: []string{"ScaleDown v1 approved x0"}, but: drains("v1"), then: "routed"},
		{row: "scale-down", name: "asked for, and pinned", given: all(fresh, asked, func(g *given) { g.listed("v1").OpenPinned = rollout.Counted(1) }), but: forget, then: "window"},
		{row: "routed", name: "asked for, and draining", given: all(promoted(time.Minute), asked), but: drained("v1", time.Second), then: "scale-down"},
		{row: "scale-down", name: "all of it is retired: no window", given: all(promoted(100*time.Minute), drained("v1", 61*time.Minute), func(g *given) {
			g.Spec.Spec.Rollout.Rollback.Window = lasting(48 * time.Hour)
			retires(v1alpha1.KeepCurrent, time.Minute)(g)
		}), actions: []string{"ScaleDown v1 approved x0"}, but: func(g *given) { g.rec.Retire = nil }, then: "window"},
		{row: "delete", name: "asked for", given: all(down, asked), actions: []string{"DeleteVersion v1 approved"}, but: forget, then: "delete"},
		{row: "set-aside", name: "asked for, rests a minute", given: all(down, asked, aside("v1", time.Second, 1)), due: noon.Add(59 * time.Second),
			but: aside("v1", time.Minute, 1), then: "delete"},
	}
}

// TestUnroute: it is committed before Temporal hears of it, and policy can hold it.
func TestUnroute(t *testing.T) {
	s := of(all(retires(v1alpha1.UnrouteProven, 2*time.Hour), used("v1", 0)))
	p := decide(t, s, allowed)
	require.Equal(t, []string{"SetCurrent  0"}, sayCall(p.Raise))
	require.Nil(t, p.Lower)
	require.Equal(t, v1alpha1.DesiredRouting{}, p.Record.Desired)
	require.Equal(t, id("v1"), p.Record.Basis.Current)
	for _, e := range []rollout.Effect{rollout.HoldEffect, rollout.RollbackEffect, ""} {
		held := decide(t, s, verdictOn(rollout.Unroute, effect(e)))
		require.Nil(t, held.Raise)
		require.Nil(t, held.Lower)
		require.Equal(t, s.Record.Routing.Spec.Desired, held.Record.Desired)
	}
	approved := decide(t, s, verdictOn(rollout.Unroute, effect(rollout.RequireApproval)))
	require.NotNil(t, approved.Raise, "a person asked for it")
}

// TestAskUnroute: it is asked whether anything uses the version only where that decides.
func TestAskUnroute(t *testing.T) {
	a := Look(of(retires(v1alpha1.UnrouteProven, 2*time.Hour))).Ask()
	require.Equal(t, []string{id("v1")}, a.InUse)
	require.Equal(t, ago(time.Hour), a.InUseSince)
	require.Equal(t, []string{id("v1")}, a.Queues)
	soon := Look(of(retires(v1alpha1.UnrouteProven, time.Hour-30*time.Second))).Ask()
	require.Equal(t, []string{id("v1")}, soon.InUse, "it may decide by the time of the decision")
	for name, given := range map[string]change{
		"too early":     retires(v1alpha1.UnrouteProven, time.Hour-2*time.Minute),
		"without proof": retires(v1alpha1.UnrouteAnyway, 2*time.Hour),
	} {
		a := Look(of(given)).Ask()
		require.Equal(t, []string{id("v1")}, a.Queues, name)
		require.Empty(t, a.InUse, name)
		require.Zero(t, a.InUseSince, name)
	}
	require.Empty(t, Look(of(retires(v1alpha1.KeepCurrent, 2*time.Hour))).Ask().InUse)
	require.Empty(t, Look(of(none)).Ask().InUse)
}

func TestNeverRetire(t *testing.T) {
	proven := all(retires(v1alpha1.UnrouteProven, 2*time.Hour), used("v1", 0))
	over := all(ended(), specGone)
	for _, c := range []struct {
		name  string
		given change
		spoil func(*rollout.Snapshot, *rollout.Plan)
		want  string
	}{
		{"nobody asked", proven, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Record.Routing.Spec.Retire = nil }, "which was not asked for"},
		{"asked to keep it", proven, func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Record.Routing.Spec.Retire.Current = v1alpha1.KeepCurrent
		}, "which was not asked for"},
		{"in use", proven, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Observation.Version(id("v1")).InUse.N = 1 }, "not known whether it is still needed"},
		{"use not known", proven, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Observation.Version(id("v1")).InUse.Known = false }, "not known whether it is still needed"},
		{"asked lately", proven, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Record.Routing.Spec.Retire.At = stamp(ago(time.Hour)) }, "not known whether it is still needed"},
		{"not listed", proven, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Observation.Versions = nil }, "nothing is known of it"},
		{"without proof, and not listed", all(retires(v1alpha1.UnrouteAnyway, 0), used("v1", 7)), func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Observation.Versions = nil
		}, "nothing is known of it"},
		{"old facts", proven, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Observation.At = ago(2 * time.Minute) }, "2m0s old"},
		{"released", proven, func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Record.Routing.Spec.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldReleased}
		}, "would change a worker deployment"},
		{"the record: nobody asked", over, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Record.Routing.Spec.Retire = nil }, "it was not asked for"},
		{"the record: versions", over, func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Record.Routing.Spec.Versions = []v1alpha1.RecordedVersion{{BuildID: "x"}}
		}, "it has versions"},
		{"the record: the spec", over, func(s *rollout.Snapshot, _ *rollout.Plan) { s.SpecPath = "workers/checkout.yaml" }, "its spec is there"},
		{"the record: more to do", over, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Deletions = []string{"x"} }, "there is more to do"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(c.given)
			p := decide(t, s, allowed)
			require.True(t, p.Remove || p.Raise != nil)
			c.spoil(&s, &p)
			require.Contains(t, strings.Join(Never(s, p), "\n"), c.want)
		})
	}
}

// TestRetireStory: a worker deployment ends in mid-ramp; a pinned workflow keeps its version to the end.
func TestRetireStory(t *testing.T) {
	w := rampingV2(t)
	w.server.versions[id("v2")].open = 1
	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Retire = &v1alpha1.Retire{Current: v1alpha1.UnrouteProven, By: "ada", Reason: "moved", At: stamp(w.server.now)}
	})
	w.run(30 * time.Minute)
	require.Equal(t, []string{"clear"}, w.server.calls)
	require.Equal(t, "Retiring", w.reason())
	w.run(2 * time.Hour)
	require.Equal(t, []string{"clear", " current"}, w.server.calls, "an hour after it was asked for")
	w.given.SpecPath = ""
	w.run(60 * time.Hour)
	require.Len(t, w.routing().Versions, 1)
	require.Equal(t, v1alpha1.GuardOn, w.routing().Versions[0].Guard)
	w.server.versions[id("v2")].open = 0
	for range 500 {
		if len(w.files) == 0 {
			break // of what has neither a spec nor a record there is no cycle
		}
		w.cycle()
		w.pods()
		w.server.tick(10 * time.Minute)
	}
	require.Empty(t, w.files)
	require.Empty(t, w.server.versions)
	require.Equal(t, []string{"clear", " current"}, w.server.calls)
}

// TestUnretire: what has gone comes back as a first version.
func TestUnretire(t *testing.T) {
	w := currentV1(t)
	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Retire = &v1alpha1.Retire{Current: v1alpha1.UnrouteAnyway, By: "ada", At: stamp(w.server.now)}
	})
	w.run(3 * time.Hour)
	require.Equal(t, []string{" current"}, w.server.calls)
	require.True(t, retired(&w.routing().Versions[0]))
	w.edit(func(r *v1alpha1.RoutingSpec) { r.Retire = nil })
	w.run(5 * time.Minute)
	require.Equal(t, []string{" current", "v1 current"}, w.server.calls)
	require.Equal(t, "RolloutComplete*", w.reason())
	w.settle()
}

// TestAnnotationIsWrittenDown: so that it is known still when the spec is gone.
func TestAnnotationIsWrittenDown(t *testing.T) {
	w := currentV1(t)
	annotated("true")(w.given)
	w.run(time.Minute)
	require.Equal(t, byAnnotation, w.routing().Retire.By)
	w.quiet(5, time.Hour)
	annotated("false")(w.given)
	w.run(time.Minute)
	require.Nil(t, w.routing().Retire)
	require.Equal(t, "RolloutComplete*", w.reason())
}

// TestReleased: nothing of the routing is touched, whatever the spec asks for, until it is adopted.
func TestReleased(t *testing.T) {
	w := rampingV2(t)
	w.server.manager = ""
	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldReleased, By: "ada", Reason: "lunch", At: stamp(w.server.now)}
	})
	w.push("v1")
	w.run(3 * time.Hour)
	require.Empty(t, w.server.calls)
	require.Equal(t, "OwnedByAnother", w.reason())
	require.Contains(t, w.status().Conditions[0].Message, "rampart adopt payments/checkout")
	w.edit(func(r *v1alpha1.RoutingSpec) { r.Hold = nil })
	w.run(time.Minute)
	require.Equal(t, []string{"clear"}, w.server.calls)
}

// TestAskedIsForgotten: a version that is wanted again is as any other.
func TestAskedIsForgotten(t *testing.T) {
	for name, wanted := range map[string]change{"asked for": wants("v1"), "routed": routes("v1", "", 0, time.Second)} {
		t.Run(name, func(t *testing.T) {
			s := of(all(promoted(time.Minute), wanted, func(g *given) {
				g.version("v1").Retire = &v1alpha1.Asked{By: "ada", At: stamp(noon)}
			}))
			require.Nil(t, rollout.FindVersion(decide(t, s, allowed).Record.Versions, id("v1")).Retire)
		})
	}
}

// TestRecordStaysWithABrokenSpec: where a file cannot be read, it is not known that the spec is gone.
func TestRecordStaysWithABrokenSpec(t *testing.T) {
	broken := func(g *given) { g.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}} }
	require.True(t, decide(t, of(all(ended(), specGone)), allowed).Remove)
	require.False(t, decide(t, of(all(ended(), specGone, broken)), allowed).Remove)
}

// TestRetiredWithoutConnection: the status says that nothing goes, and why.
func TestRetiredWithoutConnection(t *testing.T) {
	p := decide(t, of(promoted(100*time.Hour), retires(v1alpha1.KeepCurrent, time.Hour), recorded, func(g *given) { g.Connection = nil }), allowed)
	ready := condition(p.Status, v1alpha1.ConditionReady)
	require.Equal(t, string(rollout.ConnectionNotFound), ready.Reason)
	require.Contains(t, ready.Message, "payments/checkout is retired by ada, and nothing of it is scaled down or removed until the connection is back")
	require.Empty(t, p.Versions)
}

// TestWhyItStays: a person who retires a worker deployment hears at once what keeps its versions from going.
func TestWhyItStays(t *testing.T) {
	gone := func(g *given) { g.Spec, g.SpecPath = nil, "" }
	for _, c := range []struct {
		name  string
		given change
		says  string
	}{
		{"nothing keeps them", none, ""},
		{"no connection", func(g *given) { g.Connection = nil }, "payments/checkout is retired by ada, and nothing of it is scaled down"},
		{"the spec is gone, its status is there", all(recorded, gone), ""},
		{"the spec is gone, and its status", gone, "bring the spec back until all is retired"},
		{"the spec is broken", all(recorded, func(g *given) {
			g.Spec, g.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}}
		}), "line 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(c.given)
			why := WhyItStays(s, v1alpha1.Retire{By: "ada", At: stamp(noon)})
			require.Nil(t, s.Record.Routing.Spec.Retire, "the record stays as it is")
			if c.says == "" {
				require.Empty(t, why)
			} else {
				require.Contains(t, why, c.says)
			}
		})
	}
}
