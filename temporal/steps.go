package temporal

import (
	"errors"
	"fmt"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// withResets puts a ClearRamp before every SetCurrent that would leave a ramp to a third version standing.
func withResets(steps []rollout.RoutingStep, from rollout.RoutingConfig) []rollout.RoutingStep {
	var out []rollout.RoutingStep
	for _, step := range steps {
		if step.Kind == rollout.SetCurrent && from.HasRamp && from.Ramping != step.BuildID {
			reset := rollout.RoutingStep{Kind: rollout.ClearRamp}
			out, from = append(out, reset), from.After(reset)
		}
		out, from = append(out, step), from.After(step)
	}
	return out
}

// lowering gives the steps that are left of a call that takes traffic back, seen from the routing as it is. It is a
// StaleError if a step would not take traffic from what it was to take it from: then someone has seen to it otherwise.
func lowering(call rollout.RoutingCall, actual rollout.RoutingConfig) ([]rollout.RoutingStep, error) {
	var out []rollout.RoutingStep
	at := actual
	for _, step := range withResets(call.Steps, actual) {
		next := at.After(step)
		if next.SameTraffic(at) {
			continue
		}
		if !lowers(step, call.Basis, at) {
			return nil, &StaleError{Basis: call.Basis, Actual: actual}
		}
		out, at = append(out, step), next
	}
	return out, nil
}

// lowers reports whether a step takes traffic from the build it was decided against. So it is while the ramp that is
// cleared is still that build's, the version that is replaced is still the current one, the ramp that is cut is still
// higher.
func lowers(step rollout.RoutingStep, basis, at rollout.RoutingConfig) bool {
	switch step.Kind {
	case rollout.ClearRamp:
		return at.HasRamp && basis.HasRamp && at.Ramping == basis.Ramping
	case rollout.SetCurrent:
		return at.Current == basis.Current
	case rollout.SetRamp:
		return at.HasRamp && at.Ramping == step.BuildID && at.Percentage > step.Percentage
	}
	return false
}

// check refuses a call that no plan should contain.
func check(call rollout.RoutingCall) error {
	if call.Identity == "" {
		return errors.New("routing call without an identity")
	}
	if call.Claim != rollout.ClaimNeeded && call.Claim != rollout.ClaimHeld {
		return fmt.Errorf("routing call with the unknown claim %q", call.Claim)
	}
	if len(call.Steps) == 0 {
		return errors.New("routing call without steps")
	}
	for _, step := range call.Steps {
		switch step.Kind {
		case rollout.SetCurrent, rollout.ClearRamp:
		case rollout.SetRamp:
			if !(step.Percentage >= 0 && step.Percentage <= 100) {
				return fmt.Errorf("routing call with a ramp of %s", rollout.Percent(rollout.AsWritten(step.Percentage)))
			}
		default:
			return fmt.Errorf("routing call with the unknown step %q", step.Kind)
		}
	}
	return nil
}

func siteOf(kind rollout.RoutingStepKind) Site {
	switch kind {
	case rollout.SetCurrent:
		return SiteSetCurrent
	case rollout.SetRamp:
		return SiteSetRamp
	}
	return SiteClearRamp
}
