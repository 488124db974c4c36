package gitops

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/printable"
)

// DecisionOrder says in which order decisions are read.
type DecisionOrder string

// The orders of decisions, as they were written. NewestFirst goes back no further than the caller wants, and holds the wanted decisions of
// one epoch, a month at most, in memory. OldestFirst holds those of some segments, and begins with the oldest epoch that Since reaches into.
// Of one worker deployment, both hold what is wanted of some epochs.
const (
	NewestFirst DecisionOrder = "NewestFirst"
	OldestFirst DecisionOrder = "OldestFirst"
)

// DecisionQuery says which decisions to read, and how.
type DecisionQuery struct {
	Filter decisions.Filter
	Order  DecisionOrder
}

// Read gives the decisions that the query asks for. A ref that is not there has none.
// Errors: *NotKeptError where the ref holds something else, those of mirror.Fetch. An error is the last thing that is given.
func (d *Decisions) Read(ctx context.Context, q DecisionQuery) iter.Seq2[decisions.Decision, error] {
	return func(yield func(decisions.Decision, error) bool) {
		tip, err := d.fetch(ctx)
		if err != nil {
			yield(decisions.Decision{}, err)
			return
		}
		decisionReader{from: d.mirror, ref: d.cfg.Ref, query: q}.read(ctx, tip)(yield)
	}
}

