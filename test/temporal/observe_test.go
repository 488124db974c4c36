package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	deploymentspb "go.temporal.io/server/api/deployment/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/service/worker/workerdeployment"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

func (e *env) queues(build string) []rollout.TaskQueue {
	e.T.Helper()
	obs := e.mustObserve(rollout.Ask{Queues: []string{build}})
	v := obs.Version(build)
	require.NotNil(e.T, v)
	require.Equal(e.T, rollout.Yes, v.QueuesKnown)
	return v.Queues
}

func TestNothingThere(t *testing.T) {
	e := newEnv(t)
	before := time.Now()
	obs := e.observe(rollout.Ask{Queues: []string{"v1"}, OpenPinned: []string{"v1"}, Closed: closedSince(time.Now(), "v1"), Gate: &rollout.GateSpec{BuildID: "v1"}})
	require.False(t, obs.At.Before(before))
	require.Regexp(t, `^1\.\d+\.\d+`, obs.ServerVersion)
	require.Empty(t, cmp.Diff(rollout.Observation{
		At: obs.At, ServerVersion: obs.ServerVersion, Exists: rollout.No, Unlisted: map[string]rollout.Count{"v1": rollout.Counted(0)},
	}, obs))
}

func TestMissingNamespaceIsNoProofOfAbsence(t *testing.T) {
	e := newEnv(t)
	obs := e.pool.Observe(e.Ctx, e.connection(), rollout.Ask{Deployment: name, TemporalNamespace: "nowhere"})
	require.NotNil(t, obs.Problem)
	require.Equal(t, rollout.TemporalStateFetchFailed, obs.Problem.Reason)
	require.Equal(t, rollout.Answer(""), obs.Exists)
}

func TestEveryField(t *testing.T) {
	e := newEnv(t)
	start := time.Now().Add(-time.Second)
	e.Start("app", "v1", "v2")

	obs := e.mustObserve(rollout.Ask{})
	require.Empty(t, cmp.Diff(rollout.RoutingConfig{}, obs.Routing))
	require.Empty(t, cmp.Diff([]string{"v1", "v2"}, []string{obs.Versions[0].BuildID, obs.Versions[1].BuildID}))
	require.Empty(t, cmp.Diff(rollout.VersionObservation{BuildID: "v2", CreatedAt: obs.Version("v2").CreatedAt}, *obs.Version("v2")))
	require.True(t, obs.Version("v2").CreatedAt.After(start))
	require.Equal(t, rollout.No, obs.Propagating)

	e.raise(current("v1"))
	e.raise(ramp("v2", 0.1))
	obs = e.mustObserve(rollout.Ask{})
	r := obs.Routing
	require.Empty(t, cmp.Diff(rollout.RoutingConfig{
		Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 0.1,
		CurrentChangedAt: r.CurrentChangedAt, RampingChangedAt: r.RampingChangedAt, PercentageChangedAt: r.PercentageChangedAt, Revision: 2,
	}, r))
	for _, at := range []time.Time{r.CurrentChangedAt, r.RampingChangedAt, r.PercentageChangedAt} {
		require.True(t, at.After(start))
	}
	require.Equal(t, bot, obs.ManagerIdentity)
	require.Equal(t, bot, obs.LastModifier)
	require.NotEmpty(t, obs.ConflictToken)
	require.Contains(t, []rollout.Answer{rollout.Yes, rollout.No}, obs.Propagating)

	e.raise(current("v2"))
	e.Eventually(func(ctx context.Context) error {
		obs := e.mustObserve(rollout.Ask{})
		v1 := obs.Version("v1")
		if v1.Drainage != rollout.Drained {
			_, err := e.NS.SyncDrained(ctx) // which the server can miss
			return errors.Join(err, fmt.Errorf("drainage is %q", v1.Drainage))
		}
		return nil
	})
	obs = e.mustObserve(rollout.Ask{})
	v1 := *obs.Version("v1")
	require.Empty(t, cmp.Diff(rollout.VersionObservation{
		BuildID: "v1", CreatedAt: v1.CreatedAt, Drainage: rollout.Drained, DrainageChangedAt: v1.DrainageChangedAt,
		DrainageCheckedAt: v1.DrainageCheckedAt, FirstActivatedAt: v1.FirstActivatedAt, BecameCurrentAt: v1.BecameCurrentAt,
		DeactivatedAt: v1.DeactivatedAt,
	}, v1))
	for i, at := range []time.Time{v1.CreatedAt, v1.DrainageChangedAt, v1.DrainageCheckedAt, v1.FirstActivatedAt, v1.BecameCurrentAt, v1.DeactivatedAt} {
		require.True(t, at.After(start), "%d", i)
	}
	require.True(t, obs.Version("v2").DeactivatedAt.IsZero())
	require.False(t, obs.Routing.HasRamp)
	require.Equal(t, rollout.RoutingConfig{Current: "v2"}.Share("v2"), obs.Routing.Share("v2"))
}

