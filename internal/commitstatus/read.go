package commitstatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Own begins the contexts of the bot's own statuses. They are no facts: it would believe itself.
const Own = "rampart/"

// What a Reader does unless its Config says otherwise.
const (
	// DefaultLookEvery is how often the forge is asked about the same commits.
	DefaultLookEvery = 30 * time.Second
	// DefaultPatience is how long a cycle waits for what was never asked before.
	DefaultPatience = time.Second
	// maxCommits is how many commits are asked about in one look, the newest first.
	maxCommits = 10
	// maxAge is how long a status is good without the forge's word: a few looks may fail.
	maxAge = 2 * time.Minute
	// lookTime bounds one look.
	lookTime = time.Minute
	// rest is how long a forge is left alone that does not answer.
	rest = time.Minute
)

// StatusReader reads the statuses of a commit; see forge.Statuses.
type StatusReader interface {
	Statuses(ctx context.Context, commit string) ([]forge.Status, error)
}

// Commits knows which commits hold something; see gitops.Repository.
type Commits interface {
	Holders(ctx context.Context, env v1alpha1.Environment, paths []string, most int) ([]rollout.Holder, error)
}

// ReaderConfig is what a Reader works with.
type ReaderConfig struct {
	Commits Commits
	Forge   StatusReader
	// Where the forge is, for people.
	Where string
	// LookEvery and Patience; zero: DefaultLookEvery, DefaultPatience.
	LookEvery, Patience time.Duration
	Now                 func() time.Time
	Log                 *slog.Logger
}

// Reader is a reconcile.Statuses.
type Reader struct {
	ReaderConfig
	life context.Context
	end  context.CancelFunc

	mu    sync.Mutex
	looks map[string]*look
	// until is when the forge is asked again, and why is what it said.
	until time.Time
	why   string
	// slow says that the last look took longer than a cycle waits.
	slow bool
}

// look is what is known for one environment. Its answers, by commit, are never changed: others take their place.
type look struct {
	holders  []rollout.Holder
	contexts []string
	answers  map[string]answer
	// running is closed when the look ends that is under way; nil: none is.
	running chan struct{}
}

// answer is what the forge said of a commit.
type answer struct {
	statuses map[string]forge.Status
	at       time.Time
}

