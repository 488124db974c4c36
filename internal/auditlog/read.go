package auditlog

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/git"
)

// Archive is where segments are: refs named by month, each with a list of files. It is used by one goroutine at a time.
type Archive interface {
	Names(ctx context.Context) ([]string, error)
	Folder(ctx context.Context, name string) (gitops.Folder, error)
	Files(ctx context.Context, files []git.Entry) ([][]byte, error)
}

var (
	_ Archive = (*gitops.Archive)(nil)
	_ Archive = (*gitops.CloneArchive)(nil)
)

// Filter says which decisions are wanted. Its zero value wants all.
type Filter struct {
	// Deployment as namespace/name; "" is any.
	Deployment string
	// Since is the earliest time that is wanted. Zero: any.
	Since time.Time
}

// Wants reports whether decisions of a time are wanted.
func (f Filter) Wants(at time.Time) bool { return !at.Before(f.Since) }

// Query says which decisions to read, and how.
type Query struct {
	Filter
	// NewestFirst gives the last recorded decision first, else the first.
	NewestFirst bool
	// LatestOnly gives, with NewestFirst, only the newest of each worker deployment in each environment.
	LatestOnly bool
}

// NotKeptError says that decisions cannot be kept or read until a person does something about it. Nothing was written.
type NotKeptError struct {
	Ref string
	// Advice is what a person can do.
	Advice string
	Err    error
}

func (e *NotKeptError) Error() string {
	return fmt.Sprintf("decisions cannot be kept on %s: %v (%s)", e.Ref, e.Err, e.Advice)
}

// Unwrap gives the cause.
func (e *NotKeptError) Unwrap() error { return e.Err }

// Lasting says that trying again soon is of no use.
func (e *NotKeptError) Lasting() bool { return true }

// foreign says that a ref holds something else.
func foreign(ref string, err error) error {
	return &NotKeptError{Ref: ref, Err: err, Advice: "look at it with git ls-tree; then delete it with " +
		"git push origin --delete " + ref + ", or choose another with --decision-ref"}
}

// Read gives the decisions on the refs below a name that the query asks for. It goes back no further than the caller
// and the query want, and reads some segments ahead. A repository without such refs has none. Errors: *NotKeptError
// where a ref holds something else, those of the archive. An error is the last thing that is given.
func Read(ctx context.Context, archive Archive, ref string, q Query) iter.Seq2[Decision, error] {
	return func(yield func(Decision, error) bool) {
		seen := map[string]bool{}
		for p := range ahead(ctx, reader{archive, ref, q}) {
			for _, d := range p.decisions {
				if q.LatestOnly && seen[d.about] {
					continue
				}
				seen[d.about] = q.LatestOnly
				if !yield(d.Decision, nil) {
					return
				}
			}
			if p.err != nil {
				yield(Decision{}, p.err)
				return
			}
		}
	}
}

// reader reads segments.
type reader struct {
	archive Archive
	ref     string
	query   Query
}

// file is a segment that was not unpacked.
type file struct {
	ref, name string
	data      []byte
}

// foreign says that a segment cannot be read.
func (f file) foreign(err error) error {
	return foreign(f.ref, fmt.Errorf("read segment %s: %w", f.name, err))
}

// part is some of a segment's decisions.
type part struct {
	decisions []told
	// err is the last thing that is given.
	err error
}

// maxPart is how many decisions a part has.
const maxPart = 256

// told is a decision, and what it is about.
type told struct {
	about string
	Decision
}

// parts gives the decisions of a segment that a query asks for.
func (f file) parts(q Query, give func(part) bool) {
	all, err := f.decisions(q)
	if err != nil {
		give(part{err: err})
		return
	}
	slices.SortStableFunc(all, func(a, b told) int { return a.Timestamp.Compare(b.Timestamp) })
	if q.NewestFirst {
		slices.Reverse(all)
	}
	for some := range slices.Chunk(all, maxPart) {
		if !give(part{decisions: some}) {
			return
		}
	}
}

// decisions are those of a segment that a query asks for, in no order. Each is made while its record is there alone:
// the records of a whole segment are ten times as many objects to collect.
func (f file) decisions(q Query) (out []told, err error) {
	records := f.records(q.Deployment)
	if q.LatestOnly {
		records = latest(records)
	}
	var restored restorer
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		if !q.Wants(r.at) {
			continue
		}
		d, err := restored.decision(r)
		if err != nil {
			return nil, f.foreign(err)
		}
		out = append(out, told{r.about, d})
	}
	return out, nil
}

