package temporal_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/logtest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// shared is the one server of this test binary; each test has a namespace of its own on it.
var shared *temporalenv.Server

func TestMain(m *testing.M) {
	// The tests wait more than they compute.
	os.Exit(temporalenv.Main(m, 8, func(server *temporalenv.Server) { shared = server }))
}

const (
	deployment = temporalenv.DeploymentName
	queue      = "checkout"
	queue2     = "receipts"
	bot        = "rampart/test"
)

var name = rollout.Name{Namespace: "shop", Name: "checkout"}

// env is one worker deployment, and a pool that reaches it through the recording proxy.
type env struct {
	*temporalenv.WorkerDeployment
	pool  *temporal.Pool
	log   logtest.Buffer
	sites *announced
}

func newEnv(t *testing.T, settings ...temporalenv.Setting) *env {
	t.Helper()
	e := &env{WorkerDeployment: temporalenv.NewWorkerDeployment(t, shared, images(), settings...), sites: &announced{}}
	e.pool = e.newPool(temporal.Config{})
	return e
}

func (e *env) newPool(cfg temporal.Config) *temporal.Pool {
	cfg.Log = slog.New(slog.NewTextHandler(&e.log, nil))
	cfg.Identity = "rampart@test"
	cfg.OnWrite = e.sites.add
	if cfg.Limits == (temporal.Budget{}) {
		fast := temporal.Rate{PerSecond: 1000, Burst: 1000}
		cfg.Limits = temporal.Budget{Describe: fast, Queue: fast, Visibility: fast, Change: fast}
	}
	p := temporal.New(cfg)
	e.T.Cleanup(p.Close)
	return p
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

func (e *env) connection() v1alpha1.Connection { return connection(e.NS.Server().Address()) }

func connection(hostPort string) v1alpha1.Connection {
	return v1alpha1.Connection{
		Metadata: v1alpha1.ObjectMeta{Namespace: "shop", Name: "main"}, Spec: v1alpha1.ConnectionSpec{HostPort: hostPort},
	}
}

func (e *env) subject() rollout.Subject {
	return rollout.Subject{Connection: e.connection(), TemporalNamespace: e.NS.Name(), Deployment: name, Identity: bot}
}

// observe asks for what ask says, of the deployment in the namespace.
func (e *env) observe(ask rollout.Ask) rollout.Observation {
	e.T.Helper()
	ask.Deployment, ask.TemporalNamespace = name, e.NS.Name()
	return e.pool.Observe(e.Ctx, e.connection(), ask)
}

// mustObserve is observe of what can be read.
func (e *env) mustObserve(ask rollout.Ask) rollout.Observation {
	e.T.Helper()
	obs := e.observe(ask)
	require.Nil(e.T, obs.Problem)
	require.Equal(e.T, rollout.Yes, obs.Exists)
	return obs
}

// call is a routing call on the routing as it is, by the bot, which owns it.
func (e *env) call(steps ...rollout.RoutingStep) rollout.RoutingCall {
	e.T.Helper()
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

func (e *env) raise(steps ...rollout.RoutingStep) {
	e.T.Helper()
	require.NoError(e.T, e.pool.Raise(e.Ctx, e.subject(), e.call(steps...)))
}

func (e *env) routing() rollout.RoutingConfig {
	e.T.Helper()
	return e.mustObserve(rollout.Ask{}).Routing
}

// someone sets the routing past the proxy, as another person with the manager's identity would.
func (e *env) someone(step rollout.RoutingStep) {
	e.T.Helper()
	var err error
	if step.Kind == rollout.SetCurrent {
		_, err = e.Service.SetWorkerDeploymentCurrentVersion(e.Ctx, &workflowservice.SetWorkerDeploymentCurrentVersionRequest{
			Namespace: e.NS.Name(), DeploymentName: deployment, BuildId: step.BuildID, Identity: bot,
		})
	} else {
		_, err = e.Service.SetWorkerDeploymentRampingVersion(e.Ctx, &workflowservice.SetWorkerDeploymentRampingVersionRequest{
			Namespace: e.NS.Name(), DeploymentName: deployment, BuildId: step.BuildID, Percentage: step.Percentage, Identity: bot,
		})
	}
	require.NoError(e.T, err)
}

// manager sets the manager identity past the proxy.
func (e *env) manager(identity string) {
	e.T.Helper()
	_, err := e.Service.SetWorkerDeploymentManager(e.Ctx, &workflowservice.SetWorkerDeploymentManagerRequest{
		Namespace: e.NS.Name(), DeploymentName: deployment, Identity: "someone",
		NewManagerIdentity: &workflowservice.SetWorkerDeploymentManagerRequest_ManagerIdentity{ManagerIdentity: identity},
	})
	require.NoError(e.T, err)
}

// workflow starts a workflow and gives its ID; the version "" means wherever the routing sends it.
func (e *env) workflow(kind, build string) string {
	e.T.Helper()
	options := client.StartWorkflowOptions{ID: fmt.Sprintf("%s-%d", kind, time.Now().UnixNano()), TaskQueue: queue}
	if build != "" {
		options.VersioningOverride = &client.PinnedVersioningOverride{
			Version: worker.WorkerDeploymentVersion{DeploymentName: deployment, BuildID: build},
		}
	}
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Client.ExecuteWorkflow(ctx, options, kind)
		return err
	})
	return options.ID
}

// methods are the mutating calls that came through the proxy and that the server accepted.
func (e *env) methods() []string {
	out := []string{}
	for _, c := range e.NS.Calls() {
		if c.Accepted {
			out = append(out, c.Method)
		}
	}
	return out
}

func configAt(clock func() time.Time) temporal.Config { return temporal.Config{Clock: clock} }
