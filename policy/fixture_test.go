package policy

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// The world of these tests.
var (
	now      = policytest.Now
	spec     = policytest.Spec
	ago      = policytest.Ago
	stamp    = policytest.Stamp
	snapshot = policytest.Snapshot
	ramp     = policytest.Ramp
	reset    = policytest.Reset
	proposal = policytest.Proposal
)

// of compiles the default library with modules on top.
func of(sources ...string) *Engine { return Compile(Config{Modules: policytest.Modules(sources...)}) }

// judge gives the verdict on one action.
func judge(t testing.TB, e *Engine, a rollout.Action) rollout.Verdict {
	return e.Judge(t.Context(), snapshot(t), proposal(a)).Of(a.ID)
}

// inputOf is what policies see when they are asked about an action.
func inputOf(s rollout.Snapshot, p rollout.Proposal, a rollout.Action) (ast.Value, error) {
	d, err := NewDocument(s, p)
	if err != nil {
		return nil, err
	}
	m := matterOf(&a)
	return d.about(&m), nil
}
