package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

func TestOlderServerIsTold(t *testing.T) {
	onServer := func(version string) change { return func(g *given) { g.Observation.ServerVersion = version } }
	analysis := func(g *given) { g.Spec.Spec.Rollout.Analysis = &v1alpha1.Analysis{Window: lasting(time.Minute)} }
	moving := func(target string) change {
		return func(g *given) {
			g.Spec.Spec.Sunset.Evacuate = &v1alpha1.Evacuation{MoveTo: &v1alpha1.EvacuationMove{Target: target, After: lasting(time.Hour)}}
		}
	}
	move := moving(moveToCurrent)
	cancel := func(g *given) { g.Spec.Spec.Sunset.Evacuate = &v1alpha1.Evacuation{CancelAfter: lasting(time.Hour)} }
	told := func(changes ...change) string { return decide(t, of(changes...), allowed).Status.OlderServer }

	counts, moves := rollout.ReportedProblems.OlderServer("1.29.1"), rollout.OneTimeOverrides.OlderServer("1.29.1")
	times := rollout.CurrentTimes.OlderServer("1.29.1")
	require.Equal(t, times, told(onServer("1.29.1")), "that concerns every rollout")
	require.Equal(t, times, told(onServer("1.29.1"), cancel))
	require.Empty(t, told(onServer("1.31.2"), cancel), "nothing that is asked for is missing")
	require.Empty(t, told(onServer("1.32.0"), analysis, move))
	require.Empty(t, told(analysis, move), "the release is not known")
	require.Equal(t, counts+". "+times, told(onServer("1.29.1"), analysis))
	require.Equal(t, times+". "+moves, told(onServer("1.29.1"), move))
	require.Equal(t, counts+". "+times+". "+moves, told(onServer("1.29.1"), analysis, move))
	require.Equal(t, rollout.OneTimeOverrides.OlderServer("1.31.2"), told(onServer("1.31.2"), analysis, move))

	before := func(g *given) {
		g.Record.Status = &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{OlderServer: counts}}
	}
	require.Equal(t, counts, told(analysis, before), "what was said stays while the release is not known")
	require.Empty(t, told(onServer("1.32.0"), analysis, before), "the server was upgraded")

	// It does not cause a commit by itself.
	older, newer := decide(t, of(onServer("1.29.1"), analysis), allowed), decide(t, of(onServer("1.32.0"), analysis), allowed)
	require.NotEmpty(t, older.Status.OlderServer)
	require.Equal(t, render.TransitionKey(newer.Status), render.TransitionKey(older.Status))
}
