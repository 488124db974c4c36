package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// rewrite puts another history in place of the branch's, as a person who forces a push does, while the bot has nothing
// to write. make gives its tip by the one that is there.
func (w *world) rewrite(make func(tip string) string) {
	w.t.Helper()
	tip := w.repo.Tip("main")
	w.repo.Git("update-ref", "refs/heads/main", make(tip), tip)
}

// TestHistoryIsRewritten squashes the branch, and rebases all of it. The bot's commits are then made by somebody else,
// or are gone. What is in them is its own still, so nothing is drift, nothing is made twice, and the rollout goes on.
func TestHistoryIsRewritten(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	w.ramping(slowSteps)
	b.stop()
	w.rewrite(func(tip string) string { return w.repo.Git("commit-tree", "-m", "one commit of mine", tip+"^{tree}") })
	before := w.routing()
	b = w.start() // with the mirror of before
	w.settle()
	require.Equal(t, before, w.routing())
	require.Equal(t, "1", w.repo.Git("rev-list", "--count", "main"), "nothing is there to write")

	w.rewrite(func(tip string) string {
		return w.repo.Git("commit-tree", "-p", w.repo.Git("commit-tree", "-m", "nothing", w.repo.Git("mktree")), "-m", "rampart(default): shop/checkout: not a bot's", tip+"^{tree}")
	})
	w.pushSpec("shorter pauses", specText{image: "app:v2", strategy: strings.ReplaceAll(slowSteps, "1h", "1s")})
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
	b.stop()
	w.repo.Fsck()
}

// TestHistoryLosesTheRamp takes the bot's last commits from the history, and with them the version that ramps and its
// ramp. The bot takes back the ramp, which is not recorded any more; the version's files come back, and it starts
// again. Nothing that has traffic is taken away.
func TestHistoryLosesTheRamp(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	w.ramping(slowSteps)
	v2 := w.build("app:v2")
	b.stop()
	asked := w.repo.Git("log", "-1", "--format=%H", "--grep", "^v2$", "main")
	w.rewrite(func(string) string { return asked })
	require.NotContains(t, w.file(w.dir()+"/routing.yaml"), v2)
	w.start()
	w.eventually("it ramps again", func() bool {
		calls := w.calls()
		return len(calls) > 2 && calls[len(calls)-1] == "ramp v2 10" && w.reason() == "Ramping"
	})
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none", "ramp v2 10"}, w.calls())
	require.NotEmpty(t, w.file(w.dir()+"/versions/"+v2+"/deployment.yaml"))
	w.repo.Fsck()
}

// Versions that are in use come back byte for byte when Git loses all that it had of them. That is with a history that
// was forced, from the tip that the bot knew; by a commit that deletes them, from history, also by a bot that knows
// nothing. Nothing moves, and versions that are not needed any more go as ever.
func TestHistoryLosesVersionsInUse(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	b := w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	v1 := w.awaitReady("app:v1")
	slow := w.startSlow("slow-1")
	w.pushSpec("v2", specText{image: "app:v2"})
	v2 := w.awaitReady("app:v2")
	w.settle()
	first, second, calls := w.manifest(v1), w.manifest(v2), w.calls()
	back := func() bool {
		return w.manifest(v1) == first && w.manifest(v2) == second && w.reason() == "RolloutComplete"
	}
	require.True(t, back())

	w.rewrite(func(tip string) string {
		specs := w.repo.GitInput([]byte(w.repo.Git("ls-tree", tip, "workers")+"\n"), "mktree")
		return w.repo.Git("commit-tree", "-m", "another history", strings.TrimSpace(specs))
	})
	w.eventually("both are back", back)
	w.settle()
	require.Equal(t, calls, w.calls())
	require.True(t, back())
	b.stop()

	var files []string
	for file := range w.repo.Files("main") {
		if strings.HasPrefix(file, w.dir()+"/") {
			files = append(files, file)
		}
	}
	w.commit(gittest.Commit{Delete: files, Message: "clean up"})
	require.Empty(t, w.manifest(v1))
	w.forgetCache()
	w.start()
	w.eventually("both are back again", back)
	require.Equal(t, calls, w.calls())
	w.finish(slow)
	w.eventually("v1 goes when nobody needs it", func() bool { return w.build("app:v1") == "" })
	require.Equal(t, second, w.manifest(v2))
	w.repo.Fsck()
}
