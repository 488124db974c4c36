package auditlog

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rampart-gitops/rampart/internal/retry"
)

const spoolUnwritten = "the spool of decisions cannot be written: they wait in memory"

// wait puts decisions behind those that wait for the store, and into the spool.
func (l *Log) wait(added []waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold(added)
	l.spoolFails.about(l.spool.append(added, l.pending), spoolUnwritten)
}

// hold puts decisions behind those that wait. The oldest go where too much waits.
func (l *Log) hold(added []waiting) {
	for _, w := range added {
		l.number++
		w.number = l.number
		l.pending = append(l.pending, w)
		l.bytes += w.size()
	}
	given := 0
	for l.bytes > maxWaiting && given < len(l.pending)-1 {
		l.bytes -= l.pending[given].size()
		given++
	}
	if given > 0 {
		l.pending, l.spool.behind = l.pending[given:], true
		l.cfg.Log.Error("decisions are not kept in Git: too many wait for it", "given_up", given)
	}
	wake(l.ready)
}

// release takes away decisions up to a number: they are in the store.
func (l *Log) release(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) > 0 && l.pending[0].number <= number {
		l.bytes -= l.pending[0].size()
		l.pending = l.pending[1:]
	}
	if len(l.pending) == 0 {
		l.pending = nil
	}
	l.spoolFails.about(l.spool.rewrite(l.pending), spoolUnwritten)
}

// flusher brings to the store what waits for it, until the log is closed.
func (l *Log) flusher() {
	defer close(l.flushed)
	f := flushing{Log: l, complain: complaint{log: l.cfg.Log}, recorded: map[subject]key{},
		pauses: retry.Pauses(firstPause, lastPause)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		closing := false
		select {
		case <-timer.C:
		case <-l.ready:
		case <-l.written: // nothing is added any more
			closing = true
		}
		if wait, some := f.due(); some && (closing || wait <= 0) {
			f.flush()
		}
		if closing {
			return
		}
		if wait, some := f.due(); some {
			timer.Reset(wait)
		}
	}
}

// flushing is what the flusher knows.
type flushing struct {
	*Log
	complain complaint
	// recorded is what was recorded last of each subject, as far as it was read back; all says that no more is to be
	// read.
	recorded map[subject]key
	all      bool
	// pauses follow flushes that fail in a row; none is tried before notBefore.
	pauses    *backoff.ExponentialBackOff
	notBefore time.Time
	// last is when the last flush succeeded; zero: none did.
	last time.Time
}

// due is how long to wait for the next flush; false: there is nothing to flush.
func (f *flushing) due() (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 {
		return 0, false
	}
	now := f.cfg.Now()
	wait := max(f.pending[0].since.Add(f.cfg.FlushSoon).Sub(now), f.last.Add(f.cfg.FlushAfter).Sub(now))
	if len(f.pending) >= f.cfg.FlushCount {
		wait = 0
	}
	return max(wait, f.notBefore.Sub(now)), true
}

// flush brings all that waits to the store, in one go.
func (f *flushing) flush() {
	f.mu.Lock()
	all := f.pending[:len(f.pending):len(f.pending)]
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(f.life, flushTime)
	defer cancel()
	fresh, err := f.compare(ctx, all)
	if err == nil && len(fresh) > 0 {
		err = f.cfg.Store.Append(ctx, fresh)
	}
	if f.complain.about(err, "decisions could not be kept in Git: they wait, and are tried again"); err != nil {
		pause := f.pauses.NextBackOff()
		if lasting(err) {
			pause = lastPause
		}
		f.notBefore = f.cfg.Now().Add(pause)
		return
	}
	f.pauses.Reset()
	f.notBefore, f.last = time.Time{}, f.cfg.Now()
	for i := range all {
		f.recorded[all[i].subject] = all[i].key
	}
	f.release(all[len(all)-1].number)
	if len(fresh) > 0 {
		f.cfg.Log.Info("decisions kept in Git", "decisions", len(fresh))
	}
}

// compare leaves out decisions that equal the last recorded one of their subject, unless something was carried out.
// So a bot that restarts does not record again what an earlier run did.
func (f *flushing) compare(ctx context.Context, all []waiting) ([]Decision, error) {
	if err := f.readBack(ctx, all); err != nil {
		return nil, err
	}
	var fresh []Decision
	now := map[subject]key{}
	for i := range all {
		w := &all[i]
		last, known := now[w.subject]
		if !known {
			last, known = f.recorded[w.subject]
		}
		if !known || last != w.key || w.done {
			fresh = append(fresh, w.Decision)
		}
		now[w.subject] = w.key
	}
	return fresh, nil
}

// readBack reads what was recorded last, from the newest on, until it knows of all subjects.
func (f *flushing) readBack(ctx context.Context, all []waiting) error {
	missing := map[subject]bool{}
	for i := range all {
		if _, known := f.recorded[all[i].subject]; !known {
			missing[all[i].subject] = true
		}
	}
	if f.all || len(missing) == 0 {
		return nil
	}
	q := Query{Filter: Filter{Since: f.cfg.Now().Add(-lookBack)}, NewestFirst: true, LatestOnly: true}
	for d, err := range f.cfg.Store.Read(ctx, q) {
		if err != nil {
			return err
		}
		s, k, err := recorded(d)
		if err != nil {
			f.cfg.Log.Warn("a recorded decision cannot be compared with", "error", err)
			continue
		}
		if _, known := f.recorded[s]; !known {
			f.recorded[s] = k
		}
		if delete(missing, s); len(missing) == 0 {
			return nil
		}
	}
	f.all = true
	return nil
}

// lasting reports whether only a person can help.
func lasting(err error) bool {
	var l interface{ Lasting() bool }
	return errors.As(err, &l) && l.Lasting()
}
