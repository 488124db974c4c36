// Package cmdtest has what the tests of several groups of commands share. It has a spec with what Temporal says of it,
// a clock that stands still, and a server that logs a GitHub App in. It does not import cmdutil, so that the tests of
// cmdutil can use it.
package cmdtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Now is the time at which these tests happen.
var Now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// Observer sees the same observation at each read.
type Observer struct {
	Observation func(rollout.Ask) rollout.Observation
	Reads       *atomic.Int64
}

// Observe gives the observation, a millisecond later with each read.
func (o Observer) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	n := o.Reads.Add(1)
	obs := o.Observation(ask)
	obs.At = Now.Add(-time.Second + time.Duration(n)*time.Millisecond)
	return obs
}

// Spec is a worker deployment that rolls out build v2 in two steps behind a gate, and its connection, as YAML.
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
  template:
    spec: {terminationGracePeriodSeconds: 30, containers: [{name: worker, image: "registry.example.com/checkout:v2"}]}
---
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: production, namespace: payments}
spec: {hostPort: "127.0.0.1:1"}
`

// Queues gives the task queues of a version whose workers polled just now.
func Queues() []rollout.TaskQueue {
	return []rollout.TaskQueue{{Name: "checkout", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
		Pollers: rollout.Pollers{Known: true, Count: 2, LastAccess: Now}}}
}
