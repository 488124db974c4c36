// Package operator is what an operator says, as changes of a record: values in, values out.
//
// A command changes routing.yaml and nothing else; what follows from that is the bot's to do, by the same rows as ever.
// So a command works while the bot is away, and two people who say the same thing say it once. The functions may be
// called concurrently; they change nothing that they are given.
package operator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Person is who says something, why, and when.
type Person struct {
	Name   string
	Email  string
	Reason string
	At     time.Time
}

// why is the reason to write down.
func (p Person) why() string { return cmp.Or(p.Reason, "no reason given") }

func (p Person) asked() *v1alpha1.Asked {
	return &v1alpha1.Asked{By: p.Name, Reason: p.why(), At: v1alpha1.NewTime(p.At)}
}

// Change is what a command makes of a record.
type Change struct {
	Record v1alpha1.RoutingSpec
	// Did says what is done, in one line; "": nothing has to be, and the record is as it was.
	Did string
	// Notes are what the person should know beside it.
	Notes []string
}

// unchanged is a command that finds things as it wants them.
func unchanged(rec v1alpha1.RoutingSpec, format string, args ...any) Change {
	return Change{Record: rec, Notes: []string{fmt.Sprintf(format, args...)}}
}

// recordOf gives the record that a command changes, its lists copied. It is an error if the bot has written none yet,
// or if it cannot be read.
func recordOf(s rollout.Snapshot) (v1alpha1.RoutingSpec, error) {
	if p := s.Record.RoutingProblem; p != nil {
		return v1alpha1.RoutingSpec{}, errors.New(p.Message)
	}
	if s.Record.Routing == nil {
		return v1alpha1.RoutingSpec{}, fmt.Errorf(
			"%s has no record in %s yet: the bot writes it in its first cycle after the spec was pushed; "+
				"rampart status says whether it could", s.Deployment, s.Record.Dir)
	}
	rec := s.Record.Routing.Spec
	rec.Versions = slices.Clone(rec.Versions)
	rec.Bars = slices.Clone(rec.Bars)
	return rec, nil
}

// Hold stops every raise until a person resumes, and lets stay what people move meanwhile. Traffic is still lowered.
func Hold(s rollout.Snapshot, p Person) (Change, error) {
	rec, err := recordOf(s)
	if err != nil {
		return Change{}, err
	}
	if h := rec.Hold; h != nil && h.Kind == v1alpha1.HoldManual {
		return unchanged(rec, "held already, by %s since %s: %s", h.By, instant(h.At), h.Reason), nil
	} else if h != nil && h.Kind == v1alpha1.HoldReleased {
		return unchanged(rec, "released by %s: its routing is left alone anyway", h.By), nil
	}
	rec.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, By: p.Name, Reason: p.why(), At: v1alpha1.NewTime(p.At)}
	if t := rec.Target; t != nil {
		rec.Hold.BuildID = t.BuildID
	}
	return Change{Record: rec,
		Did: "hold: nothing is raised, and nothing that people move is put back, until it is resumed",
		Notes: []string{"traffic is still lowered by a verdict of policy, a failed gate, a reverted spec and " +
			"commands such as rampart rollback"}}, nil
}

// Resume takes away the hold of a person, or the one that followed drift or a proposal that was closed.
func Resume(s rollout.Snapshot, _ Person) (Change, error) {
	rec, err := recordOf(s)
	if err != nil {
		return Change{}, err
	}
	h := rec.Hold
	switch {
	case h == nil:
		out := unchanged(rec, "not held")
		out.Notes = append(out.Notes, barNotes(s, rec)...)
		return out, nil
	case h.Kind == v1alpha1.HoldReleased:
		return Change{}, fmt.Errorf("%s was released by %s (%s): take its routing back with rampart adopt",
			s.Deployment, h.By, h.Reason)
	}
	rec = plan.Resumed(rec)
	return Change{Record: rec, Did: fmt.Sprintf("resume: the hold by %s is gone", h.By),
		Notes: append([]string{"it was held for: " + h.Reason}, barNotes(s, rec)...)}, nil
}

// barNotes say that a target which is barred goes nowhere though nothing holds it.
func barNotes(s rollout.Snapshot, rec v1alpha1.RoutingSpec) []string {
	if rec.Target == nil {
		return nil
	}
	for _, b := range rec.Bars {
		if b.BuildID == rec.Target.BuildID && b.TemplateHash == rec.Target.TemplateHash {
			return []string{fmt.Sprintf("%s stays barred, by %s: %s; to try it again: rampart retry %s", b.BuildID,
				b.By, b.Reason, s.Deployment)}
		}
	}
	return nil
}

