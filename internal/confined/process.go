// Package confined has work done in a process of its own. The operating system bounds its memory, and it is killed when
// it takes too long. So what others wrote, such as charts and policies, can neither end the bot nor hold it up.
package confined

import (
	"context"
	"errors"
	"fmt"
	"io"
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
}

// Self is a Process of this program, with one argument that tells what to serve.
func Self(arg string) *Process {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
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
func (p *Process) Running() bool { return p.running != nil }

// Call calls a method of the service, and waits for so long. Errors: *EndedError; that of ctx, after which the process
// was killed too; rpc.ServerError for what the method returned; another where no process can be started.
func (p *Process) Call(ctx context.Context, limit time.Duration, method string, args, reply any) error {
	if p.running == nil {
		if err := p.start(); err != nil {
			return fmt.Errorf("start %s: %w", p.Path, err)
		}
	}
	r := p.running
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	call := r.client.Go(serviceName+"."+method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-within.Done():
		p.Close()
		<-call.Done // it may have come at the last moment
	}
	var refused rpc.ServerError
	switch {
	case call.Error == nil || errors.As(call.Error, &refused):
		return call.Error
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		return &EndedError{Slow: true}
	}
	p.Close()
	return &EndedError{Said: r.said.line()}
}

// confinedVariable is set in a Process, which starts no other.
const confinedVariable = "RAMPART_CONFINED"

func (p *Process) start() error {
	if os.Getenv(confinedVariable) != "" {
		return errors.New("this process is confined itself")
	}
	cmd := &exec.Cmd{Path: p.Path, Args: p.Args, Dir: "/", Env: []string{"GOMAXPROCS=2", "GOTRACEBACK=none", confinedVariable + "=1"}}
	r := &running{cmd: cmd, said: &beginning{}}
	cmd.Stderr = r.said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.client = rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{out, in})
	p.running = r
	return nil
}

// Close ends the process, whatever it does. The next Call starts another one.
func (p *Process) Close() {
	r := p.running
	if r == nil {
		return
	}
	p.running = nil
	_ = r.cmd.Process.Kill() //nolint:errcheck // it may have ended
	_ = r.client.Close()     //nolint:errcheck
	_ = r.cmd.Wait()         //nolint:errcheck // how it ended is known
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
