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
	// complain is about the spool.
	complain complaint
}

type waits struct {
	decisions.Decision
	since time.Time
}

func (w waits) size() int { return len(w.Input) + len(w.Result) }

// add puts decisions behind those that wait. The oldest go where too much waits.
func (l *Log) add(ds []decisions.Decision, since time.Time) {
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	for _, d := range ds {
		l.pending.all = append(l.pending.all, waits{d, since})
		l.pending.bytes += l.pending.all[len(l.pending.all)-1].size()
	}
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

// keep writes decisions that were added to the spool.
func (l *Log) keep(added []decisions.Decision) {
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	l.pending.complain.about(l.pending.spool.append(added, decisionsOf(l.pending.all)), "the spool of decisions cannot be written: they wait in memory")
}

// decisions are all that wait.
func (p *pending) decisions() []decisions.Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	return decisionsOf(p.all)
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
		case <-l.written: // the writer is the last to add something
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
	failed    int
	notBefore time.Time
}

// due is how long to wait for the next flush; false: there is nothing to flush.
func (f *flushing) due() (time.Duration, bool) {
	f.pending.mu.Lock()
	defer f.pending.mu.Unlock()
	if len(f.pending.all) == 0 {
		return 0, false
	}
	now := f.cfg.Now()
	wait := f.pending.all[0].since.Add(f.cfg.FlushAfter).Sub(now)
	if len(f.pending.all) >= f.cfg.FlushCount {
		wait = 0
	}
	return max(wait, f.notBefore.Sub(now)), true
}

// flush brings all that waits to the ref, in one go.
func (f *flushing) flush() {
	ds := f.pending.decisions()
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
	f.failed, f.notBefore = 0, time.Time{}
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
	var left []waits
	f.pending.bytes = 0
	for _, w := range f.pending.all {
		if !there[w.ID] {
			left = append(left, w)
			f.pending.bytes += w.size()
		}
	}
	f.pending.all = left
	f.pending.complain.about(f.pending.spool.rewrite(decisionsOf(left)), "the spool of decisions cannot be written: they wait in memory")
}
