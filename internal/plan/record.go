package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// How much of the past a record keeps.
const (
	maxPromotions = 20
	maxBars       = 50
)

// record builds the next content of routing.yaml and the writes of versions that go with it. There is none as long as
// no spec could be used, and none begins while the environment cannot be. Before Temporal was read once, it has no
// basis, and what it desires is not looked at.
func (r *resolver) record(plan *rollout.Plan) {
	if r.s.Record.RoutingProblem != nil || r.s.Record.Routing == nil &&
		(r.target == nil || r.s.EnvironmentProblem != nil) {
		return
	}
	if p := r.obs.Problem; p != nil && p.Busy {
		return // a busy server does not cause a transition
	}
	next := cloneRecord(r.rec)
	r.nextIdentity(&next)
	r.nextRouting(&next)
	r.nextProposal(&next)
	if r.readable() {
		r.nextPromotions(&next)
	}
	r.nextBars(&next)
	r.nextHold(&next)
	r.nextVersions(&next, plan)
	r.nextRetire(&next)
	r.nextSetAside(&next)
	r.nextEvacuations(&next)
	if len(plan.Versions) > 0 || !reflect.DeepEqual(next, r.before()) {
		r.nextSource(&next)
		if next.Target != nil && r.target != nil {
			next.Target.AskedIn = r.askedIn()
		}
	}
	plan.Record = &next
}

// before is the record as Git has it.
func (r *resolver) before() v1alpha1.RoutingSpec {
	if r.s.Record.Routing == nil {
		return v1alpha1.RoutingSpec{}
	}
	return r.s.Record.Routing.Spec
}

func cloneRecord(rec v1alpha1.RoutingSpec) v1alpha1.RoutingSpec {
	next := rec
	next.Versions = slices.Clone(rec.Versions)
	for i := range next.Versions {
		next.Versions[i].Files = maps.Clone(next.Versions[i].Files)
	}
	next.Promotions = slices.Clone(rec.Promotions)
	next.Bars = slices.Clone(rec.Bars)
	next.SetAside = slices.Clone(rec.SetAside)
	return next
}

// nextIdentity fills in who this is. A moved spec does not change the record by itself: its path follows with the next
// change.
func (r *resolver) nextIdentity(next *v1alpha1.RoutingSpec) {
	next.WorkerDeployment = r.s.Deployment.String()
	if next.TemporalNamespace == "" && r.spec != nil {
		next.TemporalNamespace = r.spec.Spec.WorkerOptions.TemporalNamespace
	}
	switch {
	case r.target == nil:
	case r.unusable != nil && r.goesOn(): // the gates of the last spec that could be used go on
		same := *r.rec.Target
		same.Gates = r.nextGates()
		next.Target = &same
	case r.unusable == nil:
		next.Target = &v1alpha1.RoutingTarget{BuildID: r.target.BuildID, TemplateHash: r.target.TemplateHash,
			Attempt: r.target.Attempt, Since: v1alpha1.NewTime(r.target.Since), StuckBefore: r.nextStuckBefore(),
			Gates:        r.nextGates(),
			LeavesBehind: r.nextLeaves(), Approved: r.rolloutApproved(), AskedIn: r.recordedAskedIn()}
		if next.Target.Approved != nil {
			next.Target.ApprovedSteps = r.timetable()
		}
		if r.startsOver() {
			*next.Target = v1alpha1.RoutingTarget{BuildID: r.target.BuildID, TemplateHash: r.target.TemplateHash,
				Attempt: r.target.Attempt + 1, Since: v1alpha1.NewTime(r.now)}
		}
	}
}

// startsOver reports whether the target lost its traffic when somebody went back to an earlier version: after the hold
// it begins at its first gate.
func (r *resolver) startsOver() bool {
	id := r.target.BuildID
	turned := r.handRollback()
	return r.fell != "" && turned != "" && (turned == id || r.desired.Share(id) > 0) && r.actual.Share(id) == 0
}

