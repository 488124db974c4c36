package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// hookOnce runs do before the next call of a method is forwarded.
func (e *env) hookOnce(method string, do func()) {
	e.T.Helper()
	var done atomic.Bool
	remove := e.NS.BeforeForward(func(m string, _ proto.Message) {
		if m == method && done.CompareAndSwap(false, true) {
			do()
		}
	})
	e.T.Cleanup(remove)
}

func (e *env) requireStale(err error, actual rollout.RoutingConfig) {
	e.T.Helper()
	var stale *temporal.StaleError
	require.ErrorAs(e.T, err, &stale)
	require.True(e.T, actual.Same(stale.Actual), "%+v", stale.Actual)
}

func TestRaiseChainsTokens(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2", "v3")
	e.raise(current("v1"), ramp("v3", 5))
	require.True(t, e.routing().SameTraffic(rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v3", Percentage: 5}))
	// The ramp to a third version goes first, without being asked for.
	e.raise(current("v2"))
	require.True(t, e.routing().SameTraffic(rollout.RoutingConfig{Current: "v2"}))
	require.Equal(t, []string{"current v1", "ramp v3 5", "ramp none", "current v2"}, e.NS.RoutingCalls(deployment))
	require.Equal(t, []string{
		"SetWorkerDeploymentManager", "SetWorkerDeploymentCurrentVersion", "SetWorkerDeploymentRampingVersion",
		"SetWorkerDeploymentRampingVersion", "SetWorkerDeploymentCurrentVersion",
	}, e.methods())
	require.Equal(t, []string{
		"Before SetManager", "After SetManager", "Before SetCurrent", "After SetCurrent", "Before SetRamp", "After SetRamp",
		"Before ClearRamp", "After ClearRamp", "Before SetCurrent", "After SetCurrent",
	}, e.sites.all())

	// Every call has a token, and within a chain it is the answer's before.
	var last []byte
	for i, c := range e.NS.Calls() {
		req := c.Request.(interface {
			GetConflictToken() []byte
			GetIdentity() string
		})
		require.NotEmpty(t, req.GetConflictToken())
		require.Equal(t, bot, req.GetIdentity())
		if last != nil && i != 3 { // the second chain begins with a token that was read
			require.Equal(t, last, req.GetConflictToken())
		}
		last = c.Response.(interface{ GetConflictToken() []byte }).GetConflictToken()
		if s, ok := c.Request.(interface{ GetAllowNoPollers() bool }); ok {
			require.False(t, s.GetAllowNoPollers())
		}
		if s, ok := c.Request.(interface{ GetIgnoreMissingTaskQueues() bool }); ok {
			require.False(t, s.GetIgnoreMissingTaskQueues())
		}
	}
}

func TestRaiseOnAStaleBasis(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.raise(current("v1"))
	for name, move := range map[string]func(){
		"another ramp":       func() { e.someone(ramp("v2", 40)) },
		"there and back":     func() { e.someone(ramp("v2", 50)); e.someone(ramp("v2", 40)) },
		"what was asked for": func() { e.someone(ramp("v2", 60)) },
	} {
		call := e.call(ramp("v2", 60))
		move()
		before := e.methods()
		err := e.pool.Raise(e.Ctx, e.subject(), call)
		e.requireStale(err, e.routing())
		require.Equal(t, before, e.methods(), name)
	}
	// Someone moves it after it was read: the token stops the call.
	call := e.call(ramp("v2", 80))
	e.hookOnce("SetWorkerDeploymentRampingVersion", func() { e.someone(current("v2")) })
	err := e.pool.Raise(e.Ctx, e.subject(), call)
	e.requireStale(err, e.routing())
	require.Equal(t, "v2", e.routing().Current)
}

func TestRaiseWithAnotherManager(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	refused := func(call rollout.RoutingCall, manager string) {
		t.Helper()
		before := e.methods()
		err := e.pool.Raise(e.Ctx, e.subject(), call)
		var owner *temporal.OwnerError
		require.ErrorAs(t, err, &owner)
		require.Equal(t, temporal.OwnerError{Manager: manager, Identity: bot}, *owner)
		require.Equal(t, before, e.methods())
	}
	unclaimed := e.call(current("v1"))
	e.manager("ops")
	refused(unclaimed, "ops")
	refused(e.call(current("v1")), "ops")
	held := e.call(current("v1"))
	e.manager("")
	refused(held, "")

	// Someone takes it between the read and the claim, and between the claim and the call.
	unclaimed = e.call(current("v1"))
	e.hookOnce("SetWorkerDeploymentManager", func() { e.manager("ops") })
	refused(unclaimed, "ops")
	e.manager(bot)
	held = e.call(current("v1"))
	e.hookOnce("SetWorkerDeploymentCurrentVersion", func() { e.manager("ops") })
	refused(held, "ops")
	require.Equal(t, "", e.routing().Current)

	// Claimed meanwhile by ourselves: nothing is in the way.
	e.manager("")
	unclaimed = e.call(current("v1"))
	e.manager(bot)
	err := e.pool.Raise(e.Ctx, e.subject(), unclaimed)
	require.NoError(t, err)
}

func TestLostAnswersCountAsMade(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	for method, code := range map[string]codes.Code{
		"SetWorkerDeploymentManager": codes.Unavailable, "SetWorkerDeploymentCurrentVersion": codes.DeadlineExceeded,
		"SetWorkerDeploymentRampingVersion": codes.Unavailable,
	} {
		e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.AfterForwarding, Code: code, Times: 1})
	}
	e.raise(current("v1"), ramp("v2", 10))
	require.True(t, e.routing().SameTraffic(rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 10}))
	e.raise(current("v2"))
	require.True(t, e.routing().SameTraffic(rollout.RoutingConfig{Current: "v2"}))
	require.Equal(t, []string{"current v1", "ramp v2 10", "current v2"}, e.NS.RoutingCalls(deployment))
}

