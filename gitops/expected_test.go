package gitops

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/remember"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A run without a mirror may know what the last cycle of the run before looked at. Then it asks for that, and for
// the records of specs that moved, with what it certainly needs. So it asks for nothing when snapshots are filled
// in, nor for each step of the survey by itself. It says the same as without that knowledge.
func TestStartWithWhatIsExpected(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyWorkers(20)})
	served := filters(t, r)
	kept := remember.File{Path: filepath.Join(t.TempDir(), "known"), Key: "v"}

	before := served.open(t)
	kept.Parts = []remember.Part{before}
	looked := func(all []rollout.Snapshot) []rollout.Snapshot {
		var out []rollout.Snapshot
		for _, s := range all {
			if n := s.Deployment.Name; n == "w01" || n == "w07" || n == "w11" {
				out = append(out, s)
			}
		}
		require.Len(t, out, 3)
		return out
	}
	for _, of := range []func([]rollout.Snapshot) []rollout.Snapshot{func(all []rollout.Snapshot) []rollout.Snapshot { return all }, looked} {
		before.Begin()
		all, fill := surveyOf(t, before)
		_, err := fill(t.Context(), of(all))
		require.NoError(t, err)
	}
	before.Begin() // and one that could not read
	require.NoError(t, kept.Save())
	r.Commit(gittest.Commit{Write: map[string]string{"w05.yaml": specYAML("shop", "w05", "i:2"), "w11.yaml": specYAML("shop", "w11", "i:2")}})

	start := func(expects bool) (requests int64, said []rollout.Snapshot) {
		repo := served.open(t)
		kept.Parts = []remember.Part{repo}
		require.NoError(t, kept.Load())
		require.Len(t, repo.survey.reader.expected, 3)
		if !expects {
			repo.survey.reader.expected = nil
		}
		from := served.packs.Load()
		all, fill := surveyOf(t, repo)
		require.Nil(t, repo.survey.reader.expected, "it is about the first read alone")
		surveyed := served.packs.Load()
		said, err := fill(t.Context(), looked(all))
		require.NoError(t, err)
		require.Equal(t, expects, served.packs.Load() == surveyed, "what is filled in came before")
		return served.packs.Load() - from, said
	}
	with, says := start(true)
	without, said := start(false)
	require.Equal(t, without-4+1, with, "two for the record of the spec that moved, and two for those that are filled in; one for all these folders")
	require.Empty(t, cmp.Diff(said, says))
}

// The worker deployments that were looked at are those of the last cycle that looked at anything. If they were
// many, none are given.
func TestLooks(t *testing.T) {
	some := func(n int) (out []rollout.Snapshot) {
		for i := range n {
			out = append(out, rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: fmt.Sprint(i)}})
		}
		return out
	}
	var l looks
	require.Empty(t, l.few())
	l.note(some(manyFull))
	require.Len(t, l.few(), manyFull)
	l.note(some(manyFull + 50))
	require.Empty(t, l.few(), "too many to go by")
	l.begin()
	require.Empty(t, l.few())
	l.note(some(2))
	l.note(some(3))
	require.Len(t, l.few(), 3, "a cycle may look at some after others")
	l.begin()
	require.Len(t, l.few(), 3)
	l.note(nil)
	require.Empty(t, l.few())
}
