package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestUnusableEnvironmentIsQuiet: what is complete stays so while its environment cannot be used, so that one broken
// file does not change every status. An unfinished rollout says so.
func TestUnusableEnvironmentIsQuiet(t *testing.T) {
	complete := all(promoted(5*time.Hour), drained("v1", 4*time.Hour), scaledDown("v1", 4*time.Hour))
	usable, broken := decide(t, of(complete, recorded), allowed), decide(t, of(complete, recorded, noEnvironment), allowed)
	require.Equal(t, "RolloutComplete", condition(broken.Status, v1alpha1.ConditionReady).Reason)
	require.Equal(t, usable.Status.Conditions, broken.Status.Conditions)
	require.Equal(t, usable.Record, broken.Record)
	require.True(t, broken.Settled)

	baking := all(promoted(time.Minute), analysed(func(a *v1alpha1.Analysis) { a.Bake = v1alpha1.Duration{Duration: time.Hour} }))
	p := decide(t, of(baking, recorded, noEnvironment), allowed)
	require.Equal(t, "Ramping", condition(p.Status, v1alpha1.ConditionReady).Reason)
	require.False(t, p.Settled, "it is judged")

	asked := decide(t, of(complete, recorded, wants("v3"), noEnvironment), allowed)
	require.Equal(t, "InvalidConfiguration", condition(asked.Status, v1alpha1.ConditionReady).Reason)
	require.Equal(t, "rampart.yaml:5: no", condition(asked.Status, v1alpha1.ConditionReady).Message)
	both := decide(t, of(complete, recorded, noEnvironment, func(g *given) { invalid(&g.Snapshot, nil) }), allowed)
	require.Equal(t, "InvalidSpec", condition(both.Status, v1alpha1.ConditionReady).Reason, "the spec is broken, too")
	replaced := decide(t, of(complete, recorded, noEnvironment, func(g *given) { g.version("v2").ConnectionHash = "other" }), allowed)
	require.Equal(t, "InvalidConfiguration", condition(replaced.Status, v1alpha1.ConditionReady).Reason, "its files have to change")
	first := of(noEnvironment, func(g *given) { g.Record = rollout.Record{Dir: g.Record.Dir} })
	require.Nil(t, decide(t, first, allowed).Record, "nothing begins")
}
