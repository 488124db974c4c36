package plan

import (
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// otherRow is one row of the rules for a version with files in Git. Rows from the top; the first that fits decides.
type otherRow struct {
	name string
	// always marks the rows that only keep: they hold also where the spec cannot be used or somebody else is the owner.
	// The others may rely on there being a spec and a connection.
	always bool
	fits   func(*View, *v1alpha1.RecordedVersion) (outcome, bool)
}

// otherRows are what comes next for versions that the spec does not ask for.
func otherRows() []otherRow {
	return []otherRow{
		{"needed", true, neededBack},
		{"connection", false, needsConnection},
		{"replicas", false, needsReplicas},
		{"routed", true, routedNow},
		{"window", false, windowOpen},
		{"set-aside", false, setAside},
		{"scale-down", false, scaleDown},
		{"delete", false, deleteRecord},
		{"remove", false, removeFiles},
	}
}

// otherRow is the first row that fits a version, "" if none does.
func (v *View) otherRow(r *v1alpha1.RecordedVersion) (string, outcome) {
	keeps := v.unusable != nil || v.foreign()
	for _, row := range otherRows() {
		if keeps && !row.always {
			continue
		}
		if o, fits := row.fits(v, r); fits {
			return row.name, o
		}
	}
	return "", outcome{}
}

// needed says why the version is needed, "" if nothing says so: by what Temporal says, or because traffic goes back to
// it.
func (v *View) needed(r *v1alpha1.RecordedVersion) string {
	switch st := v.status(r.BuildID); st {
	case rollout.StatusCurrent, rollout.StatusRamping, rollout.StatusDraining, rollout.StatusUnknown:
		return fmt.Sprintf("it is %s", st)
	}
	if v.wantedBack() == r.BuildID {
		return "traffic has to go back to it"
	}
	return ""
}

func (v *View) restore(r *v1alpha1.RecordedVersion, why string) rollout.Action {
	a := rollout.Action{Kind: rollout.Restore, BuildID: r.BuildID, Replicas: v.specReplicas(),
		Pools: v.restoredPools(r), Reason: fmt.Sprintf("%s is scaled up and guarded: %s", r.BuildID, why)}
	if isZero(a.Replicas) && !v.isTarget(r.BuildID) {
		a.Replicas = new(int32(1))
	}
	if v.unusable == nil {
		a.Resources = v.s.ResourceWrites(v.resourceSubject(r))
	}
	a.Replicas = replicasWith(a.Replicas, rollout.WithResources(r.Resources, a.Resources))
	return a
}

func (v *View) specReplicas() *int32 {
	if v.spec != nil {
		return v.spec.Spec.Replicas
	}
	if st := v.s.Record.Status; st != nil {
		return st.Spec.Replicas
	}
	return new(int32(1))
}

func neededBack(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	why := v.needed(r)
	if why == "" || r.Guard == v1alpha1.GuardOn && !isZero(r.Replicas) {
		return outcome{}, false
	}
	if r.Guard == v1alpha1.GuardOn && v.spec != nil && isZero(v.spec.Spec.Replicas) {
		return outcome{}, false
	}
	return outcome{}.with(v.restore(r, why))
}

func needsConnection(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	if retired(r) || r.ConnectionHash == v.connection.Spec.Hash() {
		return outcome{}, false
	}
	return outcome{}.with(v.reconnect(r))
}

// needsReplicas follows the spec's replicas where a version has traffic, unless an object of its own scales it; a
// draining one keeps what it has.
func needsReplicas(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	if equal(r.Replicas, v.wantedReplicas(r)) && samePools(r.Pools, v.wantedPools(r)) {
		return outcome{}, false
	}
	return outcome{}.with(v.scale(r))
}

func (v *View) scale(r *v1alpha1.RecordedVersion) rollout.Action {
	a := rollout.Action{Kind: rollout.ScaleVersion, BuildID: r.BuildID, Replicas: v.wantedReplicas(r),
		Pools: v.wantedPools(r), Reason: fmt.Sprintf("the spec's replicas changed, and %s has traffic", r.BuildID)}
	if rollout.Scaled(r.Resources) {
		a.Reason = fmt.Sprintf("%s has an object that scales it, which owns its replicas", r.BuildID)
	}
	return a
}

func equal(a, b *int32) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func routedNow(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	return outcome{}, v.needed(r) != ""
}

// windowOpen keeps a version while it may have to take its traffic back: not one that a person retires, or all of them.
func windowOpen(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	in, end := v.inWindow(r.BuildID, v.returnWindow())
	if !in || retired(r) || r.Retire != nil || v.retire != nil {
		return outcome{}, false
	}
	return outcome{due: end}, true
}

// setAside gives up, for a while, on a version that the server refused to delete in this cycle.
func setAside(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	for _, d := range v.s.Deletions {
		if d.BuildID == r.BuildID && d.Refused != "" {
			return outcome{}.with(rollout.Action{Kind: rollout.SetAsideKind, BuildID: r.BuildID,
				Reason: fmt.Sprintf("the server refuses to delete %s: %s", r.BuildID, d.Refused)})
		}
	}
	if until := v.restsUntil(r.BuildID); v.status(r.BuildID) != rollout.StatusGone && v.now.Before(until) {
		return outcome{due: until}, true
	}
	return outcome{}, false
}

// restsUntil is how long a refused deletion rests: twice as long each time, since each try that is refused costs a
// commit.
func (v *View) restsUntil(buildID string) time.Time {
	for _, a := range v.rec.SetAside {
		if a.BuildID == buildID {
			rest := v.sunset().DeleteDelay.Duration
			if r := v.recorded(buildID); r != nil && r.Retire != nil {
				rest = 0
			}
			return a.At.Add(max(rest, time.Minute) << min(max(a.Times, 1)-1, 6))
		}
	}
	return time.Time{}
}

func (v *View) sunset() v1alpha1.SunsetStrategy { return v.spec.Spec.Sunset }

// sunsetFrom is when a version may be scaled down, by its state. Both delays count from when it became drained, or, for
// one that was never routed, from when it was created. For one that a person asked to retire there are none.
func (v *View) sunsetFrom(r *v1alpha1.RecordedVersion) time.Time {
	return v.goesFrom(r, v.sunset().ScaledownDelay.Duration)
}

func (v *View) deleteFrom(r *v1alpha1.RecordedVersion) time.Time {
	return v.goesFrom(r, v.sunset().DeleteDelay.Duration)
}

func (v *View) goesFrom(r *v1alpha1.RecordedVersion, drained time.Duration) time.Time {
	if r.Retire != nil {
		return time.Time{}
	}
	if o := v.obs.Version(r.BuildID); o != nil && o.Drainage == rollout.Drained {
		return o.DrainageChangedAt.Add(drained)
	}
	return r.CreatedAt.Add(v.sunset().DeleteDelay.Duration)
}

// idle reports whether one read shows that a version is in one of the states from which it may go.
func (v *View) idle(obs *rollout.Observation, r *v1alpha1.RecordedVersion) bool {
	o := obs.Version(r.BuildID)
	if o != nil && o.Scaled {
		return false
	}
	switch v.statusIn(obs, r.BuildID) {
	case rollout.StatusDrained:
		return !o.DrainageChangedAt.IsZero()
	case rollout.StatusInactive, rollout.StatusCreated, rollout.StatusNotRegistered:
		return !v.everRouted(r.BuildID)
	case rollout.StatusGone:
		return true
	}
	return false
}

// askedToGo reports whether a person asked for the end of a version, or of all of them: that approves what takes it
// away.
func (v *View) askedToGo(r *v1alpha1.RecordedVersion) bool { return r.Retire != nil || v.retire != nil }

func scaleDown(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	if retired(r) || !v.idle(v.obs, r) {
		return outcome{}, false
	}
	if from := v.sunsetFrom(r); !v.now.After(from) {
		return outcome{due: from}, true
	}
	if e := unpinned(v.obs, r.BuildID); e.answer != rollout.Yes {
		return say("", "%s is kept: %s", r.BuildID, e.why), true
	}
	zero := int32(0)
	return outcome{}.with(rollout.Action{Kind: rollout.ScaleDown, BuildID: r.BuildID, Approved: v.askedToGo(r),
		Replicas: &zero, Pools: idlePools(r), Resources: rollout.RemoveResources(r.Resources),
		Reason: fmt.Sprintf("%s is %s, and no open workflow is pinned to it", r.BuildID, v.status(r.BuildID))})
}

func deleteRecord(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	if !retired(r) || v.status(r.BuildID) == rollout.StatusGone || !v.idle(v.obs, r) {
		return outcome{}, false
	}
	if from := v.deleteFrom(r); !v.now.After(from) {
		return outcome{due: v.nextLook(r, from)}, true
	}
	for _, e := range []evidence{unpinned(v.obs, r.BuildID), v.pollersGone(v.obs, r.BuildID)} {
		if e.answer != rollout.Yes {
			return say("", "%s is kept: %s", r.BuildID, e.why), true
		}
	}
	return outcome{}.with(rollout.Action{Kind: rollout.DeleteVersion, BuildID: r.BuildID, Approved: v.askedToGo(r),
		Reason: fmt.Sprintf("%s is %s, its workers are gone, and no open workflow is pinned to it", r.BuildID,
			v.status(r.BuildID))})
}

// removeFiles removes what the server no longer knows. One that never had traffic leaves no trace of whether its
// scale-down was applied: it waits another deleteDelay.
func removeFiles(v *View, r *v1alpha1.RecordedVersion) (outcome, bool) {
	if v.status(r.BuildID) != rollout.StatusGone {
		return outcome{}, false
	}
	if from := v.removeFrom(r); !v.now.After(from) {
		return outcome{due: from}, true
	}
	if e := unpinned(v.obs, r.BuildID); e.answer != rollout.Yes {
		return say("", "the files of %s are kept: %s", r.BuildID, e.why), true
	}
	return outcome{}.with(rollout.Action{Kind: rollout.RemoveFiles, BuildID: r.BuildID, Approved: v.askedToGo(r),
		Reason: fmt.Sprintf("Temporal no longer knows %s", r.BuildID)})
}

func (v *View) removeFrom(r *v1alpha1.RecordedVersion) time.Time {
	if v.everRouted(r.BuildID) {
		return time.Time{}
	}
	return r.RetiredAt.Add(v.sunset().DeleteDelay.Duration)
}

// blockers are the versions that count against the budget: all that are known to Git or to Temporal, but the new one
// itself.
func (v *View) blockers(but string) []string {
	seen := map[string]bool{}
	for _, r := range v.rec.Versions {
		seen[r.BuildID] = true
	}
	for _, o := range v.obs.Versions {
		seen[o.BuildID] = true
	}
	delete(seen, but)
	return sortedKeys(seen)
}
