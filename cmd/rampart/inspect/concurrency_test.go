package inspect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Two worker deployments could start in the same cycle where policy lets one. A plan, one made of a snapshot of it, and
// the explanation of that say which one waits, and for whom.
func TestOneRolloutAtATime(t *testing.T) {
	a, out := apptest.New(t)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(a.Dir, name), []byte(text), 0o644))
	}
	write("rampart.yaml", "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n    - name: prod\n      specs: [\"*.yaml\"]\n"+
		"      output: {path: deploy}\n      data: [data/*.yaml]\n")
	require.NoError(t, os.Mkdir(filepath.Join(a.Dir, "data"), 0o755))
	write("data/limits.yaml", "rampart: {config: {rollout: {concurrency: {max: 1}}}}\n")
	spec := strings.Replace(cmdtest.Spec, "    gate: {workflowType: Smoke, input: {\"z\": 1.50, \"a\": \"<&>\", \"n\": [1e3, {}]}}\n", "", 1)
	write("spec.yaml", spec)
	refunds, _, _ := strings.Cut(strings.Replace(spec, "name: checkout,", "name: refunds,", 1), "---\n")
	write("refunds.yaml", refunds)

	ready := func(rollout.Ask) rollout.Observation {
		return rollout.Observation{Exists: rollout.Yes, Routing: rollout.RoutingConfig{Current: "v1", CurrentChangedAt: cmdtest.Now.Add(-time.Hour)},
			ManagerIdentity: "rampart/prod",
			Stuck:           rollout.Stuck{Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)},
			Versions: []rollout.VersionObservation{
				{BuildID: "v1", CreatedAt: cmdtest.Now.Add(-time.Hour), BecameCurrentAt: cmdtest.Now.Add(-time.Hour), Queues: cmdtest.Queues(), QueuesKnown: rollout.Yes},
				{BuildID: "v2", CreatedAt: cmdtest.Now.Add(-time.Minute), Queues: cmdtest.Queues(), QueuesKnown: rollout.Yes}}}
	}
	world, decided := live(t, a, ready, ready)
	waits := func(decided [][]*rollout.Decision) map[string]string {
		out := map[string]string{}
		for _, d := range decided[0] {
			for _, h := range d.Plan.Held {
				out[d.Plan.Deployment.Name] = h.Verdict.Findings[0].Rule + ": " + h.Verdict.Findings[0].Message
			}
		}
		return out
	}
	want := map[string]string{"refunds": "rollout.concurrency: 1 of at most 1 rollouts at a time are in progress: payments/checkout"}
	require.Equal(t, want, waits(decided))
	require.NotNil(t, decided[0][0].Plan.Raise)

	data := encoded(t, a, out, observed(world, decided))
	file := filepath.Join(t.TempDir(), "snapshot.json")
	require.NoError(t, os.WriteFile(file, data, 0o644))
	again, offline, err := decideSnapshot(t.Context(), a, file)
	require.NoError(t, err)
	require.Equal(t, want, waits(offline))
	require.Empty(t, cmp.Diff(printed(t, a, out, world, decided), printed(t, a, out, again, offline)))

	seen := observed(world, decided)
	for i := range seen.Environments[0].Deployments { // as rampart observe writes it, before anything was decided
		seen.Environments[0].Deployments[i].Rollouts = nil
	}
	data = encoded(t, a, out, seen)
	require.NoError(t, os.WriteFile(file, data, 0o644))
	e, err := explainSnapshot(t.Context(), a, "payments/refunds", explainFlags{snapshot: file})
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, e.WriteText(out, report.View{Style: a.Style(), Now: cmdtest.Now}))
	require.Contains(t, out.String(), "payments/checkout")
}
