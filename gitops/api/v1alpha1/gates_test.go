package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

func gateRecord(fields string) string {
	return fmt.Sprintf(`apiVersion: rampart.dev/v1alpha1
kind: Routing
metadata: {name: checkout, namespace: payments}
spec:
  workerDeployment: payments/checkout
  temporalNamespace: prod
  specPath: checkout.yaml
  desired: {current: v1}
  target:
    buildID: v2
    templateHash: abc
    attempt: 1
    since: 2026-01-31T12:00:00Z
    gates: [%s]
`, fields)
}

func TestRecordedGates(t *testing.T) {
	const good = `{point: step-2, taskQueue: orders, workflowType: Smoke, workflowID: "g:1", runID: r, outcome: TimedOut, closedAt: 2026-01-31T12:00:00Z}`
	docs, problems := Decode("routing.yaml", []byte(gateRecord(good)))
	require.Empty(t, problems)
	gates := docs[0].Object.(*Routing).Spec.Target.Gates
	require.Equal(t, []RecordedGate{{Point: "step-2", TaskQueue: "orders", WorkflowType: "Smoke", WorkflowID: "g:1", RunID: "r", Outcome: GateTimesOut,
		ClosedAt: docs[0].Object.(*Routing).Spec.Target.Since}}, gates)
	require.True(t, gates[0].CanBeRecorded())

	for fields, want := range map[string]string{
		`{point: third, taskQueue: q, workflowType: S, workflowID: i, outcome: Failed}`:      "is not a gate's point",
		`{point: first, taskQueue: q, workflowType: S, workflowID: i, outcome: Running}`:     "outcome",
		`{point: first, taskQueue: q, workflowType: S, workflowID: i}`:                       "outcome: is required",
		`{point: first, taskQueue: q, workflowType: S, outcome: Failed}`:                     "workflowID: is required",
		`{point: first, taskQueue: "a\tb", workflowType: S, workflowID: i, outcome: Failed}`: "has control characters",
		`{point: first, taskQueue: q, workflowType: "", workflowID: i, outcome: Failed}`:     "must not be empty",
		good + ", " + good: "is there already",
	} {
		_, problems := Decode("routing.yaml", []byte(gateRecord(fields)))
		require.NotEmpty(t, problems, fields)
		require.Contains(t, problems[0].String(), want)
	}
}

// What could not be read again is not written: the name of a task queue is the worker's.
func TestGatesThatCannotBeRecorded(t *testing.T) {
	good := RecordedGate{Point: "first", TaskQueue: "orders", WorkflowType: "Smoke", WorkflowID: "i", Outcome: GateCompletes}
	require.True(t, good.CanBeRecorded())
	for name, change := range map[string]func(*RecordedGate){
		"control characters": func(g *RecordedGate) { g.TaskQueue = "a\nb" },
		"too long":           func(g *RecordedGate) { g.WorkflowID = strings.Repeat("i", 1001) },
		"nothing":            func(g *RecordedGate) { g.WorkflowType = "" },
		"no point":           func(g *RecordedGate) { g.Point = "step-0" },
	} {
		g := good
		change(&g)
		require.False(t, g.CanBeRecorded(), name)
	}
}
