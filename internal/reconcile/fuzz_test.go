package reconcile_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const fuzzedSpec = `apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: payments}
spec:
  replicas: 1
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: payments-prod}
  rollout: {strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1m}], gate: {workflowType: Check}}
  template: {spec: {containers: [{name: worker, image: "app:v1"}]}}
---
apiVersion: temporal.io/v1alpha1
kind: TemporalConnection
metadata: {name: temporal, namespace: payments}
spec: {hostPort: "localhost:7233"}
`

// agrees is a policy that allows everything and keeps drift as it is.
type agrees struct{}

func (agrees) Judge(_ context.Context, _ rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	v := rollout.Verdicts{Spec: rollout.Verdict{Effect: rollout.Allow}, Actions: map[string]rollout.Verdict{}}
	for _, a := range p.Actions {
		v.Actions[a.ID] = rollout.Verdict{Effect: rollout.Allow, Drift: rollout.DriftRevert}
	}
	return v
}

func (agrees) Digest() string { return "" }

func (agrees) Looks() rollout.Looks { return rollout.Looks{} }

// said is one of the things that Temporal may say beside a record.
func said(kind byte, now time.Time, s rollout.Snapshot) rollout.Observation {
	o := rollout.Observation{At: now, Exists: rollout.Yes}
	switch kind % 4 {
	case 0:
		o.Problem = &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "away"}
		return o
	case 1:
		o.Exists = rollout.No
		return o
	}
	var rec v1alpha1.RoutingSpec
	if s.Record.Routing != nil {
		rec = s.Record.Routing.Spec
	}
	for _, v := range rec.Versions {
		o.Versions = append(o.Versions, rollout.VersionObservation{BuildID: v.BuildID, CreatedAt: now.Add(-time.Hour), QueuesKnown: rollout.Yes,
			Drainage: rollout.Drained, DrainageChangedAt: now.Add(-48 * time.Hour), FirstActivatedAt: now.Add(-50 * time.Hour), DeactivatedAt: now.Add(-49 * time.Hour),
			OpenPinned: rollout.Count{Known: true},
			Queues: []rollout.TaskQueue{{Name: "q", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
				Pollers: rollout.Pollers{Known: true, Count: 1, LastAccess: now}}}})
	}
	if rec.Basis != nil && kind%8 < 4 {
		o.Routing.Current, o.Routing.Revision = rec.Basis.Current, rec.Basis.Revision
		o.Routing.CurrentChangedAt, o.Routing.RampingChangedAt, o.Routing.PercentageChangedAt = rec.Basis.CurrentChangedAt.Time, rec.Basis.RampingChangedAt.Time, rec.Basis.PercentageChangedAt.Time
		if r := rec.Basis.Ramping; r != nil && r.Percentage > 0 {
			o.Routing.HasRamp, o.Routing.Ramping, o.Routing.Percentage = true, r.BuildID, float32(r.Percentage)
		}
		return o
	}
	if n := len(o.Versions); n > 0 && kind%4 == 3 {
		o.Routing = rollout.RoutingConfig{Current: o.Versions[n-1].BuildID, CurrentChangedAt: now.Add(-time.Hour)}
		if n > 1 {
			o.Routing.HasRamp, o.Routing.Ramping, o.Routing.Percentage, o.Routing.PercentageChangedAt = true, o.Versions[0].BuildID, 50, now.Add(-time.Minute)
		}
	}
	return o
}

// Whatever anybody wrote into a spec, a record, a status and more files, and whatever Temporal says, a decision is made
// without a panic. Nothing that must never happen is decided. What is written is in the output, and can be read again.
func FuzzDecide(f *testing.F) {
	routing, err := os.ReadFile(filepath.Join("..", "..", "gitops", "api", "v1alpha1", "testdata", "routing.yaml"))
	require.NoError(f, err)
	for kind := range byte(8) {
		f.Add(fuzzedSpec, string(routing), fuzzedSpec, "", kind)
		f.Add(fuzzedSpec, "", "", "kind: WorkerResourceTemplate\n", kind)
		f.Add("", string(routing), fuzzedSpec, fuzzedSpec, kind)
		for _, hostile := range []string{"../../../x", "/x", ".git", "a/../../b", "x\\y", "CON", "a\nb"} {
			for _, field := range []string{"deployment.yaml", "v1-11111111", "v2-22222222", "checkout-v1-11111111", "workers/prod/checkout.yaml"} {
				f.Add(fuzzedSpec, strings.ReplaceAll(string(routing), field, strconv.Quote(hostile)), fuzzedSpec, "", kind)
			}
		}
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, spec, routing, status, more string, kind byte) {
		var files []rollout.TextFile
		for file, text := range map[string]string{"workers/a.yaml": spec, "workers/b.yaml": more,
			"deploy/payments/checkout/routing.yaml": routing, "deploy/payments/checkout/status.yaml": status} {
			if text != "" {
				files = append(files, rollout.TextFile{Path: file, Text: text})
			}
		}
		written := map[string]bool{}
		w, err := index.ReadFiles(files)
		if err != nil {
			return
		}
		start := time.Now()
		for _, env := range w.Environments {
			snapshots := env.Deployments
			for i := range snapshots {
				s := &snapshots[i]
				s.Now, s.Limits = now, rollout.DefaultLimits()
				s.Observation = said(kind, now, *s)
			}
			decisions := reconcile.DecideAll(t.Context(), agrees{}, snapshots)
			for _, d := range decisions {
				require.Empty(t, oracle.Forbidden(d.Snapshot, d.Plan))
			}
			parts, root, err := compose.Files(env, decisions)
			require.NoError(t, err)
			if root != nil {
				files = append(files, rollout.TextFile{Path: root.Path, Text: root.Data})
			}
			for _, p := range parts {
				require.False(t, strings.HasPrefix(p.Refused, "the plan was refused"), p.Refused)
				for _, c := range p.Files {
					require.True(t, strings.HasPrefix(c.Path, env.Environment.Output.Path+"/"), c.Path)
					require.NoError(t, git.CheckPath(c.Path))
					if !c.Delete && c.Blob == "" {
						files = append(files, rollout.TextFile{Path: c.Path, Text: c.Data})
						written[c.Path] = true
					}
				}
			}
		}
		again, err := index.ReadFiles(files)
		require.NoError(t, err)
		for _, env := range again.Environments {
			for _, s := range env.Deployments {
				if p := s.Record.RoutingProblem; p != nil {
					require.False(t, written[s.Record.Dir+"/routing.yaml"], "a record that the bot wrote cannot be read: %s", p.Message)
				}
			}
		}
		require.Less(t, time.Since(start), 10*time.Second)
	})
}
