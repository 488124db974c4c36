package plan

import (
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What applies Git may leave workers behind: ArgoCD that does not sync, or Flux that is suspended. They poll on
// though their version is at 0 replicas in Git, or has no files any more. The status says so, so that a person looks
// at the tool.

// leftAfter is how long at most the workers of a version may poll after Git scaled it down: then they are left
// behind.
const leftAfter = time.Hour

const maxRemoved = 20

// leftFrom is from when on a poll shows that nothing applied the scale-down. A short deleteDelay leaves less time
// than leftAfter.
func (v *View) leftFrom(r *v1alpha1.RecordedVersion) time.Time {
	return r.RetiredAt.Add(min(leftAfter, v.sunset().DeleteDelay.Duration))
}

// nextLook is when a version that is scaled down is looked at next: to see whether it is left behind, or to delete
// it.
func (v *View) nextLook(r *v1alpha1.RecordedVersion, deletion time.Time) time.Time {
	if left := v.leftFrom(r); v.now.Before(left) && left.Before(deletion) {
		return left
	}
	return deletion
}

// mayBeLeft are the versions whose workers should have stopped by now, and which Temporal knows.
func (v *View) mayBeLeft(versions []v1alpha1.RecordedVersion, removed []v1alpha1.RemovedVersion) []v1alpha1.LeftBehind {
	if v.spec == nil {
		return nil
	}
	var out []v1alpha1.LeftBehind
	for i := range versions {
		r := &versions[i]
		if retired(r) && !r.RetiredAt.IsZero() && v.obs.Version(r.BuildID) != nil && v.now.After(v.leftFrom(r)) {
			out = append(out, v1alpha1.LeftBehind{BuildID: r.BuildID, Deployment: r.Deployment,
				ScaledDownAt: r.RetiredAt})
		}
	}
	for _, x := range removed {
		if rollout.FindVersion(versions, x.BuildID) == nil && v.obs.Version(x.BuildID) != nil &&
			v.actual.Share(x.BuildID) == 0 {
			out = append(out, v1alpha1.LeftBehind{BuildID: x.BuildID, Deployment: x.Deployment, RemovedAt: x.At})
		}
	}
	return out
}

// shownLeft are the versions that poll though they should not. Of one whose pollers are not known the status keeps
// what it said.
func (r *resolver) shownLeft(next *v1alpha1.RoutingSpec) []v1alpha1.LeftBehind {
	var before []v1alpha1.LeftBehind
	if was := r.s.Record.LastStatus(); was != nil {
		before = was.LeftBehind
	}
	if !r.readable() {
		return before
	}
	return slices.DeleteFunc(r.mayBeLeft(next.Versions, next.Removed), func(l v1alpha1.LeftBehind) bool {
		from := l.RemovedAt.Time
		if ver := rollout.FindVersion(next.Versions, l.BuildID); ver != nil {
			from = r.leftFrom(ver)
		}
		switch r.polledAfter(l.BuildID, from) {
		case rollout.Yes:
			return false
		case rollout.No:
			return true
		}
		return !slices.ContainsFunc(before, func(b v1alpha1.LeftBehind) bool { return b.BuildID == l.BuildID })
	})
}

// polledAfter answers whether a worker of a version that Temporal lists polls now, and did so after a time.
func (v *View) polledAfter(buildID string, from time.Time) rollout.Answer {
	o := v.obs.Version(buildID)
	if o.QueuesKnown != rollout.Yes {
		return ""
	}
	known := rollout.No
	for _, q := range o.Queues {
		switch {
		case !q.Pollers.Known:
			known = ""
		case q.Pollers.Fresh(v.now, v.s.Limits.PollerMaxAge) && q.Pollers.LastAccess.After(from):
			return rollout.Yes
		}
	}
	return known
}
