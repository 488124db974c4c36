package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// hold holds it, as a person's command does.
func (w *world) hold() {
	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, BuildID: r.Target.BuildID, By: "ada", Reason: "lunch", At: stamp(w.server.now)}
	})
}

// resumed takes the hold away, as a person's command does.
func (w *world) resumed() { w.edit(func(r *v1alpha1.RoutingSpec) { *r = Resumed(*r) }) }

// heldWorlds are worlds that a person holds, and in which people moved traffic up then.
func heldWorlds() map[string]func(require.TestingT) *world {
	return map[string]func(require.TestingT) *world{
		"ramp of the target": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.hold()
			w.cycle()
			w.rampByHand("v2", 80)
			return w
		},
		"promotion of the target": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.hold()
			w.byHand("v2")
			return w
		},
		"promotion of another version": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.push("v1")
			w.run(time.Minute)
			w.hold()
			w.byHand("v2")
			return w
		},
		"ramp of another version": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.push("v1")
			w.run(time.Minute)
			w.hold()
			w.rampByHand("v2", 40)
			return w
		},
		"Manual, and a new target": func(t require.TestingT) *world {
			w := currentV1(t)
			strategy(v1alpha1.Manual)(w.given)
			w.push("v2")
			w.run(time.Minute)
			w.hold()
			w.rampByHand("v2", 40)
			return w
		},
		"promotion of a barred build": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.judge = turnsBack
			w.cycle()
			w.judge = allowed
			w.run(time.Minute)
			w.hold()
			w.byHand("v2")
			return w
		},
		"ramp of a barred build": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.judge = turnsBack
			w.cycle()
			w.judge = allowed
			w.run(time.Minute)
			w.hold()
			w.rampByHand("v2", 40)
			return w
		},
	}
}

// TestHoldRevertsNothing: while a person holds it, what people moved stays, also over a new target and through many
// cycles.
func TestHoldRevertsNothing(t *testing.T) {
	for name, start := range heldWorlds() {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			was := w.server.routing
			w.server.calls = nil
			w.run(2 * time.Hour)
			w.push("v3")
			w.run(2 * time.Hour)
			require.Empty(t, w.server.calls)
			require.True(t, was.Same(w.server.routing))
			require.Equal(t, "ManualHold", w.reason())
			require.Contains(t, named(w.message()), named(describe(was))+" is in Temporal, and left as it is")
			require.Contains(t, w.message(), "held by ada: lunch")
			w.quiet(5, time.Minute)
		})
	}
}

// TestHeldIsLoweredAllTheSame: by a verdict, by a gate that fails, and by a command.
func TestHeldIsLoweredAllTheSame(t *testing.T) {
	for name, start := range heldWorlds() {
		t.Run(name+"/verdict", func(t *testing.T) {
			w := start(t)
			w.cycle()
			w.server.calls = nil
			w.judge = turnsBack
			w.run(time.Minute)
			require.Equal(t, id("v1"), w.server.routing.Current, "%v", w.server.calls)
			require.False(t, w.server.routing.HasRamp)
			require.Equal(t, v1alpha1.HoldManual, w.routing().Hold.Kind)
		})
		t.Run(name+"/command", func(t *testing.T) {
			w := start(t)
			w.cycle()
			s := w.look()
			wish := adasWish
			wish.BuildID = id("v2")
			s.Observation = w.server.observe(Look(s).AskTakeBack(wish))
			taken, err := Look(s).DecideTakeBack(wish)
			require.NoError(t, err)
			require.NoError(t, w.server.call(*taken.Plan.Lower, true, false))
			w.edit(func(r *v1alpha1.RoutingSpec) { *r = taken.Record(*r) })
			w.run(time.Hour)
			require.Equal(t, id("v1"), w.server.routing.Current)
			require.False(t, w.server.routing.HasRamp)
			require.Equal(t, v1alpha1.HoldManual, w.routing().Hold.Kind)
		})
	}
	t.Run("gate", func(t *testing.T) {
		w := gatedV2(t)
		w.hold()
		w.cycle()
		w.server.calls = nil
		for g := range w.server.gates {
			w.server.gates[g] = rollout.GateFailed
		}
		w.run(time.Minute)
		require.Equal(t, []string{"clear"}, w.server.calls)
	})
	t.Run("a reverted spec, for what the bot moved", func(t *testing.T) {
		w := rampingV2(t)
		w.hold()
		w.cycle()
		w.push("v1")
		w.run(time.Minute)
		require.Equal(t, []string{"clear"}, w.server.calls)
	})
	t.Run("an interrupted rollback", func(t *testing.T) {
		w := heldWorlds()["ramp of the target"](t)
		w.cycle()
		w.server.calls = nil
		w.server.versions[id("v2")].TurnedBack = markText(1, "timeouts")
		w.run(time.Minute)
		require.Equal(t, []string{"clear"}, w.server.calls)
	})
}

// TestResumeGoesOnFromWhereTrafficIs: what people moved while it was held is not put back then either.
func TestResumeGoesOnFromWhereTrafficIs(t *testing.T) {
	for name, want := range map[string][]string{
		"ramp of the target": {"v2 50", "v2 current"}, "promotion of the target": nil,
		"promotion of another version": {"v1 current"}, "ramp of another version": {"clear"},
	} {
		t.Run(name, func(t *testing.T) {
			w := heldWorlds()[name](t)
			w.run(time.Hour)
			w.server.calls = nil
			w.resumed()
			w.run(time.Hour)
			require.Equal(t, want, w.server.calls)
			require.Contains(t, w.reason(), "*")
		})
	}
}

// TestResumeKeepsAnEdit: an edit of routing.yaml that waits for an answer is not lost.
func TestResumeKeepsAnEdit(t *testing.T) {
	w := rampingV2(t)
	w.hold()
	w.cycle()
	w.edit(func(r *v1alpha1.RoutingSpec) { r.Desired.Ramping = nil })
	w.resumed()
	w.run(time.Minute)
	require.Equal(t, []string{"clear"}, w.server.calls)
}
