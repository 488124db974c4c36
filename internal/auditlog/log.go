package auditlog

import (
	"cmp"
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

	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Store is where decisions are kept. It is used by one goroutine at a time. Ref is one.
type Store interface {
	// Append keeps decisions, each once. An error with the method Lasting() bool that says true needs a person.
	Append(ctx context.Context, ds []Decision) error
	Read(ctx context.Context, q Query) iter.Seq2[Decision, error]
}

var _ Store = (*Ref)(nil)

// Config of a Log.
type Config struct {
	// Document gives what policies were asked about, as JSON. Required.
	Document func(d *rollout.Decision) (json.RawMessage, error)
	Masker   *mask.Masker
	// Labels of the bot.
	Labels map[string]string
	// Lines is where JSON lines go; nil: nowhere.
	Lines io.Writer
	// Store to keep decisions in; nil: none. Spool is its spool file, and belongs to this Log alone.
	Store Store
	Spool string
	// FlushAfter is how long after a flush decisions wait for the next one, FlushCount how many wait. The first ones
	// after a quiet time wait for FlushSoon. Zero: DefaultFlushAfter, DefaultFlushCount, DefaultFlushSoon.
	FlushAfter time.Duration
	FlushSoon  time.Duration
	FlushCount int
	Log        *slog.Logger
	Now        func() time.Time
}

// When decisions are flushed to the store.
const (
	DefaultFlushAfter = 15 * time.Minute
	DefaultFlushSoon  = 30 * time.Second
	DefaultFlushCount = 500
)

// Bounds of what is held in memory, and of patience.
const (
	// maxHanded is how many decisions may wait to be written at all.
	maxHanded = 20_000
	// maxWaiting is how many bytes of decisions may wait for the store, maxUnwritten for the file of lines.
	maxWaiting   = 64 << 20
	maxUnwritten = 8 << 20
	// flushTime bounds one flush: the first one may have to fetch a month.
	flushTime = 10 * time.Minute
	// endTime is how long Close waits for what it ended.
	endTime = 2 * time.Second
	// firstPause follows a flush that failed, twice as long the next, up to lastPause; at once lastPause when only a
	// person can help.
	firstPause = 30 * time.Second
	lastPause  = 15 * time.Minute
	// lookBack is how far back the store is searched for what was recorded last.
	lookBack = 31 * 24 * time.Hour
)

// Log records decisions. Use New. One goroutine uses it, which runs cycles; another may call Close.
type Log struct {
	cfg Config
	// handed is what was handed over last, by subject. It belongs to the goroutine that runs cycles.
	handed map[subject]handedOver

	mu sync.Mutex
	// queue was handed over and not written yet; queued wakes the writer.
	queue  []entry
	queued chan struct{}
	// pending waits for the store, and is in the spool; ready wakes the flusher.
	pending []waiting
	bytes   int
	number  int
	spool   *spool
	ready   chan struct{}
	// spoolFails is about the spool.
	spoolFails complaint

	lines *lines
	// Each is closed when its goroutine has ended: the writer, the flusher, and what writes lines.
	written, flushed, told chan struct{}
	closing                chan struct{}
	closeOnce              sync.Once
	// life ends what is under way when Close may not wait any longer.
	life context.Context
	end  context.CancelFunc
}

type handedOver struct {
	key key
	now time.Time
}

// entry is a decision that was handed over.
type entry struct {
	rollout.Made
	subject subject
	key     key
}

// waiting is a decision that waits for the store. Numbers grow.
type waiting struct {
	Decision
	number  int
	since   time.Time
	subject subject
	key     key
	// done says that something was carried out.
	done bool
}

func (w *waiting) size() int { return len(w.Input) + len(w.Result) }

// New makes a log and starts what writes. What waits in the spool is flushed soon. Errors: a spool that cannot be read.
func New(cfg Config) (*Log, error) {
	cfg.FlushAfter = cmp.Or(cfg.FlushAfter, DefaultFlushAfter)
	cfg.FlushSoon = cmp.Or(cfg.FlushSoon, DefaultFlushSoon)
	cfg.FlushCount = cmp.Or(cfg.FlushCount, DefaultFlushCount)
	l := &Log{cfg: cfg, handed: map[subject]handedOver{},
		lines: newLines(cfg.Lines, cfg.Log), spoolFails: complaint{log: cfg.Log},
		queued: make(chan struct{}, 1), ready: make(chan struct{}, 1), closing: make(chan struct{}),
		written: make(chan struct{}), flushed: make(chan struct{}), told: make(chan struct{})}
	l.life, l.end = context.WithCancel(context.Background())
	if cfg.Store == nil {
		close(l.flushed)
	} else {
		s, left, err := openSpool(cfg.Spool, cfg.Log)
		if err != nil {
			return nil, fmt.Errorf("read the spool of decisions: %w", err)
		}
		l.spool = s
		for i := range left {
			left[i].since = cfg.Now().Add(-cfg.FlushSoon) // due at once
		}
		l.hold(left)
		go l.flusher()
	}
	go l.writer()
	go l.teller()
	return l, nil
}

// Record takes what a cycle decided and keeps what is new of it.
func (l *Log) Record(ctx context.Context, made []rollout.Made) {
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
	if len(fresh) == 0 {
		return
	}
	l.mu.Lock()
	full := len(l.queue) > 0 && len(l.queue)+len(fresh) > maxHanded
	if !full {
		l.queue = append(l.queue, fresh...)
	}
	l.mu.Unlock()
	if !full {
		wake(l.queued)
		return
	}
	for _, e := range fresh {
		delete(l.handed, e.subject) // the next cycle hands it over again
	}
	l.cfg.Log.ErrorContext(ctx, "decisions are not recorded: too many wait to be written", "decisions", len(fresh))
}

// Close writes what was handed over and flushes it, until the context ends: what is left then is in the spool. Nothing
// may be recorded afterwards. Nothing uses the store or writes lines when it returns, except for a write that does not
// end.
func (l *Log) Close(ctx context.Context) error {
	l.closeOnce.Do(func() { close(l.closing) })
	defer l.end()
	stop := context.AfterFunc(ctx, l.end)
	defer stop()
	err := ended(ctx, l.written, l.flushed, l.told)
	if err != nil {
		err = fmt.Errorf("close the decision log: %w", err)
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if ended(soon, l.written, l.flushed) != nil {
			return err
		}
		_ = ended(soon, l.told) // it may hang on a pipe that is not read
	}
	if l.spool == nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.pending); n > 0 {
		l.cfg.Log.WarnContext(ctx, "decisions wait in the spool for the next start", "decisions", n, "spool",
			l.cfg.Spool)
	}
	return errors.Join(err, l.spool.close())
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
		case <-l.queued:
		case <-l.closing:
			closing = true
		}
		l.mu.Lock()
		entries := l.queue
		l.queue = nil
		l.mu.Unlock()
		l.write(entries)
		if closing {
			return
		}
	}
}

