package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	batchpb "go.temporal.io/api/batch/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// readBatches reads the batch jobs that were asked for. Where one is missing it may be started: then its version's open
// pinned workflows are counted too, the jobs that run are listed, and for a move the server is asked for its version.
func (o *observer) readBatches(ctx context.Context) {
	missing := false
	for _, ask := range o.ask.Batches {
		job := o.readBatch(ctx, ask.JobID)
		o.obs.Batches.Jobs = append(o.obs.Batches.Jobs, job)
		if job.State == rollout.BatchMissing {
			missing = true
			o.ask.OpenPinned = append(slices.Clone(o.ask.OpenPinned), ask.BuildID)
		}
		if job.State == rollout.BatchMissing && ask.Stage == v1alpha1.EvacuateByMove && o.obs.Batches.CannotMove == "" {
			if err := o.movesOnce(ctx); err != nil {
				o.obs.Batches.CannotMove = err.Error()
			}
		}
	}
	slices.SortFunc(o.obs.Batches.Jobs, func(a, b rollout.BatchJob) int { return strings.Compare(a.JobID, b.JobID) })
	if !missing {
		return
	}
	other, err := o.runningBatch(ctx)
	switch {
	case err != nil:
		o.log.WarnContext(ctx, "batch jobs not listed", "error", err)
	case other == "":
		o.obs.Batches.OthersRun = rollout.No
	default:
		o.obs.Batches.OthersRun, o.obs.Batches.Other = rollout.Yes, other
	}
}

func (s *session) readBatch(ctx context.Context, id string) rollout.BatchJob {
	job := rollout.BatchJob{JobID: id}
	resp, err := read(ctx, reading{s, queues}, s.service().DescribeBatchOperation,
		&workflowservice.DescribeBatchOperationRequest{Namespace: s.namespace, JobId: id})
	switch {
	case notFound(err):
		job.State = rollout.BatchMissing
		return job
	case err != nil:
		job.State, job.Reason = rollout.BatchUnread, fmt.Sprintf("describe batch job: %v", err)
		return job
	}
	job.StartedAt, job.EndedAt = instant(resp.GetStartTime()), instant(resp.GetCloseTime())
	job.Total, job.Done, job.Failed = resp.GetTotalOperationCount(), resp.GetCompleteOperationCount(),
		resp.GetFailureOperationCount()
	switch resp.GetState() {
	case enumspb.BATCH_OPERATION_STATE_RUNNING:
		job.State = rollout.BatchRunning
	case enumspb.BATCH_OPERATION_STATE_COMPLETED:
		job.State = rollout.BatchCompleted
	case enumspb.BATCH_OPERATION_STATE_FAILED:
		job.State = rollout.BatchFailed
	default:
		job.State, job.Reason = rollout.BatchUnread, fmt.Sprintf("unknown state %v", resp.GetState())
	}
	return job
}

// runningBatch finds a job of somebody else that runs in the namespace, "" if there is none.
func (o *observer) runningBatch(ctx context.Context) (string, error) {
	var token []byte
	for range maxPages {
		resp, err := read(ctx, reading{o.session, visibility}, o.service().ListBatchOperations,
			&workflowservice.ListBatchOperationsRequest{Namespace: o.namespace, PageSize: pageSize,
				NextPageToken: token})
		if err != nil {
			return "", fmt.Errorf("list batch jobs: %w", err)
		}
		for _, b := range resp.GetOperationInfo() {
			asked := slices.ContainsFunc(o.ask.Batches, func(a rollout.BatchAsk) bool {
				return a.JobID == b.GetJobId()
			})
			if b.GetState() == enumspb.BATCH_OPERATION_STATE_RUNNING && !asked {
				return b.GetJobId(), nil
			}
		}
		if token = resp.GetNextPageToken(); len(token) == 0 {
			return "", nil
		}
	}
	return "", fmt.Errorf("list batch jobs: more than %d pages", maxPages)
}

// StartBatch starts a batch job about the open workflows that are pinned to a version. It describes the worker
// deployment again: where the version has traffic by now it changes nothing and gives a rollout.ErrStale, where
// somebody else owns it an OwnerError. Moving needs a server of at least 1.32. A job that was started before, in
// whatever state it is now, gives no error. While the namespace runs as many jobs as it takes, the error is
// rollout.ErrBatchBusy.
func (p *Pool) StartBatch(ctx context.Context, on rollout.Subject, start rollout.BatchStart) error {
	if err := p.startBatch(ctx, on, start); err != nil {
		return fmt.Errorf("start batch job %s: %w", start.Job.JobID, err)
	}
	return nil
}

