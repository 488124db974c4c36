package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ByMark is who turned a build back where all that is known is the mark that a rollback left in Temporal.
const ByMark = "an interrupted rollback"

// bar finds what keeps a build from being raised: a recorded bar, or the mark that an interrupted rollback left.
func (v *View) bar(buildID, templateHash string) *v1alpha1.Bar {
	if b := v.recordedBar(buildID, templateHash); b != nil {
		return b
	}
	reason, ok := v.mark(buildID)
	if !ok {
		return nil
	}
	return &v1alpha1.Bar{BuildID: buildID, TemplateHash: templateHash, By: ByMark, Reason: reason,
		At: v1alpha1.NewTime(v.now)}
}

func (v *View) recordedBar(buildID, templateHash string) *v1alpha1.Bar {
	return find(v.rec.Bars, func(b *v1alpha1.Bar) bool {
		return b.BuildID == buildID && b.TemplateHash == templateHash
	})
}

// templateHash is that of a version whose files are in Git, "" of others.
func (v *View) templateHash(buildID string) string {
	if r := v.recorded(buildID); r != nil {
		return r.TemplateHash
	}
	return ""
}

func (v *View) targetBar() *v1alpha1.Bar {
	if v.target == nil {
		return nil
	}
	return v.bar(v.target.BuildID, v.target.TemplateHash)
}

// turnedBack reports whether the target is current although it is barred.
func (v *View) turnedBack() bool {
	return v.target != nil && v.target.BuildID == v.actual.Current && v.targetBar() != nil
}

// promotedSince reports whether the current version was promoted after another build was barred: it is not where that
// one's traffic went.
func (v *View) promotedSince(b *v1alpha1.Bar) bool {
	n := len(v.promotions)
	return v.promotedAfter() != "" && v.promotions[n-1].At.After(b.At.Time)
}

// retried reports whether a person took away the bar against the target: it is tried anew, from its first gate and
// step.
func (v *View) retried(t *rollout.Target) bool {
	r := v.recorded(t.BuildID)
	return r != nil && r.TurnedBack > 0 && r.TurnedBack >= v.rec.Target.Attempt &&
		v.recordedBar(t.BuildID, t.TemplateHash) == nil
}

// attempt is how often a build was the target.
func (v *View) attempt(buildID string) int {
	if v.target != nil && v.target.BuildID == buildID {
		return v.target.Attempt
	}
	if r := v.recorded(buildID); r != nil {
		return r.Attempts
	}
	return 0
}

// markText is the mark "turned back" for an attempt at a build.
func markText(attempt int, reason string) string { return fmt.Sprintf("%d %s", attempt, reason) }

// mark reads the mark that a rollback left in Temporal. It is there for a rollback that Git does not know of: one of an
// earlier attempt, or one that was written down already, says nothing, so that a bar can be taken away in Git alone.
func (v *View) mark(buildID string) (reason string, ok bool) {
	o := v.obs.Version(buildID)
	if o == nil || o.TurnedBack == "" {
		return "", false
	}
	now, known := v.attempt(buildID), 0
	if r := v.recorded(buildID); r != nil {
		known = r.TurnedBack
	}
	number, reason, _ := strings.Cut(o.TurnedBack, " ")
	attempt, err := strconv.Atoi(number)
	if err != nil {
		return o.TurnedBack, known == 0
	}
	return reason, attempt >= now && attempt > known
}

// nextBars keeps the bars, and adds those of marks, of a barred target, and of what this plan turns back.
func (r *resolver) nextBars(next *v1alpha1.RoutingSpec) {
	bar := func(b v1alpha1.Bar) {
		known := func(o v1alpha1.Bar) bool { return o.BuildID == b.BuildID && o.TemplateHash == b.TemplateHash }
		if b.BuildID == "" || slices.ContainsFunc(next.Bars, known) {
			return
		}
		next.Bars = append(next.Bars, b)
		if ver := rollout.FindVersion(next.Versions, b.BuildID); ver != nil {
			ver.TurnedBack = max(r.attempt(b.BuildID), 1)
		}
	}
	for i := range r.rec.Versions {
		ver := &r.rec.Versions[i]
		if b := r.bar(ver.BuildID, ver.TemplateHash); b != nil {
			bar(*b)
		}
	}
	if b := r.targetBar(); b != nil {
		bar(*b)
	}
	if move := r.move(); move != nil && move.Bar != "" {
		b := v1alpha1.Bar{BuildID: r.barred(*move), By: move.Bar, Reason: move.Reason, At: v1alpha1.NewTime(r.now)}
		if ver := r.recorded(b.BuildID); ver != nil {
			b.TemplateHash = ver.TemplateHash
		}
		bar(b)
	}
	if n := len(next.Bars); n > maxBars {
		next.Bars = slices.Clone(next.Bars[n-maxBars:])
	}
}
