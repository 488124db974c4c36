package git

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Config says what to mirror and where. Printing or logging it shows no credentials.
type Config struct {
	// URL is file:///path, http(s)://, ssh://user@host:port/path or user@host:path. Required.
	URL string
	// Dir is the mirror's own directory, one per URL; made with mode 0700 when missing. Required.
	Dir string
	// Auth is how to log in; optional where the repository needs none.
	Auth Auth
	// Silence is how long the server may be silent before it is given up; DefaultSilence when zero. A conversation as a
	// whole may take thirty times as long.
	Silence time.Duration
	// Tips says that each fetch asks for the tip of a ref alone, without blobs where the server allows it: for refs
	// without history.
	Tips bool
	// Log is where a mirror that is filled anew is reported. Required.
	Log *slog.Logger
}

// String gives the URL without credentials, and the directory.
func (c Config) String() string { return fmt.Sprintf("mirror of %s in %s", redact(c.URL), c.Dir) }

// GoString is String, so that no verb shows more.
func (c Config) GoString() string { return c.String() }

// LogValue is String as a log value.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Mirror is a local copy of one repository's branches, and of other refs that are named in full. Use Open.
type Mirror struct {
	dir    string
	url    string // without credentials
	log    *slog.Logger
	tips   bool
	remote remote
	watch  *watch
	store  *store
	lock   *os.File

	// turn is held by the one operation that talks to the server. It is a channel so that waiting for
	// it can be interrupted. It guards state.
	turn  chan struct{}
	state state
	// offers is what the server said that it can do; nil: it was not asked in this run.
	offers *capability.List
	// takes is what the server can do for a push, if it need not be asked before the next one; else nil. See send.
	takes *capability.List
	// refusals are how often in a row the server did not give objects that it had left out before.
	refusals int

	closing sync.Once
	closed  chan struct{}
}

// Open opens or makes the mirror in cfg.Dir; it does not talk to the server. A directory that cannot be
// read as a mirror of that URL is emptied, with a log line; one that holds other things is an error.
// Errors: *AccessError (URL or credentials cannot work), *LockedError, those of the file system.
func Open(cfg Config) (*Mirror, error) {
	addr, err := parseAddress(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Dir == "" || cfg.Log == nil {
		return nil, errors.New("open mirror: Dir and Log are required")
	}
	w := &watch{limit: cfg.Silence}
	switch {
	case w.limit == 0:
		w.limit = DefaultSilence
	case w.limit < 0:
		return nil, fmt.Errorf("open mirror: want a positive time to wait for a server, got %s", w.limit)
	}
	remote, err := newRemote(addr, cfg.Auth, w)
	if err != nil {
		return nil, err
	}
	m := &Mirror{
		dir: cfg.Dir, url: addr.display, log: cfg.Log.With("repository", addr.display), tips: cfg.Tips, remote: remote,
		watch: w, turn: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	if err := m.acquire(); err != nil {
		return nil, fmt.Errorf("open mirror %s: %w", cfg.Dir, err)
	}
	if err := m.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open mirror %s: %w", cfg.Dir, err), unlock(m.lock))
	}
	return m, nil
}

// acquire takes the directory for this process.
func (m *Mirror) acquire() error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(m.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	mine, err := tryLock(f)
	if err == nil && !mine {
		err = &LockedError{Dir: m.dir}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	m.lock = f
	return nil
}

// load reads what an earlier run left, or starts empty.
func (m *Mirror) load() error {
	state, err := loadState(m.dir, m.url)
	if errors.Is(err, errForeign) {
		return err
	}
	if err != nil && !errors.Is(err, errFresh) {
		m.log.Warn("mirror cannot be used and is filled anew", "dir", m.dir, "reason", err)
	}
	if err != nil {
		if err := createLayout(m.dir, m.url); err != nil {
			return err
		}
		state = newState()
	}
	m.state = state
	machine, _ := memlimit.FromSystem() // 0 where it is not known
	m.store = newStore(m.dir, defaultLimits.process(debug.SetMemoryLimit(-1), machine))
	m.store.partial = state.partial
	for branch, tip := range state.tips {
		if err := m.checkTip(tip); err != nil {
			return m.rebuild(fmt.Errorf("branch %s: %w", branch, err))
		}
	}
	return nil
}

// checkTip looks at the part of a commit that every use of it needs. What cannot be used is the repository's own.
func (m *Mirror) checkTip(tip Hash) error {
	c, err := m.Commit(tip)
	if err == nil {
		_, err = m.Tree(c.Tree)
	}
	if isUnusable(err) {
		return nil
	}
	return err
}

// rebuild empties the mirror; the next fetch fills it.
func (m *Mirror) rebuild(reason error) error {
	m.log.Warn("mirror cannot be used and is filled anew", "dir", m.dir, "reason", reason)
	return m.empty()
}

func (m *Mirror) empty() error {
	m.state = newState()
	return m.store.reset(func() error {
		m.store.partial = false
		return createLayout(m.dir, m.url)
	})
}

// Empty drops all that the mirror has; the next fetch fills it.
func (m *Mirror) Empty(ctx context.Context) error {
	_, give, err := m.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	return m.empty()
}

// Forget gives up memory that reading much took, and writes out what is in memory alone where that is much. Its place
// is where nothing is waited for: what is read next takes a little longer.
func (m *Mirror) Forget() {
	if err := m.store.forget(); err != nil {
		m.log.Warn("memory was not given up", "mirror", m.dir, "error", err)
	}
}

// Close writes out what is only in memory and releases the directory. Operations that run are waited for.
func (m *Mirror) Close() error {
	err := ErrClosed
	m.closing.Do(func() {
		m.turn <- struct{}{} // never given back
		close(m.closed)
		m.remote.close()
		if err = m.store.close(); err == nil {
			err = m.state.writeRefs(m.dir)
		}
		err = errors.Join(err, unlock(m.lock))
	})
	return err
}

// take waits for the turn to talk to the server. The context that it gives ends when the server is waited for too long.
// The caller gives the turn back with give.
func (m *Mirror) take(ctx context.Context) (turn context.Context, give func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("wait for %s: %w", m.url, context.Cause(ctx))
	}
	select {
	case m.turn <- struct{}{}:
	case <-m.closed:
		return nil, nil, ErrClosed
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("wait for %s: %w", m.url, context.Cause(ctx))
	}
	turn, stop := m.watch.over(ctx)
	return turn, func() { stop(); <-m.turn }, nil
}

// persist writes the tips to disk when everything they need is there.
func (m *Mirror) persist() error {
	if err := m.store.flush(); err != nil {
		return err
	}
	return m.state.writeRefs(m.dir)
}

// refOf gives the full name of a branch: a name below refs/ is one already.
func refOf(branch string) string {
	if strings.HasPrefix(branch, refsPrefix) {
		return branch
	}
	return branchPrefix + branch
}

// branchOf is the inverse of refOf.
func branchOf(ref string) string { return strings.TrimPrefix(ref, branchPrefix) }

// checkBranch refuses names that git does not take for refs.
func checkBranch(branch string) error {
	if strings.HasPrefix(branch, branchPrefix) {
		return fmt.Errorf("branch %q: name it without %s", branch, branchPrefix)
	}
	if err := plumbing.ReferenceName(refOf(branch)).Validate(); err != nil {
		return fmt.Errorf("branch %q: %w", branch, err)
	}
	return nil
}
