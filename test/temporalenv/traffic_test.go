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
	bad := e.traffic(temporalenv.Load{TaskQueue: queue, Workflow: temporalenv.Checkout, Every: 10 * time.Millisecond, ID: "bad"})
	e.Eventually(func(context.Context) error {
		// The queues hear of the routing a moment after the call: the first may still run on v1.
		if got := e.Count(`TemporalWorkerDeploymentVersion = "` + deployment + `:v2"`); got < 5 {
			return fmt.Errorf("%d on v2", got)
		}
		return nil
	})
	bad.Stop()
	outcomes, err = bad.Wait(e.Ctx)
	require.NoError(t, err)
	by := temporalenv.ByVersion(outcomes)
	require.Len(t, by["v2"], 1)
	require.GreaterOrEqual(t, by["v2"][enumspb.WORKFLOW_EXECUTION_STATUS_FAILED], 5)
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
