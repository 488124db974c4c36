package plan

import (
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Objects made from WorkerResourceTemplates come with a version, follow their template and the version's state, and go
// when it is scaled down: a scaler left behind would scale it up again. They are no row of their own: what becomes of
// them is decided beside what the rows give.

// proposeResources gives each version the objects that its templates say. What is read while the spec cannot be used,
// or of versions of somebody else, changes nothing.
func (v *View) proposeResources(p *rollout.Proposal) {
	if v.unusable != nil {
		return
	}
	for i := range v.rec.Versions {
		r := &v.rec.Versions[i]
		if v.foreign() && !v.isTarget(r.BuildID) || len(v.manifestDrift(r)) > 0 || restores(p.Actions, r.BuildID) {
			continue
		}
		writes := v.resourceWrites(r)
		if len(writes) == 0 {
			continue
		}
		p.Actions = append(p.Actions, rollout.Action{Kind: rollout.UpdateResources, BuildID: r.BuildID,
			Row: "resources", Resources: writes, Reason: fmt.Sprintf("the objects of %s follow their templates: %s",
				r.BuildID, rollout.SayResources(writes))})
	}
}

// restores reports whether an action, which nothing holds, brings the version and its objects back.
func restores(actions []rollout.Action, buildID string) bool {
	return slices.ContainsFunc(actions, func(a rollout.Action) bool {
		return a.Kind == rollout.Restore && a.BuildID == buildID
	})
}

func (v *View) isTarget(buildID string) bool { return v.target != nil && v.target.BuildID == buildID }

// resourceWrites are the changes that a recorded version's objects need as it is.
func (v *View) resourceWrites(r *v1alpha1.RecordedVersion) []rollout.ResourceWrite {
	of := v.resourceSubject(r)
	if retired(r) {
		of.Pods = rollout.PodsGone
	}
	return v.s.ResourceWrites(of)
}

// resourceSubject is a recorded version as templates see it, when it is not scaled down.
func (v *View) resourceSubject(r *v1alpha1.RecordedVersion) rollout.ResourceSubject {
	of := rollout.ResourceSubject{Have: r.Resources, States: v.states(r.BuildID), Pods: rollout.PodsWanted,
		Replicas: r.Replicas}
	if v.spec != nil && isZero(v.spec.Spec.Replicas) && (v.followsSpec(r.BuildID) || isZero(r.Replicas)) {
		of.Pods = rollout.PodsUnscaled
	}
	return of
}

// states are what a version is; none where that is not known.
func (v *View) states(buildID string) []v1alpha1.VersionState {
	var out []v1alpha1.VersionState
	st := v.status(buildID)
	if st == rollout.StatusUnknown {
		return nil
	}
	if v.isTarget(buildID) {
		out = append(out, v1alpha1.StateTarget)
	}
	if st == rollout.StatusCreated { // to a template it is one without workers
		st = rollout.StatusNotRegistered
	}
	return append(out, v1alpha1.VersionState(st))
}

// followsSpec reports whether a version's replicas are those of the spec: the others keep what they have.
func (v *View) followsSpec(buildID string) bool {
	st := v.status(buildID)
	return v.isTarget(buildID) || st == rollout.StatusCurrent || st == rollout.StatusRamping
}

// newResources are the objects that the target is created with.
func (v *View) newResources() []rollout.ResourceWrite {
	return v.s.ResourceWrites(v.resourceSubject(&v1alpha1.RecordedVersion{BuildID: v.target.BuildID}))
}

// replicasWith are replicas as a manifest has them beside objects. An object that scales the version owns the number,
// so that Git and it do not fight. What is asked to be 0 is 0.
func replicasWith(n *int32, have []v1alpha1.RecordedResource) *int32 {
	if rollout.Scaled(have) {
		return nil
	}
	return n
}

// wantedReplicas is the number that a version's manifest has to have. An object counts once it is recorded.
func (v *View) wantedReplicas(r *v1alpha1.RecordedVersion) *int32 {
	if v.followsSpec(r.BuildID) {
		return replicasWith(rollout.ReplicasFor(v.spec.Spec.Replicas, r.Replicas), r.Resources)
	}
	if retired(r) {
		return r.Replicas
	}
	return replicasWith(r.Replicas, r.Resources)
}

// unready says why the target is not created yet. A version before it has an object whose template cannot be used now,
// and a version without its scaler could not bear the traffic.
func (v *View) unready() *rollout.Problem {
	for i := range v.rec.Versions {
		for _, have := range v.rec.Versions[i].Resources {
			at := slices.IndexFunc(v.s.Resources, func(t rollout.ResourceTemplate) bool {
				return t.Name == have.Template
			})
			if at < 0 && v.s.ResourcesProblem != nil {
				return v.s.ResourcesProblem
			}
			if at >= 0 && v.s.Resources[at].Problem != nil {
				return v.s.Resources[at].Problem
			}
		}
	}
	return nil
}

func resourcesUnready(v *View) (outcome, bool) {
	if v.recorded(v.target.BuildID) != nil {
		return outcome{}, false
	}
	p := v.unready()
	if p == nil {
		return outcome{}, false
	}
	return stalled(p.Reason, "%s is not created without what the versions before it have: %s", v.target.BuildID,
		p.Message), true
}

// nextResources writes down what an action does to a version's objects. One that is scaled down loses them anyway.
func (r *resolver) nextResources(next *v1alpha1.RoutingSpec, a rollout.Action,
	write func(string, rollout.WriteOp) *rollout.VersionWrite) {
	ver := rollout.FindVersion(next.Versions, a.BuildID)
	scaledDown := slices.ContainsFunc(r.taken, func(o rollout.Action) bool {
		return o.Kind == rollout.ScaleDown && o.BuildID == a.BuildID
	})
	if len(a.Resources) == 0 || ver == nil || a.Kind == rollout.UpdateResources && scaledDown {
		return
	}
	w := write(a.BuildID, rollout.WriteResources)
	if w.Op == rollout.WriteResources {
		w.Replicas, w.Guard = ver.Replicas, ver.Guard
	}
	w.Resources = a.Resources
	ver.Resources = rollout.WithResources(ver.Resources, a.Resources)
	for _, x := range a.Resources {
		if x.Removes() {
			delete(ver.Files, rollout.ResourceFile(x.Template))
		}
	}
}

// resources: no object comes from a template that is not there or cannot be used, and none goes while that is not
// known.
func (n *never) resources() {
	for _, w := range n.p.Versions {
		for _, x := range w.Resources {
			at := slices.IndexFunc(n.s.Resources, func(t rollout.ResourceTemplate) bool { return t.Name == x.Template })
			stays := w.Guard == v1alpha1.GuardOn
			switch {
			case x.Removes() && at < 0 && stays && n.s.ResourcesProblem != nil,
				x.Removes() && at >= 0 && stays && n.s.Resources[at].Problem != nil:
				n.add("version %s would lose what %s made, whose template could not be read", w.BuildID, x.Template)
			case x.Removes():
			case at < 0 || n.s.Resources[at].Problem != nil || string(n.s.Resources[at].Object) != string(x.Object):
				n.add("version %s would get an object that no template of %s says", w.BuildID, x.Template)
			}
		}
	}
}
