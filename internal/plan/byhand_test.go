package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// byHand makes a version current in Temporal, as a person does.
func (w *world) byHand(tag string) {
	require.NoError(w.t, w.server.move(rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: id(tag)}))
}

// rampByHand sets a ramp in Temporal, as a person does.
func (w *world) rampByHand(tag string, percentage float32) {
	require.NoError(w.t, w.server.move(rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: id(tag), Percentage: percentage}))
}

func (w *world) resume() { w.edit(func(r *v1alpha1.RoutingSpec) { r.Hold = nil }) }

// order is the promotion order in short: each version, and how it was left.
func (w *world) order() []string {
	var out []string
	for _, p := range w.routing().Promotions {
		out = append(out, named(p.BuildID)+map[v1alpha1.LeftBy]string{v1alpha1.LeftByPromotion: " promotion", v1alpha1.LeftByRollback: " rollback",
			v1alpha1.LeftByOutside: " outside"}[p.LeftBy])
	}
	return out
}

// manualV2 is a world with the strategy Manual in which a person made v1 current, and then v2.
func manualV2(t require.TestingT) *world {
	w := newWorld(t)
	strategy(v1alpha1.Manual)(w.given)
	for _, tag := range []string{"v1", "v2"} {
		w.push(tag)
		w.run(time.Minute)
		w.byHand(tag)
		w.run(time.Minute)
		require.Equal(t, "RolloutComplete*", w.reason())
	}
	w.commits, w.server.calls = nil, nil
	return w
}

// startsOf are worlds in which v2 is current after v1, by strategy: made so by the bot, or under Manual by a person.
func startsOf() map[v1alpha1.RolloutKind]func(require.TestingT) *world {
	return map[v1alpha1.RolloutKind]func(require.TestingT) *world{
		v1alpha1.Progressive: currentV2,
		v1alpha1.Manual:      manualV2,
		v1alpha1.AllAtOnce: func(t require.TestingT) *world {
			w := currentV1(t)
			strategy(v1alpha1.AllAtOnce)(w.given)
			w.push("v2")
			w.run(2 * time.Minute)
			require.Equal(t, []string{"v2 current"}, w.server.calls)
			w.commits, w.server.calls = nil, nil
			return w
		},
	}
}

// TestBackAfterAHandPromotion: no matter who promoted v2, a command, a verdict and a reverted spec bring v1 back, and
// it stays.
func TestBackAfterAHandPromotion(t *testing.T) {
	adopted := func(t require.TestingT) *world {
		w := rampingV2(t)
		w.judge = verdictOn(rollout.DriftAction, rollout.Verdict{Effect: rollout.Allow, Drift: rollout.DriftAdopt})
		w.byHand("v2")
		w.run(time.Minute)
		w.judge = allowed
		w.commits, w.server.calls = nil, nil
		return w
	}
	for start, begin := range map[string]func(require.TestingT) *world{"Manual": manualV2, "adopted": adopted} {
		for name, back := range map[string]func(*world){
			"command": func(w *world) {
				s := w.look()
				s.Observation = w.server.observe(Look(s).AskTakeBack(adasWish))
				taken, err := Look(s).DecideTakeBack(adasWish)
				require.NoError(t, err)
				require.NoError(t, w.server.call(*taken.Plan.Lower, true, false))
				w.edit(func(r *v1alpha1.RoutingSpec) { *r = taken.Record(*r) })
			},
			"verdict": func(w *world) {
				w.judge = turnsBack
				w.cycle()
				w.judge = allowed
			},
			"reverted spec": func(w *world) { w.push("v1") },
		} {
			t.Run(start+"/"+name, func(t *testing.T) {
				w := begin(t)
				require.Equal(t, []string{"v1 promotion", "v2"}, w.order())
				back(w)
				w.run(3 * time.Hour)
				require.Equal(t, []string{"v1 current"}, w.server.calls)
				require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1"}, w.order())
				require.Nil(t, w.routing().Hold)
				w.quiet(5, time.Minute)
			})
		}
	}
}

// TestHandMoveBack: under every strategy a hand move to a version earlier in the promotion order is a rollback: adopted
// and held. After resume the target starts over at its first gate.
func TestHandMoveBack(t *testing.T) {
	for kind, start := range startsOf() {
		t.Run(string(kind), func(t *testing.T) {
			w := start(t)
			gate(v1alpha1.GateHold)(w.given)
			w.byHand("v1")
			w.run(3 * time.Hour)
			require.Equal(t, []string{"v1 current"}, w.server.calls, "what a person moved back stays there")
			require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1"}, w.order())
			require.Equal(t, "ManualHold", w.reason())
			require.Equal(t, v1alpha1.HoldDrift, w.routing().Hold.Kind)
			require.Equal(t, id("v1"), w.routing().Desired.Current)
			w.quiet(5, time.Minute)

			w.server.calls = nil
			w.resume()
			w.run(time.Minute)
			require.Empty(t, w.server.calls)
			if kind == v1alpha1.Manual {
				require.Equal(t, "WaitingForPromotion", w.reason())
				return
			}
			require.Equal(t, 2, w.routing().Target.Attempt)
			require.Equal(t, "GateRunning", w.reason())
			require.Len(t, w.server.gates, 1)
		})
	}
}

