package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The outcome of a gate is written down when it is seen. Temporal's retention removes closed runs, and a gate whose run
// is gone is not run again.

// maxGates is how many outcomes of one attempt a record keeps. One more is there only if gates are changed in the
// middle of it.
const maxGates = 200

// recordedGates are the outcomes of the target's attempt.
func (v *View) recordedGates() []v1alpha1.RecordedGate {
	if !v.goesOn() {
		return nil
	}
	return v.rec.Target.Gates
}

// goesOn reports whether the record is of this attempt at the target.
func (v *View) goesOn() bool {
	was, t := v.rec.Target, v.target
	return was != nil && t != nil && was.BuildID == t.BuildID && was.TemplateHash == t.TemplateHash &&
		was.Attempt == t.Attempt
}

// gateRun is what is known of a test workflow. That is what Temporal says, or the recorded outcome where Temporal has
// no run any more or cannot be asked.
func (v *View) gateRun(workflowID string) rollout.GateRun {
	var run rollout.GateRun
	for _, seen := range v.obs.Gates {
		if seen.WorkflowID == workflowID {
			run = seen
		}
	}
	if run.State != "" && run.State != rollout.GateMissing && run.State != rollout.GateUnread {
		return run
	}
	for _, g := range v.recordedGates() {
		if g.WorkflowID == workflowID {
			return rollout.GateRun{WorkflowID: g.WorkflowID, RunID: g.RunID, TaskQueue: g.TaskQueue,
				State: rollout.GateState(g.Outcome), ClosedAt: g.ClosedAt.Time}
		}
	}
	return run
}

// outcomes are the closed test workflows of the gate that is due now, as a record has them.
func (v *View) outcomes() []v1alpha1.RecordedGate {
	if v.spec == nil || v.target == nil || !v.readable() {
		return nil
	}
	g := v.pointGate()
	if g == nil {
		return nil
	}
	var out []v1alpha1.RecordedGate
	for _, run := range v.obs.Gates {
		r := v1alpha1.RecordedGate{Point: g.Point, TaskQueue: run.TaskQueue, WorkflowType: g.WorkflowType,
			WorkflowID: run.WorkflowID, RunID: run.RunID,
			Outcome: v1alpha1.GateOutcome(run.State), ClosedAt: v1alpha1.NewTime(run.ClosedAt)}
		if run.WorkflowID == g.WorkflowID(run.TaskQueue) && run.State.Closed() && r.CanBeRecorded() {
			out = append(out, r)
		}
	}
	return out
}

// nextGates adds what is seen to the recorded outcomes. A run that a person reset and that closed otherwise replaces
// what was recorded of it.
func (r *resolver) nextGates() []v1alpha1.RecordedGate {
	next := slices.Clone(r.recordedGates())
	for _, seen := range r.outcomes() {
		at := slices.IndexFunc(next, func(g v1alpha1.RecordedGate) bool { return g.WorkflowID == seen.WorkflowID })
		switch {
		case at < 0:
			next = append(next, seen)
		case next[at].Outcome == seen.Outcome && next[at].RunID == seen.RunID:
			continue
		default:
			next[at] = seen
		}
		if r.move() != nil || seen.Outcome != v1alpha1.GateCompletes {
			continue // the commit says what follows from it
		}
		r.lines = append(r.lines, fmt.Sprintf("gate %s %s on task queue %s", seen.WorkflowType,
			howItEnded(rollout.GateState(seen.Outcome)), seen.TaskQueue))
	}
	return next[max(0, len(next)-maxGates):]
}

func howItEnded(s rollout.GateState) string {
	if s == rollout.GateTimedOut {
		return "timed out"
	}
	return strings.ToLower(string(s))
}
