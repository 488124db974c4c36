package temporalenv_test

// The tests called TestFact… hold what Rampart's rules lean on against the real server. When one of them fails after an
// upgrade, a rule has to be looked at, not only the test.

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

func TestFactStaleTokenIsRefusedAndChainedTokenAccepted(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	stale := e.describe().GetConflictToken()
	chained := e.mustCurrent("v1")
	_, err := e.ramp(routing{build: "v2", percentage: 10, token: stale})
	requireCode(t, codes.FailedPrecondition, err)
	chained, err = e.ramp(routing{build: "v2", percentage: 10, token: chained})
	require.NoError(t, err)
	_, err = e.current(routing{build: "v2", token: chained})
	require.NoError(t, err)
	require.Equal(t, "v2", e.describe().GetWorkerDeploymentInfo().GetRoutingConfig().GetCurrentDeploymentVersion().GetBuildId())
}

func TestFactSettingTheSameAgainIsOKWhateverTheToken(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	proxied(t, e)
	stale := e.describe().GetConflictToken()
	e.mustCurrent("v1")
	token := e.mustRamp("v2", 10)
	again, err := e.ramp(routing{build: "v2", percentage: 10, token: stale})
	require.NoError(t, err)
	require.Equal(t, token, again)
	_, err = e.current(routing{build: "v1", token: stale})
	require.NoError(t, err)
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 10", "current v1"}, e.NS.RoutingCalls(deployment))
	require.Equal(t, []string{"current v1", "ramp v2 10"}, e.NS.RoutingChanges(deployment))
	require.Equal(t, []string{"ramp v2 10", "current v1"}, e.NS.RoutingRepeats(deployment))
	// A call by another identity is not a repetition: the token counts.
	_, err = e.ramp(routing{build: "v2", percentage: 10, token: stale, identity: "somebody"})
	requireCode(t, codes.FailedPrecondition, err)
	// The last modifier counts, not who set the ramp.
	require.NoError(t, e.manager("somebody", ""))
	_, err = e.ramp(routing{build: "v2", percentage: 10, token: stale})
	requireCode(t, codes.FailedPrecondition, err)
}

func TestFactTokenMovesWithRoutingAndManagerOnly(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	before := e.describe().GetConflictToken()
	e.Start("app-both", "v3")
	_, err := e.Service.UpdateWorkerDeploymentVersionMetadata(e.Ctx, &workflowservice.UpdateWorkerDeploymentVersionMetadataRequest{
		Namespace: e.NS.Name(), DeploymentVersion: temporalenv.Version("v2"), UpsertEntries: map[string]*commonpb.Payload{"k": {Data: []byte(`"v"`)}},
	})
	require.NoError(t, err)
	e.Stop("v3")
	e.awaitNoPollers("v3")
	require.NoError(t, e.deleteVersion("v3", bot))
	require.Equal(t, before, e.describe().GetConflictToken())
	require.NoError(t, e.manager(bot, bot))
	require.NotEqual(t, before, e.describe().GetConflictToken())
}

func TestFactNoPollersIsNoObstacleForTheServer(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	e.Stop("v1", "v2")
	e.awaitNoPollers("v2")
	e.mustRamp("v2", 50)
	e.mustCurrent("v2")
}

func TestFactCurrentDoesNotClearARampToAThirdVersion(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2", "v3")
	e.mustCurrent("v1")
	e.mustRamp("v3", 25)
	e.mustCurrent("v2")
	config := e.describe().GetWorkerDeploymentInfo().GetRoutingConfig()
	require.Equal(t, "v3", config.GetRampingDeploymentVersion().GetBuildId())
	require.Equal(t, float32(25), config.GetRampingVersionPercentage())
	// A ramp to the promoted version itself ends with the promotion.
	e.mustCurrent("v3")
	config = e.describe().GetWorkerDeploymentInfo().GetRoutingConfig()
	require.Nil(t, config.GetRampingDeploymentVersion())
	require.Zero(t, config.GetRampingVersionPercentage())
}

func TestFactRampToUnversionedHasNoVersionButAPercentage(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.mustCurrent("v1")
	e.mustRamp("", 5)
	config := e.describe().GetWorkerDeploymentInfo().GetRoutingConfig()
	require.Nil(t, config.GetRampingDeploymentVersion())
	require.Equal(t, float32(5), config.GetRampingVersionPercentage())
}

func TestFactZeroPercentIsRamping(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	e.mustRamp("v2", 0)
	config := e.describe().GetWorkerDeploymentInfo().GetRoutingConfig()
	require.Equal(t, "v2", config.GetRampingDeploymentVersion().GetBuildId())
	require.Equal(t, "Ramping", e.summary("v2").GetStatus().String())
}

func TestFactPercentageIsFloat32(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	e.mustRamp("v2", 0.1)
	config := e.describe().GetWorkerDeploymentInfo().GetRoutingConfig()
	require.Equal(t, float32(0.1), config.GetRampingVersionPercentage())
	require.NotEqual(t, 0.1, float64(config.GetRampingVersionPercentage()))
	require.NotNil(t, config.GetRampingVersionPercentageChangedTime())
	require.NotZero(t, config.GetRevisionNumber())
	require.NotZero(t, e.describe().GetWorkerDeploymentInfo().GetRoutingConfigUpdateState())
}

