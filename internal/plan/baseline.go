package plan

import (
	"cmp"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A workflow that had reported problems before a version got any traffic is not that version's fault. So these
// workflows are counted before the first raise: the baseline. An unknown baseline is not 0.

// stuckBefore is how many workflows had reported problems before a version got traffic; nil: not known.
func (v *View) stuckBefore(buildID string) *int64 {
	was := v.rec.Target
	if was == nil || was.BuildID != buildID {
		return nil
	}
	if t := v.target; t != nil && t.BuildID == buildID && !v.goesOn() {
		return nil
	}
	return was.StuckBefore
}

// awaitsFirst reports whether the bot may be the one that gives the target its first traffic, before which the problems
// are counted. Under Manual it is only where an edit of routing.yaml asks for that.
func (v *View) awaitsFirst() bool {
	if v.targetShare() > 0 { // also where it is current: "reset-ramp" comes before and takes back what others have
		return false
	}
	return v.spec.Spec.Rollout.Strategy != v1alpha1.Manual || v.edit == editOpen
}

// baseline waits for the count of workflows with reported problems, by which the target is judged once it has traffic.
// A first version, which takes traffic from no other worker, is never judged: it does not wait.
func baseline(v *View) (outcome, bool) {
	problems := v.obs.Stuck.Problems
	switch {
	case !v.awaitsFirst():
	case v.actual.Current == "" && !v.actual.HasRamp && v.unversioned(v.target.BuildID).answer == rollout.No:
	case problems.Known || problems.Unsupported || v.stuckBefore(v.target.BuildID) != nil:
	case problems.Reason == "": // the version came after the question was put together: the next cycle asks
		return say(rollout.WaitingForPollers, "workers of %s have to start", v.target.BuildID), true
	default:
		return say(rollout.StaleFacts, "how many workflows are stuck before %s gets traffic is not known: %s",
			v.target.BuildID, reasonOf(problems)), true
	}
	return outcome{}, false
}

func reasonOf(n rollout.Count) string { return cmp.Or(n.Reason, "they were not asked for") }
