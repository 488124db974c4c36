package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A worker deployment that is retired has no target: its ramp goes, nothing new comes, and all its versions go by the
// rows for other versions, on the same proof. Its current version is where new workflows go. It loses that only when a
// person asked for that too, and then on proof that it is not needed, or that unversioned workers are there instead.

// byAnnotation is who retires a worker deployment whose spec says so.
const byAnnotation = "annotation " + rollout.AnnotationRetire

// leastQuiet is how long a version must have been without a new workflow, at least, before it is left without traffic.
const leastQuiet = time.Minute

// retirement is the wish that the worker deployment ends, nil for none. One by annotation ends with the annotation, but
// not with the spec.
func (v *View) retirement() *v1alpha1.Retire {
	r := v.rec.Retire
	spec := v.s.Spec
	annotated := spec != nil && spec.Metadata.Annotations[rollout.AnnotationRetire] == "true"
	switch {
	case r != nil && (r.By != byAnnotation || annotated || spec == nil):
		return r
	case annotated:
		return &v1alpha1.Retire{Current: v1alpha1.KeepCurrent, By: byAnnotation, At: v1alpha1.NewTime(v.now)}
	}
	return nil
}

func retiring(v *View) (outcome, bool) {
	if v.retire == nil {
		return outcome{}, false
	}
	o, fits := v.retiringUnramped()
	if !v.actual.HasRamp || v.foreign() {
		return o, fits
	}
	if len(o.actions) > 0 { // in the next cycle
		o = say(rollout.Retiring, "%s is retired by %s: its ramp was taken back", v.s.Deployment, v.retire.By)
	}
	o.due = time.Time{}
	return o.with(rollout.Action{Kind: rollout.ResetRamp, BuildID: v.actual.Ramping, From: v.share(v.actual.Ramping),
		Cause: rollout.CausePerson, Reason: fmt.Sprintf("%s is retired by %s", v.s.Deployment, v.retire.By)})
}

// retiringUnramped is what there is to do, and to say, once there is no ramp: traffic is taken back before the commit
// that says so.
func (v *View) retiringUnramped() (outcome, bool) {
	switch left := v.actual.Current; {
	case v.foreign():
		return stalled(rollout.OwnedByAnother, "%s is retired by %s, but %s", v.s.Deployment, v.retire.By,
			v.ownership()), true
	case v.leaving() != "":
		return v.unroute(left)
	case len(v.rec.Versions) > 0:
		return say(rollout.Retiring, "%s is retired by %s: these versions are left: %s", v.s.Deployment, v.retire.By,
			list(v.recordedIDs())), true
	case v.s.SpecPath != "" && v.retire.By == byAnnotation:
		return stalled(rollout.Retiring, "%s is retired by %s, and nothing of it runs. To finish, delete its spec in "+
			"%s; without the annotation it is made anew",
			v.s.Deployment, v.retire.By, v.s.SpecPath), true
	case v.s.SpecPath != "":
		return stalled(rollout.Retiring,
			"%s is retired by %s, and nothing of it runs. To finish, delete its spec in %s",
			v.s.Deployment, v.retire.By, v.s.SpecPath), true
	case len(v.strays()) > 0:
		return stalled(rollout.Retiring,
			"%s is retired, and nothing of it runs. To finish, delete what the bot did not write in %s: %s",
			v.s.Deployment, v.s.Record.Dir, list(v.strays())), true
	}
	return say(rollout.Retiring, "%s is retired: nothing of it is left", v.s.Deployment), true
}

func (v *View) recordedIDs() []string {
	var out []string
	for _, r := range v.rec.Versions {
		out = append(out, r.BuildID)
	}
	return out
}

// leaving is the version of ours that is still current though the worker deployment is retired, "" for none.
func (v *View) leaving() string {
	if v.retire == nil || v.recorded(v.actual.Current) == nil {
		return ""
	}
	return v.actual.Current
}

