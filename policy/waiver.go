package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/input"
)

// waive marks the findings that a waiver takes the effect from. What policies fail with can't be waived.
func (e *Engine) waive(found []rollout.Finding, d *Document, buildID string) {
	if len(d.waivers) == 0 || len(e.waivable) == 0 {
		return
	}
	for i := range found {
		f := &found[i]
		if f.Effect.Strictness() <= rollout.Warn.Strictness() || !e.mayWaive(f.Rule) {
			continue
		}
		for j := range d.waivers {
			w := &d.waivers[j]
			if w.Spec.Rule == f.Rule && w.Spec.ExpiresAt.After(d.now) && d.inScope(w) &&
				(w.Spec.Scope.BuildID == "" || w.Spec.Scope.BuildID == buildID) {
				f.Waived = fmt.Sprintf("%s (%s, until %s: %s)", w.Metadata.Name, w.Spec.Approver,
					input.Instant(w.Spec.ExpiresAt.Time), w.Spec.Reason)
				break
			}
		}
	}
}

// mayWaive reports whether the bot's configuration lets a rule be waived.
func (e *Engine) mayWaive(rule string) bool {
	if strings.HasPrefix(rule, "policy.") {
		return false
	}
	return slices.ContainsFunc(e.waivable, func(allowed string) bool {
		prefix, all := strings.CutSuffix(allowed, ".*")
		return rule == allowed || all && strings.HasPrefix(rule, prefix+".")
	})
}

func (d *Document) inScope(w *v1alpha1.Waiver) bool {
	s := w.Spec.Scope
	return (s.Environment == "" || s.Environment == d.environment) &&
		(s.Deployment == "" || s.Deployment == d.deployment.String())
}

// uselessWaivers warns of waivers for the worker deployment that have no effect.
func (e *Engine) uselessWaivers(d *Document) []rollout.Finding {
	var out []rollout.Finding
	for i := range d.waivers {
		w := &d.waivers[i]
		if !d.inScope(w) {
			continue
		}
		f := rollout.Finding{Package: "rampart", Effect: rollout.Warn}
		switch {
		case !w.Spec.ExpiresAt.After(d.now):
			f.Rule = "waiver.expired"
			f.Message = fmt.Sprintf(
				"waiver %s of %s expired at %s and has no effect: delete it, or have it approved again",
				w.Metadata.Name, w.Spec.Rule, input.Instant(w.Spec.ExpiresAt.Time))
		case !e.mayWaive(w.Spec.Rule):
			f.Rule = "waiver.refused"
			f.Message = fmt.Sprintf("waiver %s has no effect: the bot's own configuration does not let %s be waived",
				w.Metadata.Name, w.Spec.Rule)
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}
