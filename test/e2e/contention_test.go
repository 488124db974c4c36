package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// writer is somebody who pushes to the branch again and again.
type writer struct {
	w    *world
	work string

	mu     sync.Mutex // held for a push
	pushed int
	lost   int // pushes that others were quicker than
	err    error
	done   chan struct{}
	stop   context.CancelFunc
}

// startWriter pushes a commit each time that a period has passed, until it is ended.
func (w *world) startWriter(period time.Duration) *writer {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	o := &writer{w: w, work: w.t.TempDir(), done: make(chan struct{}), stop: stop}
	go func() {
		defer close(o.done)
		if o.err = o.git("clone", "-q", w.origin, "."); o.err != nil {
			return
		}
		every := time.NewTicker(period)
		defer every.Stop()
		for o.err == nil {
			select {
			case <-every.C:
				o.err = o.push()
			case <-ctx.Done():
				return
			}
		}
	}()
	w.t.Cleanup(func() { stop(); <-o.done })
	return o
}

// end stops it, and wants all of its pushes to be on the branch.
func (o *writer) end() {
	o.w.t.Helper()
	o.stop()
	<-o.done
	require.NoError(o.w.t, o.err)
	files := o.w.repo.Files("main")
	for i := range o.pushed {
		file := fmt.Sprintf("other/%d", i)
		require.Equal(o.w.t, file, files[file], "nothing of the other's is lost")
	}
}

func (o *writer) git(args ...string) error {
	cmd := exec.Command("git", append([]string{"-C", o.work}, args...)...)
	cmd.Env = append(gittest.Env(), "GIT_AUTHOR_NAME=other", "GIT_COMMITTER_NAME=other")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %v: %w: %s", args, err, out)
	}
	return nil
}

// push pushes a file of its own, again if the bot was quicker.
func (o *writer) push() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	file := fmt.Sprintf("other/%d", o.pushed)
	full := filepath.Join(o.work, file)
	for {
		for _, args := range [][]string{{"fetch", "-q", "origin", "main"}, {"reset", "-q", "--hard", "FETCH_HEAD"}} {
			if err := o.git(args...); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(file), 0o600); err != nil {
			return err
		}
		for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "other"}} {
			if err := o.git(args...); err != nil {
				return err
			}
		}
		if o.git("push", "-q", "origin", "HEAD:main") == nil {
			o.pushed++
			return nil
		}
		o.lost++
	}
}

var startedOver = regexp.MustCompile(`msg="the branch moved: starting over" .*?try=(\d+)`)

// tries are how many tries environments took, by how often: those that landed with the first are not counted.
func tries(log string) map[int]int {
	out := map[int]int{}
	last := 0
	for _, line := range strings.Split(log, "\n") {
		if m := startedOver.FindStringSubmatch(line); m != nil {
			last, _ = strconv.Atoi(m[1])
		} else if last > 0 && strings.Contains(line, "msg=cycle ") {
			out[last+1]++
			last = 0
		}
	}
	return out
}

// overtaken stands before a Git server, and does something before the next push to the branch gets there, once it is
// told what.
type overtaken struct{ first atomic.Pointer[func()] }

func (o *overtaken) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if what, _ := pushOf(r); what == "push main" {
			if first := o.first.Swap(nil); first != nil {
				(*first)()
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Fifty worker deployments change at once while somebody else pushes every two seconds, and once when the bot is about
// to. Everything lands, and nothing of the other's is lost. How many more tries that takes depends on the machine, and
// is logged: TestFiftyChangeBesideABusyWriter in internal/reconcile has a bound.
func TestFiftyChangeWhileAnotherPushes(t *testing.T) {
	testneed.Long(t)
	names, crowd := many(50, "v1", "v2")
	var between overtaken
	w := newWorld(t, crowd, overHTTPBehind(between.before))
	b := w.start()
	like := specText{strategy: "{strategy: AllAtOnce}", sunset: "scaledownDelay: 1h, deleteDelay: 1h"}
	w.pushSpecs("fifty", specsOf(names, "v1", like))
	other := w.startWriter(2 * time.Second)
	for _, name := range names {
		w.named(name).awaitReady(name + ":v1")
	}
	// Whatever the bot sends next was made on top of a commit that is not the last one by then.
	overtake := func() {
		if err := other.push(); err != nil {
			t.Errorf("push before the bot: %v", err)
		}
	}
	between.first.Store(&overtake)
	w.pushSpecs("all at once", specsOf(names, "v2", like))
	for _, name := range names {
		w.named(name).awaitReady(name + ":v2")
	}
	other.end()
	b.stop()
	log := b.log.String()
	t.Logf("%d pushes of another, which lost %d races; tries that were needed: %v of %d", other.pushed, other.lost, tries(log), reconcile.MaxTries)
	require.Nil(t, between.first.Load(), "the bot pushed, and another was quicker")
	require.NotEmpty(t, tries(log), "it was refused, and started over")
	w.checkSteps(names, "current v1", "current v2")
	w.checkNoRepeats(names)
	w.checkHistory()
}