// Retry lets a build that was turned back, or that has no traffic yet, start anew: as another attempt, at its first
// gate and step. build "" is the one that the spec asks for, which can be newer than the record. Writing down that its
// last attempt is over also takes back the mark that a rollback left in Temporal's metadata, whether it was recorded or
// not.
func Retry(s rollout.Snapshot, _ Person, build string) (Change, error) {
	rec, err := recordOf(s)
	if err != nil {
		return Change{}, err
	}
	target := targetOf(s, rec)
	if build == "" && target == "" {
		return Change{}, fmt.Errorf("%s has no target: its spec could not be used so far", s.Deployment)
	}
	given := build != ""
	build = cmp.Or(build, target)
	var lifted []string
	rec.Bars = slices.DeleteFunc(rec.Bars, func(b v1alpha1.Bar) bool {
		if b.BuildID == build {
			lifted = append(lifted, fmt.Sprintf("by %s (%s)", b.By, b.Reason))
		}
		return b.BuildID == build
	})
	ver := rollout.FindVersion(rec.Versions, build)
	switch {
	case ver == nil && len(lifted) == 0 && !given:
		out := unchanged(rec, "the spec asks for %s, which the bot has not seen yet: it starts at its first gate and "+
			"step without a retry", build)
		if rec.Target != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("to try again what it asked for before: rampart retry %s "+
				"--build %s", s.Deployment, rec.Target.BuildID))
		}
		return out, nil
	case ver == nil && len(lifted) == 0:
		return Change{}, unknownBuild(s, rec, build)
	case len(lifted) == 0 && routed(rec, build):
		return unchanged(rec, "%s is not barred, and has traffic; to start it over, take that back first: rampart "+
			"rollback %s --build %[1]s",
			build, s.Deployment), nil
	case len(lifted) == 0 && ver.TurnedBack >= lastAttempt(rec, ver):
		return unchanged(rec, "%s is not barred, and starts anew already", build), nil
	}
	if ver != nil {
		ver.TurnedBack = max(ver.TurnedBack, lastAttempt(rec, ver))
	}
	out := Change{Record: rec, Did: fmt.Sprintf("retry: %s starts anew, at its first gate and step", build)}
	if len(lifted) > 0 {
		out.Did += "; barred before " + strings.Join(lifted, " and ")
	}
	if target != build {
		out.Notes = append(out.Notes, fmt.Sprintf("the spec does not ask for %s now", build))
	}
	if h := rec.Hold; h != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("still held by %s (%s): rampart resume %s", h.By, h.Reason,
			s.Deployment))
	}
	return out, nil
}

// targetOf is the build that the spec asks for, "" if that was never known. A spec that cannot be used asks for what
// the record says.
func targetOf(s rollout.Snapshot, rec v1alpha1.RoutingSpec) string {
	if s.Spec != nil && len(s.Problems) == 0 {
		id, _ := rollout.BuildIDFor(s.Spec.Spec, rec.Versions)
		return id
	}
	if rec.Target == nil {
		return ""
	}
	return rec.Target.BuildID
}

// lastAttempt is the number of the last attempt at a version.
func lastAttempt(rec v1alpha1.RoutingSpec, ver *v1alpha1.RecordedVersion) int {
	n := max(ver.Attempts, 1)
	if t := rec.Target; t != nil && t.BuildID == ver.BuildID {
		n = max(n, t.Attempt)
	}
	return n
}

// routed reports whether a build shall have traffic.
func routed(rec v1alpha1.RoutingSpec, build string) bool {
	return rec.Desired.Current == build || rec.Desired.Ramping != nil && rec.Desired.Ramping.BuildID == build
}

func unknownBuild(s rollout.Snapshot, rec v1alpha1.RoutingSpec, build string) error {
	var known []string
	for _, v := range rec.Versions {
		known = append(known, v.BuildID)
	}
	for _, b := range rec.Bars {
		known = append(known, b.BuildID)
	}
	slices.Sort(known)
	return fmt.Errorf("%s has no version %q in Git; it has: %s", s.Deployment, build,
		cmp.Or(strings.Join(slices.Compact(known), ", "), "none"))
}

func instant(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }
