package plan

import (
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Where the spec, or its connection, cannot be used, Temporal is read by the last ones that could, and judged by them: traffic is
// taken back as ever, by a verdict, a gate, a bar or a person. Nothing is raised, created, started, changed or taken away, since
// nobody knows what is asked for.

// unusableSpec says why the spec or its connection cannot be used, nil if they can.
func (v *view) unusableSpec() *rollout.State {
	bad := func(reason rollout.Reason, format string, args ...any) *rollout.State {
		state := stalled(reason, format, args...).state
		return &state
	}
	spec := v.s.Spec
	switch {
	case len(v.s.Problems) > 0:
		return bad(v.s.Problems[0].Reason, "%s", v.s.Problems[0].Message)
	case spec == nil && v.retire != nil:
		return bad(rollout.InvalidSpec, "the spec of %s is gone from Git, and so is the status.yaml that would say where its Temporal is: "+
			"bring the spec back until all is retired", v.s.Deployment)
	case spec == nil:
		return bad(rollout.InvalidSpec, "the spec of %s is gone from Git: everything is kept; "+
			"bring it back, or end the worker deployment: rampart retire %[1]s", v.s.Deployment)
	case v.s.Connection == nil:
		return bad(connectionReason(spec), "connection %s/%s is not in the repository", v.s.Deployment.Namespace, spec.Spec.WorkerOptions.ConnectionRef.Name)
	case !plannable(spec):
		return bad(rollout.InvalidSpec, "spec.rollout has no strategy, or strategy Progressive without steps")
	case v.elsewhere():
		return bad(rollout.InvalidSpec, "temporalNamespace changed from %s to %s: a version stays where it was made, or its workflows would be left behind. "+
			"To move: rampart retire %[3]s; start no more workflows in %[1]s; rampart retire %[3]s --unroute. Once nothing of it is left there, "+
			"it is made anew in %[2]s by itself", v.rec.TemporalNamespace, spec.Spec.WorkerOptions.TemporalNamespace, v.s.Deployment)
	}
	return nil
}

// elsewhere reports whether the spec asks for another Temporal namespace than where its versions are, and nobody retires these.
func (v *view) elsewhere() bool {
	return v.retire == nil && v.rec.TemporalNamespace != "" && v.rec.TemporalNamespace != v.s.Spec.Spec.WorkerOptions.TemporalNamespace
}

// plannable reports whether the rows know what to do with the strategy.
func plannable(spec *v1alpha1.WorkerDeployment) bool {
	switch r := spec.Spec.Rollout; r.Strategy {
	case v1alpha1.Manual, v1alpha1.AllAtOnce:
		return true
	case v1alpha1.Progressive:
		return len(r.Steps) > 0
	}
	return false
}

// connectionReason is the in-cluster controller's reason for a missing connection, which differs by kind.
func connectionReason(spec *v1alpha1.WorkerDeployment) rollout.Reason {
	if spec.Kind == v1alpha1.KindTemporalWorkerDeployment {
		return rollout.TemporalConnectionNotFound
	}
	return rollout.ConnectionNotFound
}

// lastGood is the spec to judge by where the one in Git, or its connection, cannot be used: the one in Git, if only its connection
// is missing; else the last one that could be used. Nil: none is recorded.
func (v *view) lastGood() *v1alpha1.WorkerDeployment {
	if s := v.s; len(s.Problems) == 0 && s.Spec != nil && plannable(s.Spec) && !v.elsewhere() {
		return s.Spec
	}
	return recordedSpec(v.s)
}

// recordedSpec is the last spec that could be used, as status.yaml keeps it; nil: it has none.
func recordedSpec(s *rollout.Snapshot) *v1alpha1.WorkerDeployment {
	if s.Record.Status == nil {
		return nil
	}
	spec := *s.Record.Status
	spec.Status = nil
	return &spec
}

// Judged is a snapshot with the spec that policy judges by: where the one in Git cannot be used, the last one that could.
func Judged(s rollout.Snapshot) rollout.Snapshot {
	s.Spec = newView(&s).spec
	return s
}

// ConnectionOf is the connection by which Temporal is asked about a worker deployment: the spec's; where that is not in Git, the one
// that its versions were made with last. Nil: it is not known, or there is no spec to judge by.
func ConnectionOf(s rollout.Snapshot) *v1alpha1.Connection {
	if newView(&s).spec == nil {
		return nil
	}
	if s.Connection != nil || s.Record.Routing == nil || s.Record.Routing.Spec.Connection == nil {
		return s.Connection
	}
	last := s.Record.Routing.Spec.Connection
	return &v1alpha1.Connection{APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindConnection,
		Metadata: v1alpha1.ObjectMeta{Name: last.Name, Namespace: s.Deployment.Namespace}, Spec: last.Spec}
}

// TemporalNamespace is where the worker deployment is: once there are versions, where these are; so too while its spec is not in Git.
func TemporalNamespace(s rollout.Snapshot) string {
	if r := s.Record.Routing; r != nil && r.Spec.TemporalNamespace != "" && (len(r.Spec.Versions) > 0 || s.Spec == nil || s.SpecPath == "") {
		return r.Spec.TemporalNamespace
	}
	if s.Spec != nil {
		return s.Spec.Spec.WorkerOptions.TemporalNamespace
	}
	return ""
}

// proposeLowering looks at the rows that take traffic back, while the spec cannot be used. What is broken stays what there is to
// say first.
func (v *view) proposeLowering(p *rollout.Proposal) {
	switch {
	case v.unusable == nil || v.spec == nil || v.foreign():
		return
	case !v.readable():
		if v.obs.Problem != nil {
			p.State = v.beside("Temporal could not be read: " + v.obs.Problem.Message)
		}
		return
	}
	for _, r := range targetRows() {
		if r.about != aboutRetreat && r.name != "retire" {
			continue
		}
		o, fits := r.fits(v)
		if !fits {
			continue
		}
		for _, a := range o.actions {
			if a.Lowers() || a.Kind == rollout.DriftAction {
				propose(p, r.name, outcome{actions: []rollout.Action{a}})
			}
		}
		p.State = v.beside(o.state.Message)
		return
	}
}

// beside is what there is to say while the spec cannot be used: that first, then what else happens.
func (v *view) beside(message string) rollout.State {
	return rollout.State{Reason: v.unusable.Reason, Message: fmt.Sprintf("%s. Meanwhile: %s", v.unusable.Message, message), Stalled: true}
}

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
	rec := n.routing()
	switch {
	case len(n.s.Problems) > 0:
		return "the spec is not valid"
	case n.s.Spec == nil:
		return "the spec is gone from Git"
	case n.s.Connection == nil:
		return "its connection is gone from Git"
	case n.s.Spec.Spec.Rollout.Strategy == "", n.s.Spec.Spec.Rollout.Strategy == v1alpha1.Progressive && len(n.s.Spec.Spec.Rollout.Steps) == 0:
		return "the spec has no strategy"
	case len(rec.Versions) > 0 && rec.TemporalNamespace != "" && rec.TemporalNamespace != n.s.Spec.Spec.WorkerOptions.TemporalNamespace &&
		rec.Retire == nil && n.s.Spec.Metadata.Annotations[rollout.AnnotationRetire] != "true":
		return "the spec asks for another Temporal namespace"
	}
	return ""
}
