// Package sandbox evaluates policies that others wrote in a process of its own. The operating system bounds its memory,
// and it is killed when it takes too long (decision 0085).
//
// Policies of the library alone, with whatever data, are evaluated in this process: they end soon.
package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/confined"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Engine is policies and data, compiled once, as a policy.Engine is. Where policies take their process with them, by
// never ending or by the memory that they need, everything is held, and those are asked that remain: the bot's own
// policies without the repository's, and the library. So what takes traffic back goes on.
//
// An Engine is safe for concurrent use.
type Engine struct {
	// children are the policies, and what remains of them without the repository's; none where all are the library's.
	children []*child
	// library is the library with the data.
	library func() *policy.Engine
}

// Option changes how policies are evaluated.
type Option func(*Engine)

// CompileWithin bounds how long reading and compiling may take; the default is DefaultCompile.
func CompileWithin(limit time.Duration) Option {
	return func(e *Engine) {
		for _, c := range e.children {
			c.compile = limit
		}
	}
}

// Compile prepares policies. It always gives an Engine, as policy.Compile does. Each process that it needs is a new
// one, which Serve is called in.
func Compile(cfg policy.Config, process func() *confined.Process, options ...Option) *Engine {
	e := &Engine{}
	for left := cfg; !left.Trusted(); {
		e.children = append(e.children, &child{cfg: left, compile: DefaultCompile, process: process()})
		if len(left.Modules) > 0 {
			left.Modules = nil
		} else {
			left.Floor = withoutModules(left.Floor)
		}
	}
	alone := cfg
	alone.Modules, alone.Floor = nil, withoutModules(cfg.Floor)
	e.library = sync.OnceValue(func() *policy.Engine { return policy.Compile(alone) })
	for _, o := range options {
		o(e)
	}
	e.facts()
	return e
}

func withoutModules(layers []policy.Layer) []policy.Layer {
	out := slices.Clone(layers)
	for i := range out {
		out[i].Modules = nil
	}
	return out
}

// Close ends the processes of the Engine. It can still be asked, which begins them again.
func (e *Engine) Close() {
	for _, c := range e.children {
		c.close()
	}
}

// facts are those of the policies; while they can't be compiled, those of the library and why.
func (e *Engine) facts() Facts {
	if len(e.children) == 0 {
		return factsOf(e.library())
	}
	c := e.children[0]
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.endWhenIdle()
	if c.facts != nil {
		return *c.facts
	}
	failed, _ := c.loaded(context.Background())
	if failed == nil {
		return *c.facts
	}
	f := factsOf(e.library())
	f.Problems = append(f.Problems, parse.Problem{Path: failed.Location, Message: failed.Message})
	h := sha256.New()
	h.Write([]byte(f.Digest))
	for _, m := range c.cfg.Modules {
		h.Write([]byte(m.Source))
	}
	for _, l := range c.cfg.Floor {
		for _, m := range l.Modules {
			h.Write([]byte(m.Source))
		}
	}
	f.Digest = fmt.Sprintf("sha256:%x", h.Sum(nil))
	return f
}

// Digest names the policies and their data by what they mean: formatting and comments do not change it.
func (e *Engine) Digest() string { return e.facts().Digest }

// Problems are what is broken, sorted by file and line.
func (e *Engine) Problems() []parse.Problem { return e.facts().Problems }

// Statuses are the contexts of commit statuses that policies may ask about, as policy.Engine has them.
func (e *Engine) Statuses() []string { return e.facts().Statuses }

// LooksAt reports whether policies may look at a part of their input, such as git.
func (e *Engine) LooksAt(part string) bool {
	f := e.facts()
	return f.LooksAtAll || f.Looks[part]
}

// Judge says what policy thinks of a proposal, as policy.Engine does.
func (e *Engine) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	if len(e.children) == 0 {
		return e.library().Judge(ctx, s, p)
	}
	d, err := policy.NewDocument(s, p)
	if err != nil { // which the library says of all
		return e.library().Judge(ctx, s, p)
	}
	return e.JudgeDocument(ctx, d)
}

// JudgeSpec says what policy thinks of the snapshot's spec alone, as policy.Engine does.
func (e *Engine) JudgeSpec(ctx context.Context, s rollout.Snapshot) rollout.Verdict {
	return e.Judge(ctx, s, rollout.Proposal{}).Spec
}

