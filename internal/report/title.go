package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

func title(a rollout.Action) string {
	build := unversioned(a.BuildID)
	switch a.Kind {
	case rollout.CreateVersion:
		return "create version " + build
	case rollout.UpdateVersion:
		return fmt.Sprintf("update %s in place (%s)", build, strings.ToLower(string(a.Update)))
	case rollout.ScaleVersion:
		return "scale " + build + replicas(a.Replicas)
	case rollout.Restore:
		return "restore " + build + replicas(a.Replicas)
	case rollout.UpdateResources:
		return "update objects of " + build + ": " + rollout.SayResources(a.Resources)
	case rollout.StartGate:
		if a.Gate == nil {
			return "start the gate on " + build
		}
		return fmt.Sprintf("start gate %s on %s", a.Gate.WorkflowType, build)
	case rollout.Ramp:
		out := fmt.Sprintf("ramp %s from %s to %s", build, rollout.Percent(a.From), rollout.Percent(a.To))
		if a.Step > 0 {
			out += fmt.Sprintf(" (step %d of %d)", a.Step, a.Steps)
		}
		return out
	case rollout.Promote:
		return "promote " + build
	case rollout.ResetRamp:
		return "take traffic back from " + build
	case rollout.Rollback:
		return "roll back to " + build
	case rollout.Continue:
		return fmt.Sprintf("leave %s with %s", build, rollout.Percent(a.From))
	case rollout.DriftAction:
		if a.Drift == nil {
			return "drift"
		}
		if a.Drift.Path != "" {
			return "drift of " + a.Drift.Path
		}
		return fmt.Sprintf("drift of the %s: %s recorded, %s found", strings.ToLower(string(a.Drift.Kind)),
			a.Drift.Recorded, a.Drift.Actual)
	case rollout.Unroute:
		return "take new workflows from " + build
	case rollout.ScaleDown:
		return "scale down " + build
	case rollout.DeleteVersion:
		return "delete version " + build + " in Temporal"
	case rollout.RemoveFiles:
		return "remove the files of " + build
	case rollout.SetAsideKind:
		return "set aside " + build
	case rollout.SignalWorkflows, rollout.MoveWorkflows, rollout.CancelWorkflows, rollout.TerminateWorkflows:
		return evacuation(a, build)
	}
	return string(a.Kind) + " " + build
}

func evacuation(a rollout.Action, build string) string {
	what := map[rollout.ActionKind]string{rollout.SignalWorkflows: "signal", rollout.MoveWorkflows: "move",
		rollout.CancelWorkflows: "cancel", rollout.TerminateWorkflows: "terminate"}[a.Kind]
	if a.Evacuation == nil {
		return fmt.Sprintf("%s workflows on %s", what, build)
	}
	out := fmt.Sprintf("%s %d workflows on %s", what, a.Evacuation.Open, build)
	if a.Evacuation.Target != "" {
		out += " to " + a.Evacuation.Target
	}
	return out
}

func replicas(n *int32) string {
	if n == nil {
		return ", replicas left to its autoscaler"
	}
	return fmt.Sprintf(" to %d replicas", *n)
}

// text of a routing, such as "current v1, ramping v2 at 5%".
func (r Routing) text() string {
	out := "current " + cmp.Or(r.Current, "none")
	if r.Ramping != nil && r.Percentage != nil {
		out += fmt.Sprintf(", ramping %s at %s", unversioned(*r.Ramping), rollout.Percent(*r.Percentage))
	}
	return out
}
