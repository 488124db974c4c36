// Package confined has work done in a process of its own. The operating system bounds its memory, and it is killed when
// it takes too long. So what others wrote, such as charts and policies, can neither end the bot nor hold it up.
package confined

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Process is such a process. It gets none of this process's variables and open files, only what it is called with. It
// begins with the first call, and again with the first one after it ended. It is used by one goroutine at a time.
type Process struct {
	// Path and Args are the program, which calls Serve, and its arguments from its own name on.
	Path string
	Args []string

	running *running
}

// running is the process of a Process.
type running struct {
	cmd    *exec.Cmd
	client *rpc.Client
	// said is the beginning of its standard error.
	said *beginning
	// ended is closed when it has ended.
	ended chan struct{}
}

// over reports whether the process has ended by itself.
func (r *running) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Self is a Process of this program, with one argument that tells what to serve.
func Self(arg string) *Process {
	self := "/proc/self/exe" // the same program, also after another release took its place
	if _, err := os.Stat(self); err != nil {
		if self, err = os.Executable(); err != nil {
			self = os.Args[0]
		}
	}
	return &Process{Path: self, Args: []string{os.Args[0], arg}}
}

// EndedError says that a process ended before it answered.
type EndedError struct {
	// Slow says that it was killed since its time was over; else it ended by itself, most likely for want of memory.
	Slow bool
	// Said is the first line that it wrote to its standard error; "" for nothing.
	Said string
}

// Error says how it ended.
func (e *EndedError) Error() string {
	if e.Slow {
		return "it took too long"
	}
	return "the process ended: " + e.Said
}

// Running reports whether a process is there, to which earlier calls went.
func (p *Process) Running() bool { return p.running != nil && !p.running.over() }

// Call calls a method of the service, and waits for so long. Errors: *EndedError; that of ctx, after which the process
// was killed too; rpc.ServerError for what the method returned; another where no process can be started.
func (p *Process) Call(ctx context.Context, limit time.Duration, method string, args, reply any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !p.Running() {
		p.Close()
		if err := p.start(); err != nil {
			return fmt.Errorf("start %s: %w", p.Path, err)
		}
	}
	r := p.running
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	kept := context.AfterFunc(within, r.kill) // sending the call may take for ever, too
	err := r.client.Call(serviceName+"."+method, args, reply)
	inTime := kept()
	var refused rpc.ServerError
	if err == nil || errors.As(err, &refused) {
		if !inTime {
			p.Close()
		}
		return err
	}
	p.Close()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !inTime:
		return &EndedError{Slow: true}
	}
	return &EndedError{Said: r.said.line()}
}

// confinedVariable is set in a Process, which starts no other.
const confinedVariable = "RAMPART_CONFINED"

func (p *Process) start() error {
	if os.Getenv(confinedVariable) != "" {
		return errors.New("this process is confined itself")
	}
	cmd := &exec.Cmd{Path: p.Path, Args: p.Args, Dir: "/",
		Env: []string{"GOMAXPROCS=2", "GOTRACEBACK=none", confinedVariable + "=1"}}
	r := &running{cmd: cmd, said: &beginning{}, ended: make(chan struct{})}
	theirIn, in, err := os.Pipe() // cmd's own would be closed at its end, with an answer in them
	if err != nil {
		return err
	}
	defer func() { _ = theirIn.Close() }()
	out, theirOut, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return err
	}
	defer func() { _ = theirOut.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, r.said
	if err := cmd.Start(); err != nil {
		return errors.Join(err, in.Close(), out.Close())
	}
	go func() {
		_ = cmd.Wait() //nolint:errcheck // how it ended is in what it said
		close(r.ended)
	}()
	r.client = rpc.NewClient(pipes{out, in})
	p.running = r
	return nil
}

// pipes are the ends of two pipes.
type pipes struct{ out, in *os.File }

// Read reads what the process says.
func (p pipes) Read(data []byte) (int, error) { return p.out.Read(data) }

// Write is what it is told.
func (p pipes) Write(data []byte) (int, error) { return p.in.Write(data) }

// Close closes both.
func (p pipes) Close() error { return errors.Join(p.in.Close(), p.out.Close()) }

func (r *running) kill() { _ = r.cmd.Process.Kill() } //nolint:errcheck // it may have ended

// Close ends the process, whatever it does. The next Call starts another one.
func (p *Process) Close() {
	r := p.running
	if r == nil {
		return
	}
	p.running = nil
	r.kill()
	_ = r.client.Close() //nolint:errcheck // it may be closed
	<-r.ended
}

// beginning keeps the beginning of what is written to it.
type beginning struct {
	mu   sync.Mutex
	text []byte
}

// Write takes all.
func (b *beginning) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const most = 1000
	if left := most - len(b.text); left > 0 {
		b.text = append(b.text, data[:min(left, len(data))]...)
	}
	return len(data), nil
}

// line is its first line; "" for nothing.
func (b *beginning) line() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, _, _ := strings.Cut(strings.TrimSpace(string(b.text)), "\n")
	return first
}
