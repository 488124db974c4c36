package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// now is when these tests happen.
var now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// scene is an Observer that always sees the same; a second read is a moment later.
type scene struct {
	obs   func(rollout.Ask) rollout.Observation
	reads *atomic.Int64
}

func (o scene) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	n := o.reads.Add(1)
	obs := o.obs(ask)
	obs.At = now.Add(-time.Second + time.Duration(n)*time.Millisecond)
	return obs
}

// testApp is an app with a clock that stands still.
func testApp(t *testing.T) (*app, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &app{in: new(bytes.Buffer), out: &out, err: new(bytes.Buffer), now: func() time.Time { return now }, dir: t.TempDir(),
		log: slog.New(slog.DiscardHandler), variable: func(string) (string, bool) { return "", false }}, &out
}

const testSpec = `apiVersion: temporal.io/v1alpha1
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

// queues of the version, polled just now.
func queues() []rollout.TaskQueue {
	return []rollout.TaskQueue{{Name: "checkout", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
		Pollers: rollout.Pollers{Known: true, Count: 2, LastAccess: now}}}
}

// folderSource reads the folder of the app.
func folderSource(t *testing.T, a *app) specSource {
	t.Helper()
	source, _, err := a.source(repositoryFlags{})
	require.NoError(t, err)
	return source
}

// live plans once for each observation, and writes what each plan but the last renders to the folder, as a cycle does.
// With more than two the spec asks for v3 after the first, and v3 is recorded as current after the second.
func live(t *testing.T, a *app, seen ...func(rollout.Ask) rollout.Observation) (rollout.World, [][]*reconcile.Decision) {
	t.Helper()
	var world rollout.World
	var decided [][]*reconcile.Decision
	for i, obs := range seen {
		var err error
		var reads atomic.Int64
		planner, err := a.planner(ends{folderSource(t, a), scene{obs, &reads}, &judges{}, nil}, temporalFlags{})
		require.NoError(t, err)
		world, decided, err = planner.Plan(t.Context())
		require.NoError(t, err)
		if i == len(seen)-1 {
			break
		}
		if len(seen) > 2 {
			text := strings.Replace(testSpec, "unsafeCustomBuildID: v2", "unsafeCustomBuildID: v3", 1)
			require.NoError(t, os.WriteFile(filepath.Join(a.dir, "spec.yaml"), []byte(text), 0o644))
		}
		for _, d := range decided[0] {
			r := reconcile.Render(d)
			require.Empty(t, r.Refused)
			root, err := render.Root(d.Plan.Environment, []string{d.Plan.Deployment.String()})
			require.NoError(t, err)
			for _, f := range append(r.Files, root) {
				if i > 0 { // as if the rollout had gone on from there
					f.Data = strings.ReplaceAll(f.Data, "current: v1\n", "current: v3\n")
				}
				name := filepath.Join(a.dir, f.Path)
				require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
				require.NoError(t, os.WriteFile(name, []byte(f.Data), 0o644))
			}
		}
	}
	return world, decided
}

// What is decided offline on a snapshot is what was decided when it was taken: each value, each byte printed, the exit
// code.
func TestSnapshotDecidesAsLive(t *testing.T) {
	polled := func(ask rollout.Ask) rollout.Observation {
		o := rollout.Observation{Exists: rollout.Yes, ConflictToken: []byte{1, 0, 255}, Routing: rollout.RoutingConfig{Current: "v1", Revision: 7,
			CurrentChangedAt: now.Add(-time.Hour)}, Stuck: rollout.Stuck{Problems: rollout.Count{Known: true}},
			Versions: []rollout.VersionObservation{
				{BuildID: "v1", CreatedAt: now.Add(-time.Hour), BecameCurrentAt: now.Add(-time.Hour), Queues: queues(), QueuesKnown: rollout.Yes},
				{BuildID: "v2", CreatedAt: now.Add(-time.Minute), Queues: queues(), QueuesKnown: rollout.Yes}}}
		if ask.Gate != nil {
			o.Gates = []rollout.GateRun{{WorkflowID: ask.Gate.WorkflowID("checkout"), TaskQueue: "checkout", State: rollout.GateMissing}}
		}
		return o
	}
	unknown := func(ask rollout.Ask) rollout.Observation {
		o := polled(ask)
		o.Versions = o.Versions[:1]
		return o
	}
	passed := func(ask rollout.Ask) rollout.Observation {
		o := polled(ask)
		for i := range o.Gates {
			o.Gates[i].State = rollout.GateCompleted
		}
		return o
	}
	gone := func(rollout.Ask) rollout.Observation {
		return rollout.Observation{Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "no answer"}}
	}
	drained := func(rollout.Ask) rollout.Observation {
		return rollout.Observation{Exists: rollout.Yes, Routing: rollout.RoutingConfig{Current: "v3", CurrentChangedAt: now.Add(-5 * time.Hour)},
			Versions: []rollout.VersionObservation{
				{BuildID: "v2", CreatedAt: now.Add(-9 * time.Hour), Drainage: rollout.Drained, DrainageChangedAt: now.Add(-4 * time.Hour),
					FirstActivatedAt: now.Add(-8 * time.Hour), OpenPinned: rollout.Counted(0)},
				{BuildID: "v3", CreatedAt: now.Add(-6 * time.Hour), BecameCurrentAt: now.Add(-5 * time.Hour), Queues: queues(), QueuesKnown: rollout.Yes}}}
	}
	for name, c := range map[string]struct {
		seen []func(rollout.Ask) rollout.Observation
		code int
		row  string
	}{
		"created":  {[]func(rollout.Ask) rollout.Observation{unknown}, exitPending, "create"},
		"gate":     {[]func(rollout.Ask) rollout.Observation{unknown, polled}, exitPending, "gate"},
		"ramp":     {[]func(rollout.Ask) rollout.Observation{unknown, passed}, exitPending, "first-step"},
		"sunset":   {[]func(rollout.Ask) rollout.Observation{unknown, passed, drained}, exitPending, "complete"},
		"unread":   {[]func(rollout.Ask) rollout.Observation{unknown, gone}, exitError, "temporal-unreadable"},
		"settling": {[]func(rollout.Ask) rollout.Observation{unknown, unknown}, exitFine, "wait-for-pollers"},
	} {
		t.Run(name, func(t *testing.T) {
			a, out := testApp(t)
			require.NoError(t, os.WriteFile(filepath.Join(a.dir, "spec.yaml"), []byte(testSpec), 0o644))
			world, decided := live(t, a, c.seen...)
			require.Equal(t, c.row, decided[0][0].Plan.Row, decided[0][0].Proposal.State.Message)
			data := encoded(t, a, out, observed(world, decided))
			file := filepath.Join(t.TempDir(), "snapshot.json")
			require.NoError(t, os.WriteFile(file, data, 0o644))
			if name == "sunset" {
				require.Contains(t, decided[0][0].Plan.Summary, "scale down v2")
				require.NotNil(t, decided[0][0].Snapshot.FirstRead)
			}
			again, offline, err := a.decideSnapshot(t.Context(), file)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(proposals(decided), proposals(offline)))
			require.Empty(t, cmp.Diff(printed(t, a, out, world, decided), printed(t, a, out, again, offline)))
			require.Equal(t, c.code, codeOf(t.Context(), a.printPlan(formatText, again, offline)))
		})
	}
}

// proposals are what was decided, without the snapshots: those went through JSON.
func proposals(decided [][]*reconcile.Decision) (out []any) {
	for _, env := range decided {
		for _, d := range env {
			out = append(out, d.Proposal, d.Plan.Actions, d.Plan.Held, d.Plan.Verdicts, d.Plan.Raise, d.Plan.Lower, d.Plan.Gates, d.Plan.Record)
		}
	}
	return out
}

// encoded is a value as JSON.
func encoded(t *testing.T, a *app, out *bytes.Buffer, v any) []byte {
	t.Helper()
	out.Reset()
	require.NoError(t, a.encode(formatJSON, v))
	return bytes.Clone(out.Bytes())
}

func printed(t *testing.T, a *app, out *bytes.Buffer, world rollout.World, decided [][]*reconcile.Decision) string {
	t.Helper()
	out.Reset()
	for _, format := range []string{formatText, formatJSON, formatYAML} {
		var e *exit
		if err := a.printPlan(format, world, decided); err != nil && !errors.As(err, &e) {
			out.WriteString(err.Error())
		}
	}
	return out.String()
}

func TestColoursAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	with := func(vars map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	}
	for name, c := range map[string]struct {
		app  app
		want report.Style
	}{
		"terminal":   {app{out: terminal, variable: with(nil)}, report.Coloured},
		"NO_COLOR":   {app{out: terminal, variable: with(map[string]string{"NO_COLOR": "1"})}, report.Plain},
		"empty":      {app{out: terminal, variable: with(map[string]string{"NO_COLOR": ""})}, report.Coloured},
		"--no-color": {app{out: terminal, variable: with(nil), noColor: true}, report.Plain},
		"dumb":       {app{out: terminal, variable: with(map[string]string{"TERM": "dumb"})}, report.Plain},
		"file":       {app{out: file, variable: with(nil)}, report.Plain},
		"buffer":     {app{out: new(bytes.Buffer), variable: with(nil)}, report.Plain},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.app.style()) })
	}
}

// A server that is too busy is asked again, and not for ever.
func TestBusyServerIsAskedAgain(t *testing.T) {
	a, _ := testApp(t)
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "spec.yaml"), []byte(testSpec), 0o644))
	// A read that works is followed by one of what the rows look at.
	for _, c := range []struct{ busy, reads int64 }{{0, 2}, {2, 4}, {99, busyTries}} {
		var reads atomic.Int64
		planner, err := a.planner(ends{folderSource(t, a), scene{func(rollout.Ask) rollout.Observation {
			if reads.Load() <= c.busy {
				return rollout.Observation{Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "too many requests", Busy: true}}
			}
			return rollout.Observation{Exists: rollout.No}
		}, &reads}, &judges{}, nil}, temporalFlags{})
		require.NoError(t, err)
		_, decided, err := patiently(t.Context(), planner, time.Millisecond)
		require.NoError(t, err)
		require.Equal(t, c.reads, reads.Load())
		require.Equal(t, c.busy >= busyTries, decided[0][0].Snapshot.Observation.Problem != nil)
	}
}
