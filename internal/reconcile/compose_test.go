package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// A worker deployment that was retired goes from its environment's kustomization.yaml with its folder, the last one
// too.
func TestComposeWithoutARetiredOne(t *testing.T) {
	for _, others := range [][]string{{"shop/other"}, nil} {
		s := newScene(t)
		env := s.world.Environments[0]
		d := env.Deployments[0]
		d.SpecPath, d.Now = "", s.now
		d.Record.Routing = &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{WorkerDeployment: "shop/checkout", TemporalNamespace: "shop",
			Retire: &v1alpha1.Retire{Current: v1alpha1.KeepCurrent, By: "ada"}}}
		d.Record.Files = map[string]rollout.File{"routing.yaml": {Hash: "x"}, "kustomization.yaml": {Hash: "y"}}
		d.Observation = s.Observe(t.Context(), *d.Connection, rollout.Ask{})
		d.Limits = rollout.DefaultLimits()
		before, err := render.Root(env.Environment, append([]string{"shop/checkout"}, others...))
		require.NoError(t, err)
		env.Roots, env.RootFile = append([]string{"shop/checkout"}, others...), rollout.File{Data: before.Data}

		decision := Decide(t.Context(), s, d)
		require.True(t, decision.Plan.Remove)
		parts, root, err := compose.Files(env, []*rollout.Decision{decision})
		require.NoError(t, err)
		require.Empty(t, parts[0].Refused)
		require.Equal(t, []rollout.FileChange{{Path: "deploy/shop/checkout/kustomization.yaml", Delete: true},
			{Path: "deploy/shop/checkout/routing.yaml", Delete: true}}, parts[0].Files)
		after, err := render.Root(env.Environment, others)
		require.NoError(t, err)
		require.Equal(t, after, *root)
		require.Len(t, env.Roots, len(others)+1, "what it was given stays as it was")
	}
}
