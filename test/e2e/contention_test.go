package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// writer is somebody who pushes to the branch again and again.
type writer struct {
	work   string
	pushed int
	lost   int // pushes that others were quicker than
	err    error
	done   chan struct{}
}

// startWriter pushes a commit each time that a period has passed, until the context ends.
func startWriter(ctx context.Context, w *world, period time.Duration) *writer {
	o := &writer{work: w.t.TempDir(), done: make(chan struct{})}
	go func() {
		defer close(o.done)
		for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"remote", "add", "origin", w.repo.Dir}} {
			if o.err = o.git(args...); o.err != nil {
				return
			}
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
	return o
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

func (o *writer) push() error {
	file := fmt.Sprintf("other/%d", o.pushed)
	for {
		for _, args := range [][]string{{"fetch", "-q", "origin", "main"}, {"reset", "-q", "--hard", "FETCH_HEAD"}} {
			if err := o.git(args...); err != nil {
				return err
			}
		}
		full := filepath.Join(o.work, file)
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

// mostTries is the highest number of tries that a bot's log tells of: the first one counts.
func mostTries(log string) int {
	most := 1
	for _, m := range regexp.MustCompile(`msg="the branch moved: starting over" .*?try=(\d+)`).FindAllStringSubmatch(log, -1) {
		n, _ := strconv.Atoi(m[1])
		most = max(most, n+1)
	}
	return most
}

// Fifty worker deployments change at once while somebody else pushes every two seconds: everything lands, within the bound on tries, each
// change in a commit of its own kind, and nothing of the other's is lost.
func TestFiftyChangeWhileAnotherPushes(t *testing.T) {
	const many = 50
	images, v1, v2 := map[string]temporalenv.Image{}, map[string]specText{}, map[string]specText{}
	for i := range many {
		name := fmt.Sprintf("w%02d", i)
		images[name+":v1"], images[name+":v2"] = temporalenv.DefaultImage(name), temporalenv.DefaultImage(name)
		v1[name] = specText{image: name + ":v1", strategy: "{strategy: AllAtOnce}", sunset: "scaledownDelay: 1h, deleteDelay: 1h"}
		v2[name] = specText{image: name + ":v2", strategy: "{strategy: AllAtOnce}", sunset: "scaledownDelay: 1h, deleteDelay: 1h"}
	}
	w := newWorld(t, withImages(images))
	b := w.start()
	w.pushSpecs("fifty", v1)
	ready := func(image string) {
		t.Helper()
		for name := range v1 {
			w.named(name).awaitReady(name + image)
		}
	}
	ready(":v1")

	ctx, cancel := context.WithCancel(t.Context())
	other := startWriter(ctx, w, 2*time.Second)
	start := time.Now()
	w.pushSpecs("all at once", v2)
	ready(":v2")
	took := time.Since(start)
	cancel()
	<-other.done
	require.NoError(t, other.err)
	b.stop()
	log := b.log.String()
	t.Logf("%d changes in %s beside %d pushes of another (which lost %d races); most tries %d of %d, tries again %d", many, took.Round(time.Second),
		other.pushed, other.lost, mostTries(log), reconcile.MaxTries, strings.Count(log, "starting over"))

	require.NotContains(t, log, "gave up after")
	require.Less(t, mostTries(log), reconcile.MaxTries)
	for name := range v1 {
		require.Equal(t, []string{"current v1", "current v2"}, w.named(name).calls(), name)
	}
	files := w.repo.Files("main")
	for i := range other.pushed {
		require.Equal(t, fmt.Sprintf("other/%d", i), files[fmt.Sprintf("other/%d", i)], "nothing of the other's is lost")
	}
	checkHistory(t, w.repo)
}

// checkHistory wants one line of commits, none of them empty, and nothing missing on the server.
func checkHistory(t *testing.T, r *gittest.Repo) {
	t.Helper()
	r.Git("fsck", "--full", "--strict", "--no-dangling")
	require.Empty(t, r.Git("rev-list", "--min-parents=2", "main"), "no merges")
	require.Empty(t, r.Git("log", "--walk-reflogs", "--format=%gs", "--grep-reflog=forced", "main"), "no force")
	trees := strings.Fields(r.Git("log", "--format=%T", "main"))
	for i := 1; i < len(trees); i++ {
		require.NotEqual(t, trees[i-1], trees[i], "no empty commit")
	}
}
