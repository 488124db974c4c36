package policy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// Values that are within others many times over are refused before they are made; values as people write them are not.
func TestWidth(t *testing.T) {
	testneed.Plain(t)
	const few = "twice(x) := [x, x]\n\nt5(x) := twice(twice(twice(twice(twice(x)))))\n\n"
	const doubled = "twice(x) := [x, x]\n\nt5(x) := twice(twice(twice(twice(twice(x)))))\n\nt20(x) := t5(t5(t5(t5(x))))\n\n"
	const x = "deny contains {\"rule\": \"acme.x\", \"msg\": \"m\"} if {\n"
	chained := x + "\tx0 := input.action.id\n"
	for i := range 25 {
		chained += strings.NewReplacer("A", "x"+string(rune('a'+i+1)), "B", "x"+string(rune('a'+i))).Replace("\tA := {\"l\": B, \"r\": B}\n")
	}
	chained = strings.Replace(chained, "x0 :=", "xa :=", 1)
	for name, body := range map[string]string{
		"functions":           doubled + x + "\tcount(t20(input.action.id)) == 1\n}\n",
		"locals":              chained + "\tcount(xz) == 1\n}\n",
		"in a comprehension":  doubled + x + "\tcount([y | y := t20(1)]) == 1\n}\n",
		"in an else":          doubled + "f(x) := 1 if x == 0 else := t20(x)\n\n" + x + "\tf(input.action.id) == 1\n}\n",
		"through a parameter": doubled + "f(x, y) := [x, t5(t5(t5(y)))]\n\n" + x + "\tcount(f(1, t5(2))) == 1\n}\n",
		"as a finding":        doubled + "deny contains {\"rule\": \"a\", \"msg\": \"b\", \"data\": t20(1)}\n",
	} {
		e := of("package rampart.rollout\n\n" + body)
		v := judge(t, e, ramp())
		require.Equal(t, rollout.HoldEffect, v.Effect, name)
		require.Equal(t, "policy.broken", v.Findings[0].Rule, "%s: %s", name, v.Findings[0].Message)
		require.Contains(t, v.Findings[0].Message, "within others many times over", name)
		require.True(t, strings.HasPrefix(v.Findings[0].Location, "policies/p1.rego:"), name)
		require.Equal(t, rollout.Allow, judge(t, e, reset()).Effect, name)
	}
	for name, body := range map[string]string{
		"a few":            few + x + "\tcount(t5(t5(1))) == 1\n}\n",
		"one inside other": "f(x) := {\"a\": x, \"b\": {\"c\": x}}\n\n" + x + "\tcount(f(f(f(f(1))))) == 1\n}\n",
		"data":             "f(x) := [x, x, x]\n\n" + x + "\tcount(f(f(input))) == 1\n}\n",
		"texts":            "f(x) := sprintf(\"%v %v %v\", [x, x, x])\n\n" + x + "\tf(f(f(f(f(f(f(f(f(f(f(f(1)))))))))))) == \"\"\n}\n",
	} {
		e := of("package rampart.rollout\n\n" + body)
		require.Empty(t, e.Problems(), name)
		require.Equal(t, rollout.Allow, judge(t, e, ramp()).Effect, name)
	}
}
