package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// A policy that stays just within its bounds each time costs a cycle over many worker deployments as little as one that
// does not.
func TestJustWithinTheBounds(t *testing.T) {
	testneed.Plain(t)
	const rule = `package rampart.rollout

hold contains {"rule": "acme.slow", "msg": "no"} if {
	some i in numbers.range(1, %d)
	i < 0
}
`
	many := Compile(Config{Modules: policytest.Modules(fmt.Sprintf(rule, 60_000)), Bounds: Bounds{Timeout: time.Minute}})
	require.Equal(t, rollout.Allow, judge(t, many, ramp()).Effect, "one is within its bounds")
	held := 0
	for held == 0 {
		v := judge(t, many, ramp())
		for _, f := range v.Findings {
			require.Equal(t, "policy.timeout", f.Rule)
			require.Contains(t, f.Message, "over all worker deployments")
			require.Equal(t, "policies/p1.rego:3", f.Location)
			held++
		}
	}
	require.Equal(t, rollout.Allow, judge(t, many, reset()).Effect)

	few := Compile(Config{Modules: policytest.Modules(fmt.Sprintf(rule, 1_000))})
	for range 2000 {
		require.Equal(t, rollout.Allow, judge(t, few, ramp()).Effect)
	}
}