// A server whose summary missed that a version drained, and when it was last looked at, is asked about the version.
func TestMissedDrainage(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.raise(current("v1"))
	e.raise(current("v2"))
	drainage := func(want rollout.Drainage) {
		t.Helper()
		e.Eventually(func(context.Context) error {
			obs := e.mustObserve(rollout.Ask{})
			if got := obs.Version("v1").Drainage; got != want {
				return fmt.Errorf("drainage is %q", got)
			}
			return nil
		})
	}
	drainage(rollout.Drained)

	miss := func(checked time.Duration) {
		t.Helper()
		id := workerdeployment.GenerateDeploymentWorkflowID(deployment)
		answer, err := e.Client.QueryWorkflow(e.Ctx, id, "", workerdeployment.QueryDescribeDeployment)
		require.NoError(t, err)
		var is deploymentspb.QueryDescribeWorkerDeploymentResponse
		require.NoError(t, answer.Get(&is))
		v1 := is.GetState().GetVersions()[deployment+".v1"]
		v1.Status = enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING
		v1.DrainageInfo.Status = enumspb.VERSION_DRAINAGE_STATUS_DRAINING
		v1.DrainageInfo.LastCheckedTime = timestamppb.New(time.Now().Add(-checked))
		require.NoError(t, e.Client.SignalWorkflow(e.Ctx, id, "", workerdeployment.ForceCANSignalName,
			&deploymentspb.ForceCANDeploymentSignalArgs{OverrideState: is.GetState()}))
	}
	miss(0)
	drainage(rollout.Draining)
	miss(time.Hour)
	drainage(rollout.Drained)

	miss(0)
	drainage(rollout.Draining)
	var told []string
	e.Eventually(func(ctx context.Context) (err error) { // just after it began a new run, a worker deployment may not be listed
		if told, err = e.NS.SyncDrained(ctx); err == nil && len(told) == 0 {
			err = errors.New("no version was found that the server missed")
		}
		return err
	})
	require.Equal(t, []string{deployment + ":v1"}, told)
	drainage(rollout.Drained)
}

// A version that somebody created through the API is Created until a worker of it polls.
func TestCreatedThroughTheAPI(t *testing.T) {
	e := newEnv(t)
	_, err := e.Service.CreateWorkerDeployment(t.Context(), &workflowservice.CreateWorkerDeploymentRequest{Namespace: e.NS.Name(), DeploymentName: deployment, RequestId: "a"})
	require.NoError(t, err)
	_, err = e.Service.CreateWorkerDeploymentVersion(t.Context(), &workflowservice.CreateWorkerDeploymentVersionRequest{Namespace: e.NS.Name(), RequestId: "b",
		DeploymentVersion: &deploymentpb.WorkerDeploymentVersion{DeploymentName: deployment, BuildId: "v1"}})
	require.NoError(t, err)
	created := func() bool {
		o := e.observe(rollout.Ask{})
		return o.Version("v1") != nil && o.Version("v1").Created
	}
	require.True(t, created())
	e.Start("app", "v1") // until its workers are registered
	require.False(t, created())
}

