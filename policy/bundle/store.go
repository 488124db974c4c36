package bundle

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// Store has the bot's own policies, and keeps them up to date.
type Store struct {
	interval  time.Duration
	maxAge    time.Duration
	now       func() time.Time
	transport *http.Transport
	log       *slog.Logger
	compile   Compile
	remotes   []*remote

	// refreshing lets one refresh at a time, which may take as long as the servers and the disk do.
	refreshing sync.Mutex
	// mu guards the states of the remotes and the directories, which change together.
	mu   sync.Mutex
	dirs []directory
}

// Open checks the configuration and reads directories and the cache. It does not wait for a network: see Refresh and
// Poll.
func Open(c Config) (*Store, error) {
	c, err := c.filled()
	if err == nil {
		err = checkKeys(c.Keys)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{interval: c.Interval, maxAge: c.MaxAge, now: c.Now, log: c.Log, compile: c.Compile}
	if s.transport, err = newTransport(c); err != nil {
		return nil, err
	}
	for _, dir := range c.Dirs {
		layer, err := ReadDir(dir)
		if err != nil {
			return nil, err
		}
		s.dirs = append(s.dirs, directory{path: dir, layer: layer, key: keyOf(layer), read: c.Now()})
	}
	for _, b := range c.Bundles {
		f, err := newFetcher(b, s.transport, c.Timeout)
		if err != nil {
			return nil, fmt.Errorf("policy bundle %q: %w", b.Name, err)
		}
		r := &remote{name: b.Name, reading: reading{b.Name, verification(c.Keys, b.Scope)}, fetcher: f,
			maxAge: c.MaxAge, now: c.Now, log: c.Log}
		if c.CacheDir != "" {
			file := newCacheFile(c.CacheDir, b)
			r.cache = &file
		}
		s.remotes = append(s.remotes, r)
	}
	slices.SortFunc(s.remotes, func(a, b *remote) int { return strings.Compare(a.name, b.name) })
	s.load()
	return s, nil
}

// load takes what the caches have, as far as it fits together and with the directories.
func (s *Store) load() {
	cached := make([]state, len(s.remotes))
	fresh := s.none()
	for i, r := range s.remotes {
		if had, ok := r.load(); ok {
			cached[i], fresh[i] = had, had.layer()
		}
	}
	_, refused := settle(fresh, s.inForce(s.dirs), s.compile)
	for i, r := range s.remotes {
		switch {
		case refused[i] != nil:
			r.ignored(refused[i])
		case fresh[i] != nil:
			r.kept, r.state = cached[i].confirmed, cached[i]
		}
	}
}

// Close lets go of idle connections. Poll has ended before.
func (s *Store) Close() { s.transport.CloseIdleConnections() }

// Refresh reads the directories again and asks all servers once, at the same time: it takes one time limit at most.
// What is new comes into force at once, as far as it fits together.
func (s *Store) Refresh(ctx context.Context) {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	answers := make([]answer, len(s.remotes))
	var all sync.WaitGroup
	for i, r := range s.remotes { // only a refresh changes their states
		all.Go(func() { answers[i] = r.ask(ctx, r.state) })
	}
	dirs := s.readDirs(ctx)
	all.Wait()
	fresh := s.none()
	for i, a := range answers {
		if a.next.content != s.remotes[i].state.content {
			fresh[i] = a.next.layer()
		}
	}
	_, refused := settle(fresh, s.inForce(dirs), s.compile)
	s.takeOver(ctx, dirs, answers, refused)
}

// takeOver puts into force what servers and disk have, but for what was refused.
func (s *Store) takeOver(ctx context.Context, dirs []directory, answers []answer, refused map[int]error) {
	was, now := make([]state, len(s.remotes)), make([]state, len(s.remotes))
	for i, r := range s.remotes {
		was[i], now[i] = r.state, r.state
		switch a := answers[i]; {
		case a.problem != "" && a.givenUp:
		case a.problem != "":
			now[i].problem = a.problem
		case refused[i] != nil:
			now[i].problem = r.refusal(refused[i])
		default:
			now[i] = a.next
		}
	}
	s.mu.Lock()
	s.dirs = dirs
	for i, r := range s.remotes {
		r.state = now[i]
	}
	s.mu.Unlock()
	for i, r := range s.remotes {
		if answers[i].givenUp {
			continue
		}
		r.tell(ctx, was[i], now[i])
		if now[i].problem == "" {
			r.keep(ctx, was[i], now[i])
		}
	}
}

// Poll refreshes, at first at once, until the context ends.
func (s *Store) Poll(ctx context.Context) {
	for {
		s.Refresh(ctx)
		if retry.Sleep(ctx, s.interval+rand.N(s.interval/10+1)) != nil {
			return
		}
	}
}

// Missing are the names of bundles that were never had, sorted.
func (s *Store) Missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.remotes {
		if r.state.content == nil {
			out = append(out, r.name)
		}
	}
	return out
}

// none is a set in which no source has anything.
func (s *Store) none() set { return make(set, len(s.remotes)+len(s.dirs)) }

// inForce are the bundles that are, and directories.
func (s *Store) inForce(dirs []directory) set {
	out := s.none()
	for i, r := range s.remotes {
		out[i] = r.state.layer()
	}
	for i := range dirs {
		out[len(s.remotes)+i] = &dirs[i].layer
	}
	return out
}

// Floor is what is in force at one moment.
type Floor struct {
	// Layers are the bundles by name, then the directories in the order of the configuration. Of data, what is nearer
	// to the bot comes last and wins.
	Layers []policy.Layer
	// Key stands for the layers: the same key, the same layers.
	Key string
	// Facts are bundle.NAME for each bundle, with its revision and when its server last confirmed it. Beside them is
	// dir.PATH for each directory: the start of its hash, and when it was last read.
	Facts map[string]rollout.Fact
}

// Floor gives what is in force now. It never waits for a network.
func (s *Store) Floor() Floor {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Floor{Facts: map[string]rollout.Fact{}}
	var keys []string
	for _, r := range s.remotes {
		layer := r.floor(r.state)
		key := ""
		if r.state.content != nil {
			key = r.state.content.digest
		}
		out.Layers, keys = append(out.Layers, layer), append(keys, cmp.Or(key, keyOf(layer)))
		out.Facts["bundle."+r.name] = r.fact(r.state)
	}
	for _, d := range s.dirs {
		out.Layers, keys = append(out.Layers, d.layer), append(keys, d.key)
		out.Facts["dir."+d.path] = s.dirFact(d)
	}
	out.Key = keyOf(keys)
	return out
}

// keyOf is a hash of plain values.
func keyOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%s cannot be encoded: %v", reflect.TypeOf(v), err)) // structs of strings can
	}
	return sha256Of(text)
}