// JudgeDocument is Judge on a document, which may be one that was recorded.
func (e *Engine) JudgeDocument(ctx context.Context, d *policy.Document) rollout.Verdicts {
	if len(e.children) == 0 {
		return e.library().JudgeDocument(ctx, d)
	}
	v, held := first[rollout.Verdicts](ctx, e, d, "Judge", "")
	if v == nil {
		judged := e.library().JudgeHeld(ctx, d, held)
		v = &judged
	}
	v.PolicyDigest = e.Digest()
	return *v
}

// first asks the policies, and those that remain where they don't answer; nil: none does. What kept policies from
// answering is held against all.
func first[T any](ctx context.Context, e *Engine, d *policy.Document, method, action string) (answer *T, held []rollout.Finding) {
	q, err := question(d)
	if err != nil {
		return nil, []rollout.Finding{failure(ctx, err)}
	}
	q.Action = action
	for _, c := range e.children {
		got, failed, err := ask[T](ctx, c, method, q)
		switch {
		case failed == nil && err == nil:
			return &got, q.Held
		case failed == nil:
			f := failure(ctx, err)
			failed = &f
		}
		q.Held = append(q.Held, *failed)
	}
	return nil, q.Held
}

// failure is an error as a finding that holds.
func failure(ctx context.Context, err error) rollout.Finding {
	f := rollout.Finding{Package: "rampart", Rule: "policy.error", Effect: rollout.HoldEffect,
		Message: parse.Cut("the policies were not evaluated: "+err.Error(), parse.MaxMessage)}
	if ctx.Err() != nil {
		f.Rule, f.Message = "policy.cancelled", "the evaluation was cancelled"
	}
	return f
}

func question(d *policy.Document) (Question, error) {
	text, err := d.MarshalJSON()
	return Question{Document: text}, err
}

// failedError is an error of policies that took their process with them.
func failedError(f *rollout.Finding) error { return errors.New(f.Text()) }

// Explain says rule by rule why policy says what it says of an action of a document, as policy.Engine does. Where
// policies took their process with them, it is about those that remain, and incomplete.
func (e *Engine) Explain(ctx context.Context, d *policy.Document, actionID string) (policy.Explanation, error) {
	if len(e.children) == 0 {
		return e.library().Explain(ctx, d, actionID)
	}
	x, held := first[policy.Explanation](ctx, e, d, "Explain", actionID)
	if x == nil {
		explained, err := e.library().ExplainHeld(ctx, d, actionID, held)
		if err != nil {
			return explained, err
		}
		x = &explained
	}
	x.PolicyDigest = e.Digest()
	if len(held) > 0 {
		x.Incomplete = held[0].Text()
	}
	return *x, ctx.Err()
}

// Ask evaluates a Rego expression beside the policies and their data, as policy.Engine does.
func (e *Engine) Ask(ctx context.Context, d *policy.Document, actionID, expression string) ([]map[string]json.RawMessage, error) {
	q, err := question(d)
	if err != nil {
		return nil, err
	}
	if len(e.children) == 0 {
		return e.library().Ask(ctx, d, actionID, expression)
	}
	q.Action, q.Expression = actionID, expression
	answers, failed, err := ask[[]map[string]json.RawMessage](ctx, e.children[0], "Ask", q)
	if failed != nil {
		return nil, failedError(failed)
	}
	return answers, err
}

// ReadMasked reports whether policies read one of the values of a document that JSON pointers name, and where a mark
// stands now, as policy.Masks does.
func (e *Engine) ReadMasked(ctx context.Context, d *policy.Document, mark string, pointers []string) (bool, error) {
	if len(e.children) == 0 {
		return e.library().Masks(mark).Read(ctx, d, pointers)
	}
	q, err := question(d)
	if err != nil {
		return false, err
	}
	q.Mark, q.Pointers = mark, pointers
	read, failed, err := ask[bool](ctx, e.children[0], "ReadMasked", q)
	if failed != nil {
		return false, failedError(failed)
	}
	return read, err
}

// ClauseLooksAt reports whether a clause of a package may look at a part of the input, as policy.Engine does; true
// where that can't be told.
func (e *Engine) ClauseLooksAt(pkg, location, part string) bool {
	if len(e.children) == 0 {
		return e.library().ClauseLooksAt(pkg, location, part)
	}
	looks, failed, err := ask[bool](context.Background(), e.children[0], "ClauseLooksAt", Question{Package: pkg, Location: location, Part: part})
	return looks || failed != nil || err != nil
}
