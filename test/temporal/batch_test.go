package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	batchpb "go.temporal.io/api/batch/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/dynamicconfig"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// evacuation of v1 by a stage; attempts tell jobs of one test apart.
func evacuation(stage v1alpha1.EvacuationStage, attempt int) rollout.BatchStart {
	e := rollout.Evacuation{Stage: stage, Attempt: attempt, Since: time.Unix(1, 0)}
	switch stage {
	case v1alpha1.EvacuateBySignal:
		e.Signal = temporalenv.FinishSignal
	case v1alpha1.EvacuateByMove:
		e.Target = "v3"
	}
	e.JobID = rollout.EvacuationJobID(name, "v1", e)
	return rollout.BatchStart{BuildID: "v1", Job: e, Identity: bot}
}

// stranded are workflows pinned to v1, which has lost its traffic to v2. Others, on v2 and following the current
// version, must stay as they are.
func (e *env) stranded(n int) (ids, others []string) {
	e.T.Helper()
	e.Start("app", "v1", "v2", "v3")
	e.raise(current("v1"))
	for range n {
		ids = append(ids, e.workflow(temporalenv.Slow, ""))
	}
	others = append(others, e.workflow(temporalenv.Follow, ""))
	e.AwaitCount(pinnedTo("v1"), int64(n))
	e.raise(current("v2"))
	others = append(others, e.workflow(temporalenv.Slow, "v2"))
	e.AwaitCount(pinnedTo("v2"), 1)
	return ids, others
}

func pinnedTo(build string) string {
	return fmt.Sprintf("TemporalWorkerDeploymentVersion = '%s:%s' AND TemporalWorkflowVersioningBehavior = 'Pinned' AND ExecutionStatus = 'Running'", deployment, build)
}

func (e *env) startBatch(b rollout.BatchStart) error { return e.pool.StartBatch(e.Ctx, e.subject(), b) }

// batches reads the job of an evacuation, and what is needed to start it.
func (e *env) batches(b rollout.BatchStart) (rollout.Batches, rollout.Count) {
	e.T.Helper()
	obs := e.mustObserve(rollout.Ask{Batches: []rollout.BatchAsk{{BuildID: b.BuildID, JobID: b.Job.JobID, Stage: b.Job.Stage}}})
	return obs.Batches, obs.Version(b.BuildID).OpenPinned
}

func (e *env) awaitBatch(b rollout.BatchStart) rollout.BatchJob {
	e.T.Helper()
	var job rollout.BatchJob
	e.Eventually(func(context.Context) error {
		got, _ := e.batches(b)
		if job = got.Job(b.Job.JobID); job.State != rollout.BatchCompleted {
			return fmt.Errorf("the job is %s", job.State)
		}
		return nil
	})
	return job
}

func (e *env) ended(id string) enumspb.WorkflowExecutionStatus {
	e.T.Helper()
	d, err := e.Client.DescribeWorkflowExecution(e.Ctx, id, "")
	require.NoError(e.T, err)
	return d.GetWorkflowExecutionInfo().GetStatus()
}

func TestBatchesEndWorkflows(t *testing.T) {
	for stage, want := range map[v1alpha1.EvacuationStage]enumspb.WorkflowExecutionStatus{
		v1alpha1.EvacuateBySignal:      enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		v1alpha1.EvacuateByTermination: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	} {
		t.Run(string(stage), func(t *testing.T) {
			e := newEnv(t)
			ids, others := e.stranded(3)
			b := evacuation(stage, 1)
			got, open := e.batches(b)
			require.Equal(t, rollout.Batches{OthersRun: rollout.No, Jobs: []rollout.BatchJob{{JobID: b.Job.JobID, State: rollout.BatchMissing}}}, got)
			require.Equal(t, rollout.Counted(3), open)

			require.NoError(t, e.startBatch(b))
			// Once more, as after an answer that was lost. The server says that there is this job already, or, as long
			// as it lists it as one that runs, that it runs as many as it takes.
			require.NoError(t, e.startBatch(b))
			job := e.awaitBatch(b)
			require.Empty(t, cmp.Diff(rollout.BatchJob{JobID: b.Job.JobID, State: rollout.BatchCompleted, Total: 3, Done: 3}, job,
				cmpopts.IgnoreFields(rollout.BatchJob{}, "StartedAt", "EndedAt")))
			require.False(t, job.EndedAt.Before(job.StartedAt))
			e.AwaitCount(pinnedTo("v1"), 0)
			for _, id := range ids {
				require.Equal(t, want, e.ended(id))
			}
			for _, id := range others {
				require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, e.ended(id))
			}
			require.NoError(t, e.startBatch(b), "and when it has ended")
			require.Contains(t, e.sites.all(), "After "+string(temporal.SiteStartBatch))

			// A job that exists needs no count and no list.
			got, open = e.batches(b)
			require.Equal(t, rollout.Batches{Jobs: []rollout.BatchJob{job}}, got)
			require.False(t, open.Known)
		})
	}
}

