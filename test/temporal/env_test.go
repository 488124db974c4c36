package temporal_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/dynamicconfig"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// shared is the one server of this test binary; each test has a namespace of its own on it.
var shared *temporalenv.Server

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
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

var name = rollout.Name{Namespace: "shop", Name: "checkout"}

// env is one worker deployment in a namespace of its own, and a pool that reaches it through the recording proxy.
type env struct {
	t      *testing.T
	ctx    context.Context
	ns     *temporalenv.Namespace
	svc    workflowservice.WorkflowServiceClient
	client client.Client
	fleet  *temporalenv.Fleet
	up     map[string]string // build ID -> image
	pool   *temporal.Pool
	log    *logs
	sites  *announced
}

func newEnv(t *testing.T, settings ...temporalenv.Setting) *env {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	id := strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-"))
	ns, err := shared.Namespace(ctx, id, settings...)
	require.NoError(t, err)
	c, err := ns.Client(ctx)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	fleet := temporalenv.NewFleet(temporalenv.FleetConfig{Images: images()})
	t.Cleanup(fleet.Close)
	e := &env{
		t: t, ctx: ctx, ns: ns, svc: ns.Service(), client: c, fleet: fleet, up: map[string]string{}, log: &logs{}, sites: &announced{},
	}
	e.pool = e.newPool(temporal.Config{})
	return e
}

func (e *env) newPool(cfg temporal.Config) *temporal.Pool {
	cfg.Log = slog.New(slog.NewTextHandler(e.log, nil))
	cfg.Identity = "rampart@test"
	cfg.OnWrite = e.sites.add
	if cfg.Limits == (temporal.Budget{}) {
		fast := temporal.Rate{PerSecond: 1000, Burst: 1000}
		cfg.Limits = temporal.Budget{Describe: fast, Queue: fast, Visibility: fast, Change: fast}
	}
	p := temporal.New(cfg)
	e.t.Cleanup(p.Close)
	return p
}

// logs is a log to look into.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// announced are the sites as OnWrite told of them.
type announced struct {
	mu   sync.Mutex
	list []string
}

func (a *announced) add(site temporal.Site, moment temporal.Moment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, string(moment)+" "+string(site))
}

func (a *announced) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

func set(setting dynamicconfig.GenericSetting, value any) temporalenv.Setting {
	return temporalenv.Setting{Setting: setting, Value: value}
}

func images() map[string]temporalenv.Image {
	ends := func(name string, err error) func(worker.Registry) {
		return func(w worker.Registry) {
			w.RegisterWorkflowWithOptions(func(workflow.Context) error { return err },
				workflow.RegisterOptions{Name: name, VersioningBehavior: workflow.VersioningBehaviorPinned})
		}
	}
	return map[string]temporalenv.Image{
		"app":      temporalenv.DefaultImage(queue),
		"app-both": temporalenv.DefaultImage(queue, queue2),
		"app-odd":  temporalenv.DefaultImage("it's odd % (1)"),
		"app-ask":  temporalenv.DefaultImage(`no "query" can ask`),
		"app-fails": {TaskQueues: []string{queue}, Register: ends(temporalenv.Checkout,
			sdktemporal.NewNonRetryableApplicationError("refused", "Refused", nil))},
	}
}