// unroute takes the current version's traffic away, if a person asked for that and may have it.
func (v *View) unroute(current string) (outcome, bool) {
	if v.retire.Current == v1alpha1.KeepCurrent {
		return stalled(rollout.Retiring,
			"%s is retired by %s, but %s is current and gets its new workflows. Start them elsewhere, and then: "+
				"rampart retire %[1]s --unroute", v.s.Deployment, v.retire.By, current), true
	}
	if v.unusable != nil {
		return say(rollout.Retiring, "%s stays current until the spec can be used", current), true
	}
	if !v.fresh() {
		return say(rollout.StaleFacts, "what is known of Temporal is %s old", age(v.now, v.obs.At)), true
	}
	if v.obs.Version(current) == nil {
		return say(rollout.StaleFacts, "%s stays current: Temporal does not list it", current), true
	}
	why := "unversioned workers are on its task queues"
	switch e, due := v.unneeded(current); {
	case v.retire.Current == v1alpha1.UnrouteAnyway:
		why = "without proof that it is no longer needed, as asked for"
	case e.answer != rollout.Yes:
		o := say(rollout.Retiring, "%s stays current: %s", current, e.why)
		o.due = due
		return o, true
	case !v.replaced(current):
		why = "nothing uses it"
	}
	return say(rollout.Retiring, "%s gets no new workflows any more", current).with(rollout.Action{
		Kind: rollout.Unroute, BuildID: current, From: v.share(current), Cause: rollout.CausePerson, Approved: true,
		Reason: fmt.Sprintf("%s is retired by %s: %s", v.s.Deployment, v.retire.By, why)})
}

// unneeded answers whether a current version can lose its traffic. New workflows have somewhere else to go, or there
// are none, and none that is open. The second result is when the answer may change by itself.
func (v *View) unneeded(current string) (evidence, time.Time) {
	if v.replaced(current) {
		return yes(), time.Time{}
	}
	o, quiet := v.obs.Version(current), v.quiet()
	if due := v.retire.At.Add(quiet); !v.now.After(due) {
		return no("nothing may start on it for %s after it was asked to go", quiet), due
	}
	switch {
	case o == nil || !o.InUse.Known:
		reason := "not asked"
		if o != nil && o.InUse.Reason != "" {
			reason = o.InUse.Reason
		}
		return unknown("the workflows that use it could not be counted: %s", reason), time.Time{}
	case o.InUse.N > 0:
		return no("%s workflows are open on it or were started in the last %s, and no unversioned worker is on all "+
			"of its task queues", rollout.Grouped(o.InUse.N), quiet), time.Time{}
	}
	return yes(), time.Time{}
}

// quiet is how long the current version must have been without a new workflow.
func (v *View) quiet() time.Duration { return max(v.sunset().ScaledownDelay.Duration, leastQuiet) }

// replaced reports whether unversioned workers are known to be on all task queues of a version.
func (v *View) replaced(buildID string) bool {
	o := v.obs.Version(buildID)
	return o != nil && o.QueuesKnown == rollout.Yes && len(o.Queues) > 0 &&
		!slices.ContainsFunc(o.Queues, func(q rollout.TaskQueue) bool { return q.Unversioned != rollout.Yes })
}

// strays are files in the record's folder that the bot did not write.
func (v *View) strays() []string {
	files := maps.Clone(v.s.Record.Files)
	for _, own := range layout.OfRecord() {
		delete(files, own)
	}
	return sortedKeys(files)
}

// ended reports whether nothing is left of a worker deployment that was retired but its record.
func (v *View) ended() bool {
	return v.retire != nil && v.unusable == nil && v.readable() && !v.foreign() && !v.actual.HasRamp &&
		len(v.rec.Versions) == 0 &&
		v.s.SpecPath == "" && v.s.Record.Routing != nil && len(v.strays()) == 0
}

// nextRetire writes down a wish of the spec's, and forgets one for a version that is wanted again.
func (r *resolver) nextRetire(next *v1alpha1.RoutingSpec) {
	next.Retire = r.retire
	for i := range next.Versions {
		ver := &next.Versions[i]
		target := r.target != nil && r.target.BuildID == ver.BuildID
		if target || r.readable() && r.actual.Share(ver.BuildID) > 0 {
			ver.Retire = nil
		}
	}
}
