package auditlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/retry"
)

// WritableArchive is an Archive that segments are written to.
type WritableArchive interface {
	Archive
	// Replace pushes changed files; the ref has to be as it was read. Errors: *git.MovedError and others of
	// git.Mirror.Push.
	Replace(ctx context.Context, was gitops.Folder, changes []git.Change, message string) (git.Hash, error)
	Delete(ctx context.Context, name string) error
	// Empty drops what is held on disk.
	Empty(ctx context.Context) error
}

var _ WritableArchive = (*gitops.Archive)(nil)

// DefaultRef is what the refs of months are below: beside the branches, so that no clone brings them unasked.
const DefaultRef = "refs/rampart/decisions"

// DefaultRetention is how long decisions are kept.
const DefaultRetention = 400 * 24 * time.Hour

// Ref keeps decisions on the refs of months. It is used by one goroutine at a time.
type Ref struct {
	archive WritableArchive
	cfg     RefConfig
	// month was written to last, and commit is what it had then; what is there since then was written by others.
	month  string
	commit git.Hash
	// retired is the day on which refs were last looked through for what is too old.
	retired string
}

// RefConfig says where and for how long decisions are kept.
type RefConfig struct {
	// Name that the refs of months are below, in full.
	Name string
	// Retention is how long decisions are kept: a month's ref is deleted when all of the month is older. Zero: forever.
	Retention time.Duration
	Log       *slog.Logger
	Now       func() time.Time
}

// NewRef makes a Ref on an archive.
func NewRef(archive WritableArchive, cfg RefConfig) *Ref { return &Ref{archive: archive, cfg: cfg} }

// Bounds of a push, and of segments.
const (
	// maxPushed is how many decisions a push takes, and maxPushedJSON how many bytes of them.
	maxPushed     = 1000
	maxPushedJSON = 8 << 20
	// maxOpen is how many small segments a month has before they are merged. What was merged stays open until it has so
	// many decisions, or so many bytes of lines.
	maxOpen     = 16
	closedCount = 14_000
	closedLines = 64 << 20
	// maxRaces is how often a push starts over when others write to the ref at the same time.
	maxRaces = 8
)

// Read gives recorded decisions, as the function Read does.
func (r *Ref) Read(ctx context.Context, q Query) iter.Seq2[Decision, error] {
	return Read(ctx, r.archive, r.cfg.Name, q)
}

// Append keeps decisions, each once: those that a ref has already, from any writer, are left out. Nothing is
// overwritten: where others wrote meanwhile, it adds to what they wrote. Errors: *NotKeptError;
// *git.UnknownOutcomeError and *git.AccessError, after which the same decisions may be given again; the
// context's.
func (r *Ref) Append(ctx context.Context, ds []Decision) error {
	ds = slices.Clone(ds)
	slices.SortStableFunc(ds, func(a, b Decision) int { return a.Timestamp.Compare(b.Timestamp) })
	for len(ds) > 0 {
		n := pushedAtOnce(ds)
		records := make([]record, 0, n)
		for i := range ds[:n] {
			record, err := recordOf(&ds[i])
			if err != nil {
				r.cfg.Log.ErrorContext(ctx, "a decision cannot be kept in Git", "decision", ds[i].ID, "error", err)
				continue
			}
			records = append(records, record)
		}
		if err := r.push(ctx, monthOf(ds[0].Timestamp), records); err != nil {
			return err
		}
		ds = ds[n:]
	}
	r.retire(ctx)
	return nil
}

// pushedAtOnce is how many of the decisions go into one push: those of the same month, and no more than fits.
func pushedAtOnce(ds []Decision) int {
	n, size := 1, len(ds[0].Input)+len(ds[0].Result)
	for ; n < min(len(ds), maxPushed); n++ {
		size += len(ds[n].Input) + len(ds[n].Result)
		if size > maxPushedJSON || monthOf(ds[n].Timestamp) != monthOf(ds[0].Timestamp) {
			break
		}
	}
	return n
}

// push adds records to a month, and starts over when others write to it at the same time.
func (r *Ref) push(ctx context.Context, month string, records []record) error {
	if r.month != "" && r.month != month { // what is held on disk grows with each push
		if err := r.archive.Empty(ctx); err != nil {
			return err
		}
	}
	if r.month != month {
		r.month, r.commit = month, git.Hash{}
	}
	for races := range maxRaces {
		if races > 0 && retry.Sleep(ctx, retry.Pause(races)) != nil {
			return context.Cause(ctx)
		}
		err := r.pushOnce(ctx, records)
		var moved *git.MovedError
		if !errors.As(err, &moved) {
			return r.explain(err)
		}
	}
	return fmt.Errorf("push decisions: others wrote to %s %d times at the same time", r.name(), maxRaces)
}

// name is the full name of the ref that is written to.
func (r *Ref) name() string { return r.cfg.Name + "/" + r.month }

