package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestProgressiveRollout(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	w.push("v2")
	w.run(2 * 24 * time.Hour)
	require.Equal(t, []string{"v2 10", "v2 50", "v2 current"}, w.server.calls)
	require.Equal(t, []string{"create v2", "ramp v2 at 10%", "ramp v2 at 50%", "promote v2", "RolloutComplete: v2 is the current version",
		"scale down v1", "remove v1"}, w.commits)
	require.Len(t, w.server.versions, 1)
	w.quiet(50, 13*time.Hour)
}

func TestFirstDeployment(t *testing.T) {
	w := newWorld(t)
	w.run(5 * time.Minute)
	require.Equal(t, []string{"create v1", "promote v1", "RolloutComplete: v1 is the current version"}, w.commits)
	require.Equal(t, "RolloutComplete*", w.reason())
	w.quiet(20, time.Hour)
}

func TestAllAtOnce(t *testing.T) {
	w := newWorld(t)
	strategy(v1alpha1.AllAtOnce)(w.given)
	w.startV1()
	w.push("v2")
	w.run(2 * time.Minute)
	require.Equal(t, []string{"v2 current"}, w.server.calls)
	require.Equal(t, []string{"create v2", "promote v2", "RolloutComplete: v2 is the current version"}, w.commits)
}

// TestManual: a person moves traffic, in Temporal or in routing.yaml.
func TestManual(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	strategy(v1alpha1.Manual)(w.given)
	w.push("v2")
	w.run(5 * time.Minute)
	require.Empty(t, w.server.calls)
	require.Equal(t, "WaitingForPromotion", w.reason())

	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Desired.Ramping = &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: 30}
	})
	w.run(time.Minute)
	require.Equal(t, []string{"v2 30"}, w.server.calls)
	require.Equal(t, "ManualHold", w.reason())

	w.edit(func(r *v1alpha1.RoutingSpec) { r.Hold = nil })
	require.NoError(t, w.server.move(rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: id("v2")}))
	w.run(time.Minute)
	require.Equal(t, []string{"v2 30", "v2 current"}, w.server.calls)
	require.Equal(t, "RolloutComplete*", w.reason())
	w.settle()
}

// currentV1 is a world in which v1 is current.
func currentV1(t require.TestingT) *world {
	w := newWorld(t)
	w.startV1()
	return w
}

// rampingV2 is a world in which v2 ramps at 10% for a minute.
func rampingV2(t require.TestingT) *world {
	w := newWorld(t)
	w.startV1()
	w.push("v2")
	w.run(90 * time.Second)
	require.Equal(t, []string{"v2 10"}, w.server.calls)
	w.commits, w.server.calls = nil, nil
	return w
}

func currentV2(t require.TestingT) *world {
	w := rampingV2(t)
	w.run(21 * time.Minute)
	require.Equal(t, []string{"v2 50", "v2 current"}, w.server.calls)
	w.commits, w.server.calls = nil, nil
	return w
}

func TestRevertInMidRamp(t *testing.T) {
	w := rampingV2(t)
	w.push("v1")
	w.run(3 * time.Hour)
	require.Equal(t, []string{"clear"}, w.server.calls)
	require.Equal(t, "RolloutComplete*", w.reason())
	require.Equal(t, id("v1"), w.status().CurrentVersion.BuildID)

	w.push("v2") // asked for again: from the first step, as another attempt
	w.server.calls = nil
	w.run(25 * time.Minute)
	require.Equal(t, []string{"v2 10", "v2 50", "v2 current"}, w.server.calls)
	require.Equal(t, 2, w.routing().Target.Attempt)
}

func TestRollbackInTheWindow(t *testing.T) {
	w := currentV2(t)
	w.push("v1")
	w.run(time.Minute)
	require.Equal(t, []string{"v1 current"}, w.server.calls)
	require.Equal(t, "RolloutComplete*", w.reason())
	require.Equal(t, v1alpha1.LeftByRollback, w.routing().Promotions[1].LeftBy)

	w.server.calls = nil
	w.push("v2") // left by a rollback: not at once
	w.run(25 * time.Minute)
	require.Equal(t, []string{"v2 10", "v2 50", "v2 current"}, w.server.calls)
}

func TestSuperseded(t *testing.T) {
	w := rampingV2(t)
	w.push("v3")
	w.cycle()
	require.Equal(t, []string{"clear"}, w.server.calls)
	require.Len(t, w.routing().Versions, 2, "v2's ramp goes before v3 comes")
	w.run(30 * time.Minute)
	require.Equal(t, []string{"clear", "v3 10", "v3 50", "v3 current"}, w.server.calls)
	w.run(60 * time.Hour)
	require.Len(t, w.routing().Versions, 1)
	require.Len(t, w.server.versions, 1)
}

