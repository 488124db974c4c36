package e2e

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/render"
)

// The whole of the server goes away in mid-ramp, for bot and workers alike, and comes back.
func TestTemporalDownInMidRamp(t *testing.T) {
	w := newWorld(t, onOwnServer())
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	steps := func(pause string) specText {
		return specText{image: "app:v2", strategy: "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: " + pause + "}, {rampPercentage: 50, pauseDuration: 1s}]%s}"}
	}
	w.pushSpec("v2", steps("1h"))
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") })
	w.server.Outage()
	w.awaitReason("TemporalStateFetchFailed")
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())
	for _, image := range []string{"app:v1", "app:v2"} {
		require.Contains(t, w.manifest(w.build(image)), "replicas: 1", "everything is kept")
	}
	w.server.Restore()
	w.pushSpec("not so long", steps("1s"))
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
}

// A rollout over each way to a Git server, whose every folder builds with kustomize.
func TestRolloutOverHTTP(t *testing.T) { rollOutAndBuild(t, overHTTP()) }
func TestRolloutOverSSH(t *testing.T)  { rollOutAndBuild(t, overSSH()) }

func rollOutAndBuild(t *testing.T, how option) {
	w := newWorld(t, how)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())
	w.repo.Fsck()

	files := w.repo.Files("main")
	require.Equal(t, map[string]int{"Deployment": 2, "TemporalWorkerDeployment": 1}, build(t, files, output))
	require.Equal(t, map[string]int{"Deployment": 2, "TemporalWorkerDeployment": 1}, build(t, files, recordDir))
}

// An environment that has nothing to apply any more has a folder that still builds: to nothing.
func TestEmptyOutputBuilds(t *testing.T) {
	root, err := render.Root(v1alpha1.Environment{Name: "default", Output: v1alpha1.Output{Path: output}}, nil)
	require.NoError(t, err)
	require.Empty(t, build(t, map[string]string{root.Path: root.Data}, output))
}

// build is what kustomize gives for a folder: how many objects of each kind.
func build(t *testing.T, files map[string]string, dir string) map[string]int {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	for name, text := range files {
		require.NoError(t, fs.WriteFile(path.Join("/", name), []byte(text)))
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, path.Join("/", dir))
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, r := range built.Resources() {
		require.False(t, strings.HasPrefix(r.GetKind(), "Routing"), "routing.yaml is for the bot alone")
		kinds[r.GetKind()]++
	}
	return kinds
}
