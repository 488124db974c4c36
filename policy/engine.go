package policy

import (
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
	library "github.com/rampart-gitops/rampart/rego"
)

// Engine is policies and data, compiled once.
type Engine struct {
	// books are asked about everything, each by itself: the library with the repository's policies, and what the bot's
	// own configuration has beside them.
	books    []*rulebook
	digest   string
	problems []parse.Problem
	// broken are the problems as findings, on every action.
	broken   []rollout.Finding
	bounds   Bounds
	waivable []string
	overrun  func(rollout.Finding)
}

// Compile prepares policies. It always gives an Engine: what is broken is left out, held against every raise, and
// listed by Problems.
func Compile(cfg Config) *Engine {
	if cfg.Library == nil {
		cfg.Library = library.Modules()
	}
	e := &Engine{bounds: cfg.Bounds.OrDefault(), overrun: cfg.Overrun,
		waivable: slices.Sorted(slices.Values(cfg.Waivable))}
	e.books = append(
		[]*rulebook{newRulebook(bookConfig{library: cfg.Library, modules: cfg.Modules, data: cfg.Data, total: true})},
		e.floor(cfg)...)
	e.problems = parse.Conflicts(cfg.Data)
	var digests []string
	for _, b := range e.books {
		e.problems = append(e.problems, b.problems...)
		digests = append(digests, b.digest)
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
	slices.SortFunc(e.problems, parse.CompareProblems)
	e.problems = slices.Compact(e.problems)
	e.broken = problemFindings(e.problems)
	return e
}

// floor makes the books of the bot's own configuration. One has its modules, which see none of the repository's. The
// other is the library with its parameters; only the rules that are configured there have a say.
func (e *Engine) floor(cfg Config) []*rulebook {
	own := floorConfig(cfg)
	var out []*rulebook
	if len(own.modules) > 0 {
		out = append(out, newRulebook(own))
	}
	configured := parse.ConfiguredRules(own.data)
	if len(configured) > 0 || len(own.data) > 0 && len(own.modules) == 0 {
		out = append(out, newRulebook(bookConfig{library: cfg.Library, data: own.data, only: configured}))
	}
	return out
}

// floorConfig is what the floor's modules see: each other, the floor's data, and the helpers of the library.
func floorConfig(cfg Config) bookConfig {
	out := bookConfig{library: slices.DeleteFunc(slices.Clone(cfg.Library), func(m parse.Module) bool {
		return parse.AsksVerdicts(m.Path)
	})}
	for _, l := range cfg.Floor {
		out.modules = append(out.modules, l.Modules...)
		out.data = append(out.data, l.Data...)
	}
	return out
}

// Digest names the policies and their data by what they mean: formatting and comments do not change it.
func (e *Engine) Digest() string { return e.digest }

// Problems are what is broken, sorted by file and line.
func (e *Engine) Problems() []parse.Problem { return slices.Clone(e.problems) }

func problemFindings(problems []parse.Problem) []rollout.Finding {
	var out []rollout.Finding
	for i, p := range problems {
		if i == parse.MaxProblems {
			break
		}
		out = append(out, rollout.Finding{Package: "rampart", Rule: "policy.broken", Effect: rollout.HoldEffect,
			Message: p.Message, Location: p.Location()})
	}
	return out
}
