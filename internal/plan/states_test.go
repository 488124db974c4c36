package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/statetable"
)

// TestStatesAreInTheTable: the table of docs/cd.md has a row for each state that a status can be in, and no other. Each
// reason is in it.
func TestStatesAreInTheTable(t *testing.T) {
	rows := map[string]statetable.Row{}
	reasons := map[rollout.Reason]bool{}
	for _, row := range statetable.Rows(t) {
		rows[row.State], reasons[row.Reason] = row, true
	}
	told := map[string]bool{}
	tell := func(t *testing.T, judge func(rollout.Proposal) rollout.Verdicts, changes ...change) {
		t.Helper()
		plan := decide(t, of(changes...), judge)
		if plan.Status == nil {
			return
		}
		state := statetable.StateOf(plan.Status)
		require.Contains(t, rows, state, "give it a row in docs/cd.md")
		want := rows[state].Status(stamp(noon)).Conditions
		for i := range want {
			want[i].Message = plan.Status.Conditions[i].Message
		}
		require.Equal(t, want, plan.Status.Conditions)
		told[state] = true
	}
	groups := [][]rowCase{inputRows(), retireRows(), retreatRows(), lostRows(), raiseRows(), resourceRows(), besideRows()}
	for _, group := range groups {
		for _, c := range group {
			t.Run(c.row+"/"+c.name, func(t *testing.T) {
				tell(t, allowed, c.given)
				tell(t, allowed, c.given, func(g *given) {
					g.Failure = &rollout.Problem{Reason: rollout.PlanExecutionFailed, Message: "the push was refused"}
				})
				for _, e := range []rollout.Effect{rollout.HoldEffect, rollout.RequireApproval, rollout.RollbackEffect} {
					tell(t, onAll(effect(e)), c.given)
				}
				for _, answer := range []rollout.DriftAnswer{rollout.DriftAdopt, rollout.DriftHold, rollout.DriftRevert} {
					tell(t, onAll(rollout.Verdict{Effect: rollout.Allow, Drift: answer}), c.given)
				}
			})
		}
	}
	// What a read ends with is told as it is.
	for _, reason := range []rollout.Reason{rollout.AuthSecretInvalid, rollout.TemporalClientCreationFailed} {
		tell(t, allowed, func(g *given) {
			g.Observation = rollout.Observation{Problem: &rollout.Problem{Reason: reason, Message: "why"}}
		})
	}
	for _, reason := range []rollout.Reason{rollout.InvalidConfiguration, rollout.TemporalConnectionNotFound} {
		tell(t, allowed, func(g *given) { g.Problems = []rollout.Problem{{Reason: reason, Message: "why"}} })
	}
	for state := range rows {
		require.True(t, told[state], "nothing is ever in the state %q", state)
	}

	file, err := parser.ParseFile(token.NewFileSet(), "../rollout/reason.go", nil, 0)
	require.NoError(t, err)
	for _, d := range file.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			constant, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			reason, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			require.True(t, reasons[rollout.Reason(reason)], "no status has the reason %s", reason)
			return false
		})
	}
}

// onAll gives every action the same verdict.
func onAll(verdict rollout.Verdict) func(rollout.Proposal) rollout.Verdicts {
	return func(p rollout.Proposal) rollout.Verdicts {
		v := allowed(p)
		for _, a := range p.Actions {
			v.Actions[a.ID] = verdict
		}
		return v
	}
}

// requireTabled fails for a status in a state that the table of docs/cd.md lacks.
func requireTabled(t require.TestingT, status *v1alpha1.WorkerDeploymentStatus) {
	if status == nil {
		return
	}
	state := statetable.StateOf(status)
	known := func(row statetable.Row) bool { return row.State == state }
	require.True(t, slices.ContainsFunc(statetable.Rows(t), known), "give %q a row in docs/cd.md", state)
}