func TestRampsAreReadAsTheyWereSet(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.raise(current("v1"))
	for _, c := range []struct {
		step rollout.RoutingStep
		want rollout.RoutingConfig
	}{
		{ramp("v2", 0), rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2"}},
		{ramp("v2", 33.3), rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 33.3}},
		{ramp("", 20), rollout.RoutingConfig{Current: "v1", HasRamp: true, Percentage: 20}},
		{clearRamp, rollout.RoutingConfig{Current: "v1"}},
		{current(""), rollout.RoutingConfig{}},
	} {
		e.raise(c.step)
		is := e.routing()
		require.True(t, c.want.SameTraffic(is), "%+v leads to %+v", c.step, is)
	}
}

func TestListChangesWithRoutingOnly(t *testing.T) {
	e := newEnv(t)
	got, err := e.pool.List(e.Ctx, e.connection(), e.NS.Name())
	require.NoError(t, err)
	require.Empty(t, got.Routing)
	e.Start("app", "v1")
	e.raise(current("v1"))
	want := e.routing()
	// The server lists nothing of a worker deployment whose workflow has just begun a new run.
	var list, again *rollout.Listing
	e.Eventually(func(ctx context.Context) error {
		if list, err = e.pool.List(ctx, e.connection(), e.NS.Name()); err != nil {
			return err
		}
		if diff := cmp.Diff(map[string]rollout.RoutingConfig{deployment: want}, list.Routing); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		if again, err = e.pool.List(ctx, e.connection(), e.NS.Name()); err != nil {
			return err
		}
		if list != again {
			return errors.New("nobody moved anything, and the listing is another one")
		}
		return nil
	})
	e.Start("app", "v2")
	e.raise(ramp("v2", 10))
	e.raise(clearRamp)
	want = e.routing()
	e.Eventually(func(ctx context.Context) error {
		again, err = e.pool.List(ctx, e.connection(), e.NS.Name())
		if err != nil || again.Routing[deployment].Same(want) {
			return err
		}
		return errors.New("not listed yet")
	})
	require.NotSame(t, list, again, "a ramp was there, and went")
	require.True(t, list.Routing[deployment].SameTraffic(again.Routing[deployment]))
	e.NS.Inject(temporalenv.Fault{Method: "ListWorkerDeployments", Point: temporalenv.BeforeForwarding, Times: 1})
	_, err = e.pool.List(e.Ctx, e.connection(), e.NS.Name())
	require.ErrorContains(t, err, "injected fault")
}

func TestPollersByVersionAndQueue(t *testing.T) {
	e := newEnv(t)
	e.Start("app-both", "v1")
	e.Start("app", "v2")
	pollers := rollout.Pollers{Known: true, Count: 1}
	queueOf := func(name string, kind rollout.QueueType) rollout.TaskQueue {
		return rollout.TaskQueue{Name: name, Type: kind, Pollers: pollers, Unversioned: rollout.No}
	}
	e.Eventually(func(context.Context) error {
		obs := e.mustObserve(rollout.Ask{Queues: []string{"v1", "v2", "unheard"}})
		for build, want := range map[string][]rollout.TaskQueue{
			"v1": {queueOf(queue, rollout.QueueActivity), queueOf(queue, rollout.QueueWorkflow), queueOf(queue2, rollout.QueueActivity), queueOf(queue2, rollout.QueueWorkflow)},
			"v2": {queueOf(queue, rollout.QueueActivity), queueOf(queue, rollout.QueueWorkflow)},
		} {
			got := obs.Version(build).Queues
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(rollout.Pollers{}, "LastAccess"), cmpopts.IgnoreFields(rollout.TaskQueue{}, "Backlog")); diff != "" {
				return fmt.Errorf("%s", diff)
			}
			for _, q := range got {
				if !q.Pollers.Fresh(time.Now(), 10*time.Second) {
					return fmt.Errorf("poller is not fresh: %+v", q)
				}
			}
		}
		return nil
	})
	asked := e.mustObserve(rollout.Ask{Queues: []string{"v1"}})
	require.Nil(t, asked.Version("v2").Queues, "not asked for")

	e.Stop("v2")
	e.Eventually(func(context.Context) error {
		for _, q := range e.queues("v2") {
			if diff := cmp.Diff(rollout.Pollers{Known: true}, q.Pollers); diff != "" {
				return fmt.Errorf("%s", diff)
			}
		}
		return nil
	})
}

