package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFeatureMissingIn(t *testing.T) {
	for version, want := range map[string]bool{
		"1.29.1": true, "1.29": true, "0.99.0": true, "1.30.0": false, "1.32.0": false, "2.0.0": false, "1.30.0-rc.1": false, "": false, "dev": false,
	} {
		require.Equal(t, want, ReportedProblems.MissingIn(version), version)
	}
	require.Equal(t, "Temporal 1.29.1 cannot move a workflow for one task (1.32 or later can): sunset.evacuate.moveTo waits. "+
		"Upgrade the server to 1.32 or later", OneTimeOverrides.OlderServer("1.29.1"))
}
