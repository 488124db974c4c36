package bundles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// clockSkew is how far ahead of ours the time of a cache may be.
const clockSkew = time.Minute

// remote is one bundle: what is in force of it, and what its server said last.
type remote struct {
	name    string
	reading reading
	fetcher *fetcher
	// beside gives the other layers in force.
	beside func() []policy.Layer
	// cache is nil where nothing is kept.
	cache  *cacheFile
	maxAge time.Duration
	now    func() time.Time
	log    *slog.Logger

	// polling lets one poll at a time.
	polling sync.Mutex
	// kept is the time of confirmation that the cache has, unkept why it could not be written. Only a poll looks at them.
	kept   time.Time
	unkept string

	mu    sync.Mutex
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

// load takes what the cache has. What is wrong with it is logged: the server has the bundle.
func (r *remote) load() {
	if r.cache == nil {
		return
	}
	was, err := r.cache.read()
	if err == nil && was == nil {
		return
	}
	var c content
	if err == nil {
		c, err = r.reading.read(was.archive)
	}
	if err != nil {
		r.log.Warn("the cached policy bundle is ignored", "bundle", r.name, "file", r.cache.path, "error", oneLine(err.Error()))
		return
	}
	s := state{content: &c, archive: was.archive, etag: was.etag, confirmed: was.confirmed}
	if s.confirmed.After(r.now().Add(clockSkew)) {
		s.confirmed = time.Time{} // no age can be told from it
	}
	r.kept, r.state = s.confirmed, s
}

func (r *remote) current() state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// poll asks the server once. Whatever is wrong, the bundle in force stays.
func (r *remote) poll(ctx context.Context) {
	r.polling.Lock()
	defer r.polling.Unlock()
	was := r.current()
	next, err := r.next(ctx, was)
	if ctx.Err() != nil && err != nil {
		return // it was we who ended it
	}
	now := was
	now.problem = ""
	switch {
	case err != nil:
		now.problem = err.Error()
	default:
		now = next
	}
	r.mu.Lock()
	r.state = now
	r.mu.Unlock()
	r.tell(ctx, was, now)
	if err == nil {
		r.keep(ctx, was, now)
	}
}

// next downloads the bundle and checks it. Errors are in words for a person.
func (r *remote) next(ctx context.Context, was state) (state, error) {
	d, err := r.fetcher.get(ctx, was.etag)
	if err != nil {
		return was, fmt.Errorf("%s: %s", shown(r.fetcher.url), words(err))
	}
	next := was
	next.problem, next.confirmed = "", r.now()
	if d.unchanged {
		return next, nil
	}
	c, err := r.reading.read(d.archive)
	if err == nil {
		err = r.fits(c.layer)
	}
	if err != nil {
		return was, fmt.Errorf("the bundle at %s is refused: %s", shown(r.fetcher.url), oneLine(err.Error()))
	}
	next.content, next.archive, next.etag = &c, d.archive, d.etag
	return next, nil
}

// fits reports what a layer breaks that is fine by itself: all layers are compiled together.
func (r *remote) fits(layer policy.Layer) error {
	others := r.beside()
	if len(others) == 0 {
		return nil
	}
	before := policy.Compile(policy.Config{Floor: others}).Problems()
	after := policy.Compile(policy.Config{Floor: append(others, layer)}).Problems()
	after = slices.DeleteFunc(after, func(p policy.Problem) bool { return slices.Contains(before, p) })
	if len(after) == 0 {
		return nil
	}
	return fmt.Errorf("beside the bot's other policies: %w%s", after[0], more(len(after)-1))
}

// tell logs what changed.
func (r *remote) tell(ctx context.Context, was, now state) {
	switch {
	case now.problem != "" && now.problem != was.problem:
		r.log.WarnContext(ctx, "policy bundle not updated", "bundle", r.name, "problem", now.problem, "in_force", r.inForce(now))
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

// layer is what is in force: without a bundle, a layer that holds.
func (r *remote) layer(s state) policy.Layer {
	if s.content != nil {
		return s.content.layer
	}
	why := s.problem
	if why == "" {
		why = "it was not downloaded yet"
	}
	name := Prefix + r.name
	return policy.Layer{Name: name, Problems: []policy.Problem{{Path: name,
		Message: "there is no policy bundle " + r.name + ", so every raise waits: " + why}}}
}

// fact is the bundle's revision, as old as the server's last word on it. Its words stay the same while what is wrong does.
func (r *remote) fact(s state) rollout.Fact {
	out := rollout.Fact{ObservedAt: s.confirmed.UTC(), MaxAge: r.maxAge, Source: "policy bundle " + shown(r.fetcher.url)}
	stale := s.confirmed.IsZero() || r.now().Sub(s.confirmed) > r.maxAge
	switch {
	case s.content == nil:
		out.Error = r.layer(s).Problems[0].Message
	case stale && s.problem != "":
		out.Error = "not confirmed by its server: " + s.problem
	default:
		text, err := json.Marshal(s.content.revision)
		if err != nil {
			out.Error = err.Error()
			break
		}
		out.Value = text
	}
	return out
}