// nextSource writes down where the spec and its connection are, and whose. Those that cannot be used do not replace the
// last that could.
func (r *resolver) nextSource(next *v1alpha1.RoutingSpec) {
	if r.unusable != nil {
		return
	}
	next.Environment, next.ManagerIdentity, next.TemporalNamespaceID = r.s.Environment.Name,
		r.s.Environment.ManagerIdentity, r.namespaceID()
	if !r.s.SpecCopied {
		next.SpecPath = r.s.SpecPath
	}
	if c := r.connection; c != nil {
		next.Connection = &v1alpha1.RecordedConnection{Kind: c.Ref().Kind, Name: c.Metadata.Name, Spec: c.Spec,
			Path: r.connectionPath()}
	}
	r.nextTemplates(next)
}

// nextStuckBefore is the target's baseline: it is written with the first raise.
func (r *resolver) nextStuckBefore() *int64 {
	if known := r.stuckBefore(r.target.BuildID); known != nil {
		return known
	}
	if move := r.move(); move != nil && move.Raises() && move.From == 0 && r.obs.Stuck.Problems.Known {
		return new(r.obs.Stuck.Problems.N)
	}
	return nil
}

// nextRouting restates what is desired. That is what this plan moves traffic to. Else it is what is already desired, if
// the routing is that or an unanswered drift, or if it is not known whether it still may be. Else it is the routing as
// it is.
func (r *resolver) nextRouting(next *v1alpha1.RoutingSpec) {
	if r.edit == editMerged && r.undecided() {
		return
	}
	if r.edit == editOutdated {
		r.lines = append(r.lines, "what was merged proposes "+describe(desiredConfig(r.rec.Desired))+
			" for another template than the spec has: routing.yaml is put back")
	}
	if r.edit.isPutBack() {
		next.Desired = *r.rec.Decided
	}
	move := r.move()
	wish := move != nil && r.p.Row == "edited-up" && move.Raises()
	switch {
	case !r.readable(), r.foreign() && next.Basis != nil:
		return
	case move != nil && (move.Raises() || r.actual.HasRamp || move.Kind == rollout.Rollback):
		to := r.actual.AfterMove(*move)
		if !r.unmoved() || !desiredConfig(next.Desired).SameTraffic(to) {
			next.Desired, next.Basis = desiredOf(to), basisOf(r.actual)
		}
	case r.retire == nil && (r.edit == editOpen && !r.answered() || r.routingDrift() != nil && !r.adopt):
		return
	case r.retire == nil && r.lost() != "":
		return
	case r.unfinished() && r.state.Reason == rollout.StaleFacts:
		return // unknown facts take nothing back: another bot may be about to carry it out
	case r.desired.SameTraffic(r.actual) && next.Basis != nil:
	default:
		next.Desired, next.Basis = desiredOf(r.actual), basisOf(r.actual)
	}
	if !wish { // which is settled once it is seen
		next.Desired.TemplateHash = ""
		next.Decided = new(next.Desired)
	}
}

// unfinished reports whether what is desired was decided on the routing as it is, and may be not carried out yet.
func (v *View) unfinished() bool {
	return v.edit != editOpen && v.unmoved()
}

// nextPromotions writes down what was seen to be current, and a rollback that this plan makes.
func (r *resolver) nextPromotions(next *v1alpha1.RoutingSpec) {
	next.Promotions = slices.Clone(r.promotions)
	if move := r.move(); move != nil && move.Kind == rollout.Rollback {
		now := v1alpha1.NewTime(r.now)
		if n := len(next.Promotions); n > 0 && next.Promotions[n-1].LeftAt.IsZero() {
			next.Promotions[n-1].LeftAt, next.Promotions[n-1].LeftBy = now, v1alpha1.LeftByRollback
		}
		next.Promotions = append(next.Promotions, v1alpha1.Promotion{BuildID: move.BuildID, At: now})
	}
	if n := len(next.Promotions); n > maxPromotions {
		next.Promotions = slices.Clone(next.Promotions[n-maxPromotions:])
	}
}

