package decisionlog

import (
	"context"
	"fmt"

	"github.com/rampart-gitops/rampart/internal/decisions"
)

// earlier is what was recorded in earlier runs.
type earlier struct {
	// last is what was recorded last of each subject, as far as the ref was read back; all says that it was read as far as it is to be.
	last     map[subject]key
	all      bool
	complain complaint
}

// comparer takes from what waits what an earlier run recorded, until the writer has ended.
func (l *Log) comparer() {
	defer close(l.compared)
	for {
		closing := false
		select {
		case <-l.pending.fresh:
		case <-l.written:
			closing = true
		}
		if fresh := l.pending.uncompared(); len(fresh) > 0 {
			l.compare(fresh)
		}
		if closing {
			return
		}
	}
}

// compare leaves out the first decision about each subject where it is as it was recorded last, unless something was carried out, and those
// of the spool where they are as the one before. The others may come to the ref, and what is new of them is written as lines.
func (l *Log) compare(fresh []waits) {
	last := l.earlier.last
	missing := func() bool {
		for _, w := range fresh {
			if _, is := last[w.subject]; !is && !l.pending.known[w.subject] { // only the comparer adds to known
				return true
			}
		}
		return false
	}
	l.earlier.complain.about(l.readBack(missing), "what was recorded last cannot be read: what stands may be recorded again")
	stale := map[string]bool{}
	ready := map[string]bool{}
	var news []decisions.Decision
	l.pending.mu.Lock()
	for _, w := range fresh {
		k, recorded := last[w.subject]
		if !l.pending.known[w.subject] && recorded && k == w.key && !w.done {
			stale[w.ID] = true
		} else {
			ready[w.ID] = true
			if !w.spooled {
				news = append(news, w.Decision)
			}
		}
		if w.spooled {
			last[w.subject] = w.key // what is new is compared with it
		} else {
			l.pending.known[w.subject] = true
		}
	}
	l.pending.mu.Unlock()
	l.pending.settle(ready, stale)
	l.lines.put(news)
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
func (l *Log) readBack(missing func() bool) error {
	if l.earlier.all || !missing() {
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
			if _, known := l.earlier.last[s]; !known {
				l.earlier.last[s] = k
			}
		}
		if !missing() {
			return nil
		}
	}
	l.earlier.all = true
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