// With a clock that is behind, every poll is in the future, however old it is.
func TestPollersByAClockThatIsBehind(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.pool = e.newPool(configAt(func() time.Time { return time.Now().Add(-time.Minute) }))
	e.Eventually(func(context.Context) error {
		for _, q := range e.queues("v1") {
			if q.Pollers.Known || !strings.Contains(q.Pollers.Reason, "ahead of ours") {
				return fmt.Errorf("%+v", q.Pollers)
			}
		}
		return nil
	})
	require.Equal(t, 1, strings.Count(e.log.String(), "clock is ahead of ours"))
}

func TestUnversionedAndOtherPollers(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	plain := worker.New(e.Client, queue, worker.Options{DisableWorkflowWorker: true})
	plain.RegisterActivity(func() error { return nil })
	require.NoError(t, plain.Start())
	other := worker.New(e.Client, queue, worker.Options{DisableWorkflowWorker: true, DeploymentOptions: worker.DeploymentOptions{
		UseVersioning: true, Version: worker.WorkerDeploymentVersion{DeploymentName: "shop/other", BuildID: "x"},
	}})
	other.RegisterActivity(func() error { return nil })
	require.NoError(t, other.Start())
	e.Eventually(func(context.Context) error {
		want := []rollout.TaskQueue{
			{
				Name: queue, Type: rollout.QueueActivity, Pollers: rollout.Pollers{Known: true, Count: 1},
				Unversioned: rollout.Yes, OtherDeployments: []string{"shop/other"},
			},
			{Name: queue, Type: rollout.QueueWorkflow, Pollers: rollout.Pollers{Known: true, Count: 1}, Unversioned: rollout.No},
		}
		if diff := cmp.Diff(want, e.queues("v1"), cmpopts.IgnoreFields(rollout.Pollers{}, "LastAccess"), cmpopts.IgnoreFields(rollout.TaskQueue{}, "Backlog")); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
	plain.Stop()
	other.Stop()
}

// remembers is the real server's time for which an answer of the enhanced mode is given again.
func remembers() temporalenv.Setting {
	return temporalenv.Set(dynamicconfig.TaskQueueInfoByBuildIdTTL, 5*time.Second)
}

// The server remembers answers of the enhanced mode without regard to what was asked. Its answer to somebody's question
// for statistics alone may not hide our pollers, nor those of others.
func TestPollersBehindSomebodysStatistics(t *testing.T) {
	e := newEnv(t, remembers())
	e.Start("app", "v1")
	plain := worker.New(e.Client, queue, worker.Options{DisableWorkflowWorker: true})
	plain.RegisterActivity(func() error { return nil })
	require.NoError(t, plain.Start())
	defer plain.Stop()
	e.Eventually(func(context.Context) error { // both poll, and what we asked for is forgotten
		for _, q := range e.queues("v1") {
			if q.Pollers.Count != 1 || (q.Unversioned == rollout.Yes) != (q.Type == rollout.QueueActivity) {
				return fmt.Errorf("%+v", q)
			}
		}
		return nil
	})
	e.Eventually(func(ctx context.Context) error {
		resp, err := e.Service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: e.NS.Name(), TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
			ApiMode: enumspb.DESCRIBE_TASK_QUEUE_MODE_ENHANCED, ReportStats: true,
			Versions: &taskqueuepb.TaskQueueVersionSelection{BuildIds: []string{deployment + ":v1"}, Unversioned: true},
		})
		if err != nil {
			return err
		}
		for _, info := range resp.GetVersionsInfo() {
			for _, kind := range info.GetTypesInfo() {
				if len(kind.GetPollers()) > 0 {
					return fmt.Errorf("an answer with pollers is still remembered")
				}
			}
		}
		return nil
	})
	for _, q := range e.queues("v1") {
		require.Equal(t, 1, q.Pollers.Count, "%+v", q)
		require.Equal(t, q.Type == rollout.QueueActivity, q.Unversioned == rollout.Yes, "%+v", q)
	}
}