// TestHandMoveBackRunsTheGateAgain: the gate that passed before a hand rollback does not count for what follows.
func TestHandMoveBackRunsTheGateAgain(t *testing.T) {
	w := currentV1(t)
	gate(v1alpha1.GateHold)(w.given)
	w.push("v2")
	w.run(time.Minute)
	require.Len(t, w.server.gates, 1)
	pass := func() {
		for g := range w.server.gates {
			w.server.gates[g] = rollout.GateCompleted
		}
	}
	pass()
	w.run(25 * time.Minute)
	require.Equal(t, id("v2"), w.server.routing.Current)
	w.byHand("v1")
	w.run(15 * time.Minute) // until v2 has drained, which is told once
	commits := len(w.commits)
	w.run(time.Hour)
	require.Len(t, w.commits, commits, "the new attempt is in the commit that adopts")
	w.server.calls = nil
	w.resume()
	w.run(time.Minute)
	require.Empty(t, w.server.calls)
	require.Len(t, w.server.gates, 2)
	pass()
	w.run(time.Minute)
	require.Equal(t, []string{"v2 10"}, w.server.calls)
}

// TestHandMoveBackFromBeneathARamp: a person goes back from v2 to v1 while v3 ramps. If they clear its ramp too, v3
// starts over at its first gate; if they leave it, it goes on from there.
func TestHandMoveBackFromBeneathARamp(t *testing.T) {
	for _, clears := range []bool{true, false} {
		w := currentV2(t)
		gate(v1alpha1.GateHold)(w.given)
		w.push("v3")
		w.run(time.Minute)
		for g := range w.server.gates {
			w.server.gates[g] = rollout.GateCompleted
		}
		w.run(time.Minute)
		require.Equal(t, []string{"v3 10"}, w.server.calls)
		if clears {
			require.NoError(t, w.server.move(rollout.RoutingStep{Kind: rollout.ClearRamp}))
		}
		w.byHand("v1")
		w.run(time.Hour)
		require.Equal(t, "ManualHold", w.reason())
		require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1"}, w.order())
		w.server.calls = nil
		w.resume()
		w.run(time.Minute)
		require.Len(t, w.server.gates, map[bool]int{true: 2, false: 1}[clears])
		require.Equal(t, map[bool][]string{false: {"v3 50"}}[clears], w.server.calls)
	}
}

// TestHandMoveBackBesideARevertedSpec: a person moves to v1 while the spec goes from v3 back to v2. v2 stood before v3,
// not before v1: it does not return at once.
func TestHandMoveBackBesideARevertedSpec(t *testing.T) {
	for _, resumes := range []bool{false, true} {
		w := currentV2(t)
		w.push("v3")
		w.run(25 * time.Minute)
		require.Equal(t, id("v3"), w.server.routing.Current)
		w.server.calls = nil
		w.byHand("v1")
		w.push("v2")
		if resumes {
			w.cycle()
			w.resume()
		}
		w.run(time.Minute)
		require.Equal(t, []string{"v1 current", "v2 10"}, w.server.calls, "a spec that asks for another build ends the hold, and goes step by step")
		require.Equal(t, []string{"v1 promotion", "v2 promotion", "v3 rollback", "v1"}, w.order())
	}
}

// TestHandMoveBackBeforeTheTargetReturns: the spec went back to v1, whose workers are away. A person goes back to v2
// meanwhile: that is adopted and held, and v1 does not return before they resume.
func TestHandMoveBackBeforeTheTargetReturns(t *testing.T) {
	w := currentV2(t)
	w.spec().Rollout.Rollback.Window = lasting(24 * time.Hour)
	w.push("v3")
	w.run(25 * time.Minute)
	require.Equal(t, id("v3"), w.server.routing.Current)
	w.broken = id("v1")
	w.pods()
	w.server.tick(3 * time.Minute)
	w.push("v1")
	w.run(time.Minute)
	require.Equal(t, "WaitingForPollers", w.reason())
	w.server.calls, w.broken = nil, ""
	w.pods()
	w.byHand("v2")
	w.run(10 * time.Minute)
	require.Equal(t, []string{"v2 current"}, w.server.calls)
	require.Equal(t, "ManualHold", w.reason())
	w.resume()
	w.run(time.Minute)
	require.Equal(t, []string{"v2 current", "v1 current"}, w.server.calls)
}