// nextHold keeps a person's hold. It ends a hold that followed drift when the spec asks for something else. It sets a
// hold when traffic was lowered from outside, or routing.yaml was edited by hand. A spec that cannot be used ends no
// hold, whatever it asks for.
func (r *resolver) nextHold(next *v1alpha1.RoutingSpec) {
	if r.target == nil {
		return
	}
	h := &v1alpha1.Hold{BuildID: r.target.BuildID, At: v1alpha1.NewTime(r.now), Reason: r.state.Message}
	if r.unusable == nil {
		next.Hold = r.hold()
	}
	switch {
	case r.answered():
		h.Kind, h.By = v1alpha1.HoldManual, "an edit of routing.yaml"
		if r.unusable != nil {
			h.Reason = r.editReason()
		}
	case next.Hold == nil && r.fell != "":
		h.Kind, h.By, h.Reason = v1alpha1.HoldDrift, "drift", r.fell
	default:
		return
	}
	next.Hold = h
}

// nextVersions applies the actions to the list of versions, and says what to write.
func (r *resolver) nextVersions(next *v1alpha1.RoutingSpec, plan *rollout.Plan) {
	writes := map[string]*rollout.VersionWrite{}
	write := func(id string, op rollout.WriteOp) *rollout.VersionWrite {
		if writes[id] == nil {
			writes[id] = &rollout.VersionWrite{BuildID: id, Op: op, Guard: v1alpha1.GuardOn}
		} else if op == rollout.RenderVersion {
			writes[id].Op = op
		}
		return writes[id]
	}
	for _, a := range r.taken {
		ver := rollout.FindVersion(next.Versions, a.BuildID)
		switch a.Kind {
		case rollout.CreateVersion:
			next.Versions = append(next.Versions, r.newVersion(a))
			next.Removed = withoutRemoved(next.Removed, a.BuildID)
			write(a.BuildID, rollout.RenderVersion).Replicas = a.Replicas
		case rollout.UpdateVersion:
			ver.Replicas, ver.Guard, ver.Pools = a.Replicas, v1alpha1.GuardOn, a.Pools
			ver.ConnectionHash = r.connection.Spec.Hash()
			op := rollout.ReconnectVersion
			if a.Update == rollout.UpdateTemplate {
				op, ver.TemplateHash, ver.BuildIDFrom = rollout.RenderVersion, r.target.TemplateHash,
					r.target.BuildIDFrom
			}
			write(a.BuildID, op).Replicas = a.Replicas
		case rollout.Restore, rollout.ScaleVersion:
			ver.Replicas, ver.Guard, ver.RetiredAt, ver.Pools = a.Replicas, v1alpha1.GuardOn, v1alpha1.Time{}, a.Pools
			write(a.BuildID, rollout.EditVersion).Replicas = a.Replicas
		case rollout.ScaleDown:
			ver.Replicas, ver.Guard, ver.RetiredAt, ver.Pools = a.Replicas, v1alpha1.GuardOff, v1alpha1.NewTime(r.now),
				a.Pools
			w := write(a.BuildID, rollout.EditVersion)
			w.Replicas, w.Guard = a.Replicas, v1alpha1.GuardOff
		case rollout.RemoveFiles:
			ver := *ver
			next.Versions = slices.DeleteFunc(next.Versions, func(x v1alpha1.RecordedVersion) bool {
				return x.BuildID == a.BuildID
			})
			write(a.BuildID, rollout.RemoveVersion)
			next.Removed = append(withoutRemoved(next.Removed, a.BuildID),
				v1alpha1.RemovedVersion{BuildID: a.BuildID, Deployment: ver.Deployment, At: v1alpha1.NewTime(r.now)})
			next.Removed = next.Removed[max(0, len(next.Removed)-maxRemoved):]
		case rollout.DriftAction:
			r.nextManifest(a, ver, write)
		}
		r.nextResources(next, a, write)
	}
	for _, id := range sortedKeys(writes) {
		if ver := rollout.FindVersion(next.Versions, id); ver != nil {
			writes[id].Pools = ver.Pools
		}
		plan.Versions = append(plan.Versions, *writes[id])
	}
	r.stamp(next)
}

