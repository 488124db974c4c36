package gitops

import (
	"context"
	"path"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// lazyTree is a tree whose files may still be on a server. Each can be read; many are better brought at once before.
type lazyTree interface {
	tree
	// lazy says whether anything may have to be brought.
	lazy() bool
	// bring makes sure that files can be read without a request for each. They may be of any tree of the same repository.
	bring(files []*found) error
	// within is the tree for another caller.
	within(ctx context.Context) lazyTree
}

var _ lazyTree = commitTree{}

func (t commitTree) lazy() bool { return t.mirror.Partial() }

func (t commitTree) bring(files []*found) error {
	return t.mirror.Bring(t.ctx, hashesOf(files))
}

func (t commitTree) within(ctx context.Context) lazyTree {
	t.ctx = ctx
	return t
}

// within is an environment as it was read, for another caller.
func (e *environment) within(ctx context.Context) environment {
	out := *e
	for _, t := range []*tree{&out.tree, &out.out} {
		if l, ok := (*t).(lazyTree); ok {
			*t = l.within(ctx)
		}
	}
	return out
}

// bring makes sure that fill can read what it needs for some snapshots.
func (v surveyed) bring(ctx context.Context, snapshots []rollout.Snapshot) error {
	var files []*found
	var from lazyTree
	left := newBudget()
	for i := range snapshots {
		s := &snapshots[i]
		e := v[s.Environment.Name]
		if !s.Brief && len(s.Wanted) == 0 || e == nil {
			continue
		}
		t, ok := e.tree.(lazyTree)
		if !ok || !t.lazy() {
			return nil
		}
		from = t
		if s.Brief {
			files = e.filesOf(e.specsOf(s.Deployment), fileKey{s.Record.Dir, s.Record.Tree}, left, files)
			continue
		}
		for _, name := range s.Wanted {
			files = append(files, &found{path: path.Join(s.Record.Dir, name), hash: s.Record.Files[name].Hash})
		}
	}
	if len(files) == 0 {
		return nil
	}
	return from.within(ctx).bring(files)
}

// bringFor makes sure that some worker deployments can be opened.
func (e *environment) bringFor(all []deploymentAt, which []int) error {
	t, ok := e.tree.(lazyTree)
	if !ok || !t.lazy() {
		return nil
	}
	var files []*found
	left := newBudget()
	for _, i := range which {
		var record fileKey
		if r := all[i].record; r != nil && r.brief != nil {
			record = fileKey{r.Dir, r.Tree}
		}
		files = e.filesOf(all[i].specs, record, left, files)
	}
	return t.bring(files)
}

// filesOf adds the files of a worker deployment: its specs, and its record if it has one.
func (e *environment) filesOf(specs []specAt, record fileKey, left *budget, out []*found) []*found {
	for i := range specs {
		out = append(out, specs[i].file)
	}
	if record.hash != "" {
		out = e.recordBelow(record, left, out)
	}
	return out
}

// later are the blobs of specs and records that a partial mirror lacks still, though nothing has asked for them.
type later struct {
	known bool
	blobs []mirror.Hash
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

// Complete brings some of what fill may be asked for while the repository is away: specs and records that are known in brief and were never
// read from this mirror. Its place is between two readings. It is no trouble where it fails, since the next one goes on.
func (r *Repository) Complete(ctx context.Context) {
	now, filled := r.cfg.Now(), r.mirror.Filled()
	if !r.mirror.Partial() || now.Before(r.later.until) {
		return
	}
	if !r.later.known || r.later.filled != filled {
		r.later = later{known: true, filled: filled, blobs: r.mirror.Lacking(r.survey.reader.surveyed.blobs())}
	}
	part := r.later.blobs[:min(r.atOnce, len(r.later.blobs))]
	if len(part) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, laterTime)
	defer cancel()
	if err := r.mirror.Bring(bounded, part); err != nil {
		r.cfg.Log.DebugContext(ctx, "the rest of specs and records comes later", "blobs", len(r.later.blobs), "error", err)
		r.later = later{until: now.Add(laterPause)} // what there is to bring may be another then
		return
	}
	r.later.blobs = r.later.blobs[len(part):]
}

// blobs are those of all specs and records.
func (v surveyed) blobs() []mirror.Hash {
	var files []*found
	for _, e := range v {
		for i := range e.specs {
			files = append(files, e.specs[i].file)
		}
		left := newBudget()
		for _, folder := range e.found {
			for i := range folder.at {
				files = e.recordBelow(fileKey{folder.at[i].dir, folder.at[i].hash}, left, files)
			}
		}
	}
	return hashesOf(files)
}

func hashesOf(files []*found) []mirror.Hash {
	out := make([]mirror.Hash, 0, len(files))
	for _, f := range files {
		out = append(out, plumbing.NewHash(f.hash))
	}
	return out
}
