package bundles

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// Store has the bot's own policies, and keeps them up to date.
type Store struct {
	interval  time.Duration
	transport *http.Transport
	log       *slog.Logger
	remotes   []*remote

	// reading lets directories be read by one at a time, which may take as long as the disk does.
	reading sync.Mutex
	mu      sync.Mutex
	dirs    []directory
}

// directory is one directory of policies as it was read last.
type directory struct {
	path    string
	layer   policy.Layer
	key     string
	problem string
}

// Open checks the configuration and reads directories and the cache. It does not wait for a network: see Refresh and Poll.
func Open(c Config) (*Store, error) {
	c, err := c.filled()
	if err == nil {
		err = checkKeys(c.Keys)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{interval: c.Interval, log: c.Log}
	if s.transport, err = newTransport(c); err != nil {
		return nil, err
	}
	for _, dir := range c.Dirs {
		layer, err := ReadDir(dir)
		if err != nil {
			return nil, err
		}
		s.dirs = append(s.dirs, directory{path: dir, layer: layer, key: keyOf(layer)})
	}
	for _, b := range c.Bundles {
		f, err := newFetcher(b, s.transport, c.Timeout)
		if err != nil {
			return nil, fmt.Errorf("policy bundle %q: %w", b.Name, err)
		}
		r := &remote{name: b.Name, reading: reading{b.Name, verification(c.Keys, b.Scope)}, fetcher: f, maxAge: c.MaxAge, now: c.Now, log: c.Log}
		if c.CacheDir != "" {
			file := newCacheFile(c.CacheDir, b)
			r.cache = &file
		}
		r.beside = func() []policy.Layer { return s.beside(r) }
		r.load()
		s.remotes = append(s.remotes, r)
	}
	slices.SortFunc(s.remotes, func(a, b *remote) int { return strings.Compare(a.name, b.name) })
	return s, nil
}

// Close lets go of idle connections. Poll has ended before.
func (s *Store) Close() { s.transport.CloseIdleConnections() }

// Refresh reads the directories again and asks all servers once, at the same time: it takes one time limit at most.
func (s *Store) Refresh(ctx context.Context) {
	s.readDirs(ctx)
	var all sync.WaitGroup
	for _, r := range s.remotes {
		all.Go(func() { r.poll(ctx) })
	}
	all.Wait()
}

// Poll refreshes, at first at once, until the context ends.
func (s *Store) Poll(ctx context.Context) {
	for {
		s.Refresh(ctx)
		t := time.NewTimer(s.interval + rand.N(s.interval/10+1))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// Missing are the names of bundles that were never had, sorted.
func (s *Store) Missing() []string {
	var out []string
	for _, r := range s.remotes {
		if r.current().content == nil {
			out = append(out, r.name)
		}
	}
	return out
}

// readDirs reads the directories again. One that cannot be read stays as it was.
func (s *Store) readDirs(ctx context.Context) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for i, was := range s.dirs { // only this function changes them
		now := was
		now.problem = ""
		layer, err := ReadDir(was.path)
		if err != nil {
			now.problem = oneLine(err.Error())
		} else {
			now.layer, now.key = layer, keyOf(layer)
		}
		s.mu.Lock()
		s.dirs[i] = now
		s.mu.Unlock()
		switch {
		case now.problem != "" && now.problem != was.problem:
			s.log.WarnContext(ctx, "the directory of policies cannot be read: it stays as it was", "dir", was.path, "problem", now.problem)
		case now.key != was.key:
			s.log.InfoContext(ctx, "the directory of policies changed", "dir", was.path)
		}
	}
}

// beside are the layers in force but for that of one bundle.
func (s *Store) beside(but *remote) []policy.Layer {
	var out []policy.Layer
	for _, r := range s.remotes {
		if state := r.current(); r != but && state.content != nil {
			out = append(out, state.content.layer)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dirs {
		out = append(out, d.layer)
	}
	return out
}

// Floor is what is in force at one moment.
type Floor struct {
	// Layers are the bundles by name, then the directories in the order of the configuration: of data, what is nearer to the bot
	// comes last and wins.
	Layers []policy.Layer
	// Key stands for the layers: the same key, the same layers.
	Key string
	// Facts are bundle.NAME for each bundle: its revision, and when its server last confirmed it.
	Facts map[string]rollout.Fact
}

// Floor gives what is in force now. It never waits for a network.
func (s *Store) Floor() Floor {
	var out Floor
	var keys []string
	for _, r := range s.remotes {
		state := r.current()
		layer := r.layer(state)
		key := ""
		if state.content != nil {
			key = state.content.digest
		}
		out.Layers, keys = append(out.Layers, layer), append(keys, cmp.Or(key, keyOf(layer)))
		if out.Facts == nil {
			out.Facts = map[string]rollout.Fact{}
		}
		out.Facts["bundle."+r.name] = r.fact(state)
	}
	s.mu.Lock()
	for _, d := range s.dirs {
		out.Layers, keys = append(out.Layers, d.layer), append(keys, d.key)
	}
	s.mu.Unlock()
	out.Key = keyOf(keys)
	return out
}

// keyOf is a hash of plain values.
func keyOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%s cannot be encoded: %v", reflect.TypeOf(v), err)) // structs of strings can
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
