package decisionlog

import (
	"context"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/decisions"
)

// pending is what is to come to the ref.
type pending struct {
	mu    sync.Mutex
	spool *spool
	all   []waits
	bytes int
	wake  chan struct{}
	// fresh wakes the comparer, and known are the subjects that it compared.
	fresh chan struct{}
	known map[subject]bool
	// complain is about the spool.
	complain complaint
}

type waits struct {
	decisions.Decision
	since   time.Time
	subject subject
	key     key
	// done says that something was carried out.
	done bool
	// fresh says that it was not compared with what earlier runs recorded: it is in the spool, and may not come to the ref.
	fresh bool
	// spooled says that an earlier run left it, which may have been killed before it compared it, or after it brought it to the ref.
	spooled bool
}

func (w waits) size() int { return len(w.Input) + len(w.Result) }

// addLeft puts what is in the spool behind what waits. It is compared as what is new is: what it cannot be compared by may come to the ref.
func (l *Log) addLeft(left []waits) {
	p := &l.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	since := l.cfg.Now().Add(-l.cfg.FlushSoon) // due at once
	for _, w := range left {
		var err error
		w.subject, w.key, err = recorded(w.Decision)
		if w.fresh = err == nil; !w.fresh {
			l.cfg.Log.Warn("a decision in the spool cannot be compared with what was recorded", "error", err)
		}
		w.since = since
		p.all = append(p.all, w)
		p.bytes += w.size()
	}
	l.makeRoom()
	if len(left) > 0 {
		wake(p.fresh)
	}
}

// addNew puts decisions behind those that wait, and into the spool. It gives those that need not be compared.
func (l *Log) addNew(made []waits) []decisions.Decision {
	p := &l.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	var ready []decisions.Decision
	for _, w := range made {
		if w.fresh = !p.known[w.subject]; !w.fresh {
			ready = append(ready, w.Decision)
		}
		p.all = append(p.all, w)
		p.bytes += w.size()
	}
	l.makeRoom()
	p.complain.about(p.spool.append(made, p.all), spoolFails)
	if len(ready) < len(made) {
		wake(p.fresh)
	}
	return ready
}

const spoolFails = "the spool of decisions cannot be written: they wait in memory"

// makeRoom lets the oldest go where too much waits.
func (l *Log) makeRoom() {
	given := 0
	for l.pending.bytes > maxWaiting && given < len(l.pending.all)-1 {
		l.pending.bytes -= l.pending.all[given].size()
		given++
	}
	if given > 0 {
		l.pending.all = l.pending.all[given:]
		l.pending.spool.behind = true
		l.cfg.Log.Error("decisions are not kept in Git: too many wait for the ref", "given_up", given)
	}
	wake(l.pending.wake)
}

// uncompared are those that were not compared with what earlier runs recorded.
func (p *pending) uncompared() []waits {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []waits
	for _, w := range p.all {
		if w.fresh {
			out = append(out, w)
		}
	}
	return out
}

// settle lets what is ready come to the ref, and takes away what is stale. Both are IDs of what was compared.
func (p *pending) settle(ready, stale map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.all {
		p.all[i].fresh = p.all[i].fresh && !ready[p.all[i].ID]
	}
	if len(stale) > 0 {
		p.remove(func(w *waits) bool { return w.fresh && stale[w.ID] })
	}
	wake(p.wake)
}

// remove takes away what is gone, from the spool too.
func (p *pending) remove(gone func(*waits) bool) {
	var left []waits
	p.bytes = 0
	for i := range p.all {
		if !gone(&p.all[i]) {
			left = append(left, p.all[i])
			p.bytes += p.all[i].size()
		}
	}
	p.all = left
	p.complain.about(p.spool.rewrite(left), spoolFails)
}

// ready are all that may come to the ref.
func (p *pending) ready() []waits {
	var out []waits
	for _, w := range p.all {
		if !w.fresh {
			out = append(out, w)
		}
	}
	return out
}

// leave says what is left, and closes the spool.
func (l *Log) leave(ctx context.Context) error {
	p := &l.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.all); n > 0 {
		l.cfg.Log.WarnContext(ctx, "decisions wait in the spool for the next start", "decisions", n, "spool", l.cfg.Spool)
	}
	if p.spool == nil {
		return nil
	}
	return p.spool.close()
}

func decisionsOf(all []waits) []decisions.Decision {
	out := make([]decisions.Decision, len(all))
	for i := range all {
		out[i] = all[i].Decision
	}
	return out
}

// flusher brings to the ref what waits for it, until the log is closed.
func (l *Log) flusher() {
	defer close(l.flushed)
	f := flushing{Log: l, complain: complaint{log: l.cfg.Log}}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		closing := false
		select {
		case <-timer.C:
		case <-l.pending.wake:
		case <-l.compared: // nothing becomes ready any more
			closing = true
		}
		if wait, any := f.due(); closing || any && wait <= 0 {
			f.flush()
		}
		if closing {
			return
		}
		if wait, any := f.due(); any {
			timer.Reset(max(wait, 0))
		}
	}
}

// flushing is what the flusher knows.
type flushing struct {
	*Log
	complain complaint
	// failed is how many flushes failed in a row; none is tried before notBefore.
	failed int
	// last is when the last flush succeeded; zero: none did.
	last      time.Time
	notBefore time.Time
}

// due is how long to wait for the next flush; false: there is nothing to flush.
func (f *flushing) due() (time.Duration, bool) {
	f.pending.mu.Lock()
	defer f.pending.mu.Unlock()
	ready := f.pending.ready()
	if len(ready) == 0 {
		return 0, false
	}
	now := f.cfg.Now()
	wait := max(ready[0].since.Add(f.cfg.FlushSoon).Sub(now), f.last.Add(f.cfg.FlushAfter).Sub(now))
	if len(ready) >= f.cfg.FlushCount {
		wait = 0
	}
	return max(wait, f.notBefore.Sub(now)), true
}

// flush brings all that is ready to the ref, in one go.
func (f *flushing) flush() {
	f.pending.mu.Lock()
	ds := decisionsOf(f.pending.ready())
	f.pending.mu.Unlock()
	if len(ds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(f.life, flushTime)
	defer cancel()
	commits, err := f.append(ctx, ds)
	if f.complain.about(err, "decisions could not be kept in Git: they wait, and are tried again"); err != nil {
		pause := min(firstPause<<min(f.failed, 10), lastPause)
		if lasting(err) {
			pause = lastPause
		}
		f.failed, f.notBefore = f.failed+1, f.cfg.Now().Add(pause)
		return
	}
	f.failed, f.notBefore, f.last = 0, time.Time{}, f.cfg.Now()
	f.cfg.Log.Info("decisions kept in Git", "decisions", len(ds), "commits", commits)
	f.drop(ds)
}

func (f *flushing) append(ctx context.Context, ds []decisions.Decision) ([]string, error) {
	if err := f.takeRef(ctx); err != nil {
		return nil, err
	}
	defer func() { <-f.ref }()
	return f.cfg.Ref.Append(ctx, ds)
}

// drop takes away what came to the ref.
func (f *flushing) drop(ds []decisions.Decision) {
	there := make(map[string]bool, len(ds))
	for i := range ds {
		there[ds[i].ID] = true
	}
	f.pending.mu.Lock()
	defer f.pending.mu.Unlock()
	f.pending.remove(func(w *waits) bool { return there[w.ID] })
}