// Epochs gives the decisions that the filter wants epoch by epoch, the newest epoch first, and in each the oldest decision first: a segment
// of them is in memory at a time. It goes back no further than the caller and Since want. Errors: those of Read.
func (d *Decisions) Epochs(ctx context.Context, f decisions.Filter) iter.Seq2[iter.Seq2[decisions.Decision, error], error] {
	return func(yield func(iter.Seq2[decisions.Decision, error], error) bool) {
		tip, err := d.fetch(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		r := decisionReader{from: d.mirror, ref: d.cfg.Ref, query: DecisionQuery{Filter: f}}
		for e, err := range r.epochs(ctx, tip) {
			if !yield(r.stream(ctx, e), err) || err != nil {
				return
			}
		}
	}
}

// lineage is commits and what is in them. History calls visit with a tip's commit and its ancestors, newest first, until it says false.
type lineage interface {
	History(ctx context.Context, tip mirror.Tip, visit func(mirror.CommitInfo) (bool, error)) error
	Tree(h mirror.Hash) ([]mirror.Entry, error)
	Blob(h mirror.Hash, limit int64) ([]byte, error)
}

var _ lineage = (*mirror.Mirror)(nil)

// decisionReader reads a ref of decisions.
type decisionReader struct {
	from  lineage
	ref   string
	query DecisionQuery
}

func (r decisionReader) read(ctx context.Context, tip mirror.Tip) iter.Seq2[decisions.Decision, error] {
	switch r.query.Order {
	case NewestFirst:
		return r.newest(ctx, tip)
	case OldestFirst:
		return r.oldest(ctx, tip)
	}
	return func(yield func(decisions.Decision, error) bool) {
		yield(decisions.Decision{}, fmt.Errorf("there is no order %q of decisions", r.query.Order))
	}
}

// stream gives the decisions of one epoch, the oldest first. An error is the last thing that is given.
func (r decisionReader) stream(ctx context.Context, e epoch) iter.Seq2[decisions.Decision, error] {
	return func(yield func(decisions.Decision, error) bool) {
		stopped := false
		_, err := r.decode(ctx, e, func(d decisions.Decision) bool { stopped = !yield(d, nil); return !stopped })
		if err != nil && !stopped {
			yield(decisions.Decision{}, err)
		}
	}
}

// epoch is the segments of one, the newest first. They are small beside what they decode to.
type epoch []segment

// skew is by how much the clocks of two bots may differ.
const skew = time.Hour

// epochs gives epoch after epoch, the newest first. Each is given as a whole, since its segments build on each other. A commit is made
// after the decisions in it: what was committed before the query's Since is not looked at.
func (r decisionReader) epochs(ctx context.Context, tip mirror.Tip) iter.Seq2[epoch, error] {
	return func(yield func(epoch, error) bool) {
		if tip.Commit.IsZero() {
			return
		}
		var pending epoch
		ended := false
		err := r.from.History(ctx, tip, func(c mirror.CommitInfo) (bool, error) {
			if len(pending) == 0 && c.Hash != tip.Commit && c.Committer.When.Before(r.query.Filter.Since.Add(-skew)) {
				ended = true
				return false, nil
			}
			s, header, err := r.segment(c)
			if err != nil {
				return false, err
			}
			pending = append(pending, s)
			if header.Sequence > 0 {
				return true, nil
			}
			e := pending
			pending = nil
			ended = !yield(e, nil)
			return !ended, nil
		})
		if err == nil && !ended && len(pending) > 0 {
			err = r.foreign(pending[len(pending)-1].commit, errors.New("history ends in the middle: segments before it are missing"))
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// segment is one that was not decoded yet.
type segment struct {
	commit mirror.Hash
	data   []byte
}

// segment reads what a commit holds, which is to be a segment and nothing else.
func (r decisionReader) segment(c mirror.CommitInfo) (segment, decisions.Header, error) {
	s := segment{commit: c.Hash}
	entries, err := r.from.Tree(c.Tree)
	if err != nil {
		return s, decisions.Header{}, err
	}
	switch {
	case len(entries) != 1 || entries[0].Name != segmentFile || entries[0].Mode != mirror.ModeFile:
		return s, decisions.Header{}, r.foreign(c.Hash, fmt.Errorf("it has %s where there is one file %q", listEntries(entries), segmentFile))
	case len(c.Parents) > 1:
		return s, decisions.Header{}, r.foreign(c.Hash, errors.New("it is a merge"))
	}
	var large *mirror.TooLargeError
	if s.data, err = r.from.Blob(entries[0].Hash, maxSegmentSize); errors.As(err, &large) {
		return s, decisions.Header{}, r.foreign(c.Hash, err)
	} else if err != nil {
		return s, decisions.Header{}, err
	}
	header, err := decisions.ReadHeader(s.data)
	if err != nil {
		return s, header, r.foreign(c.Hash, err)
	}
	return s, header, nil
}

// decode reads the segments of one epoch, from the oldest on, until visit says false. It gives the state after them, which is of use where
// all were visited.
func (r decisionReader) decode(ctx context.Context, e epoch, visit func(decisions.Decision) bool) (*decisions.State, error) {
	state := decisions.NewState()
	segments := make([][]byte, 0, len(e))
	for _, s := range slices.Backward(e) {
		segments = append(segments, s.data)
	}
	n, err := decisions.NewDecoder(state).Each(ctx, segments, decisions.Visitor{Filter: r.query.Filter, Visit: func(ds []decisions.Decision) bool {
		for _, d := range ds {
			if !visit(d) {
				return false
			}
		}
		return true
	}})
	switch {
	case err == nil:
		return state, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, r.foreign(e[len(e)-1-n].commit, err)
}

// foreign says that a commit is none of a decision log.
func (r decisionReader) foreign(commit mirror.Hash, err error) error {
	advice := "look at it with git log; then delete the ref with git push origin --delete " + r.ref + ", or choose another with --decision-ref"
	if errors.Is(err, decisions.ErrVersion) {
		advice = "it may be of a newer Rampart; if it is none, choose another with --decision-ref"
	}
	return &NotKeptError{Ref: r.ref, Advice: advice, Err: fmt.Errorf("commit %s is not of a decision log: %w", commit, err)}
}

func listEntries(entries []mirror.Entry) string {
	const most = 5
	var out []string
	for i, e := range entries {
		if i == most {
			out = append(out, "...")
			break
		}
		out = append(out, fmt.Sprintf("%q", e.Name))
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

// maxNamed is how many worker deployments a commit's message names. A name takes about as much room there as a decision in a segment.
const maxNamed = 8

// decisionsMessage says what a segment holds, for people: about how many worker deployments, or about which where they are few.
func decisionsMessage(ds []decisions.Decision) string {
	about := map[string]int{}
	first, last := ds[0].Timestamp, ds[0].Timestamp
	for _, d := range ds {
		name, err := d.Deployment()
		if err != nil {
			continue // it could be encoded, so it is counted, if not named
		}
		about[name.String()]++
		if d.Timestamp.Before(first) {
			first = d.Timestamp
		}
		if d.Timestamp.After(last) {
			last = d.Timestamp
		}
	}
	sorted := slices.Sorted(maps.Keys(about))
	subject := fmt.Sprintf("rampart: %d decisions about %d worker deployments", len(ds), len(about))
	if len(ds) == 1 && len(sorted) == 1 {
		subject = "rampart: a decision about " + printable.Line(sorted[0])
	} else if len(sorted) == 1 {
		subject = fmt.Sprintf("rampart: %d decisions about %s", len(ds), printable.Line(sorted[0]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nFrom %s to %s\n", subject, first.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
	if len(sorted) > maxNamed {
		return b.String()
	}
	b.WriteString("\n")
	for _, name := range sorted {
		fmt.Fprintf(&b, "%s: %d\n", printable.Line(name), about[name])
	}
	return b.String()
}
