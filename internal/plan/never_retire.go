package plan

import (
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// unroutes: a current version is left without traffic only when a person asked for just that, in the record. It then
// takes proof that the version is not needed, unless the person asked for it without proof.
func (n *never) unroutes() {
	current := n.s.Observation.Routing.Current
	asked := n.routing().Retire
	if asked == nil || asked.Current != v1alpha1.UnrouteProven && asked.Current != v1alpha1.UnrouteAnyway {
		n.add("%s would lose its new workflows, which was not asked for", current)
		return
	}
	v := n.s.Observation.Version(current)
	if v == nil || n.s.Spec == nil {
		n.add("%s would lose its new workflows, and nothing is known of it", current)
		return
	}
	if asked.Current == v1alpha1.UnrouteAnyway {
		return
	}
	elsewhere := v.QueuesKnown == rollout.Yes && len(v.Queues) > 0 &&
		!slices.ContainsFunc(v.Queues, func(q rollout.TaskQueue) bool { return q.Unversioned != rollout.Yes })
	rested := n.s.Now.After(asked.At.Add(max(n.s.Spec.Spec.Sunset.ScaledownDelay.Duration, leastQuiet)))
	if !elsewhere && !(rested && v.InUse.None()) {
		n.add("%s would lose its new workflows, and it is not known whether it is still needed", current)
	}
}

// ends: the record goes only when a person asked for that, and no version and no spec is left.
func (n *never) ends() {
	if !n.p.Remove {
		return
	}
	rec := n.routing()
	for _, wrong := range []struct {
		is  bool
		why string
	}{
		{rec.Retire == nil, "it was not asked for"},
		{len(rec.Versions) > 0, "it has versions"},
		{n.s.SpecPath != "" || len(n.s.Problems) > 0, "its spec is there"},
		{n.p.Lower != nil || n.p.Raise != nil || len(n.p.Deletions) > 0, "there is more to do"},
	} {
		if wrong.is {
			n.add("the record of %s would be removed: %s", n.s.Deployment, wrong.why)
		}
	}
}
