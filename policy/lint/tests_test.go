package lint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// TestMisspeltTests checks that a rule that looks like a test but is not run is reported; helpers that tests use are
// not.
func TestMisspeltTests(t *testing.T) {
	got := Check(policy.Config{Modules: []parse.Module{
		{Path: "policies/a.rego", Source: "package rampart.rollout\n\nwarn contains {\"rule\": \"acme.a\", \"msg\": \"a\"} if input.action.to > 90\n"},
		{Path: "policies/a_test.rego", Source: `package rampart.rollout_test

import data.rampart.rollout

tset_high if count(rollout.warn) == 1 with input as {"action": {"kind": "Ramp", "to": 95}}

Test_low if count(rollout.warn) == 0 with input as {"action": {"kind": "Ramp", "to": 5}}

testlow if true

test_right if rest_of == best_of(1)

rest_of := 1

best_of(x) := x

todo_test_later if false

latest := 5

quite_another := 5
`},
	}})
	const said = " is not run: the name of a test begins with test_, and nothing uses a rule of this name (did you mean "
	require.Equal(t, []string{
		"policies/a_test.rego:5: tset_high" + said + "test_high?) [test]",
		"policies/a_test.rego:7: Test_low" + said + "test_low?) [test]",
		"policies/a_test.rego:9: testlow" + said + "test_low?) [test]",
	}, lines(got))
}