// TestPushRefused: somebody else pushes at the moment of a retreat. What was done in Temporal is not taken for a
// stranger's doing.
func TestPushRefused(t *testing.T) {
	for _, next := range []string{"v1", "v3"} {
		w := rampingV2(t)
		w.push(next)
		w.refusePush = true
		w.cycle()
		require.Equal(t, []string{"clear"}, w.server.calls)
		w.run(40 * time.Minute)
		require.Equal(t, "RolloutComplete*", w.reason())
		require.Equal(t, id(next), w.server.routing.Current)
	}
}

// turnsBack are verdicts of a policy that has turned against v2.
func turnsBack(p rollout.Proposal) rollout.Verdicts {
	v := allowed(p)
	for _, a := range p.Actions {
		if a.BuildID == id("v2") && (a.Kind == rollout.Continue || a.Raises()) {
			v.Actions[a.ID] = effect(rollout.RollbackEffect)
		}
	}
	return v
}

func TestPolicyTurnsBack(t *testing.T) {
	for name, start := range map[string]func(require.TestingT) *world{"ramping": rampingV2, "current": currentV2} {
		for _, dies := range []site{"", beforeLower, afterLower, afterCommit} {
			for _, marks := range []bool{true, false} {
				t.Run(name+"/"+string(dies), func(t *testing.T) {
					w := start(t)
					w.judge, w.dies, w.noMarks = turnsBack, dies, !marks
					w.cycle()
					if dies != beforeLower {
						w.judge = allowed // the next run sees no more than Git and Temporal
					}
					back := len(w.server.calls)
					w.run(3 * time.Hour)
					require.Equal(t, id("v1"), w.server.routing.Current)
					require.False(t, w.server.routing.HasRamp)
					require.Len(t, w.server.calls, max(back, 1), "nothing is raised after it")
					if dies != afterLower || marks {
						require.Equal(t, "RolledBack", w.reason())
						require.Len(t, w.routing().Bars, 1)
					} else {
						require.Equal(t, "ManualHold", w.reason())
					}
					w.judge = allowed
					w.quiet(10, time.Minute)
				})
			}
		}
	}
}

// TestRetry: a bar that a person took away lets the build start anew, though the mark is still in Temporal.
func TestRetry(t *testing.T) {
	w := rampingV2(t)
	gate(v1alpha1.GateHold)(w.given)
	w.judge = turnsBack
	w.run(time.Minute)
	require.Equal(t, "RolledBack", w.reason())
	w.judge = allowed
	w.edit(func(r *v1alpha1.RoutingSpec) { r.Bars = nil })
	w.cycle()
	require.Equal(t, 2, w.routing().Target.Attempt)
	w.run(time.Minute)
	require.Equal(t, "GateRunning", w.reason())
	require.Len(t, w.server.gates, 1)
	for g := range w.server.gates {
		w.server.gates[g] = rollout.GateCompleted
	}
	w.server.calls = nil
	w.run(25 * time.Minute)
	require.Equal(t, []string{"v2 10", "v2 50", "v2 current"}, w.server.calls)
}

// TestRestarted kills the bot at every place of every cycle of a rollout: it ends as it does without that.
func TestRestarted(t *testing.T) {
	for _, dies := range []site{beforeLower, afterLower, afterDelete, afterCommit} {
		t.Run(string(dies), func(t *testing.T) {
			w := newWorld(t)
			w.startV1()
			w.push("v2")
			w.after = func(s rollout.Snapshot, p rollout.Plan) {
				if p.Raise != nil && w.routing().Desired.Ramping != nil {
					require.Equal(t, s.Observation.Routing, p.Raise.Basis)
				}
			}
			for range 400 {
				w.dies = dies
				w.cycle()
				w.server.tick(time.Second)
				w.run(10 * time.Second)
			}
			require.Equal(t, []string{"v2 10", "v2 50", "v2 current"}, w.server.calls)
			w.run(50 * time.Hour)
			require.Len(t, w.server.versions, 1)
			require.Equal(t, "RolloutComplete*", w.reason())
		})
	}
}

