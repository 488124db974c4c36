package e2e

import (
	"cmp"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/logtest"
)

// bot is `rampart run` as a loop.
type bot struct {
	w    *world
	cmd  *exec.Cmd
	log  *logtest.Buffer
	once sync.Once
}

func (w *world) runArgs(more ...string) []string {
	args := []string{"run", "--repo", w.url, "--branch", "main", "--cache-dir", w.cache, "--log-level", "debug"}
	return slices.Concat(args, w.access, w.forge, more)
}

// start runs the bot until stop, or the end of the test.
func (w *world) start(more ...string) *bot {
	w.t.Helper()
	args := w.runArgs(append([]string{"--interval", cmp.Or(w.interval, "250ms")}, more...)...)
	b := &bot{w: w, cmd: exec.Command(binary, args...), log: &logtest.Buffer{}}
	b.cmd.Env, b.cmd.Stdout, b.cmd.Stderr, b.cmd.WaitDelay = w.environ(), b.log, b.log, 10*time.Second
	require.NoError(w.t, b.cmd.Start())
	w.t.Cleanup(func() {
		b.stop()
		if w.t.Failed() {
			w.t.Logf("bot:\n%s", b.log)
		}
	})
	return b
}

// stop ends the bot as an init system would.
func (b *bot) stop() { b.end(syscall.SIGTERM) }

// kill ends the bot at once.
func (b *bot) kill() { b.end(syscall.SIGKILL) }

// end signals the bot, and waits for its end. One that does not end in time says what it does, and fails the test.
func (b *bot) end(by syscall.Signal) {
	b.once.Do(func() {
		late := time.AfterFunc(time.Minute, func() {
			b.w.t.Errorf("the bot goes on a minute after %s", by)
			_ = b.cmd.Process.Signal(syscall.SIGQUIT) // its log has all goroutines
		})
		_ = b.cmd.Process.Signal(by)
		_ = b.cmd.Wait()
		late.Stop()
		rows.note(b.w.t, b.log.String())
	})
}

// betweenRuns is the least time from one start of a process that runs one cycle to the next one, as with a scheduled
// job. What such runs wait for comes by itself, and each start costs a tenth of a second of a core.
const betweenRuns = 400 * time.Millisecond

// once runs one cycle in a process of its own; again if the server was too busy to answer in time.
func (w *world) once(more ...string) string {
	w.t.Helper()
	<-time.After(time.Until(w.ran.Add(betweenRuns)))
	w.ran = time.Now()
	for try := 1; ; try++ {
		out, err := w.command(binary, w.runArgs(append([]string{"--once"}, more...)...)...).CombinedOutput()
		rows.note(w.t, string(out))
		if err != nil && try < 10 && slowly(string(out)) {
			continue
		}
		require.NoError(w.t, err, "rampart run --once: %s", out)
		return string(out)
	}
}

// slowly reports whether a bot says that its machine, or Temporal, was too slow for it.
func slowly(said string) bool {
	return strings.Contains(said, "could not be read from Temporal") || strings.Contains(said, "context deadline exceeded")
}

// forgetCache makes the next process start with nothing.
func (w *world) forgetCache() { w.cache = w.t.TempDir() }
