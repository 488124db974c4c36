package confined

import (
	"context"
	"fmt"
	"net/http"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// TestMain is the process of a Process, too.
func TestMain(m *testing.M) {
	testneed.Main(m, Serving("serve", func() error { return Serve(service{}, 384<<20) }))
}

type service struct{}

// Upper gives a text in capitals.
func (service) Upper(text string, out *string) error {
	*out = strings.ToUpper(text)
	return nil
}

// Refuse gives an error.
func (service) Refuse(text string, _ *string) error { return fmt.Errorf("%s is refused", text) }

// Variables are those of the process.
func (service) Variables(_ string, out *[]string) error {
	*out = os.Environ()
	return nil
}

// Fetch gets a URL.
func (service) Fetch(url string, _ *string) error {
	_, err := http.Get(url) //nolint:bodyclose,noctx // it is refused
	return err
}

// Harm does what takes for ever or ends a process.
func (service) Harm(how string, _ *string) error {
	switch how {
	case "loop":
		for i := 0; ; i++ {
			if i < 0 {
				return nil
			}
		}
	case "memory":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			clear(all[len(all)-1])
		}
	case "stack":
		var deeper func(n int) int
		deeper = func(n int) int { return deeper(n+1) + 1 }
		deeper(0)
	case "print":
		fmt.Println("what a library prints")
	case "exit":
		os.Exit(7)
	}
	return nil
}

func process(t *testing.T) *Process {
	t.Helper()
	p := Self("serve")
	t.Cleanup(p.Close)
	return p
}

func upper(t *testing.T, p *Process) {
	t.Helper()
	var got string
	require.NoError(t, p.Call(t.Context(), time.Minute, "Upper", "a", &got))
	require.Equal(t, "A", got)
}

// One process answers until it is ended or ends; the next call begins another one.
func TestOneProcessAnswersCallsUntilItEnds(t *testing.T) {
	p := process(t)
	require.False(t, p.Running())
	upper(t, p)
	first := p.running
	upper(t, p)
	require.Same(t, first, p.running)
	require.Equal(t, rpc.ServerError("it is refused"), p.Call(t.Context(), time.Minute, "Refuse", "it", new(string)))
	require.NoError(t, p.Call(t.Context(), time.Minute, "Harm", "print", new(string)))
	require.Same(t, first, p.running, "an answer that is an error ends nothing, and what is printed neither")
	p.Close()
	require.False(t, p.Running())
	upper(t, p)
}

// What takes too long, or all memory that there is, is ended, and says so.
func TestHarm(t *testing.T) {
	testneed.Plain(t) // the race detector's memory has no bounds
	for how, want := range map[string]EndedError{
		"loop":   {Slow: true},
		"memory": {Said: "fatal error: runtime: out of memory"},
		"stack":  {Said: "runtime: goroutine stack exceeds 50331648-byte limit"},
		"exit":   {},
	} {
		t.Run(how, func(t *testing.T) {
			p := process(t)
			limit := time.Minute
			if want.Slow {
				limit = 200 * time.Millisecond
			}
			var ended *EndedError
			require.ErrorAs(t, p.Call(t.Context(), limit, "Harm", how, new(string)), &ended)
			if ended.Said == "fatal error: out of memory allocating heap arena metadata" { // Go's other words for it
				ended.Said = "fatal error: runtime: out of memory"
			}
			require.Equal(t, want, *ended)
			require.False(t, p.Running())
			upper(t, p)
		})
	}
}

// Who waits may stop waiting, which ends the process.
func TestCancelledCallEndsTheProcess(t *testing.T) {
	p := process(t)
	upper(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Call(ctx, time.Minute, "Harm", "loop", new(string)), context.DeadlineExceeded)
	upper(t, p)
}

// A process ends when the one that called it does, whatever it does then.
func TestProcessEndsWithItsCaller(t *testing.T) {
	p := process(t)
	upper(t, p)
	r := p.running
	r.client.Go(serviceName+".Harm", "loop", new(string), nil)
	require.NoError(t, r.client.Close())
	select {
	case <-r.ended:
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
}

// Where a process ended between two calls, nothing took too much: another one is begun.
func TestEndedBetweenCalls(t *testing.T) {
	p := process(t)
	upper(t, p)
	p.running.kill()
	<-p.running.ended
	require.False(t, p.Running())
	upper(t, p)
}

// A process that reads nothing does not keep a call that is sent to it.
func TestReadsNothing(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	p := &Process{Path: sleep, Args: []string{"sleep", "60"}}
	t.Cleanup(p.Close)
	start := time.Now()
	var ended *EndedError
	require.ErrorAs(t, p.Call(t.Context(), 200*time.Millisecond, "Upper", strings.Repeat("a", 1<<20), new(string)), &ended)
	require.True(t, ended.Slow)
	require.Less(t, time.Since(start), 30*time.Second)
}

// A Ctrl-C at a terminal reaches all processes: it is the caller's to end this one.
func TestProcessOutlivesAnInterrupt(t *testing.T) {
	p := process(t)
	upper(t, p)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		require.NoError(t, p.running.cmd.Process.Signal(signal))
		upper(t, p)
		require.True(t, p.Running(), signal)
	}
}

// With a context that has ended nothing is begun, or ended.
func TestEndedContext(t *testing.T) {
	p := process(t)
	upper(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Call(ctx, time.Minute, "Upper", "a", new(string)), context.Canceled)
	require.True(t, p.Running())
}

// The process gets neither variables nor the network.
func TestAlone(t *testing.T) {
	t.Setenv("RAMPART_GITHUB_TOKEN", "secret")
	p := process(t)
	var got []string
	require.NoError(t, p.Call(t.Context(), time.Minute, "Variables", "", &got))
	require.Equal(t, []string{"GOMAXPROCS=2", "GOTRACEBACK=none", "RAMPART_CONFINED=1"}, got)
	require.ErrorContains(t, p.Call(t.Context(), time.Minute, "Fetch", "http://127.0.0.1:1/", new(string)), "nothing is fetched")
}

// A confined process starts no other.
func TestNoOtherWithin(t *testing.T) {
	t.Setenv(confinedVariable, "1")
	require.ErrorContains(t, process(t).Call(t.Context(), time.Minute, "Upper", "a", new(string)), "confined")
}

// A missing program is an error that names it.
func TestNoProgram(t *testing.T) {
	p := &Process{Path: "/nothing/here", Args: []string{"here"}}
	require.ErrorContains(t, p.Call(t.Context(), time.Minute, "Upper", "a", new(string)), "/nothing/here")
}