func TestFactRollbackIsRefusedForMissingTaskQueues(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.Start("app-both", "v2")
	e.mustCurrent("v1")
	e.mustCurrent("v2")
	// A queue counts as active when tasks were added to it lately.
	run, err := e.Client.ExecuteWorkflow(e.Ctx, client.StartWorkflowOptions{TaskQueue: queue2}, temporalenv.Checkout)
	require.NoError(t, err)
	require.NoError(t, run.Get(e.Ctx, nil))
	_, err = e.current(routing{build: "v1"})
	requireCode(t, codes.FailedPrecondition, err)
	_, err = e.ramp(routing{build: "v1", percentage: 10})
	requireCode(t, codes.FailedPrecondition, err)
	_, err = e.current(routing{build: "v1", ignore: true})
	require.NoError(t, err)
}

// The flag ignores every missing task queue, whichever was meant, and nothing else: token and manager count as ever.
func TestFactIgnoringMissingTaskQueuesIgnoresAllOfThem(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v3")
	e.Start("app-both", "v2")
	e.mustCurrent("v1")
	stale := e.describe().GetConflictToken()
	e.mustCurrent("v2")
	// Both the workflow and the activity task queue are in use: each by itself would be a reason to refuse.
	run, err := e.Client.ExecuteWorkflow(e.Ctx, client.StartWorkflowOptions{TaskQueue: queue2}, temporalenv.Checkout)
	require.NoError(t, err)
	require.NoError(t, run.Get(e.Ctx, nil))
	require.NoError(t, e.manager(bot, bot))
	_, err = e.ramp(routing{build: "v3", percentage: 10, identity: bot, ignore: true, token: stale})
	requireCode(t, codes.FailedPrecondition, err)
	_, err = e.ramp(routing{build: "v3", percentage: 10, identity: "somebody", ignore: true})
	requireCode(t, codes.FailedPrecondition, err)
	_, err = e.ramp(routing{build: "v3", percentage: 10, identity: bot, ignore: true})
	require.NoError(t, err)
	// A ramp that goes on is not checked again; the promotion is.
	_, err = e.ramp(routing{build: "v3", percentage: 50, identity: bot})
	require.NoError(t, err)
	_, err = e.current(routing{build: "v3", identity: bot})
	requireCode(t, codes.FailedPrecondition, err)
	_, err = e.current(routing{build: "v3", identity: bot, ignore: true})
	require.NoError(t, err)
}

func TestFactIdleMissingTaskQueuesAreLetThrough(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.Start("app-both", "v2")
	e.mustCurrent("v2")
	e.mustCurrent("v1")
}

func TestFactManagerIdentityIsEnforced(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1", "v2")
	e.mustCurrent("v1")
	require.NoError(t, e.manager(bot, bot))
	require.Equal(t, bot, e.describe().GetWorkerDeploymentInfo().GetManagerIdentity())
	_, err := e.ramp(routing{build: "v2", percentage: 10, identity: "somebody"})
	requireCode(t, codes.FailedPrecondition, err)
	_, err = e.current(routing{build: "v2", identity: "somebody"})
	requireCode(t, codes.FailedPrecondition, err)
	e.mustRamp("v2", 10)
	// Anybody may take it over, and metadata is not protected at all.
	require.NoError(t, e.manager("somebody", "somebody"))
	_, err = e.ramp(routing{build: "v2", percentage: 20})
	requireCode(t, codes.FailedPrecondition, err)
	_, err = e.Service.UpdateWorkerDeploymentVersionMetadata(e.Ctx, &workflowservice.UpdateWorkerDeploymentVersionMetadataRequest{
		Namespace: e.NS.Name(), DeploymentVersion: temporalenv.Version("v2"), Identity: bot,
		UpsertEntries: map[string]*commonpb.Payload{"k": {Data: []byte(`"v"`)}},
	})
	require.NoError(t, err)
}

func TestFactRoutingToAnUnknownVersionOrDeploymentIsNotFound(t *testing.T) {
	e := newEnv(t)
	_, err := e.ramp(routing{build: "v1", percentage: 10})
	requireCode(t, codes.NotFound, err)
	_, err = e.Service.DescribeWorkerDeployment(e.Ctx, &workflowservice.DescribeWorkerDeploymentRequest{
		Namespace: e.NS.Name(), DeploymentName: deployment,
	})
	requireCode(t, codes.NotFound, err)
	e.Start("app", "v1")
	_, err = e.ramp(routing{build: "nope", percentage: 10})
	requireCode(t, codes.NotFound, err)
	_, err = e.current(routing{build: "nope"})
	requireCode(t, codes.NotFound, err)
	_, err = e.Service.DescribeWorkerDeploymentVersion(e.Ctx, &workflowservice.DescribeWorkerDeploymentVersionRequest{
		Namespace: e.NS.Name(), DeploymentVersion: temporalenv.Version("nope"),
	})
	requireCode(t, codes.NotFound, err)
}

func TestFactAlreadyCurrentCannotRamp(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.mustCurrent("v1")
	_, err := e.ramp(routing{build: "v1", percentage: 10})
	requireCode(t, codes.FailedPrecondition, err)
}

func TestFactAChangeOfNoWorkerDeploymentMakesNone(t *testing.T) {
	e := newEnv(t)
	_, err := e.Service.SetWorkerDeploymentRampingVersion(e.Ctx, &workflowservice.SetWorkerDeploymentRampingVersionRequest{
		Namespace: e.NS.Name(), DeploymentName: "nobodys", Identity: bot,
	})
	requireCode(t, codes.NotFound, err)
	list, err := e.Service.ListWorkerDeployments(e.Ctx, &workflowservice.ListWorkerDeploymentsRequest{Namespace: e.NS.Name()})
	require.NoError(t, err)
	require.Empty(t, list.GetWorkerDeployments())
}
