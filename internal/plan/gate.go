package plan

import (
	"fmt"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// pointGate is the gate of the point where the target stands, nil if there is none. Before the target has any traffic
// that is the first gate, at a step that step's gate. It has to pass before the target gets more.
func (v *View) pointGate() *rollout.GateSpec {
	if v.targetShare() == 0 {
		return v.gateSpec(v.spec.Spec.Rollout.Gate, "first")
	}
	at := v.stepAt()
	if !v.targetRamps() || at < 0 || float32(v.steps()[at].RampPercentage) != v.actual.Percentage {
		return nil
	}
	return v.gateSpec(v.steps()[at].Gate, fmt.Sprintf("step-%d", at+1))
}

func (v *View) gateSpec(g *v1alpha1.Gate, point string) *rollout.GateSpec {
	if g == nil {
		return nil
	}
	return &rollout.GateSpec{
		Deployment: v.s.Deployment, BuildID: v.target.BuildID, TemplateHash: v.target.TemplateHash, Point: point,
		Attempt: v.target.Attempt, WorkflowType: g.WorkflowType, Input: g.Input,
		InputFrom:   rollout.InputOf(v.s.Deployment.Namespace, g),
		InputDigest: v.inputDigest(g), Timeout: g.Timeout.Duration, OnFailure: g.OnFailure,
	}
}

// inputDigest stands for an input from a ConfigMap or Secret, whose content a snapshot does not have.
func (v *View) inputDigest(g *v1alpha1.Gate) string {
	if in := rollout.InputOf(v.s.Deployment.Namespace, g); in != nil {
		return v.s.GateInputs[in.String()].Digest
	}
	return ""
}

// unreadInput says which gate's input cannot be had, "" if all can. A later step's matters too: a rollout that cannot
// end well does not begin.
func (v *View) unreadInput() string {
	gates := []*v1alpha1.Gate{v.spec.Spec.Rollout.Gate}
	for i := range v.steps() {
		gates = append(gates, v.steps()[i].Gate)
	}
	for _, g := range gates {
		in := rollout.InputOf(v.s.Deployment.Namespace, g)
		if in != nil && v.s.GateInputs[in.String()].Digest == "" {
			return v.unreadInputOf(g.WorkflowType, in)
		}
	}
	return ""
}

func (v *View) unreadInputOf(workflowType string, in *rollout.GateInputRef) string {
	if why := v.s.GateInputs[in.String()].Problem; why != "" {
		return fmt.Sprintf("the input of gate %s cannot be used: %s", workflowType, why)
	}
	return fmt.Sprintf("the input of gate %s is %s, which the bot was not given", workflowType, in)
}

// gateResult is what is known of a gate on all workflow task queues of the target.
type gateResult struct {
	state   rollout.GateState
	message string
	// nowhere says that there is no workflow task queue that the gate could run on: no fault of the build.
	nowhere bool
	// missing are the task queues without a test workflow.
	missing []string
}

// gate judges the test workflows of a gate: passed only when all of them completed. One that failed outweighs one that
// is unknown, missing or running.
func (v *View) gate(g *rollout.GateSpec) gateResult {
	if g.InputFrom != nil && g.InputDigest == "" { // it is unknown which test workflow belongs to it
		return gateResult{state: rollout.GateUnread, message: v.unreadInputOf(g.WorkflowType, g.InputFrom)}
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
		run := v.gateRun(g.WorkflowID(q.Name))
		switch {
		case run.State == rollout.GateUnread || run.State == "":
			unread = append(unread, fmt.Sprintf("%s (%s)", q.Name, run.Reason))
		case run.State == rollout.GateMissing:
			missing = append(missing, q.Name)
		case run.State == rollout.GateRunning:
			running = append(running, q.Name)
		case run.State != rollout.GateCompleted:
			failed = append(failed, fmt.Sprintf("%s on task queue %s (workflow %s)", howItEnded(run.State), q.Name,
				run.WorkflowID))
		}
	}
	switch {
	case queues == 0:
		return gateResult{state: rollout.GateFailed, nowhere: true, message: fmt.Sprintf(
			"version %s has no workflow task queue, so gate %s cannot run on it: remove the gate, or let the worker "+
				"serve workflows", g.BuildID, g.WorkflowType)}
	case len(failed) > 0:
		return gateResult{state: rollout.GateFailed,
			message: fmt.Sprintf("gate %s %s", g.WorkflowType, strings.Join(failed, ", "))}
	case len(unread) > 0:
		return gateResult{state: rollout.GateUnread,
			message: fmt.Sprintf("gate %s could not be read on %s", g.WorkflowType, strings.Join(unread, ", "))}
	case len(missing) > 0:
		return gateResult{state: rollout.GateMissing, missing: missing,
			message: fmt.Sprintf("gate %s starts on %s", g.WorkflowType, strings.Join(missing, ", "))}
	case len(running) > 0:
		return gateResult{state: rollout.GateRunning,
			message: fmt.Sprintf("gate %s runs on %s", g.WorkflowType, strings.Join(running, ", "))}
	}
	return gateResult{state: rollout.GateCompleted}
}

// gateFailed takes traffic back from a target whose gate failed at its step, if it is to: held or not, with workers or
// without.
func gateFailed(v *View) (outcome, bool) {
	if !v.targetRamps() || v.spec.Spec.Rollout.Strategy == v1alpha1.Manual {
		return outcome{}, false
	}
	g := v.pointGate()
	if g == nil || g.OnFailure != v1alpha1.GateRollback {
		return outcome{}, false
	}
	if r := v.gate(g); r.state == rollout.GateFailed && !r.nowhere {
		return gateOutcome(v, g)
	}
	return outcome{}, false
}

// gateInput waits for inputs of gates that the bot does not have: a rollout that cannot pass its gates does not begin.
func gateInput(v *View) (outcome, bool) {
	if v.target.BuildID == v.actual.Current || v.spec.Spec.Rollout.Strategy == v1alpha1.Manual {
		return outcome{}, false
	}
	if why := v.unreadInput(); why != "" {
		return stalled(rollout.PlanGenerationFailed, "%s", why), true
	}
	return outcome{}, false
}
