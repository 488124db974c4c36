package v1alpha1

import (
	"strings"
	"unicode"
)

// RecordedGate is the outcome of one gate on one task queue.
type RecordedGate struct {
	// Point is "first", or "step-1", "step-2" and so on.
	Point string `json:"point"`
	// TaskQueue that it ran on.
	TaskQueue string `json:"taskQueue"`
	// WorkflowType of the test workflow.
	WorkflowType string `json:"workflowType"`
	// WorkflowID names the gate: build, point, task queue and attempt, and a hash of template, workflow type and input.
	WorkflowID string `json:"workflowID"`
	// RunID of the run that ended.
	RunID string `json:"runID,omitempty"`
	// Outcome of the test workflow.
	Outcome GateOutcome `json:"outcome"`
	// ClosedAt is when it ended.
	ClosedAt Time `json:"closedAt,omitzero"`
}

// CanBeRecorded reports whether a record with the outcome can be read again. A worker may serve a task queue of any
// name.
func (g RecordedGate) CanBeRecorded() bool {
	for _, text := range []string{g.TaskQueue, g.WorkflowType, g.WorkflowID} {
		if text == "" || len(text) > longestText || strings.ContainsFunc(text, unicode.IsControl) {
			return false
		}
	}
	return pointPattern().MatchString(g.Point)
}

// recordedGates checks outcomes that a person may have edited.
func (v *validator) recordedGates(list *node) {
	v.unique(list.items(), "workflowID", "gate")
	for _, n := range list.items() {
		v.require(n, "outcome")
		if f := v.text(n, "point"); f != nil {
			v.matches(f, pointPattern(), "a gate's point: first, or step-1, step-2 and so on")
		}
		for _, key := range []string{"taskQueue", "workflowType", "workflowID"} {
			v.printable(v.text(n, key))
		}
		v.printable(n.get("runID"))
	}
}
