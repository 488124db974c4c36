package gitops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/decisions"
)

// DecisionsRef is where decisions are kept unless told otherwise: beside the branches, so that no clone brings it unasked.
const DecisionsRef = "refs/rampart/decisions"

// DecisionsConfig says which ref of which repository decisions are kept on.
type DecisionsConfig struct {
	// URL of the repository, as in Config.
	URL string
	// Ref in full, such as DecisionsRef or refs/heads/rampart-decisions.
	Ref string
	// Dir is a folder for the ref's own mirror; it may be deleted at any time.
	Dir  string
	Auth mirror.Auth
	// Author and Email of commits.
	Author, Email string
	Log           *slog.Logger
	// Now gives the time that commits carry.
	Now func() time.Time
	// OnWrite is told before and after each push; nil: nobody.
	OnWrite func(moment Moment)
}

// Decisions is a ref that decisions are kept on. Each of its commits holds one segment and nothing else; its history is the log. It has a
// mirror of its own, so that nothing that happens here keeps anybody from reading specs. It is used by one goroutine at a time.
type Decisions struct {
	cfg    DecisionsConfig
	mirror *mirror.Mirror
	branch string // as the mirror names it
	// state follows the segments up to the tip; nil: it has to be made from them.
	state *decisions.State
	tip   mirror.Tip
	// there are the IDs of decisions that were seen on the ref since the state was made, or written.
	there map[string]bool
}

