package plan

import (
	"cmp"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Where the spec, its connection or its environment cannot be used, Temporal is read by the last ones that could, and
// judged by them: traffic is taken back as ever, by a verdict, a gate, a bar or a person. Nothing is raised, created,
// started, changed or taken away, since it is unknown what is asked for.

// unusableSpec says why the record, the spec or its connection cannot be used, nil if they can.
func (v *View) unusableSpec() *rollout.State {
	bad := func(reason rollout.Reason, format string, args ...any) *rollout.State {
		return new(stalled(reason, format, args...).state)
	}
	spec := v.s.Spec
	switch {
	case v.unreadable():
		return bad(v.s.Record.RoutingProblem.Reason, "%s", v.s.Record.RoutingProblem.Message)
	case v.rec.MinReader > v1alpha1.RecordFormat:
		return bad(rollout.PlanGenerationFailed, "the record of %s wants a release that reads format %d of records, "+
			"and this one reads %d: traffic is only taken back. "+
			"Run a newer release", v.s.Deployment, v.rec.MinReader, v1alpha1.RecordFormat)
	case v.s.Contested():
		return bad(rollout.InvalidSpec, "%s", v.contest())
	case len(v.s.Problems) > 0:
		return bad(v.s.Problems[0].Reason, "%s", v.s.Problems[0].Message)
	case spec == nil && v.retire != nil:
		return bad(rollout.InvalidSpec,
			"the spec of %s is gone from Git, and so is the status.yaml that would say where its Temporal is: "+
				"bring the spec back until all is retired", v.s.Deployment)
	case spec == nil:
		return bad(rollout.InvalidSpec, "the spec of %s is gone from Git: everything is kept; "+
			"bring it back, or end the worker deployment: rampart retire %[1]s", v.s.Deployment)
	case !plannable(spec):
		return bad(rollout.InvalidSpec, "spec.rollout has no strategy, or strategy Progressive without steps")
	case v.elsewhere():
		return bad(rollout.InvalidSpec, "temporalNamespace changed from %s to %s: a version stays where it was made, "+
			"or its workflows would be left behind. "+
			"To move: rampart retire %[3]s; start no more workflows in %[1]s; rampart retire %[3]s --unroute. Once "+
			"nothing of it is left there, "+
			"it is made anew in %[2]s by itself", v.rec.TemporalNamespace, spec.Spec.WorkerOptions.TemporalNamespace,
			v.s.Deployment)
	case v.movesServer():
		return new(v.serverMoved())
	case v.connection == nil && v.away():
		return bad(connectionReason(spec), "%s, by which %s is in Temporal namespace %s, is not in the repository%s",
			v.lastConnectionRef().In(v.s.Deployment.Namespace), v.s.Deployment, v.rec.TemporalNamespace,
			v.staysRetired())
	case v.connection == nil:
		return bad(connectionReason(spec), "%s is not in the repository%s",
			spec.Spec.WorkerOptions.ConnectionRef.In(v.s.Deployment.Namespace), v.staysRetired())
	case v.s.EnvironmentProblem != nil:
		return bad(v.s.EnvironmentProblem.Reason, "%s", v.s.EnvironmentProblem.Message)
	}
	return nil
}

// staysRetired says that a worker deployment which is retired does not go without its connection, "" if it is not
// retired.
func (v *View) staysRetired() string {
	if v.retire == nil {
		return ""
	}
	return fmt.Sprintf(": %s is retired by %s, and nothing of it is scaled down or removed until the "+
		"connection is back", v.s.Deployment, v.retire.By)
}

// WhyItStays says why nothing goes of a worker deployment that is retired now, "" if it goes once it is not needed.
// Without its connection, for example, it is unknown whether it is needed.
func WhyItStays(s rollout.Snapshot, retire v1alpha1.Retire) string {
	if routing := s.Record.Routing; routing != nil {
		asked := *routing
		asked.Spec.Retire = &retire
		s.Record.Routing = &asked
	}
	if s.Spec == nil && s.SpecPath == "" && len(s.Problems) == 0 { // it goes by the one of its status then
		s.Spec = recordedSpec(&s)
	}
	return Look(s).WhyNothingGoes()
}

// WhyNothingGoes says why no version is taken out of service, "" if versions go once they are not needed.
func (v *View) WhyNothingGoes() string {
	if v.unusable != nil {
		return v.unusable.Message
	}
	return ""
}

// away reports whether the spec asks for another Temporal namespace than where the worker deployment is.
func (v *View) away() bool {
	return v.s.Spec != nil && TemporalNamespace(*v.s) != v.s.Spec.Spec.WorkerOptions.TemporalNamespace
}

// elsewhere reports whether the spec asks for another Temporal namespace than where its versions are, and the worker
// deployment is not retired.
func (v *View) elsewhere() bool { return v.retire == nil && v.away() }

// sound reports whether nothing is wrong with the spec in Git by itself.
func (v *View) sound() bool { return len(v.s.Problems) == 0 && v.s.Spec != nil && plannable(v.s.Spec) }

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

// lastGood is the spec to judge by where the one in Git, or its connection, cannot be used. It is the one in Git, if
// only its connection is missing, else the last one that could be used. Nil: none is recorded.
func (v *View) lastGood() *v1alpha1.WorkerDeployment {
	if v.sound() && !v.elsewhere() && !v.movesServer() {
		return v.s.Spec
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

// JudgedBy is the snapshot with the spec that policy judges by: where the one in Git cannot be used, the last one that
// could.
func (v *View) JudgedBy() rollout.Snapshot {
	s := *v.s
	s.Spec = v.spec
	return s
}

// Connection is the one by which Temporal is asked about the worker deployment. It is the spec's. Where that is not in
// Git, the spec is broken, or its versions are in another Temporal namespace, it is the one that they were made with
// last. Nil: it is not known, or there is no spec to judge by.
func (v *View) Connection() *v1alpha1.Connection {
	switch {
	case v.spec == nil:
		return nil
	case v.connection != nil:
		return v.connection
	}
	return v.lastConnection()
}

// findConnection is the connection by which the versions reach Temporal, nil if that is not in Git. It is the spec's,
// unless the spec is broken, asks for another Temporal namespace, whose connection may lead to another server, or its
// connection leads to another server itself.
func (v *View) findConnection() *v1alpha1.Connection {
	if v.sound() && !v.away() && v.sameServer(v.s.Connection) {
		return v.s.Connection
	}
	return v.lastConnection()
}

// lastConnection is the one that the versions were made with last, as Git has it now. If it is gone there, or leads to
// another server, it is given as it was. Nil: not known.
func (v *View) lastConnection() *v1alpha1.Connection {
	ref, last := v.lastConnectionRef(), v.rec.Connection
	for _, c := range []*v1alpha1.Connection{v.s.LastConnection, v.s.Connection} {
		if c != nil && c.Ref() == ref && v.sameServer(c) {
			return c
		}
	}
	if last == nil {
		return nil
	}
	return &v1alpha1.Connection{APIVersion: v1alpha1.TemporalAPIVersion,
		Kind:     string(cmp.Or(last.Kind, v1alpha1.KindConnection)),
		Metadata: v1alpha1.ObjectMeta{Name: last.Name, Namespace: ref.Of(v.s.Deployment.Namespace)}, Spec: last.Spec}
}

// lastConnectionRef names the connection that the versions were made with last. The record says so, or, if that is
// older than such names, the last spec. Where neither says so, it is the spec's.
func (v *View) lastConnectionRef() v1alpha1.ConnectionRef {
	last := recordedSpec(v.s)
	switch {
	case v.rec.Connection != nil:
		return v.rec.Connection.Ref()
	case last != nil && v.rec.TemporalNamespace != "":
		return last.Spec.WorkerOptions.ConnectionRef
	case v.s.Spec != nil:
		return v.s.Spec.Spec.WorkerOptions.ConnectionRef
	}
	return v1alpha1.ConnectionRef{}
}

// TemporalNamespace is where the worker deployment is: once there are versions, where these are; so too while its spec
// is not in Git.
func TemporalNamespace(s rollout.Snapshot) string {
	if r := recordIn(&s); r != nil && r.TemporalNamespace != "" &&
		(len(r.Versions) > 0 || s.Spec == nil || s.SpecPath == "") {
		return r.TemporalNamespace
	}
	if s.Spec != nil {
		return s.Spec.Spec.WorkerOptions.TemporalNamespace
	}
	return ""
}

// Subject is the worker deployment as calls to Temporal name it. It was observed, so its connection is known.
func (v *View) Subject() rollout.Subject {
	return rollout.Subject{Connection: *v.Connection(), Deployment: v.s.Deployment,
		TemporalNamespace: TemporalNamespace(*v.s), Identity: v.s.Environment.ManagerIdentity}
}

// proposeLowering looks at the rows that take traffic back, while the spec cannot be used. What is broken stays what
// there is to say first.
func (v *View) proposeLowering(p *rollout.Proposal) {
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
	v.proposeRest(p)
}

// proposeRest says that a rollout is complete although its environment cannot be used. So one broken file changes no
// status of the environment's worker deployments that have nothing to do, and costs no commit.
func (v *View) proposeRest(p *rollout.Proposal) {
	if v.s.EnvironmentProblem == nil || v.unusable.Reason != v.s.EnvironmentProblem.Reason {
		return
	}
	for _, r := range targetRows() {
		if r.about == aboutInput {
			continue
		}
		if o, fits := r.fits(v); fits {
			if r.name == "bake" || r.name == "complete" {
				p.State, p.Due = o.state, o.due
				p.NextDue = earlier(p.NextDue, o.due)
			}
			return
		}
	}
}

// beside is what there is to say while the spec cannot be used: that first, then what else happens.
func (v *View) beside(message string) rollout.State {
	return rollout.State{Reason: v.unusable.Reason, Message: rollout.Beside(v.unusable.Message, message), Stalled: true,
		Meanwhile: message}
}