// latest gives the newest of those records that follow each other and are about the same.
func latest(records iter.Seq2[record, error]) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		var last record
		for r, err := range records {
			switch {
			case err != nil:
				yield(record{}, err)
				return
			case last.line != nil && last.about != r.about:
				if !yield(last, nil) {
					return
				}
				last = r
			case !r.at.Before(last.at):
				last = r
			}
		}
		if last.line != nil {
			yield(last, nil)
		}
	}
}

// records are those of a segment that are about a worker deployment; "" is any.
func (f file) records(deployment string) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		for r, err := range unpack(f.data, deployment) {
			if err != nil {
				err = f.foreign(err)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// maxFetched is how many segments are fetched at once.
const maxFetched = 16

// files gives segment after segment, in the order that is asked for.
func (r reader) files(ctx context.Context) iter.Seq2[file, error] {
	return func(yield func(file, error) bool) {
		months, err := r.months(ctx)
		if err != nil {
			yield(file{}, err)
			return
		}
		fetch := 1 // who wants the newest alone needs no more
		for _, month := range months {
			entries, err := r.segments(ctx, month)
			if err != nil {
				yield(file{}, err)
				return
			}
			for len(entries) > 0 {
				n := min(fetch, len(entries))
				fetch = min(2*fetch, maxFetched)
				data, err := r.archive.Files(ctx, entries[:n])
				if err != nil {
					yield(file{}, err)
					return
				}
				for i, e := range entries[:n] {
					if !yield(file{r.ref + "/" + month, e.Name, data[i]}, nil) {
						return
					}
				}
				entries = entries[n:]
			}
		}
	}
}

// months are the names of the refs that the query reaches.
func (r reader) months(ctx context.Context) ([]string, error) {
	names, err := r.archive.Names(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		if first, err := time.Parse(monthly, name); err == nil && r.query.Wants(first.AddDate(0, 1, 0)) {
			out = append(out, name)
		}
	}
	if r.query.NewestFirst {
		slices.Reverse(out)
	}
	return out, nil
}

// segments are those of a month that the query reaches.
func (r reader) segments(ctx context.Context, month string) ([]git.Entry, error) {
	folder, err := r.archive.Folder(ctx, month)
	if err != nil {
		return nil, err
	}
	names, err := segmentsOf(folder)
	if err != nil {
		return nil, foreign(r.ref+"/"+month, err)
	}
	var out []git.Entry
	for i, s := range names {
		if r.query.Wants(s.last) {
			out = append(out, folder.Files[i])
		}
	}
	if r.query.NewestFirst {
		slices.Reverse(out)
	}
	return out, nil
}

// segmentsOf reads the names of a folder's files, which are to be segments and nothing else.
func segmentsOf(f gitops.Folder) ([]segmentName, error) {
	var out []segmentName
	for _, e := range f.Files {
		s, err := parseSegmentName(e.Name)
		if err == nil && e.Mode != git.ModeFile {
			err = fmt.Errorf("%q is not a regular file", e.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("commit %s: %w", f.Commit, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// ahead reads as many segments at once as there are processors, and gives their decisions in order. Nothing runs when
// it returns.
func ahead(ctx context.Context, r reader) iter.Seq[part] {
	return func(yield func(part) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		queue := make(chan chan part, runtime.GOMAXPROCS(0))
		all.Go(func() {
			defer close(queue)
			for f, err := range r.files(ctx) {
				parts := make(chan part, 1)
				select {
				case queue <- parts:
				case <-ctx.Done():
					return
				}
				if err != nil {
					parts <- part{err: err}
					close(parts)
					return
				}
				all.Go(func() {
					defer close(parts)
					f.parts(r.query, func(p part) bool {
						select {
						case parts <- p:
							return true
						case <-ctx.Done():
							return false
						}
					})
				})
			}
		})
		for parts := range queue {
			for p := range parts {
				if !yield(p) || p.err != nil {
					return
				}
			}
			if ctx.Err() != nil { // this segment may have ended early
				break
			}
		}
		if err := ctx.Err(); err != nil {
			yield(part{err: context.Cause(ctx)})
		}
	}
}

// monthly is how the refs of months are named.
const monthly = "2006-01"

// monthOf is the name of the ref for a time.
func monthOf(at time.Time) string { return at.UTC().Format(monthly) }