func TestWhatCannotBeReadIsNotKnown(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.raise(current("v1"))
	ask := rollout.Ask{Queues: []string{"v1"}, OpenPinned: []string{"v1", "gone"}, Closed: closedSince(time.Now(), "v1"), Stuck: &rollout.StuckAsk{Candidate: "v1", Since: time.Now()}, Gate: &rollout.GateSpec{BuildID: "v1"}}

	broken := func(method string) rollout.Observation {
		defer e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.BeforeForwarding})()
		return e.observe(ask)
	}
	obs := broken("DescribeWorkerDeployment")
	require.Equal(t, rollout.TemporalStateFetchFailed, obs.Problem.Reason)
	require.Contains(t, obs.Problem.Message, "Temporal does not answer")
	require.Equal(t, rollout.Answer(""), obs.Exists)

	obs = broken("DescribeWorkerDeploymentVersion")
	require.Nil(t, obs.Problem)
	require.Equal(t, rollout.Answer(""), obs.Version("v1").QueuesKnown)
	require.Nil(t, obs.Version("v1").Queues)
	require.False(t, obs.Stuck.Unattributed.Known)
	require.False(t, obs.Stuck.Problems.Known)
	require.NotEmpty(t, obs.Stuck.Problems.Reason)
	require.Nil(t, obs.Gates)
	require.Equal(t, rollout.Counted(0), obs.Version("v1").OpenPinned)

	obs = broken("DescribeTaskQueue")
	require.Equal(t, rollout.Yes, obs.Version("v1").QueuesKnown)
	require.Len(t, obs.Version("v1").Queues, 2)
	for _, q := range obs.Version("v1").Queues {
		require.False(t, q.Pollers.Known)
		require.Contains(t, q.Pollers.Reason, "injected fault")
		require.Equal(t, rollout.Answer(""), q.Unversioned)
	}
	// The second of the two ways to ask.
	var forwarded atomic.Int32
	remove := e.NS.BeforeForward(func(method string, _ proto.Message) {
		if method == "DescribeTaskQueue" {
			if forwarded.Add(1) == 2 {
				e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.BeforeForwarding, Times: 1})
			}
		}
	})
	obs = e.observe(ask)
	remove()
	for _, q := range obs.Version("v1").Queues {
		require.False(t, q.Pollers.Known)
	}

	obs = broken("CountWorkflowExecutions")
	for _, c := range []rollout.Count{obs.Version("v1").OpenPinned, obs.Unlisted["gone"], obs.Stuck.Problems} {
		require.False(t, c.Known)
		require.Contains(t, c.Reason, "injected fault")
	}
	require.False(t, obs.Version("v1").Closed.Known)
	require.Contains(t, obs.Version("v1").Closed.Reason, "injected fault")
	require.Equal(t, rollout.Counted(0), obs.Stuck.Unattributed, "nothing can have waited for 30 s yet")

	obs = broken("DescribeWorkflowExecution")
	require.Len(t, obs.Gates, 1)
	require.Equal(t, rollout.GateUnread, obs.Gates[0].State)
	require.Contains(t, obs.Gates[0].Reason, "injected fault")

	stopped, cancel := context.WithCancel(e.Ctx)
	cancel()
	ask.Deployment, ask.TemporalNamespace = name, e.NS.Name()
	obs = e.pool.Observe(stopped, e.connection(), ask)
	require.Contains(t, obs.Problem.Message, context.Canceled.Error())
}

// TestUnansweredRead checks that a describe without an answer is made once more, well before a cycle is over.
func TestUnansweredRead(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	answer := make(chan struct{})
	t.Cleanup(func() { close(answer) })
	e.hookOnce("DescribeWorkerDeployment", func() { <-answer })
	before := e.NS.Counts()["DescribeWorkerDeployment"]
	e.mustObserve(rollout.Ask{})
	require.Equal(t, 1, e.NS.Counts()["DescribeWorkerDeployment"]-before, "the first is still under way")
}

