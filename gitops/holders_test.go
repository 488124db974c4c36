package gitops

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A commit holds a version from the one that wrote it to the tip, beside a merge as well. What was the same before the
// version was gone does not count.
func TestHolders(t *testing.T) {
	const v0, v1, v2 = "deploy/shop/checkout/versions/v0", "deploy/shop/checkout/versions/v1", "deploy/shop/checkout/versions/v2"
	r := gittest.NewBareRepo(t)
	at := time.Now().Add(-time.Hour)
	commit := func(c gittest.Commit) string {
		at = at.Add(time.Minute)
		c.When = at
		return r.Commit(c)
	}
	config := "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n  - {name: prod, specs: [\"workers/**\"], output: {path: deploy}}\n"
	before := commit(gittest.Commit{Write: map[string]string{"rampart.yaml": config, v0 + "/deployment.yaml": "zero", v2 + "/deployment.yaml": "two"}, Message: "v2 before it was gone"})
	gone := commit(gittest.Commit{Delete: []string{v2 + "/deployment.yaml"}, Message: "v2 is gone"})
	other := commit(gittest.Commit{Write: map[string]string{v1 + "/deployment.yaml": "other"}, Message: "v1 as it was rendered first"})
	wroteV1 := commit(gittest.Commit{Write: map[string]string{v1 + "/deployment.yaml": "one"}, Message: "v1"})
	side := commit(gittest.Commit{Branch: "side", Parent: "main", Write: map[string]string{"README.md": "x"}, Message: "on a side branch"})
	wroteV2 := commit(gittest.Commit{Write: map[string]string{v2 + "/deployment.yaml": "two"}, Message: "v2"})
	merge := r.Git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "-m", "merge", "-p", "side", "-p", "main", "main^{tree}")
	r.Git("update-ref", "refs/heads/main", merge)

	repo := open(t, r)
	_, err := repo.Read(t.Context())
	require.NoError(t, err)
	env := v1alpha1.Environment{Name: "prod"}
	got, err := repo.Holders(t.Context(), env, []string{v1, v2, "deploy/nothing"}, 10)
	require.NoError(t, err)
	require.Equal(t, []rollout.Holder{{Commit: merge, Holds: []bool{true, true, false}}, {Commit: wroteV2, Holds: []bool{true, true, false}},
		{Commit: side, Holds: []bool{true, false, false}}, {Commit: wroteV1, Holds: []bool{true, false, false}}}, got)
	got, err = repo.Holders(t.Context(), env, []string{v0, v1, v2}, 10)
	require.NoError(t, err)
	require.Equal(t, []rollout.Holder{{Commit: merge, Holds: []bool{true, true, true}}, {Commit: wroteV2, Holds: []bool{true, true, true}},
		{Commit: side, Holds: []bool{true, true, false}}, {Commit: wroteV1, Holds: []bool{true, true, false}}, {Commit: other, Holds: []bool{true, false, false}},
		{Commit: gone, Holds: []bool{true, false, false}}, {Commit: before, Holds: []bool{true, false, false}}}, got, "what was there before does not count, also where it is looked at for another")

	got, err = repo.Holders(t.Context(), env, []string{v1, v2}, 2)
	require.NoError(t, err)
	require.Len(t, got, 2, "no more than are asked for")
	none, err := repo.Holders(t.Context(), env, []string{"deploy/nothing"}, 10)
	require.NoError(t, err)
	require.Empty(t, none)

	repo.away = true
	_, err = repo.Holders(t.Context(), env, []string{v1}, 10)
	require.ErrorContains(t, err, "away")
}
