package temporal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// readGates reads the test workflows of the gate that was asked for: one for each workflow task queue of its build. If
// these are not known there are none to read, and the version's QueuesKnown says so.
func (o *observer) readGates(ctx context.Context) {
	if o.ask.Gate == nil {
		return
	}
	for _, q := range o.queues[o.ask.Gate.BuildID] {
		if q.Type == rollout.QueueWorkflow {
			o.obs.Gates = append(o.obs.Gates, o.readGate(ctx, q.Name))
		}
	}
	slices.SortFunc(o.obs.Gates, func(a, b rollout.GateRun) int { return strings.Compare(a.WorkflowID, b.WorkflowID) })
}

func (o *observer) readGate(ctx context.Context, queue string) rollout.GateRun {
	run := rollout.GateRun{WorkflowID: o.ask.Gate.WorkflowID(queue), TaskQueue: queue}
	resp, err := read(ctx, reading{o.session, queues}, o.service().DescribeWorkflowExecution,
		&workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: o.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID},
		})
	switch {
	case notFound(err):
		run.State = rollout.GateMissing
	case err != nil:
		run.State, run.Reason = rollout.GateUnread, fmt.Sprintf("describe workflow: %v", err)
	default:
		info := resp.GetWorkflowExecutionInfo()
		run.RunID = info.GetExecution().GetRunId()
		run.StartedAt, run.ClosedAt = instant(info.GetStartTime()), instant(info.GetCloseTime())
		run.State = gateStateOf(info.GetStatus())
		if run.State == rollout.GateUnread {
			run.Reason = fmt.Sprintf("unknown state %v", info.GetStatus())
		}
	}
	return run
}

// gateStateOf maps the state of the latest run. A run that continued as new goes on in another.
func gateStateOf(s enumspb.WorkflowExecutionStatus) rollout.GateState {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
		enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return rollout.GateRunning
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return rollout.GateCompleted
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return rollout.GateFailed
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return rollout.GateCanceled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return rollout.GateTerm
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return rollout.GateTimedOut
	}
	return rollout.GateUnread
}

// A pinned start is refused for about a second after the version registered, until its queue has heard of it.
const (
	gateTries = 6
	gatePause = 400 * time.Millisecond
)

// StartGate starts a test workflow pinned to the gate's version. One that was started before, in whatever state it is
// now, gives no error and stays as it is.
func (p *Pool) StartGate(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string,
	start rollout.GateStart) error {
	id := start.Gate.WorkflowID(start.TaskQueue)
	fail := func(err error) error { return fmt.Errorf("start gate %s: %w", id, err) }
	s, err := p.session(conn, temporalNamespace)
	if err != nil {
		return fail(err)
	}
	for try := 1; ; try++ {
		_, err = write(ctx, writing{s, SiteStartGate}, s.service().StartWorkflowExecution, s.gateRequest(id, start))
		var started *serviceerror.WorkflowExecutionAlreadyStarted
		switch {
		case err == nil, errors.As(err, &started):
			return nil
		case !failedPrecondition(err) || try == gateTries:
			return fail(err)
		}
		if err := retry.Sleep(ctx, gatePause); err != nil {
			return fail(err)
		}
	}
}

func (s *session) gateRequest(id string, start rollout.GateStart) *workflowservice.StartWorkflowExecutionRequest {
	// The request ID follows from the workflow's, so that a start whose answer was lost is recognized.
	sum := sha256.Sum256([]byte(id))
	req := &workflowservice.StartWorkflowExecutionRequest{
		Namespace:                s.namespace,
		WorkflowId:               id,
		WorkflowType:             &commonpb.WorkflowType{Name: start.Gate.WorkflowType},
		TaskQueue:                &taskqueuepb.TaskQueue{Name: start.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Identity:                 s.pool.cfg.Identity,
		RequestId:                hex.EncodeToString(sum[:16]),
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		VersioningOverride: &workflowpb.VersioningOverride{Override: &workflowpb.VersioningOverride_Pinned{
			Pinned: &workflowpb.VersioningOverride_PinnedOverride{
				Behavior: workflowpb.VersioningOverride_PINNED_OVERRIDE_BEHAVIOR_PINNED,
				Version:  version(start.Gate.Deployment.String(), start.Gate.BuildID),
			},
		}},
	}
	if start.Gate.Timeout > 0 {
		req.WorkflowExecutionTimeout = durationpb.New(start.Gate.Timeout)
	}
	if input := cmp.Or(string(start.Gate.Input), string(start.Content)); input != "" {
		req.Input = &commonpb.Payloads{Payloads: []*commonpb.Payload{jsonPayload([]byte(input))}}
	}
	return req
}