func manifest(address, namespace, build, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout-%[3]s, namespace: shop}
spec:
  replicas: 1
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
`, address, namespace, build, image)
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
			want := 2 * len(images()[image].TaskQueues) // a worker asks for activities, too, where it registers none
			if got := len(d.GetVersionTaskQueues()); got < want {
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
		stream.WriteString("---\n" + manifest(e.ns.Server().Address(), e.ns.Name(), b, e.up[b]))
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

func (e *env) connection() v1alpha1.Connection { return connection(e.ns.Server().Address()) }

func connection(hostPort string) v1alpha1.Connection {
	return v1alpha1.Connection{
		Metadata: v1alpha1.ObjectMeta{Namespace: "shop", Name: "main"}, Spec: v1alpha1.ConnectionSpec{HostPort: hostPort},
	}
}

func (e *env) target() temporal.Target {
	return temporal.Target{Connection: e.connection(), TemporalNamespace: e.ns.Name(), Deployment: name}
}

// observe asks for what ask says, of the deployment in the namespace.
func (e *env) observe(ask rollout.Ask) rollout.Observation {
	e.t.Helper()
	ask.Deployment, ask.TemporalNamespace = name, e.ns.Name()
	return e.pool.Observe(e.ctx, e.connection(), ask)
}

// mustObserve is observe of what can be read.
func (e *env) mustObserve(ask rollout.Ask) rollout.Observation {
	e.t.Helper()
	obs := e.observe(ask)
	require.Nil(e.t, obs.Problem)
	require.Equal(e.t, rollout.Yes, obs.Exists)
	return obs
}

// call is a routing call on the routing as it is, by the bot, which owns it.
func (e *env) call(steps ...rollout.RoutingStep) rollout.RoutingCall {
	e.t.Helper()
	obs := e.mustObserve(rollout.Ask{})
	claim := rollout.ClaimHeld
	if obs.ManagerIdentity == "" {
		claim = rollout.ClaimNeeded
	}
	return rollout.RoutingCall{Basis: obs.Routing, Token: obs.ConflictToken, Claim: claim, Steps: steps, Identity: bot}
}

func current(build string) rollout.RoutingStep {
	return rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: build}
}

func ramp(build string, percentage float32) rollout.RoutingStep {
	return rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: build, Percentage: percentage}
}

var clearRamp = rollout.RoutingStep{Kind: rollout.ClearRamp}

func (e *env) raise(steps ...rollout.RoutingStep) temporal.Outcome {
	e.t.Helper()
	out, err := e.pool.Raise(e.ctx, e.target(), e.call(steps...))
	require.NoError(e.t, err)
	return out
}

func (e *env) routing() rollout.RoutingConfig {
	e.t.Helper()
	return e.mustObserve(rollout.Ask{}).Routing
}

// someone sets the routing past the proxy, as another person with the manager's identity would.
func (e *env) someone(step rollout.RoutingStep) {
	e.t.Helper()
	var err error
	if step.Kind == rollout.SetCurrent {
		_, err = e.svc.SetWorkerDeploymentCurrentVersion(e.ctx, &workflowservice.SetWorkerDeploymentCurrentVersionRequest{
			Namespace: e.ns.Name(), DeploymentName: deployment, BuildId: step.BuildID, Identity: bot,
		})
	} else {
		_, err = e.svc.SetWorkerDeploymentRampingVersion(e.ctx, &workflowservice.SetWorkerDeploymentRampingVersionRequest{
			Namespace: e.ns.Name(), DeploymentName: deployment, BuildId: step.BuildID, Percentage: step.Percentage, Identity: bot,
		})
	}
	require.NoError(e.t, err)
}

// manager sets the manager identity past the proxy.
func (e *env) manager(identity string) {
	e.t.Helper()
	_, err := e.svc.SetWorkerDeploymentManager(e.ctx, &workflowservice.SetWorkerDeploymentManagerRequest{
		Namespace: e.ns.Name(), DeploymentName: deployment, Identity: "someone",
		NewManagerIdentity: &workflowservice.SetWorkerDeploymentManagerRequest_ManagerIdentity{ManagerIdentity: identity},
	})
	require.NoError(e.t, err)
}

func (e *env) count(query string) int64 {
	e.t.Helper()
	resp, err := e.svc.CountWorkflowExecutions(e.ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: e.ns.Name(), Query: query})
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

// workflow starts a workflow and gives its ID; the version "" means wherever the routing sends it.
func (e *env) workflow(kind, build string) string {
	e.t.Helper()
	options := client.StartWorkflowOptions{ID: fmt.Sprintf("%s-%d", kind, time.Now().UnixNano()), TaskQueue: queue}
	if build != "" {
		options.VersioningOverride = &client.PinnedVersioningOverride{
			Version: worker.WorkerDeploymentVersion{DeploymentName: deployment, BuildID: build},
		}
	}
	e.eventually(func(ctx context.Context) error {
		_, err := e.client.ExecuteWorkflow(ctx, options, kind)
		return err
	})
	return options.ID
}

// methods are the mutating calls that came through the proxy and that the server accepted.
func (e *env) methods() []string {
	out := []string{}
	for _, c := range e.ns.Calls() {
		if c.Accepted {
			out = append(out, c.Method)
		}
	}
	return out
}

func configAt(clock func() time.Time) temporal.Config { return temporal.Config{Clock: clock} }
