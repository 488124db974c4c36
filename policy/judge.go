package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Judge says what policy thinks of a proposal: of the spec, and of each action.
//
// The strictest finding that is not waived wins: rollback, then deny and hold, then require_approval; warnings allow.
// ResetRamp, Rollback, a Ramp that lowers and SetAside are always allowed: whatever is found about them is a warning.
// An action of a kind that no package is asked about gets no verdict, which is a hold.
func (e *Engine) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	d, err := NewDocument(s, p)
	if err == nil {
		return e.JudgeDocument(ctx, d)
	}
	out := rollout.Verdicts{PolicyDigest: e.digest, Actions: make(map[string]rollout.Verdict, len(p.Actions)),
		Spec: conclude(e.with(unreadable(parse.PackageSpec, err)))}
	for i := range p.Actions {
		if m := matterOf(&p.Actions[i]); parse.Asked(m.kind) != "" {
			out.Actions[m.id] = verdict(&m, e.with(unreadable(parse.Asked(m.kind), err)))
		}
	}
	return out
}

// JudgeDocument is Judge on a document, which may be one that was recorded.
func (e *Engine) JudgeDocument(ctx context.Context, d *Document) rollout.Verdicts {
	return e.JudgeHeld(ctx, d, nil)
}

// JudgeHeld is JudgeDocument with more findings on the spec and on each action, such as that policies are missing that
// could not be asked.
func (e *Engine) JudgeHeld(ctx context.Context, d *Document, held []rollout.Finding) rollout.Verdicts {
	return e.judgment(ctx, d, held).verdicts()
}

func (e *Engine) judgment(ctx context.Context, d *Document, held []rollout.Finding) *judgment {
	return &judgment{ctx: ctx, Document: d, engine: e, held: slices.Concat(e.broken, held)}
}

func (j *judgment) verdicts() rollout.Verdicts {
	out := rollout.Verdicts{PolicyDigest: j.engine.digest, Actions: make(map[string]rollout.Verdict, len(j.actions)),
		Spec: j.spec()}
	for i := range j.actions {
		m := &j.actions[i]
		if pkg := parse.Asked(m.kind); pkg != "" {
			found := append(j.findings(pkg, j.about(m)), j.held...)
			j.engine.waive(found, j.Document, m.buildID)
			out.Actions[m.id] = verdict(m, found)
		}
	}
	return out
}

func (j *judgment) spec() rollout.Verdict {
	var said []rollout.Finding
	for _, b := range j.engine.books {
		said = append(said, j.specFindings(b)...)
	}
	found := slices.Concat(said, j.held, j.engine.uselessWaivers(j.Document))
	j.engine.waive(found, j.Document, "")
	return conclude(found)
}

// specFindings are what a book says of the spec.
func (j *judgment) specFindings(b *rulebook) []rollout.Finding {
	if !b.kept.timeless {
		return b.findings(parse.PackageSpec, j.ask(b, parse.PackageSpec, j.SpecInput()))
	}
	if found, ok := b.kept.recall(j.Document); ok {
		return found
	}
	said := j.ask(b, parse.PackageSpec, j.SpecInput())
	failed := len(said.failures) > 0
	found := b.findings(parse.PackageSpec, said)
	if !failed {
		b.kept.keep(j.Document, found)
	}
	return found
}

// findings are what all books say of an input.
func (j *judgment) findings(pkg string, input ast.Value) []rollout.Finding {
	var out []rollout.Finding
	for _, b := range j.engine.books {
		out = append(out, b.findings(pkg, j.ask(b, pkg, input))...)
	}
	return out
}

// with adds what is broken.
func (e *Engine) with(found ...rollout.Finding) []rollout.Finding {
	return slices.Concat(found, e.broken)
}

func unreadable(pkg string, err error) rollout.Finding {
	return rollout.Finding{Package: pkg, Rule: "policy.input", Effect: rollout.HoldEffect,
		Message: parse.Cut(fmt.Sprintf("the input of the policies could not be made: %v", err), parse.MaxMessage)}
}

// verdict combines the findings on one action.
func verdict(m *matter, found []rollout.Finding) rollout.Verdict {
	if m.unstoppable() {
		for i := range found {
			if found[i].Effect.Strictness() > rollout.Warn.Strictness() {
				found[i].Effect, found[i].Waived = rollout.Warn, ""
			}
		}
	}
	if m.kind == rollout.DriftAction {
		return driftVerdict(m, found)
	}
	return conclude(found)
}

// driftVerdict adds the answer: the strictest of hold, revert and adopt; hold where there is none. Reverting can only
// lower traffic, so less traffic than desired is adopted instead.
func driftVerdict(m *matter, found []rollout.Finding) rollout.Verdict {
	v := conclude(found)
	answers := map[rollout.DriftAnswer]bool{}
	for _, f := range found {
		var got map[string]any
		if f.Package == parse.PackageDrift && f.Waived == "" && f.Effect != rollout.Warn &&
			json.Unmarshal(f.Evidence, &got) == nil {
			answer, _ := got[parse.SetAction].(string)
			answers[rollout.DriftAnswer(answer)] = true
		}
	}
	switch {
	case v.Effect.Strictness() >= rollout.HoldEffect.Strictness():
		v.Drift = rollout.DriftHold
	case answers[rollout.DriftRevert] && m.lowerDrift:
		v.Drift = rollout.DriftAdopt
		return withNote(v, rollout.Finding{Package: parse.PackageDrift, Rule: "policy.drift", Effect: rollout.Warn,
			Message: "reverting would raise traffic: what is lower than desired is adopted instead"})
	case answers[rollout.DriftRevert]:
		v.Drift = rollout.DriftRevert
	case answers[rollout.DriftAdopt]:
		v.Drift = rollout.DriftAdopt
	default:
		v.Effect, v.Drift = rollout.HoldEffect, rollout.DriftHold
		return withNote(v, rollout.Finding{Package: parse.PackageDrift, Rule: "policy.empty",
			Effect: rollout.HoldEffect, Message: "no rule answers this drift"})
	}
	return v
}

func withNote(v rollout.Verdict, f rollout.Finding) rollout.Verdict {
	v.Findings = append(slices.Clone(v.Findings), f)
	slices.SortFunc(v.Findings, compareFindings)
	return v
}

// unstoppable reports whether policy may comment on an action and no more: it takes traffic back, or reports.
func (m *matter) unstoppable() bool { return m.lowers || m.kind == rollout.SetAsideKind }
