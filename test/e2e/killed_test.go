package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The bot is killed with -9 at random times, again and again, through a whole rollout: the routing calls are exactly the steps, each change is in
// one commit, and nothing is missing on the server.
func TestKilledAtRandomTimes(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(4, 4))
	kills := 0
	through := func(what string, done func() bool) {
		t.Helper()
		w.eventually(what, func() bool {
			if kills%4 == 3 {
				w.forgetCache()
			}
			b := w.start()
			<-time.After(time.Duration(100+random.IntN(1400)) * time.Millisecond)
			require.NoError(t, b.cmd.Process.Kill())
			b.once.Do(func() { _ = b.cmd.Wait(); rows.note(t, b.log.String()) })
			kills++
			return done()
		})
	}
	w.pushSpec("add checkout", specText{image: "app:v1"})
	through("v1 is current", func() bool { return w.reason() == "RolloutComplete" })
	w.pushSpec("v2", specText{image: "app:v2"})
	through("v2 is current", func() bool {
		return w.reason() == "RolloutComplete" && w.status().CurrentVersion.BuildID == w.build("app:v2")
	})
	t.Logf("killed %d times", kills)
	require.Greater(t, kills, 4)
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
	checkHistory(t, w.repo)
	did := w.did()
	for _, what := range []string{"create v1", "create v2", "promote v1", "promote v2"} {
		require.Equal(t, 1, did[deployment+": "+what], "%s: %v", what, did)
	}
}
