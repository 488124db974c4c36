package decisionlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
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
	// FlushAfter is how long after a flush decisions wait for the next one, FlushCount how many wait; the first ones after a quiet time wait
	// for FlushSoon. Zero: DefaultFlushAfter, DefaultFlushCount, DefaultFlushSoon.
	FlushAfter time.Duration
	FlushSoon  time.Duration
	FlushCount int
	Log        *slog.Logger
	Now        func() time.Time
}

// When decisions come to the ref.
const (
	DefaultFlushAfter = 15 * time.Minute
	DefaultFlushSoon  = 30 * time.Second
	DefaultFlushCount = 500
)

// Bounds of what is held in memory, and of the ref's patience.
const (
	// maxHanded is how many decisions may wait to be written at all.
	maxHanded = 20_000
	// maxWaiting is how many bytes of decisions may wait for the ref, maxUnwritten for the file of lines.
	maxWaiting   = 64 << 20
	maxUnwritten = 8 << 20
	// readTime bounds how long decisions wait for what was recorded in earlier runs: less than what a bot that ends after one cycle gives.
	// flushTime bounds one flush: the first one may have to bring a month of history.
	readTime  = 30 * time.Second
	flushTime = 10 * time.Minute
	// endTime is how long Close waits for what it ended.
	endTime = 2 * time.Second
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
	// Each is closed when its goroutine has ended: the writer, the comparer, the flusher, and what writes lines.
	written, compared, flushed, told chan struct{}

	closing   chan struct{}
	closeOnce sync.Once
	// life ends what is under way when Close may not wait any longer.
	life context.Context
	end  context.CancelFunc

	// ref is held by whoever uses cfg.Ref: a channel, so that waiting for it can end.
	ref     chan struct{}
	pending pending
	lines   *lines
	// earlier belongs to the comparer.
	earlier earlier
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
	if cfg.FlushSoon == 0 {
		cfg.FlushSoon = DefaultFlushSoon
	}
	if cfg.FlushCount == 0 {
		cfg.FlushCount = DefaultFlushCount
	}
	l := &Log{cfg: cfg, handed: map[subject]handedOver{}, closing: make(chan struct{}), ref: make(chan struct{}, 1), queue: queue{wake: make(chan struct{}, 1)},
		written: make(chan struct{}), compared: make(chan struct{}), flushed: make(chan struct{}), told: make(chan struct{}),
		lines: newLines(cfg.Lines, cfg.Log), earlier: earlier{last: map[subject]key{}, complain: complaint{log: cfg.Log}}}
	l.life, l.end = context.WithCancel(context.Background())
	if cfg.Ref == nil {
		close(l.compared)
		close(l.flushed)
	} else {
		s, left, err := openSpool(cfg.Spool, cfg.Log)
		if err != nil {
			return nil, fmt.Errorf("read the spool of decisions: %w", err)
		}
		l.pending = pending{spool: s, wake: make(chan struct{}, 1), fresh: make(chan struct{}, 1), known: map[subject]bool{}, complain: complaint{log: cfg.Log}}
		l.addLeft(left)
		go l.comparer()
		go l.flusher()
	}
	go l.writer()
	go l.teller()
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
// recorded afterwards. Nothing uses the ref or writes lines when it returns, except for a write that does not end.
func (l *Log) Close(ctx context.Context) error {
	l.closeOnce.Do(func() { close(l.closing) })
	defer l.end()
	stop := context.AfterFunc(ctx, l.end)
	defer stop()
	err := ended(ctx, l.written, l.compared, l.flushed, l.told)
	if err != nil {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if ended(soon, l.written, l.compared, l.flushed) != nil {
			return fmt.Errorf("close the decision log: %w", err)
		}
		err = fmt.Errorf("close the decision log: %w", err)
		_ = ended(soon, l.told) // it may hang on a pipe that nobody reads
	}
	return errors.Join(err, l.leave(ctx))
}

// ended waits until all are closed.
func ended(ctx context.Context, all ...chan struct{}) error {
	for _, c := range all {
		select {
		case <-c:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
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
	for {
		closing := false
		select {
		case <-l.queue.wake:
		case <-l.closing:
			closing = true
		}
		l.write(l.queue.take())
		if closing {
			return
		}
	}
}

// write makes decisions of what was handed over, and puts them where a killed bot does not lose them.
func (l *Log) write(entries []entry) {
	var made []waits
	for i := range entries {
		d, err := l.decision(&entries[i])
		if err != nil {
			l.cfg.Log.Error("a decision is not recorded", "deployment", entries[i].subject.deployment.String(), "error", err)
			continue
		}
		made = append(made, waits{Decision: d, since: l.cfg.Now(), subject: entries[i].subject, key: entries[i].key, done: entries[i].Done})
	}
	switch {
	case len(made) == 0:
	case l.cfg.Ref == nil:
		l.lines.put(decisionsOf(made))
	default:
		l.lines.put(l.addNew(made))
	}
}

func (l *Log) decision(e *entry) (decisions.Decision, error) {
	input, err := l.cfg.Document(e.Decision)
	if err != nil {
		return decisions.Decision{}, err
	}
	return decisions.New(decisions.Judged{Now: e.Snapshot.Now, Labels: l.cfg.Labels, Input: input, Verdicts: e.Plan.Verdicts, Bundles: bundlesOf(e)}, l.cfg.Masker)
}

// bundleFacts begin the names of the facts about the bot's bundles, whose values are revisions.
const bundleFacts = "bundle."

// bundlesOf are the policies that judged: all of them by their digest, and the bot's bundles by their revisions.
func bundlesOf(e *entry) map[string]decisions.Bundle {
	out := map[string]decisions.Bundle{decisions.Path: {Revision: e.Plan.Verdicts.PolicyDigest}}
	for name, fact := range e.Snapshot.Facts {
		var revision string
		if bundle, ok := strings.CutPrefix(name, bundleFacts); ok && json.Unmarshal(fact.Value, &revision) == nil {
			out[bundle] = decisions.Bundle{Revision: revision}
		}
	}
	return out
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
