package temporal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

func gate(kind, build string) rollout.GateSpec {
	return rollout.GateSpec{
		Deployment: name, BuildID: build, TemplateHash: "abc", Point: "first", Attempt: 1, WorkflowType: kind,
		Input: json.RawMessage(`{"card": 1}`), Timeout: time.Minute,
	}
}

func (e *env) gates(g rollout.GateSpec) []rollout.GateRun {
	e.T.Helper()
	return e.mustObserve(rollout.Ask{Gate: &g}).Gates
}

func (e *env) startGate(g rollout.GateSpec, queue string) error {
	return e.pool.StartGate(e.Ctx, e.connection(), e.NS.Name(), rollout.GateStart{Gate: g, TaskQueue: queue})
}

func (e *env) awaitGate(g rollout.GateSpec, want rollout.GateState) rollout.GateRun {
	e.T.Helper()
	var run rollout.GateRun
	e.Eventually(func(context.Context) error {
		if run = e.gates(g)[0]; run.State != want {
			return fmt.Errorf("gate is %s, not %s", run.State, want)
		}
		return nil
	})
	return run
}

func TestGateRunsOnceOnEachQueue(t *testing.T) {
	e := newEnv(t)
	// At once after the version registered, when a pinned start is still refused now and then.
	e.Start("app-both", "v1")
	passes := gate(temporalenv.Smoke, "v1")
	require.Empty(t, cmp.Diff([]rollout.GateRun{
		{WorkflowID: passes.WorkflowID(queue), TaskQueue: queue, State: rollout.GateMissing},
		{WorkflowID: passes.WorkflowID(queue2), TaskQueue: queue2, State: rollout.GateMissing},
	}, e.gates(passes)))

	begin := time.Now().Add(-time.Second)
	require.NoError(t, e.startGate(passes, queue))
	require.NoError(t, e.startGate(passes, queue2))
	run := e.awaitGate(passes, rollout.GateCompleted)
	require.Empty(t, cmp.Diff(rollout.GateRun{WorkflowID: passes.WorkflowID(queue), TaskQueue: queue, State: rollout.GateCompleted}, run,
		cmpopts.IgnoreFields(rollout.GateRun{}, "RunID", "StartedAt", "ClosedAt")))
	require.NotEmpty(t, run.RunID)
	require.True(t, run.StartedAt.After(begin))
	require.False(t, run.ClosedAt.Before(run.StartedAt))

	// Once more, over when it is closed: the first run stays.
	require.NoError(t, e.startGate(passes, queue))
	require.Equal(t, run.RunID, e.awaitGate(passes, rollout.GateCompleted).RunID)

	fails := gate(temporalenv.SmokeFails, "v1")
	require.NoError(t, e.startGate(fails, queue))
	e.awaitGate(fails, rollout.GateFailed)

	runs := gate(temporalenv.Slow, "v1")
	require.NoError(t, e.startGate(runs, queue))
	first := e.awaitGate(runs, rollout.GateRunning)
	require.NoError(t, e.startGate(runs, queue))
	require.Equal(t, first.RunID, e.awaitGate(runs, rollout.GateRunning).RunID)
	require.NoError(t, e.Client.TerminateWorkflow(e.Ctx, first.WorkflowID, "", "test"))
	e.awaitGate(runs, rollout.GateTerm)

	// It ran on the gate's version, although nothing is routed to it.
	d, err := e.Client.DescribeWorkflowExecution(e.Ctx, first.WorkflowID, "")
	require.NoError(t, err)
	require.Equal(t, "v1", d.GetWorkflowExecutionInfo().GetVersioningInfo().GetVersioningOverride().GetPinned().GetVersion().GetBuildId())
	require.Equal(t, time.Minute, d.GetExecutionConfig().GetWorkflowExecutionTimeout().AsDuration())
	history := e.Client.GetWorkflowHistory(e.Ctx, first.WorkflowID, "", false, 0)
	event, err := history.Next()
	require.NoError(t, err)
	started := event.GetWorkflowExecutionStartedEventAttributes()
	require.Equal(t, "rampart@test", started.GetIdentity())
	require.Len(t, started.GetInput().GetPayloads(), 1)
	require.Equal(t, `{"card": 1}`, string(started.GetInput().GetPayloads()[0].GetData()))
	require.Nil(t, e.gates(gate(temporalenv.Smoke, "unheard")))
}

func TestGateStartFailures(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	method := "StartWorkflowExecution"
	g := gate(temporalenv.Slow, "v1")

	// The answer is lost: the next cycle finds its own.
	e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.AfterForwarding, Times: 1})
	var err error
	e.Eventually(func(context.Context) error {
		if err = e.startGate(g, queue); err == nil {
			return fmt.Errorf("the answer was not lost")
		}
		return nil
	})
	require.ErrorContains(t, err, "injected fault")
	first := e.awaitGate(g, rollout.GateRunning)
	require.NoError(t, e.startGate(g, queue))
	require.Equal(t, first.RunID, e.awaitGate(g, rollout.GateRunning).RunID)

	// Refused for a while, as right after registration.
	g.Attempt = 2
	before := e.NS.Counts()[method]
	e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.BeforeForwarding, Code: codes.FailedPrecondition, Times: 2})
	require.NoError(t, e.startGate(g, queue))
	require.Equal(t, 3, e.NS.Counts()[method]-before)

	// Refused for good: not for longer than a few seconds.
	g.Attempt = 3
	before = e.NS.Counts()[method]
	defer e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.BeforeForwarding, Code: codes.FailedPrecondition})()
	require.ErrorContains(t, e.startGate(g, queue), "injected fault")
	require.Equal(t, 6, e.NS.Counts()[method]-before)
	require.Equal(t, rollout.GateMissing, e.gates(g)[0].State)
}
