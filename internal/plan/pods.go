package plan

import (
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// podsRest is how long reasons stay in a status that pods have no more: pods that fail now and then make no commit each
// time.
const podsRest = time.Hour

// sayPods says how the target's pods are in the cluster, "" where there is nothing to say or that is not known.
func (v *View) sayPods() string {
	if pods := v.s.Cluster.Version(v.target.BuildID); pods != nil {
		return pods.Text()
	}
	return ""
}

// shownPods are the reasons for which the target's pods do not run, while its workers are waited for. A reason that is
// new is shown at once, with those that were shown before; one that is gone stays for podsRest. So each reason makes
// one commit, or two in an hour, however often it comes and goes.
func (r *resolver) shownPods() *v1alpha1.PodsStatus {
	if r.s.Cluster == nil || r.target == nil || r.state.Reason != rollout.WaitingForPollers {
		return nil
	}
	was := r.podsBefore()
	pods := r.s.Cluster.Version(r.target.BuildID)
	if pods == nil {
		return was
	}
	now := pods.Reasons()
	fresh := was == nil || slices.ContainsFunc(now, func(reason string) bool {
		return !slices.Contains(was.Reasons, reason)
	})
	switch {
	case len(now) == 0: // pods that start say nothing yet
		return was
	case was != nil && !fresh && (len(now) == len(was.Reasons) || r.now.Before(was.Since.Add(podsRest))):
		return was
	case was != nil && fresh:
		now = slices.Concat(now, was.Reasons)
		slices.Sort(now)
		now = slices.Compact(now)
	}
	return &v1alpha1.PodsStatus{Reasons: now, Since: v1alpha1.NewTime(r.now)}
}

// podsBefore is what the status in Git says of the pods of the same target, while its workers are waited for; nil for
// nothing.
func (r *resolver) podsBefore() *v1alpha1.PodsStatus {
	was := r.s.Record.LastStatus()
	if was == nil || was.TargetVersion == nil || was.TargetVersion.BuildID != r.target.BuildID {
		return nil
	}
	return was.Pods
}