// OpenDecisions opens the ref's mirror; it does not talk to the server. Errors: a ref that cannot be one, those of mirror.Open.
func OpenDecisions(cfg DecisionsConfig) (*Decisions, error) {
	branch, err := decisionsBranch(cfg.Ref)
	if err != nil {
		return nil, err
	}
	m, err := mirror.Open(mirror.Config{URL: cfg.URL, Dir: cfg.Dir, Auth: cfg.Auth, Whole: true, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	return &Decisions{cfg: cfg, mirror: m, branch: branch}, nil
}

// decisionsBranch is what the mirror calls a ref.
func decisionsBranch(ref string) (string, error) {
	if !strings.HasPrefix(ref, "refs/") {
		return "", fmt.Errorf("ref %q: it has to be named in full, as in %s or refs/heads/rampart-decisions", ref, DecisionsRef)
	}
	return strings.TrimPrefix(ref, "refs/heads/"), nil
}

// Close gives the mirror back.
func (d *Decisions) Close() error { return d.mirror.Close() }

// NotKeptError says that decisions cannot be kept on a ref until a person does something about it. Nothing was written.
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

// Bounds of a flush.
const (
	// maxSegment is how many decisions a segment takes, and maxSegmentJSON how many bytes of them.
	maxSegment     = 1000
	maxSegmentJSON = 16 << 20
	// maxSegmentSize bounds what is read and written as a segment, in bytes.
	maxSegmentSize = 32 << 20
	// maxRaces is how often a flush starts over when others write to the ref at the same time.
	maxRaces = 8
)

// segmentFile is the one file of a commit.
const segmentFile = "segment"

// Append keeps decisions, each once: those that the ref has already are left out, whoever wrote them. It gives the hashes of the commits
// it made. Nothing is forced: where somebody else wrote meanwhile, it builds on what they wrote.
// Errors: *NotKeptError; *mirror.UnknownOutcomeError and *mirror.AccessError, after which the same decisions may be given again; the
// context's.
func (d *Decisions) Append(ctx context.Context, ds []decisions.Decision) ([]string, error) {
	ds = slices.Clone(ds)
	slices.SortStableFunc(ds, func(a, b decisions.Decision) int { return a.Timestamp.Compare(b.Timestamp) })
	var commits []string
	most := maxSegment
	for races := 0; races < maxRaces; {
		if err := pause(ctx, races); err != nil {
			return commits, err
		}
		made, err := d.appendOnce(ctx, ds, most)
		commits = append(commits, made...)
		var moved *mirror.MovedError
		var not *notCodedError
		switch {
		case errors.As(err, &moved):
			races++
		case errors.As(err, &not) && not.n > 1:
			most = not.n / 2
		case errors.As(err, &not):
			if err := d.without(ctx, not); err != nil {
				return commits, err
			}
			ds = slices.DeleteFunc(ds, func(one decisions.Decision) bool { return one.ID == not.first.ID })
		default:
			return commits, d.explain(err)
		}
	}
	return commits, fmt.Errorf("push decisions: others wrote %d times at the same time", maxRaces)
}

// appendOnce adds what is missing, in segments of so many at most.
func (d *Decisions) appendOnce(ctx context.Context, ds []decisions.Decision, most int) (commits []string, err error) {
	left, err := d.missing(ctx, ds)
	for len(left) > 0 && err == nil {
		n := min(segmentOf(left), most)
		var commit string
		if commit, err = d.push(ctx, left[:n]); err == nil {
			commits, left = append(commits, commit), left[n:]
		}
	}
	return commits, err
}

// notCodedError says that decisions could not be made a segment.
type notCodedError struct {
	n     int
	first decisions.Decision
	err   error
}

func (e *notCodedError) Error() string {
	return fmt.Sprintf("encode decision %s: %v", e.first.ID, e.err)
}

func (e *notCodedError) Unwrap() error { return e.err }

// without goes on without one decision that cannot be coded. Where it can be, what it is coded against is damaged.
func (d *Decisions) without(ctx context.Context, not *notCodedError) error {
	if _, err := decisions.NewEncoder(decisions.NewState()).Append([]decisions.Decision{not.first}); err == nil {
		return decisionReader{ref: d.cfg.Ref}.foreign(d.tip.Commit, not.err)
	}
	d.cfg.Log.ErrorContext(ctx, "a decision cannot be kept in Git", "decision", not.first.ID, "error", not.err)
	return nil
}

// segmentOf is how many of the decisions go into the next segment: those of the same month, and no more than fits.
func segmentOf(ds []decisions.Decision) int {
	year, month, _ := ds[0].Timestamp.UTC().Date()
	n, size := 1, 0
	for n < len(ds) && n < maxSegment {
		size += len(ds[n].Input) + len(ds[n].Result)
		if y, m, _ := ds[n].Timestamp.UTC().Date(); y != year || m != month || size > maxSegmentJSON {
			break
		}
		n++
	}
	return n
}

// push adds one segment.
func (d *Decisions) push(ctx context.Context, ds []decisions.Decision) (string, error) {
	state := d.state
	d.state = nil // until it is certain that the segment is there
	if state.Over(ds[0].Timestamp.Unix()) {
		state, d.there = decisions.NewState(), map[string]bool{}
	}
	segment, err := decisions.NewEncoder(state).Append(ds)
	if err == nil && len(segment) > maxSegmentSize {
		err = fmt.Errorf("it takes %d bytes, more than the %d that are read", len(segment), maxSegmentSize)
	}
	if err != nil {
		return "", &notCodedError{len(ds), ds[0], err}
	}
	who := mirror.Signature{Name: d.cfg.Author, Email: d.cfg.Email, When: d.cfg.Now().UTC().Truncate(time.Second)}
	staged, err := d.mirror.Stage(ctx, mirror.CommitRequest{Branch: d.branch, Parent: d.tip.Commit, Message: decisionsMessage(ds),
		Changes: []mirror.Change{{Path: segmentFile, Data: segment}}, Author: who, Committer: who})
	if err != nil {
		return "", fmt.Errorf("stage decisions: %w", err)
	}
	d.write(Before)
	hash, err := d.mirror.Push(ctx, staged)
	d.write(After)
	if err != nil {
		return "", err
	}
	d.state, d.tip.Commit, d.tip.Tree = state, hash, staged.Tree
	for i := range ds {
		d.there[ds[i].ID] = true
	}
	return hash.String(), nil
}

func (d *Decisions) write(m Moment) {
	if d.cfg.OnWrite != nil {
		d.cfg.OnWrite(m)
	}
}

// explain says what to do about a refusal.
func (d *Decisions) explain(err error) error {
	var rejected *mirror.RejectedError
	if !errors.As(err, &rejected) {
		return err
	}
	said := errors.New("the server refuses it: " + rejected.Reason)
	if rejected.Output != "" {
		said = fmt.Errorf("%w: %s", said, rejected.Output)
	}
	advice := "let the bot push to it, or choose another with --decision-ref"
	if !strings.HasPrefix(d.cfg.Ref, "refs/heads/") {
		advice = "some forges take branches only: --decision-ref refs/heads/rampart-decisions"
	}
	return &NotKeptError{Ref: d.cfg.Ref, Advice: advice, Err: said}
}

// missing gives the decisions that the ref does not have, and makes ready to add them.
func (d *Decisions) missing(ctx context.Context, ds []decisions.Decision) ([]decisions.Decision, error) {
	if len(ds) == 0 {
		return nil, nil
	}
	tip, err := d.fetch(ctx)
	if err != nil {
		return nil, err
	}
	if d.state == nil || tip.Commit != d.tip.Commit {
		d.state, d.tip, d.there = nil, tip, map[string]bool{}
		if err := d.replay(ctx, ds); err != nil {
			return nil, err
		}
	}
	var left []decisions.Decision
	for _, one := range ds {
		if !d.there[one.ID] {
			left = append(left, one)
		}
	}
	return left, nil
}

// replay makes the state from the newest epoch, and notes the IDs of decisions that are as recent as those given.
func (d *Decisions) replay(ctx context.Context, ds []decisions.Decision) error {
	since := ds[0].Timestamp
	for _, one := range ds {
		if one.Timestamp.Before(since) {
			since = one.Timestamp
		}
	}
	r := decisionReader{from: d.mirror, ref: d.cfg.Ref, query: DecisionQuery{Filter: decisions.Filter{Since: since}}}
	var newest *decisions.State
	for e, err := range r.epochs(ctx, d.tip) {
		if err != nil {
			return err
		}
		state, err := r.decode(ctx, e, func(one decisions.Decision) bool { d.there[one.ID] = true; return true })
		if err != nil {
			return err
		}
		if newest == nil {
			newest = state
		}
	}
	if newest == nil {
		newest = decisions.NewState()
	}
	d.state = newest
	return nil
}

// fetch gives the ref's tip; zero where there is none yet.
func (d *Decisions) fetch(ctx context.Context) (mirror.Tip, error) {
	tip, err := d.mirror.Fetch(ctx, d.branch)
	var (
		none  *mirror.NoBranchError
		empty *mirror.EmptyRepositoryError
	)
	if errors.As(err, &none) || errors.As(err, &empty) {
		return mirror.Tip{Branch: d.branch}, nil
	}
	if tip.Move == mirror.MoveRewritten {
		d.cfg.Log.WarnContext(ctx, "the ref of decisions was rewritten by somebody else", "ref", d.cfg.Ref, "was", tip.Previous.String(), "is", tip.Commit.String())
	}
	return tip, err
}

// pause is a moment before a race is run again: none before the first, then it doubles from 50 ms, with jitter.
func pause(ctx context.Context, try int) error {
	if try == 0 {
		return nil
	}
	wait := 50 * time.Millisecond << try
	t := time.NewTimer(wait/2 + rand.N(wait/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
