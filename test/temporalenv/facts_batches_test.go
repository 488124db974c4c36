package temporalenv_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	batchpb "go.temporal.io/api/batch/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// nudge is a signal that no workflow reads: it makes a workflow task and changes nothing.
const nudge = "nudge"

func (e *env) batch(job, query string, change func(*workflowservice.StartBatchOperationRequest)) error {
	e.T.Helper()
	req := &workflowservice.StartBatchOperationRequest{Namespace: e.NS.Name(), JobId: job, Reason: "test", VisibilityQuery: query}
	change(req)
	_, err := e.Service.StartBatchOperation(e.Ctx, req)
	return err
}

func signals(name string) func(*workflowservice.StartBatchOperationRequest) {
	return func(r *workflowservice.StartBatchOperationRequest) {
		r.Operation = &workflowservice.StartBatchOperationRequest_SignalOperation{SignalOperation: &batchpb.BatchOperationSignal{Signal: name, Identity: bot}}
	}
}

func overrides(o *workflowpb.VersioningOverride) func(*workflowservice.StartBatchOperationRequest) {
	return func(r *workflowservice.StartBatchOperationRequest) {
		r.Operation = &workflowservice.StartBatchOperationRequest_UpdateWorkflowOptionsOperation{
			UpdateWorkflowOptionsOperation: &batchpb.BatchOperationUpdateWorkflowExecutionOptions{
				Identity:                 bot,
				WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{VersioningOverride: o},
				UpdateMask:               &fieldmaskpb.FieldMask{Paths: []string{"versioning_override"}},
			}}
	}
}

func (e *env) job(id string) (*workflowservice.DescribeBatchOperationResponse, error) {
	return e.Service.DescribeBatchOperation(e.Ctx, &workflowservice.DescribeBatchOperationRequest{Namespace: e.NS.Name(), JobId: id})
}

func (e *env) awaitJob(id string) *workflowservice.DescribeBatchOperationResponse {
	e.T.Helper()
	var d *workflowservice.DescribeBatchOperationResponse
	e.Eventually(func(context.Context) error {
		var err error
		if d, err = e.job(id); err == nil && d.GetState() == enumspb.BATCH_OPERATION_STATE_RUNNING {
			err = errors.New("the job runs")
		}
		return err
	})
	return d
}

func (e *env) versioning(workflow string) *workflowpb.WorkflowExecutionVersioningInfo {
	e.T.Helper()
	d, err := e.Client.DescribeWorkflowExecution(e.Ctx, workflow, "")
	require.NoError(e.T, err)
	return d.GetWorkflowExecutionInfo().GetVersioningInfo()
}

// settledOnV1 are workflows that are pinned to v1, without any override.
func (e *env) settledOnV1(workflow string, ids ...string) {
	e.T.Helper()
	e.Start("app", "v1", "v2", "v3")
	e.mustCurrent("v1")
	for _, id := range ids {
		_, err := e.Client.ExecuteWorkflow(e.Ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, workflow)
		require.NoError(e.T, err)
	}
	e.AwaitCount(openPinned("v1"), int64(len(ids)))
	e.mustCurrent("v2")
}

func TestFactABatchSignalsTheOpenWorkflowsOfAVersion(t *testing.T) {
	e := newEnv(t)
	e.settledOnV1(temporalenv.Slow, "a", "b")
	_, err := e.job("job")
	require.Equal(t, codes.NotFound, status.Code(err))
	require.NoError(t, e.batch("job", openPinned("v1"), signals(temporalenv.FinishSignal)))
	d := e.awaitJob("job")
	require.Equal(t, enumspb.BATCH_OPERATION_STATE_COMPLETED, d.GetState())
	require.Equal(t, []int64{2, 2, 0}, []int64{d.GetTotalOperationCount(), d.GetCompleteOperationCount(), d.GetFailureOperationCount()})
	e.AwaitCount(openPinned("v1"), 0)
	e.awaitStatus("v1", drained)

	// The job's ID is a workflow's, and is not given out again, though it ended.
	var again *serviceerror.WorkflowExecutionAlreadyStarted
	err = e.batch("job", openPinned("v1"), signals(temporalenv.FinishSignal))
	require.ErrorAs(t, serviceerror.FromStatus(status.Convert(err)), &again)
	list, err := e.Service.ListBatchOperations(e.Ctx, &workflowservice.ListBatchOperationsRequest{Namespace: e.NS.Name()})
	require.NoError(t, err)
	require.Len(t, list.GetOperationInfo(), 1)
}

