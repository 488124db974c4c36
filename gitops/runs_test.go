package gitops

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// surveyedBefore is an environment whose last survey knew these specs.
func surveyedBefore(specs []*specAt) *environment {
	return &environment{Reader: &Reader{surveyed: surveyed{"": {specs: specs, parts: map[string]*part{}}}}}
}

func specFiles(n int) (files []*found, specs []*specAt) {
	for i := range n {
		files = append(files, &found{path: fmt.Sprint(i), brief: &specBrief{}})
		specs = append(specs, &specAt{name: rollout.Name{Namespace: "shop", Name: fmt.Sprintf("%03d", i)}, file: files[i], brief: files[i].brief})
	}
	return files, specs
}

// Whatever moved, a run has specs of the last survey that are of its files and are known in brief. Each file is in
// a run or between two.
func TestRunsAreOfTheirFiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		files, specs := specFiles(rapid.IntRange(0, 80).Draw(rt, "files"))
		for range rapid.IntRange(0, 5).Draw(rt, "decoded") {
			if len(specs) > 0 {
				specs[rapid.IntRange(0, len(specs)-1).Draw(rt, "which")].spec = &v1alpha1.WorkerDeployment{}
			}
		}
		for range rapid.IntRange(0, 5).Draw(rt, "without a spec") {
			if len(specs) > 0 {
				i := rapid.IntRange(0, len(specs)-1).Draw(rt, "which")
				specs = slices.Delete(specs, i, i+1)
			}
		}
		for range rapid.IntRange(0, 8).Draw(rt, "edits") {
			i := rapid.IntRange(0, len(files)).Draw(rt, "where")
			switch rapid.SampledFrom([]string{"new", "gone", "other", "moved"}).Draw(rt, "what") {
			case "new":
				files = slices.Insert(files, i, &found{})
			case "gone":
				files = slices.Delete(files, i, min(i+rapid.IntRange(1, 2*near).Draw(rt, "so many"), len(files)))
			case "other":
				if i < len(files) {
					files[i] = &found{}
				}
			case "moved":
				files = slices.Concat(files[i:], files[:i])
			}
		}
		runs := surveyedBefore(specs).runs(files, nil)
		at, from, covered := 0, 0, 0
		for _, r := range runs {
			require.GreaterOrEqual(rt, r.file, at)
			require.GreaterOrEqual(rt, r.spec, from)
			require.Positive(rt, r.n)
			for i := range r.n {
				require.Same(rt, files[r.file+i], specs[r.spec+i].file)
				require.Nil(rt, specs[r.spec+i].spec)
			}
			at, from, covered = r.file+r.n, r.spec+r.n, covered+r.n
		}
		rest := between(files, runs)
		require.Len(rt, rest, len(files)-covered)
		for _, r := range runs {
			require.NotContains(rt, rest, files[r.file])
		}
	})
}

// What did not move is taken over, whatever moved beside it.
func TestRunsTakeOverWhatDidNotMove(t *testing.T) {
	for what, c := range map[string]struct {
		edit func(files []*found) []*found
		left int
	}{
		"nothing":     {func(f []*found) []*found { return f }, 0},
		"one":         {func(f []*found) []*found { f[50] = &found{}; return f }, 1},
		"the first":   {func(f []*found) []*found { f[0] = &found{}; return f }, 1},
		"the last":    {func(f []*found) []*found { f[99] = &found{}; return f }, 1},
		"every third": {func(f []*found) []*found { everyThird(f); return f }, 34},
		"new ones":    {func(f []*found) []*found { return slices.Insert(f, 20, make([]*found, 3)...) }, 3},
		"some gone":   {func(f []*found) []*found { return slices.Delete(f, 20, 20+near-1) }, 0},
	} {
		files, specs := specFiles(100)
		now := c.edit(slices.Clone(files))
		require.Len(t, between(now, surveyedBefore(specs).runs(now, nil)), c.left, what)
	}
	files, specs := specFiles(100)
	specs[30].spec = &v1alpha1.WorkerDeployment{}
	require.Equal(t, files[30:31], between(files, surveyedBefore(specs).runs(files, nil)), "one that was decoded is looked at again")
	files, specs = specFiles(3)
	e := surveyedBefore(specs)
	require.Empty(t, e.runs(files, map[string]string{}), "of several environments each says whose a spec is")
	e.world.Environment.Namespace = "another"
	require.Empty(t, e.runs(files, nil), "a spec may have its namespace from the environment")
	e.world.Environment.Name = "new"
	require.Empty(t, e.runs(files, nil))
}

func everyThird(files []*found) {
	for i := 0; i < len(files); i += 3 {
		files[i] = &found{}
	}
}
