package parse

import (
	"strings"
	"sync"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The packages that are asked.
const (
	PackageSpec    = "rampart.spec"
	PackageRollout = "rampart.rollout"
	PackageDrift   = "rampart.drift"
	PackageSunset  = "rampart.sunset"
	PackageFacts   = "rampart.facts"
)

// RuleSet is one rule of a package: a set of objects, each a finding with the same effect.
type RuleSet struct {
	Name   string
	Effect rollout.Effect
}

// SetAction is the rule of rampart.drift whose findings carry an answer.
const SetAction = "action"

// Contract lists the rules that are read of each package, the strictest first.
func Contract() map[string][]RuleSet { return ruleSets() }

var ruleSets = sync.OnceValue(func() map[string][]RuleSet {
	var (
		rollback = RuleSet{"rollback", rollout.RollbackEffect}
		deny     = RuleSet{"deny", rollout.HoldEffect}
		hold     = RuleSet{"hold", rollout.HoldEffect}
		approval = RuleSet{"require_approval", rollout.RequireApproval}
		warn     = RuleSet{"warn", rollout.Warn}
	)
	return map[string][]RuleSet{
		PackageSpec:    {deny, warn},
		PackageRollout: {rollback, deny, hold, approval, warn},
		PackageDrift:   {{SetAction, rollout.Allow}, warn},
		PackageSunset:  {deny, hold, approval, warn},
	}
})

// Asked names the package that is asked about an action; "" for a kind that no package knows, which is held.
func Asked(kind rollout.ActionKind) string {
	switch kind {
	case rollout.CreateVersion, rollout.UpdateVersion, rollout.ScaleVersion, rollout.Restore, rollout.UpdateResources,
		rollout.StartGate, rollout.Ramp, rollout.Promote, rollout.ResetRamp, rollout.Rollback, rollout.Continue,
		rollout.Unroute:
		return PackageRollout
	case rollout.ScaleDown, rollout.DeleteVersion, rollout.RemoveFiles, rollout.SetAsideKind,
		rollout.SignalWorkflows, rollout.MoveWorkflows, rollout.CancelWorkflows, rollout.TerminateWorkflows:
		return PackageSunset
	case rollout.DriftAction:
		return PackageDrift
	}
	return ""
}

// AsksVerdicts reports whether a module of the library is one of those that are asked, and no helper, by its folder.
func AsksVerdicts(path string) bool {
	for name := range Contract() {
		if strings.Contains(path, strings.Replace(name, ".", "/", 1)+"/") {
			return true
		}
	}
	return false
}
