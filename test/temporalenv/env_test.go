package temporalenv_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// environments counts the namespaces given out.
var environments atomic.Int64

// shared is the one server of this test binary; each test has a namespace of its own on it.
var shared *temporalenv.Server

func TestMain(m *testing.M) {
	// The tests wait more than they compute, but a routing call costs the server about 0.1 s of CPU: more at a time
	// only time each other out on a busy machine. A -parallel on the command line still wins.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	server, err := temporalenv.New(ctx, temporalenv.Options{})
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = server
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const (
	deployment = "shop/checkout"
	queue      = "checkout"
	queue2     = "receipts"
	bot        = "rampart/test"
)

// env is one worker deployment in a namespace of its own.
type env struct {
	t      *testing.T
	ctx    context.Context
	ns     *temporalenv.Namespace
	svc    workflowservice.WorkflowServiceClient
	client client.Client
	fleet  *temporalenv.Fleet
	up     map[string]string // build ID -> image
}

func newEnv(t *testing.T, settings ...temporalenv.Setting) *env {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	// The number keeps repetitions of a test apart.
	name := fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), environments.Add(1))
	ns, err := shared.Namespace(ctx, name, settings...)
	require.NoError(t, err)
	c, err := ns.Client(ctx)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	fleet := temporalenv.NewFleet(temporalenv.FleetConfig{Images: images()})
	t.Cleanup(fleet.Close)
	return &env{t: t, ctx: ctx, ns: ns, svc: ns.Service(), client: c, fleet: fleet, up: map[string]string{}}
}

func set(setting dynamicconfig.GenericSetting, value any) temporalenv.Setting {
	return temporalenv.Setting{Setting: setting, Value: value}
}

func images() map[string]temporalenv.Image {
	return map[string]temporalenv.Image{
		"app":      temporalenv.DefaultImage(queue),
		"app-both": temporalenv.DefaultImage(queue, queue2),
		"app-bad":  temporalenv.FailingImage(queue),
	}
}

// manifest is a Deployment as the fleet gets it.
func manifest(address, namespace, build, image string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout-%[3]s, namespace: shop}
spec:
  replicas: %[5]d
  selector: {matchLabels: {build: %[3]s}}
  template:
    metadata: {labels: {build: %[3]s}}
    spec:
      containers:
        - name: worker
          image: %[4]s
          env:
            - {name: TEMPORAL_ADDRESS, value: %[1]q}
            - {name: TEMPORAL_NAMESPACE, value: %[2]q}
            - {name: TEMPORAL_DEPLOYMENT_NAME, value: shop/checkout}
            - {name: TEMPORAL_WORKER_BUILD_ID, value: %[3]q}
