package temporalenv_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

const (
	draining = enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING
	drained  = enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED
)

func pinned(id, build string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: id, TaskQueue: queue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		VersioningOverride: &client.PinnedVersioningOverride{
			Version: worker.WorkerDeploymentVersion{DeploymentName: deployment, BuildID: build},
		},
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
}

func TestFactDrainedAfterTheGracePeriod(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	require.Equal(t, enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_INACTIVE, e.summary("v1").GetStatus())
	e.mustCurrent("v1")
	before := e.summary("v1")
	require.NotNil(t, before.GetLastCurrentTime())
	require.NotNil(t, before.GetFirstActivationTime())
	require.Nil(t, before.GetLastDeactivationTime())
	require.Equal(t, enumspb.VERSION_DRAINAGE_STATUS_UNSPECIFIED, before.GetDrainageInfo().GetStatus())

	e.mustCurrent("v2")
	e.Eventually(func(context.Context) error { // draining, and on a busy machine drained by now
		if e.summary("v1").GetDrainageInfo().GetStatus() == enumspb.VERSION_DRAINAGE_STATUS_UNSPECIFIED {
			return errors.New("v1 does not drain")
		}
		return nil
	})
	left := e.summary("v1")
	require.NotNil(t, left.GetLastDeactivationTime())
	// When it became current, not when it stopped being so.
	require.True(t, left.GetLastCurrentTime().AsTime().Equal(before.GetLastCurrentTime().AsTime()))
	require.NotNil(t, left.GetDrainageInfo().GetLastChangedTime())

	e.awaitStatus("v1", drained)
	info := e.summary("v1").GetDrainageInfo()
	require.Equal(t, enumspb.VERSION_DRAINAGE_STATUS_DRAINED, info.GetStatus())
	took := info.GetLastChangedTime().AsTime().Sub(left.GetLastDeactivationTime().AsTime())
	require.GreaterOrEqual(t, took, 2*time.Second)
	require.NotNil(t, info.GetLastCheckedTime())

	e.mustCurrent("v1")
	require.Nil(t, e.summary("v1").GetLastDeactivationTime())
}

func TestFactPinnedStartMakesADrainedVersionDrainAgain(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2", "v3")
	e.mustCurrent("v1")
	e.mustCurrent("v2")
	e.awaitStatus("v1", drained)
	e.startPinned("late", temporalenv.Slow, "v1")
	e.awaitStatus("v1", draining)
	// So it does with a version that never had traffic.
	e.startPinned("early", temporalenv.Slow, "v3")
	e.awaitStatus("v3", draining)

	require.NoError(t, e.Client.SignalWorkflow(e.Ctx, "late", "", temporalenv.FinishSignal, nil))
	e.awaitStatus("v1", drained)
}

func TestFactDrainageDoesNotSeeAutoUpgradingWorkflows(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	_, err := e.Client.ExecuteWorkflow(e.Ctx, client.StartWorkflowOptions{ID: "follow", TaskQueue: queue}, temporalenv.Follow)
	require.NoError(t, err)
	e.AwaitCount(fmt.Sprintf("TemporalWorkerDeploymentVersion = '%s:v1' AND ExecutionStatus = 'Running'", deployment), 1)
	e.mustCurrent("v2")
	e.awaitStatus("v1", drained)
}

func TestFactDeletingIsRefusedWhileNeeded(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2", "v3")
	e.mustCurrent("v1")
	e.startPinned("slow", temporalenv.Slow, "v1")
	e.AwaitCount(fmt.Sprintf("TemporalWorkerDeploymentVersion = '%s:v1'", deployment), 1)
	e.mustRamp("v2", 10)
	requireCode(t, codes.FailedPrecondition, e.deleteVersion("v1", bot)) // current
	requireCode(t, codes.FailedPrecondition, e.deleteVersion("v2", bot)) // ramping
	requireCode(t, codes.FailedPrecondition, e.deleteVersion("v3", bot)) // inactive, with pollers
	e.mustCurrent("v2")
	e.Stop("v1")
	e.awaitNoPollers("v1")
	e.awaitStatus("v1", draining)
	requireCode(t, codes.FailedPrecondition, e.deleteVersion("v1", bot)) // draining

	e.Start("app", "v1")
	require.NoError(t, e.Client.SignalWorkflow(e.Ctx, "slow", "", temporalenv.FinishSignal, nil))
	e.awaitStatus("v1", drained)
	requireCode(t, codes.FailedPrecondition, e.deleteVersion("v1", bot)) // drained, with pollers
	e.Stop("v1")
	e.awaitNoPollers("v1")
	require.NoError(t, e.manager(bot, bot))
	requireCode(t, codes.FailedPrecondition, e.deleteVersion("v1", "somebody")) // managed by another
	require.NoError(t, e.deleteVersion("v1", bot))
	require.Nil(t, e.summary("v1"))
}

func TestFactDeletingWhatIsNotThere(t *testing.T) {
	e := newEnv(t)
	requireCode(t, codes.NotFound, e.deleteVersion("v1", bot))
	e.Start("app", "v1")
	// In a deployment that exists, a version that does not is deleted without complaint.
	require.NoError(t, e.deleteVersion("nope", bot))
}

