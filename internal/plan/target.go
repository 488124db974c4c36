package plan

import (
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// outcome is what a row gives: actions, what there is to say, and when that changes by itself.
type outcome struct {
	state   rollout.State
	actions []rollout.Action
	due     time.Time
}

// row is one row of the rules: it decides, or it does not fit.
type row struct {
	name  string
	about about
	fits  func(*View) (outcome, bool)
}

// about says what a row decides about. When the worker deployment is owned by someone else, rows about routing do not
// fit.
type about string

const (
	aboutInput   about = "input" // what was read can't be used: nothing else is decided
	aboutFiles   about = "files"
	aboutRouting about = "routing"
	aboutRetreat about = "retreat" // the routing too: it goes down, or stays for now. So while the spec cannot be used
)

// targetRows are what comes next for the version that the spec asks for, from the top.
func targetRows() []row {
	return []row{
		{"record-unreadable", aboutInput, recordUnreadable},
		{"spec-unusable", aboutInput, specUnusable},
		{"temporal-unreadable", aboutInput, temporalUnreadable},
		{"retire", aboutInput, retiring},
		{"reset-ramp", aboutRetreat, resetRamp},
		{"rollback-barred", aboutRetreat, rollbackBarred},
		{"rollback", aboutRetreat, rollbackTo},
		{"gate-failed", aboutRetreat, gateFailed},
		{"edited-done", aboutRouting, editedDone},
		{"edited-down", aboutRetreat, editedDown},
		{"edited-refused", aboutRouting, editedRefused},
		{"drift", aboutRetreat, drifted},
		{"held", aboutRetreat, held},
		{"barred", aboutRetreat, barred},
		{"resources-unready", aboutFiles, resourcesUnready},
		{"create", aboutFiles, create},
		{"restore", aboutFiles, restoreTarget},
		{"update-template", aboutFiles, updateTemplate},
		{"update-connection", aboutFiles, updateConnection},
		{"lost", aboutRouting, lostRouting},
		{"wait-for-pollers", aboutRouting, waitForPollers},
		{"queue-shared", aboutRouting, queueShared},
		{"gate-input", aboutRouting, gateInput},
		{"baseline", aboutRouting, baseline},
		{"edited-up", aboutRouting, editedUp},
		{"bake", aboutRouting, baking},
		{"complete", aboutRouting, complete},
		{"manual", aboutRouting, manual},
		{"gate", aboutRouting, gated},
		{"first-version", aboutRouting, firstVersion},
		{"all-at-once", aboutRouting, allAtOnce},
		{"first-step", aboutRouting, firstStep},
		{"not-a-step", aboutRouting, notAStep},
		{"pause", aboutRouting, pause},
		{"evidence", aboutRouting, evidenceHeld},
		{"next-step", aboutRouting, nextStep},
		{"last-step", aboutRouting, lastStep},
	}
}

func say(reason rollout.Reason, format string, args ...any) outcome {
	return outcome{state: rollout.State{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// stalled says that waiting will not help.
func stalled(reason rollout.Reason, format string, args ...any) outcome {
	o := say(reason, format, args...)
	o.state.Stalled = true
	return o
}

func (o outcome) with(actions ...rollout.Action) (outcome, bool) {
	o.actions = append(o.actions, actions...)
	return o, true
}

func recordUnreadable(v *View) (outcome, bool) {
	p := v.s.Record.RoutingProblem
	if p == nil {
		return outcome{}, false
	}
	return stalled(rollout.PlanGenerationFailed, "%s", p.Message), true
}

func specUnusable(v *View) (outcome, bool) {
	if v.unusable == nil {
		return outcome{}, false
	}
	return outcome{state: *v.unusable}, true
}

func temporalUnreadable(v *View) (outcome, bool) {
	if v.readable() {
		return outcome{}, false
	}
	if p := v.obs.Problem; p != nil {
		return stalled(p.Reason, "%s", p.Message), true
	}
	return stalled(rollout.TemporalStateFetchFailed, "Temporal was not asked"), true
}

func resetRamp(v *View) (outcome, bool) {
	if !v.actual.HasRamp {
		return outcome{}, false
	}
	ramping := v.actual.Ramping
	a := rollout.Action{Kind: rollout.ResetRamp, BuildID: ramping, From: v.share(ramping), To: 0,
		Cause: rollout.CauseSpec}
	if ramping == v.target.BuildID {
		bar := v.targetBar()
		if bar == nil || v.overruled() {
			return outcome{}, false
		}
		a.Cause, a.Bar = rollout.CauseBarred, bar.By
		a.Reason = fmt.Sprintf("%s was turned back by %s: %s", ramping, bar.By, bar.Reason)
		return stalled(rollout.RolledBack, "%s", a.Reason).with(a)
	}
	if v.leftAlone() {
		return outcome{}, false
	}
	a.Reason = fmt.Sprintf("the spec asks for %s, not for %s", v.target.BuildID, orUnversioned(ramping))
	return say(v.resting(), "%s", a.Reason).with(a)
}

// resting is the reason to report when traffic is where the spec wants it as soon as this plan is carried out. That was
// not seen yet.
func (v *View) resting() rollout.Reason {
	if v.target.BuildID == v.actual.Current {
		return rollout.RolloutComplete
	}
	return rollout.WaitingForPollers
}

func rollbackBarred(v *View) (outcome, bool) {
	if v.target.BuildID != v.actual.Current {
		return outcome{}, false
	}
	bar := v.targetBar()
	if bar == nil || v.overruled() {
		return outcome{}, false
	}
	back := v.predecessor()
	if back == "" {
		return stalled(rollout.RolledBack, "%s was turned back (%s), but no version before it can take its traffic",
			v.target.BuildID, bar.Reason), true
	}
	if e := v.canTakeBack(back); e.answer != rollout.Yes {
		return stalled(rollout.RolledBack, "%s was turned back (%s), but %s", v.target.BuildID, bar.Reason, e.why), true
	}
	return stalled(rollout.RolledBack, "%s was turned back by %s: %s", v.target.BuildID, bar.By, bar.Reason).with(
		v.rollback(back, rollout.CauseBarred, bar.Reason))
}

// rollback makes a version current again, all at once.
func (v *View) rollback(to string, cause rollout.Cause, reason string) rollout.Action {
	return rollout.Action{Kind: rollout.Rollback, BuildID: to, From: v.share(to), To: 100, Cause: cause, Reason: reason}
}

func rollbackTo(v *View) (outcome, bool) {
	to := v.target.BuildID
	if !v.mayReturn(to) || v.leftAlone() || v.movedBack() || v.targetBar() != nil ||
		v.canTakeBack(to).answer != rollout.Yes {
		return outcome{}, false
	}
	reason := fmt.Sprintf("the spec asks for %s again, which was current before %s", to,
		orUnversioned(v.actual.Current))
	return say(rollout.WaitingForPromotion, "%s", reason).with(v.rollback(to, rollout.CauseSpec, reason))
}

func drifted(v *View) (outcome, bool) {
	d := v.routingDrift()
	var reason string
	switch {
	case v.leftAlone():
		return outcome{}, false
	case d != nil:
		reason = fmt.Sprintf("the routing was changed outside of Git: %s is recorded, %s is in Temporal", d.Recorded,
			d.Actual)
	case v.handRollback() != "":
		d = &rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftLower, Recorded: describe(v.desired),
			Actual: describe(v.actual)}
		reason = fmt.Sprintf("the routing was changed outside of Git: %s was current, and traffic went back to %s",
			v.handRollback(), v.actual.Current)
	default:
		return outcome{}, false
	}
	if own := v.s.Environment.ManagerIdentity; v.obs.LastModifier == own {
		reason += fmt.Sprintf(", by %s. That is this environment's own identity: unless a person used it, most "+
			"likely the bot of another repository has it too, so give each a managerIdentity of its own", own)
	}
	o := stalled(rollout.RoutingDrift, "%s", reason)
	o.actions = append(o.actions, rollout.Action{
		Kind: rollout.DriftAction, BuildID: v.target.BuildID,
		From: rollout.AsWritten(v.desired.Share(v.target.BuildID)),
		To:   v.share(v.target.BuildID), Reason: reason, Drift: d,
	})
	if _, unready := resourcesUnready(v); !unready { // a new target gets its files meanwhile
		files, _ := create(v)
		o.actions = append(o.actions, files.actions...)
	}
	return o, true
}

func barred(v *View) (outcome, bool) {
	bar := v.targetBar()
	if bar == nil {
		return outcome{}, false
	}
	keeps := ""
	if v.promotedSince(bar) {
		keeps = fmt.Sprintf(". %s keeps its traffic: to take it back, rampart rollback %s --build %[1]s",
			v.actual.Current, v.s.Deployment)
	}
	return stalled(rollout.RolledBack,
		"%s was turned back by %s: %s%s. Push another build, or try it again: rampart retry %s",
		bar.BuildID, bar.By, bar.Reason, keeps, v.s.Deployment), true
}

func create(v *View) (outcome, bool) {
	t := v.target
	if v.recorded(t.BuildID) != nil {
		return outcome{}, false
	}
	if blockers := v.blockers(t.BuildID); len(blockers) >= v.s.Limits.MaxVersions {
		return stalled(rollout.VersionLimitReached, "%d versions of at most %d are still needed, so %s is not "+
			"created: %s. Let them drain, or allow more with --max-versions",
			len(blockers), v.s.Limits.MaxVersions, t.BuildID, list(blockers)), true
	}
	resources := v.newResources()
	a := rollout.Action{Kind: rollout.CreateVersion, BuildID: t.BuildID, Resources: resources, Pools: v.newPools(),
		Replicas: replicasWith(v.spec.Spec.Replicas, rollout.WithResources(nil, resources)),
		Reason:   fmt.Sprintf("the spec asks for %s, which has no files yet", t.BuildID)}
	return say(rollout.WaitingForPollers, "workers of %s have to start", t.BuildID).with(a)
}

func restoreTarget(v *View) (outcome, bool) {
	r := v.recorded(v.target.BuildID)
	scaledToZero := r.Replicas != nil && *r.Replicas == 0 && !isZero(v.spec.Spec.Replicas)
	if !scaledToZero && r.Guard == v1alpha1.GuardOn {
		return outcome{}, false
	}
	return say(rollout.WaitingForPollers, "workers of %s have to start again", r.BuildID).with(
		v.restore(r, "the spec asks for it again"))
}

func isZero(n *int32) bool { return n != nil && *n == 0 }

func updateTemplate(v *View) (outcome, bool) {
	r := v.recorded(v.target.BuildID)
	if r.TemplateHash == v.target.TemplateHash {
		return outcome{}, false
	}
	a := rollout.Action{Kind: rollout.UpdateVersion, BuildID: r.BuildID, Update: rollout.UpdateTemplate,
		Replicas: v.wantedReplicas(r), Pools: v.newPools(),
		Reason: fmt.Sprintf("the template changed under the build ID %s: a rolling update in place", r.BuildID)}
	switch v.target.Status {
	case rollout.StatusCurrent, rollout.StatusRamping, rollout.StatusDraining, rollout.StatusUnknown:
		a.InTraffic = true
	}
	o := say(v.afterUpdate(), "%s", a.Reason)
	if v.targetRamps() {
		return o.with(rollout.Action{Kind: rollout.ResetRamp, BuildID: r.BuildID, From: v.share(r.BuildID),
			Cause:  rollout.CauseSpec,
			Reason: fmt.Sprintf("the pods of %s change: it starts over at its first gate and step", r.BuildID)}, a)
	}
	return o.with(a)
}

// afterUpdate is the reason to report while a version is updated in place.
func (v *View) afterUpdate() rollout.Reason {
	switch v.target.Status {
	case rollout.StatusCurrent:
		return rollout.RolloutComplete
	case rollout.StatusRamping:
		if v.recorded(v.target.BuildID).TemplateHash == v.target.TemplateHash {
			return rollout.Ramping
		}
	}
	return rollout.WaitingForPollers
}

func updateConnection(v *View) (outcome, bool) {
	r := v.recorded(v.target.BuildID)
	if r.ConnectionHash == v.connection.Spec.Hash() {
		return outcome{}, false
	}
	a := v.reconnect(r)
	return say(v.afterUpdate(), "%s", a.Reason).with(a)
}

func (v *View) reconnect(r *v1alpha1.RecordedVersion) rollout.Action {
	return rollout.Action{Kind: rollout.UpdateVersion, BuildID: r.BuildID, Update: rollout.UpdateConnection,
		Replicas: r.Replicas, Pools: r.Pools, Reason: v.connection.Ref().In(v.s.Deployment.Namespace) + " changed"}
}

func waitForPollers(v *View) (outcome, bool) {
	id := v.target.BuildID
	if id == v.actual.Current {
		return outcome{}, false
	}
	e := v.serves(id)
	if e.answer == rollout.Yes {
		e = v.poolsServe()
	}
	switch e.answer {
	case rollout.Yes:
		if !v.fresh() {
			return say(rollout.StaleFacts, "what is known of Temporal is %s old", age(v.now, v.obs.At)), true
		}
		return queuesLeft(v)
	case rollout.No:
		where, certain := v.sayMissing()
		if pods := v.sayPods(); pods != "" && !certain {
			where = ": " + pods
		} else if pods != "" {
			where += ". " + pods
		}
		o := say(rollout.WaitingForPollers, "%s%s", e.why, where)
		o.state.Stalled = certain
		if deadline, limit := v.pollerDeadline(); v.now.After(deadline) {
			o.state.Stalled = true
			o.state.Message += fmt.Sprintf(" (for longer than %s: look at its pods)", limit)
		} else {
			o.due = deadline
		}
		return o, true
	}
	return say(rollout.StaleFacts, "%s", e.why), true
}

// pollerDeadline is until when the target's workers may take to come, and how long that is. It counts from when it
// became the target, or, where that was held up, from when it was created.
func (v *View) pollerDeadline() (time.Time, time.Duration) {
	limit := v1alpha1.DefaultProgressDeadlineSeconds * time.Second
	if n := v.spec.Spec.ProgressDeadlineSeconds; n != nil {
		limit = time.Duration(*n) * time.Second
	}
	return v.awaitedSince().Add(limit), limit
}

// awaitedSince is since when the target's workers may come.
func (v *View) awaitedSince() time.Time {
	since := v.target.Since
	if r := v.recorded(v.target.BuildID); r.CreatedAt.After(since) {
		since = r.CreatedAt.Time
	}
	return since
}

func queueShared(v *View) (outcome, bool) {
	if v.target.BuildID == v.actual.Current {
		return outcome{}, false
	}
	if why := v.shared(v.target.BuildID); why != "" {
		return stalled(rollout.OwnedByAnother, "%s: both would take its workflows. Stop one of them", why), true
	}
	return outcome{}, false
}

func complete(v *View) (outcome, bool) {
	if v.target.BuildID != v.actual.Current {
		return outcome{}, false
	}
	return say(rollout.RolloutComplete, "%s is the current version", v.target.BuildID), true
}