func TestUnsentCallsAreTriedOnceMore(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	method := "SetWorkerDeploymentCurrentVersion"
	e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.BeforeForwarding, Times: 1})
	e.raise(current("v1"))

	remove := e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.BeforeForwarding})
	before := e.NS.Counts()[method]
	err := e.pool.Raise(e.Ctx, e.subject(), e.call(current("")))
	require.ErrorContains(t, err, "injected fault")
	require.Equal(t, 2, e.NS.Counts()[method]-before)
	remove()
	require.Equal(t, "v1", e.routing().Current)

	// Refusals are no matter of transport.
	e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.BeforeForwarding, Code: codes.FailedPrecondition})
	before = e.NS.Counts()[method]
	err = e.pool.Raise(e.Ctx, e.subject(), e.call(current("")))
	var refused *temporal.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, temporal.SiteSetCurrent, refused.Site)
	require.Equal(t, 1, e.NS.Counts()[method]-before)
}

// A server that is too busy for a worker deployment is waited for. Whether it did what it says it had no time for shows
// in the routing.
func TestBusyServer(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	method := "SetWorkerDeploymentCurrentVersion"
	busy := func(point temporalenv.FaultPoint, times int) func() {
		return e.NS.Inject(temporalenv.Fault{Method: method, Point: point, Code: codes.ResourceExhausted, Times: times})
	}
	busy(temporalenv.BeforeForwarding, 2)
	e.raise(current("v1"))
	require.Equal(t, 3, e.NS.Counts()[method])
	busy(temporalenv.AfterForwarding, 1)
	e.raise(current("v2"))
	require.Equal(t, 4, e.NS.Counts()[method], "what was made is not made again")

	remove := busy(temporalenv.BeforeForwarding, 0)
	err := e.pool.Raise(e.Ctx, e.subject(), e.call(current("v1")))
	require.ErrorIs(t, err, rollout.ErrBusy)
	require.ErrorContains(t, err, "SetCurrent")
	require.Equal(t, 8, e.NS.Counts()[method])
	err = e.pool.Lower(e.Ctx, e.subject(), e.call(current("v1")))
	require.ErrorIs(t, err, rollout.ErrBusy)
	remove()
	require.Equal(t, "v2", e.routing().Current)
}

