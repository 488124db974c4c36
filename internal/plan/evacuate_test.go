package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const lostTraffic = 100 * time.Hour

// stays is v1 without traffic for 100 hours, with open workflows pinned to it. The spec signals them after 24h, moves
// them to the current version after 48h, cancels after 72h and terminates after 96h; no job was started yet.
func stays(open int64) change {
	return all(promoted(lostTraffic), func(g *given) {
		g.Spec.Spec.Sunset.Evacuate = &v1alpha1.Evacuation{
			ContinueAsNewSignal: &v1alpha1.EvacuationSignal{Name: "go", After: lasting(24 * time.Hour)},
			MoveTo:              &v1alpha1.EvacuationMove{Target: "Current", After: lasting(48 * time.Hour)},
			CancelAfter:         lasting(72 * time.Hour), TerminateAfter: lasting(96 * time.Hour),
		}
		g.listed("v1").DeactivatedAt, g.listed("v1").OpenPinned = ago(lostTraffic), rollout.Counted(open)
		g.Observation.Batches.OthersRun = rollout.No
		for _, s := range everyStage {
			job(s, rollout.BatchMissing)(g)
		}
	})
}

// alsoStays is v0, older than v1, with a signal's job in a state.
func alsoStays(state rollout.BatchState) change {
	return all(inGit("v0"), up("v0"), drains("v0"), func(g *given) {
		g.version("v0").RoutedAt = stamp(ago(300 * time.Hour))
		g.listed("v0").DeactivatedAt, g.listed("v0").OpenPinned = ago(lostTraffic), rollout.Counted(1)
		job := rollout.EvacuationJobID(g.Deployment, id("v0"), stageOf(v1alpha1.EvacuateBySignal, 1))
		g.Observation.Batches.Jobs = append(g.Observation.Batches.Jobs, rollout.BatchJob{JobID: job, State: state})
	})
}

// cannotMove is a server that moves no workflows.
func cannotMove(g *given) { g.Observation.Batches.CannotMove = "it is too old" }

var everyStage = []v1alpha1.EvacuationStage{v1alpha1.EvacuateBySignal, v1alpha1.EvacuateByMove, v1alpha1.EvacuateByCancel, v1alpha1.EvacuateByTermination}

// stageOf is a stage as the spec of stays has it.
func stageOf(stage v1alpha1.EvacuationStage, attempt int) rollout.Evacuation {
	e := rollout.Evacuation{Stage: stage, Attempt: attempt, Since: ago(lostTraffic)}
	switch stage {
	case v1alpha1.EvacuateBySignal:
		e.Signal = "go"
	case v1alpha1.EvacuateByMove:
		e.Target = id("v2")
	}
	e.JobID = rollout.EvacuationJobID(rollout.Name{Namespace: "payments", Name: "checkout"}, id("v1"), e)
	return e
}

// job is the state of a stage's batch job.
func job(stage v1alpha1.EvacuationStage, state rollout.BatchState) change {
	return func(g *given) {
		id := stageOf(stage, 1).JobID
		j := rollout.BatchJob{JobID: id, State: state}
		if state == rollout.BatchCompleted || state == rollout.BatchFailed {
			j.Total, j.Done, j.Failed, j.StartedAt, j.EndedAt = 3, 2, 1, ago(2*time.Minute), ago(time.Minute)
		}
		for i, o := range g.Observation.Batches.Jobs {
			if o.JobID == id {
				g.Observation.Batches.Jobs[i] = j
				return
			}
		}
		g.Observation.Batches.Jobs = append(g.Observation.Batches.Jobs, j)
	}
}

// recorded is a stage as routing.yaml has it.
func inRecord(stage v1alpha1.EvacuationStage, state v1alpha1.EvacuationState, changes ...func(*v1alpha1.RecordedEvacuation)) change {
	return func(g *given) {
		s := stageOf(stage, 1)
		e := v1alpha1.RecordedEvacuation{Stage: stage, Attempt: 1, Since: stamp(s.Since), Target: s.Target, Signal: s.Signal, JobID: s.JobID, State: state,
			ProposedAt: stamp(ago(time.Hour))}
		switch state {
		case v1alpha1.EvacuationRunning, v1alpha1.EvacuationCompleted, v1alpha1.EvacuationFailed:
			e.StartedAt, e.ApprovedAt = stamp(ago(time.Hour)), stamp(ago(time.Hour))
		}
		for _, c := range changes {
			c(&e)
		}
		g.version("v1").Evacuations = append(g.version("v1").Evacuations, e)
	}
}

