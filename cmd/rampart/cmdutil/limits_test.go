package cmdutil

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The limit of versions is a setting, and a default where it is not set.
func TestMaxVersions(t *testing.T) {
	var f TemporalFlags
	require.Equal(t, rollout.DefaultLimits(), f.limits())
	require.Equal(t, "75", f.maxVersions.String())
	for _, bad := range []string{"0", "1", "-3", "many", ""} {
		require.ErrorContains(t, f.maxVersions.Set(bad), "want a whole number of 2 or more")
	}
	require.NoError(t, f.maxVersions.Set("7"))
	p, err := (&App{}).NewPlanner(PlannerPorts{Judges: &Judges{}}, f)
	require.NoError(t, err)
	require.Equal(t, 7, p.Limits.MaxVersions)
	require.Equal(t, rollout.DefaultLimits().FactMaxAge, p.Limits.FactMaxAge)
}
