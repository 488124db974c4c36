package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Judge says what policy thinks of a proposal: of the spec, and of each action.
//
// The strictest finding wins: rollback, then deny and hold, then require_approval; warnings allow. ResetRamp, Rollback,
// a Ramp that lowers and SetAside are always allowed: whatever is found about them is a warning. An action of a kind
// that no package is asked about gets no verdict, which is a hold.
func (e *Engine) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	j := e.judgement(ctx, &s)
	out := rollout.Verdicts{PolicyDigest: e.digest, Actions: make(map[string]rollout.Verdict, len(p.Actions))}
	d, err := newDocument(&s, &p)
	if err != nil {
		out.Spec = conclude(e.with(unreadable(packageSpec, err)))
	} else {
		out.Spec = j.spec(d)
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		pkg := asked(a.Kind)
		if pkg == "" {
			continue
		}
		if err != nil {
			out.Actions[a.ID] = verdict(a, e.with(unreadable(pkg, err)))
			continue
		}
		out.Actions[a.ID] = verdict(a, e.with(e.findings(pkg, j.ask(pkg, d.about(a)))...))
	}
	return out
}

// JudgeSpec says what policy thinks of the snapshot's spec alone. The rules see the spec, its environment and the
// commit, here and in Judge, so that both say the same.
func (e *Engine) JudgeSpec(ctx context.Context, s rollout.Snapshot) rollout.Verdict {
	d, err := newSpecDocument(&s)
	if err != nil {
		return conclude(e.with(unreadable(packageSpec, err)))
	}
	return e.judgement(ctx, &s).spec(d)
}

func (e *Engine) judgement(ctx context.Context, s *rollout.Snapshot) *judgement {
	return &judgement{ctx: ctx, engine: e, now: s.Now, slow: map[string]bool{}}
}

func (j *judgement) spec(d *document) rollout.Verdict {
	return conclude(j.engine.with(j.engine.findings(packageSpec, j.ask(packageSpec, d.spec()))...))
}

// with adds what is broken.
func (e *Engine) with(found ...rollout.Finding) []rollout.Finding {
	return slices.Concat(found, e.broken)
}

func unreadable(pkg string, err error) rollout.Finding {
	return rollout.Finding{Package: pkg, Rule: "policy.input", Effect: rollout.HoldEffect,
		Message: cut(fmt.Sprintf("the input of the policies could not be made: %v", err), maxMessage)}
}

// verdict combines the findings on one action.
func verdict(a *rollout.Action, found []rollout.Finding) rollout.Verdict {
	if unstoppable(a) {
		for i := range found {
			if found[i].Effect.Strictness() > rollout.Warn.Strictness() {
				found[i].Effect = rollout.Warn
			}
		}
	}
	if a.Kind == rollout.DriftAction {
		return driftVerdict(a, found)
	}
	return conclude(found)
}

// driftVerdict adds the answer: the strictest of hold, revert and adopt; hold where there is none. Reverting can only
// lower traffic, so less traffic than desired is adopted instead.
func driftVerdict(a *rollout.Action, found []rollout.Finding) rollout.Verdict {
	v := conclude(found)
	lower := a.Drift != nil && a.Drift.Kind == rollout.DriftRouting && a.Drift.Direction == rollout.DriftLower
	answers := map[rollout.DriftAnswer]bool{}
	for _, f := range found {
		var got map[string]any
		if f.Package == packageDrift && f.Effect != rollout.Warn && json.Unmarshal(f.Evidence, &got) == nil {
			answer, _ := got[setAction].(string)
			answers[rollout.DriftAnswer(answer)] = true
		}
	}
	switch {
	case v.Effect.Strictness() >= rollout.HoldEffect.Strictness():
		v.Drift = rollout.DriftHold
	case answers[rollout.DriftRevert] && lower:
		v.Drift = rollout.DriftAdopt
		return withNote(v, rollout.Finding{Package: packageDrift, Rule: "policy.drift", Effect: rollout.Warn,
			Message: "reverting would raise traffic: what is lower than desired is adopted instead"})
	case answers[rollout.DriftRevert]:
		v.Drift = rollout.DriftRevert
	case answers[rollout.DriftAdopt]:
		v.Drift = rollout.DriftAdopt
	default:
		v.Effect, v.Drift = rollout.HoldEffect, rollout.DriftHold
		return withNote(v, rollout.Finding{Package: packageDrift, Rule: "policy.empty", Effect: rollout.HoldEffect,
			Message: "no rule answers this drift"})
	}
	return v
}

func withNote(v rollout.Verdict, f rollout.Finding) rollout.Verdict {
	v.Findings = append(slices.Clone(v.Findings), f)
	slices.SortFunc(v.Findings, compareFindings)
	return v
}
