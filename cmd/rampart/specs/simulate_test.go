package specs

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The worlds of examples/simulations give the timetables that its README tells of, as text and as a chart, twice the
// same.
func TestExampleSimulations(t *testing.T) {
	testneed.Plain(t)
	const example = "../../../examples/simulations"
	worlds, err := filepath.Glob(filepath.Join(example, "worlds", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, worlds, 5)
	want := map[string]rollout.Outcome{"healthy": rollout.OutcomeComplete, "failing": rollout.OutcomeTurnedBack,
		"freeze": rollout.OutcomeComplete, "outage": rollout.OutcomeComplete, "evacuation": rollout.OutcomeComplete}
	for _, world := range worlds {
		name := strings.TrimSuffix(filepath.Base(world), ".yaml")
		t.Run(name, func(t *testing.T) {
			deployment, formats := "payments/checkout", []string{cmdutil.FormatText, formatMermaid}
			if name == "evacuation" {
				deployment, formats = "payments/reports", append(formats, cmdutil.FormatJSON)
			}
			a, out := apptest.New(t)
			a.Dir = example
			simulate := func() []byte {
				table, err := simulate(t.Context(), a, simulation{name: deployment, world: world}, cmdutil.RepositoryFlags{})
				require.NoError(t, err)
				require.Equal(t, want[name], table.Outcome)
				archive := &txtar.Archive{}
				for _, format := range formats {
					out.Reset()
					code := cmdutil.ExitFine
					if table.Outcome != rollout.OutcomeComplete {
						code = cmdutil.ExitPending
					}
					require.Equal(t, code, cmdutil.ExitCode(t.Context(), printTimetable(a, format, table)))
					archive.Files = append(archive.Files, txtar.File{Name: format, Data: bytes.Clone(out.Bytes())})
				}
				return txtar.Format(archive)
			}
			got := simulate()
			if name == "failing" {
				readme, err := os.ReadFile(filepath.Join(example, "README.md"))
				require.NoError(t, err)
				require.Contains(t, string(readme), "```mermaid\n"+out.String()+"```")
			}
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
	a, _ := apptest.New(t)
	for clock, want := range map[time.Time]time.Time{cmdtest.Now: cmdtest.Now, cmdtest.Now.Add(time.Millisecond): cmdtest.Now.Add(time.Second)} {
		a.Now = func() time.Time { return clock }
		script, err := script(a, simulation{})
		require.NoError(t, err)
		require.Equal(t, want, script.At.Time)
	}
}

// The world in docs/simulate.md is the one that is there without any.
func TestDocumentedWorld(t *testing.T) {
	page, err := os.ReadFile("../../../docs/simulate.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	a, _ := apptest.New(t)
	a.In = strings.NewReader(block)
	world, err := readWorld(a, "-")
	require.NoError(t, err)
	require.False(t, world.At.IsZero())
	world.At = v1alpha1.Time{}
	require.Equal(t, v1alpha1.DefaultSimulation(), world)
}
