package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rampart-gitops/rampart/internal/rollout"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// notClosed leaves out the states that are known as closed: paused workflows, and states that a later server may add,
// are open.
const notClosed = "ExecutionStatus NOT IN ('Completed', 'Failed', 'Canceled', 'Terminated', 'ContinuedAsNew', " +
	"'TimedOut')"

// quote makes a string literal of the visibility query language. A value that some server would not find by it is an
// error, so that it counts as unknown and not as 0: the server trims quotes off both ends of what a literal says, and
// hands backslashes and double quotes to its database escaped, which SQLite takes literally.
func quote(s string) (string, error) {
	switch {
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) || strings.ContainsAny(s, `\"`):
		return "", fmt.Errorf("%q holds characters that a query cannot ask for", s)
	case strings.HasPrefix(s, "'") || strings.HasSuffix(s, "'"):
		return "", fmt.Errorf("%q begins or ends with a quote, which a query cannot ask for", s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'", nil
}

func quoteTime(t time.Time) string { return "'" + t.UTC().Format(time.RFC3339Nano) + "'" }

// onVersion is the condition that a workflow belongs to a version: its override's target, else the version of its last
// completed workflow task.
func onVersion(deployment, build string) (string, error) {
	q, err := quote(versionName(deployment, build))
	return "TemporalWorkerDeploymentVersion = " + q, err
}

// openQuery selects workflows of a version that are not known to be closed; listed versions keep only those pinned to
// them.
func openQuery(deployment, build string, listed rollout.Answer) (string, error) {
	on, err := onVersion(deployment, build)
	if listed == rollout.Yes {
		on += " AND TemporalWorkflowVersioningBehavior = 'Pinned'"
	}
	return on + " AND " + notClosed, err
}

var errNoSpan = errors.New("count closed workflows: the start of the time span is missing")

// closedQuery groups a version's workflows that started since a time by their state.
func closedQuery(deployment string, ask rollout.ClosedAsk) (string, error) {
	if ask.Since.IsZero() {
		return "", errNoSpan
	}
	on, err := onVersion(deployment, ask.BuildID)
	on += " AND StartTime >= " + quoteTime(ask.Since)
	return on + " GROUP BY ExecutionStatus", err
}

// countOpen counts the open workflows of the versions that were asked for.
func (o *observer) countOpen(ctx context.Context) {
	for _, build := range slices.Compact(slices.Sorted(slices.Values(o.ask.OpenPinned))) {
		v := o.obs.Version(build)
		listed := rollout.Yes
		if v == nil {
			listed = rollout.No
		}
		query, err := openQuery(o.deployment, build, listed)
		n := o.count(ctx, query, err)
		if v == nil {
			if o.obs.Unlisted == nil {
				o.obs.Unlisted = map[string]rollout.Count{}
			}
			o.obs.Unlisted[build] = n
			continue
		}
		v.OpenPinned = n
	}
}

// countInUse counts what uses the listed versions that were asked for. These are workflows that are not known to be
// closed, whatever their behavior, or were started at or after a time.
func (o *observer) countInUse(ctx context.Context) {
	for _, build := range o.ask.InUse {
		if v := o.obs.Version(build); v != nil {
			on, err := onVersion(o.deployment, build)
			v.InUse = o.count(ctx, on+" AND ("+notClosed+" OR StartTime >= "+quoteTime(o.ask.InUseSince)+")", err)
		}
	}
}

// countClosed counts the closed workflows that were asked for.
func (o *observer) countClosed(ctx context.Context) {
	if o.obs.Exists != rollout.Yes {
		return
	}
	for _, ask := range o.ask.Closed {
		if v := o.obs.Version(ask.BuildID); v != nil {
			v.Closed = o.closed(ctx, ask)
		}
	}
}

func (o *observer) closed(ctx context.Context, ask rollout.ClosedAsk) rollout.ClosedCounts {
	out := rollout.ClosedCounts{}
	query, err := closedQuery(o.deployment, ask)
	var resp *workflowservice.CountWorkflowExecutionsResponse
	if err == nil {
		resp, err = o.countWorkflows(ctx, query)
	}
	if err == nil {
		out, err = closedOf(resp)
	}
	if err != nil {
		o.notCounted(ctx, "buildID", ask.BuildID, err)
		out = rollout.ClosedCounts{Reason: err.Error()}
	}
	out.Since = ask.Since
	return out
}

// notCounted logs that workflows were not counted, unless that was said before.
func (o *observer) notCounted(ctx context.Context, key, of string, err error) {
	if o.ask.CountsRefused == "" {
		o.log.WarnContext(ctx, "workflows not counted", key, of, "error", err)
	}
}

// closedOf maps a count grouped by state. Open states do not count.
func closedOf(resp *workflowservice.CountWorkflowExecutionsResponse) (rollout.ClosedCounts, error) {
	out := rollout.ClosedCounts{Known: true}
	for _, g := range resp.GetGroups() {
		if len(g.GetGroupValues()) != 1 {
			return rollout.ClosedCounts{}, fmt.Errorf("a group has %d values, not 1", len(g.GetGroupValues()))
		}
		var name string
		if err := json.Unmarshal(g.GetGroupValues()[0].GetData(), &name); err != nil {
			return rollout.ClosedCounts{}, fmt.Errorf("read a group's state: %w", err)
		}
		state, err := enumspb.WorkflowExecutionStatusFromString(name)
		if err != nil {
			return rollout.ClosedCounts{}, fmt.Errorf("unknown state of workflows %q", name)
		}
		switch state {
		case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			out.Completed += g.GetCount()
		case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
			out.Failed += g.GetCount()
		case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
			out.TimedOut += g.GetCount()
		case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
			out.Terminated += g.GetCount()
		case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
			out.Canceled += g.GetCount()
		case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
			out.ContinuedAsNew += g.GetCount()
		}
	}
	return out, nil
}

// count asks for one number; err is what was wrong with the query.
func (o *observer) count(ctx context.Context, query string, err error) rollout.Count {
	var resp *workflowservice.CountWorkflowExecutionsResponse
	if err == nil {
		resp, err = o.countWorkflows(ctx, query)
	}
	if err != nil {
		o.notCounted(ctx, "query", query, err)
		return rollout.Count{Reason: err.Error(), Unsupported: lacks(err, problemsAttribute)}
	}
	return rollout.Counted(resp.GetCount())
}

func (o *observer) countWorkflows(ctx context.Context,
	query string) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	if o.ask.CountsRefused != "" {
		return nil, errors.New(o.ask.CountsRefused)
	}
	resp, err := read(ctx, reading{o.session, visibility}, o.service().CountWorkflowExecutions,
		&workflowservice.CountWorkflowExecutionsRequest{Namespace: o.namespace, Query: query})
	if err != nil {
		return nil, fmt.Errorf("count workflows: %w", err)
	}
	return resp, nil
}
