package temporalenv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// proxied makes an env whose calls go through the proxy, as Rampart's do.
func proxied(t *testing.T, e *env) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(e.NS.Server().Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	e.Service = workflowservice.NewWorkflowServiceClient(conn)
	return conn
}

// seen is the part of a call that does not change between runs.
type seen struct {
	Method              string
	Forwarded, Accepted bool
	Code                codes.Code
}

func seenIn(calls []temporalenv.Call) []seen {
	var out []seen
	for _, c := range calls {
		out = append(out, seen{c.Method, c.Forwarded, c.Accepted, c.Code})
	}
	return out
}

const (
	setRamp    = "SetWorkerDeploymentRampingVersion"
	setCurrent = "SetWorkerDeploymentCurrentVersion"
	setManager = "SetWorkerDeploymentManager"
)

func TestCallsAreRecordedWithWhatTheServerAnswered(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	proxied(t, e)
	before := time.Now()
	stale := e.describe().GetConflictToken()
	e.mustCurrent("v1")
	require.NoError(t, e.manager(bot, bot))
	e.mustRamp("v2", 0.5)
	_, err := e.ramp(routing{build: "v2", percentage: 50, token: stale})
	requireCode(t, codes.FailedPrecondition, err)
	e.mustRamp("v2", 50)
	e.mustRamp("", 0)
	e.mustRamp("", 10)
	e.mustCurrent("v2")
	_, err = e.Service.UpdateWorkerDeploymentVersionMetadata(e.Ctx, &workflowservice.UpdateWorkerDeploymentVersionMetadataRequest{
		Namespace: e.NS.Name(), DeploymentVersion: temporalenv.Version("v1"),
		UpsertEntries: map[string]*commonpb.Payload{"k": {Data: []byte(`"v"`)}},
	})
	require.NoError(t, err)

	require.Equal(t, []string{
		"current v1", "ramp v2 0.5", "ramp v2 50", "ramp none", "ramp unversioned 10", "current v2",
	}, e.NS.RoutingCalls(deployment))
	require.Empty(t, e.NS.RoutingCalls("shop/other"))
	calls := e.NS.Calls()
	require.Empty(t, cmp.Diff([]seen{
		{setCurrent, true, true, codes.OK},
		{setManager, true, true, codes.OK},
		{setRamp, true, true, codes.OK},
		{setRamp, true, false, codes.FailedPrecondition},
		{setRamp, true, true, codes.OK},
		{setRamp, true, true, codes.OK},
		{setRamp, true, true, codes.OK},
		{setCurrent, true, true, codes.OK},
		{"UpdateWorkerDeploymentVersionMetadata", true, true, codes.OK},
	}, seenIn(calls)))
	for _, c := range calls {
		require.Equal(t, e.NS.Name(), c.Namespace)
		require.True(t, c.Time.After(before))
		require.Positive(t, c.Took)
		require.NotNil(t, c.Request)
		require.Equal(t, c.Accepted, c.Response != nil)
	}
	require.Equal(t, bot, calls[1].Request.(*workflowservice.SetWorkerDeploymentManagerRequest).GetManagerIdentity())
	require.NotEmpty(t, calls[0].Response.(*workflowservice.SetWorkerDeploymentCurrentVersionResponse).GetConflictToken())
	require.Equal(t, 1, e.NS.Counts()["DescribeWorkerDeployment"])
}

func TestFaultsFailBeforeOrAfterTheServerHasDoneIt(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	proxied(t, e)
	e.mustCurrent("v1")
	e.NS.Inject(temporalenv.Fault{Method: setRamp, Point: temporalenv.BeforeForwarding, Times: 1})
	_, err := e.ramp(routing{build: "v2", percentage: 10})
	requireCode(t, codes.Unavailable, err)
	require.Nil(t, e.describe().GetWorkerDeploymentInfo().GetRoutingConfig().GetRampingDeploymentVersion())

	remove := e.NS.Inject(temporalenv.Fault{
		Method: setRamp, Point: temporalenv.AfterForwarding, Code: codes.DeadlineExceeded, Message: "lost",
	})
	for range 2 {
		_, err = e.ramp(routing{build: "v2", percentage: 10})
		require.Equal(t, "lost", status.Convert(err).Message())
		requireCode(t, codes.DeadlineExceeded, err)
	}
	require.Equal(t, "v2", e.describe().GetWorkerDeploymentInfo().GetRoutingConfig().GetRampingDeploymentVersion().GetBuildId())
	remove()
	e.mustRamp("v2", 10)

	e.NS.Inject(temporalenv.Fault{Point: temporalenv.BeforeForwarding, Code: codes.ResourceExhausted, Times: 1})
	e.describe() // the fault does not concern reads
	requireCode(t, codes.ResourceExhausted, e.manager(bot, bot))
	require.NoError(t, e.manager(bot, bot))

	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 10", "ramp v2 10"}, e.NS.RoutingCalls(""))
	require.Equal(t, []string{"current v1", "ramp v2 10"}, e.NS.RoutingChanges(deployment), "the others changed nothing")
	require.Empty(t, e.NS.RoutingRepeats(deployment), "nobody heard that it was set")
	require.Empty(t, cmp.Diff([]seen{
		{setCurrent, true, true, codes.OK},
		{setRamp, false, false, codes.Unavailable},
		{setRamp, true, true, codes.DeadlineExceeded},
		{setRamp, true, true, codes.DeadlineExceeded},
		{setRamp, true, true, codes.OK},
		{setManager, false, false, codes.ResourceExhausted},
		{setManager, true, true, codes.OK},
	}, seenIn(e.NS.Calls())))
	require.Panics(t, func() { e.NS.Inject(temporalenv.Fault{Method: setRamp}) })
}

