package cmdtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Now is when these tests happen.
var Now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// Observer is an Observer that always sees the same; a second read is a moment later.
type Observer struct {
	Observation func(rollout.Ask) rollout.Observation
	Reads       *atomic.Int64
}

func (o Observer) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	n := o.Reads.Add(1)
	obs := o.Observation(ask)
	obs.At = Now.Add(-time.Second + time.Duration(n)*time.Millisecond)
	return obs
}

const Spec = `apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: checkout, namespace: payments, annotations: {note: "a < b & c > d"}}
spec:
  replicas: 2
  workerOptions: {connectionRef: {name: production}, temporalNamespace: payments, unsafeCustomBuildID: v2}
  rollout:
    strategy: Progressive
    steps: [{rampPercentage: 5, pauseDuration: 10m}, {rampPercentage: 12.5, pauseDuration: 10m}]
    gate: {workflowType: Smoke, input: {"z": 1.50, "a": "<&>", "n": [1e3, {}]}}
  strategy: {rollingUpdate: {maxSurge: 1}, type: RollingUpdate}
  template: {spec: {terminationGracePeriodSeconds: 30, containers: [{name: worker, image: "registry.example.com/checkout:v2"}]}}
---
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: production, namespace: payments}
spec: {hostPort: "127.0.0.1:1"}
`

// Queues of the version, polled just now.
func Queues() []rollout.TaskQueue {
	return []rollout.TaskQueue{{Name: "checkout", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
		Pollers: rollout.Pollers{Known: true, Count: 2, LastAccess: Now}}}
}
