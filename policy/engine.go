package policy

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	library "github.com/rampart-gitops/rampart/rego"
)

// Engine is policies and data, compiled once.
type Engine struct {
	// books are asked about everything, each by itself: the library with the repository's policies, and what the bot's own
	// configuration has beside them.
	books    []*rulebook
	digest   string
	problems []Problem
	// broken are the problems as findings, on every action.
	broken   []rollout.Finding
	bounds   Bounds
	waivable []string
	terms    termMaker
	stuck    *Stuck
	// foreign says that a book has modules beside the library's.
	foreign bool
}

// Compile prepares policies. It always gives an Engine: what is broken is left out, held against every raise, and
// listed by Problems.
func Compile(cfg Config) *Engine {
	if cfg.Library == nil {
		cfg.Library = library.Modules()
	}
	if cfg.Stuck == nil {
		cfg.Stuck = new(Stuck)
	}
	e := &Engine{bounds: cfg.Bounds.orDefault(), stuck: cfg.Stuck, waivable: slices.Sorted(slices.Values(cfg.Waivable)),
		terms: newTermMaker(reflect.TypeFor[v1alpha1.WorkerDeploymentSpec]())}
	e.books = append([]*rulebook{newRulebook(bookConfig{library: cfg.Library, modules: cfg.Modules, data: cfg.Data, total: true, limit: e.bounds.Compile})},
		e.floor(cfg)...)
	e.problems = conflicts(cfg.Data)
	var digests []string
	for _, b := range e.books {
		e.problems = append(e.problems, b.problems...)
		digests = append(digests, b.digest)
		e.foreign = e.foreign || b.foreign
	}
	for _, l := range append([]Layer{{Problems: cfg.Problems}}, cfg.Floor...) {
		e.problems = append(e.problems, l.Problems...)
		for _, p := range l.Problems {
			digests = append(digests, p.Error())
		}
	}
	e.digest = digests[0]
	if rest := slices.Concat(digests[1:], e.waivable); len(rest) > 0 {
		e.digest = "sha256:" + sum([]byte(strings.Join(append(digests, e.waivable...), "\n")))
	}
	slices.SortFunc(e.problems, compareProblems)
	e.problems = slices.Compact(e.problems)
	e.broken = problemFindings(e.problems)
	return e
}

// floor makes the books of the bot's own configuration. One has its modules, which see none of the repository's. The
// other is the library with its parameters; only the rules that are configured there have a say.
func (e *Engine) floor(cfg Config) []*rulebook {
	own := floorConfig(cfg)
	own.limit = e.bounds.Compile
	var out []*rulebook
	if len(own.modules) > 0 {
		out = append(out, newRulebook(own))
	}
	configured := configuredRules(own.data)
	if len(configured) > 0 || len(own.data) > 0 && len(own.modules) == 0 {
		out = append(out, newRulebook(bookConfig{library: cfg.Library, data: own.data, only: configured}))
	}
	return out
}

// floorConfig is what the floor's modules see: each other, the floor's data, and the helpers of the library.
func floorConfig(cfg Config) bookConfig {
	out := bookConfig{library: slices.DeleteFunc(slices.Clone(cfg.Library), func(m Module) bool { return asksVerdicts(m.Path) })}
	for _, l := range cfg.Floor {
		out.modules = append(out.modules, l.Modules...)
		out.data = append(out.data, l.Data...)
	}
	return out
}

// asksVerdicts reports whether a module of the library is one of those that are asked, and no helper, by its folder.
func asksVerdicts(path string) bool {
	for name := range contract() {
		if strings.Contains(path, strings.Replace(name, ".", "/", 1)+"/") {
			return true
		}
	}
	return false
}

// Digest names the policies and their data by what they mean: formatting and comments do not change it.
func (e *Engine) Digest() string { return e.digest }

// Problems are what is broken, sorted by file and line.
func (e *Engine) Problems() []Problem { return slices.Clone(e.problems) }

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
}

func problemFindings(problems []Problem) []rollout.Finding {
	var out []rollout.Finding
	for i, p := range problems {
		if i == maxProblems {
			break
		}
		out = append(out, rollout.Finding{Package: "rampart", Rule: "policy.broken", Effect: rollout.HoldEffect,
			Message: p.Message, Location: p.Location()})
	}
	return out
}

// Bounds of one query, each 0 for its default. What goes beyond is ended, and held.
type Bounds struct {
	// Timeout of real time.
	Timeout time.Duration
	// Steps of evaluation: expressions that are looked at. The default library takes some hundred.
	Steps int
	// Memory in bytes, roughly, that results of builtins take.
	Memory int64
	// Compile is how long reading and compiling the modules may take, of real time.
	Compile time.Duration
}

// The default bounds.
const (
	DefaultTimeout = time.Second
	DefaultSteps   = 200_000
	DefaultMemory  = 64 << 20
	DefaultCompile = 10 * time.Second
)

func (b Bounds) orDefault() Bounds {
	return Bounds{Timeout: cmp.Or(b.Timeout, DefaultTimeout), Steps: cmp.Or(b.Steps, DefaultSteps), Memory: cmp.Or(b.Memory, DefaultMemory),
		Compile: cmp.Or(b.Compile, DefaultCompile)}
}