func endedStages(stages ...v1alpha1.EvacuationStage) change {
	return func(g *given) {
		for _, s := range stages {
			inRecord(s, v1alpha1.EvacuationCompleted)(g)
		}
	}
}

// evacuated says what a plan does about the workflows on v1: jobs to start, the record, and what the status says beside
// it.
func evacuated(s rollout.Snapshot, p rollout.Plan) []string {
	out := []string{}
	for _, b := range p.Batches {
		out = append(out, fmt.Sprintf("start %s%s%s of %d", b.Job.Stage, after(" to ", b.Job.Target), after(" ", b.Job.Signal), b.Job.Open))
	}
	if p.Record != nil {
		for _, e := range rollout.FindVersion(p.Record.Versions, id("v1")).Evacuations {
			text := fmt.Sprintf("%s %s", e.Stage, e.State)
			if e.Total > 0 || e.Attempt > 1 {
				text += fmt.Sprintf(" #%d %d/%d/%d", e.Attempt, e.Done, e.Failed, e.Total)
			}
			out = append(out, text+after(": ", e.Message))
		}
	}
	for _, v := range p.Status.DeprecatedVersions {
		for _, e := range v.Evacuation {
			if e.State == "Held" || e.State == "Waiting" {
				text := fmt.Sprintf("%s %s: %s", e.Stage, e.State, e.Message)
				if v.BuildID != id("v1") {
					text = v.BuildID + ": " + text
				}
				out = append(out, text)
			}
		}
	}
	return strings.Split(named(strings.Join(out, "\n")), "\n")
}

func after(sep, text string) string {
	if text == "" {
		return ""
	}
	return sep + text
}