// NewReader makes a Reader. Close ends it.
func NewReader(c ReaderConfig) *Reader {
	if c.LookEvery == 0 {
		c.LookEvery = DefaultLookEvery
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	r := &Reader{ReaderConfig: c, looks: map[string]*look{}}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// Close ends what is under way.
func (r *Reader) Close() { r.end() }

// Read gives the facts about a question. It waits for the forge for Patience at most, where commits were never asked
// about, and does not wait for one that took longer the last time.
func (r *Reader) Read(ctx context.Context, q rollout.StatusQuestion) []map[string]rollout.Fact {
	var paths []string
	for _, v := range q.Versions {
		if v != "" && !slices.Contains(paths, v) {
			paths = append(paths, v)
		}
	}
	asked := slices.DeleteFunc(slices.Clone(q.Contexts), func(c string) bool { return strings.HasPrefix(c, Own) })
	holders, err := r.Commits.Holders(ctx, q.Environment, paths, maxCommits)
	var l look
	if err == nil {
		l = r.wait(ctx, q.Environment.Name, look{holders: holders, contexts: asked})
	}
	out := make([]map[string]rollout.Fact, len(q.Versions))
	for i, version := range q.Versions {
		out[i] = map[string]rollout.Fact{}
		for _, c := range q.Contexts {
			fact := rollout.Fact{MaxAge: maxAge, Source: fmt.Sprintf("commit status %s at %s", c, r.Where)}
			switch {
			case !slices.Contains(asked, c):
				fact.Error = "statuses of Rampart itself do not count: name that of another tool"
			case version == "":
				fact.Error = "there is no version to be asked about"
			case err != nil:
				fact.Error = "the commits that hold the version are not known: " + err.Error()
			default:
				r.fill(&fact, l, about{context: c, version: version, at: slices.Index(paths, version)})
			}
			out[i][rollout.StatusFacts+c] = fact
		}
	}
	return out
}

// wait gives what is known of the commits of a question. Where some were never asked about it waits for a look first,
// if that does not take long.
func (r *Reader) wait(ctx context.Context, env string, q look) look {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.looks[env]
	if l == nil {
		l = &look{}
		r.looks[env] = l
	}
	l.holders, l.contexts = q.holders, q.contexts
	unknown, old := r.lacks(*l)
	if (unknown || old) && l.running == nil && !r.Now().Before(r.until) && r.life.Err() == nil {
		l.running = make(chan struct{})
		go r.look(l, *l)
	}
	if running := l.running; running != nil && unknown && !r.slow {
		r.mu.Unlock()
		timer, late := time.NewTimer(r.Patience), false
		select {
		case <-running:
		case <-timer.C:
			late = true
		case <-ctx.Done():
		}
		timer.Stop()
		r.mu.Lock()
		r.slow = r.slow || late
	}
	return *l
}

// lacks reports whether commits have to be asked about that never were, or were too long ago.
func (r *Reader) lacks(l look) (unknown, old bool) {
	for i, h := range l.holders {
		if !wanting(l, i, l.answers) {
			continue
		}
		a, known := l.answers[h.Commit]
		unknown, old = unknown || !known, old || known && r.old(a)
	}
	return unknown, old
}

func (r *Reader) old(a answer) bool { return r.Now().Sub(a.at) >= r.LookEvery }

// look asks about the commits of a question, the newest first, until each version has a status of each context, or no
// commit is left.
func (r *Reader) look(l *look, q look) {
	ctx, cancel := context.WithTimeout(r.life, lookTime)
	defer cancel()
	began, got := time.Now(), map[string]answer{}
	for commit, a := range q.answers {
		if r.Now().Sub(a.at) < maxAge {
			got[commit] = a
		}
	}
	var err error
	for i, h := range q.holders {
		if a, known := got[h.Commit]; !wanting(q, i, got) || known && !r.old(a) {
			continue
		}
		var all []forge.Status
		if all, err = r.Forge.Statuses(ctx, h.Commit); err != nil {
			break
		}
		a := answer{statuses: map[string]forge.Status{}, at: r.Now()}
		for _, s := range all {
			a.statuses[s.Context] = s
		}
		got[h.Commit] = a
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(l.running)
	l.running, l.answers = nil, got
	r.slow = time.Since(began) > r.Patience
	r.note(err)
}

// wanting reports whether a version that a commit holds still lacks a status, by the answers of newer ones.
func wanting(q look, commit int, got map[string]answer) bool {
	for version, holds := range q.holders[commit].Holds {
		for _, c := range q.contexts {
			if holds && !slices.ContainsFunc(q.holders[:commit], func(h rollout.Holder) bool {
				_, has := got[h.Commit].statuses[c]
				return h.Holds[version] && has
			}) {
				return true
			}
		}
	}
	return false
}

// note keeps what the forge could not be asked for, and says so once.
func (r *Reader) note(err error) {
	was := r.why
	r.why = ""
	if err == nil || r.life.Err() != nil {
		return
	}
	r.why, r.until = err.Error(), until(err, r.Now(), min(r.LookEvery, rest))
	if r.why != was {
		r.Log.Warn("commit statuses could not be read", "error", err)
	}
}

// until is when a forge is asked again that failed with an error. One that refuses may know the commit in a moment.
func until(err error, now time.Time, soon time.Duration) time.Time {
	var (
		limit   *forge.RateLimitError
		refused *forge.RefusedError
	)
	switch {
	case errors.As(err, &limit) && limit.Until.After(now):
		return limit.Until
	case errors.As(err, &refused):
		return now.Add(soon)
	}
	return now.Add(rest)
}

// about is a status that is asked for: its context, and the version by its folder and its index among those that
// commits hold.
type about struct {
	context, version string
	at               int
}

// fill fills in what the newest commit says that holds the version and has the status. A commit that was not asked
// about, and is newer than one that was, may have one.
func (r *Reader) fill(fact *rollout.Fact, l look, of about) {
	looked := 0
	for _, h := range l.holders {
		if !h.Holds[of.at] {
			continue
		}
		looked++
		a, known := l.answers[h.Commit]
		if !known {
			fact.Error = r.unanswered()
			return
		}
		if s, has := a.statuses[of.context]; has {
			value, err := json.Marshal(string(s.State))
			if err != nil {
				fact.Error = err.Error()
				return
			}
			fact.Value, fact.ObservedAt = value, a.at
			fact.Source = fmt.Sprintf("commit status %s of %s at %s", of.context, h.Commit, r.Where)
			return
		}
	}
	switch looked {
	case 0:
		fact.Error = fmt.Sprintf("no commit holds %s", of.version)
	case 1:
		fact.Error = fmt.Sprintf("the commit that holds %s has no such status", of.version)
	default:
		fact.Error = fmt.Sprintf("none of the newest %d commits that hold %s has such a status", looked, of.version)
	}
}

// unanswered says why a commit is not known.
func (r *Reader) unanswered() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why != "" {
		return r.why
	}
	return "the forge did not answer yet"
}
