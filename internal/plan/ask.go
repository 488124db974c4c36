package plan

import (
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Ask says what more to read of Temporal, given a snapshot whose observation holds what one describe gives. It asks
// only for what a row or a policy will look at: counts are dear.
//
// No status shows a count, but commits and pull requests of a raise do: counts are asked for wherever a raise may come.
// Where no policy looks at them, the commit of a retreat by a policy or a gate in mid-step has none to show.
func (v *View) Ask() rollout.Ask {
	a := rollout.Ask{Deployment: v.s.Deployment, TemporalNamespace: TemporalNamespace(*v.s),
		NamespaceID: v.rec.TemporalNamespaceID == "", Second: v.s.FirstRead != nil}
	if !v.readable() || v.foreign() {
		return a
	}
	moving := v.target != nil && v.target.BuildID != v.actual.Current
	if moving {
		add(&a.Queues, v.target.BuildID, v.actual.Current)
		a.Gate = v.pointGate()
		v.askWorkers(&a)
		a.Missing = v.askMissing()
	}
	if v.actual.HasRamp {
		add(&a.Queues, v.actual.Ramping, v.actual.Current)
	}
	for _, back := range v.predecessors() {
		if v.turnedBack() {
			add(&a.Queues, back)
		}
		if v.mayReturn(back) {
			// Policy may want the version before back while the window is open. A mark against the current one is read
			// with it.
			add(&a.Queues, v.actual.Current, back)
		}
	}
	v.askJudged(&a, moving)
	add(&a.Queues, v.wantedBack())
	if left := v.leaving(); left != "" && v.unusable == nil && v.retire.Current != v1alpha1.KeepCurrent {
		add(&a.Queues, left)
		if v.retire.Current != v1alpha1.UnrouteAnyway && v.soon(v.retire.At.Add(v.quiet())) {
			a.InUse, a.InUseSince = []string{left}, v.now.Add(-v.quiet())
		}
	}
	for i := range v.rec.Versions {
		r := &v.rec.Versions[i]
		v.askEvacuation(&a, r)
		if !v.mayGo(r) {
			continue
		}
		add(&a.OpenPinned, r.BuildID)
		if retired(r) && v.obs.Version(r.BuildID) != nil {
			add(&a.Queues, r.BuildID)
		}
	}
	for _, l := range v.mayBeLeft(v.rec.Versions, v.rec.Removed) {
		add(&a.Queues, l.BuildID)
	}
	slices.Sort(a.Queues)
	slices.Sort(a.OpenPinned)
	return a
}

// askJudged asks for what the version with new traffic is judged by; before the target has any, for the problems that
// there are already.
func (v *View) askJudged(a *rollout.Ask, moving bool) {
	j := v.judged()
	if settings, _ := v.analysisOf(); j != nil && len(settings.Metrics) > 0 && j.phase != rollout.PhaseWindow {
		a.Metrics = &rollout.MetricsAsk{Candidate: j.candidate.BuildID, Current: j.before, Metrics: settings.Metrics}
	}
	switch {
	case j != nil && (v.policyCounts(j.phase) || v.rowsCount(j)):
		a.Closed = j.asks()
		a.Stuck = &rollout.StuckAsk{Candidate: j.candidate.BuildID, Since: j.candidate.Since}
	case moving && v.obs.Version(v.target.BuildID) != nil &&
		(j == nil && v.policyCounts(rollout.PhaseNone) || v.mayGetFirst()):
		a.Stuck = &rollout.StuckAsk{Candidate: v.target.BuildID}
	}
}

// policyCounts reports whether a policy looks at what is counted in a phase.
func (v *View) policyCounts(phase rollout.CanaryPhase) bool {
	return !slices.Contains(v.s.Uncounted, phase)
}

// rowsCount reports whether a row looks at the counts of the version that is judged, or may raise it, which shows them.
func (v *View) rowsCount(j *judged) bool {
	id := j.candidate.BuildID
	switch {
	case v.isTarget(id) && v.templateHash(id) != v.target.TemplateHash: // it changes in place
		return true
	case j.phase != rollout.PhaseRamp:
		return false
	case !v.targetRamps() || v.edit == editOpen || v.targetBar() != nil || v.routingDrift() != nil:
		return true
	case v.spec.Spec.Rollout.Strategy == v1alpha1.Manual:
		return false
	}
	at := v.stepAt()
	return at < 0 || float32(v.steps()[at].RampPercentage) != v.actual.Percentage || v.soon(v.pauseEnd())
}

// mayGetFirst reports whether the target may get its first traffic now, for which its baseline has to be known. One
// that is recorded is asked for all the same: a decision that is made again after its commit has the same questions.
func (v *View) mayGetFirst() bool {
	held := v.hold() != nil && v.edit != editOpen
	return v.unusable == nil && !held && v.targetBar() == nil && v.awaitsFirst()
}

// soon reports whether a time will have passed by the decision, which may come as late as facts may be old.
func (v *View) soon(at time.Time) bool { return v.now.Add(v.s.Limits.FactMaxAge).After(at) }

func add(to *[]string, ids ...string) {
	for _, id := range ids {
		if id != "" && !slices.Contains(*to, id) {
			*to = append(*to, id)
		}
	}
}

// mayGo reports whether the next stage of a version's sunset could be due by what is known without counting.
func (v *View) mayGo(r *v1alpha1.RecordedVersion) bool {
	if v.spec == nil || v.unusable != nil || v.target == nil && v.retire == nil ||
		v.target != nil && r.BuildID == v.target.BuildID || v.needed(r) != "" || !v.idle(v.obs, r) {
		return false
	}
	from := v.sunsetFrom(r)
	switch {
	case v.status(r.BuildID) == rollout.StatusGone:
		from = v.removeFrom(r)
	case retired(r):
		from = v.deleteFrom(r)
		if rest := v.restsUntil(r.BuildID); rest.After(from) {
			from = rest
		}
	}
	return v.now.After(from)
}
