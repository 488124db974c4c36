package policy

import (
	"sync"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The packages that are asked.
const (
	packageSpec    = "rampart.spec"
	packageRollout = "rampart.rollout"
	packageDrift   = "rampart.drift"
	packageSunset  = "rampart.sunset"
	packageFacts   = "rampart.facts"
)

// ruleSet is one rule of a package: a set of objects, each a finding with the same effect.
type ruleSet struct {
	name   string
	effect rollout.Effect
}

// setAction is the rule of rampart.drift whose findings carry an answer.
const setAction = "action"

// contract lists the rules that are read of each package, the strictest first.
var contract = sync.OnceValue(func() map[string][]ruleSet {
	var (
		rollback = ruleSet{"rollback", rollout.RollbackEffect}
		deny     = ruleSet{"deny", rollout.HoldEffect}
		hold     = ruleSet{"hold", rollout.HoldEffect}
		approval = ruleSet{"require_approval", rollout.RequireApproval}
		warn     = ruleSet{"warn", rollout.Warn}
	)
	return map[string][]ruleSet{
		packageSpec:    {deny, warn},
		packageRollout: {rollback, deny, hold, approval, warn},
		packageDrift:   {{setAction, rollout.Allow}, warn},
		packageSunset:  {deny, hold, approval, warn},
	}
})

// asked names the package that is asked about an action; "" for a kind that no package knows, which is held.
func asked(kind rollout.ActionKind) string {
	switch kind {
	case rollout.CreateVersion, rollout.UpdateVersion, rollout.ScaleVersion, rollout.Restore, rollout.UpdateResources,
		rollout.StartGate, rollout.Ramp, rollout.Promote, rollout.ResetRamp, rollout.Rollback, rollout.Continue, rollout.Unroute:
		return packageRollout
	case rollout.ScaleDown, rollout.DeleteVersion, rollout.RemoveFiles, rollout.SetAsideKind,
		rollout.SignalWorkflows, rollout.MoveWorkflows, rollout.CancelWorkflows, rollout.TerminateWorkflows:
		return packageSunset
	case rollout.DriftAction:
		return packageDrift
	}
	return ""
}

// unstoppable reports whether policy may comment on an action and no more: it takes traffic back, or reports.
func (m *matter) unstoppable() bool { return m.lowers || m.kind == rollout.SetAsideKind }