func TestFactOneBatchAtATime(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.BatcherRPS, 1))
	e.settledOnV1(temporalenv.Slow, "a", "b", "c", "d", "e")
	require.NoError(t, e.batch("first", openPinned("v1"), signals(nudge)))
	e.Eventually(func(context.Context) error {
		err := e.batch("second", openPinned("v1"), signals(nudge))
		var busy *serviceerror.ResourceExhausted
		if err = serviceerror.FromStatus(status.Convert(err)); !errors.As(err, &busy) {
			return fmt.Errorf("not refused: %w", err)
		}
		require.Equal(t, enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT, busy.Cause)
		return nil
	})
}

// moved starts a batch that puts an override on what is pinned to v1.
func (e *env) moved(o *workflowpb.VersioningOverride) {
	e.T.Helper()
	require.NoError(e.T, e.batch("move", openPinned("v1"), overrides(o)))
	require.Equal(e.T, int64(1), e.awaitJob("move").GetCompleteOperationCount())
}

// tasked gives a workflow tasks until a worker of the build has completed one: routing takes a moment to reach the
// queues.
func (e *env) tasked(workflow, build string) *workflowpb.WorkflowExecutionVersioningInfo {
	e.T.Helper()
	var got *workflowpb.WorkflowExecutionVersioningInfo
	e.Eventually(func(ctx context.Context) error {
		if err := e.Client.SignalWorkflow(ctx, workflow, "", nudge, nil); err != nil {
			return err
		}
		if got = e.versioning(workflow); got.GetDeploymentVersion().GetBuildId() != build {
			return fmt.Errorf("its last task was on %s", got.GetDeploymentVersion().GetBuildId())
		}
		return nil
	})
	return got
}

// It goes to the target with its next task and is pinned there by its own code: no override stays. Until then it is
// counted as the target's, so that an idle one keeps the old version no longer.
func TestFactAOneTimeOverrideMovesAPinnedWorkflow(t *testing.T) {
	e := newEnv(t)
	e.settledOnV1(temporalenv.Slow, "idle")
	e.moved(&workflowpb.VersioningOverride{Override: &workflowpb.VersioningOverride_OneTime{
		OneTime: &workflowpb.VersioningOverride_OneTimeOverride{TargetDeploymentVersion: temporalenv.Version("v3")}}})
	e.AwaitCount(openPinned("v3"), 1)
	require.Zero(t, e.Count(openPinned("v1")))
	require.Equal(t, "v1", e.versioning("idle").GetDeploymentVersion().GetBuildId(), "an idle workflow has no task to move with")
	e.awaitStatus("v1", drained)

	got := e.tasked("idle", "v3")
	require.Nil(t, got.GetVersioningOverride())
	require.Equal(t, enumspb.VERSIONING_BEHAVIOR_PINNED, got.GetBehavior())
	e.AwaitCount(openPinned("v3"), 1)
}

func TestFactAPinnedOverrideStays(t *testing.T) {
	e := newEnv(t)
	e.settledOnV1(temporalenv.Slow, "idle")
	e.moved(&workflowpb.VersioningOverride{Override: &workflowpb.VersioningOverride_Pinned{Pinned: &workflowpb.VersioningOverride_PinnedOverride{
		Behavior: workflowpb.VersioningOverride_PINNED_OVERRIDE_BEHAVIOR_PINNED, Version: temporalenv.Version("v3")}}})
	require.Equal(t, "v3", e.tasked("idle", "v3").GetVersioningOverride().GetPinned().GetVersion().GetBuildId())
}

// A pinned workflow, which was not written for it, changes its code with every promotion from then on.
func TestFactAnAutoUpgradeOverrideStays(t *testing.T) {
	e := newEnv(t)
	e.settledOnV1(temporalenv.Slow, "idle")
	e.moved(&workflowpb.VersioningOverride{Override: &workflowpb.VersioningOverride_AutoUpgrade{AutoUpgrade: true}})
	require.True(t, e.tasked("idle", "v2").GetVersioningOverride().GetAutoUpgrade())
	e.mustCurrent("v3")
	require.True(t, e.tasked("idle", "v3").GetVersioningOverride().GetAutoUpgrade())
}