func (r *Ref) pushOnce(ctx context.Context, records []record) error {
	folder, err := r.archive.Folder(ctx, r.month)
	if err != nil {
		return err
	}
	names, err := segmentsOf(folder)
	if err != nil {
		return foreign(r.name(), err)
	}
	m := month{Ref: r, folder: folder, names: names}
	if folder.Commit != r.commit {
		if records, err = m.missing(ctx, records); err != nil {
			return err
		}
	}
	if len(records) == 0 {
		return nil
	}
	changes, err := m.add(ctx, records)
	if err != nil {
		return err
	}
	r.commit = git.Hash{} // until it is certain what became of the push
	commit, err := r.archive.Replace(ctx, folder, changes, message(records))
	if err == nil {
		r.commit = commit
	}
	return err
}

// month is a month's ref as it was read.
type month struct {
	*Ref
	folder gitops.Folder
	names  []segmentName
}

// segments reads some segments, each given by its place in the folder.
func (m month) segments(ctx context.Context, places []int) (out []file, err error) {
	var entries []git.Entry
	for _, i := range places {
		entries = append(entries, m.folder.Files[i])
	}
	data, err := m.archive.Files(ctx, entries)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		out = append(out, file{m.name(), e.Name, data[i]})
	}
	return out, nil
}

// missing are the records that the month does not have.
func (m month) missing(ctx context.Context, records []record) ([]record, error) {
	there, restored := map[string]bool{}, restorer{}
	for i, s := range m.names {
		if len(records) == 0 || s.last.Before(records[0].at) { // the oldest
			continue
		}
		segments, err := m.segments(ctx, []int{i})
		if err != nil {
			return nil, err
		}
		for r, err := range segments[0].records("") {
			if err != nil {
				return nil, err
			}
			d, err := restored.decision(r)
			if err != nil {
				return nil, segments[0].foreign(err)
			}
			there[d.ID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(records), func(r record) bool { return there[r.id] }), nil
}

// add makes a segment of records: a small one, or one with all that is in small ones.
func (m month) add(ctx context.Context, records []record) ([]git.Change, error) {
	s := segmentName{number: 1, open: true}
	var open []int
	for i, other := range m.names {
		s.number = max(s.number, other.number+1)
		if other.open {
			open = append(open, i)
		}
	}
	all := inOrder(records)
	var changes []git.Change
	if len(open) >= maxOpen-1 {
		before, err := m.segments(ctx, open)
		if err != nil {
			return nil, err
		}
		var parts []iter.Seq2[record, error]
		for i, f := range before {
			parts = append(parts, f.records(""))
			changes = append(changes, git.Change{Path: m.folder.Files[open[i]].Name, Delete: true})
		}
		all = merged(append(parts, all))
	}
	p, err := pack(all)
	if err != nil {
		return nil, err
	}
	s.open = p.decisions < closedCount && p.size < closedLines
	s.first, s.last = p.first, p.last
	return append(changes, git.Change{Path: s.String(), Data: p.segment}), nil
}

func message(records []record) string {
	about := map[string]bool{}
	for _, r := range records {
		about[r.about] = true
	}
	return fmt.Sprintf("rampart: %s about %s", count(len(records), "decision"), count(len(about), "worker deployment"))
}

// explain says what to do about a refusal.
func (r *Ref) explain(err error) error {
	var rejected *git.RejectedError
	if !errors.As(err, &rejected) {
		return err
	}
	said := errors.New("the server refuses it: " + rejected.Reason)
	if rejected.Output != "" {
		said = fmt.Errorf("%w: %s", said, rejected.Output)
	}
	advice := "let the bot push to it and replace it, or choose another with --decision-ref"
	if !strings.HasPrefix(r.cfg.Name, "refs/heads/") {
		advice = "some forges take branches only: --decision-ref refs/heads/rampart-decisions"
	}
	return &NotKeptError{Ref: r.name(), Advice: advice, Err: said}
}

// retire deletes, once a day, the refs of months that are older than decisions are kept. What fails is tried again the
// next day.
func (r *Ref) retire(ctx context.Context) {
	now := r.cfg.Now().UTC()
	today := now.Format(time.DateOnly)
	if r.cfg.Retention == 0 || r.retired == today {
		return
	}
	r.retired = today
	names, err := r.archive.Names(ctx)
	for _, name := range names {
		first, notMonth := time.Parse(monthly, name)
		if notMonth != nil || first.AddDate(0, 1, 0).After(now.Add(-r.cfg.Retention)) {
			continue
		}
		if err = r.archive.Delete(ctx, name); err != nil {
			break
		}
		r.cfg.Log.InfoContext(ctx, "deleted decisions that are older than they are kept", "ref", r.cfg.Name+"/"+name)
	}
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "decisions that are older than they are kept could not be deleted", "error", err)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
