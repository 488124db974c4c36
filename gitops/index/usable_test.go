package index

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/layout"
)

// Names that are most likely meant to be the configuration's are told from others.
func TestNearMisses(t *testing.T) {
	for _, name := range []string{"rampart.yml", "Rampart.yaml", "RAMPART.YAML", ".rampart.yaml", "rampart.json", "rampart.yaml.txt", "ramprat.yaml", "ramparts.yaml", "rampar.yml",
		"rampart.yaml.bak", "rampart.yaml.disabled", "rampart.yml.old", "rampart.yaml.orig", "rampart.yaml~", "rampart.yaml ", "rampart_yaml", "rampart-config.yaml"} {
		require.True(t, isNearMiss(name), name)
	}
	for _, name := range []string{layout.Config, "rampart", "rampart.md", "rampart.go", "chart.yaml", "party.yaml", "ramp.yaml", "rampart-notes.txt", "rampart.yaml.example", "rampart-policies.yaml", "rampart.yamlist", "config.yaml", "compact.yaml"} {
		require.False(t, isNearMiss(name), name)
	}
}
