package auditlog

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

// lines are decisions on their way to a file, which may be a pipe that is not read: nothing else waits for it.
type lines struct {
	to       io.Writer
	log      *slog.Logger
	complain complaint
	wake     chan struct{}

	mu sync.Mutex
	// waiting is what was added, and held how many bytes are being written.
	waiting bytes.Buffer
	held    int
	// full says that something was dropped since there was room.
	full bool
	// unwritten is being written. It belongs to the teller.
	unwritten bytes.Buffer
}

func newLines(to io.Writer, log *slog.Logger) *lines {
	return &lines{to: to, log: log, complain: complaint{log: log}, wake: make(chan struct{}, 1)}
}

// put adds decisions. What there is no room for is dropped.
func (s *lines) put(ds []waiting) {
	if s.to == nil || len(ds) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		before := s.waiting.Len()
		if err := WriteLines(&s.waiting, d.Decision); err != nil {
			s.waiting.Truncate(before)
			s.log.Error("a decision is not written as a line", "decision", d.ID, "error", err)
			continue
		}
		if before+s.held == 0 || s.waiting.Len()+s.held <= maxUnwritten {
			continue
		}
		s.waiting.Truncate(before)
		if !s.full {
			s.log.Error("lines of decisions are dropped: too many could not be written", "bytes", before+s.held)
		}
		s.full = true
	}
	wake(s.wake)
}

// teller writes lines until nothing is added any more and nothing is left, or cannot be written.
func (l *Log) teller() {
	defer close(l.told)
	again := time.NewTicker(firstPause) // for lines that could not be written
	defer again.Stop()
	for {
		closing := false
		select {
		case <-l.lines.wake:
		case <-again.C:
		case <-l.written:
			closing = true
		}
		l.lines.write()
		if closing {
			return
		}
	}
}

// write writes what waits.
func (s *lines) write() {
	s.mu.Lock()
	s.unwritten.Write(s.waiting.Bytes())
	s.waiting.Reset()
	s.held = s.unwritten.Len()
	s.mu.Unlock()
	if s.unwritten.Len() == 0 {
		return
	}
	n, err := s.to.Write(s.unwritten.Bytes())
	s.unwritten.Next(n)
	s.complain.about(err, "decisions could not be written as lines: they are tried again")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held = s.unwritten.Len(); s.held == 0 {
		s.full = false
	}
}
