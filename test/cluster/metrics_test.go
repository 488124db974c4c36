package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/test/promtest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// charges is a registry whose activities count how often they are called and fail. Flaky ones fail at first.
type charges struct {
	worker.Registry
	flaky         bool
	total, failed atomic.Int64
}

func (c *charges) RegisterActivityWithOptions(_ any, options activity.RegisterOptions) {
	c.Registry.RegisterActivityWithOptions(func(ctx context.Context) error {
		c.total.Add(1)
		if c.flaky && activity.GetInfo(ctx).Attempt == 1 {
			c.failed.Add(1)
			return errors.New("card reader not ready")
		}
		return nil
	}, options)
}

// serve answers Prometheus on an address.
func (c *charges) serve(address string) error {
	listener, err := net.Listen("tcp", address) //nolint:noctx // until the worker ends
	if err != nil {
		return err
	}
	go func() {
		_ = http.Serve(listener, c) //nolint:gosec // of a test
	}()
	return nil
}

func (c *charges) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "charges_total %d\ncharges_failed_total %d\n", c.total.Load(), c.failed.Load())
}

// prometheus runs a Prometheus that scrapes the pods of the namespace payments, and gives its URL. It labels their
// series as docs/analysis.md has it, which Prometheus' own service discovery of pods does by relabeling.
func (d *delivery) prometheus() string {
	d.t.Helper()
	kubernetes, err := dynamic.NewForConfig(d.server.Config)
	require.NoError(d.t, err)
	pods := kubernetes.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("payments")
	type target struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	discovery := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list, err := pods.List(r.Context(), metav1.ListOptions{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		targets := []target{}
		for _, pod := range list.Items {
			status, _ := pod.Object["status"].(map[string]any)
			if ip, _ := status["podIP"].(string); ip != "" {
				targets = append(targets, target{[]string{ip + ":9090"}, map[string]string{
					"namespace": pod.GetNamespace(), "pod": pod.GetName(), "build_id": pod.GetLabels()[rollout.LabelBuildID]}})
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(targets)
	}))
	d.t.Cleanup(discovery.Close)
	return promtest.StartOnListed(d.t, discovery.URL).URL
}

// judgeByPrometheus has the next rollout judged by the query of docs/analysis.md, in a ramp that ends by nothing else.
func (d *delivery) judgeByPrometheus() {
	d.t.Helper()
	metrics := documentedIn(d.t, "analysis.md", block{"yaml", "charges_failed_total"})
	d.analysis = "\n" + indent(metrics, "    ")
	d.steps = "[{rampPercentage: 50, pauseDuration: 1h}]"
	d.commit("no more than a tenth of all charges may fail", map[string]string{
		"rampart.yaml": `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
  - {name: default, specs: ["workers/**"], output: {path: deploy}, data: [limits.yaml]}
`,
		"limits.yaml": `rampart:
  config:
    rollout:
      metrics: {thresholds: [{metric: activity_errors, max: 0.1, onBreach: rollback}]}
`})
}

// busy starts workflows one after the other until a wait is over.
func (d *delivery) busy(wait func()) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	var starting sync.WaitGroup
	starting.Go(func() {
		for ctx.Err() == nil {
			run, err := d.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: taskQueue}, temporalenv.Checkout)
			if err == nil {
				_ = run.Get(ctx, nil) // one that fails is what is tested
			}
		}
	})
	defer starting.Wait()
	defer cancel()
	wait()
}

// barred is why a build was turned back, as its record says.
func (d *delivery) barred() string {
	d.t.Helper()
	record := d.host.repo.Git("show", "main:deploy/payments/checkout/routing.yaml")
	_, reason, found := strings.Cut(record, "reason: ")
	require.True(d.t, found, record)
	reason, _, _ = strings.Cut(reason, "\n")
	return reason
}
