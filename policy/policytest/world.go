package policytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Now is the time of the world: a Tuesday.
var Now = time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)

const specYAML = `apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata:
  name: checkout
  namespace: payments
  labels: {tier: gold}
spec:
  replicas: 3
  workerOptions:
    connectionRef: {name: prod}
    temporalNamespace: payments
  rollout:
    strategy: Progressive
    steps:
      - rampPercentage: 10
        pauseDuration: 10m
      - rampPercentage: 50
        pauseDuration: 10m
  sunset: {scaledownDelay: 1h, deleteDelay: 24h}
  template:
    metadata:
      labels: {app: checkout}
    spec:
      serviceAccountName: checkout
      containers:
        - name: worker
          image: %s
          args: ["--queue", "checkout"]
          env:
            - {name: LOG_LEVEL, value: info}
            - {name: REGION, value: eu-central-1}
          resources:
            requests: {cpu: 500m, memory: 512Mi}
            limits: {memory: 512Mi}
          readinessProbe:
            httpGet: {path: /healthz, port: 8080}
            periodSeconds: 10
`

// Spec is a worker deployment with an image.
func Spec(t testing.TB, image string) *v1alpha1.WorkerDeployment {
	t.Helper()
	docs, problems := v1alpha1.Decode("workers/checkout.yaml", fmt.Appendf(nil, specYAML, image))
	require.Empty(t, problems)
	require.Len(t, docs, 1)
	return docs[0].Object.(*v1alpha1.WorkerDeployment)
}

// Ago is a time before Now.
func Ago(d time.Duration) time.Time { return Now.Add(-d) }

// Stamp is a time before Now, as records have it.
func Stamp(d time.Duration) v1alpha1.Time { return v1alpha1.NewTime(Ago(d)) }