// TestHandMoveWhileADriftIsHeld: a person promotes v3, which policy holds, and goes back to v2. v3 does not return at
// once.
func TestHandMoveWhileADriftIsHeld(t *testing.T) {
	w := currentV2(t)
	w.push("v3")
	w.run(time.Minute)
	w.server.calls = nil
	w.judge = verdictOn(rollout.DriftAction, rollout.Verdict{Effect: rollout.Allow, Drift: rollout.DriftHold})
	w.byHand("v3")
	w.run(time.Minute)
	require.Equal(t, "RoutingDrift", w.reason())
	w.byHand("v2")
	w.run(2 * time.Hour)
	require.Equal(t, []string{"v3 current", "v2 current"}, w.server.calls)
	require.Equal(t, []string{"v1 promotion", "v2 promotion", "v3 rollback", "v2"}, w.order())
	require.Equal(t, "ManualHold", w.reason())
}

// TestManualPromotionEndsADriftHold: under Manual a person makes the target current again, and that ends the hold of
// the move back.
func TestManualPromotionEndsADriftHold(t *testing.T) {
	w := manualV2(t)
	w.byHand("v1")
	w.run(time.Minute)
	require.Equal(t, "ManualHold", w.reason())
	w.byHand("v2")
	w.run(time.Minute)
	require.Nil(t, w.routing().Hold)
	require.Equal(t, "RolloutComplete*", w.reason())
	require.Equal(t, []string{"v1 current", "v2 current"}, w.server.calls)
	require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1 promotion", "v2"}, w.order())
	w.run(15 * time.Minute) // until v1 has drained, which is told once
	w.quiet(5, time.Minute)
}

// TestMovedBackAndWrittenDown: a person goes back to v1 in Temporal, and writes that into routing.yaml. It is a
// rollback, though the file asks for it: the bot did not decide it.
func TestMovedBackAndWrittenDown(t *testing.T) {
	w := manualV2(t)
	w.byHand("v1")
	w.edit(func(r *v1alpha1.RoutingSpec) { r.Desired = v1alpha1.DesiredRouting{Current: id("v1")} })
	w.run(time.Minute)
	require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1"}, w.order())
	require.Equal(t, "ManualHold", w.reason())
}

// TestManualRampIsNoDrift: under Manual a person raises and lowers the target's ramp as they like.
func TestManualRampIsNoDrift(t *testing.T) {
	w := currentV1(t)
	strategy(v1alpha1.Manual)(w.given)
	w.push("v2")
	w.run(time.Minute)
	for _, percentage := range []float32{10, 80, 5} {
		w.rampByHand("v2", percentage)
		w.run(time.Minute)
		require.Equal(t, "Ramping", w.reason())
		require.Nil(t, w.routing().Hold)
	}
	require.Equal(t, []string{"v2 10", "v2 80", "v2 5"}, w.server.calls)
}

// TestRaiseLostAndMovedBack: the bot promoted v2 and died; a person moved back to v1. That is a rollback, with or
// without a Temporal that says what was current since.
func TestRaiseLostAndMovedBack(t *testing.T) {
	for _, old := range []bool{false, true} {
		w := rampingV2(t)
		w.server.old = old
		w.run(10 * time.Minute)
		require.Equal(t, []string{"v2 50"}, w.server.calls)
		w.server.calls = nil
		w.dies, w.lives = midRaise, func(p rollout.Plan) bool { return p.Raise == nil }
		for range 100 {
			w.dies = midRaise
			w.cycle()
			w.server.tick(10 * time.Second)
			if len(w.server.calls) > 0 {
				break
			}
		}
		require.Equal(t, []string{"v2 current"}, w.server.calls)
		w.dies = ""
		w.byHand("v1")
		w.run(2 * time.Hour)
		require.Equal(t, []string{"v2 current", "v1 current"}, w.server.calls)
		require.Equal(t, "ManualHold", w.reason())
		if !old {
			require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1"}, w.order())
		}
	}
}

// TestRaiseThatNeverCame: the bot decided to promote v2, and somebody promoted another version before it could. What is
// taken back goes to the version that was current then.
func TestRaiseThatNeverCame(t *testing.T) {
	w := rampingV2(t)
	w.lives = func(p rollout.Plan) bool { return p.Raise == nil }
	w.server.poll(id("v3"), true)
	for w.routing().Desired.Current != id("v2") {
		w.dies = ""
		if w.routing().Desired.Ramping.Percentage == 50 {
			w.dies = afterCommit
		}
		w.cycle()
		w.server.tick(10 * time.Second)
	}
	w.server.calls, w.dies = nil, ""
	w.byHand("v3")
	w.cycle()
	require.Equal(t, []string{"v3 current", "clear", "v1 current"}, w.server.calls)
}

