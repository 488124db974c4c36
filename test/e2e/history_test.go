package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/dynamicconfig"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// givenSeed lets what a test did at random be done again: go test ./e2e -run TestX -seed N.
var givenSeed = flag.Uint64("seed", 0, "seed of what tests do at random; 0: another one each time")

// chance is a test's randomness. The seed is in its log.
func chance(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *givenSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// many are the names of several worker deployments, and an option with an image of each for every tag. Since they are
// many, their workers are no load: they poll for workflows only, and as patiently as on a real server.
func many(n int, tags ...string) (names []string, crowd option) {
	images := map[string]temporalenv.Image{}
	for i := range n {
		name := fmt.Sprintf("w%02d", i)
		names = append(names, name)
		for _, tag := range tags {
			image := temporalenv.DefaultImage(name)
			image.WorkflowsOnly = true
			images[name+":"+tag] = image
		}
	}
	return names, func(w *world) {
		withImages(images)(w)
		withSetting(dynamicconfig.MatchingLongPollExpirationInterval, 20*time.Second)(w)
		withSetting(dynamicconfig.PollerHistoryTTL, time.Minute)(w)
	}
}

// specsOf are specs that ask for a tag of each worker deployment's own image, and are else the same.
func specsOf(names []string, tag string, like specText) map[string]specText {
	out := map[string]specText{}
	for _, name := range names {
		like.image = name + ":" + tag
		out[name] = like
	}
	return out
}

// checkHistory wants the branch to be one line of commits that were pushed one after the other, each changing
// something. No object may be missing.
func (w *world) checkHistory() {
	w.t.Helper()
	w.repo.Fsck()
	require.Empty(w.t, w.repo.Git("rev-list", "--min-parents=2", w.branch), "no merges")
	var pushed []string
	for _, line := range strings.Split(w.repo.Git("reflog", "show", "--format=%H", "refs/heads/"+w.branch), "\n") {
		pushed = append([]string{line}, pushed...)
	}
	require.Equal(w.t, strings.Fields(w.repo.Git("rev-list", "--reverse", w.branch)), pushed,
		"what the server's log says was pushed, one by one, is the branch: nothing was forced, or is lost")
	trees := strings.Fields(w.repo.Git("log", "--format=%T", w.branch))
	for i := 1; i < len(trees); i++ {
		require.NotEqual(w.t, trees[i-1], trees[i], "no empty commit")
	}
}

// checkMirrors wants nothing to be missing or broken in the mirrors of a cache.
func checkMirrors(t *testing.T, cache string) {
	t.Helper()
	mirrors, err := filepath.Glob(filepath.Join(cache, "mirror", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, mirrors)
	for _, dir := range mirrors {
		gittest.OpenRepo(t, dir).Fsck()
	}
}

// checkSteps wants each worker deployment to have gone through these routings, and through each once, both in Temporal
// and in Git. A routing of Git is what a call makes of it, such as "ramp v2 10".
func (w *world) checkSteps(names []string, steps ...string) {
	w.t.Helper()
	recorded := w.recordedSteps()
	for _, name := range names {
		of := w.named(name)
		require.Equal(w.t, steps, of.changes(), "%s: in Temporal", name)
		require.Equal(w.t, steps, recorded[of.id()], "%s: in Git", name)
	}
}

// checkNoRepeats wants no call to set what was set already, unless the caller before did not get its answer. Of two
// bots both may ask.
func (w *world) checkNoRepeats(names []string) {
	w.t.Helper()
	for _, name := range names {
		require.Empty(w.t, w.ns.RoutingRepeats(w.named(name).id()), name)
	}
}

// changes are the accepted routing calls that changed something, with images' tags in place of build IDs. A person's
// rollback marks the build before it moves traffic: a bot that finds the mark in between takes traffic back as well,
// and the later of both calls, or of both commits, repeats the other and moves nothing.
func (w *world) changes() []string {
	var out []string
	for _, c := range w.ns.RoutingChanges(w.id()) {
		out = append(out, buildSuffix.ReplaceAllString(c, "$1"))
	}
	return out
}

// recordedSteps are the routings that the records of worker deployments asked for, one after the other, in the branch's
// history.
func (w *world) recordedSteps() map[string][]string {
	w.t.Helper()
	var files, blobs []string
	log := w.repo.Git("log", "--reverse", "--first-parent", "--no-renames", "--diff-filter=AM", "--raw", "--no-abbrev", "--format=", w.branch, "--", w.output)
	for _, line := range strings.Split(log, "\n") {
		meta, file, _ := strings.Cut(line, "\t")
		if path.Base(file) == "routing.yaml" {
			files, blobs = append(files, file), append(blobs, strings.Fields(meta)[3])
		}
	}
	out := map[string][]string{}
	for i, text := range w.repo.Blobs(blobs...) {
		docs, _ := v1alpha1.Decode(files[i], []byte(text))
		require.Len(w.t, docs, 1, files[i])
		r, ok := docs[0].Object.(*v1alpha1.Routing)
		require.True(w.t, ok, files[i])
		id := r.Spec.WorkerDeployment
		step := buildSuffix.ReplaceAllString(asCall(r.Spec.Desired), "$1")
		if was := out[id]; step != "" && (len(was) == 0 || was[len(was)-1] != step) {
			out[id] = append(was, step)
		}
	}
	return out
}

// asCall is the call that leads to a routing; "" for none.
func asCall(r v1alpha1.DesiredRouting) string {
	switch {
	case r.Ramping != nil:
		return fmt.Sprintf("ramp %s %v", r.Ramping.BuildID, r.Ramping.Percentage)
	case r.Current != "":
		return "current " + r.Current
	}
	return ""
}