// A worker deployment whose workflow is busy with a change refuses to be described, for a moment.
func TestBusyRead(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	method := "DescribeWorkerDeployment"
	busy := func(times int) func() {
		return e.NS.Inject(temporalenv.Fault{Method: method, Point: temporalenv.BeforeForwarding, Code: codes.ResourceExhausted, Times: times})
	}
	before := e.NS.Counts()[method]
	busy(2)
	require.Nil(t, e.observe(rollout.Ask{}).Problem)
	require.Equal(t, 3, e.NS.Counts()[method]-before)

	busy(0)
	before = e.NS.Counts()[method]
	problem := e.observe(rollout.Ask{}).Problem
	require.NotNil(t, problem)
	require.True(t, problem.Busy)
	require.Equal(t, 3, e.NS.Counts()[method]-before)
}

func TestOutcomeNotKnown(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	call := e.call(current("v1"))
	e.NS.Inject(temporalenv.Fault{Method: "SetWorkerDeploymentCurrentVersion", Point: temporalenv.AfterForwarding, Times: 1})
	e.hookOnce("SetWorkerDeploymentCurrentVersion", func() {
		e.NS.Inject(temporalenv.Fault{Method: "DescribeWorkerDeployment", Point: temporalenv.BeforeForwarding, Times: 1})
	})
	err := e.pool.Raise(e.Ctx, e.subject(), call)
	require.ErrorContains(t, err, "not known what became of it")
	require.Equal(t, "v1", e.routing().Current)
}

func TestRaiseOfAnUnknownVersion(t *testing.T) {
	e := newEnv(t)
	err := e.pool.Raise(e.Ctx, e.subject(), rollout.RoutingCall{Identity: bot, Claim: rollout.ClaimNeeded, Steps: []rollout.RoutingStep{current("v1")}})
	require.Error(t, err, "no such deployment")
	e.Start("app", "v1")
	err = e.pool.Raise(e.Ctx, e.subject(), e.call(current("v9")))
	require.Error(t, err)
	require.Equal(t, "", e.routing().Current)
	err = e.pool.Raise(e.Ctx, e.subject(), rollout.RoutingCall{})
	require.Error(t, err, "no call at all")
}

func TestLowerMarksFirst(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.raise(current("v1"), ramp("v2", 10))
	call := e.call(clearRamp)
	call.TurnedBack = map[string]string{"v2": "canary.failure_rate: 12% failed"}
	err := e.pool.Lower(e.Ctx, e.subject(), call)
	require.NoError(t, err)
	require.True(t, e.routing().SameTraffic(rollout.RoutingConfig{Current: "v1"}))
	require.Equal(t, []string{
		"SetWorkerDeploymentManager", "SetWorkerDeploymentCurrentVersion", "SetWorkerDeploymentRampingVersion",
		"UpdateWorkerDeploymentVersionMetadata", "SetWorkerDeploymentRampingVersion",
	}, e.methods())
	mark := func() string {
		obs := e.mustObserve(rollout.Ask{Queues: []string{"v1", "v2"}})
		require.Equal(t, "", obs.Version("v1").TurnedBack)
		return obs.Version("v2").TurnedBack
	}
	require.Equal(t, "canary.failure_rate: 12% failed", mark())
}

// TestLowerDoesNotWaitForMarks checks that a mark that cannot be left, or that gets no answer, holds nothing up.
func TestLowerDoesNotWaitForMarks(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.raise(current("v1"), ramp("v2", 10))
	call := e.call(clearRamp)
	call.TurnedBack = map[string]string{"gone": "x", "v2": "x"}
	answer := make(chan struct{})
	t.Cleanup(func() { close(answer) })
	e.hookOnce("UpdateWorkerDeploymentVersionMetadata", func() { <-answer })
	start := time.Now()
	err := e.pool.Lower(e.Ctx, e.subject(), call)
	require.NoError(t, err)
	require.False(t, e.routing().HasRamp)
	require.Less(t, time.Since(start), 8*time.Second)
	require.Contains(t, e.log.String(), "mark not left")
}