// TestRollbackToWhatCameMeanwhile: v2 and v3 were promoted by hand between two cycles, and a verdict turns v3 back.
// Traffic goes to v2, which Git never saw current.
func TestRollbackToWhatCameMeanwhile(t *testing.T) {
	w := manualV2(t)
	for _, tag := range []string{"v3", "v4"} {
		w.push(tag)
		w.run(time.Minute)
	}
	w.byHand("v3")
	w.server.tick(time.Minute)
	w.byHand("v4")
	w.server.calls = nil
	w.judge = verdictOn(rollout.Continue, effect(rollout.RollbackEffect))
	w.cycle()
	require.Equal(t, []string{"v3 current"}, w.server.calls)
	require.Equal(t, []string{"v1 promotion", "v2 promotion", "v3 promotion", "v4 rollback", "v3"}, w.order())
}

// TestTrafficThatCameAndWent: what people moved to and away from while the bot was not there is recorded, from
// Temporal's activation times.
func TestTrafficThatCameAndWent(t *testing.T) {
	t.Run("there and back", func(t *testing.T) {
		w := currentV1(t)
		gate(v1alpha1.GateHold)(w.given)
		w.push("v2")
		w.run(time.Minute)
		require.True(t, rollout.FindVersion(w.routing().Versions, id("v2")).RoutedAt.IsZero())
		w.byHand("v2")
		came := w.server.now
		w.server.tick(time.Minute)
		w.byHand("v1")
		went := w.server.now
		w.server.tick(time.Minute)
		w.cycle()
		require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1"}, w.order())
		require.Equal(t, v1alpha1.Promotion{BuildID: id("v2"), At: stamp(came), LeftAt: stamp(went), LeftBy: v1alpha1.LeftByRollback}, w.routing().Promotions[1])
		require.Equal(t, stamp(came), rollout.FindVersion(w.routing().Versions, id("v2")).RoutedAt)
		require.Equal(t, v1alpha1.HoldDrift, w.routing().Hold.Kind, "a person went back to v1")
		require.Equal(t, "ManualHold", w.reason())
		w.run(15 * time.Minute) // until v2 has drained, which is told once
		w.quiet(5, time.Minute)
		require.Len(t, w.routing().Promotions, 3, "once")
	})
	t.Run("through one to the next", func(t *testing.T) {
		w := manualV2(t)
		w.push("v3")
		w.run(time.Minute)
		w.byHand("v3")
		w.server.tick(time.Minute)
		w.byHand("v1")
		w.server.tick(time.Minute)
		w.byHand("v3")
		w.cycle()
		require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1 promotion", "v3"}, w.order(), "Temporal keeps the last time of each version")
		w.run(15 * time.Minute) // until v1 has drained, which is told once
		w.quiet(5, time.Minute)
	})
	t.Run("a ramp", func(t *testing.T) {
		w := currentV1(t)
		strategy(v1alpha1.Manual)(w.given)
		w.push("v2")
		w.run(time.Minute)
		w.rampByHand("v2", 30)
		came := w.server.now
		w.server.tick(time.Minute)
		require.NoError(t, w.server.move(rollout.RoutingStep{Kind: rollout.ClearRamp}))
		w.cycle()
		require.Equal(t, stamp(came), rollout.FindVersion(w.routing().Versions, id("v2")).RoutedAt)
		require.Equal(t, []string{"v1"}, w.order())
	})
	t.Run("a change that is under way", func(t *testing.T) {
		w := currentV1(t)
		strategy(v1alpha1.Manual)(w.given)
		w.push("v2")
		w.run(time.Minute)
		v2 := w.server.versions[id("v2")]
		v2.BecameCurrentAt, v2.FirstActivatedAt = w.server.now, w.server.now // the routing does not say so yet
		w.quiet(2, 0)
		w.byHand("v2")
		w.run(time.Minute)
		require.Equal(t, []string{"v1 promotion", "v2"}, w.order())
	})
	t.Run("the bot's own moves, with a clock that is wrong", func(t *testing.T) {
		for _, skew := range []time.Duration{-9 * time.Second, 3 * time.Hour} {
			w := newWorld(t)
			w.skew = skew
			w.given.Limits.PollerMaxAge, w.given.Limits.FactMaxAge = 24*time.Hour, 24*time.Hour
			w.spec().Rollout.Rollback.Window = lasting(24 * time.Hour)
			w.push("v1")
			w.run(2 * time.Minute)
			strategy(v1alpha1.AllAtOnce)(w.given)
			w.push("v2")
			w.run(2 * time.Minute)
			w.judge = turnsBack
			w.cycle()
			w.judge = allowed
			w.run(2 * time.Minute)
			require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1"}, w.order())
			w.push("v3")
			w.run(2 * time.Minute)
			require.Equal(t, []string{"v1 promotion", "v2 rollback", "v1 promotion", "v3"}, w.order())
		}
	})
}
