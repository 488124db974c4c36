package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// heldFor is a verdict of rules that hold until some times from now; 0: such a rule does not say.
func heldFor(spans ...time.Duration) rollout.Verdict {
	v := rollout.Verdict{Effect: rollout.HoldEffect}
	for _, d := range spans {
		f := rollout.Finding{Package: "rampart.rollout", Rule: "rollout.freeze", Effect: rollout.HoldEffect, Message: "frozen"}
		if d != 0 {
			f.Until = noon.Add(d)
		}
		v.Findings = append(v.Findings, f)
	}
	return v
}

// What policy holds until a time is looked at again then; until then only where traffic has to be judged.
func TestFrozen(t *testing.T) {
	waived := heldFor(time.Hour, 0)
	waived.Findings[1].Waived = "a waiver"
	warned := heldFor(time.Hour, 0)
	warned.Findings[1].Effect = rollout.Warn
	for _, c := range []struct {
		name    string
		given   change
		verdict rollout.Verdict
		due     time.Duration
		settled bool
	}{
		{"a window", candidate(), heldFor(time.Hour), time.Hour, true},
		{"two windows", candidate(), heldFor(2*time.Hour, time.Hour), time.Hour, true},
		{"a rule that does not say", candidate(), heldFor(0), 0, false},
		{"a window, and such a rule", candidate(), heldFor(time.Hour, 0), 0, false},
		{"a window, and a waived one", candidate(), waived, time.Hour, true},
		{"a window, and a warning", candidate(), warned, time.Hour, true},
		{"a time that is over", candidate(), heldFor(-time.Minute), 0, false},
		{"in a ramp", rampsAt(10, 20*time.Minute), heldFor(time.Hour), time.Hour, false},
		{"something due before", all(candidate(), inGit("v0"), up("v0"), drained("v0", 59*time.Minute)), heldFor(time.Hour), time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := decide(t, of(c.given), verdictOn(rollout.Ramp, c.verdict))
			require.Len(t, p.Held, 1)
			want := time.Time{}
			if c.due != 0 {
				want = noon.Add(c.due)
			}
			require.Equal(t, want, p.NextDue)
			require.Equal(t, c.settled, p.Settled)
		})
	}
}

// What is retired has no target, and is looked at in every cycle, also while policy holds that it loses its traffic.
func TestFrozenWhileRetired(t *testing.T) {
	for name, given := range map[string]change{"alone": none, "beside another": all(inGit("v0"), up("v0"), drained("v0", time.Minute))} {
		t.Run(name, func(t *testing.T) {
			p := decide(t, of(retires(v1alpha1.UnrouteProven, 2*time.Hour), used("v1", 0), given), verdictOn(rollout.Unroute, heldFor(time.Hour)))
			require.Len(t, p.Held, 1)
			require.Nil(t, p.Raise)
			require.Equal(t, "PolicyHold", condition(p.Status, v1alpha1.ConditionReady).Reason)
			require.False(t, p.Settled)
		})
	}
}