func (p *Pool) startBatch(ctx context.Context, on rollout.Subject, start rollout.BatchStart) error {
	s, err := p.session(on.Connection, on.TemporalNamespace)
	if err != nil {
		return err
	}
	deployment := on.Deployment.String()
	req, err := s.batchRequest(deployment, start)
	if err != nil {
		return err
	}
	if start.Job.Stage == v1alpha1.EvacuateByMove {
		if err := s.movesOnce(ctx); err != nil {
			return err
		}
	}
	now, err := s.describeDeployment(ctx, deployment)
	if err != nil {
		return err
	}
	info := now.GetWorkerDeploymentInfo()
	if m := info.GetManagerIdentity(); rollout.BelongsToOther(m, start.Identity) {
		return &OwnerError{Manager: m, Identity: start.Identity}
	}
	routing, err := routingOf(info.GetRoutingConfig())
	if err != nil {
		return err
	}
	if routing.Current == start.BuildID || routing.HasRamp && routing.Ramping == start.BuildID {
		return fmt.Errorf("version %s has traffic again: %w", start.BuildID, rollout.ErrStale)
	}
	_, err = write(ctx, writing{s, SiteStartBatch}, s.service().StartBatchOperation, req)
	var (
		started *serviceerror.WorkflowExecutionAlreadyStarted
		busy    *serviceerror.ResourceExhausted
	)
	switch {
	case errors.As(err, &started):
		return nil
	case errors.As(err, &busy) && busy.Cause == enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT:
		// The server counts before it looks at the ID, and may count one that has ended just now: what runs may be
		// this job itself.
		switch s.readBatch(ctx, start.Job.JobID).State {
		case rollout.BatchRunning, rollout.BatchCompleted, rollout.BatchFailed:
			return nil
		}
		return fmt.Errorf("%w: %w", rollout.ErrBatchBusy, err)
	}
	return err
}

// movesOnce reports, as an error, a server that does not know one-time overrides. It would not see the field, and take
// the override for an empty one.
func (s *session) movesOnce(ctx context.Context) error {
	version, err := s.askVersion(ctx)
	if err != nil {
		return err
	}
	return movable(version)
}

// movable reports, as an error, a server without one-time overrides, or whose version is not understood.
func movable(version string) error {
	needed := rollout.OneTimeOverrides
	switch needed.In(version) {
	case rollout.Yes:
		return nil
	case rollout.No:
		return fmt.Errorf("moving workflows needs Temporal %s or later, this server is %s: upgrade it, or leave "+
			"moveTo out", needed.Release(), version)
	}
	return fmt.Errorf("moving workflows needs Temporal %s, and this server's version is %q", needed.Release(), version)
}

func (s *session) batchRequest(deployment string, start rollout.BatchStart) (
	*workflowservice.StartBatchOperationRequest, error) {
	query, err := openQuery(deployment, start.BuildID, rollout.Yes)
	if err != nil {
		return nil, err
	}
	if start.BuildID == "" || start.Identity == "" || start.Job.JobID == "" {
		return nil, errors.New("batch job without a version, an identity or an ID")
	}
	req := &workflowservice.StartBatchOperationRequest{
		Namespace: s.namespace, JobId: start.Job.JobID, VisibilityQuery: query,
		Reason: fmt.Sprintf("rampart: stage %s of evacuating version %s of %s", start.Job.Stage, start.BuildID,
			deployment),
	}
	switch start.Job.Stage {
	case v1alpha1.EvacuateBySignal:
		if start.Job.Signal == "" {
			return nil, errors.New("batch job to signal workflows without a signal")
		}
		req.Operation = &workflowservice.StartBatchOperationRequest_SignalOperation{
			SignalOperation: &batchpb.BatchOperationSignal{Signal: start.Job.Signal, Identity: start.Identity}}
	case v1alpha1.EvacuateByMove:
		if start.Job.Target == "" || start.Job.Target == start.BuildID {
			return nil, fmt.Errorf("batch job to move workflows from %s to %q", start.BuildID, start.Job.Target)
		}
		req.Operation = &workflowservice.StartBatchOperationRequest_UpdateWorkflowOptionsOperation{
			UpdateWorkflowOptionsOperation: moveTo(deployment, start)}
	case v1alpha1.EvacuateByCancel:
		req.Operation = &workflowservice.StartBatchOperationRequest_CancellationOperation{
			CancellationOperation: &batchpb.BatchOperationCancellation{Identity: start.Identity}}
	case v1alpha1.EvacuateByTermination:
		req.Operation = &workflowservice.StartBatchOperationRequest_TerminationOperation{
			TerminationOperation: &batchpb.BatchOperationTermination{Identity: start.Identity}}
	default:
		return nil, fmt.Errorf("batch job of the unknown stage %q", start.Job.Stage)
	}
	return req, nil
}

// moveTo sends each workflow's next task to the target, once: from then on its own code says that it is pinned there. A
// pinned or auto-upgrading override would stay with the workflow, and all its later runs, for good.
func moveTo(deployment string, start rollout.BatchStart) *batchpb.BatchOperationUpdateWorkflowExecutionOptions {
	return &batchpb.BatchOperationUpdateWorkflowExecutionOptions{
		Identity:   start.Identity,
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"versioning_override"}},
		WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{
			VersioningOverride: &workflowpb.VersioningOverride{
				Override: &workflowpb.VersioningOverride_OneTime{
					OneTime: &workflowpb.VersioningOverride_OneTimeOverride{
						TargetDeploymentVersion: version(deployment, start.Job.Target),
					}},
			}},
	}
}
