package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// kills is how often the bot is killed at least in the test of that.
const kills = 20

// TestKilledAgainAndAgain kills the bot with SIGKILL at random times, again and again, while four worker deployments
// roll out beside each other. The bot works over a real Git server that goes on with what it was sent. Temporal makes
// exactly the steps, each once; each is in one commit; and nothing is missing.
func TestKilledAgainAndAgain(t *testing.T) {
	testneed.Long(t)
	random := chance(t)
	names, crowd := many(4, "v1", "v2")
	w := newWorld(t, crowd, overHTTP())
	like := specText{
		strategy: "{strategy: Progressive, steps: [{rampPercentage: 5, pauseDuration: 1s}, {rampPercentage: 10, pauseDuration: 1s}, " +
			"{rampPercentage: 25, pauseDuration: 1s}, {rampPercentage: 50, pauseDuration: 1s}]%s}",
		sunset: "scaledownDelay: 1h, deleteDelay: 1h",
	}
	w.pushSpecs("four", specsOf(names, "v1", like))
	first := w.start()
	for _, name := range names {
		w.named(name).awaitReady(name + ":v1")
	}
	first.stop()

	for _, name := range names {
		w.named(name).pushSpec("v2 of "+name, specsOf([]string{name}, "v2", like)[name])
	}
	killed, caches := w.killAtRandom(random, kills, nothing, func() bool { return len(w.notYetReady(names, "v2")) == 0 })
	anew := 0
	for _, w.cache = range caches { // what the next bot makes of what was left behind
		anew += strings.Count(w.once(), "filled anew")
		checkMirrors(t, w.cache)
	}
	t.Logf("killed %d times, %d of %d mirrors were filled anew", killed, anew, len(caches))
	require.Empty(t, w.notYetReady(names, "v2"))
	w.checkSteps(names, "current v1", "ramp v2 5", "ramp v2 10", "ramp v2 25", "ramp v2 50", "current v2")
	w.checkNoRepeats(names)
	w.checkHistory()
}

// nothing is what people do in the meantime.
func nothing() {}

// mostKills is how often the bot is killed at most: by then it has long had time enough in between.
const mostKills = 200

// killAtRandom kills the bot at random times, so often and more, until all is done. People do something in between,
// while a bot lives or none does. It gives how often the bot was killed, and the caches that it had.
func (w *world) killAtRandom(random *rand.Rand, least int, meanwhile func(), done func() bool) (killed int, caches []string) {
	w.t.Helper()
	caches, fruitless := []string{w.cache}, 0
	longest := time.Second // that a bot lives
	for killed < least || !done() {
		require.Less(w.t, killed, mostKills)
		before := w.repo.Tip("main")
		b := w.start()
		<-time.After(time.Duration(random.Int64N(int64(longest))))
		if random.IntN(2) == 0 {
			meanwhile()
		}
		b.kill()
		killed++
		meanwhile()
		// On a busy machine a bot needs longer to get anywhere.
		if fruitless++; w.repo.Tip("main") != before {
			fruitless = 0
		}
		if fruitless == 4 && !done() {
			longest, fruitless = min(2*longest, patience/4), 0
		}
		if random.IntN(4) == 0 {
			w.forgetCache()
			caches = append(caches, w.cache)
		}
	}
	return killed, caches
}

// notYetReady are the worker deployments whose image of a tag is not yet seen to be current.
func (w *world) notYetReady(names []string, tag string) []string {
	var out []string
	for _, name := range names {
		if !w.named(name).ready(tag) {
			out = append(out, name)
		}
	}
	return out
}
