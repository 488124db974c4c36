package gitops

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A whole repository of anybody's making is read without a panic, in bounded time, and the same twice. Each worker
// deployment is of one environment and has a spec or a reason why not.
func FuzzReadFiles(f *testing.F) {
	f.Add(twoEnvironments, specYAML("shop", "checkout", "app:v1"), routingYAML("checkout", "prod/a.yaml"), connectionYAML)
	f.Add(twoApart, specYAML("payments", "checkout", "app:v1"), routingYAML("x", "a"), "kind: WorkerResourceTemplate\n")
	f.Add("", "a: &a [*a]", "spec: {versions: [{}]}", "")
	for _, name := range []string{"routing.yaml"} {
		data, err := os.ReadFile(filepath.Join("api", "v1alpha1", "testdata", name))
		require.NoError(f, err)
		f.Add(threeEnvironments, specYAML("shop", "a", "x"), string(data), connectionYAML)
	}
	f.Fuzz(func(t *testing.T, config, spec, routing, more string) {
		files := []rollout.TextFile{{Path: layout.Config, Text: config}, {Path: "prod/a.yaml", Text: spec}, {Path: "a/a.yaml", Text: spec},
			{Path: "prod/b.yaml", Text: more}, {Path: "workers/x.yaml", Text: more}, {Path: "policies/x.rego", Text: more}, {Path: "policies/data.yaml", Text: more}}
		for _, root := range []string{"out/prod", "deploy/a", "deploy"} {
			files = append(files, rollout.TextFile{Path: root + "/shop/checkout/routing.yaml", Text: routing},
				rollout.TextFile{Path: root + "/shop/checkout/status.yaml", Text: spec}, rollout.TextFile{Path: root + "/kustomization.yaml", Text: more})
		}
		start := time.Now()
		w, err := index.ReadFiles(files)
		require.Less(t, time.Since(start), 10*time.Second)
		again, errAgain := index.ReadFiles(files)
		if err != nil {
			require.EqualError(t, errAgain, err.Error())
			var large *tree.Error
			require.False(t, errors.As(err, &large))
			return
		}
		require.Equal(t, w, again)
		for _, env := range w.Environments {
			for _, s := range env.Deployments {
				require.Equal(t, env.Environment.Name, s.Environment.Name)
				require.True(t, s.Spec != nil || len(s.Problems) > 0 || s.Record.Routing != nil || s.Record.RoutingProblem != nil, s.Deployment)
				require.False(t, strings.Contains(s.Record.Dir, ".."))
			}
		}
	})
}