// A version that is listed and whose own record is not there is not known to have no queues.
func TestListedVersionWithoutARecord(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	defer e.NS.Inject(temporalenv.Fault{Method: "DescribeWorkerDeploymentVersion", Point: temporalenv.BeforeForwarding, Code: codes.NotFound})()
	obs := e.mustObserve(rollout.Ask{Queues: []string{"v1"}})
	require.NotNil(t, obs.Version("v1"))
	require.Equal(t, rollout.Answer(""), obs.Version("v1").QueuesKnown)
}

func TestOpenPinned(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.WorkflowPauseEnabled, true))
	e.Start("app", "v1", "v2")
	e.raise(current("v1"))
	open := func() map[string]rollout.Count {
		obs := e.mustObserve(rollout.Ask{OpenPinned: []string{"v1", "v2", "gone"}})
		require.Nil(t, obs.Version("gone"))
		return map[string]rollout.Count{
			"v1": obs.Version("v1").OpenPinned, "v2": obs.Version("v2").OpenPinned, "gone": obs.Unlisted["gone"],
		}
	}
	become := func(v1, v2, gone int64) {
		t.Helper()
		e.Eventually(func(context.Context) error {
			want := map[string]rollout.Count{"v1": rollout.Counted(v1), "v2": rollout.Counted(v2), "gone": rollout.Counted(gone)}
			if diff := cmp.Diff(want, open()); diff != "" {
				return fmt.Errorf("%s", diff)
			}
			return nil
		})
	}
	become(0, 0, 0)
	first := e.workflow(temporalenv.Slow, "v1")
	paused := e.workflow(temporalenv.Slow, "v1")
	e.workflow(temporalenv.Slow, "v2")
	e.workflow(temporalenv.Follow, "")
	e.workflow(temporalenv.Checkout, "v1")
	become(2, 1, 0)

	// A paused workflow is open, and no drainage sees it.
	_, err := e.Service.PauseWorkflowExecution(e.Ctx, &workflowservice.PauseWorkflowExecutionRequest{
		Namespace: e.NS.Name(), WorkflowId: paused, Identity: "someone", Reason: "test",
	})
	require.NoError(t, err)
	e.AwaitCount("ExecutionStatus = 'Paused'", 1)
	become(2, 1, 0)
	require.NoError(t, e.Client.TerminateWorkflow(e.Ctx, first, "", "test"))
	become(1, 1, 0)
}

