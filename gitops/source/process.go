package source

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Bounds of one build in a Process.
const (
	DefaultTime   = 5 * time.Second
	DefaultMemory = 384 << 20
)

// Process builds folders in a process of its own, which Serve is called in: it gets files by its standard input, and
// neither variables nor anything else. It begins with the first build, serves one after the other, and is ended where
// one takes too much.
type Process struct {
	// Path and Args are the program, and its arguments from its own name on.
	Path string
	Args []string
	// Time is how long one build may take; zero: DefaultTime.
	Time time.Duration

	running *running
}

// running is the process of a Process.
type running struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.ReadCloser
	// said is the beginning of its standard error.
	said *beginning
}

// answer is what the process says of one folder.
type answer struct {
	Output Output
	Error  *Error
}

// Build builds a folder. Errors: *Error; another where no process can be started.
func (p *Process) Build(in Input) (Output, error) {
	if p.running == nil {
		if err := p.start(); err != nil {
			return Output{}, fmt.Errorf("start the process that builds %s: %w", in.Marker, err)
		}
	}
	r, most := p.running, p.time()
	var got answer
	done := make(chan error, 1)
	go func() {
		err := send(r.in, in)
		if err == nil {
			err = receive(r.out, &got)
		}
		done <- err
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case err := <-done:
		if err == nil && got.Error != nil {
			return Output{}, got.Error
		}
		if err == nil {
			return got.Output, nil
		}
		p.end()
		return Output{}, &Error{File: in.Marker, Bounds: true, Message: fmt.Sprintf(
			"cannot be built: the process that builds it ended, most likely because it needed more than %d MiB of memory%s: build less", DefaultMemory>>20, r.said.words())}
	case <-timer.C:
		p.end()
		if err := <-done; err == nil && got.Error != nil { // it came at the last moment
			return Output{}, got.Error
		}
		return Output{}, &Error{File: in.Marker, Bounds: true, Message: fmt.Sprintf("cannot be built: it takes longer than %v: build less, and nothing that never ends", most)}
	}
}

func (p *Process) time() time.Duration {
	if p.Time > 0 {
		return p.Time
	}
	return DefaultTime
}

func (p *Process) start() error {
	cmd := &exec.Cmd{Path: p.Path, Args: p.Args, Dir: "/", Env: []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}}
	r := &running{cmd: cmd, said: &beginning{}}
	cmd.Stderr = r.said
	var err error
	if r.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if r.out, err = cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.running = r
	return nil
}

// end kills the process.
func (p *Process) end() {
	r := p.running
	p.running = nil
	_ = r.cmd.Process.Kill() //nolint:errcheck // it may have ended
	_ = r.in.Close()         //nolint:errcheck
	_ = r.cmd.Wait()         //nolint:errcheck // how it ended is known
}

// Close ends the process. The next Build starts another one.
func (p *Process) Close() {
	if p.running != nil {
		p.end()
	}
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

// words are its first line, in brackets; "" for nothing.
func (b *beginning) words() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, _, _ := strings.Cut(strings.TrimSpace(string(b.text)), "\n")
	if first == "" {
		return ""
	}
	return " (" + oneLine(first) + ")"
}

// maxMessage is the size of one message between the two processes.
const maxMessage = 4 * (maxInput + maxOutput)

func send(to io.Writer, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

func receive(from io.Reader, message any) error {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxMessage {
		return errors.New("a message is too large")
	}
	var data bytes.Buffer
	if _, err := io.CopyN(&data, from, int64(n)); err != nil {
		return err
	}
	return json.Unmarshal(data.Bytes(), message)
}
