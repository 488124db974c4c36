package gitops

import (
	"context"
	"path"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// lazyTree is a tree whose files may still be on a server. Each can be read; many are better brought at once before.
type lazyTree interface {
	tree
	// lazy says whether anything may have to be brought.
	lazy() bool
	// bring makes sure that files can be read without a request for each. They may be of any tree of the same
	// repository.
	bring(files []*found) error
	// bringFolders makes sure that folders can be listed without a request for each, and all below them, too, if below
	// is set.
	bringFolders(hashes []string, below bool) error
	// within is the tree for another caller.
	within(ctx context.Context) lazyTree
}

var _ lazyTree = commitTree{}

func (t commitTree) lazy() bool { return t.mirror.Partial() }

func (t commitTree) bring(files []*found) error {
	return t.mirror.Bring(t.ctx, hashesOf(files))
}

func (t commitTree) bringFolders(hashes []string, below bool) error {
	trees := make([]git.Hash, 0, len(hashes))
	for _, h := range hashes {
		if h != "" {
			trees = append(trees, plumbing.NewHash(h))
		}
	}
	return t.mirror.BringTrees(t.ctx, git.Hash{}, trees, below)
}

// bringFolders brings what of folders a tree lacks, if it is lazy at all.
func bringFolders(t tree, hashes []string, below bool) error {
	l, ok := t.(lazyTree)
	if !ok || !l.lazy() || len(hashes) == 0 {
		return nil
	}
	return l.bringFolders(hashes, below)
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

// within is a survey for another caller.
func (v surveyed) within(ctx context.Context) surveyed {
	out := make(surveyed, len(v))
	for name, e := range v {
		own := e.within(ctx)
		out[name] = &own
	}
	return out
}

// bring makes sure that fill can read what it needs for some snapshots.
func (v surveyed) bring(ctx context.Context, snapshots []rollout.Snapshot) error {
	var files []*found
	var from lazyTree
	left := newBudget()
	v = v.within(ctx)
	if err := v.bringRecords(snapshots); err != nil {
		return err
	}
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
	return from.bring(files)
}

// bringRecords brings the folders of records that are known in brief.
func (v surveyed) bringRecords(snapshots []rollout.Snapshot) error {
	of := map[*environment][]string{}
	for i := range snapshots {
		s := &snapshots[i]
		if e := v[s.Environment.Name]; s.Brief && e != nil && s.Record.Tree != "" {
			of[e] = append(of[e], s.Record.Tree)
		}
	}
	for e, hashes := range of {
		if err := bringFolders(e.out, hashes, true); err != nil {
			return err
		}
	}
	return nil
}

// bringFor makes sure that some worker deployments can be opened.
func (e *environment) bringFor(all []deploymentAt, which []int) error {
	t, ok := e.tree.(lazyTree)
	if !ok || !t.lazy() {
		return nil
	}
	records := make([]fileKey, len(which))
	for k, i := range which {
		if r := all[i].record; r != nil && r.brief != nil {
			records[k] = fileKey{r.Dir, r.Tree}
		}
	}
	if err := bringFolders(e.out, hashesIn(records), true); err != nil {
		return err
	}
	var files []*found
	left := newBudget()
	for k, i := range which {
		files = e.filesOf(all[i].specs, records[k], left, files)
	}
	return t.bring(files)
}

// filesOf adds the files of a worker deployment: its specs, and its record if it has one.
func (e *environment) filesOf(specs []*specAt, record fileKey, left *budget, out []*found) []*found {
	for i := range specs {
		out = append(out, specs[i].file)
	}
	if record.hash != "" {
		out = e.recordBelow(record, left, out)
	}
	return out
}

// later are the trees of records, then the blobs of specs and records, that a partial mirror lacks still, though
// nothing has asked for them.
type later struct {
	known bool
	trees []git.Hash
	// blobs are looked for when all trees are there.
	named bool
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

// Complete brings some of what fill may be asked for while the repository is away: specs and records that are known
// in brief and were never read from this mirror. It belongs between two readings. A failure does no harm, since the
// next call goes on.
func (r *Repository) Complete(ctx context.Context) {
	r.mirror.Keep(false)
	now, filled := r.cfg.Now(), r.mirror.Filled()
	if !r.mirror.Partial() || now.Before(r.later.until) {
		return
	}
	if !r.later.known || r.later.filled != filled {
		r.later = later{known: true, filled: filled, trees: r.mirror.Lacking(r.survey.reader.surveyed.trees())}
	}
	bounded, cancel := context.WithTimeout(ctx, laterTime)
	defer cancel()
	if err := r.complete(bounded); err != nil {
		r.cfg.Log.DebugContext(ctx, "the rest of specs and records comes later", "trees", len(r.later.trees), "blobs", len(r.later.blobs), "error", err)
		r.later = later{until: now.Add(laterPause)} // what there is to bring may be another then
	}
}

// Begin says that a cycle begins: what comes from now on is read in it.
func (r *Repository) Begin() {
	r.mirror.Keep(true)
	r.looks.begin()
}

// Forget gives up memory that reading much took.
func (r *Repository) Forget() { r.mirror.Forget() }

// complete brings a part of what is left.
func (r *Repository) complete(ctx context.Context) error {
	l := &r.later
	if part := l.trees[:min(r.atOnce, len(l.trees))]; len(part) > 0 {
		l.trees = l.trees[len(part):]
		return r.mirror.BringTrees(ctx, git.Hash{}, part, true)
	}
	if !l.named {
		l.named, l.blobs = true, r.mirror.Lacking(r.survey.reader.surveyed.blobs(ctx))
	}
	part := l.blobs[:min(r.atOnce, len(l.blobs))]
	l.blobs = l.blobs[len(part):]
	return r.mirror.Bring(ctx, part)
}

// trees are those of all records.
func (v surveyed) trees() []git.Hash {
	var out []git.Hash
	for _, e := range v {
		for _, folder := range e.found {
			for i := range folder.at {
				out = append(out, plumbing.NewHash(folder.at[i].hash))
			}
		}
	}
	return out
}

// blobs are those of all specs and records.
func (v surveyed) blobs(ctx context.Context) []git.Hash {
	var files []*found
	for _, e := range v.within(ctx) {
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

func hashesOf(files []*found) []git.Hash {
	out := make([]git.Hash, 0, len(files))
	for _, f := range files {
		if f.built == nil { // else Git has no such object
			out = append(out, plumbing.NewHash(f.hash))
		}
	}
	return out
}