// Snapshot is a rollout in motion: v2 is current, v3 ramps at 10%, v1 is drained.
func Snapshot(t testing.TB) rollout.Snapshot {
	queue := func(pollers int) []rollout.TaskQueue {
		return []rollout.TaskQueue{{Name: "checkout", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
			Pollers: rollout.Pollers{Known: true, Count: pollers, LastAccess: Ago(5 * time.Second)}}}
	}
	three := int32(3)
	recorded := func(id string, created time.Duration) v1alpha1.RecordedVersion {
		return v1alpha1.RecordedVersion{BuildID: id, BuildIDFrom: v1alpha1.BuildIDTemplate, TemplateHash: "hash-" + id,
			Deployment: "checkout-" + id,
			CreatedAt:  Stamp(created), Replicas: &three, Guard: v1alpha1.GuardOn, Attempts: 1,
			RoutedAt: Stamp(created)}
	}
	return rollout.Snapshot{
		Now:        Now,
		Deployment: rollout.Name{Namespace: "payments", Name: "checkout"},
		Environment: v1alpha1.Environment{Name: "prod", ManagerIdentity: "rampart/prod",
			CD:       v1alpha1.CD{Tool: v1alpha1.ArgoCD},
			Approval: v1alpha1.Approval{Mode: v1alpha1.Direct, Scope: v1alpha1.ScopeStep},
			Output:   v1alpha1.Output{Path: "deploy/prod"}},
		Git: rollout.GitContext{Branch: "main", Commit: "c0ffee", Author: "Ada <ada@example.com>",
			When: Ago(time.Hour), Message: "checkout 3"},
		Spec:     Spec(t, "registry.example/checkout:3.0.0"),
		SpecPath: "workers/checkout.yaml",
		Record: rollout.Record{Dir: "deploy/prod/payments/checkout",
			Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{
				WorkerDeployment: "payments/checkout",
				Desired: v1alpha1.DesiredRouting{Current: "v2",
					Ramping: &v1alpha1.DesiredRamp{BuildID: "v3", Percentage: 10}},
				Target: &v1alpha1.RoutingTarget{BuildID: "v3", TemplateHash: "hash-v3", Attempt: 1,
					Since: Stamp(time.Hour)},
				Versions: []v1alpha1.RecordedVersion{recorded("v1", 90*24*time.Hour),
					recorded("v2", 30*24*time.Hour), recorded("v3", time.Hour)},
				Promotions: []v1alpha1.Promotion{
					{BuildID: "v1", At: Stamp(89 * 24 * time.Hour), LeftAt: Stamp(29 * 24 * time.Hour),
						LeftBy: v1alpha1.LeftByPromotion},
					{BuildID: "v2", At: Stamp(29 * 24 * time.Hour)},
				},
			}}},
		Observation: rollout.Observation{
			At: Ago(2 * time.Second), Exists: rollout.Yes, ManagerIdentity: "rampart/prod", Propagating: rollout.No,
			Routing: rollout.RoutingConfig{Current: "v2", Ramping: "v3", HasRamp: true, Percentage: 10, Revision: 7,
				CurrentChangedAt: Ago(29 * 24 * time.Hour), RampingChangedAt: Ago(15 * time.Minute),
				PercentageChangedAt: Ago(15 * time.Minute)},
			Versions: []rollout.VersionObservation{
				{BuildID: "v1", CreatedAt: Ago(90 * 24 * time.Hour), Drainage: rollout.Drained,
					DrainageChangedAt: Ago(28 * 24 * time.Hour),
					FirstActivatedAt:  Ago(89 * 24 * time.Hour), OpenPinned: rollout.Counted(0),
					QueuesKnown: rollout.Yes, Queues: queue(1)},
				{BuildID: "v2", CreatedAt: Ago(30 * 24 * time.Hour), FirstActivatedAt: Ago(29 * 24 * time.Hour),
					BecameCurrentAt: Ago(29 * 24 * time.Hour),
					QueuesKnown:     rollout.Yes, Queues: queue(3), Closed: rollout.ClosedCounts{Known: true,
						Since: Ago(15 * time.Minute), Completed: 900, Failed: 4}},
				{BuildID: "v3", CreatedAt: Ago(50 * time.Minute), FirstActivatedAt: Ago(15 * time.Minute),
					QueuesKnown: rollout.Yes, Queues: queue(3),
					Closed: rollout.ClosedCounts{Known: true, Since: Ago(15 * time.Minute), Completed: 98, Failed: 1}},
			},
			Stuck: rollout.Stuck{Since: Ago(15 * time.Minute), Unattributed: rollout.Counted(0),
				Problems: rollout.Counted(0)},
		},
		Facts: map[string]rollout.Fact{
			"error_rate": {Value: []byte("0.4"), ObservedAt: Ago(30 * time.Second), MaxAge: 2 * time.Minute,
				Source: "prometheus"},
			"latency": {Value: []byte("120"), ObservedAt: Ago(30 * time.Minute), MaxAge: 2 * time.Minute,
				Source: "prometheus"},
		},
		Limits: rollout.DefaultLimits(),
	}
}

// Ramp raises v3.
func Ramp() rollout.Action {
	return rollout.Action{ID: "Ramp/v3@50%", Kind: rollout.Ramp, BuildID: "v3", From: 10, To: 50, Step: 2, Steps: 2,
		Row: "next-step", Reason: "ramp v3 from 10% to 50%"}
}

// Reset takes all from v3.
func Reset() rollout.Action {
	return rollout.Action{ID: "ResetRamp/v3", Kind: rollout.ResetRamp, BuildID: "v3", From: 10,
		Cause: rollout.CauseSpec, Row: "reset", Reason: "the spec asks for v2"}
}

// Proposal is what a cycle asks: go on, keep, keep, scale down.
func Proposal(actions ...rollout.Action) rollout.Proposal {
	if actions == nil {
		zero := int32(0)
		actions = []rollout.Action{
			Ramp(),
			{ID: "Continue/v2", Kind: rollout.Continue, BuildID: "v2", From: 90, To: 90, Row: "continue"},
			{ID: "Continue/v3", Kind: rollout.Continue, BuildID: "v3", From: 10, To: 10, Row: "continue"},
			{ID: "ScaleDown/v1", Kind: rollout.ScaleDown, BuildID: "v1", Replicas: &zero, Row: "scale-down"},
		}
	}
	return rollout.Proposal{Row: "next-step", State: rollout.State{Reason: rollout.Ramping,
		Message: "v3 gets 10% of new workflows"}, Actions: actions,
		Target: &rollout.Target{BuildID: "v3", BuildIDFrom: v1alpha1.BuildIDTemplate, TemplateHash: "hash-v3",
			Deployment: "checkout-v3", Attempt: 1, Since: Ago(time.Hour), Status: rollout.StatusRamping}}
}
