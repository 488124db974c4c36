package compose

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// TestRootIsPutRight: the output's own kustomization.yaml is put right no matter who changed it, also when it was found
// to be right before.
func TestRootIsPutRight(t *testing.T) {
	env := rollout.EnvironmentWorld{Environment: v1alpha1.Environment{Name: "prod", Output: v1alpha1.Output{Path: "deploy"}}, Roots: []string{"shop/a", "shop/b"}}
	right, err := render.Root(env.Environment, env.Roots)
	require.NoError(t, err)
	env.RootFile = rollout.File{Hash: "right", Data: right.Data}
	var files RootFiles
	root := func(parts ...Part) *rollout.FileChange {
		file, err := files.Change(env, parts)
		require.NoError(t, err)
		return file
	}
	part := func(name, tree string, remove bool) Part {
		n := rollout.Name{Namespace: "shop", Name: name}
		return Part{Decision: &rollout.Decision{Snapshot: rollout.Snapshot{Deployment: n, Record: rollout.Record{Tree: tree}},
			Plan: rollout.Plan{Deployment: n, Record: &v1alpha1.RoutingSpec{}, Remove: remove}}}
	}
	require.Nil(t, root())
	require.Nil(t, root(part("a", "tree", false)))
	require.Contains(t, root(part("c", "", false)).Data, "- shop/c\n", "a new one")
	require.Nil(t, root())
	require.NotContains(t, root(part("b", "tree", true)).Data, "- shop/b\n", "one that goes")
	require.Nil(t, root())
	env.RootFile = rollout.File{Hash: "edited", Data: "resources: []\n"}
	require.Equal(t, right.Data, root().Data)
	env.RootFile = rollout.File{Hash: "right", Data: right.Data}
	require.Nil(t, root())
	env.Roots = []string{"shop/a"}
	require.NotContains(t, root().Data, "- shop/b\n", "a folder that somebody removed")
}
