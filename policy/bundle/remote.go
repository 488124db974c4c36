package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// clockSkew is how far ahead of ours the time of a cache may be.
const clockSkew = time.Minute

// remote is one bundle: what is in force of it, and what its server said last.
type remote struct {
	name    string
	reading reading
	fetcher *fetcher
	// cache is nil where nothing is kept.
	cache  *cacheFile
	maxAge time.Duration
	now    func() time.Time
	log    *slog.Logger

	// kept is the time of confirmation that the cache has, unkept why it could not be written. Only Refresh looks at
	// them.
	kept   time.Time
	unkept string

	// state changes with those of the other sources, under the Store's lock.
	state state
}

// state of a bundle.
type state struct {
	// content in force; nil: the bundle was never had.
	content *content
	archive []byte
	etag    string
	// confirmed is when the server last said that this is its bundle; zero: not known.
	confirmed time.Time
	// problem of the last poll; "": there was none.
	problem string
}

// layer is the one that is in force; nil: none.
func (s state) layer() *policy.Layer {
	if s.content == nil {
		return nil
	}
	return &s.content.layer
}

// load reads the cache. What is wrong with it is logged: the server has the bundle.
func (r *remote) load() (s state, ok bool) {
	if r.cache == nil {
		return s, false
	}
	was, err := r.cache.read()
	if err == nil && was == nil {
		return s, false
	}
	var c content
	if err == nil {
		c, err = r.reading.read(was.archive)
	}
	if err != nil {
		r.ignored(err)
		return s, false
	}
	s = state{content: &c, archive: was.archive, etag: was.etag, confirmed: was.confirmed}
	if s.confirmed.After(r.now().Add(clockSkew)) {
		s.confirmed = time.Time{} // no age can be told from it
	}
	return s, true
}

// ignored logs why what is in the cache is not used.
func (r *remote) ignored(err error) {
	r.log.Warn("the cached policy bundle is ignored", "bundle", r.name, "file", r.cache.path, "error",
		oneLine(err.Error()))
}

// answer is what a server said: the state that follows if its bundle fits, or why there is none.
type answer struct {
	next state
	// problem in words for a person; "": there is none.
	problem string
	// given up says that it was we who ended it.
	givenUp bool
}

// ask downloads the bundle, if there is another one.
func (r *remote) ask(ctx context.Context, was state) answer {
	d, err := r.fetcher.get(ctx, was.etag)
	if err != nil {
		return answer{next: was, problem: fmt.Sprintf("%s: %s", shown(r.fetcher.url), words(err)),
			givenUp: ctx.Err() != nil}
	}
	next := was
	next.problem, next.confirmed = "", r.now()
	if d.unchanged {
		return answer{next: next}
	}
	c, err := r.reading.read(d.archive)
	if err != nil {
		return answer{next: was, problem: r.refusal(err), givenUp: ctx.Err() != nil}
	}
	next.etag = d.etag
	if was.content == nil || was.content.digest != c.digest {
		next.content, next.archive = &c, d.archive
	}
	return answer{next: next}
}

func (r *remote) refusal(err error) string {
	return fmt.Sprintf("the bundle at %s is refused: %s", shown(r.fetcher.url), oneLine(err.Error()))
}

// tell logs what changed.
func (r *remote) tell(ctx context.Context, was, now state) {
	switch {
	case now.problem != "" && now.problem != was.problem:
		r.log.WarnContext(ctx, "policy bundle not updated", "bundle", r.name, "problem", now.problem, "in_force",
			r.inForce(now))
	case now.problem != "":
	case was.content == nil || was.content.digest != now.content.digest:
		r.log.InfoContext(ctx, "policy bundle updated", "bundle", r.name, "revision", now.content.revision)
	case was.problem != "":
		r.log.InfoContext(ctx, "policy bundle confirmed again", "bundle", r.name, "revision", now.content.revision)
	}
}

func (r *remote) inForce(s state) string {
	if s.content == nil {
		return "none: every raise waits"
	}
	return s.content.revision
}

// keepAgain is the part of its maximal age by which the cached bundle may look older than it is.
const keepAgain = 20

// keep writes the cache: what is new at once, a confirmation from time to time.
func (r *remote) keep(ctx context.Context, was, now state) {
	same := was.content != nil && was.content.digest == now.content.digest && was.etag == now.etag
	if r.cache == nil || same && !r.kept.IsZero() && now.confirmed.Sub(r.kept) < r.maxAge/keepAgain {
		return
	}
	err := r.cache.write(cached{now.archive, now.etag, now.confirmed})
	if err == nil {
		r.kept, r.unkept = now.confirmed, ""
		return
	}
	r.kept = time.Time{}
	if why := errors.Unwrap(err); why != nil && why.Error() != r.unkept {
		r.unkept = why.Error()
		r.log.WarnContext(ctx, "the policy bundle is not kept for the next start", "bundle", r.name, "error", err)
	}
}

// floor is what counts: what is in force or, without a bundle, a layer that holds.
func (r *remote) floor(s state) policy.Layer {
	if s.content != nil {
		return s.content.layer
	}
	why := s.problem
	if why == "" {
		why = "it was not downloaded yet"
	}
	name := Prefix + r.name
	return policy.Layer{Name: name, Problems: []parse.Problem{{Path: name,
		Message: "there is no policy bundle " + r.name + ", so every raise waits: " + why}}}
}

// fact is the bundle's revision, as old as the server's last word on it. Its words stay the same while what is wrong
// does.
func (r *remote) fact(s state) rollout.Fact {
	out := rollout.Fact{ObservedAt: s.confirmed.UTC(), MaxAge: r.maxAge,
		Source: "policy bundle " + shown(r.fetcher.url)}
	if s.content == nil {
		out.Error = r.floor(s).Problems[0].Message
		return out
	}
	if stale := s.confirmed.IsZero() || r.now().Sub(s.confirmed) > r.maxAge; stale && s.problem != "" {
		out.Error = "not confirmed by its server: " + s.problem // what is in force is told all the same
	}
	text, err := json.Marshal(s.content.revision)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Value = text
	return out
}
