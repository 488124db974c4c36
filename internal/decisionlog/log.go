package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/reconcile"
)

// Ref is a Git ref that decisions are kept on. It is used by one goroutine at a time.
type Ref interface {
	// Append keeps decisions, each once, and gives the commits it made. An error with the method Lasting() bool that says true is one that
	// a person has to do something about.
	Append(ctx context.Context, ds []decisions.Decision) ([]string, error)
	// Epochs gives decisions epoch by epoch, the newest epoch first, and in each the oldest decision first.
	Epochs(ctx context.Context, f decisions.Filter) iter.Seq2[iter.Seq2[decisions.Decision, error], error]
}

// Config of a Log.
type Config struct {
	// Document gives what policies were asked about, as JSON. Required.
	Document func(d *reconcile.Decision) (json.RawMessage, error)
	Masker   *decisions.Masker
	// Labels of the bot.
	Labels map[string]string
	// Lines is where JSON lines go; nil: nowhere.
	Lines io.Writer
	// Ref to keep decisions on; nil: none. Spool is its spool file, and belongs to this Log alone.
	Ref   Ref
	Spool string
	// FlushAfter is how long a decision waits for the ref at most, FlushCount how many wait. Zero: DefaultFlushAfter, DefaultFlushCount.
	FlushAfter time.Duration
	FlushCount int
	Log        *slog.Logger
	Now        func() time.Time
}

// When decisions come to the ref.
const (
	DefaultFlushAfter = 15 * time.Minute
	DefaultFlushCount = 500
)

// Bounds of what is held in memory, and of the ref's patience.
const (
	// maxHanded is how many decisions may wait to be written at all.
	maxHanded = 20_000
	// maxWaiting is how many bytes of decisions may wait for the ref, maxUnwritten for the file of lines.
	maxWaiting   = 64 << 20
	maxUnwritten = 8 << 20
	// readTime bounds how long decisions wait for what was recorded in earlier runs, flushTime one flush: the first one may have to bring
	// a month of history.
	readTime  = 2 * time.Minute
	flushTime = 10 * time.Minute
	// firstPause is waited after a flush that failed, twice as long after the next, up to lastPause; at once up to that when only a person
	// can help.
	firstPause = 30 * time.Second
	lastPause  = 15 * time.Minute
	// lookBack is how far back the ref is searched for what was recorded last.
	lookBack = 92 * 24 * time.Hour
)

// Log keeps decisions. Use New.
type Log struct {
	cfg Config
	// handed is what was handed over last, by subject. It belongs to the goroutine that runs cycles.
	handed map[subject]handedOver

	queue queue
	// done is closed when the writer has ended, and flushed when the flusher has.
	written, flushed chan struct{}
	closing          chan struct{}
	closeOnce        sync.Once
	// life ends what is under way when Close may not wait any longer.
	life context.Context
	end  context.CancelFunc

	// ref is held by whoever uses cfg.Ref: a channel, so that waiting for it can end.
	ref     chan struct{}
	pending pending
	// unwritten are lines that could not be written, and lines says once what goes wrong with them. Both belong to the writer.
	unwritten bytes.Buffer
	lines     complaint
	// seen says that what was recorded in earlier runs was compared with.
	seen bool
}

type handedOver struct {
	key key
	now time.Time
}

// New makes a log and starts what writes. What waits in the spool comes to the ref soon. Errors: a spool that cannot be read.
func New(cfg Config) (*Log, error) {
	if cfg.FlushAfter == 0 {
		cfg.FlushAfter = DefaultFlushAfter
	}
	if cfg.FlushCount == 0 {
		cfg.FlushCount = DefaultFlushCount
	}
	l := &Log{cfg: cfg, handed: map[subject]handedOver{}, written: make(chan struct{}), flushed: make(chan struct{}), closing: make(chan struct{}), ref: make(chan struct{}, 1),
		queue: queue{wake: make(chan struct{}, 1)}, lines: complaint{log: cfg.Log}}
	l.life, l.end = context.WithCancel(context.Background())
	if cfg.Ref == nil {
		close(l.flushed)
	} else {
		s, ds, err := openSpool(cfg.Spool, cfg.Log)
		if err != nil {
			return nil, fmt.Errorf("read the spool of decisions: %w", err)
		}
		l.pending = pending{spool: s, wake: make(chan struct{}, 1), complain: complaint{log: cfg.Log}}
		l.add(ds, l.cfg.Now().Add(-cfg.FlushAfter)) // due at once
		go l.flusher()
	}
	go l.writer()
	return l, nil
}

// Record takes what a cycle decided and keeps what is new of it.
func (l *Log) Record(ctx context.Context, made []reconcile.Made) {
	var fresh []entry
	for _, m := range made {
		s, k := subjectOf(m.Decision), keyOf(m.Decision)
		last, known := l.handed[s]
		if known && last.key == k && (!m.Done || last.now.Equal(m.Snapshot.Now)) {
			continue
		}
		l.handed[s] = handedOver{k, m.Snapshot.Now}
		fresh = append(fresh, entry{Made: m, subject: s, key: k})
	}
	if len(fresh) == 0 || l.queue.put(fresh) {
		return
	}
	for _, e := range fresh {
		delete(l.handed, e.subject) // the next cycle hands it over again
	}
	l.cfg.Log.ErrorContext(ctx, "decisions are not recorded: too many wait to be written", "decisions", len(fresh))
}

// Close writes what was handed over, and flushes the ref, until the context ends: what is left then is in the spool. Nothing may be
// recorded afterwards.
func (l *Log) Close(ctx context.Context) error {
	l.closeOnce.Do(func() { close(l.closing) })
	defer l.end()
	stop := context.AfterFunc(ctx, l.end)
	defer stop()
	for _, ended := range []chan struct{}{l.written, l.flushed} {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("close the decision log: %w", context.Cause(ctx))
		}
	}
	return l.leave(ctx)
}

