package temporalenv

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Main runs the tests of a package on one server, so many beside each other unless the command line says otherwise. use
// gets the server before the first test. It is what TestMain gives to os.Exit.
func Main(m *testing.M, parallel int, use func(*Server)) (code int) {
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil { // m.Run reads the command line after this
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	server, err := New(ctx, Options{})
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	use(server)
	code = m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// DeploymentName is the name of a WorkerDeployment in Temporal.
const DeploymentName = "shop/checkout"

// WorkerDeployment is one worker deployment in a Temporal namespace of its own, and the fleet that runs its workers.
type WorkerDeployment struct {
	T       *testing.T
	Ctx     context.Context
	NS      *Namespace
	Service workflowservice.WorkflowServiceClient
	Client  client.Client
	Fleet   *Fleet
	Images  map[string]Image
	// Up are the versions that run: images by build ID.
	Up map[string]string
}

// namespaces counts the namespaces given out: repetitions of a test have their own.
var namespaces atomic.Int64

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// NewWorkerDeployment makes a worker deployment without versions for a test, and has the test run in parallel. Its Ctx
// ends after two minutes.
func NewWorkerDeployment(t *testing.T, server *Server, images map[string]Image, settings ...Setting) *WorkerDeployment {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ns, err := server.Namespace(ctx, fmt.Sprintf("%s-%d", notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"),
		namespaces.Add(1)), settings...)
	require.NoError(t, err)
	c, err := ns.Client(ctx)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	fleet := NewFleet(FleetConfig{Images: images})
	t.Cleanup(fleet.Close)
	t.Cleanup(func() {
		if t.Failed() {
			ns.LogOwnWorkflows(t)
		}
	})
	return &WorkerDeployment{T: t, Ctx: ctx, NS: ns, Service: ns.Service(), Client: c, Fleet: fleet, Images: images,
		Up: map[string]string{}}
}

// Version names a version of the worker deployment.
func Version(build string) *deploymentpb.WorkerDeploymentVersion {
	return &deploymentpb.WorkerDeploymentVersion{DeploymentName: DeploymentName, BuildId: build}
}

// WorkerManifest is the Kubernetes Deployment of a version: its workers poll a Temporal namespace at an address.
func WorkerManifest(address, namespace, build, image string, replicas int) string {
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
            - {name: TEMPORAL_DEPLOYMENT_NAME, value: %[6]s}
            - {name: TEMPORAL_WORKER_BUILD_ID, value: %[3]q}
`, address, namespace, build, image, replicas, DeploymentName)
}

// Start runs versions of an image, and returns when the server knows all of their task queues.
func (d *WorkerDeployment) Start(image string, builds ...string) {
	d.T.Helper()
	for _, b := range builds {
		d.Up[b] = image
	}
	d.Apply()
	for _, b := range builds {
		d.Eventually(func(ctx context.Context) error {
			is, err := d.Service.DescribeWorkerDeploymentVersion(ctx,
				&workflowservice.DescribeWorkerDeploymentVersionRequest{
					Namespace: d.NS.Name(), DeploymentVersion: Version(b),
				})
			if err != nil {
				return err
			}
			want := 2 * len(d.Images[image].TaskQueues) // a worker asks for activities, too, where it registers none
			if got := len(is.GetVersionTaskQueues()); got < want {
				return fmt.Errorf("%s has %d of %d queues", b, got, want)
			}
			return nil
		})
	}
}

// Stop stops versions, and returns when their pods have ended.
func (d *WorkerDeployment) Stop(builds ...string) {
	d.T.Helper()
	for _, b := range builds {
		delete(d.Up, b)
	}
	d.Apply()
}

// Apply gives the fleet the manifests of the versions that are Up.
func (d *WorkerDeployment) Apply() {
	d.T.Helper()
	var stream strings.Builder
	for _, b := range slices.Sorted(maps.Keys(d.Up)) {
		stream.WriteString("---\n" + WorkerManifest(d.NS.Server().Address(), d.NS.Name(), b, d.Up[b], 1))
	}
	require.NoError(d.T, d.Fleet.Apply([]byte(stream.String())))
	require.NoError(d.T, d.Fleet.WaitReady(d.Ctx))
}

// Eventually waits until a check has no error.
func (d *WorkerDeployment) Eventually(check func(context.Context) error) {
	d.T.Helper()
	require.NoError(d.T, Until(d.Ctx, check))
}

// Count counts the workflows that a visibility query finds.
func (d *WorkerDeployment) Count(query string) int64 {
	d.T.Helper()
	resp, err := d.Service.CountWorkflowExecutions(d.Ctx,
		&workflowservice.CountWorkflowExecutionsRequest{Namespace: d.NS.Name(), Query: query})
	require.NoError(d.T, err)
	return resp.GetCount()
}

// AwaitCount waits until a visibility query finds so many workflows.
func (d *WorkerDeployment) AwaitCount(query string, want int64) {
	d.T.Helper()
	d.Eventually(func(context.Context) error {
		if got := d.Count(query); got != want {
			return fmt.Errorf("%d workflows, not %d: %s", got, want, query)
		}
		return nil
	})
}
