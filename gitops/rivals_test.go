package gitops

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const rivalEnvironments = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: a, specs: ["a/**"], output: {path: out/a}}
    - {name: b, specs: ["b/**"], output: {path: out/b}}
`

// Two environments that claim one worker deployment know of each other, also while the survey reads neither in full.
// The same name in another Temporal namespace, or on another server, is another one.
func TestEnvironmentsThatClaimOneWorkerDeploymentAreRivals(t *testing.T) {
	spec := specYAML("shop", "x", "i:1")
	released := "  hold: {kind: Released, by: ann, reason: moves, at: \"2026-01-01T00:00:00Z\"}\n"
	base := map[string]string{layout.Config: rivalEnvironments, "a/x.yaml": spec, "a/c.yaml": connectionYAML, "b/c.yaml": connectionYAML,
		"out/a/shop/x/routing.yaml": routingYAML("x", "a/x.yaml"), "out/b/shop/x/routing.yaml": routingYAML("x", "b/x.yaml")}
	both := [][]rollout.Rival{{{Environment: "b", ManagerIdentity: "rampart/b"}}, {{Environment: "a", ManagerIdentity: "rampart/a"}}}
	cases := map[string]struct {
		files map[string]string
		want  [][]rollout.Rival
	}{
		"the same":                {map[string]string{"b/x.yaml": spec}, both},
		"no spec, and the record": {map[string]string{"out/b/shop/x/routing.yaml": recordedConnection(routingYAML("x", "b/x.yaml"), "", "localhost:7233")}, both},
		"another namespace":       {map[string]string{"b/x.yaml": strings.Replace(spec, "temporalNamespace: shop", "temporalNamespace: other", 1)}, [][]rollout.Rival{nil, nil}},
		"another server":          {map[string]string{"b/x.yaml": spec, "b/c.yaml": another}, [][]rollout.Rival{nil, nil}},
		"released":                {map[string]string{"b/x.yaml": spec, "out/a/shop/x/routing.yaml": routingYAML("x", "a/x.yaml") + released}, [][]rollout.Rival{nil, nil}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for _, part := range []map[string]string{base, c.files} {
				for k, v := range part {
					files[k] = v
				}
			}
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: files})
			repo := open(t, r)
			w := read(t, repo)
			for i, env := range w.Environments {
				require.Equal(t, c.want[i], env.Deployments[0].Rivals)
			}
			said := strings.Join(problems(w), "\n")
			require.Equal(t, c.want[0] != nil, strings.Contains(said, "the environments a and b both claim worker deployment shop/x in Temporal namespace shop at localhost:7233"))
			for range 3 {
				survey, load, err := repo.Survey(t.Context())
				require.NoError(t, err)
				for i, env := range survey.World.Environments {
					require.Equal(t, rollout.SayRivals(c.want[i]), env.Entries[0].Rivals)
					all, err := load(t.Context(), survey.Snapshots(env.Environment.Name, env.Entries))
					require.NoError(t, err)
					require.Equal(t, w.Environments[i].Deployments, all)
				}
				require.Equal(t, problems(w), problems(survey.World))
				r.Commit(gittest.Commit{Write: map[string]string{"elsewhere": r.Tip("main")}})
			}
		})
	}
}
