package gitops

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/diskcache"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What a repository of one environment tries with the namespaces of another's.
func TestNamespacesOfAnEnvironment(t *testing.T) {
	const config = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: dev, specs: ["dev/**"], output: {path: out/dev}, namespace: shop}
    - {name: dev-invented, specs: ["invented/**"], output: {path: out/invented}, namespace: shop}
    - {name: prod, specs: ["prod/**"], output: {path: out/prod}, namespace: payments}
`
	temporal := func(spec, namespace string) string {
		return strings.Replace(spec, "temporalNamespace: shop", "temporalNamespace: "+namespace, 1)
	}
	record := func(namespace, name string) string {
		return strings.Replace(routingYAML(name, "dev/x.yaml"), "namespace: shop", "namespace: "+namespace, 1)
	}
	allowed := index.Allowed{Namespaces: []index.Rule{{Environments: "dev", Allows: "shop*"}, {Environments: "prod", Allows: "payments"}}, TemporalNamespaces: []index.Rule{{Environments: "dev", Allows: "shop"}, {Environments: "prod", Allows: "*"}}}
	for name, c := range map[string]struct {
		files map[string]string
		want  map[string]string // reason by environment and name; "": fine
		says  []string
	}{
		"its own": {map[string]string{"dev/a.yaml": specYAML("shop", "a", "x"), "dev/b.yaml": specYAML("shop-two", "b", "x"),
			"prod/c.yaml": temporal(specYAML("payments", "c", "x"), "anything")},
			map[string]string{"dev shop/a": "", "dev shop-two/b": "", "prod payments/c": ""}, nil},
		"another's namespace": {map[string]string{"dev/a.yaml": specYAML("payments", "a", "x")}, nil,
			[]string{`dev/a.yaml:1: payments/a: the bot's configuration (--allowed-namespaces) does not let environment dev name the namespace "payments": nothing of it is touched`}},
		"another's Temporal namespace": {map[string]string{"dev/a.yaml": temporal(specYAML("shop", "a", "x"), "payments")},
			map[string]string{"dev shop/a": "InvalidSpec"},
			[]string{`dev/a.yaml:1: spec.workerOptions.temporalNamespace: the bot's configuration (--allowed-temporal-namespaces) does not let environment dev name the Temporal namespace "payments"`}},
		"an environment of its own making": {map[string]string{"invented/a.yaml": specYAML("payments", "a", "x"), "invented/b.yaml": specYAML("shop", "b", "x")}, nil,
			[]string{"payments/a: the bot's configuration (--allowed-namespaces)", "shop/b: the bot's configuration (--allowed-namespaces)"}},
		"a record in another's namespace": {map[string]string{"out/dev/payments/a/routing.yaml": record("payments", "a")}, nil,
			[]string{`out/dev/payments/a: payments/a: the bot's configuration (--allowed-namespaces)`}},
		"a record of another's Temporal namespace": {map[string]string{"out/dev/shop/a/routing.yaml": strings.Replace(record("shop", "a"), "temporalNamespace: shop", "temporalNamespace: payments", 1)}, nil,
			[]string{`does not let environment dev name the Temporal namespace "payments": nothing of it is touched`}},
		"the status of another's Temporal namespace": {map[string]string{"out/dev/shop/a/routing.yaml": record("shop", "a"),
			"out/dev/shop/a/status.yaml": temporal(specYAML("shop", "a", "x"), "payments")}, nil,
			[]string{`does not let environment dev name the Temporal namespace "payments": nothing of it is touched`}},
	} {
		t.Run(name, func(t *testing.T) {
			c.files[layout.Config] = config
			w, err := index.ReadFolder(writeFolder(t, c.files), index.Allow(allowed))
			require.NoError(t, err)
			if c.want == nil {
				c.want = map[string]string{}
			}
			require.Equal(t, c.want, reasonsOf(t, w))
			for _, says := range c.says {
				require.Contains(t, strings.Join(problems(w), "\n"), says)
			}
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: c.files})
			restarted := openAllowing(t, r, allowed)
			loadSurvey(t, restarted, open(t, r))
			for what, repo := range map[string]*Repository{"nothing": openAllowing(t, r, allowed), "what an earlier run knew that was not told": restarted} {
				for range 3 { // what was decoded has an index entry
					surveyed := surveyedWorld(t, repo)
					require.Equal(t, c.want, reasonsOf(t, surveyed), "with %s", what)
					require.Equal(t, problems(w), problems(surveyed), "with %s", what)
					r.Commit(gittest.Commit{Write: map[string]string{"elsewhere": r.Tip("main")}})
				}
			}
			// Without the bot's word the repository's counts.
			w, err = index.ReadFolder(writeFolder(t, c.files))
			require.NoError(t, err)
			all := 0
			for _, env := range w.Environments {
				all += len(env.Deployments)
				for _, s := range env.Deployments {
					require.Empty(t, s.Problems)
				}
			}
			require.NotZero(t, all)
		})
	}
}

// reasonsOf are the worker deployments of each environment, with the reason why the spec of one cannot be used.
func reasonsOf(t *testing.T, w rollout.World) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, env := range w.Environments {
		for _, s := range env.Deployments {
			reason := ""
			if len(s.Problems) > 0 {
				reason = string(s.Problems[0].Reason)
				require.Nil(t, s.Spec)
			}
			out[env.Environment.Name+" "+s.Deployment.String()] = reason
		}
	}
	return out
}

// surveyedWorld is the world as a survey has it, loaded.
func surveyedWorld(t *testing.T, repo *Repository) rollout.World {
	t.Helper()
	s, load, err := repo.Survey(t.Context())
	require.NoError(t, err)
	w := s.World
	w.Environments = slices.Clone(w.Environments)
	for i := range w.Environments {
		env := &w.Environments[i]
		env.Deployments, err = load(t.Context(), s.Snapshots(env.Environment.Name, env.Entries))
		require.NoError(t, err)
	}
	return w
}

// openAllowing opens a repository for a bot that is told which namespaces environments may name.
func openAllowing(t *testing.T, r *gittest.Repo, n index.Allowed) *Repository {
	t.Helper()
	cfg := open(t, r).cfg
	cfg.CacheDir, cfg.Options = t.TempDir(), []index.Option{index.Allow(n)}
	repo, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, repo.Close()) })
	return repo
}

// loadSurvey has a repository load what an earlier run surveyed.
func loadSurvey(t *testing.T, repo, earlier *Repository) {
	t.Helper()
	surveyedWorld(t, earlier)
	kept := diskcache.File{Path: filepath.Join(t.TempDir(), "cached"), Key: "v", Parts: []diskcache.Part{earlier}}
	require.NoError(t, kept.Save())
	kept.Parts = []diskcache.Part{repo}
	require.NoError(t, kept.Load())
}
