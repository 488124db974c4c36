package reconcile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// fleet is worker deployments that each ramp and are judged by a metric.
type fleet struct {
	*scene
	// target is the build that all want.
	target string
	// observed are the observations by worker deployment; the others' target ramps.
	observed map[rollout.Name]rollout.RoutingConfig
	// verdicts on the Continue of a target's ramp, by worker deployment.
	verdicts map[rollout.Name]rollout.Verdict
	// events are calls for metrics and what was lowered, in their order; asked what was asked for.
	events []string
	asked  [][]rollout.MetricsQuestion
}

func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{scene: newScene(t), observed: map[rollout.Name]rollout.RoutingConfig{}, verdicts: map[rollout.Name]rollout.Verdict{}}
	env := &f.world.Environments[0]
	first := env.Deployments[0]
	env.Deployments = nil
	for i := range n {
		d := first
		name := fmt.Sprintf("w%03d", i)
		docs, problems := v1alpha1.Decode("spec.yaml", []byte(strings.NewReplacer("name: checkout", "name: "+name,
			"{strategy: AllAtOnce}", "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1m}], analysis: {metrics: ["+
				"{name: errors, maxAge: 1m, prometheus: {query: sum(errors)}}]}}").Replace(specText)))
		require.Empty(t, problems)
		d.Spec, d.Deployment = docs[0].Object.(*v1alpha1.WorkerDeployment), rollout.Name{Namespace: "shop", Name: name}
		d.Record.Dir = "deploy/" + d.Deployment.String()
		env.Deployments = append(env.Deployments, d)
		f.target, _ = rollout.BuildIDFor(d.Spec.Spec, nil)
	}
	return f
}

func (f *fleet) name(i int) rollout.Name { return f.world.Environments[0].Deployments[i].Deployment }

func (f *fleet) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	routing, ok := f.observed[ask.Deployment]
	if !ok {
		routing = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: f.target, Percentage: 10, PercentageChangedAt: f.now.Add(-time.Hour)}
	}
	return rollout.Observation{At: f.now, Exists: rollout.Yes, Routing: routing, ManagerIdentity: "rampart/default"}
}

func (f *fleet) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	v := f.scene.Judge(ctx, s, p)
	for _, a := range p.Actions {
		if own, ok := f.verdicts[s.Deployment]; ok && a.Kind == rollout.Continue && a.BuildID == f.target && s.Facts == nil {
			v.Actions[a.ID] = own
		}
	}
	return v
}

func (f *fleet) Lower(_ context.Context, on rollout.Subject, _ rollout.RoutingCall) error {
	f.events = append(f.events, "lower "+on.Deployment.Name)
	return nil
}

func (f *fleet) Commit(_ context.Context, c rollout.Commit) (string, error) {
	f.commits = append(f.commits, c)
	return fmt.Sprint(len(f.commits)), nil
}

// metricsFunc is a Metrics.
type metricsFunc func([]rollout.MetricsQuestion) []map[string]rollout.Fact

func (m metricsFunc) Read(_ context.Context, questions []rollout.MetricsQuestion) []map[string]rollout.Fact {
	return m(questions)
}

func (f *fleet) reconciler() *Reconciler {
	r := f.scene.reconciler()
	r.Observer, r.Router, r.Committer, r.JudgeFor = f, f, f, func(rollout.EnvironmentWorld) Judge { return f }
	r.Metrics = metricsFunc(func(questions []rollout.MetricsQuestion) []map[string]rollout.Fact {
		f.events = append(f.events, fmt.Sprintf("metrics of %d", len(questions)))
		f.asked = append(f.asked, questions)
		out := make([]map[string]rollout.Fact, len(questions))
		for i := range out {
			out[i] = map[string]rollout.Fact{"errors": {Value: []byte("0"), ObservedAt: f.now, MaxAge: time.Minute}}
		}
		return out
	})
	return r
}

func rollback(rule string) rollout.Verdict {
	return rollout.Verdict{Effect: rollout.RollbackEffect, Findings: []rollout.Finding{{Package: "rampart.rollout", Rule: rule,
		Effect: rollout.RollbackEffect, Message: "bad"}}}
}

// Traffic that is taken back without metrics is taken back before they are waited for, those of other worker
// deployments included. Metrics are read with one call.
func TestLoweringWaitsForNoMetrics(t *testing.T) {
	f := newFleet(t, 4)
	f.observed[f.name(1)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: f.now}
	f.verdicts[f.name(2)] = rollback("rollout.canary")
	f.verdicts[f.name(3)] = rollback("team.no_metric") // it turns back for want of metrics, which were not read yet
	report := f.once(f.reconciler())
	require.Equal(t, []string{"lower w002", "lower w001", "metrics of 2"}, f.events, "what needs no second look at Git goes first")
	require.Equal(t, f.name(0), f.asked[0][0].Snapshot.Deployment)
	require.Equal(t, f.name(3), f.asked[0][1].Snapshot.Deployment)
	require.Equal(t, f.target, f.asked[0][1].Ask.Candidate)
	for i, d := range report.Decisions {
		require.Equal(t, f.name(i), d.Plan.Deployment, "decisions stay in their order")
		require.Equal(t, i == 1 || i == 2, d.Snapshot.Facts == nil)
	}
	require.Len(t, report.Commits, 1)
}

// With the repository away it is the same.
func TestBlindLoweringWaitsForNoMetrics(t *testing.T) {
	f := newFleet(t, 2)
	r := f.reconciler()
	f.once(r)
	f.events, f.readErr = nil, context.DeadlineExceeded
	f.now = f.now.Add(2 * DefaultPatience)
	f.observed[f.name(1)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: f.now}
	_, err := r.Cycle(t.Context())
	require.Error(t, err)
	require.Equal(t, []string{"lower w001", "metrics of 1"}, f.events)
}

// Observing reads metrics too.
func TestObserveMeasures(t *testing.T) {
	f := newFleet(t, 3)
	world, err := f.reconciler().Observe(t.Context())
	require.NoError(t, err)
	for _, s := range world.Environments[0].Deployments {
		require.True(t, s.Facts["errors"].Fresh(s.Now))
	}
	require.Equal(t, []string{"metrics of 3"}, f.events)
}

// While its spec cannot be used, a worker deployment is judged by the last one that could, and by that one's metrics.
func TestMetricsOfTheLastSpec(t *testing.T) {
	f := newFleet(t, 1)
	r := f.reconciler()
	d := &f.world.Environments[0].Deployments[0]
	d.Record.Status = d.Spec
	d.Record.Routing = &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{TemporalNamespace: d.Spec.Spec.WorkerOptions.TemporalNamespace}}
	d.Spec, d.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}}
	report := f.once(r)
	require.Equal(t, []string{"metrics of 1"}, f.events)
	require.Equal(t, "sum(errors)", f.asked[0][0].Ask.Metrics[0].Prometheus.Query)
	require.True(t, report.Decisions[0].Snapshot.Facts["errors"].Fresh(f.now))
}