func TestGates(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  v1alpha1.OnGateFailure
		state   rollout.GateState
		reason  string
		ramping bool
	}{
		{"passes", v1alpha1.GateHold, rollout.GateCompleted, "Ramping", true},
		{"fails and holds", v1alpha1.GateHold, rollout.GateFailed, "GateFailed", false},
		{"times out and rolls back", v1alpha1.GateRollback, rollout.GateTimedOut, "RolledBack", false},
		{"cannot be read", v1alpha1.GateRollback, rollout.GateUnread, "StaleFacts", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.startV1()
			gate(c.answer)(w.given)
			w.push("v2")
			w.run(2 * time.Minute)
			require.Len(t, w.server.gates, 1)
			require.Equal(t, "GateRunning", w.reason())
			for g := range w.server.gates {
				w.server.gates[g] = c.state
			}
			w.run(time.Minute)
			require.Equal(t, c.reason, w.reason())
			require.Equal(t, c.ramping, len(w.server.calls) > 0)
			w.quiet(5, time.Second)
			if c.state != rollout.GateFailed {
				return
			}
			w.push("v1")
			w.run(time.Minute)
			w.push("v2") // its gate runs anew
			w.run(time.Minute)
			require.Len(t, w.server.gates, 2)
			require.Equal(t, "GateRunning", w.reason())
		})
	}
}

// TestPolicyHolds: no action that policy holds is done, and a retreat is done all the same.
func TestPolicyHolds(t *testing.T) {
	everything := func(p rollout.Proposal) rollout.Verdicts {
		v := rollout.Verdicts{Spec: effect(rollout.HoldEffect), Actions: map[string]rollout.Verdict{}}
		for _, a := range p.Actions {
			v.Actions[a.ID] = effect(rollout.HoldEffect)
		}
		return v
	}
	w := rampingV2(t)
	w.judge = everything
	w.run(30 * time.Minute)
	require.Empty(t, w.server.calls)
	require.Equal(t, "PolicyHold", w.reason())
	require.Len(t, w.commits, 1)
	w.push("v3")
	w.run(30 * time.Minute)
	require.Equal(t, []string{"clear"}, w.server.calls)
	require.Len(t, w.routing().Versions, 2, "v3 is not created")
	w.push("v1")
	w.run(100 * time.Hour)
	require.Len(t, w.routing().Versions, 2, "v2 is not removed")
	require.Equal(t, replicas(1), w.routing().Versions[1].Replicas)

	w = currentV2(t)
	w.judge = func(rollout.Proposal) rollout.Verdicts { return rollout.Verdicts{} } // policy is broken
	w.push("v1")
	w.run(time.Minute)
	require.Equal(t, []string{"v1 current"}, w.server.calls)
}

func TestUnreadableForAWhile(t *testing.T) {
	w := rampingV2(t)
	w.server.down = true
	w.run(30 * time.Minute)
	require.Equal(t, "TemporalStateFetchFailed", w.reason())
	require.Len(t, w.commits, 1)
	w.server.down = false
	w.run(15 * time.Minute)
	require.Equal(t, []string{"v2 50", "v2 current"}, w.server.calls)
}

func TestSomebodyElse(t *testing.T) {
	w := rampingV2(t)
	w.server.manager = "ada"
	w.run(time.Hour)
	require.Empty(t, w.server.calls)
	require.Equal(t, "OwnedByAnother", w.reason())
	w.push("v3")
	w.run(time.Hour)
	require.Empty(t, w.server.calls)
	require.Len(t, w.routing().Versions, 3, "files still render")
	w.server.manager = owner
	w.run(time.Hour)
	require.Equal(t, []string{"clear", "v3 10", "v3 50", "v3 current"}, w.server.calls)
}

// TestDrift: what others do to the routing never leads to a raise.
func TestDrift(t *testing.T) {
	answers := func(a rollout.DriftAnswer) func(rollout.Proposal) rollout.Verdicts {
		return verdictOn(rollout.DriftAction, rollout.Verdict{Effect: rollout.Allow, Drift: a})
	}
	set := func(percentage float32) rollout.RoutingStep {
		return rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: id("v2"), Percentage: percentage}
	}
	current := rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: id("v2")}
	for _, c := range []struct {
		name   string
		moves  rollout.RoutingStep
		judge  func(rollout.Proposal) rollout.Verdicts
		calls  []string
		reason string
	}{
		{"lower", set(3), answers(rollout.DriftRevert), []string{"v2 3"}, "ManualHold"},
		{"lower, policy is broken", set(3), func(rollout.Proposal) rollout.Verdicts { return rollout.Verdicts{} }, []string{"v2 3"}, "ManualHold"},
		{"cleared", rollout.RoutingStep{Kind: rollout.ClearRamp}, allowed, []string{"clear"}, "ManualHold"},
		{"higher, reverted", set(80), answers(rollout.DriftRevert), []string{"v2 80", "v2 10"}, "Ramping"},
		{"higher, held", set(80), answers(rollout.DriftHold), []string{"v2 80"}, "RoutingDrift"},
		{"higher, no answer", set(80), answers(""), []string{"v2 80"}, "RoutingDrift"},
		{"higher, adopted: the step below", set(80), answers(rollout.DriftAdopt), []string{"v2 80", "v2 50"}, "Ramping"},
		{"promoted, reverted", current, answers(rollout.DriftRevert), []string{"v2 current", "v1 current", "v2 10"}, "Ramping"},
		{"promoted, adopted", current, answers(rollout.DriftAdopt), []string{"v2 current"}, "RolloutComplete*"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := rampingV2(t)
			w.judge = c.judge
			require.NoError(t, w.server.move(c.moves))
			w.run(3 * time.Minute)
			require.Equal(t, c.calls, w.server.calls)
			require.Equal(t, c.reason, w.reason())
			w.quiet(5, time.Second)
		})
	}
}

