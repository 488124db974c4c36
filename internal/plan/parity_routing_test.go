package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/parity"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ramped is v2 ramping at a share that is recorded too, with steps of ten minutes.
func ramped(percentage float32, since time.Duration, at ...float64) change {
	return all(rampsAt(percentage, since), steps(at...))
}

// over gives the calls of a rollout to v2 with the time of each since the first, when a cycle runs every so often.
func over(every, length time.Duration) func(*testing.T) string {
	return func(t *testing.T) string {
		w := newWorld(t)
		w.startV1()
		w.push("v2")
		var out []string
		var first time.Time
		for end := w.server.now.Add(length); w.server.now.Before(end); w.server.tick(every) {
			w.pods()
			w.cycle()
			for _, call := range w.server.calls {
				if first.IsZero() {
					first = w.server.now
				}
				out = append(out, fmt.Sprintf("%s at %s", call, w.server.now.Sub(first)))
			}
			w.server.calls = nil
		}
		return strings.Join(out, "; ")
	}
}

func routingParity() []parity.Case {
	third := all(rampsAt(10, time.Minute), wants("v3"), inGit("v3"), up("v3"))
	noTime := func(g *given) { g.Observation.Routing.PercentageChangedAt = time.Time{} }
	const stepOne = "goes to the first step"
	return []parity.Case{
		{Scenario: "AllAtOnce", Controller: "makes the target current", Got: plans(candidate(), strategy(v1alpha1.AllAtOnce)), Want: "WaitingForPromotion; Promote v2 0->100; after the push SetCurrent v2"},
		{Scenario: "Progressive", Controller: stepOne, Got: plans(candidate()), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "Manual", Controller: "does nothing", Got: plans(candidate(), strategy(v1alpha1.Manual)), Want: "WaitingForPromotion"},
		{Scenario: "target is current, another version ramps: the ramp is reset", Controller: "clears the ramp", Got: plans(rampsAt(10, time.Minute), wants("v1")), Want: "RolloutComplete; ResetRamp v2 10->0 Spec; first ClearRamp"},
		{Scenario: "the same with a gate", Controller: "leaves the ramp: the gate test comes first and cannot pass", Want: "RolloutComplete; ResetRamp v2 10->0 Spec; first ClearRamp",
			Got: plans(rampsAt(10, time.Minute), wants("v1"), gate(v1alpha1.GateHold)), Why: "a retreat needs no gate"},
		{Scenario: "the same with Manual", Controller: "leaves the ramp", Got: plans(rampsAt(10, time.Minute), wants("v1"), strategy(v1alpha1.Manual)), Want: "RolloutComplete; ResetRamp v2 10->0 Spec; first ClearRamp",
			Why: "a ramp to a version that the spec does not ask for is taken back whatever the strategy"},
		{Scenario: "a third version ramps, Progressive", Controller: "puts the target's first step in the ramp's place", Got: plans(third), Want: "WaitingForPollers; ResetRamp v2 10->0 Spec; first ClearRamp",
			Why: "one move at a time: the ramp is cleared first, and the target's step is decided on what is then"},
		{Scenario: "a third version ramps, AllAtOnce", Controller: "makes the target current, and the other ramp stays", Want: "WaitingForPollers; ResetRamp v2 10->0 Spec; first ClearRamp",
			Got: plans(third, strategy(v1alpha1.AllAtOnce)), Why: "the ramp is cleared first, so that there is never one to a version that the spec does not name"},
		{Scenario: "a ramp to unversioned workers", Controller: "is taken for no ramp", Want: "RolloutComplete; ResetRamp 5->0 Spec; first ClearRamp",
			Got: plans(func(g *given) { g.Observation.Routing.HasRamp, g.Observation.Routing.Percentage = true, 5 }), Why: "it is one, and the spec does not ask for it"},
		{Scenario: "last step, pause over", Controller: "makes the target current", Got: plans(ramped(50, 11*time.Minute, 10, 50)), Want: "Ramping; Promote v2 50->100; after the push SetCurrent v2"},
		{Scenario: "time of the last change missing", Controller: "waits", Got: plans(ramped(10, 11*time.Minute, 10, 50), noTime), Want: "StaleFacts"},
		{Scenario: "exactly at the pause's end", Controller: "waits", Got: plans(ramped(10, 10*time.Minute, 10, 50)), Want: "Ramping; due in 0s"},
		{Scenario: "past the pause's end", Controller: "goes to the next step", Got: plans(ramped(10, 10*time.Minute+1, 10, 50)), Want: "Ramping; Ramp v2 10->50 step 2/2; after the push SetRamp v2 50"},
		{Scenario: "ramp at 0%", Controller: stepOne, Got: plans(ramped(0, time.Minute, 10, 50)), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "no steps", Controller: "does nothing", Got: plans(candidate(), steps()), Want: "InvalidSpec (stalled)", Why: "it is said: such a spec is invalid"},
		{Scenario: "resume from a ramp between steps", Controller: "goes down to the step below", Got: plans(ramped(20, time.Minute, 5, 10, 25)), Want: "Ramping; Ramp v2 20->10 step 2/3; first SetRamp v2 10"},
		{Scenario: "ramp below the first step", Controller: stepOne, Got: plans(ramped(1, time.Minute, 10, 50)), Want: "Ramping; Ramp v2 1->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "over time, keeping up", Controller: "each step after the pause of the one before", Got: over(30*time.Second, 30*time.Minute), Want: "v2 10 at 0s; v2 50 at 10m30s; v2 current at 21m0s"},
		{Scenario: "over time, slow", Controller: "one step in each pass, none skipped", Got: over(2*time.Hour, 12*time.Hour), Want: "v2 10 at 0s; v2 50 at 2h0m0s; v2 current at 4h0m0s"},
		{Scenario: "the target's workers went away in mid-ramp", Controller: "goes on", Got: plans(ramped(10, 11*time.Minute, 10, 50), noPollers("v2")), Want: "WaitingForPollers; due in 5m0s",
			Why: "a raise needs workers that poll"},
		{Scenario: "a task queue of current's that the target lacks", Controller: "calls, is refused, and tries again for ever", Want: "WaitingForPollers; due in 5m0s",
			Got: plans(candidate(), func(g *given) { g.listed("v1").Queues = append(g.listed("v1").Queues, polled("refunds")) }),
			Why: "no call is made that the server would refuse; the queue is named"},
		{Scenario: "target at 0 replicas", Controller: "counts as healthy: routing may move in the pass that starts its pods", Want: "WaitingForPollers; Restore v2 x2; edit files of v2 x2, guard on",
			Got: plans(candidate(), runs("v2", replicas(0)), strategy(v1alpha1.AllAtOnce)), Why: "its pods have to be there, and to poll, first"},
		{Scenario: "no current version, no unversioned workers", Controller: "makes the target current at once", Got: plans(candidate(), noCurrent), Want: "WaitingForPromotion; Promote v2 0->100; after the push SetCurrent v2"},
		{Scenario: "no current version, unversioned workers", Controller: stepOne, Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10",
			Got: plans(candidate(), noCurrent, func(g *given) { g.listed("v2").Queues[0].Unversioned = rollout.Yes })},
		{Scenario: "no current version, and it is not known who polls", Controller: "goes to the first step", Want: "StaleFacts",
			Got: plans(candidate(), noCurrent, func(g *given) { g.listed("v2").Queues[0].Unversioned = "" }), Why: "an unknown fact holds it"},
	}
}

func rollbackParity() []parity.Case {
	const normal = "no rollback: gate and steps as for any target"
	lost := func(g *given) {
		g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "unavailable"}}
	}
	back := func(left time.Duration) change { return all(promoted(left), wants("v1")) }
	leftBy := func(by v1alpha1.LeftBy) change { return func(g *given) { g.rec.Promotions[0].LeftBy = by } }
	recent := func(g *given) {
		g.rec.Promotions[0].At, g.listed("v1").BecameCurrentAt = stamp(ago(30*time.Minute)), ago(30*time.Minute)
	}
	return []parity.Case{
		{Scenario: "became current lately", Controller: "a rollback: current at once, without gate and steps", Got: plans(back(10*time.Minute), recent), Want: "WaitingForPromotion; Rollback v1 0->100 Spec; first SetCurrent v1"},
		{Scenario: "became current long ago, replaced lately", Controller: normal, Got: plans(back(10 * time.Minute)), Want: "WaitingForPromotion; Rollback v1 0->100 Spec; first SetCurrent v1",
			Why: "the window counts from when the version stopped being current: a stable version is what one goes back to"},
		{Scenario: "became current lately, was rolled back itself", Controller: "a rollback: it is current again at once", Want: "Ramping; Ramp v1 0->10 step 1/2; after the push SetRamp v1 10",
			Got: plans(back(10*time.Minute), recent, leftBy(v1alpha1.LeftByRollback)), Why: "what was turned back starts at its first gate and step"},
		{Scenario: "never current", Controller: normal, Got: plans(candidate()), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "a version that Temporal does not know", Controller: "no rollback, nothing", Got: plans(candidate(), unlisted("v2")), Want: "WaitingForPollers; due in 5m0s"},
		{Scenario: "no state of Temporal", Controller: "no rollback", Got: plans(back(10*time.Minute), lost), Want: "TemporalStateFetchFailed (stalled)"},
		{Scenario: "too old", Controller: normal, Got: plans(back(time.Hour + 1)), Want: "Ramping; Ramp v1 0->10 step 1/2; after the push SetRamp v1 10"},
		{Scenario: "Manual", Controller: "no rollback", Got: plans(back(10*time.Minute), strategy(v1alpha1.Manual)), Want: "WaitingForPromotion; Rollback v1 0->100 Spec; first SetCurrent v1",
			Why: "to revert the spec is to ask for it, and going back raises nothing new"},
		{Scenario: "effect with Progressive and a gate", Controller: "one change to the target, no gate for the routing", Want: "WaitingForPromotion; Rollback v1 0->100 Spec; first SetCurrent v1",
			Got: plans(back(10*time.Minute), gate(v1alpha1.GateHold))},
		{Scenario: "a normal rollout", Controller: "steps", Got: plans(candidate()), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "a drained target, at 0", Controller: "routes to it in the pass that starts its pods", Want: "WaitingForPollers; Restore v1 x2; edit files of v1 x2, guard on",
			Got: plans(back(50*time.Minute), drained("v1", 30*time.Minute), scaledDown("v1", 10*time.Minute), noPollers("v1")),
			Why: "files and guard first, then pods that poll, then traffic"},
		{Scenario: "a drained target, with its workers", Controller: "current at once", Got: plans(back(50*time.Minute), drained("v1", 30*time.Minute)), Want: "WaitingForPromotion; Rollback v1 0->100 Spec; first SetCurrent v1"},
	}
}
