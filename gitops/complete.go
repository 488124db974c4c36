package gitops

import (
	"context"
	"time"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// later are the blobs of specs and records that a partial mirror lacks still, though nothing has asked for them.
type later struct {
	known bool
	blobs []git.Hash
	// filled is how often the mirror had been filled when they were looked for.
	filled int
	// until is when nothing is asked for, after a failure.
	until time.Time
}

// Bounds of Complete.
const (
	laterAtOnce = 10_000
	laterTime   = 10 * time.Second
	laterPause  = time.Minute
)

// Complete brings some of what load may be asked for while the repository is away. These are specs and records that
// have index entries and were never read from this mirror. It belongs between two readings. A failure does no harm,
// since the next call goes on.
func (r *Repository) Complete(ctx context.Context) {
	now, filled := r.cfg.Now(), r.mirror.Filled()
	if !r.mirror.Partial() || now.Before(r.later.until) {
		return
	}
	if !r.later.known || r.later.filled != filled {
		r.later = later{known: true, filled: filled, blobs: r.mirror.Lacking(r.survey.reader.Surveyed().Blobs(ctx))}
	}
	bounded, cancel := context.WithTimeout(ctx, laterTime)
	defer cancel()
	if err := r.complete(bounded); err != nil {
		r.cfg.Log.DebugContext(ctx, "the rest of specs and records comes later", "blobs", len(r.later.blobs), "error",
			err)
		r.later = later{until: now.Add(laterPause)} // what there is to bring may be another then
	}
}

// Forget gives up memory that reading much took.
func (r *Repository) Forget() { r.mirror.Forget() }

// complete brings a part of what is left.
func (r *Repository) complete(ctx context.Context) error {
	l := &r.later
	part := l.blobs[:min(r.atOnce, len(l.blobs))]
	l.blobs = l.blobs[len(part):]
	return r.mirror.Bring(ctx, part)
}
