package policy

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// waits are what a person may wait for, on policies that call a builtin that never ends: what is given up goes on.
var waits = map[string]struct {
	ask  func(t *testing.T, e *Engine, d *Document) error
	want string
}{
	"expression": {func(t *testing.T, e *Engine, d *Document) error {
		_, err := e.Ask(t.Context(), d, ramp().ID, "data.rampart.rollout.loud(\"a\")")
		return err
	}, "the expression took longer than 200ms and could not be stopped"},
	"expression again": {func(t *testing.T, e *Engine, d *Document) error {
		_, err := e.Ask(t.Context(), d, ramp().ID, "data.rampart.rollout.loud(\"a\")")
		require.Error(t, err)
		_, err = e.Ask(t.Context(), d, ramp().ID, "1")
		return err
	}, "the expression could not be stopped before, and still runs"},
	"explanation": {func(t *testing.T, e *Engine, d *Document) error {
		x := &explainer{ctx: t.Context(), engine: e, pkg: parse.PackageRollout, environment: d.environment, input: d.about(&d.actions[0]), now: d.now, claimed: map[int]bool{}}
		require.Empty(t, x.book(e.books[0], false))
		return errors.New(x.incomplete)
	}, "looking at each step took longer than 800ms and could not be stopped"},
	"explanation after a verdict": {func(t *testing.T, e *Engine, d *Document) error {
		x, err := e.Explain(t.Context(), d, ramp().ID)
		require.NoError(t, err)
		return errors.New(x.Incomplete)
	}, "the policies of rampart.rollout took longer than 200ms and could not be stopped"},
	"masks": {func(t *testing.T, e *Engine, d *Document) error {
		_, err := e.Masks("***").Read(t.Context(), d, []string{"/input/action/to"})
		return err
	}, "the policies of rampart.rollout: took longer than 200ms and could not be stopped"},
}

const waiting = "RAMPART_WAITING_FOR"

func TestWaitingChild(t *testing.T) {
	name := os.Getenv(waiting)
	if name == "" {
		t.Skip("it is started by TestPeopleDoNotWaitForEver")
	}
	e := Compile(Config{Bounds: sandbox.Bounds{Timeout: 200 * time.Millisecond}, Modules: policytest.Modules(policytest.Rules(
		"deny contains {\"rule\": \"x\", \"msg\": \"m\", \"data\": [input.action.to]} if loud(input.action.kind) == \"RAMP\"\n\nloud(x) := upper(x)\n"))})
	require.Empty(t, e.Problems())
	endless(e)
	d, err := NewDocument(snapshot(t), proposal(ramp()))
	require.NoError(t, err)
	require.ErrorContains(t, waits[name].ask(t, e, d), waits[name].want)
}

// TestPeopleDoNotWaitForEver checks that each person who asks gets an answer, whatever the policies do. Each question
// has a process of its own, which ends with what was given up.
func TestPeopleDoNotWaitForEver(t *testing.T) {
	for name := range waits {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWaitingChild$", "-test.v")
			cmd.Env = append(os.Environ(), waiting+"="+name)
			text, err := cmd.CombinedOutput()
			require.NoError(t, err, "%.4000s", text)
			require.True(t, strings.Contains(string(text), "--- PASS"), "%.4000s", text)
		})
	}
}

// endless makes upper a builtin that never ends: of those that OPA has none is known any more.
func endless(e *Engine) {
	builtinIs(e, "upper", func(topdown.BuiltinContext, []*ast.Term, func(*ast.Term) error) error { select {} })
}

// builtinIs makes a builtin do something else.
func builtinIs(e *Engine, name string, f topdown.BuiltinFunc) {
	for _, b := range e.books {
		other := *b.all.builtins[sandbox.Prefix+name]
		other.Func = f
		b.all.builtins[sandbox.Prefix+name] = &other
	}
}