func TestEvacuation(t *testing.T) {
	const signal, move, cancel, terminate = v1alpha1.EvacuateBySignal, v1alpha1.EvacuateByMove, v1alpha1.EvacuateByCancel, v1alpha1.EvacuateByTermination
	onlySignal := func(g *given) {
		g.Spec.Spec.Sunset.Evacuate = &v1alpha1.Evacuation{ContinueAsNewSignal: g.Spec.Spec.Sunset.Evacuate.ContinueAsNewSignal}
	}
	terminates := all(stays(3), endedStages(signal, cancel), inRecord(move, v1alpha1.EvacuationDeclined))
	moves := all(stays(3), endedStages(signal), func(g *given) { g.Spec.Spec.Sunset.Evacuate.CancelAfter = lasting(200 * time.Hour) },
		func(g *given) { g.Spec.Spec.Sunset.Evacuate.TerminateAfter = lasting(200 * time.Hour) })
	withState := func(c change, stage v1alpha1.EvacuationStage, state v1alpha1.EvacuationState) change {
		return all(c, inRecord(stage, state))
	}
	v2 := func(change func(*rollout.VersionObservation)) change {
		return func(g *given) { change(g.listed("v2")) }
	}
	done := []string{"Signal Completed", "Cancel Completed", "Move Declined"}
	for _, c := range []struct {
		name  string
		given change
		judge func(rollout.Proposal) rollout.Verdicts
		want  []string
	}{
		{"nothing asked", promoted(lostTraffic), nil, []string{""}},
		{"too early", all(stays(3), func(g *given) { g.listed("v1").DeactivatedAt = ago(24*time.Hour - 1) }), nil, []string{""}},
		{"none stay", stays(0), nil, []string{""}},
		{"the first stage", stays(3), nil, []string{"start Signal go of 3", "Signal Running"}},
		{"one at a time", all(stays(3), inRecord(signal, v1alpha1.EvacuationRunning), job(signal, rollout.BatchRunning)), nil, []string{"Signal Running"}},
		{"its end", all(stays(3), inRecord(signal, v1alpha1.EvacuationRunning), job(signal, rollout.BatchCompleted)), nil, []string{"Signal Completed #1 2/1/3"}},
		{"its failure", all(stays(3), inRecord(signal, v1alpha1.EvacuationRunning), job(signal, rollout.BatchFailed)), nil,
			[]string{"Signal Failed #1 2/1/3: the batch job failed"}},
		{"the next: a proposal holds nothing up", withState(stays(3), signal, v1alpha1.EvacuationFailed), nil,
			[]string{"start Cancel of 3", "Signal Failed", "Move Proposed", "Cancel Running"}},
		{"a crash before the call", all(stays(3), inRecord(signal, v1alpha1.EvacuationRunning)), nil, []string{"start Signal go of 3", "Signal Running"}},
		{"a crash, and they went by themselves", all(stays(0), inRecord(signal, v1alpha1.EvacuationRunning)), nil, []string{"Signal Completed"}},
		{"a job that Temporal forgot", all(stays(3), inRecord(signal, v1alpha1.EvacuationRunning, func(e *v1alpha1.RecordedEvacuation) { e.StartedAt = stamp(ago(21 * time.Hour)) })), nil,
			[]string{"Signal Failed: Temporal does not know the batch job any more"}},
		{"a job that Git forgot", all(stays(3), job(signal, rollout.BatchRunning)), nil, []string{"Signal Running"}},
		{"a job that Git forgot ended", all(stays(3), job(signal, rollout.BatchCompleted)), nil, []string{"Signal Completed #1 2/1/3"}},
		{"not readable", all(stays(3), job(signal, rollout.BatchUnread)), nil, []string{"Signal Waiting: its batch job could not be read: "}},
		{"not counted", all(stays(3), func(g *given) { g.listed("v1").OpenPinned = rollout.Count{Reason: "busy"} }), nil,
			[]string{"Signal Waiting: the open workflows pinned to v1 could not be counted: busy"}},
		{"stale", all(stays(3), func(g *given) { g.Observation.At = ago(61 * time.Second) }), nil, []string{"Signal Waiting: what is known of Temporal is too old"}},
		{"another job runs", all(stays(3), func(g *given) { g.Observation.Batches.OthersRun, g.Observation.Batches.Other = rollout.Yes, "cleanup" }), nil,
			[]string{"Signal Waiting: batch job cleanup runs in the Temporal namespace, which takes one at a time"}},
		{"it is not known", all(stays(3), func(g *given) { g.Observation.Batches.OthersRun = "" }), nil,
			[]string{"Signal Waiting: it is not known whether another batch job runs in the Temporal namespace"}},
		{"policy holds", stays(3), verdictOn(rollout.SignalWorkflows, effect(rollout.HoldEffect)), []string{"Signal Held: says so"}},
		{"policy wants approval", stays(3), verdictOn(rollout.SignalWorkflows, effect(rollout.RequireApproval)), []string{"Signal Proposed"}},
		{"policy wanted approval, and got it", withState(stays(3), signal, v1alpha1.EvacuationApproved), verdictOn(rollout.SignalWorkflows, effect(rollout.RequireApproval)),
			[]string{"start Signal go of 3", "Signal Running"}},
		{"a person declines", all(withState(stays(3), signal, v1alpha1.EvacuationDeclined), onlySignal), nil, []string{"Signal Declined"}},
		{"a move is proposed", moves, nil, []string{"Signal Completed", "Move Proposed"}},
		{"a proposal stays", withState(moves, move, v1alpha1.EvacuationProposed), nil, []string{"Signal Completed", "Move Proposed"}},
		{"a proposal goes with its workflows", all(withState(moves, move, v1alpha1.EvacuationProposed), func(g *given) { g.listed("v1").OpenPinned = rollout.Counted(0) }), nil,
			[]string{"Signal Completed"}},
		{"a proposal goes with its target", all(withState(moves, move, v1alpha1.EvacuationApproved), func(g *given) { g.Spec.Spec.Sunset.Evacuate.MoveTo.Target = id("v0") }), nil,
			[]string{"Signal Completed", "Move Waiting: its batch job could not be read: not asked"}},
		{"a move is approved", withState(moves, move, v1alpha1.EvacuationApproved), nil, []string{"start Move to v2 of 3", "Signal Completed", "Move Running"}},
		{"approved, and policy holds", withState(moves, move, v1alpha1.EvacuationApproved), verdictOn(rollout.MoveWorkflows, effect(rollout.HoldEffect)),
			[]string{"Signal Completed", "Move Approved"}},
		{"approved, and the target has no workers", all(withState(moves, move, v1alpha1.EvacuationApproved), v2(func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Count = 0 })), nil,
			[]string{"Signal Completed", "Move Approved"}},
		{"approved, and the target serves another queue", all(withState(moves, move, v1alpha1.EvacuationApproved), v2(func(v *rollout.VersionObservation) { v.Queues[0].Name = "other" })), nil,
			[]string{"Signal Completed", "Move Approved"}},
		{"a server that cannot move", all(moves, cannotMove), nil, []string{"Signal Completed", "Move Waiting: it is too old"}},
		{"approved, on a server that cannot move", all(withState(moves, move, v1alpha1.EvacuationApproved), cannotMove), nil, []string{"Signal Completed", "Move Approved"}},
		{"a move to itself is none", all(moves, func(g *given) { g.Spec.Spec.Sunset.Evacuate.MoveTo.Target = id("v1") }), nil, []string{"Signal Completed"}},
		{"a termination is proposed", terminates, nil, append(done, "Terminate Proposed")},
		{"a termination waits", withState(terminates, terminate, v1alpha1.EvacuationProposed), nil, append(done, "Terminate Proposed")},
		{"a termination is approved", withState(terminates, terminate, v1alpha1.EvacuationApproved), nil, append([]string{"start Terminate of 3"}, append(done, "Terminate Running")...)},
		{"approved by hand without a proposal", all(terminates, inRecord(terminate, v1alpha1.EvacuationApproved, func(e *v1alpha1.RecordedEvacuation) { e.ProposedAt = v1alpha1.Time{} })), nil,
			append(done, "Terminate Proposed")},
		{"run by hand", all(terminates, inRecord(terminate, v1alpha1.EvacuationRunning, func(e *v1alpha1.RecordedEvacuation) { e.StartedAt = v1alpha1.Time{} })), nil,
			append(done, "Terminate Proposed")},
		{"a crash after the approval", withState(terminates, terminate, v1alpha1.EvacuationRunning), nil, append([]string{"start Terminate of 3"}, append(done, "Terminate Running")...)},
		{"all done", all(stays(3), endedStages(everyStage...)), nil, []string{"Signal Completed", "Move Completed", "Cancel Completed", "Terminate Completed"}},
		{"lost its traffic again", all(stays(3), endedStages(everyStage...), func(g *given) {
			for i := range g.version("v1").Evacuations {
				g.version("v1").Evacuations[i].Since = stamp(ago(200 * time.Hour))
			}
			g.Observation.Batches.Jobs = []rollout.BatchJob{{JobID: stageOf(signal, 2).JobID, State: rollout.BatchMissing}}
		}), nil, []string{"start Signal go of 3", "Signal Running #2 0/0/0"}},
		{"traffic came back", all(withState(stays(3), terminate, v1alpha1.EvacuationApproved), routes("v1", "", 0, time.Minute), desires("v1", "", 0)), nil, []string{""}},
		{"it ramps", all(withState(stays(3), terminate, v1alpha1.EvacuationApproved), routes("v2", "v1", 1, time.Minute)), nil, []string{""}},
		{"somebody else's", all(withState(stays(3), terminate, v1alpha1.EvacuationApproved), foreign()), nil, []string{"Terminate Approved"}},
		{"wanted again", all(stays(3), wants("v1")), nil, []string{""}},
		{"drained, and some are paused", all(stays(3), drained("v1", 90*time.Hour), func(g *given) { g.listed("v1").OpenPinned = rollout.Counted(2) }), nil,
			[]string{"start Signal go of 2", "Signal Running"}},
		{"traffic has to go back to it, and cannot yet", all(stays(3), barsBuild("v2"), func(g *given) {
			g.Spec.Spec.Rollout.Rollback.Window, g.listed("v1").Queues[0].Pollers.Count = lasting(200*time.Hour), 0
		}), nil, []string{""}},
		{"traffic goes back to it now", all(stays(3), func(g *given) { g.Spec.Spec.Rollout.Rollback.Window = lasting(200 * time.Hour) }),
			verdictOn(rollout.Continue, effect(rollout.RollbackEffect)), []string{""}},
		{"another version's job starts first", all(stays(3), alsoStays(rollout.BatchMissing)), nil,
			[]string{"start Signal go of 3", "Signal Running", "v0: Signal Waiting: a batch job of this worker deployment runs"}},
		{"another version's job runs", all(stays(3), alsoStays(rollout.BatchRunning)), nil,
			[]string{"Signal Waiting: a batch job of this worker deployment runs"}},
		{"a move to a build that was turned back", all(moves, inGit("v3"), up("v3"), barsBuild("v3"), func(g *given) {
			e := stageOf(move, 1)
			e.Target = id("v3")
			g.Spec.Spec.Sunset.Evacuate.MoveTo.Target = e.Target
			g.Observation.Batches.Jobs = []rollout.BatchJob{{JobID: rollout.EvacuationJobID(g.Deployment, id("v1"), e), State: rollout.BatchMissing}}
		}), nil, []string{"Signal Completed", "Move Waiting: version v3, which workflows are to be moved to, was turned back: too many failures"}},
		{"Git's memory", all(stays(3), func(g *given) { g.listed("v1").DeactivatedAt = time.Time{} }), nil, []string{"start Signal go of 3", "Signal Running"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(c.given)
			if c.judge == nil {
				c.judge = allowed
			}
			p := decide(t, s, c.judge)
			if diff := cmp.Diff(c.want, evacuated(s, p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			require.Empty(t, p.Versions, "its files are not touched")
			require.NotEqual(t, rollout.AwaitingApproval, p.Status.Conditions[0].Reason, "the target goes on")
		})
	}
}

// TestNeverEvacuates spoils plans that evacuate, or what they were made on: each has to be refused.
func TestNeverEvacuates(t *testing.T) {
	approved := func(stage v1alpha1.EvacuationStage) change {
		return all(stays(3), endedStages(v1alpha1.EvacuateBySignal, v1alpha1.EvacuateByCancel), inRecord(stage, v1alpha1.EvacuationApproved))
	}
	signal, move, terminate := stays(3), approved(v1alpha1.EvacuateByMove), all(approved(v1alpha1.EvacuateByTermination), inRecord(v1alpha1.EvacuateByMove, v1alpha1.EvacuationDeclined))
	obs := func(change func(*rollout.Observation)) func(*rollout.Snapshot, *rollout.Plan) {
		return func(s *rollout.Snapshot, _ *rollout.Plan) { change(&s.Observation) }
	}
	of1 := func(tag string, change func(*rollout.VersionObservation)) func(*rollout.Snapshot, *rollout.Plan) {
		return func(s *rollout.Snapshot, _ *rollout.Plan) { change(s.Observation.Version(id(tag))) }
	}
	was := func(change func(*v1alpha1.RecordedEvacuation)) func(*rollout.Snapshot, *rollout.Plan) {
		return func(s *rollout.Snapshot, p *rollout.Plan) {
			change(jobIn(rollout.FindVersion(s.Record.Routing.Spec.Versions, id("v1")).Evacuations, p.Batches[0].Job.JobID))
		}
	}
	will := func(change func(*v1alpha1.RecordedEvacuation)) func(*rollout.Snapshot, *rollout.Plan) {
		return func(_ *rollout.Snapshot, p *rollout.Plan) {
			change(jobIn(rollout.FindVersion(p.Record.Versions, id("v1")).Evacuations, p.Batches[0].Job.JobID))
		}
	}
	for _, c := range []struct {
		name  string
		given change
		spoil func(*rollout.Snapshot, *rollout.Plan)
		want  string
	}{
		{"current", signal, obs(func(o *rollout.Observation) { o.Routing.Current = id("v1") }), "has traffic"},
		{"ramping", signal, obs(func(o *rollout.Observation) { o.Routing.HasRamp, o.Routing.Ramping = true, id("v1") }), "has traffic"},
		{"gets traffic", signal, func(_ *rollout.Snapshot, p *rollout.Plan) {
			p.Lower = &rollout.RoutingCall{Steps: []rollout.RoutingStep{{Kind: rollout.SetCurrent, BuildID: id("v1")}}}
		}, "has traffic"},
		{"asked for", signal, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Target = &rollout.Target{BuildID: id("v1")} }, "has traffic"},
		{"no spec", signal, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec = nil }, "has traffic"},
		{"owner", signal, obs(func(o *rollout.Observation) { o.ManagerIdentity = "another" }), `of "another"`},
		{"identity", signal, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Batches[0].Identity = "another" }, `by "another"`},
		{"not counted", signal, of1("v1", func(v *rollout.VersionObservation) { v.OpenPinned = rollout.Count{} }), "that any stay"},
		{"none", signal, of1("v1", func(v *rollout.VersionObservation) { v.OpenPinned = rollout.Counted(0) }), "that any stay"},
		{"no drainage", signal, of1("v1", func(v *rollout.VersionObservation) { v.Drainage = "" }), "that any stay"},
		{"stale", signal, obs(func(o *rollout.Observation) { o.At = ago(61 * time.Second) }), "1m1s old"},
		{"not read", signal, obs(func(o *rollout.Observation) { o.Problem = &rollout.Problem{} }), "on facts"},
		{"others run", signal, obs(func(o *rollout.Observation) { o.Batches.OthersRun = rollout.Yes }), "no other batch job"},
		{"others unknown", signal, obs(func(o *rollout.Observation) { o.Batches.OthersRun = "" }), "no other batch job"},
		{"started before", signal, obs(func(o *rollout.Observation) { o.Batches.Jobs[0].State = rollout.BatchRunning }), "not started before"},
		{"not known whether it was", signal, obs(func(o *rollout.Observation) { o.Batches.Jobs = nil }), "not started before"},
		{"two", signal, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Batches = append(p.Batches, p.Batches[0]) }, "at once"},
		{"not in the record", signal, func(_ *rollout.Snapshot, p *rollout.Plan) { p.Record = nil }, "the record does not name"},
		{"another stage", signal, will(func(e *v1alpha1.RecordedEvacuation) { e.Stage = v1alpha1.EvacuateByCancel }), "the record does not name"},
		{"another signal", signal, will(func(e *v1alpha1.RecordedEvacuation) { e.Signal = "stop" }), "the record does not name"},
		{"another target", move, will(func(e *v1alpha1.RecordedEvacuation) { e.Target = id("v1") }), "the record does not name"},
		{"only proposed", move, will(func(e *v1alpha1.RecordedEvacuation) { e.State = v1alpha1.EvacuationProposed }), "the record does not name"},
		{"moved, not approved", move, was(func(e *v1alpha1.RecordedEvacuation) { e.State = v1alpha1.EvacuationProposed }), "which was not approved"},
		{"terminated, not approved", terminate, was(func(e *v1alpha1.RecordedEvacuation) { e.State = v1alpha1.EvacuationProposed }), "which was not approved"},
		{"terminated, not proposed", terminate, was(func(e *v1alpha1.RecordedEvacuation) { e.ProposedAt = v1alpha1.Time{} }), "which was not approved"},
		{"terminated, another was approved", terminate, was(func(e *v1alpha1.RecordedEvacuation) { e.Stage = v1alpha1.EvacuateByMove }), "which was not approved"},
		{"target without files", move, func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Record.Routing.Spec.Versions = s.Record.Routing.Spec.Versions[:1]
		}, "not in Git"},
		{"target scaled down", move, func(s *rollout.Snapshot, _ *rollout.Plan) {
			rollout.FindVersion(s.Record.Routing.Spec.Versions, id("v2")).Guard = v1alpha1.GuardOff
		}, "not in Git"},
		{"target without workers", move, of1("v2", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Count = 0 }), "no fresh poller"},
		{"target with old pollers", move, of1("v2", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.LastAccess = ago(91 * time.Second) }), "no fresh poller"},
		{"target on another queue", move, of1("v2", func(v *rollout.VersionObservation) { v.Queues[0].Name = "other" }), "does not serve"},
		{"target's queues unknown", move, of1("v2", func(v *rollout.VersionObservation) { v.QueuesKnown = "" }), "task queues of both"},
		{"its own queues unknown", move, of1("v1", func(v *rollout.VersionObservation) { v.QueuesKnown = "" }), "task queues of both"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(c.given)
			p := decide(t, s, allowed)
			require.Len(t, p.Batches, 1)
			c.spoil(&s, &p)
			require.Contains(t, strings.Join(Never(s, p), "\n"), c.want)
		})
	}
}

