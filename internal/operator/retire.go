package operator

import (
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Retire ends a worker deployment: no new version comes, and what it has goes on the same proof as ever. current says
// what becomes of the version that new workflows go to. Asking again can ask for more, and never takes anything back.
func Retire(s rollout.Snapshot, p Person, current v1alpha1.RetireCurrent) (Change, error) {
	rec, err := recordOf(s)
	if err != nil {
		return Change{}, err
	}
	if was := rec.Retire; was != nil && weight(current) <= weight(was.Current) {
		return unchanged(rec, "retired already, by %s since %s: rampart status %s says what is left", was.By,
			instant(was.At), s.Deployment), nil
	}
	rec.Retire = &v1alpha1.Retire{Current: current, By: p.Name, Reason: p.why(), At: v1alpha1.NewTime(p.At)}
	out := Change{Record: rec,
		Did: "retire: nothing new comes; its versions are scaled down and removed once they are no longer needed"}
	switch is := rec.Desired.Current; {
	case is == "":
	case current == v1alpha1.KeepCurrent:
		out.Notes = append(out.Notes, fmt.Sprintf("%s stays current and gets new workflows. Start them elsewhere, "+
			"and then: rampart retire %s --unroute",
			is, s.Deployment))
	case current == v1alpha1.UnrouteProven:
		out.Did += fmt.Sprintf("; %s loses its traffic once unversioned workers are on its task queues, or nothing "+
			"was open or started on it for its scaledownDelay", is)
	default:
		out.Did += fmt.Sprintf("; %s loses its traffic at once", is)
		out.Notes = append(out.Notes,
			"workflows that are started from now on, and open ones that are not pinned, wait for unversioned workers")
	}
	switch {
	case s.SpecPath != "" && s.Spec != nil && rec.TemporalNamespace != "" &&
		s.Spec.Spec.WorkerOptions.TemporalNamespace != rec.TemporalNamespace:
		out.Notes = append(out.Notes, fmt.Sprintf("once nothing of it is left in %s, the bot creates it in %s, "+
			"as %s says", rec.TemporalNamespace, s.Spec.Spec.WorkerOptions.TemporalNamespace, s.SpecPath))
	case s.SpecPath != "":
		out.Notes = append(out.Notes, fmt.Sprintf("delete %s now or after it is gone: the bot removes its versions "+
			"either way", s.SpecPath))
	}
	if why := plan.WhyItStays(s, *rec.Retire); why != "" {
		out.Notes = append(out.Notes, "nothing goes yet: "+why)
	}
	if rec.Hold != nil && rec.Hold.Kind == v1alpha1.HoldReleased {
		out.Notes = append(out.Notes, "nothing goes while it is released: rampart adopt "+s.Deployment.String())
	}
	return out, nil
}

// weight orders what may become of a current version.
func weight(c v1alpha1.RetireCurrent) int {
	switch c {
	case v1alpha1.UnrouteProven:
		return 1
	case v1alpha1.UnrouteAnyway:
		return 2
	}
	return 0
}

// Unretire takes the wish back. What has gone by then comes back with the next rollout.
func Unretire(s rollout.Snapshot, _ Person) (Change, error) {
	rec, err := recordOf(s)
	if err != nil {
		return Change{}, err
	}
	annotated := s.Spec != nil && s.SpecPath != "" && s.Spec.Metadata.Annotations[rollout.AnnotationRetire] == "true"
	switch {
	case annotated:
		return Change{}, fmt.Errorf("the spec of %s asks for it: take the annotation %s out of %s", s.Deployment,
			rollout.AnnotationRetire, s.SpecPath)
	case rec.Retire == nil:
		return unchanged(rec, "not retired"), nil
	}
	out := Change{Record: rec, Did: fmt.Sprintf("retire: taken back (asked for by %s)", rec.Retire.By)}
	out.Record.Retire = nil
	if s.SpecPath == "" {
		out.Notes = []string{"its spec is gone from Git: everything is kept as it is until it is back"}
	}
	return out, nil
}

// RetireVersion ends one version, without the delays of its sunset. One that is asked for, or has traffic, is refused;
// one that drains, or that workflows are pinned to, goes when they are done.
func RetireVersion(s rollout.Snapshot, p Person, build string) (Change, error) {
	rec, err := recordOf(s)
	if err != nil {
		return Change{}, err
	}
	ver := rollout.FindVersion(rec.Versions, build)
	switch {
	case ver == nil:
		return Change{}, unknownBuild(s, rec, build)
	case rec.Target != nil && rec.Target.BuildID == build && rec.Retire == nil:
		return Change{}, fmt.Errorf("the spec of %s asks for %s: push another build first, or retire all of it",
			s.Deployment, build)
	case routed(rec, build):
		return Change{}, fmt.Errorf("%s has traffic: it goes by itself some time after it lost that; to end all of "+
			"it: rampart retire %s", build, s.Deployment)
	case ver.Retire != nil:
		return unchanged(rec, "%s is retired already, by %s since %s", build, ver.Retire.By,
			instant(ver.Retire.At)), nil
	}
	ver.Retire = p.asked()
	out := Change{Record: rec, Did: fmt.Sprintf("retire: %s is scaled down and removed without delay, once it has "+
		"drained and is no longer needed", build),
		Notes: []string{"traffic cannot be taken back to it at once any more"}}
	if why := plan.Look(s).WhyNothingGoes(); why != "" {
		out.Notes = append(out.Notes, "it does not go yet: "+why)
	}
	return out, nil
}
