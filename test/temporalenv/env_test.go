package temporalenv_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// shared is the one server of this test binary; each test has a namespace of its own on it.
var shared *temporalenv.Server

func TestMain(m *testing.M) {
	// The tests wait more than they compute, but a routing call costs the server about 0.1 s of CPU: more at a time
	// only time each other out on a busy machine.
	os.Exit(temporalenv.Main(m, 4, func(server *temporalenv.Server) { shared = server }))
}

const (
	deployment = temporalenv.DeploymentName
	queue      = "checkout"
	queue2     = "receipts"
	bot        = "rampart/test"
)

// env is one worker deployment, and what else these tests ask the server.
type env struct{ temporalenv.WorkerDeployment }

func newEnv(t *testing.T, settings ...temporalenv.Setting) *env {
	t.Helper()
	return &env{*temporalenv.NewWorkerDeployment(t, shared, images(), settings...)}
}

func images() map[string]temporalenv.Image {
	return map[string]temporalenv.Image{
		"app":      temporalenv.DefaultImage(queue),
		"app-both": temporalenv.DefaultImage(queue, queue2),
		"app-bad":  temporalenv.FailingImage(queue),
	}
}

func (e *env) describe() *workflowservice.DescribeWorkerDeploymentResponse {
	e.T.Helper()
	d, err := e.Service.DescribeWorkerDeployment(e.Ctx, &workflowservice.DescribeWorkerDeploymentRequest{
		Namespace: e.NS.Name(), DeploymentName: deployment,
	})
	require.NoError(e.T, err)
	return d
}

func (e *env) summary(build string) *deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary {
	e.T.Helper()
	for _, s := range e.describe().GetWorkerDeploymentInfo().GetVersionSummaries() {
		if s.GetDeploymentVersion().GetBuildId() == build {
			return s
		}
	}
	return nil
}

// routing is one call that sets the routing.
type routing struct {
	build      string
	percentage float32
	token      []byte
	identity   string
	ignore     bool
}

func (e *env) ramp(r routing) ([]byte, error) {
	resp, err := e.Service.SetWorkerDeploymentRampingVersion(e.Ctx, &workflowservice.SetWorkerDeploymentRampingVersionRequest{
		Namespace: e.NS.Name(), DeploymentName: deployment, BuildId: r.build, Percentage: r.percentage,
		ConflictToken: r.token, Identity: orBot(r.identity), IgnoreMissingTaskQueues: r.ignore,
	})
	return resp.GetConflictToken(), err
}

func (e *env) current(r routing) ([]byte, error) {
	resp, err := e.Service.SetWorkerDeploymentCurrentVersion(e.Ctx, &workflowservice.SetWorkerDeploymentCurrentVersionRequest{
		Namespace: e.NS.Name(), DeploymentName: deployment, BuildId: r.build,
		ConflictToken: r.token, Identity: orBot(r.identity), IgnoreMissingTaskQueues: r.ignore,
	})
	return resp.GetConflictToken(), err
}

func (e *env) mustCurrent(build string) []byte {
	e.T.Helper()
	token, err := e.current(routing{build: build})
	require.NoError(e.T, err)
	return token
}

func (e *env) mustRamp(build string, percentage float32) []byte {
	e.T.Helper()
	token, err := e.ramp(routing{build: build, percentage: percentage})
	require.NoError(e.T, err)
	return token
}

func (e *env) manager(identity, newManager string) error {
	_, err := e.Service.SetWorkerDeploymentManager(e.Ctx, &workflowservice.SetWorkerDeploymentManagerRequest{
		Namespace: e.NS.Name(), DeploymentName: deployment, Identity: identity,
		NewManagerIdentity: &workflowservice.SetWorkerDeploymentManagerRequest_ManagerIdentity{ManagerIdentity: newManager},
	})
	return err
}

func (e *env) deleteVersion(build, identity string) error {
	_, err := e.Service.DeleteWorkerDeploymentVersion(e.Ctx, &workflowservice.DeleteWorkerDeploymentVersionRequest{
		Namespace: e.NS.Name(), DeploymentVersion: temporalenv.Version(build), Identity: identity,
	})
	return err
}

// pollers asks all partitions and types of a queue for the pollers of a build, as (build or unversioned) -> type ->
// identities.
func (e *env) pollers(name string, builds ...string) map[string]map[string][]string {
	e.T.Helper()
	var ids []string
	for _, b := range builds {
		ids = append(ids, deployment+":"+b)
	}
	resp, err := e.Service.DescribeTaskQueue(e.Ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: e.NS.Name(),
		TaskQueue: &taskqueuepb.TaskQueue{Name: name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		ApiMode:   enumspb.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
		Versions:  &taskqueuepb.TaskQueueVersionSelection{BuildIds: ids, Unversioned: true},
		TaskQueueTypes: []enumspb.TaskQueueType{
			enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY, enumspb.TASK_QUEUE_TYPE_NEXUS,
		},
		ReportPollers: true,
	})
	require.NoError(e.T, err)
	out := map[string]map[string][]string{}
	for build, info := range resp.GetVersionsInfo() {
		types := map[string][]string{}
		for kind, of := range info.GetTypesInfo() {
			var names []string
			for _, p := range of.GetPollers() {
				names = append(names, p.GetIdentity())
			}
			slices.Sort(names)
			types[enumspb.TaskQueueType(kind).String()] = slices.Compact(names)
		}
		out[build] = types
	}
	return out
}

// polled says whether the server lists pollers of a version on any queue that an image polls.
func (e *env) polled(build string) bool {
	e.T.Helper()
	for _, name := range []string{queue, queue2} {
		for _, identities := range e.pollers(name, build)[deployment+":"+build] {
			if len(identities) > 0 {
				return true
			}
		}
	}
	return false
}

// awaitNoPollers returns when the server has forgotten the pollers of a version.
func (e *env) awaitNoPollers(build string) {
	e.T.Helper()
	e.Eventually(func(context.Context) error {
		if e.polled(build) {
			return fmt.Errorf("%s still has pollers", build)
		}
		return nil
	})
}

func (e *env) awaitPollers(build string) {
	e.T.Helper()
	e.Eventually(func(context.Context) error {
		if !e.polled(build) {
			return fmt.Errorf("%s has no pollers", build)
		}
		return nil
	})
}

func (e *env) awaitStatus(build string, want enumspb.WorkerDeploymentVersionStatus) {
	e.T.Helper()
	e.Eventually(func(context.Context) error {
		if got := e.summary(build).GetStatus(); got != want {
			return fmt.Errorf("%s is %s, not %s", build, got, want)
		}
		return nil
	})
}

// startPinned starts a workflow pinned to a version, and tries again while the version's queue is not known everywhere.
func (e *env) startPinned(id, name, build string) client.WorkflowRun {
	e.T.Helper()
	var run client.WorkflowRun
	e.Eventually(func(ctx context.Context) error {
		var err error
		run, err = e.Client.ExecuteWorkflow(ctx, pinned(id, build), name)
		return err
	})
	return run
}

func orBot(identity string) string {
	if identity == "" {
		return bot
	}
	return identity
}

func requireCode(t *testing.T, want codes.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, status.Code(err), err.Error())
}
