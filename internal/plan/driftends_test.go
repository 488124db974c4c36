package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestHandPromotionAndAPush: somebody promotes what the spec asked for, and pushes the next version before the bot
// looked. The move is taken as it is, or taken back, and the new version gets its files.
func TestHandPromotionAndAPush(t *testing.T) {
	for _, kind := range []v1alpha1.RolloutKind{v1alpha1.Manual, v1alpha1.Progressive, v1alpha1.AllAtOnce} {
		t.Run("first version/"+string(kind), func(t *testing.T) {
			w := newWorld(t)
			strategy(kind)(w.given)
			gate(v1alpha1.GateHold)(w.given)
			w.push("v1")
			w.run(time.Minute)
			w.byHand("v1")
			w.push("v2")
			w.cycle()
			require.NotNil(t, rollout.FindVersion(w.routing().Versions, id("v2")), "files of v2")
			w.run(time.Minute)
			require.Equal(t, []string{"v1 current"}, w.server.calls)
			require.NotEqual(t, "RoutingDrift", w.reason())
		})
	}
	t.Run("Manual", func(t *testing.T) {
		w := currentV1(t)
		strategy(v1alpha1.Manual)(w.given)
		w.push("v2")
		w.run(time.Minute)
		w.byHand("v2")
		w.push("v3")
		w.run(time.Minute)
		require.Equal(t, []string{"v2 current"}, w.server.calls, "v2 was the target when it was made current")
		require.NotNil(t, rollout.FindVersion(w.routing().Versions, id("v3")))
		require.Equal(t, "WaitingForPromotion", w.reason())
	})
	t.Run("held by policy", func(t *testing.T) {
		w := rampingV2(t)
		w.judge = verdictOn(rollout.DriftAction, rollout.Verdict{Effect: rollout.Allow, Drift: rollout.DriftHold})
		w.byHand("v2")
		w.push("v3")
		w.run(time.Minute)
		require.NotNil(t, rollout.FindVersion(w.routing().Versions, id("v3")), "files of v3 are created while the drift waits for a person")
		require.Equal(t, "RoutingDrift", w.reason())
		require.Equal(t, []string{"v2 current"}, w.server.calls)
	})
}

// TestFirstVersionPastAFailedGate: there is nothing that traffic could go back to, so what a person did is taken as it
// is.
func TestFirstVersionPastAFailedGate(t *testing.T) {
	for _, kind := range []v1alpha1.RolloutKind{v1alpha1.Progressive, v1alpha1.AllAtOnce} {
		w := newWorld(t)
		strategy(kind)(w.given)
		gate(v1alpha1.GateHold)(w.given)
		w.push("v1")
		w.run(time.Minute)
		for g := range w.server.gates {
			w.server.gates[g] = rollout.GateFailed
		}
		w.run(time.Minute)
		require.Equal(t, "GateFailed", w.reason())
		w.byHand("v1")
		w.run(time.Minute)
		require.Equal(t, "RolloutComplete*", w.reason())
		require.Equal(t, []string{"v1"}, w.order())
		w.push("v2")
		w.run(time.Minute)
		require.Len(t, w.routing().Versions, 2)
		require.Equal(t, []string{"v1 current"}, w.server.calls)
	}
}

// driftWaits are worlds in which a drift is not answered by the bot, with what its status names.
func driftWaits() map[string]func(require.TestingT) *world {
	waits := verdictOn(rollout.DriftAction, rollout.Verdict{Effect: rollout.Allow, Drift: rollout.DriftHold})
	return map[string]func(require.TestingT) *world{
		"promotion, held by policy": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.judge = waits
			w.byHand("v2")
			return w
		},
		"ramp, held by policy": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.judge = waits
			w.rampByHand("v2", 80)
			return w
		},
		"first version, held by policy": func(t require.TestingT) *world {
			w := newWorld(t)
			gate(v1alpha1.GateHold)(w.given)
			w.judge = waits
			w.push("v1")
			w.run(time.Minute)
			w.byHand("v1")
			return w
		},
		"no workers to go back to": func(t require.TestingT) *world {
			w := rampingV2(t)
			w.broken = id("v1")
			w.server.poll(id("v1"), false)
			w.server.tick(3 * time.Minute)
			w.byHand("v2")
			return w
		},
	}
}

// TestDriftNamesAWayOut: the status of a drift that waits names what a person can do, and each of these ends it.
func TestDriftNamesAWayOut(t *testing.T) {
	for name, start := range driftWaits() {
		t.Run(name, func(t *testing.T) {
			for _, way := range []string{"keep", "undo"} {
				w := start(t)
				w.run(time.Minute)
				require.Equal(t, "RoutingDrift", w.reason())
				message := named(w.message())
				require.Contains(t, message, "To keep it, write it into spec.desired of routing.yaml")
				require.Contains(t, message, "to undo it, set "+named(describe(desiredConfig(w.routing().Desired)))+" in Temporal")
				w.quiet(3, time.Second)
				was := desiredConfig(w.routing().Desired)
				switch way {
				case "keep":
					w.edit(func(r *v1alpha1.RoutingSpec) { r.Desired = desiredOf(w.server.routing) })
				case "undo":
					require.NoError(t, w.server.move(rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: was.Current}))
					if was.HasRamp {
						w.rampByHand(named(was.Ramping), was.Percentage)
					}
				}
				calls := len(w.server.calls)
				w.cycle()
				require.NotEqual(t, "RoutingDrift", w.reason(), way)
				require.True(t, desiredConfig(w.routing().Desired).SameTraffic(w.server.routing))
				require.Len(t, w.server.calls, calls)
			}
		})
	}
}

// A drift that was made under the bot's own identity is most likely another bot's.
func TestDriftBySameIdentity(t *testing.T) {
	for who, own := range map[string]bool{owner: true, "ada@laptop": false, "": false} {
		w := driftWaits()["ramp, held by policy"](t)
		w.server.modifier = who
		w.run(time.Minute)
		require.Equal(t, "RoutingDrift", w.reason())
		require.Equal(t, own, strings.Contains(w.message(), "by "+owner+". That is this environment's own identity: unless a person used it, most likely the bot of another repository has it too, "+
			"so give each a managerIdentity of its own"), "%s: %s", who, w.message())
	}
}

// message is that of the condition Ready.
func (w *world) message() string {
	for _, c := range w.status().Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return c.Message
		}
	}
	return ""
}