// What is asked: the jobs that could be acted on, and for a move the workers on both sides.
func TestAskForEvacuation(t *testing.T) {
	jobs := func(c change) []string {
		var out []string
		for _, b := range Look(of(c)).Ask().Batches {
			require.Equal(t, id("v1"), b.BuildID)
			out = append(out, b.JobID)
		}
		return out
	}
	job := func(stage v1alpha1.EvacuationStage) string { return stageOf(stage, 1).JobID }
	require.Empty(t, jobs(promoted(lostTraffic)))
	require.Equal(t, []string{job(v1alpha1.EvacuateBySignal)}, jobs(stays(3)))
	require.Equal(t, []string{job(v1alpha1.EvacuateBySignal)}, jobs(all(stays(3), inRecord(v1alpha1.EvacuateBySignal, v1alpha1.EvacuationRunning))))
	next := all(stays(3), endedStages(v1alpha1.EvacuateBySignal))
	require.Equal(t, []string{job(v1alpha1.EvacuateByMove), job(v1alpha1.EvacuateByCancel)}, jobs(next))
	require.Equal(t, []string{id("v1"), id("v2")}, Look(of(next)).Ask().Queues)
	require.Empty(t, jobs(all(stays(3), endedStages(everyStage...))))
	require.Empty(t, jobs(all(stays(3), foreign())))
}

