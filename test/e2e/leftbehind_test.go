package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// A cluster never gets the commit that scales a version down. Its worker polls on, which the status says with one
// commit, and explain with what to do. Once the worker is stopped the version goes. Its worker that is started again
// was left behind, too.
func TestWorkersLeftBehind(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	v1 := w.build("app:v1")
	manifest := w.manifest(v1)
	stuck := func() *temporalenv.Fleet {
		images := map[string]temporalenv.Image{"app:v1": temporalenv.DefaultImage(queue)}
		f := temporalenv.NewFleet(temporalenv.FleetConfig{Images: images})
		t.Cleanup(f.Close)
		require.NoError(t, f.Apply([]byte(manifest)))
		return f
	}
	first := stuck()
	w.pushSpec("v2", specText{image: "app:v2"})
	w.awaitReady("app:v2")
	left := func() []v1alpha1.LeftBehind { return w.status().LeftBehind }
	w.eventually("v1 is left behind", func() bool { return len(left()) == 1 })
	require.True(t, w.scaledDown(v1))
	require.Equal(t, v1, left()[0].BuildID)
	require.False(t, left()[0].ScaledDownAt.IsZero())
	require.Equal(t, "RolloutComplete", w.reason())
	told := func() (n int) {
		for _, s := range w.botCommits() {
			if strings.Contains(s, "v1 still polls") {
				n++
			}
		}
		return n
	}
	w.settle()
	require.Equal(t, 1, told())
	explained := func() string {
		out, err := w.command(binary, "explain", w.id(), "--repo", w.url, "--cache-dir", t.TempDir()).Output()
		require.NoError(t, err)
		return string(out)
	}
	require.Regexp(t, v1+`: scaled down in Git \S+ ago, still polling\n`+
		`  ArgoCD or Flux did not apply that: see that it syncs deploy, or: kubectl scale -n shop deployment/checkout-\S+ --replicas 0\n`, explained())

	first.Close()
	w.eventually("v1 is removed", func() bool { return w.build("app:v1") == "" })
	require.Empty(t, left())
	require.Equal(t, 1, told())

	again := stuck()
	w.eventually("Temporal knows of it", func() bool { return slices.Contains(w.listed(), v1) })
	w.pushSpec("a look", specText{image: "app:v2", extra: "# looked at once more"})
	w.eventually("v1 is left behind again", func() bool { return len(left()) == 1 })
	require.False(t, left()[0].RemovedAt.IsZero())
	require.Regexp(t, v1+`: removed from Git \S+ ago, still polling\n`+
		`  ArgoCD or Flux did not prune it: kubectl delete -n shop deployment/checkout-\S+\n`, explained())
	again.Close()
	w.settle()
	require.Equal(t, "RolloutComplete", w.reason())
}
