package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

const (
	// firstTask is how long a workflow has for its first workflow task before it counts as stuck.
	firstTask = 30 * time.Second
	// sampleSize is how many stuck workflows of each kind are looked at.
	sampleSize = 20
)

// counted are the versions whose closed workflows were asked for.
func counted(ask rollout.Ask) []string {
	var out []string
	for _, c := range ask.Closed {
		out = append(out, c.BuildID)
	}
	return out
}

// countStuck counts what no count by version shows: the first workflow tasks that never complete, and the tasks that
// fail again and again. Of each kind it looks at some, to say whose they are.
func (o *observer) countStuck(ctx context.Context) {
	ask := o.ask.Stuck
	if ask == nil || o.obs.Exists != rollout.Yes {
		return
	}
	out := rollout.Stuck{Since: ask.Since, Unattributed: rollout.Counted(0)}
	names, err := o.workflowQueues()
	if err == nil && len(names) == 0 { // no version of them runs workflows, so that none can be stuck
		out.Problems = rollout.Counted(0)
		o.obs.Stuck = out
		return
	}
	on := ""
	if err == nil {
		on, err = onQueues(names)
	}
	if until := o.obs.At.Add(-firstTask); !ask.Since.IsZero() && (err != nil || until.After(ask.Since)) {
		// A workflow that is to begin later (cron, start delay) waits for nothing yet.
		query := fmt.Sprintf(
			"%s AND StartTime >= %s AND ExecutionTime <= %s AND TemporalWorkerDeploymentVersion IS NULL",
			on, quoteTime(ask.Since), quoteTime(until))
		out.Unattributed, out.UnattributedSample = o.countAndSample(ctx, query, err)
	}
	if version := o.obs.ServerVersion; rollout.ReportedProblems.MissingIn(version) {
		out.Problems = rollout.Count{Reason: "Temporal " + version + " " + rollout.ReportedProblems.Lacks,
			Unsupported: true}
	} else {
		out.Problems, out.ProblemsSample = o.countAndSample(ctx, on+" AND "+problemsAttribute+" IS NOT NULL", err)
	}
	o.obs.Stuck = out
}

// problemsAttribute is the search attribute of workflows whose workflow task fails again and again. Servers before 1.30
// have none.
const problemsAttribute = "TemporalReportedProblems"

// lacks reports whether a server refused a query since it does not have the search attribute: it cannot answer, however
// often it is asked.
func lacks(err error, attribute string) bool {
	return codeOf(err) == codes.InvalidArgument && strings.Contains(err.Error(), attribute)
}

// onQueues is the condition that a running workflow is on one of some task queues.
func onQueues(names []string) (string, error) {
	quoted := make([]string, len(names))
	for i, name := range names {
		q, err := quote(name)
		if err != nil {
			return "", err
		}
		quoted[i] = q
	}
	return "TaskQueue IN (" + strings.Join(quoted, ", ") + ") AND ExecutionStatus = 'Running'", nil
}

// workflowQueues are the task queues on which the asked versions run workflows, sorted; none, if they only run
// activities.
func (o *observer) workflowQueues() ([]string, error) {
	names, listed := map[string]bool{}, false
	for _, build := range slices.Concat(o.ask.Queues, counted(o.ask)) {
		if o.obs.Version(build) == nil {
			continue
		}
		listed = true
		found, known := o.queues[build]
		if !known {
			return nil, fmt.Errorf("the task queues of version %s are not known", build)
		}
		for _, q := range found {
			if q.Type == rollout.QueueWorkflow {
				names[q.Name] = true
			}
		}
	}
	if !listed {
		return nil, errors.New("the server lists none of the versions whose workflows were to be counted")
	}
	return sortedKeys(names), nil
}

func (o *observer) countAndSample(ctx context.Context, query string, err error) (rollout.Count, rollout.Sample) {
	n := o.count(ctx, query, err)
	if !n.Known || n.N == 0 {
		return n, rollout.Sample{}
	}
	resp, err := read(ctx, reading{o.session, visibility}, o.service().ListWorkflowExecutions,
		&workflowservice.ListWorkflowExecutionsRequest{Namespace: o.namespace, Query: query, PageSize: sampleSize})
	if err != nil {
		o.log.WarnContext(ctx, "stuck workflows not listed", "query", query, "error", err)
		return n, rollout.Sample{}
	}
	var out rollout.Sample
	for _, e := range resp.GetExecutions() {
		switch o.whose(ctx, e.GetExecution()) {
		case whoseCandidate:
			out.Candidate++
			if out.Workflow == "" {
				out.Workflow = e.GetExecution().GetWorkflowId()
			}
		case whoseOther:
			out.Others++
		default:
			out.Unknown++
		}
	}
	return n, out
}

type whose string

const (
	whoseUnknown   whose = ""
	whoseCandidate whose = "candidate"
	whoseOther     whose = "other"
)

// whose says on which version a workflow's task fails: the one that it is in transition to, else the one that it is on.
// One without a pending workflow task is not stuck. What was closed or deleted meanwhile is not known.
func (o *observer) whose(ctx context.Context, run *commonpb.WorkflowExecution) whose {
	resp, err := read(ctx, reading{o.session, queues}, o.service().DescribeWorkflowExecution,
		&workflowservice.DescribeWorkflowExecutionRequest{Namespace: o.namespace, Execution: run})
	if err != nil {
		o.log.WarnContext(ctx, "stuck workflow not described", "workflowID", run.GetWorkflowId(), "error", err)
		return whoseUnknown
	}
	if resp.GetPendingWorkflowTask() == nil {
		return whoseOther
	}
	info := resp.GetWorkflowExecutionInfo().GetVersioningInfo()
	on := info.GetVersionTransition().GetDeploymentVersion()
	if on == nil {
		on = info.GetDeploymentVersion()
	}
	switch {
	case on == nil:
		return whoseUnknown
	case on.GetDeploymentName() == o.deployment && on.GetBuildId() == o.ask.Stuck.Candidate:
		return whoseCandidate
	}
	return whoseOther
}
