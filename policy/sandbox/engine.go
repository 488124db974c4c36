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
	"sync/atomic"
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
	// asked is the policies once more, for questions of people, which may take long.
	asked *child
	// library is the library with the data.
	library func() *policy.Engine
	facts   atomic.Pointer[Facts]
}

// Compile prepares policies. It always gives an Engine, as policy.Compile does. Each process that it needs is a new
// one, which Serve is called in.
func Compile(cfg policy.Config, process func() *confined.Process) *Engine {
	return compileWithin(compileTime, cfg, process)
}

// compileWithin is Compile with another bound of how long reading and compiling may take.
func compileWithin(limit time.Duration, cfg policy.Config, process func() *confined.Process) *Engine {
	e := &Engine{}
	for left := cfg; len(left.Foreign()) > 0; {
		e.children = append(e.children, &child{cfg: left, compile: limit, process: process()})
		if len(left.Modules) > 0 {
			left.Modules = nil
		} else {
			left.Floor = withoutModules(left.Floor)
		}
	}
	if len(e.children) > 0 {
		e.children[0].loaded = e.facts.Store
		e.asked = &child{cfg: cfg, compile: limit, process: process()}
	}
	alone := cfg
	alone.Modules, alone.Floor = nil, withoutModules(cfg.Floor)
	e.library = sync.OnceValue(func() *policy.Engine { return policy.Compile(alone) })
	e.prepare()
	return e
}

// all are the children.
func (e *Engine) all() []*child {
	if e.asked == nil {
		return nil
	}
	return append([]*child{e.asked}, e.children...)
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
	for _, c := range e.all() {
		c.close()
	}
}

// prepare compiles the policies; as long as they can't be, the facts are those of the library, and why.
func (e *Engine) prepare() {
	if len(e.children) == 0 {
		f := factsOf(e.library())
		e.facts.Store(&f)
		return
	}
	c := e.children[0]
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.endWhenIdle()
	if failed, _ := c.load(context.Background()); failed != nil {
		f := factsOf(e.library())
		for _, phase := range rollout.CanaryPhases() { // what the bot's own policies look at is not known
			f.Looks.Parts[rollout.PartCounts(phase)] = true
		}
		f.Problems = append(f.Problems, parse.Problem{Path: failed.Location, Message: failed.Message})
		slices.SortFunc(f.Problems, parse.CompareProblems)
		h := sha256.New()
		h.Write([]byte(f.Digest))
		for _, m := range c.cfg.Foreign() {
			h.Write([]byte(m.Source))
		}
		f.Digest = fmt.Sprintf("sha256:%x", h.Sum(nil))
		e.facts.Store(&f)
	}
}

// Digest names the policies and their data by what they mean: formatting and comments do not change it.
func (e *Engine) Digest() string { return e.facts.Load().Digest }

// Problems are what is broken, sorted by file and line.
func (e *Engine) Problems() []parse.Problem { return e.facts.Load().Problems }

// Looks is what the policies may look at.
func (e *Engine) Looks() rollout.Looks { return e.facts.Load().Looks }

// Judge says what policy thinks of a proposal, as policy.Engine does.
func (e *Engine) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	d, err := policy.NewDocument(s, p)
	if err != nil { // which the library says of all
		v := e.library().Judge(ctx, s, p)
		v.PolicyDigest = e.Digest()
		return v
	}
	return e.JudgeDocument(ctx, d)
}

// JudgeSpec says what policy thinks of the snapshot's spec alone. The rules see the spec, its environment and the
// commit, here and in Judge, so that both say the same.
func (e *Engine) JudgeSpec(ctx context.Context, s rollout.Snapshot) rollout.Verdict {
	return e.Judge(ctx, s, rollout.Proposal{}).Spec
}

// JudgeDocument is Judge on a document, which may be one that was recorded.
func (e *Engine) JudgeDocument(ctx context.Context, d *policy.Document) rollout.Verdicts {
	digest := e.Digest()
	v, held := first[rollout.Verdicts](ctx, e.children, d, "Judge", "")
	if v == nil {
		judged := e.library().JudgeHeld(ctx, d, held)
		v = &judged
	}
	v.PolicyDigest = digest
	return *v
}

// first asks the policies, and those that remain where they don't answer; nil: none does. What kept policies from
// answering is held against all.
func first[T any](ctx context.Context, children []*child, d *policy.Document, method,
	action string) (answer *T, held []rollout.Finding) {
	if len(children) == 0 {
		return nil, nil
	}
	text, err := d.MarshalJSON()
	if err != nil {
		return nil, []rollout.Finding{unasked(ctx, err)}
	}
	q := Question{Document: text, Action: action}
	for _, c := range children {
		got, failed, err := ask[T](ctx, c, method, q)
		switch {
		case failed == nil && err == nil:
			return &got, q.Held
		case failed == nil:
			f := unasked(ctx, err)
			failed = &f
		}
		q.Held = append(q.Held, *failed)
	}
	return nil, q.Held
}

// unasked says that policies were not asked, as a finding that holds.
func unasked(ctx context.Context, err error) rollout.Finding {
	f := rollout.Finding{Package: "rampart", Rule: "policy.error", Effect: rollout.HoldEffect,
		Message: parse.Cut("the policies were not evaluated: "+err.Error(), parse.MaxMessage)}
	if ctx.Err() != nil {
		f.Rule, f.Message = "policy.cancelled", "the evaluation was canceled"
	}
	return f
}

// only asks the policies for people, about a document: what keeps them from answering is an error.
func only[T any](ctx context.Context, e *Engine, d *policy.Document, method string, q Question) (answer T, err error) {
	if q.Document, err = d.MarshalJSON(); err != nil {
		return answer, err
	}
	answer, failed, err := ask[T](ctx, e.asked, method, q)
	if failed != nil {
		err = errors.New(failed.Text())
	}
	return answer, err
}

// Explain says rule by rule why policy says what it says of an action of a document, as policy.Engine does. Where
// policies took their process with them, it is about those that remain, and incomplete.
func (e *Engine) Explain(ctx context.Context, d *policy.Document, actionID string) (policy.Explanation, error) {
	children := e.children
	if len(children) > 0 {
		children = append([]*child{e.asked}, children[1:]...)
	}
	x, held := first[policy.Explanation](ctx, children, d, "Explain", actionID)
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
func (e *Engine) Ask(ctx context.Context, d *policy.Document, actionID,
	expression string) ([]map[string]json.RawMessage, error) {
	if len(e.children) == 0 {
		return e.library().Ask(ctx, d, actionID, expression)
	}
	return only[[]map[string]json.RawMessage](ctx, e, d, "Ask", Question{Action: actionID, Expression: expression})
}

// ReadMasked reports whether policies read one of the values of a document that JSON pointers name, and where a mark
// stands now, as policy.Masks does.
func (e *Engine) ReadMasked(ctx context.Context, d *policy.Document, mark string, pointers []string) (bool, error) {
	if len(e.children) == 0 {
		return e.library().Masks(mark).Read(ctx, d, pointers)
	}
	return only[bool](ctx, e, d, "ReadMasked", Question{Mark: mark, Pointers: pointers})
}

// ClauseLooksAt reports whether a clause of a package may look at a part of the input, as policy.Engine does; true
// where that can't be told.
func (e *Engine) ClauseLooksAt(pkg, location, part string) bool {
	if len(e.children) == 0 {
		return e.library().ClauseLooksAt(pkg, location, part)
	}
	looks, failed, err := ask[bool](context.Background(), e.asked, "ClauseLooksAt",
		Question{Package: pkg, Location: location, Part: part})
	return looks || failed != nil || err != nil
}