func TestLowerWhatWasMoved(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2", "v3")
	e.raise(current("v1"), ramp("v2", 10))

	// Ramped further before the call, and once more while it is on its way.
	call := e.call(clearRamp)
	e.someone(ramp("v2", 60))
	e.hookOnce("SetWorkerDeploymentRampingVersion", func() { e.someone(ramp("v2", 90)) })
	err := e.pool.Lower(e.Ctx, e.subject(), call)
	require.NoError(t, err)
	require.True(t, e.routing().SameTraffic(rollout.RoutingConfig{Current: "v1"}))

	// Done by someone: nothing to do.
	before := e.NS.RoutingCalls(deployment)
	err = e.pool.Lower(e.Ctx, e.subject(), call)
	require.NoError(t, err)
	require.Equal(t, before, e.NS.RoutingCalls(deployment))

	// Another version ramps now: that is someone's own decision.
	e.someone(ramp("v3", 10))
	err = e.pool.Lower(e.Ctx, e.subject(), call)
	e.requireStale(err, e.routing())
	require.Equal(t, "v3", e.routing().Ramping)
	require.Equal(t, before, e.NS.RoutingCalls(deployment))

	// A foreign manager is not overruled.
	call = e.call(clearRamp)
	e.manager("ops")
	err = e.pool.Lower(e.Ctx, e.subject(), call)
	var owner *temporal.OwnerError
	require.ErrorAs(t, err, &owner)

	// An unclaimed deployment is claimed on the way, and lowered even if that fails.
	e.manager("")
	call = e.call(clearRamp)
	require.Equal(t, rollout.ClaimNeeded, call.Claim)
	e.NS.Inject(temporalenv.Fault{Method: "SetWorkerDeploymentManager", Point: temporalenv.BeforeForwarding})
	err = e.pool.Lower(e.Ctx, e.subject(), call)
	require.NoError(t, err)
	require.False(t, e.routing().HasRamp)
}

// busy puts a task on a queue, so that the server counts it as active.
func (e *env) busy(name string) {
	e.T.Helper()
	_, err := e.Service.StartWorkflowExecution(e.Ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace: e.NS.Name(), WorkflowId: "busy-" + name, RequestId: "busy", WorkflowType: &commonpb.WorkflowType{Name: "Unheard"},
		TaskQueue: &taskqueuepb.TaskQueue{Name: name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
	})
	require.NoError(e.T, err)
	e.Eventually(func(ctx context.Context) error {
		resp, err := e.Service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: e.NS.Name(), TaskQueue: &taskqueuepb.TaskQueue{Name: name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL}, ReportStats: true,
		})
		if err != nil {
			return err
		}
		if resp.GetStats().GetTasksAddRate() == 0 && resp.GetStats().GetApproximateBacklogCount() == 0 {
			return errors.New("the queue is not active")
		}
		return nil
	})
}

// The newer version added a queue that is in use. Giving traffic back would be refused; it is done all the same, and
// the queue is named. A raise in the same place is refused, also right after our own look at the pollers: the server's
// check believes what it remembers of that.
func TestMissingTaskQueues(t *testing.T) {
	e := newEnv(t, remembers())
	e.Start("app", "v1", "v3")
	e.Start("app-both", "v2")
	e.raise(current("v1"))
	e.raise(current("v2"))
	e.busy(queue2)

	call := e.call(ramp("v3", 10))
	require.Len(t, e.queues("v2"), 4)
	err := e.pool.Raise(e.Ctx, e.subject(), call)
	var refused *temporal.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, temporal.SiteSetRamp, refused.Site)
	require.False(t, e.routing().HasRamp)

	require.NoError(t, e.pool.Lower(e.Ctx, e.subject(), e.call(current("v1"))))
	require.Equal(t, "v1", e.routing().Current)
	left := regexp.MustCompile(`task queue left behind.* taskQueue=(\S+) type=(\S+)`).FindAllStringSubmatch(e.log.String(), -1)
	said := map[string]bool{}
	for _, of := range left {
		said[of[1]+" "+of[2]] = true
	}
	require.Equal(t, map[string]bool{queue2 + " " + string(rollout.QueueActivity): true, queue2 + " " + string(rollout.QueueWorkflow): true}, said)
	require.Equal(t, []string{"current v1", "current v2", "current v1"}, e.NS.RoutingCalls(deployment))
}

