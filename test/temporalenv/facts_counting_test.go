package temporalenv_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

func openPinned(build string) string {
	return fmt.Sprintf("TemporalWorkflowVersioningBehavior = 'Pinned' AND TemporalWorkerDeploymentVersion = '%s:%s' AND "+
		"ExecutionStatus = 'Running'", deployment, build)
}

func TestFactOpenPinnedWorkflowsCanBeCounted(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	e.startPinned("a", temporalenv.Slow, "v1")
	e.startPinned("b", temporalenv.Slow, "v2")
	_, err := e.Client.ExecuteWorkflow(e.Ctx, client.StartWorkflowOptions{ID: "c", TaskQueue: queue}, temporalenv.Slow)
	require.NoError(t, err)
	_, err = e.Client.ExecuteWorkflow(e.Ctx, client.StartWorkflowOptions{ID: "d", TaskQueue: queue}, temporalenv.Follow)
	require.NoError(t, err)
	e.AwaitCount(openPinned("v1"), 2)
	e.AwaitCount(openPinned("v2"), 1)
	require.NoError(t, e.Client.SignalWorkflow(e.Ctx, "a", "", temporalenv.FinishSignal, nil))
	e.AwaitCount(openPinned("v1"), 1)
}

func TestFactClosedWorkflowsCanBeCountedByStatus(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.Start("app-bad", "v2")
	e.mustCurrent("v1")
	e.startPinned("ok", temporalenv.Checkout, "v1")
	e.startPinned("bad-1", temporalenv.Checkout, "v2")
	e.startPinned("bad-2", temporalenv.Checkout, "v2")
	byStatus := func(build string) map[string]int64 {
		resp, err := e.Service.CountWorkflowExecutions(e.Ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: e.NS.Name(),
			Query:     fmt.Sprintf("TemporalWorkerDeploymentVersion = '%s:%s' GROUP BY ExecutionStatus", deployment, build),
		})
		require.NoError(t, err)
		out := map[string]int64{}
		for _, g := range resp.GetGroups() {
			var name string
			require.NoError(t, converter.GetDefaultDataConverter().FromPayload(g.GetGroupValues()[0], &name))
			out[name] = g.GetCount()
		}
		return out
	}
	e.AwaitCount(fmt.Sprintf("TemporalWorkerDeploymentVersion STARTS_WITH '%s:' AND ExecutionStatus != 'Running'", deployment), 3)
	require.Equal(t, map[string]int64{"Completed": 1}, byStatus("v1"))
	require.Equal(t, map[string]int64{"Failed": 2}, byStatus("v2"))
}

func TestFactAFirstTaskThatPanicsIsCountedNowhere(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.NumConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute, 2))
	e.Start("app", "v1")
	e.mustCurrent("v1")
	// No such workflow in the image: each workflow task fails.
	_, err := e.Client.ExecuteWorkflow(e.Ctx, client.StartWorkflowOptions{ID: "stuck", TaskQueue: queue}, "Unheard")
	require.NoError(t, err)
	e.AwaitCount(fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running' AND TemporalReportedProblems IS NOT NULL", queue), 1)
	require.Equal(t, int64(1), e.Count(fmt.Sprintf(
		"TaskQueue = '%s' AND ExecutionStatus = 'Running' AND TemporalWorkerDeploymentVersion IS NULL", queue)))
	require.Zero(t, e.Count(fmt.Sprintf("TemporalWorkerDeploymentVersion = '%s:v1'", deployment)))
	d, err := e.Client.DescribeWorkflowExecution(e.Ctx, "stuck", "")
	require.NoError(t, err)
	require.Nil(t, d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion())
	require.Equal(t, "v1", d.GetWorkflowExecutionInfo().GetVersioningInfo().GetVersionTransition().GetDeploymentVersion().GetBuildId())
}

// A server that does not have a search attribute, as 1.29 does not have TemporalReportedProblems, refuses the query and
// names it.
func TestFactAMissingSearchAttributeIsRefusedByName(t *testing.T) {
	e := newEnv(t)
	_, err := e.Service.CountWorkflowExecutions(e.Ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: e.NS.Name(), Query: "TemporalOfTheNextRelease IS NOT NULL"})
	var invalid *serviceerror.InvalidArgument
	require.ErrorAs(t, serviceerror.FromStatus(status.Convert(err)), &invalid)
	require.ErrorContains(t, err, "TemporalOfTheNextRelease")
}

func TestFactVisibilityIsLimitedByNamespace(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance, 1))
	var exhausted *serviceerror.ResourceExhausted
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Service.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: e.NS.Name()})
		if !errors.As(serviceerror.FromStatus(status.Convert(err)), &exhausted) {
			return fmt.Errorf("not limited: %w", err)
		}
		return nil
	})
	require.Equal(t, enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, exhausted.Cause)
	require.Equal(t, enumspb.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE, exhausted.Scope)
}