func TestHookCanMoveTheWorldUnderACall(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	direct := *e
	proxied(t, e)
	token := e.mustCurrent("v1")
	done := false
	remove := e.NS.BeforeForward(func(method string, request proto.Message) {
		if method == setRamp && !done {
			done = true
			require.Equal(t, float32(10), request.(*workflowservice.SetWorkerDeploymentRampingVersionRequest).GetPercentage())
			direct.mustRamp("v2", 1)
		}
	})
	_, err := e.ramp(routing{build: "v2", percentage: 10, token: token})
	requireCode(t, codes.FailedPrecondition, err)
	remove()
	done = false
	e.mustRamp("v2", 10)
	require.False(t, done)
	require.Equal(t, []string{"current v1", "ramp v2 10"}, e.NS.RoutingCalls(""))
}

// An outage takes down what every test shares, so this one has a server of its own.
func TestOutageKeepsStateAndAddress(t *testing.T) {
	server := temporalenv.Start(t, temporalenv.Options{})
	e := &env{*temporalenv.NewWorkerDeployment(t, server, images())}
	e.Start("app", "v1", "v2")
	address := server.Address()
	direct, c, ctx := e.Service, e.Client, e.Ctx
	proxied(t, e)
	e.mustCurrent("v1")
	e.mustRamp("v2", 10)

	server.Outage()
	_, err := e.ramp(routing{build: "v2", percentage: 50})
	requireCode(t, codes.Unavailable, err)
	fresh := *e
	proxied(t, &fresh)
	_, err = fresh.Service.GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	requireCode(t, codes.Unavailable, err)
	_, err = direct.GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	require.NoError(t, err)

	server.Restore()
	require.Equal(t, address, server.Address())
	e.Eventually(func(ctx context.Context) error {
		d, err := e.Service.DescribeWorkerDeployment(ctx, &workflowservice.DescribeWorkerDeploymentRequest{
			Namespace: e.NS.Name(), DeploymentName: deployment,
		})
		if err != nil {
			return err
		}
		require.Equal(t, float32(10), d.GetWorkerDeploymentInfo().GetRoutingConfig().GetRampingVersionPercentage())
		return nil
	})
	// The workers come back by themselves.
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue}, temporalenv.Checkout)
	require.NoError(t, err)
	require.NoError(t, run.Get(ctx, nil))
	require.Equal(t, []string{"current v1", "ramp v2 10"}, e.NS.RoutingCalls(""))
}

func TestNamespacesAreKeptApart(t *testing.T) {
	a := newEnv(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	other, err := shared.Namespace(ctx, a.NS.Name()+"-other")
	require.NoError(t, err)
	again, err := shared.Namespace(ctx, other.Name())
	require.NoError(t, err)
	require.Equal(t, other.Name(), again.Name())
	proxied(t, a)
	a.NS.Inject(temporalenv.Fault{Point: temporalenv.BeforeForwarding})
	_, err = a.Service.SetWorkerDeploymentManager(ctx, &workflowservice.SetWorkerDeploymentManagerRequest{
		Namespace: other.Name(), DeploymentName: deployment, Identity: bot,
	})
	requireCode(t, codes.NotFound, err)
	require.Empty(t, a.NS.Calls())
	require.Equal(t, []seen{{setManager, true, false, codes.NotFound}}, seenIn(other.Calls()))
}

func TestOtherServicesPassThrough(t *testing.T) {
	e := newEnv(t)
	conn := proxied(t, e)
	resp, err := healthpb.NewHealthClient(conn).Check(e.Ctx, &healthpb.HealthCheckRequest{
		Service: "temporal.api.workflowservice.v1.WorkflowService",
	})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, resp.GetStatus())
	_, err = healthpb.NewHealthClient(conn).Check(e.Ctx, &healthpb.HealthCheckRequest{Service: "nope"})
	require.Error(t, err)
}

func TestNewTellsWhyItCannotStart(t *testing.T) {
	t.Parallel()
	_, err := temporalenv.New(t.Context(), temporalenv.Options{Address: shared.Address()})
	require.ErrorContains(t, err, "listen on "+shared.Address())
}

func TestUntilGivesTheLastErrorAndTheCause(t *testing.T) {
	t.Parallel()
	cause, seen := errors.New("out of patience"), errors.New("not yet")
	ctx, cancel := context.WithCancelCause(t.Context())
	tries := 0
	err := temporalenv.Until(ctx, func(context.Context) error {
		if tries++; tries == 2 {
			cancel(cause)
		}
		return seen
	})
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, seen)
	require.Equal(t, 2, tries)
}