// A raise may leave behind the task queues that it names, and no other one: the server's flag would ignore those too.
func TestRaiseLeavesBehindWhatItNames(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.Start("app-both", "v2")
	e.raise(current("v2"))
	e.busy(queue2)
	activities, workflows := v1alpha1.RecordedQueue{Name: queue2, Type: v1alpha1.ActivityQueue}, v1alpha1.RecordedQueue{Name: queue2, Type: v1alpha1.WorkflowQueue}

	call := e.call(ramp("v1", 10))
	call.LeavesBehind = []v1alpha1.RecordedQueue{activities}
	err := e.pool.Raise(e.Ctx, e.subject(), call)
	var other *temporal.MissingQueueError
	require.ErrorAs(t, err, &other)
	require.ErrorIs(t, err, rollout.ErrStale)
	require.Equal(t, queue2, other.Queue.Name)
	require.Equal(t, rollout.QueueWorkflow, other.Queue.Type)
	require.False(t, e.routing().HasRamp)

	call.LeavesBehind = []v1alpha1.RecordedQueue{activities, workflows}
	err = e.pool.Raise(e.Ctx, e.subject(), call)
	require.NoError(t, err)
	require.Equal(t, float32(10), e.routing().Percentage)
	promote := e.call(current("v1"))
	promote.LeavesBehind = call.LeavesBehind
	err = e.pool.Raise(e.Ctx, e.subject(), promote)
	require.NoError(t, err)
	require.Equal(t, "v1", e.routing().Current)
}

func TestDeleteVersion(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.raise(current("v1"))
	remove := func(build string) (rollout.Deletion, error) {
		return e.pool.DeleteVersion(e.Ctx, e.subject(), build)
	}
	refused := func(build string) {
		t.Helper()
		got, err := remove(build)
		require.NoError(t, err)
		require.Equal(t, build, got.BuildID)
		require.NotEmpty(t, got.Refused)
		obs := e.mustObserve(rollout.Ask{})
		require.NotNil(t, obs.Version(build))
	}
	accepted := func(build string) {
		t.Helper()
		got, err := remove(build)
		require.NoError(t, err)
		require.Equal(t, rollout.Deletion{BuildID: build}, got)
		obs := e.mustObserve(rollout.Ask{})
		require.Nil(t, obs.Version(build))
	}
	refused("v1") // current
	refused("v2") // pollers
	byOther := e.subject()
	byOther.Identity = "other"
	got, err := e.pool.DeleteVersion(e.Ctx, byOther, "v2")
	require.NoError(t, err)
	require.Contains(t, got.Refused, bot, "the manager is someone else")

	e.NS.Inject(temporalenv.Fault{Method: "DeleteWorkerDeploymentVersion", Point: temporalenv.BeforeForwarding, Times: 1})
	_, err = remove("v2")
	require.ErrorContains(t, err, "injected fault")

	e.Stop("v2")
	e.Eventually(func(context.Context) error {
		for _, q := range e.queues("v2") {
			if q.Pollers.Count > 0 {
				return fmt.Errorf("%+v", q)
			}
		}
		return nil
	})
	e.NS.Inject(temporalenv.Fault{Method: "DeleteWorkerDeploymentVersion", Point: temporalenv.AfterForwarding, Times: 1})
	accepted("v2") // its answer lost
	accepted("v2") // gone already
	accepted("unheard")

	elsewhere := e.subject()
	elsewhere.Deployment.Name = "unheard"
	deletion, err := e.pool.DeleteVersion(e.Ctx, elsewhere, "v1")
	require.NoError(t, err)
	require.Equal(t, rollout.Deletion{BuildID: "v1"}, deletion)
	elsewhere.TemporalNamespace = "nowhere"
	_, err = e.pool.DeleteVersion(e.Ctx, elsewhere, "v1")
	require.Error(t, err, "a missing namespace is no proof")
	for _, c := range e.NS.Calls() {
		if r, ok := c.Request.(*workflowservice.DeleteWorkerDeploymentVersionRequest); ok {
			require.False(t, r.GetSkipDrainage())
		}
	}
}

func TestDrainingVersionIsNotDeleted(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.raise(current("v1"))
	e.workflow(temporalenv.Slow, "v1")
	e.AwaitCount("TemporalWorkflowVersioningBehavior = 'Pinned'", 1)
	e.raise(current("v2"))
	e.Stop("v1")
	e.Eventually(func(context.Context) error {
		for _, q := range e.queues("v1") {
			if q.Pollers.Count > 0 {
				return fmt.Errorf("%+v", q)
			}
		}
		return nil
	})
	got, err := e.pool.DeleteVersion(e.Ctx, e.subject(), "v1")
	require.NoError(t, err)
	require.NotEmpty(t, got.Refused)
}
