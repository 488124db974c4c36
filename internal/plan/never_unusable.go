package plan

import (
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// onlyLowers: while the spec or its connection cannot be used, traffic goes down and nothing else happens but that what was written
// comes back.
func (n *never) onlyLowers() {
	why := n.unusable()
	if why == "" {
		return
	}
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{n.p.Raise != nil, "traffic would be raised"},
		{len(n.p.Gates) > 0, "a gate would start"},
		{len(n.p.Batches) > 0, "workflows would be evacuated"},
		{len(n.p.Deletions) > 0, "a version would be deleted"},
		{n.p.Remove, "the record would be removed"},
	} {
		if wrong.is {
			n.add("%s although %s", wrong.what, why)
		}
	}
	for _, w := range n.p.Versions {
		was := n.recorded(w.BuildID)
		kept := w.Op == rollout.RestoreFiles || w.Op == rollout.EditVersion && w.Guard == v1alpha1.GuardOn && (was == nil || isZero(was.Replicas) || !isZero(w.Replicas))
		if !kept || len(w.Resources) > 0 {
			n.add("the files of %s would be changed (%s) although %s", w.BuildID, w.Op, why)
		}
	}
}

// unusable says why the spec or its connection cannot be used, "" if they can.
func (n *never) unusable() string {
	switch why := n.broken(); {
	case why != "":
		return why
	case n.s.Connection == nil && (!n.away() || n.routing().Connection == nil && n.s.LastConnection == nil):
		return "its connection is gone from Git"
	}
	return ""
}

// broken says why the spec itself cannot be used, "" if it can.
func (n *never) broken() string {
	switch {
	case n.contested():
		return "another environment claims it, too"
	case len(n.s.Problems) > 0:
		return "the spec is not valid"
	case n.s.Spec == nil:
		return "the spec is gone from Git"
	case n.s.Spec.Spec.Rollout.Strategy == "", n.s.Spec.Spec.Rollout.Strategy == v1alpha1.Progressive && len(n.s.Spec.Spec.Rollout.Steps) == 0:
		return "the spec has no strategy"
	case n.away() && n.routing().Retire == nil && n.s.Spec.Metadata.Annotations[rollout.AnnotationRetire] != "true":
		return "the spec asks for another Temporal namespace"
	}
	return ""
}

// away reports whether there are versions in another Temporal namespace than the spec asks for.
func (n *never) away() bool {
	rec := n.routing()
	return n.s.Spec != nil && len(rec.Versions) > 0 && rec.TemporalNamespace != "" && rec.TemporalNamespace != n.s.Spec.Spec.WorkerOptions.TemporalNamespace
}

// stays: as long as there are versions in another Temporal namespace than the spec asks for, they stay there, by the connection by which
// they are there.
func (n *never) stays() {
	if !n.away() {
		return
	}
	rec, last := n.routing(), n.routing().Connection
	for _, w := range n.p.Versions {
		another := last != nil && (n.p.Connection == nil || n.p.Connection.Metadata.Name != last.Name)
		if w.Op == rollout.RenderVersion || w.Op == rollout.ReconnectVersion && another {
			n.add("the files of %s would be changed (%s) to those of another Temporal namespace or connection", w.BuildID, w.Op)
		}
	}
	next := n.p.Record
	if next == nil {
		return
	}
	if next.TemporalNamespace != rec.TemporalNamespace || last != nil && (next.Connection == nil || next.Connection.Name != last.Name) {
		n.add("it would be forgotten where the versions of %s are", n.s.Deployment)
	}
}
