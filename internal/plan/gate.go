package plan

import (
	"fmt"
	"strings"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// firstGate is the gate that has to pass before the target gets any traffic, nil if there is none.
func (v *view) firstGate() *rollout.GateSpec {
	g := v.spec.Spec.Rollout.Gate
	if g == nil {
		return nil
	}
	return &rollout.GateSpec{
		Deployment: v.s.Deployment, BuildID: v.target.BuildID, TemplateHash: v.target.TemplateHash, Point: "first",
		Attempt: v.target.Attempt, WorkflowType: g.WorkflowType, Input: g.Input, Timeout: g.Timeout.Duration, OnFailure: g.OnFailure,
	}
}

// gateResult is what is known of a gate on all workflow task queues of the target.
type gateResult struct {
	state   rollout.GateState
	message string
	// missing are the task queues without a test workflow.
	missing []string
}

// gate judges the test workflows of a gate: passed only when all of them completed. One that failed outweighs one that
// is unknown, missing or running.
func (v *view) gate(g *rollout.GateSpec) gateResult {
	runs := map[string]rollout.GateRun{}
	for _, r := range v.obs.Gates {
		runs[r.WorkflowID] = r
	}
	var failed, unread, running []string
	var missing []string
	queues := 0
	var all []rollout.TaskQueue
	if o := v.obs.Version(g.BuildID); o != nil {
		all = o.Queues
	}
	for _, q := range all {
		if q.Type != rollout.QueueWorkflow {
			continue
		}
		queues++
		run, ok := runs[g.WorkflowID(q.Name)]
		switch {
		case !ok || run.State == rollout.GateUnread || run.State == "":
			unread = append(unread, fmt.Sprintf("%s (%s)", q.Name, run.Reason))
		case run.State == rollout.GateMissing:
			missing = append(missing, q.Name)
		case run.State == rollout.GateRunning:
			running = append(running, q.Name)
		case run.State != rollout.GateCompleted:
			failed = append(failed, fmt.Sprintf("%s on task queue %s (workflow %s)", strings.ToLower(string(run.State)), q.Name, run.WorkflowID))
		}
	}
	switch {
	case queues == 0:
		return gateResult{state: rollout.GateFailed, message: fmt.Sprintf(
			"version %s has no workflow task queue, so gate %s cannot run on it: remove the gate, or let the worker serve workflows", g.BuildID, g.WorkflowType)}
	case len(failed) > 0:
		return gateResult{state: rollout.GateFailed, message: fmt.Sprintf("gate %s %s", g.WorkflowType, strings.Join(failed, ", "))}
	case len(unread) > 0:
		return gateResult{state: rollout.GateUnread, message: fmt.Sprintf("gate %s could not be read on %s", g.WorkflowType, strings.Join(unread, ", "))}
	case len(missing) > 0:
		return gateResult{state: rollout.GateMissing, missing: missing, message: fmt.Sprintf("gate %s starts on %s", g.WorkflowType, strings.Join(missing, ", "))}
	case len(running) > 0:
		return gateResult{state: rollout.GateRunning, message: fmt.Sprintf("gate %s runs on %s", g.WorkflowType, strings.Join(running, ", "))}
	}
	return gateResult{state: rollout.GateCompleted}
}