// Cancelling asks: a workflow that does not listen stays.
func TestBatchCancels(t *testing.T) {
	e := newEnv(t)
	ids, _ := e.stranded(1)
	b := evacuation(v1alpha1.EvacuateByCancel, 1)
	require.NoError(t, e.startBatch(b))
	require.Equal(t, int64(1), e.awaitBatch(b).Done)
	history := e.Client.GetWorkflowHistory(e.Ctx, ids[0], "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	asked := false
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		asked = asked || event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
	}
	require.True(t, asked)
}

func TestBatchMoves(t *testing.T) {
	e := newEnv(t)
	ids, _ := e.stranded(1)
	b := evacuation(v1alpha1.EvacuateByMove, 1)
	require.NoError(t, e.startBatch(b))
	require.Equal(t, int64(1), e.awaitBatch(b).Done)
	e.AwaitCount(pinnedTo("v3"), 1)
	require.Zero(t, e.Count(pinnedTo("v1")))
	require.NoError(t, e.Client.SignalWorkflow(e.Ctx, ids[0], "", "nudge", nil))
	e.Eventually(func(ctx context.Context) error {
		d, err := e.Client.DescribeWorkflowExecution(ctx, ids[0], "")
		if err != nil {
			return err
		}
		v := d.GetWorkflowExecutionInfo().GetVersioningInfo()
		if v.GetDeploymentVersion().GetBuildId() != "v3" || v.GetVersioningOverride() != nil {
			return fmt.Errorf("not moved yet: %v", v)
		}
		return nil
	})
}

func TestBatchWaitsForOthers(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.BatcherRPS, 1))
	e.stranded(30) // so that it takes half a minute
	_, err := e.Service.StartBatchOperation(e.Ctx, &workflowservice.StartBatchOperationRequest{Namespace: e.NS.Name(), JobId: "cleanup", Reason: "test",
		VisibilityQuery: pinnedTo("v1"), Operation: &workflowservice.StartBatchOperationRequest_SignalOperation{
			SignalOperation: &batchpb.BatchOperationSignal{Signal: "nudge", Identity: "someone"}}})
	require.NoError(t, err)
	b := evacuation(v1alpha1.EvacuateBySignal, 1)
	e.Eventually(func(context.Context) error {
		if got, _ := e.batches(b); got.OthersRun != rollout.Yes || got.Other != "cleanup" {
			return fmt.Errorf("not seen: %+v", got)
		}
		return nil
	})
	require.ErrorIs(t, e.startBatch(b), rollout.ErrBatchBusy)
}

func TestBatchIsRefused(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.raise(current("v1"))
	b := evacuation(v1alpha1.EvacuateByTermination, 1)
	require.ErrorIs(t, e.startBatch(b), rollout.ErrStale, "the version has traffic")
	e.raise(ramp("v2", 10))
	b.BuildID = "v2"
	require.ErrorIs(t, e.startBatch(b), rollout.ErrStale, "the version ramps")
	e.raise(current("v2"))
	e.manager("someone")
	b.BuildID = "v1"
	var owner *temporal.OwnerError
	require.ErrorAs(t, e.startBatch(b), &owner)
	for _, spoil := range []func(*rollout.BatchStart){
		func(b *rollout.BatchStart) { b.BuildID = "" },
		func(b *rollout.BatchStart) { b.BuildID = `v"1` },
		func(b *rollout.BatchStart) { b.Identity = "" },
		func(b *rollout.BatchStart) { b.Job.JobID = "" },
		func(b *rollout.BatchStart) { b.Job.Stage = "Forget" },
		func(b *rollout.BatchStart) { b.Job.Stage = v1alpha1.EvacuateBySignal },
		func(b *rollout.BatchStart) { b.Job.Stage = v1alpha1.EvacuateByMove },
		func(b *rollout.BatchStart) { b.Job.Stage, b.Job.Target = v1alpha1.EvacuateByMove, "v1" },
	} {
		bad := b
		spoil(&bad)
		err := e.startBatch(bad)
		require.Error(t, err)
		require.False(t, errors.As(err, &owner), "refused before anything is read")
	}
	require.NotContains(t, e.methods(), "StartBatchOperation")
}
