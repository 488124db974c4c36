package git

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// The variables of a child that pushes until it is killed.
const (
	childURL = "RAMPART_TEST_PUSHER_URL"
	childDir = "RAMPART_TEST_PUSHER_DIR"
)

// TestPusher is the child of TestKilledAtRandomTimes; called otherwise it has nothing to do.
func TestPusher(t *testing.T) {
	if os.Getenv(childURL) == "" {
		return
	}
	m := openAt(t, os.Getenv(childDir), way{url: os.Getenv(childURL)})
	m.store.limits.overlay, m.store.limits.fetch = 40<<10, 8<<10 // often to disk
	for {
		tip := fetch(t, m, "main")
		next := len(readAll(t, m, tip.Tree))
		_, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put(fmt.Sprintf("f/%d", next), noise(uint64(next), 5000)))))
		require.NoError(t, err)
	}
}

// A process that fetches and pushes is killed at random times, again and again. Its mirror can always be used again,
// nothing is pushed twice, and nothing is missing on the server.
func TestKilledAtRandomTimes(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"f/start": "x"}})
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(3, 3))
	rounds := testneed.Repeats(30)
	var usual time.Duration // from a process's start to its first push
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestPusher$", "-test.count=1")
		var out strings.Builder
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), childURL+"="+r.URL(), childDir+"="+dir), &out, &out
		isolate(cmd)
		started := time.Now()
		require.NoError(t, cmd.Start())
		if round%2 == 0 { // it gets something done first
			before := r.Git("rev-list", "--count", "main")
			require.Eventually(t, func() bool { return r.Git("rev-list", "--count", "main") != before }, soonest, tick)
			usual = time.Since(started)
		}
		<-time.After(time.Duration(random.Int64N(int64(2 * usual))))
		if random.IntN(2) == 0 {
			require.NoError(t, cmd.Process.Kill()) // its git lives on for a moment, as a server would
		} else {
			killGroup(cmd)
		}
		err := cmd.Wait()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, -1, exit.ExitCode(), "it was killed and did not fail: %s", out.String())
		settle(t, r)
		gone(t, "^TestPusher$") // a git that it was about to start has its lock until it runs
		if round%3 == 0 {       // somebody else pushes, too
			r.Commit(gittest.Commit{Write: map[string]string{fmt.Sprintf("f/theirs-%d", round): "x"}})
		}
	}
	m := openAt(t, dir, way{url: r.URL()})
	files := r.Files("main")
	requireSame(t, files, readAll(t, m, fetch(t, m, "main").Tree))
	require.NoError(t, m.Close())
	mirrorFsck(t, dir)
	r.Git("fsck", "--full", "--strict", "--no-dangling")
	require.Greater(t, len(files), rounds, "it got something done")
	require.Equal(t, fmt.Sprint(len(files)), r.Git("rev-list", "--count", "main"), "one commit for each file, theirs included")
}