func TestFactADeletedVersionComesBackWithoutHistory(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	e.mustCurrent("v2")
	e.awaitStatus("v1", drained)
	e.Stop("v1")
	e.awaitNoPollers("v1")
	require.NoError(t, e.deleteVersion("v1", bot))
	e.Start("app", "v1")
	s := e.summary("v1")
	require.Equal(t, enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_INACTIVE, s.GetStatus())
	require.Nil(t, s.GetFirstActivationTime())
	require.Nil(t, s.GetDrainageInfo())
}

func TestFactEnhancedModeReportsPollersOfAVersion(t *testing.T) {
	e := newEnv(t)
	e.Start("app-both", "v1")
	old := worker.New(e.Client, queue, worker.Options{Identity: "old-style"})
	temporalenv.DefaultImage(queue).Register(old)
	require.NoError(t, old.Start())
	t.Cleanup(old.Stop)
	want := map[string]map[string][]string{
		deployment + ":v1": {"Workflow": {"1@checkout-v1-1"}, "Activity": {"1@checkout-v1-1"}, "Nexus": nil},
		"":                 {"Workflow": {"old-style"}, "Activity": {"old-style"}, "Nexus": nil},
	}
	e.Eventually(func(context.Context) error {
		if diff := cmp.Diff(want, e.pollers(queue, "v1")); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	e.Eventually(func(context.Context) error {
		want := map[string]map[string][]string{
			deployment + ":v1": {"Workflow": {"1@checkout-v1-1"}, "Activity": {"1@checkout-v1-1"}, "Nexus": nil},
			"":                 {"Workflow": nil, "Activity": nil, "Nexus": nil},
		}
		if diff := cmp.Diff(want, e.pollers(queue2, "v1")); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestFactAStoppedWorkerStaysListed(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.PollerHistoryTTL, time.Hour))
	e.Start("app", "v1")
	e.awaitPollers("v1")
	e.Stop("v1")
	require.True(t, e.polled("v1"))
	require.NotZero(t, e.NS.Counts()["ShutdownWorker"])
	requireCode(t, codes.FailedPrecondition, e.deleteVersion("v1", bot))
}

func TestFactAServerThatCancelsPollsOnShutdownForgetsAtOnce(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.PollerHistoryTTL, time.Hour),
		temporalenv.Set(dynamicconfig.EnableCancelWorkerPollsOnShutdown, true),
		temporalenv.Set(dynamicconfig.EnableMatchingFanOutForPollCancellation, true))
	e.Start("app", "v1")
	e.awaitPollers("v1")
	e.Stop("v1")
	e.awaitNoPollers("v1")
}

// The enhanced mode keeps its answers for 5 s, and keeps them under version and type alone, not under what was asked
// for.
func TestFactEnhancedModeCanSayNoPollersWhenThereAreSome(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.TaskQueueInfoByBuildIdTTL, time.Hour))
	e.Start("app", "v1")
	e.Eventually(func(context.Context) error {
		if e.NS.Counts()["PollActivityTaskQueue"] == 0 || e.NS.Counts()["PollWorkflowTaskQueue"] == 0 {
			return errors.New("does not poll yet")
		}
		return nil
	})
	// Somebody asks for statistics only: so does the server itself before it sets a routing.
	_, err := e.Service.DescribeTaskQueue(e.Ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: e.NS.Name(),
		TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		ApiMode:   enumspb.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
		Versions: &taskqueuepb.TaskQueueVersionSelection{
			BuildIds: []string{deployment + ":v1"}, Unversioned: true,
		},
		TaskQueueTypes: []enumspb.TaskQueueType{
			enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY, enumspb.TASK_QUEUE_TYPE_NEXUS,
		},
		ReportStats: true,
	})
	require.NoError(t, err)
	require.False(t, e.polled("v1"))
	// And the server deletes a version that polls.
	require.NoError(t, e.deleteVersion("v1", bot))
}

func TestFactGateWorkflowIsPinnedAndStartedOnce(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	run := e.startPinned("gate", temporalenv.Smoke, "v2")
	require.NoError(t, run.Get(e.Ctx, nil))
	d, err := e.Client.DescribeWorkflowExecution(e.Ctx, "gate", "")
	require.NoError(t, err)
	info := d.GetWorkflowExecutionInfo().GetVersioningInfo()
	require.Equal(t, "v2", info.GetVersioningOverride().GetPinned().GetVersion().GetBuildId())
	require.Equal(t, "v2", info.GetDeploymentVersion().GetBuildId())
	require.Equal(t, enumspb.VERSIONING_BEHAVIOR_PINNED, info.GetBehavior())

	_, err = e.Client.ExecuteWorkflow(e.Ctx, pinned("gate", "v2"), temporalenv.Smoke)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	require.ErrorAs(t, err, &started)
	require.Equal(t, run.GetRunID(), started.RunId)

	failing := e.startPinned("gate-fails", temporalenv.SmokeFails, "v2")
	require.Error(t, failing.Get(e.Ctx, nil))
}
