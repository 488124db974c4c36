package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Manifests are read of the versions that a plan edits, and of all where people are asked. What cannot be read drops
// the decision that edits it, and no other.
func TestWithManifests(t *testing.T) {
	files := map[string]rollout.File{"routing.yaml": {Hash: "r", Data: "routing"}, "versions/v1/deployment.yaml": {Hash: "1"},
		"versions/v10/deployment.yaml": {Hash: "10"}, "versions/v2/deployment.yaml": {Hash: "2"}, "versions/v2/pool-a.yaml": {Hash: "2a", Data: "known"}}
	decision := func(name string, p rollout.Plan) *rollout.Decision {
		return &rollout.Decision{Snapshot: rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: name}, Record: rollout.Record{Files: files}}, Plan: p}
	}
	writes := func(op rollout.WriteOp, ids ...string) (p rollout.Plan) {
		for _, id := range ids {
			p.Versions = append(p.Versions, rollout.VersionWrite{BuildID: id, Op: op})
		}
		return p
	}
	asks := func(kind rollout.ActionKind) rollout.Plan {
		return rollout.Plan{Review: &rollout.ReviewAsk{Held: rollout.Held{Action: rollout.Action{Kind: kind}}}}
	}
	decisions := []*rollout.Decision{decision("a", rollout.Plan{}), decision("b", writes(rollout.EditVersion, "v1")),
		decision("c", writes(rollout.ReconnectVersion, "v2", "v3")), decision("d", asks(rollout.MoveWorkflows)), decision("e", writes(rollout.RemoveVersion, "v1")),
		decision("f", asks(rollout.Ramp)), decision("g", asks(rollout.Promote))}
	asked := map[string][]string{}
	reads := func(lost ...string) reading {
		return reading{load: func(_ context.Context, s []rollout.Snapshot) (out []rollout.Snapshot, err error) {
			for _, s := range s {
				name := s.Deployment.Name
				if asked[name] = s.LoadFiles; slices.Contains(lost, name) {
					err = errors.Join(err, errors.New(name+" is lost"))
					continue
				}
				s.Failure = &rollout.Problem{Message: "filled"}
				out = append(out, s)
			}
			return out, err
		}}
	}
	names := func(all []*rollout.Decision) (out []string) {
		for _, d := range all {
			name := d.Snapshot.Deployment.Name
			if d.Snapshot.Failure != nil {
				name += " filled"
			}
			out = append(out, name)
		}
		return out
	}
	got, dropped, err := withManifests(t.Context(), reads(), decisions)
	require.NoError(t, err)
	require.Empty(t, dropped)
	require.Equal(t, []string{"a", "b filled", "c filled", "d", "e", "f filled", "g filled"}, names(got))
	everything := []string{"versions/v1/deployment.yaml", "versions/v10/deployment.yaml", "versions/v2/deployment.yaml"}
	require.Equal(t, map[string][]string{"b": {"versions/v1/deployment.yaml"}, "c": {"versions/v2/deployment.yaml"},
		"f": everything, "g": everything}, asked)
	for _, d := range got {
		require.Empty(t, d.Snapshot.LoadFiles)
	}

	got, dropped, err = withManifests(t.Context(), reads("b", "f"), decisions)
	require.EqualError(t, err, "b is lost\nf is lost")
	require.Equal(t, []string{"a", "c filled", "d", "e", "f", "g filled"}, names(got))
	require.Equal(t, []string{"b"}, names(dropped))

	got, _, err = withManifests(t.Context(), reading{}, []*rollout.Decision{decisions[0], decisions[3], decisions[4]})
	require.NoError(t, err, "nothing is asked")
	require.Equal(t, []string{"a", "d", "e"}, names(got))
}
