package plan

import (
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// onlyLowers: while the record, the spec or its connection cannot be used, traffic only goes down. Beside that, what
// was written comes back, and nothing else happens.
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
		kept := w.Op == rollout.RestoreFiles || w.Op == rollout.EditVersion && w.Guard == v1alpha1.GuardOn &&
			(was == nil || isZero(was.Replicas) || !isZero(w.Replicas))
		if !kept || len(w.Resources) > 0 {
			n.add("the files of %s would be changed (%s) although %s", w.BuildID, w.Op, why)
		}
	}
}

// unusable says why the record, the spec or its connection cannot be used, "" if they can.
func (n *never) unusable() string {
	switch why := n.broken(); {
	case n.s.Record.RoutingProblem != nil:
		return "its record cannot be read"
	case n.routing().MinReader > v1alpha1.RecordFormat:
		return "its record wants a newer release"
	case why != "":
		return why
	case n.s.Connection == nil && (!n.away() || n.routing().Connection == nil && n.s.LastConnection == nil):
		return "its connection is gone from Git"
	case n.s.EnvironmentProblem != nil:
		return "its environment cannot be used"
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
	case n.s.Spec.Spec.Rollout.Strategy == "", n.s.Spec.Spec.Rollout.Strategy == v1alpha1.Progressive &&
		len(n.s.Spec.Spec.Rollout.Steps) == 0:
		return "the spec has no strategy"
	case n.away() && !n.retires():
		return "the spec asks for another Temporal namespace"
	case n.leadsAway(n.s.Connection) && !n.retires():
		return "its connection leads to another server"
	}
	return ""
}

// away reports whether there are versions in another Temporal namespace than the spec asks for.
func (n *never) away() bool {
	rec := n.routing()
	return n.s.Spec != nil && len(rec.Versions) > 0 && rec.TemporalNamespace != "" &&
		rec.TemporalNamespace != n.s.Spec.Spec.WorkerOptions.TemporalNamespace
}

func (n *never) retires() bool {
	return n.routing().Retire != nil || n.s.Spec.Metadata.Annotations[rollout.AnnotationRetire] == "true"
}

// leadsAway reports whether a connection may lead to another server. Its address is then not the one that the record
// has for its versions, and it is not proven that the same Temporal namespace is there.
func (n *never) leadsAway(c *v1alpha1.Connection) bool {
	rec := n.routing()
	if c == nil || rec.Connection == nil || len(rec.Versions) == 0 ||
		strings.EqualFold(c.Spec.HostPort, rec.Connection.Spec.HostPort) {
		return false
	}
	id, there := rec.TemporalNamespaceID, n.s.NamespaceThere
	if id == "" {
		id = n.s.Observation.NamespaceID
	}
	return id == "" || there == nil || there.ID != id || there.TemporalNamespace != rec.TemporalNamespace ||
		!strings.EqualFold(there.HostPort, c.Spec.HostPort)
}

// staysOnServer: no version is written for, and nothing is changed at, another server than the versions are on.
func (n *never) staysOnServer() {
	if n.leadsAway(n.p.Connection) {
		for _, w := range n.p.Versions {
			if w.Op == rollout.RenderVersion || w.Op == rollout.ReconnectVersion {
				n.add("the files of %s would be changed (%s) to those of another server", w.BuildID, w.Op)
			}
		}
		if n.p.Lower != nil || n.p.Raise != nil || len(n.p.Gates)+len(n.p.Deletions)+len(n.p.Batches) > 0 {
			n.add("another server would be changed than the versions of %s are on", n.s.Deployment)
		}
	}
	if next := n.p.Record; next != nil && next.Connection != nil &&
		n.leadsAway(&v1alpha1.Connection{Spec: next.Connection.Spec}) {
		n.add("it would be forgotten on which server the versions of %s are", n.s.Deployment)
	}
}

// stays: versions in another Temporal namespace than the spec asks for stay there. The connection stays the one by
// which they are there.
func (n *never) stays() {
	if !n.away() {
		return
	}
	rec, last := n.routing(), n.routing().Connection
	for _, w := range n.p.Versions {
		another := last != nil && (n.p.Connection == nil || n.p.Connection.Ref() != last.Ref())
		if w.Op == rollout.RenderVersion || w.Op == rollout.ReconnectVersion && another {
			n.add("the files of %s would be changed (%s) to those of another Temporal namespace or connection",
				w.BuildID, w.Op)
		}
	}
	next := n.p.Record
	if next == nil {
		return
	}
	if next.TemporalNamespace != rec.TemporalNamespace ||
		last != nil && (next.Connection == nil || next.Connection.Ref() != last.Ref()) {
		n.add("it would be forgotten where the versions of %s are", n.s.Deployment)
	}
}
