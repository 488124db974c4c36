package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Manifests are read of the versions that a plan writes, and of all where the record goes or people are asked. What cannot be read keeps its own decision from being
// written, and no other.
func TestWithManifests(t *testing.T) {
	files := map[string]rollout.File{"routing.yaml": {Hash: "r", Data: "routing"}, "versions/v1/deployment.yaml": {Hash: "1"},
		"versions/v10/deployment.yaml": {Hash: "10"}, "versions/v2/deployment.yaml": {Hash: "2"}, "versions/v2/pool-a.yaml": {Hash: "2a", Data: "known"}}
	decision := func(name string, p rollout.Plan) Decision {
		return Decision{Snapshot: rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: name}, Record: rollout.Record{Files: files}}, Plan: p}
	}
	writes := func(ids ...string) (p rollout.Plan) {
		for _, id := range ids {
			p.Versions = append(p.Versions, rollout.VersionWrite{BuildID: id, Op: rollout.EditVersion})
		}
		return p
	}
	decisions := []Decision{decision("a", rollout.Plan{}), decision("b", writes("v1")), decision("c", writes("v2", "v3")),
		decision("d", rollout.Plan{Remove: true}), decision("e", writes("new")), decision("f", rollout.Plan{Review: &rollout.ReviewAsk{}})}
	wanted := map[string][]string{}
	reads := func(lost ...string) reading {
		return reading{fill: func(_ context.Context, s []rollout.Snapshot) (out []rollout.Snapshot, err error) {
			for _, s := range s {
				name := s.Deployment.Name
				if wanted[name] = s.Wanted; slices.Contains(lost, name) {
					err = errors.Join(err, errors.New(name+" is lost"))
					continue
				}
				s.Failure = &rollout.Problem{Message: "filled"}
				out = append(out, s)
			}
			return out, err
		}}
	}
	names := func(all []Decision) (out []string) {
		for _, d := range all {
			name := d.Snapshot.Deployment.Name
			if d.Snapshot.Failure != nil {
				name += " filled"
			}
			out = append(out, name)
		}
		return out
	}
	got, err := withManifests(t.Context(), reads(), decisions)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b filled", "c filled", "d filled", "e", "f filled"}, names(got))
	everything := []string{"versions/v1/deployment.yaml", "versions/v10/deployment.yaml", "versions/v2/deployment.yaml"}
	require.Equal(t, map[string][]string{"b": {"versions/v1/deployment.yaml"}, "c": {"versions/v2/deployment.yaml"},
		"d": everything, "f": everything}, wanted)

	got, err = withManifests(t.Context(), reads("b", "d"), decisions)
	require.EqualError(t, err, "b is lost\nd is lost")
	require.Equal(t, []string{"a", "c filled", "e", "f filled"}, names(got))

	got, err = withManifests(t.Context(), reading{}, []Decision{decisions[0], decisions[4]})
	require.NoError(t, err, "nothing is asked")
	require.Equal(t, []string{"a", "e"}, names(got))
}
