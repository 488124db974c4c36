package cmdutil

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/bundle"
	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// Judges compile policies once for each content: those of an environment with the bot's own. Policies that take long to
// compile keep no other environment waiting. Safe for concurrent use.
type Judges struct {
	// store has the bot's own policies; nil: it has none.
	store    *bundle.Store
	waivable []string

	mu      sync.Mutex
	engines map[[sha256.Size]byte]*compiled
	// floor is what of the store counts until pin is called again: one decision is made with the same policies from
	// start to end.
	floor bundle.Floor
}

// OpenJudges opens the bot's own policies as they are on disk. Close them.
func (a *App) OpenJudges() (*Judges, error) {
	store, err := openFloor(a)
	if err != nil {
		return nil, err
	}
	j := &Judges{store: store, waivable: a.policies.waivable}
	j.pin()
	return j, nil
}

// Judges opens the bot's own policies as the servers have them now, for a command that decides once. Close them.
func (a *App) Judges(ctx context.Context) (*Judges, error) {
	j, err := a.OpenJudges()
	if err != nil || j.store == nil {
		return j, err
	}
	j.Refresh(ctx)
	return j, ctx.Err()
}

// Refresh downloads the bundles that are in force at the servers, for one time limit at most, and pins them.
func (j *Judges) Refresh(ctx context.Context) {
	if j.store != nil {
		j.store.Refresh(ctx)
		j.pin()
	}
}

// Close stops watching the bot's own policies, and ends the processes that evaluate policies.
func (j *Judges) Close() {
	if j.store != nil {
		j.store.Close()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	closeAll(j.engines)
}

// compiled is policies that are compiled the first time that they are asked for.
type compiled struct {
	once   sync.Once
	engine atomic.Pointer[sandbox.Engine]
}

// closeAll ends the processes of policies, but of those that are being compiled: they end when they are asked nothing.
func closeAll(engines map[[sha256.Size]byte]*compiled) {
	for _, c := range engines {
		if e := c.engine.Load(); e != nil {
			go e.Close() // which waits for an answer that is being made
		}
	}
}

// pin takes over what is in force now.
func (j *Judges) pin() {
	if j.store == nil {
		return
	}
	floor := j.store.Floor()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.floor = floor
}

// WithWaivable gives the same policies with more rules that may be waived. Close the original only.
func (j *Judges) WithWaivable(rules []string) *Judges {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &Judges{store: j.store, waivable: slices.Concat(j.waivable, rules), floor: j.floor}
}

// MissingBundles gives the names of the bot's own bundles that were never downloaded. own says whether the bot has
// policies of its own.
func (j *Judges) MissingBundles() (names []string, own bool) {
	if j.store == nil {
		return nil, false
	}
	return j.store.Missing(), true
}

// LocateReferences has a reader find what a change removes and versions name, for environments whose policies look at
// that.
func (j *Judges) LocateReferences() index.Option {
	return index.LocateReferences(func(env rollout.EnvironmentWorld, _ rollout.Name, compared bool) bool {
		return compared && j.Engine(env).Looks().At(input.References)
	})
}

// Facts are those of the bot's own policies, such as the revision of each bundle, by their names.
func (j *Judges) Facts() map[string]rollout.Fact {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.floor.Facts
}

// judged takes over the bot's own policies each time that the repository is read, whether or not that works.
type judged struct {
	SpecSource
	judges *Judges
}

// PinOnRead gives a source that pins the bot's own policies each time that it is read: one decision is made with the
// same policies.
func (j *Judges) PinOnRead(source SpecSource) SpecSource { return judged{source, j} }

func (s judged) Read(ctx context.Context) (rollout.World, error) {
	s.judges.pin()
	return s.SpecSource.Read(ctx)
}

func (s judged) Survey(ctx context.Context) (rollout.Survey,
	func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
	s.judges.pin()
	return s.SpecSource.Survey(ctx)
}

// maxEngines is how many compiled policies are kept: those of all environments, and a few of before.
const maxEngines = 32

// Engine gives the compiled policies of an environment, with those of the bot that are pinned.
func (j *Judges) Engine(env rollout.EnvironmentWorld) *sandbox.Engine {
	floor := j.Pinned()
	h := sha256.New()
	h.Write([]byte(floor.Key + "\n"))
	for _, f := range env.Policies {
		h.Write(fmt.Appendf(nil, "policy %q %d\n%s", f.Path, len(f.Text), f.Text))
	}
	for _, f := range env.Data {
		h.Write(fmt.Appendf(nil, "data %q %d\n%s", f.Path, len(f.Text), f.Text))
	}
	for _, p := range env.PolicyProblems {
		h.Write(fmt.Appendf(nil, "problem %q\n", p.String()))
	}
	key := [sha256.Size]byte(h.Sum(nil))
	return j.once(key, j.config(env, floor))
}

// config is what an environment is judged by: its policies, and the bot's own.
func (j *Judges) config(env rollout.EnvironmentWorld, floor bundle.Floor) policy.Config {
	cfg := PolicyConfig(env)
	cfg.Floor, cfg.Waivable = floor.Layers, j.waivable
	return cfg
}

// Pinned are the bot's own policies that count now.
func (j *Judges) Pinned() bundle.Floor {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.floor
}

// once gives the policies of a content, which it compiles the first time.
func (j *Judges) once(key [sha256.Size]byte, cfg policy.Config) *sandbox.Engine {
	j.mu.Lock()
	c, ok := j.engines[key]
	if !ok {
		if len(j.engines) >= maxEngines || j.engines == nil {
			closeAll(j.engines)
			j.engines = map[[sha256.Size]byte]*compiled{}
		}
		c = &compiled{}
		j.engines[key] = c
	}
	j.mu.Unlock()
	c.once.Do(func() { c.engine.Store(sandbox.Compile(cfg, PolicyProcess)) })
	return c.engine.Load()
}

// PolicyConfig gives the policies and data of an environment, without the bot's own.
func PolicyConfig(env rollout.EnvironmentWorld) policy.Config {
	var cfg policy.Config
	for _, f := range env.Policies {
		cfg.Modules = append(cfg.Modules, parse.Module{Path: f.Path, Source: f.Text})
	}
	for _, f := range env.Data {
		cfg.Data = append(cfg.Data, parse.DataFile{Path: f.Path, Content: f.Text})
	}
	for _, p := range env.PolicyProblems {
		cfg.Problems = append(cfg.Problems, parse.Problem{Path: p.File, Line: p.Line, Message: p.Message})
	}
	return cfg
}