var _ reconcile.DecisionLog = (*Log)(nil)

// entry is a decision that was handed over.
type entry struct {
	reconcile.Made
	subject subject
	key     key
}

// queue is between the cycle and the writer.
type queue struct {
	mu      sync.Mutex
	entries []entry
	wake    chan struct{}
}

// put adds entries; false: there is no room.
func (q *queue) put(added []entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) > 0 && len(q.entries)+len(added) > maxHanded {
		return false
	}
	q.entries = append(q.entries, added...)
	wake(q.wake)
	return true
}

func (q *queue) take() []entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.entries
	q.entries = nil
	return out
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// writer writes what was handed over, until the log is closed and nothing is left.
func (l *Log) writer() {
	defer close(l.written)
	again := time.NewTicker(firstPause) // for lines that could not be written
	defer again.Stop()
	for {
		closing := false
		select {
		case <-l.queue.wake:
		case <-again.C:
		case <-l.closing:
			closing = true
		}
		l.write(l.queue.take())
		if closing {
			return
		}
	}
}

// write makes decisions of what was handed over.
func (l *Log) write(entries []entry) {
	if !l.seen && len(entries) > 0 {
		entries = l.withoutRecorded(entries)
		l.seen = true
	}
	var made []decisions.Decision
	for i := range entries {
		d, err := l.decision(&entries[i])
		if err != nil {
			l.cfg.Log.Error("a decision is not recorded", "deployment", entries[i].subject.deployment.String(), "error", err)
			continue
		}
		made = append(made, d)
	}
	l.writeLines(made)
	if l.cfg.Ref != nil && len(made) > 0 {
		l.add(made, l.cfg.Now())
		l.keep(made)
	}
}

func (l *Log) decision(e *entry) (decisions.Decision, error) {
	input, err := l.cfg.Document(e.Decision)
	if err != nil {
		return decisions.Decision{}, err
	}
	return decisions.New(decisions.Judged{Now: e.Snapshot.Now, Labels: l.cfg.Labels, Input: input, Verdicts: e.Plan.Verdicts}, l.cfg.Masker)
}

func (l *Log) writeLines(ds []decisions.Decision) {
	if l.cfg.Lines == nil {
		return
	}
	if err := decisions.WriteLines(&l.unwritten, ds...); err != nil {
		l.cfg.Log.Error("decisions are not written as lines", "error", err)
	}
	if l.unwritten.Len() == 0 {
		return
	}
	n, err := l.cfg.Lines.Write(l.unwritten.Bytes())
	l.unwritten.Next(n)
	l.lines.about(err, "decisions could not be written as lines: they are tried again")
	if l.unwritten.Len() > maxUnwritten {
		l.cfg.Log.Error("lines of decisions are given up: too many could not be written", "bytes", l.unwritten.Len())
		l.unwritten.Reset()
	}
}

// withoutRecorded leaves out what was recorded in an earlier run and is as it was then.
func (l *Log) withoutRecorded(entries []entry) []entry {
	if l.cfg.Ref == nil {
		return entries
	}
	last := map[subject]key{}
	for _, d := range l.pending.decisions() {
		l.note(last, d)
	}
	missing := func() bool {
		return slices.ContainsFunc(entries, func(e entry) bool { _, known := last[e.subject]; return !known })
	}
	if err := l.readBack(last, missing); err != nil {
		l.cfg.Log.Warn("what was recorded last cannot be read: what stands may be recorded again", "error", err)
	}
	return slices.DeleteFunc(entries, func(e entry) bool {
		k, known := last[e.subject]
		delete(last, e.subject) // what comes after it in the same cycle is another
		return known && k == e.key && !e.Done
	})
}

// note takes down what was recorded of a decision.
func (l *Log) note(last map[subject]key, d decisions.Decision) {
	s, k, err := recorded(d)
	if err != nil {
		l.cfg.Log.Warn("a recorded decision cannot be compared with", "error", err)
		return
	}
	last[s] = k
}

// readBack goes back on the ref, epoch by epoch, until nothing is missing any more. What is known already is younger.
func (l *Log) readBack(last map[subject]key, missing func() bool) error {
	if !missing() {
		return nil
	}
	ctx, cancel := context.WithTimeout(l.life, readTime)
	defer cancel()
	if err := l.takeRef(ctx); err != nil {
		return err
	}
	defer func() { <-l.ref }()
	for epoch, err := range l.cfg.Ref.Epochs(ctx, decisions.Filter{Since: l.cfg.Now().Add(-lookBack)}) {
		if err != nil {
			return err
		}
		of := map[subject]key{}
		for d, err := range epoch {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			l.note(of, d)
		}
		for s, k := range of {
			if _, known := last[s]; !known {
				last[s] = k
			}
		}
		if !missing() {
			return nil
		}
	}
	return nil
}

// takeRef waits until nobody else uses the ref.
func (l *Log) takeRef(ctx context.Context) error {
	select {
	case l.ref <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a flush: %w", context.Cause(ctx))
	}
}

// complaint logs an error when it is another than the last one, and when it is over.
type complaint struct {
	log  *slog.Logger
	last string
}

func (c *complaint) about(err error, message string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == c.last:
	case err == nil:
		c.log.Info("over: " + message)
	default:
		c.log.Error(message, "error", err)
	}
	c.last = text
}

// lasting reports whether only a person can help.
func lasting(err error) bool {
	var l interface{ Lasting() bool }
	return errors.As(err, &l) && l.Lasting()
}