func TestClosedWorkflowsAreCountedSinceTrafficMoved(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.Start("app-fails", "v2")
	obs := e.mustObserve(rollout.Ask{Closed: closedSince(time.Time{}, "v1")})
	require.False(t, obs.Version("v1").Closed.Known, "traffic was never moved")

	e.raise(current("v1"))
	e.workflow(temporalenv.Checkout, "v1")
	e.AwaitCount("ExecutionStatus = 'Completed'", 1)
	e.raise(ramp("v2", 10))
	e.workflow(temporalenv.Checkout, "v1")
	e.workflow(temporalenv.Checkout, "v2")
	e.workflow(temporalenv.Checkout, "v2")
	require.NoError(t, e.Client.TerminateWorkflow(e.Ctx, e.workflow(temporalenv.Slow, "v1"), "", "test"))
	from := e.mustObserve(rollout.Ask{}).Routing.PercentageChangedAt
	e.Eventually(func(context.Context) error {
		obs := e.mustObserve(rollout.Ask{Closed: closedSince(from, "v1", "v2", "unheard")})
		got := map[string]rollout.ClosedCounts{"v1": obs.Version("v1").Closed, "v2": obs.Version("v2").Closed}
		want := map[string]rollout.ClosedCounts{
			// The one from before the ramp is not in the cohort.
			"v1": {Known: true, Since: from, Completed: 1, Terminated: 1},
			"v2": {Known: true, Since: from, Failed: 2},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
}

func closedSince(since time.Time, builds ...string) []rollout.ClosedAsk {
	var out []rollout.ClosedAsk
	for _, b := range builds {
		out = append(out, rollout.ClosedAsk{BuildID: b, Since: since})
	}
	return out
}

func TestStuckWorkflowsAreCounted(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.NumConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute, 2))
	e.Start("app", "v1")
	e.raise(current("v1"))
	// No such workflow in the image: its first workflow task fails for ever, and it belongs to no version.
	unheard := e.workflow("Unheard", "")
	e.workflow(temporalenv.Slow, "")
	moved := e.mustObserve(rollout.Ask{}).Routing.CurrentChangedAt
	later := time.Now().Add(time.Minute)
	e.pool = e.newPool(configAt(func() time.Time { return later }))
	e.Eventually(func(context.Context) error {
		obs := e.observe(rollout.Ask{Queues: []string{"v1"}, Stuck: &rollout.StuckAsk{Candidate: "v1", Since: moved}})
		if obs.Problem != nil {
			return errors.New(obs.Problem.Message) // asked too often
		}
		on := rollout.Sample{Candidate: 1, Workflow: unheard}
		want := rollout.Stuck{Since: moved, Unattributed: rollout.Counted(1), UnattributedSample: on, Problems: rollout.Counted(1), ProblemsSample: on}
		if diff := cmp.Diff(want, obs.Stuck); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
	// Before a ramp only reported problems are counted, and to another candidate they are not due.
	obs := e.mustObserve(rollout.Ask{Queues: []string{"v1"}, Stuck: &rollout.StuckAsk{Candidate: "v2"}})
	require.Equal(t, rollout.Stuck{Unattributed: rollout.Counted(0), Problems: rollout.Counted(1), ProblemsSample: rollout.Sample{Others: 1}}, obs.Stuck)
}

// An auto-upgrading workflow that cannot be replayed on the candidate is counted under the version that it comes from.
// The sample says whose fault it is. One that begins later is not stuck.
func TestStuckOnTheCandidate(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.NumConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute, 2))
	e.Start("app", "v1")
	e.raise(current("v1"))
	follows := e.workflow(temporalenv.Follow, "")
	e.Eventually(func(ctx context.Context) error {
		d, err := e.Client.DescribeWorkflowExecution(ctx, follows, "")
		if err == nil && d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId() != "v1" {
			err = errors.New("not on v1 yet")
		}
		return err
	})
	e.Start("app-fails", "v2") // without that workflow: it cannot be replayed
	e.raise(ramp("v2", 100))
	_, err := e.Client.ExecuteWorkflow(e.Ctx, client.StartWorkflowOptions{ID: "later", TaskQueue: queue, StartDelay: time.Hour}, temporalenv.Slow)
	require.NoError(t, err)
	moved := e.mustObserve(rollout.Ask{}).Routing.MovedAt()
	later := time.Now().Add(time.Minute)
	e.pool = e.newPool(configAt(func() time.Time { return later }))
	e.Eventually(func(ctx context.Context) error {
		// Again: the routing takes a moment to reach the queue, and a task before that is v1's.
		if err := e.Client.SignalWorkflow(ctx, follows, "", "wake", nil); err != nil {
			return err
		}
		obs := e.observe(rollout.Ask{Queues: []string{"v1", "v2"}, Stuck: &rollout.StuckAsk{Candidate: "v2", Since: moved}})
		if obs.Problem != nil {
			return errors.New(obs.Problem.Message) // asked too often
		}
		want := rollout.Stuck{Since: moved, Unattributed: rollout.Counted(0), Problems: rollout.Counted(1),
			ProblemsSample: rollout.Sample{Candidate: 1, Workflow: follows}}
		if diff := cmp.Diff(want, obs.Stuck); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
}

// Whatever a task queue is called, the count is about that queue, or it is not known.
func TestOddQueueNames(t *testing.T) {
	e := newEnv(t)
	e.Start("app-odd", "v1")
	e.Start("app-ask", "v2")
	e.raise(current("v1"))
	_, err := e.Service.StartWorkflowExecution(e.Ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace: e.NS.Name(), WorkflowId: "odd", WorkflowType: &commonpb.WorkflowType{Name: "Unheard"}, RequestId: "odd",
		TaskQueue: &taskqueuepb.TaskQueue{Name: e.queues("v1")[0].Name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
	})
	require.NoError(t, err)
	moved := e.mustObserve(rollout.Ask{}).Routing.MovedAt()
	later := time.Now().Add(time.Minute)
	e.pool = e.newPool(configAt(func() time.Time { return later }))
	e.Eventually(func(context.Context) error {
		if got := e.mustObserve(rollout.Ask{Queues: []string{"v1"}, Stuck: &rollout.StuckAsk{Candidate: "v1", Since: moved}}).Stuck.Unattributed; got != rollout.Counted(1) {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	obs := e.mustObserve(rollout.Ask{Queues: []string{"v1", "v2"}, Stuck: &rollout.StuckAsk{Candidate: "v1", Since: moved}})
	require.False(t, obs.Stuck.Unattributed.Known)
	require.Contains(t, obs.Stuck.Unattributed.Reason, "cannot ask for")
}

func TestOneDescribeForAnIdleDeployment(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	before := e.NS.Counts()
	e.mustObserve(rollout.Ask{})
	counts := e.NS.Counts()
	require.Equal(t, 1, counts["DescribeWorkerDeployment"]-before["DescribeWorkerDeployment"])
	for _, method := range []string{"DescribeWorkerDeploymentVersion", "DescribeTaskQueue", "CountWorkflowExecutions", "DescribeWorkflowExecution"} {
		require.Equal(t, before[method], counts[method], method)
	}
}

func TestBacklogOfAVersionIsRead(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.raise(current("v1"))
	backlog := func() rollout.Backlog {
		for _, q := range e.queues("v1") {
			if q.Type == rollout.QueueWorkflow {
				return q.Backlog
			}
		}
		return rollout.Backlog{}
	}
	require.True(t, backlog().Known)
	e.Stop("v1")
	for range 3 {
		e.workflow(temporalenv.Slow, "")
	}
	e.Eventually(func(context.Context) error {
		if b := backlog(); !b.Known || b.Count != 3 || b.Age <= 0 {
			return fmt.Errorf("%+v", b)
		}
		return nil
	})
}

// Workers that never register as the version are found where they are: under another deployment's name, or without
// versioning.
func TestWorkersThatAreMissing(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	missing := func() (out rollout.Missing) {
		pool := e.newPool(temporal.Config{}) // which keeps no answer of before
		obs := pool.Observe(e.Ctx, e.connection(), rollout.Ask{Deployment: name, TemporalNamespace: e.NS.Name(),
			Missing: &rollout.MissingAsk{BuildID: "v2", Workers: []string{"checkout-v2", "checkout-v2-mail"}}})
		if obs.Missing != nil {
			out = *obs.Missing
		}
		return out
	}
	require.Equal(t, rollout.Missing{}, missing())

	c, err := client.Dial(client.Options{HostPort: e.NS.Server().Address(), Namespace: e.NS.Name(), WorkerHeartbeatInterval: time.Second})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	begin := func(queue string, o worker.Options) {
		w := worker.New(c, queue, o)
		temporalenv.DefaultImage(queue).Register(w)
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	begin("mails", worker.Options{Identity: "1@checkout-v2-mail-7d9f-x2x4k"})
	begin("elsewhere", worker.Options{Identity: "1@cart-v2-7d9f-x2x4k"})
	begin(queue, worker.Options{Identity: "1@checkout-v2-7d9f-x2x4k", DeploymentOptions: worker.DeploymentOptions{UseVersioning: true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: "shop/chekcout", BuildID: "v2"},
		DefaultVersioningBehavior: workflow.VersioningBehaviorPinned}})
	// The server lists what its own workflows noted, one note after the other: a list may lack what one before had.
	want := rollout.Missing{Deployments: []string{"shop/chekcout"}, Unversioned: []string{"mails"}}
	e.Eventually(func(context.Context) error {
		if diff := cmp.Diff(want, missing()); diff != "" {
			return fmt.Errorf("not all is known yet: %s", diff)
		}
		return nil
	})
}