`, address, namespace, build, image, replicas)
}

// start runs versions of an image and returns when the server knows all of their queues.
func (e *env) start(image string, builds ...string) {
	e.t.Helper()
	for _, b := range builds {
		e.up[b] = image
	}
	e.apply()
	for _, b := range builds {
		e.eventually(func(ctx context.Context) error {
			d, err := e.svc.DescribeWorkerDeploymentVersion(ctx, &workflowservice.DescribeWorkerDeploymentVersionRequest{
				Namespace: e.ns.Name(), DeploymentVersion: version(b),
			})
			if err != nil {
				return err
			}
			want := 2 * len(images()[image].TaskQueues)
			if got := len(d.GetVersionTaskQueues()); got != want {
				return fmt.Errorf("%s has %d of %d queues", b, got, want)
			}
			return nil
		})
	}
}

// stop stops versions and returns when their pods have ended.
func (e *env) stop(builds ...string) {
	e.t.Helper()
	for _, b := range builds {
		delete(e.up, b)
	}
	e.apply()
}

func (e *env) apply() {
	e.t.Helper()
	var stream strings.Builder
	for _, b := range slices.Sorted(maps.Keys(e.up)) {
		stream.WriteString("---\n" + manifest(e.ns.Server().Address(), e.ns.Name(), b, e.up[b], 1))
	}
	require.NoError(e.t, e.fleet.Apply([]byte(stream.String())))
	require.NoError(e.t, e.fleet.WaitReady(e.ctx))
}

func (e *env) eventually(check func(context.Context) error) {
	e.t.Helper()
	require.NoError(e.t, temporalenv.Until(e.ctx, check))
}

func version(build string) *deploymentpb.WorkerDeploymentVersion {
	return &deploymentpb.WorkerDeploymentVersion{DeploymentName: deployment, BuildId: build}
}

func (e *env) describe() *workflowservice.DescribeWorkerDeploymentResponse {
	e.t.Helper()
	d, err := e.svc.DescribeWorkerDeployment(e.ctx, &workflowservice.DescribeWorkerDeploymentRequest{
		Namespace: e.ns.Name(), DeploymentName: deployment,
	})
	require.NoError(e.t, err)
	return d
}

func (e *env) summary(build string) *deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary {
	e.t.Helper()
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
	resp, err := e.svc.SetWorkerDeploymentRampingVersion(e.ctx, &workflowservice.SetWorkerDeploymentRampingVersionRequest{
		Namespace: e.ns.Name(), DeploymentName: deployment, BuildId: r.build, Percentage: r.percentage,
		ConflictToken: r.token, Identity: orBot(r.identity), IgnoreMissingTaskQueues: r.ignore,
	})
	return resp.GetConflictToken(), err
}

func (e *env) current(r routing) ([]byte, error) {
	resp, err := e.svc.SetWorkerDeploymentCurrentVersion(e.ctx, &workflowservice.SetWorkerDeploymentCurrentVersionRequest{
		Namespace: e.ns.Name(), DeploymentName: deployment, BuildId: r.build,
		ConflictToken: r.token, Identity: orBot(r.identity), IgnoreMissingTaskQueues: r.ignore,
	})
	return resp.GetConflictToken(), err
}

func (e *env) mustCurrent(build string) []byte {
	e.t.Helper()
	token, err := e.current(routing{build: build})
	require.NoError(e.t, err)
	return token
}

func (e *env) mustRamp(build string, percentage float32) []byte {
	e.t.Helper()
	token, err := e.ramp(routing{build: build, percentage: percentage})
	require.NoError(e.t, err)
	return token
}

func (e *env) manager(identity, newManager string) error {
	_, err := e.svc.SetWorkerDeploymentManager(e.ctx, &workflowservice.SetWorkerDeploymentManagerRequest{
		Namespace: e.ns.Name(), DeploymentName: deployment, Identity: identity,
		NewManagerIdentity: &workflowservice.SetWorkerDeploymentManagerRequest_ManagerIdentity{ManagerIdentity: newManager},
	})
	return err
}

func (e *env) deleteVersion(build, identity string) error {
	_, err := e.svc.DeleteWorkerDeploymentVersion(e.ctx, &workflowservice.DeleteWorkerDeploymentVersionRequest{
		Namespace: e.ns.Name(), DeploymentVersion: version(build), Identity: identity,
	})
	return err
}

// pollers asks all partitions and types of a queue for the pollers of a build, as (build or unversioned) -> type ->
// identities.
func (e *env) pollers(name string, builds ...string) map[string]map[string][]string {
	e.t.Helper()
	var ids []string
	for _, b := range builds {
		ids = append(ids, deployment+":"+b)
	}
	resp, err := e.svc.DescribeTaskQueue(e.ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: e.ns.Name(),
		TaskQueue: &taskqueuepb.TaskQueue{Name: name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		ApiMode:   enumspb.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
		Versions:  &taskqueuepb.TaskQueueVersionSelection{BuildIds: ids, Unversioned: true},
		TaskQueueTypes: []enumspb.TaskQueueType{
			enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY, enumspb.TASK_QUEUE_TYPE_NEXUS,
		},
		ReportPollers: true,
	})
	require.NoError(e.t, err)
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
	e.t.Helper()
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
	e.t.Helper()
	e.eventually(func(context.Context) error {
		if e.polled(build) {
			return fmt.Errorf("%s still has pollers", build)
		}
		return nil
	})
}

func (e *env) awaitPollers(build string) {
	e.t.Helper()
	e.eventually(func(context.Context) error {
		if !e.polled(build) {
			return fmt.Errorf("%s has no pollers", build)
		}
		return nil
	})
}

func (e *env) awaitStatus(build string, want enumspb.WorkerDeploymentVersionStatus) {
	e.t.Helper()
	e.eventually(func(context.Context) error {
		if got := e.summary(build).GetStatus(); got != want {
			return fmt.Errorf("%s is %s, not %s", build, got, want)
		}
		return nil
	})
}

func (e *env) count(query string) int64 {
	e.t.Helper()
	resp, err := e.svc.CountWorkflowExecutions(e.ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: e.ns.Name(), Query: query,
	})
	require.NoError(e.t, err)
	return resp.GetCount()
}

func (e *env) awaitCount(query string, want int64) {
	e.t.Helper()
	e.eventually(func(context.Context) error {
		if got := e.count(query); got != want {
			return fmt.Errorf("%d workflows, not %d: %s", got, want, query)
		}
		return nil
	})
}

// startPinned starts a workflow pinned to a version, and tries again while the version's queue is not known everywhere.
func (e *env) startPinned(id, name, build string) client.WorkflowRun {
	e.t.Helper()
	var run client.WorkflowRun
	e.eventually(func(ctx context.Context) error {
		var err error
		run, err = e.client.ExecuteWorkflow(ctx, pinned(id, build), name)
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
