package e2e

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// pushCutter is a proxy before a Git server that cuts every third push, at random: on its way there, or its answer. The
// answer to the very first one is lost for certain.
type pushCutter struct {
	cut *gittest.Cutter
	// first makes sure that one answer is lost.
	first sync.Once

	mu     sync.Mutex
	random *rand.Rand
	pushes int
}

// overCutHTTP is overHTTP with a proxy before the server that cuts pushes.
func overCutHTTP(c *pushCutter, random *rand.Rand) option {
	return func(w *world) {
		served := gittest.ServeHTTP(w.t, w.repo, gittest.HTTPConfig{User: "bot", Password: "s3cret", TLS: true, Wrap: c.watch})
		c.random, c.cut = random, gittest.NewCutter(w.t, gittest.HostOf(served.URL))
		w.goOver(c.cut.Before(w.t, served.URL), served.CAFile)
	}
}

// watch sees pushes begin.
func (c *pushCutter) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("service") == "git-receive-pack" {
			c.begin()
		}
		if what, _ := pushOf(r); what != "" {
			c.first.Do(func() {
				next.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			})
		}
		next.ServeHTTP(w, r)
	})
}

// begin may cut what comes after the question where the branch is: that answer, the pack, or what the server says of
// it.
func (c *pushCutter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushes++
	switch n := c.random.Int64N(6); n {
	case 0:
		c.cut.CutAfter(gittest.ToServer, c.random.Int64N(8<<10))
	case 1:
		c.cut.CutAfter(gittest.ToClient, c.random.Int64N(2<<10))
	}
}

// Two bots work on one repository, and a proxy cuts their pushes at random. Ten worker deployments roll out beside each
// other, each through steps: Temporal makes exactly these, each once, and each is in one commit. Both bots may ask
// Temporal for a step that is in Git; the later call sets what is set already.
func TestTwoBotsWhosePushesAreCut(t *testing.T) {
	testneed.Long(t)
	random := chance(t)
	names, crowd := many(10, "v1", "v2")
	var cutter pushCutter
	w := newWorld(t, crowd, overCutHTTP(&cutter, random))
	other := *w
	other.forgetCache()
	bots := []*bot{w.start(), other.start()}
	like := specText{sunset: "scaledownDelay: 1h, deleteDelay: 1h"}
	w.pushSpecs("ten", specsOf(names, "v1", like))
	for _, name := range names {
		w.named(name).awaitReady(name + ":v1")
	}
	// One after the other, so that there is something to push all the time.
	for name, spec := range specsOf(names, "v2", like) {
		w.named(name).pushSpec("v2 of "+name, spec)
	}
	for _, name := range names {
		w.named(name).awaitReady(name + ":v2")
	}
	unknown := 0
	for i, b := range bots {
		b.stop()
		log := b.log.String()
		unknown += strings.Count(log, "outcome unknown")
		t.Logf("bot %d: %d commits, %d races lost, %d cycles failed", i, strings.Count(log, "msg=committed"), strings.Count(log, "starting over"),
			strings.Count(log, "cycle failed"))
	}
	t.Logf("%d pushes, %d connections cut, %d times it was not known whether a push got through", cutter.pushes, cutter.cut.Cuts(), unknown)
	require.Positive(t, cutter.cut.Cuts())
	require.Positive(t, unknown)
	w.checkSteps(names, "current v1", "ramp v2 10", "ramp v2 50", "current v2")
	w.checkHistory()
	checkMirrors(t, w.cache)
	checkMirrors(t, other.cache)
}
