package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The worlds of examples/simulations give the timetables that its README tells of, as text and as a chart, twice the
// same.
func TestExampleSimulations(t *testing.T) {
	const example = "../../examples/simulations"
	worlds, err := filepath.Glob(filepath.Join(example, "worlds", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, worlds, 5)
	want := map[string]rollout.Outcome{"healthy": rollout.OutcomeComplete, "failing": rollout.OutcomeTurnedBack,
		"freeze": rollout.OutcomeComplete, "outage": rollout.OutcomeComplete, "evacuation": rollout.OutcomeComplete}
	for _, world := range worlds {
		name := strings.TrimSuffix(filepath.Base(world), ".yaml")
		t.Run(name, func(t *testing.T) {
			deployment, formats := "payments/checkout", []string{formatText, formatMermaid}
			if name == "evacuation" {
				deployment, formats = "payments/reports", append(formats, formatJSON)
			}
			a, out := testApp(t)
			a.dir = example
			simulate := func() []byte {
				table, err := a.simulate(t.Context(), simulation{name: deployment, world: world}, repositoryFlags{})
				require.NoError(t, err)
				require.Equal(t, want[name], table.Outcome)
				archive := &txtar.Archive{}
				for _, format := range formats {
					out.Reset()
					code := exitFine
					if table.Outcome != rollout.OutcomeComplete {
						code = exitPending
					}
					require.Equal(t, code, codeOf(t.Context(), a.printTimetable(format, table)))
					archive.Files = append(archive.Files, txtar.File{Name: format, Data: bytes.Clone(out.Bytes())})
				}
				return txtar.Format(archive)
			}
			got := simulate()
			require.Empty(t, cmp.Diff(string(got), string(simulate())))
			golden := filepath.Join("testdata", "simulations", name+".txtar")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, got, 0o644))
			}
			expected, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(string(expected), string(got)))
		})
	}
}

// Without a time a simulation begins now, and not before what was committed in this second.
func TestSimulationBeginsNow(t *testing.T) {
	a, _ := testApp(t)
	for clock, want := range map[time.Time]time.Time{now: now, now.Add(time.Millisecond): now.Add(time.Second)} {
		a.now = func() time.Time { return clock }
		script, err := a.script(simulation{})
		require.NoError(t, err)
		require.Equal(t, want, script.At.Time)
	}
}

// The world in docs/simulate.md is the one that is there without any.
func TestDocumentedWorld(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulate.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	a, _ := testApp(t)
	a.in = strings.NewReader(block)
	world, err := a.readWorld("-")
	require.NoError(t, err)
	require.False(t, world.At.IsZero())
	world.At = v1alpha1.Time{}
	require.Equal(t, v1alpha1.DefaultSimulation(), world)
}
