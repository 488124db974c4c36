package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// Each change of a policy that can't be stopped leaves a few evaluations behind at most; then the environment's
// policies are not evaluated, whatever they have become, until those end. Other environments are judged as ever.
func TestEditsOfAPolicyThatCannotBeStopped(t *testing.T) {
	shared, let := &Stuck{}, make(chan struct{})
	edited := func(i int, blocks bool) *Engine {
		e := Compile(Config{Stuck: shared, Bounds: sandbox.Bounds{Timeout: 50 * time.Millisecond}, Modules: policytest.Modules(fmt.Sprintf(
			"package rampart.rollout\n\n# edit %d\nwarn contains {\"rule\": \"acme.edit\", \"msg\": \"%d\"} if upper(input.action.kind) == \"RAMP\"\n", i, i))})
		require.Empty(t, e.Problems())
		if blocks {
			builtinIs(e, "upper", func(topdown.BuiltinContext, []*ast.Term, func(*ast.Term) error) error {
				<-let
				return nil
			})
		}
		return e
	}
	s, other := snapshot(t), snapshot(t)
	other.Environment.Name = "staging"
	for i := range maxStuck {
		f := edited(i, true).Judge(t.Context(), s, proposal(ramp())).Of(ramp().ID).Findings
		require.Equal(t, "the policies of rampart.rollout took longer than 50ms and could not be stopped", f[0].Message, "edit %d", i)
	}
	require.EqualValues(t, maxStuck, shared.all.Load())

	for i, blocks := range []bool{true, true, false} {
		e := edited(maxStuck+i, blocks)
		v := e.Judge(t.Context(), s, proposal(ramp(), reset()))
		require.Equal(t, rollout.HoldEffect, v.Of(ramp().ID).Effect)
		require.Equal(t, []rollout.Finding{{Package: parse.PackageRollout, Rule: "policy.timeout", Effect: rollout.HoldEffect, Location: "policies/p1.rego:4",
			Message: `the policies of environment "prod" are not evaluated: 3 evaluations of theirs and 3 in all could not be stopped, and still run; ` +
				`they are evaluated again when these end, or when the bot is started again`}}, v.Of(ramp().ID).Findings)
		require.Equal(t, rollout.Allow, v.Of(reset().ID).Effect, "what takes traffic back goes on")
		d, err := NewDocument(s, proposal(ramp()))
		require.NoError(t, err)
		x, err := e.Explain(t.Context(), d, ramp().ID)
		require.NoError(t, err)
		require.Contains(t, x.Incomplete, "are not evaluated")
		_, err = e.Ask(t.Context(), d, ramp().ID, "data.rampart.rollout.warn")
		require.ErrorContains(t, err, "was not begun")
		require.EqualValues(t, maxStuck, shared.all.Load(), "nothing was begun that might run on")
	}

	e := edited(9, false)
	require.Equal(t, map[string]rollout.Effect{"acme.edit": rollout.Warn}, rulesOf(e.Judge(t.Context(), other, proposal(ramp())).Of(ramp().ID)), "another environment")
	require.Empty(t, e.refused(Compile(Config{}).books[0], "staging"))

	close(let)
	require.Eventually(t, func() bool { return shared.all.Load() == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, map[string]rollout.Effect{"acme.edit": rollout.Warn}, rulesOf(e.Judge(t.Context(), s, proposal(ramp())).Of(ramp().ID)))
	shared.mu.Lock()
	defer shared.mu.Unlock()
	require.Empty(t, shared.running)
}

// What the bot's own policies leave behind is held against them, not against an environment's.
func TestThoseOfTheBotCannotBeStopped(t *testing.T) {
	shared := &Stuck{}
	e := Compile(Config{Stuck: shared, Modules: policytest.Modules("package rampart.rollout\n"),
		Floor: []Layer{{Name: "own", Modules: policytest.Modules("package rampart.rollout\n")}}})
	repository, floor := e.books[0], e.books[1]
	for range maxStuck {
		e.giveUp(guard{floor, parse.PackageRollout, "prod", time.Second})
	}
	require.Empty(t, e.refused(repository, "prod"))
	for _, environment := range []string{"prod", "staging"} {
		require.Contains(t, e.refused(floor, environment), "the bot's own policies are not evaluated: 3 evaluations of theirs and 3 in all")
	}
}
