package render

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// stages are the states of a version in the order in which it goes through them.
var stages = []rollout.VersionStatus{rollout.StatusNotRegistered, rollout.StatusCreated, rollout.StatusInactive,
	rollout.StatusRamping, rollout.StatusCurrent, rollout.StatusDraining, rollout.StatusDrained, rollout.StatusGone}

// versionsMoved reports whether a version came to a later stage than the status before has it. It is said once for each
// stage, so that a state which comes and goes makes no commit of each time. One whose state was not known is told of
// again once it drains, or has drained. So is one that was left behind, which it was not before.
func versionsMoved(before, now *v1alpha1.WorkerDeploymentStatus) bool {
	was := statesOf(before)
	for id, is := range statesOf(now) {
		to := slices.Index(stages, is)
		from := slices.Index(stages, was[id])
		if was[id] == rollout.StatusUnknown {
			from = slices.Index(stages, rollout.StatusCurrent)
		}
		if _, shown := was[id]; shown && to > from {
			return true
		}
	}
	return len(newlyLeft(before, now)) > 0
}

// newlyLeft are the versions that are left behind, and were not before.
func newlyLeft(before, now *v1alpha1.WorkerDeploymentStatus) []v1alpha1.LeftBehind {
	return slices.DeleteFunc(slices.Clone(now.LeftBehind), func(l v1alpha1.LeftBehind) bool {
		return slices.ContainsFunc(before.LeftBehind, func(was v1alpha1.LeftBehind) bool {
			return was.BuildID == l.BuildID
		})
	})
}

// StatesTold is what a status tells of states alone, where all that is new in it is that versions came to a later
// stage. An example is "v1 is draining", in the order of their build IDs. Nil: there is more to it, or less.
func StatesTold(before, now *v1alpha1.WorkerDeploymentStatus) []string {
	if before == nil || now == nil || TransitionKey(before) != TransitionKey(now) || !versionsMoved(before, now) {
		return nil
	}
	said := map[rollout.VersionStatus]string{rollout.StatusInactive: "registered",
		rollout.StatusDraining: "is draining", rollout.StatusDrained: "has drained",
		rollout.StatusGone: "is gone from Temporal", rollout.StatusUnknown: "is not known any more"}
	was, is := statesOf(before), statesOf(now)
	var out []string
	for _, id := range slices.Sorted(maps.Keys(is)) {
		if was[id] != is[id] {
			out = append(out, id+" "+cmp.Or(said[is[id]], "is "+strings.ToLower(string(is[id]))))
		}
	}
	for _, l := range newlyLeft(before, now) {
		out = append(out, l.BuildID+" still polls")
	}
	return out
}

// versionsDiffer reports whether the state of any version is another one: then the status is written with what else is.
func versionsDiffer(before, now *v1alpha1.WorkerDeploymentStatus) bool {
	was, is := statesOf(before), statesOf(now)
	if len(before.LeftBehind) != len(now.LeftBehind) || len(newlyLeft(before, now)) > 0 {
		return true
	}
	return !maps.Equal(was, is)
}

// statesOf are the states of all versions in a status.
func statesOf(status *v1alpha1.WorkerDeploymentStatus) map[string]rollout.VersionStatus {
	out := map[string]rollout.VersionStatus{}
	for _, v := range status.Versions() {
		out[v.BuildID] = rollout.VersionStatus(v.Status)
	}
	return out
}
