package inspect

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// live plans once for each observation, and writes what each plan but the last renders to the folder, as a cycle does.
// With more than two the spec asks for v3 after the first, and v3 is recorded as current after the second.
func live(t *testing.T, a *cmdutil.App, seen ...func(rollout.Ask) rollout.Observation) (rollout.World, [][]*rollout.Decision) {
	t.Helper()
	var world rollout.World
	var decided [][]*rollout.Decision
	for i, obs := range seen {
		var err error
		var reads atomic.Int64
		planner, err := a.NewPlanner(cmdutil.PlannerPorts{Source: apptest.FolderSource(t, a), Observer: cmdtest.Observer{Observation: obs, Reads: &reads}, Judges: &cmdutil.Judges{}, Pods: nil}, cmdutil.TemporalFlags{})
		require.NoError(t, err)
		world, decided, err = planner.Plan(t.Context())
		require.NoError(t, err)
		if i == len(seen)-1 {
			break
		}
		if len(seen) > 2 {
			text := strings.Replace(cmdtest.Spec, "unsafeCustomBuildID: v2", "unsafeCustomBuildID: v3", 1)
			require.NoError(t, os.WriteFile(filepath.Join(a.Dir, "spec.yaml"), []byte(text), 0o644))
		}
		for _, d := range decided[0] {
			r := compose.Render(d)
			require.Empty(t, r.Refused)
			root, err := render.Root(d.Plan.Environment, []string{d.Plan.Deployment.String()})
			require.NoError(t, err)
			for _, f := range append(r.Files, root) {
				if i > 0 { // as if the rollout had gone on from there
					f.Data = strings.ReplaceAll(f.Data, "current: v1\n", "current: v3\n")
				}
				name := filepath.Join(a.Dir, f.Path)
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
			CurrentChangedAt: cmdtest.Now.Add(-time.Hour)}, Stuck: rollout.Stuck{Problems: rollout.Count{Known: true}},
			Versions: []rollout.VersionObservation{
				{BuildID: "v1", CreatedAt: cmdtest.Now.Add(-time.Hour), BecameCurrentAt: cmdtest.Now.Add(-time.Hour), Queues: cmdtest.Queues(), QueuesKnown: rollout.Yes},
				{BuildID: "v2", CreatedAt: cmdtest.Now.Add(-time.Minute), Queues: cmdtest.Queues(), QueuesKnown: rollout.Yes}}}
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
		return rollout.Observation{Exists: rollout.Yes, Routing: rollout.RoutingConfig{Current: "v3", CurrentChangedAt: cmdtest.Now.Add(-5 * time.Hour)},
			Versions: []rollout.VersionObservation{
				{BuildID: "v2", CreatedAt: cmdtest.Now.Add(-9 * time.Hour), Drainage: rollout.Drained, DrainageChangedAt: cmdtest.Now.Add(-4 * time.Hour),
					FirstActivatedAt: cmdtest.Now.Add(-8 * time.Hour), OpenPinned: rollout.Counted(0)},
				{BuildID: "v3", CreatedAt: cmdtest.Now.Add(-6 * time.Hour), BecameCurrentAt: cmdtest.Now.Add(-5 * time.Hour), Queues: cmdtest.Queues(), QueuesKnown: rollout.Yes}}}
	}
	for name, c := range map[string]struct {
		seen []func(rollout.Ask) rollout.Observation
		code int
		row  string
	}{
		"created":  {[]func(rollout.Ask) rollout.Observation{unknown}, cmdutil.ExitPending, "create"},
		"gate":     {[]func(rollout.Ask) rollout.Observation{unknown, polled}, cmdutil.ExitPending, "gate"},
		"ramp":     {[]func(rollout.Ask) rollout.Observation{unknown, passed}, cmdutil.ExitPending, "first-step"},
		"sunset":   {[]func(rollout.Ask) rollout.Observation{unknown, passed, drained}, cmdutil.ExitPending, "complete"},
		"unread":   {[]func(rollout.Ask) rollout.Observation{unknown, gone}, cmdutil.ExitFailure, "temporal-unreadable"},
		"settling": {[]func(rollout.Ask) rollout.Observation{unknown, unknown}, cmdutil.ExitFine, "wait-for-pollers"},
	} {
		t.Run(name, func(t *testing.T) {
			a, out := apptest.New(t)
			require.NoError(t, os.WriteFile(filepath.Join(a.Dir, "spec.yaml"), []byte(cmdtest.Spec), 0o644))
			world, decided := live(t, a, c.seen...)
			require.Equal(t, c.row, decided[0][0].Plan.Row, decided[0][0].Proposal.State.Message)
			data := encoded(t, a, out, observed(world, decided))
			file := filepath.Join(t.TempDir(), "snapshot.json")
			require.NoError(t, os.WriteFile(file, data, 0o644))
			if name == "sunset" {
				require.Contains(t, decided[0][0].Plan.Summary, "scale down v2")
				require.NotNil(t, decided[0][0].Snapshot.FirstRead)
			}
			again, offline, err := decideSnapshot(t.Context(), a, file)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(proposals(decided), proposals(offline)))
			require.Empty(t, cmp.Diff(printed(t, a, out, world, decided), printed(t, a, out, again, offline)))
			require.Equal(t, c.code, cmdutil.ExitCode(t.Context(), printPlan(a, cmdutil.FormatText, again, offline)))
		})
	}
}

// proposals are what was decided, without the snapshots: those went through JSON.
func proposals(decided [][]*rollout.Decision) (out []any) {
	for _, env := range decided {
		for _, d := range env {
			out = append(out, d.Proposal, d.Plan.Actions, d.Plan.Held, d.Plan.Verdicts, d.Plan.Raise, d.Plan.Lower, d.Plan.Gates, d.Plan.Record)
		}
	}
	return out
}

// encoded is a value as JSON.
func encoded(t *testing.T, a *cmdutil.App, out *bytes.Buffer, v any) []byte {
	t.Helper()
	out.Reset()
	require.NoError(t, a.Encode(cmdutil.FormatJSON, v))
	return bytes.Clone(out.Bytes())
}

func printed(t *testing.T, a *cmdutil.App, out *bytes.Buffer, world rollout.World, decided [][]*rollout.Decision) string {
	t.Helper()
	out.Reset()
	for _, format := range []string{cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML} {
		var e *cmdutil.ExitError
		if err := printPlan(a, format, world, decided); err != nil && !errors.As(err, &e) {
			out.WriteString(err.Error())
		}
	}
	return out.String()
}