// TestDriftHoldEnds when the spec asks for another build, or a person resumes.
func TestDriftHoldEnds(t *testing.T) {
	w := rampingV2(t)
	require.NoError(t, w.server.move(rollout.RoutingStep{Kind: rollout.ClearRamp}))
	w.run(time.Hour)
	require.Equal(t, []string{"clear"}, w.server.calls)
	w.edit(func(r *v1alpha1.RoutingSpec) { r.Hold = nil })
	w.run(time.Minute)
	require.Equal(t, []string{"clear", "v2 10"}, w.server.calls)
	require.NoError(t, w.server.move(rollout.RoutingStep{Kind: rollout.ClearRamp}))
	w.run(time.Hour)
	require.Equal(t, "ManualHold", w.reason())
	w.push("v3")
	w.run(2 * time.Minute)
	require.Equal(t, []string{"clear", "v2 10", "clear", "v3 10"}, w.server.calls)
}

// TestEdits: what a person writes into routing.yaml.
func TestEdits(t *testing.T) {
	ramp := func(percentage float64) func(*v1alpha1.RoutingSpec) {
		return func(r *v1alpha1.RoutingSpec) {
			r.Desired.Ramping = &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: percentage}
		}
	}
	for _, c := range []struct {
		name  string
		edit  func(*v1alpha1.RoutingSpec)
		judge func(rollout.Proposal) rollout.Verdicts
		dies  site
		calls []string
	}{
		{"down", ramp(5), allowed, "", []string{"v2 5"}},
		{"down, policy is broken", ramp(5), func(rollout.Proposal) rollout.Verdicts { return rollout.Verdicts{} }, "", []string{"v2 5"}},
		{"down, and the bot dies", ramp(5), allowed, afterLower, []string{"v2 5"}},
		{"off", func(r *v1alpha1.RoutingSpec) { r.Desired.Ramping = nil }, allowed, "", []string{"clear"}},
		{"up", ramp(50), allowed, "", []string{"v2 50"}},
		{"up by half a step", ramp(20), allowed, "", []string{"v2 20"}},
		{"up by too much", ramp(99), allowed, "", []string{"v2 50"}},
		{"up, and the bot dies", ramp(50), allowed, afterCommit, []string{"v2 50"}},
		{"up, which approves", ramp(50), verdictOn(rollout.Ramp, effect(rollout.RequireApproval)), "", []string{"v2 50"}},
		{"up, and policy holds", ramp(50), verdictOn(rollout.Ramp, effect(rollout.HoldEffect)), "", nil},
		{"sideways", func(r *v1alpha1.RoutingSpec) { r.Desired.Ramping.BuildID = "another" }, allowed, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := rampingV2(t)
			w.edit(c.edit)
			w.judge, w.dies = c.judge, c.dies
			w.cycle()
			w.run(time.Hour)
			require.Equal(t, c.calls, w.server.calls)
			require.Equal(t, "ManualHold", w.reason())
			require.Equal(t, v1alpha1.HoldManual, w.routing().Hold.Kind)
			require.True(t, desiredConfig(w.routing().Desired).SameTraffic(w.server.routing))
			w.quiet(5, time.Minute)
			w.judge = allowed
			w.edit(func(r *v1alpha1.RoutingSpec) { r.Hold = nil })
			w.run(time.Hour)
			require.Equal(t, id("v2"), w.server.routing.Current, "it goes on when the person resumes")
		})
	}
}

// TestEditWaits: a wish waits in Git, through an outage, until the target's workers are there.
func TestEditWaits(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	w.push("v2")
	w.cycle()
	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Desired.Ramping = &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: 10}
	})
	w.judge = verdictOn(rollout.Ramp, effect(rollout.RequireApproval))
	w.server.down = true
	w.cycle()
	w.server.down = false
	w.cycle()
	require.Empty(t, w.server.calls)
	w.run(2 * time.Minute)
	require.Equal(t, []string{"v2 10"}, w.server.calls)
}
