package temporalenv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// Load is what Traffic starts.
type Load struct {
	// TaskQueue and Workflow are where and what.
	TaskQueue, Workflow string
	// ID is the beginning of the workflow IDs; "-1", "-2"… follow. Default: Workflow.
	ID string
	// Count is how many are started; 0 means until Stop.
	Count int
	// Every is the time between two starts; 0 means one after the other, which needs a Count.
	Every time.Duration
}

// Outcome is how one workflow closed.
type Outcome struct {
	ID, RunID string
	Status    enumspb.WorkflowExecutionStatus
	// BuildID is the version that its last workflow task completed on; empty when none did.
	BuildID string
}

// Traffic starts workflows in the background.
type Traffic struct {
	client client.Client
	load   Load
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	started []client.WorkflowRun
	refused []error
}

// StartTraffic begins to start workflows. The client stays the caller's.
func StartTraffic(c client.Client, load Load) (*Traffic, error) {
	if load.Count == 0 && load.Every == 0 {
		return nil, fmt.Errorf("load needs a count or a time between starts")
	}
	if load.ID == "" {
		load.ID = load.Workflow
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Traffic{client: c, load: load, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.run(ctx)
	}()
	return t, nil
}

func (t *Traffic) run(ctx context.Context) {
	var beat <-chan time.Time
	if t.load.Every > 0 {
		ticker := time.NewTicker(t.load.Every)
		defer ticker.Stop()
		beat = ticker.C
	}
	for i := 1; t.load.Count == 0 || i <= t.load.Count; i++ {
		t.startOne(ctx, i)
		if beat == nil {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-beat:
		}
	}
}

func (t *Traffic) startOne(ctx context.Context, i int) {
	run, err := t.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fmt.Sprintf("%s-%d", t.load.ID, i), TaskQueue: t.load.TaskQueue,
	}, t.load.Workflow)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.started = append(t.started, run)
	} else if ctx.Err() == nil {
		t.refused = append(t.refused, fmt.Errorf("start workflow %d: %w", i, err))
	}
}

// Stop ends the starting; what was started goes on.
func (t *Traffic) Stop() {
	t.cancel()
	<-t.done
}

// Refused are the errors of starts that failed.
func (t *Traffic) Refused() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.refused)
}

// Started is how many workflows were started so far.
func (t *Traffic) Started() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.started)
}

// Wait waits until nothing more is started (after Count, or Stop) and all that was has closed, and tells how, by ID.
func (t *Traffic) Wait(ctx context.Context) ([]Outcome, error) {
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for starts: %w", ctx.Err())
	}
	t.mu.Lock()
	runs := slices.Clone(t.started)
	t.mu.Unlock()
	out := make([]Outcome, 0, len(runs))
	for _, run := range runs {
		o, err := t.outcome(ctx, run)
		if err != nil {
			return nil, fmt.Errorf("wait for workflow %q: %w", run.GetID(), err)
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Outcome) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

func (t *Traffic) outcome(ctx context.Context, run client.WorkflowRun) (Outcome, error) {
	var o Outcome
	err := until(ctx, func(ctx context.Context) error {
		d, err := t.client.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
		if err != nil {
			return err
		}
		info := d.GetWorkflowExecutionInfo()
		if info.GetCloseTime() == nil {
			return fmt.Errorf("status %s", info.GetStatus())
		}
		o = Outcome{
			ID: run.GetID(), RunID: run.GetRunID(), Status: info.GetStatus(),
			BuildID: info.GetVersioningInfo().GetDeploymentVersion().GetBuildId(),
		}
		return nil
	})
	return o, err
}

// ByVersion counts outcomes by build ID and status.
func ByVersion(outcomes []Outcome) map[string]map[enumspb.WorkflowExecutionStatus]int {
	out := map[string]map[enumspb.WorkflowExecutionStatus]int{}
	for _, o := range outcomes {
		if out[o.BuildID] == nil {
			out[o.BuildID] = map[enumspb.WorkflowExecutionStatus]int{}
		}
		out[o.BuildID][o.Status]++
	}
	return out
}
