package temporalenv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/primitives"
)

// Namespace is one Temporal namespace of a Server: its records, faults and hooks concern no other.
type Namespace struct {
	server *Server
	name   string
}

// Name is the namespace's name.
func (n *Namespace) Name() string { return n.name }

// Server is the server that the namespace is on.
func (n *Namespace) Server() *Server { return n.server }

// Service reaches the server past the proxy; see Server.Service.
func (n *Namespace) Service() workflowservice.WorkflowServiceClient { return n.server.Service() }

// Client is an SDK client past the proxy: unrecorded, without faults, and also during an outage. The caller closes it.
func (n *Namespace) Client(ctx context.Context) (client.Client, error) {
	c, err := client.DialContext(ctx, client.Options{
		HostPort:  n.server.frontend(),
		Namespace: n.name,
		Identity:  "temporalenv",
		Logger:    log.NewStructuredLogger(n.server.opts.Log),
	})
	if err != nil {
		return nil, fmt.Errorf("dial namespace %q: %w", n.name, err)
	}
	return c, nil
}

// Override changes a setting for this namespace alone until restore is called. Many settings are read once, when a task
// queue or a limit is first used, or once a minute: give those to Server.Namespace instead.
func (n *Namespace) Override(setting dynamicconfig.GenericSetting, value any) (restore func()) {
	// Not the mergeable kind: that one is hidden by the settings for everybody.
	values := append([]dynamicconfig.ConstrainedValue{{
		Constraints: dynamicconfig.Constraints{Namespace: n.name},
		Value:       value,
	}}, n.server.config.GetValue(setting.Key())...)
	return n.server.config.OverrideSetting(setting, values)
}

// Calls are the recorded mutating calls to this namespace, oldest first.
func (n *Namespace) Calls() []Call { return n.server.proxy.recorder.calls(n.name) }

// RoutingCalls are the accepted calls that set the routing, oldest first. They are "ramp v2 10", "current v2", "ramp
// none" for a ramp taken back, "unversioned" in place of a build ID for workers without one. An empty deployment means
// all of them.
func (n *Namespace) RoutingCalls(deployment string) []string {
	return routingCalls(n.Calls(), deployment)
}

// RoutingChanges are the RoutingCalls of one deployment without those that Temporal took as no change. Setting what is
// set already, by the same identity, is accepted whatever the token.
func (n *Namespace) RoutingChanges(deployment string) []string {
	return routingChanges(n.Calls(), deployment)
}

// RoutingRepeats are the RoutingCalls of one deployment that set what was set already, although the caller that had set
// it before had been told so.
func (n *Namespace) RoutingRepeats(deployment string) []string {
	return routingRepeats(n.Calls(), deployment)
}

// Counts tells how often each method was called through the proxy, reads and polls included.
func (n *Namespace) Counts() map[string]int { return n.server.proxy.recorder.counts(n.name) }

// Inject makes calls to this namespace fail as f says until f.Times are used up or remove is called. It panics on a
// fault without a point.
func (n *Namespace) Inject(f Fault) (remove func()) { return n.server.proxy.faults.add(n.name, f) }

// BeforeForward calls hook before a call to this namespace is forwarded, in the goroutine that serves it. A hook can
// hold the call up or change the world under it. Polls and responses of workers go through it too.
func (n *Namespace) BeforeForward(hook Hook) (remove func()) {
	return n.server.proxy.hooks.add(n.name, hook)
}

// usable is nil once the server's own workers poll for this namespace. They run the workflows behind worker
// deployments, and everything else is up before them.
func (n *Namespace) usable(ctx context.Context) error {
	resp, err := n.Service().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: n.name,
		TaskQueue: &taskqueuepb.TaskQueue{Name: primitives.PerNSWorkerTaskQueue,
			Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
	})
	if err != nil {
		return fmt.Errorf("describe the server's own task queue: %w", err)
	}
	if len(resp.GetPollers()) == 0 {
		return errors.New("the server's own workers do not poll yet")
	}
	return nil
}

// LogOwnWorkflows logs the end of the histories of the server's own workflows, which keep the state of worker
// deployments, and what they wait for. A test that failed shows by it what the server was doing.
func (n *Namespace) LogOwnWorkflows(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := n.Service().ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: n.name,
		Query:     `TemporalNamespaceDivision = "TemporalWorkerDeployment" AND ExecutionStatus = "Running"`,
	})
	if err != nil {
		t.Logf("list the server's own workflows: %v", err)
		return
	}
	for _, e := range list.GetExecutions() {
		d, err := n.Service().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: n.name, Execution: e.GetExecution(),
		})
		t.Logf("%s since %s, error %v: pending activities %v, workflow task %v", e.GetExecution().GetWorkflowId(),
			e.GetStartTime().AsTime().Format(time.TimeOnly), err, d.GetPendingActivities(), d.GetPendingWorkflowTask())
		h, err := n.Service().GetWorkflowExecutionHistoryReverse(ctx,
			&workflowservice.GetWorkflowExecutionHistoryReverseRequest{
				Namespace: n.name, Execution: e.GetExecution(), MaximumPageSize: 30,
			})
		if err != nil {
			t.Logf("  history: %v", err)
		}
		for _, event := range h.GetHistory().GetEvents() {
			t.Logf("  %s %d %s", event.GetEventTime().AsTime().Format(time.TimeOnly), event.GetEventId(),
				event.GetEventType())
		}
	}
}
