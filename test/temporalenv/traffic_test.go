package temporalenv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

type statuses = map[enumspb.WorkflowExecutionStatus]int

func TestTrafficTellsHowWorkflowsClosedAndWhere(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.Start("app-bad", "v2")
	e.mustCurrent("v1")
	good := e.traffic(temporalenv.Load{TaskQueue: queue, Workflow: temporalenv.Checkout, Count: 20, ID: "good"})
	outcomes, err := good.Wait(e.Ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]statuses{"v1": {enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED: 20}}, temporalenv.ByVersion(outcomes))
	require.Empty(t, good.Refused())

	e.mustCurrent("v2")
	e.Eventually(func(context.Context) error {
		// The queues hear of the routing a moment after the call.
		return diff("Completed", e.describe().GetWorkerDeploymentInfo().GetRoutingConfigUpdateState().String())
	})
	bad := e.traffic(temporalenv.Load{TaskQueue: queue, Workflow: temporalenv.Checkout, Every: 10 * time.Millisecond, ID: "bad"})
	e.Eventually(func(context.Context) error {
		if bad.Started() < 5 {
			return fmt.Errorf("%d started", bad.Started())
		}
		return nil
	})
	bad.Stop()
	outcomes, err = bad.Wait(e.Ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]statuses{"v2": {enumspb.WORKFLOW_EXECUTION_STATUS_FAILED: len(outcomes)}}, temporalenv.ByVersion(outcomes))
	require.Equal(t, "bad-1", outcomes[0].ID)
}

func (e *env) traffic(load temporalenv.Load) *temporalenv.Traffic {
	e.T.Helper()
	traffic, err := temporalenv.StartTraffic(e.Client, load)
	require.NoError(e.T, err)
	e.T.Cleanup(traffic.Stop)
	return traffic
}

func TestTrafficNeedsAnEnd(t *testing.T) {
	t.Parallel()
	_, err := temporalenv.StartTraffic(nil, temporalenv.Load{})
	require.Error(t, err)
}
