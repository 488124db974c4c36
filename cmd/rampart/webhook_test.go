package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Webhooks are about the branches that the last cycle could read, and about all before the first one.
func TestWatchedBranches(t *testing.T) {
	l := &loop{}
	watched := func() (out []string) {
		for _, b := range []string{"main", "deploy", "feature"} {
			if l.watched(b, "main") {
				out = append(out, b)
			}
		}
		return out
	}
	output := func(branch string) rollout.EnvironmentWorld {
		return rollout.EnvironmentWorld{Environment: v1alpha1.Environment{Output: v1alpha1.Output{Branch: branch}}}
	}
	require.Equal(t, []string{"main", "deploy", "feature"}, watched())
	l.watch(rollout.World{Environments: []rollout.EnvironmentWorld{output(""), output("deploy")}})
	require.Equal(t, []string{"main", "deploy"}, watched())
	l.watch(rollout.World{})
	require.Equal(t, []string{"main", "deploy"}, watched(), "a configuration that cannot be read changes nothing")
	l.watch(rollout.World{Environments: []rollout.EnvironmentWorld{output("feature")}})
	require.Equal(t, []string{"main", "feature"}, watched())
}