// A stage that is not due says when it will be, and keeps the deployment from being left alone.
func TestEvacuationIsDue(t *testing.T) {
	s := of(stays(3), func(g *given) { g.listed("v1").DeactivatedAt = ago(23 * time.Hour) })
	require.Equal(t, noon.Add(time.Hour), Look(s).Propose().NextDue)
	require.False(t, decide(t, s, allowed).Settled)
}

// A stage that wants approval is put to people, unless a raise is. If a person closes it, it is declined, and its
// address is written down.
func TestStagesAreReviewed(t *testing.T) {
	const move, terminate = v1alpha1.EvacuateByMove, v1alpha1.EvacuateByTermination
	ends := func(after v1alpha1.Duration) change {
		return func(g *given) {
			g.Spec.Spec.Sunset.Evacuate.CancelAfter, g.Spec.Spec.Sunset.Evacuate.TerminateAfter = lasting(200*time.Hour), after
		}
	}
	moves := all(stays(3), endedStages(v1alpha1.EvacuateBySignal), ends(lasting(200*time.Hour)))
	waits := all(moves, inRecord(move, v1alpha1.EvacuationProposed))
	known := all(moves, inRecord(move, v1alpha1.EvacuationProposed, func(e *v1alpha1.RecordedEvacuation) { e.PullRequest = "https://git.example/pulls/7" }))
	both := all(moves, ends(lasting(96*time.Hour)), func(g *given) { g.Spec.Spec.Sunset.Evacuate.CancelAfter = v1alpha1.Duration{} })
	says := func(r rollout.Review) change {
		r.Since, r.JobID = stamp(ago(time.Hour)), stageOf(move, 1).JobID
		return func(g *given) { g.Review = &r }
	}
	closed := rollout.Review{URL: "https://git.example/pulls/7", Rejected: true, By: "grace"}
	for name, c := range map[string]struct {
		given change
		judge func(rollout.Proposal) rollout.Verdicts
		// asked is the stage that people are asked about.
		asked v1alpha1.EvacuationStage
		want  []string
		url   string
		says  string
	}{
		"asked at once":              {moves, allowed, move, []string{"Signal Completed", "Move Proposed"}, "", "set its state to Approved"},
		"asked again":                {waits, allowed, move, []string{"Signal Completed", "Move Proposed"}, "", "set its state to Approved"},
		"the first of two":           {both, allowed, move, []string{"Signal Completed", "Move Proposed", "Terminate Proposed"}, "", "set its state to Approved"},
		"the other, once answered":   {all(both, inRecord(move, v1alpha1.EvacuationDeclined)), allowed, terminate, []string{"Signal Completed", "Move Declined", "Terminate Proposed"}, "", ""},
		"its address is learned":     {all(waits, says(rollout.Review{URL: closed.URL})), allowed, move, []string{"Signal Completed", "Move Proposed"}, closed.URL, "merge https://git.example/pulls/7"},
		"and stays":                  {known, allowed, move, []string{"Signal Completed", "Move Proposed"}, closed.URL, "merge https://git.example/pulls/7"},
		"also where there is none":   {all(known, says(rollout.Review{})), allowed, move, []string{"Signal Completed", "Move Proposed"}, closed.URL, ""},
		"closed":                     {all(known, says(closed)), allowed, "", []string{"Signal Completed", "Move Declined: grace closed https://git.example/pulls/7"}, closed.URL, ""},
		"closed, nobody knows":       {all(waits, says(rollout.Review{Rejected: true})), allowed, "", []string{"Signal Completed", "Move Declined: a person closed the proposal"}, "", ""},
		"another was closed":         {all(known, says(closed), func(g *given) { g.Review.JobID = "x" }), allowed, move, []string{"Signal Completed", "Move Proposed"}, closed.URL, ""},
		"one before was closed":      {all(known, says(closed), anothers), allowed, move, []string{"Signal Completed", "Move Proposed"}, closed.URL, ""},
		"closed, and approved first": {all(moves, inRecord(move, v1alpha1.EvacuationApproved), says(closed)), allowed, "", []string{"start Move to v2 of 3", "Signal Completed", "Move Running"}, "", ""},
		"policy holds it":            {known, verdictOn(rollout.MoveWorkflows, effect(rollout.HoldEffect)), "", []string{"Signal Completed", "Move Proposed"}, closed.URL, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(c.given)
			plan := decide(t, s, c.judge)
			require.Empty(t, cmp.Diff(c.want, evacuated(s, plan)))
			var entry v1alpha1.RecordedEvacuation
			for _, e := range rollout.FindVersion(plan.Record.Versions, id("v1")).Evacuations {
				if e.Stage == move {
					entry = e
				}
			}
			require.Equal(t, c.url, entry.PullRequest)
			if c.says != "" {
				require.Contains(t, plan.Status.DeprecatedVersions[0].Evacuation[1].Message, c.says)
			}
			if c.asked == "" {
				require.Nil(t, plan.Review)
				return
			}
			require.Equal(t, stageOf(c.asked, 1).JobID, plan.Review.Proposal.JobID)
			require.Equal(t, c.asked, plan.Review.Held.Action.Evacuation.Stage)
			require.Equal(t, rollout.RequireApproval, plan.Review.Held.Verdict.Effect)
			require.Nil(t, plan.Review.Desired)
			if c.asked == move {
				require.Equal(t, rollout.ReviewedStage(entry), plan.Review.Proposal)
				require.Equal(t, c.url, plan.Status.Decision.PullRequest)
			}
		})
	}
}

// A raise that waits is put to people first.
func TestRaisesAreReviewedBeforeStages(t *testing.T) {
	plan := decide(t, of(pastPause(), wantsApproval(v1alpha1.ScopeStep), alsoStays(rollout.BatchMissing), func(g *given) {
		g.Spec.Spec.Sunset.Evacuate = &v1alpha1.Evacuation{TerminateAfter: lasting(time.Hour)}
		e := rollout.Evacuation{Stage: v1alpha1.EvacuateByTermination, Attempt: 1, Since: ago(lostTraffic)}
		g.Observation.Batches.Jobs = []rollout.BatchJob{{JobID: rollout.EvacuationJobID(g.Deployment, id("v0"), e), State: rollout.BatchMissing}}
		g.Observation.Batches.OthersRun = rollout.No
	}), allowed)
	require.Equal(t, v1alpha1.EvacuationProposed, rollout.FindVersion(plan.Record.Versions, id("v0")).Evacuations[0].State)
	require.Equal(t, rollout.ReviewedRaise(*plan.Record.Proposal), plan.Review.Proposal)
	require.NotNil(t, plan.Review.Desired)
}