// write makes decisions of what was handed over, and puts them where a killed bot does not lose them.
func (l *Log) write(entries []entry) {
	var made []waiting
	for i := range entries {
		e := &entries[i]
		d, err := l.decision(e)
		if err != nil {
			l.cfg.Log.Error("a decision is not recorded", "deployment", e.subject.deployment.String(), "error", err)
			continue
		}
		made = append(made, waiting{Decision: d, since: l.cfg.Now(), subject: e.subject, key: e.key, done: e.Done})
	}
	if len(made) == 0 {
		return
	}
	if l.cfg.Store != nil {
		l.wait(made)
	}
	l.lines.put(made)
}

func (l *Log) decision(e *entry) (Decision, error) {
	input, err := l.cfg.Document(e.Decision)
	if err != nil {
		return Decision{}, err
	}
	return NewDecision(Judged{Now: e.Snapshot.Now, Labels: l.cfg.Labels, Input: input, Verdicts: e.Plan.Verdicts,
		Bundles: bundlesOf(e)}, l.cfg.Masker)
}

// bundleFacts begin the names of the facts about the bot's bundles, whose values are revisions.
const bundleFacts = "bundle."

// bundlesOf are the policies that judged: all of them by their digest, and the bot's bundles by their revisions.
func bundlesOf(e *entry) map[string]Bundle {
	out := map[string]Bundle{Path: {Revision: e.Plan.Verdicts.PolicyDigest}}
	for name, fact := range e.Snapshot.Facts {
		var revision string
		if bundle, ok := strings.CutPrefix(name, bundleFacts); ok && json.Unmarshal(fact.Value, &revision) == nil {
			out[bundle] = Bundle{Revision: revision}
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