// nextManifest puts back or adopts a version's file that is not what was written.
func (r *resolver) nextManifest(a rollout.Action, ver *v1alpha1.RecordedVersion,
	write func(string, rollout.WriteOp) *rollout.VersionWrite) {
	if a.Drift.Kind != rollout.DriftManifest {
		return
	}
	name := strings.TrimPrefix(a.Drift.Path, layout.VersionFile(a.BuildID, ""))
	if a.Drift.Actual != "" && r.verdicts.Of(a.ID).Drift == rollout.DriftAdopt {
		ver.Files[name] = a.Drift.Actual
		return
	}
	w := write(a.BuildID, rollout.RestoreFiles)
	if w.Blobs == nil {
		w.Blobs = map[string]string{}
	}
	w.Blobs[name] = a.Drift.Recorded
	w.Replicas, w.Guard = ver.Replicas, ver.Guard
}

func (r *resolver) newVersion(a rollout.Action) v1alpha1.RecordedVersion {
	t := r.target
	return v1alpha1.RecordedVersion{
		BuildID: t.BuildID, BuildIDFrom: t.BuildIDFrom, TemplateHash: t.TemplateHash,
		ConnectionHash: r.connection.Spec.Hash(),
		Deployment:     t.Deployment, CreatedAt: v1alpha1.NewTime(r.now), Replicas: a.Replicas, Guard: v1alpha1.GuardOn,
		Pools: a.Pools,
	}
}

// stamp notes attempts, and when a version was first given traffic.
func (r *resolver) stamp(next *v1alpha1.RoutingSpec) {
	if r.target != nil && next.Target != nil {
		if ver := rollout.FindVersion(next.Versions, next.Target.BuildID); ver != nil {
			ver.Attempts = next.Target.Attempt
		}
	}
	if !r.readable() {
		return
	}
	ids := []string{r.actual.Current, r.actual.Ramping}
	if move := r.move(); move != nil && move.Raises() {
		ids = append(ids, move.BuildID)
	}
	for _, id := range ids {
		if ver := rollout.FindVersion(next.Versions, id); ver != nil && ver.RoutedAt.IsZero() {
			ver.RoutedAt = v1alpha1.NewTime(r.now)
		}
	}
	for i := range next.Versions {
		ver := &next.Versions[i]
		if o := r.obs.Version(ver.BuildID); o != nil && ver.RoutedAt.IsZero() &&
			!o.ActivatedAt().After(r.actual.MovedAt()) {
			ver.RoutedAt = v1alpha1.NewTime(o.ActivatedAt()) // traffic came and went between two cycles
		}
	}
}

func withoutRemoved(removed []v1alpha1.RemovedVersion, buildID string) []v1alpha1.RemovedVersion {
	return slices.DeleteFunc(slices.Clone(removed), func(x v1alpha1.RemovedVersion) bool {
		return x.BuildID == buildID
	})
}

func (r *resolver) nextSetAside(next *v1alpha1.RoutingSpec) {
	for _, a := range r.taken {
		switch a.Kind {
		case rollout.SetAsideKind:
			times := 1
			next.SetAside = slices.DeleteFunc(next.SetAside, func(x v1alpha1.SetAside) bool {
				same := x.BuildID == a.BuildID
				if same {
					times = max(x.Times, 1) + 1
				}
				return same
			})
			next.SetAside = append(next.SetAside, v1alpha1.SetAside{BuildID: a.BuildID, Reason: a.Reason,
				At: v1alpha1.NewTime(r.now), Times: times})
		case rollout.RemoveFiles, rollout.Restore:
			next.SetAside = slices.DeleteFunc(next.SetAside, func(x v1alpha1.SetAside) bool {
				return x.BuildID == a.BuildID
			})
		}
	}
}
