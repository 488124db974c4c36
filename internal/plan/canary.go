package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/canary"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// analysisOf are the settings of the spec, or the defaults. asked says that the spec has any: only then a rollout waits
// for samples.
func (v *View) analysisOf() (settings v1alpha1.Analysis, asked bool) {
	if v.spec != nil && v.spec.Spec.Rollout.Analysis != nil {
		return *v.spec.Spec.Rollout.Analysis, true
	}
	return v1alpha1.Analysis{Alpha: v1alpha1.DefaultAlpha, Tolerance: v1alpha1.DefaultTolerance,
		MinSamples: v1alpha1.DefaultMinSamples,
		Window:     v1alpha1.Duration{Duration: v1alpha1.DefaultAnalysisWindow}}, false
}

// judged says which version the canary analysis judges, in which phase. A nil *judged: no version is judged now.
type judged struct {
	phase rollout.CanaryPhase
	// candidate names the version, and since when its closed workflows count.
	candidate rollout.ClosedAsk
	// before is the current version while the candidate ramps, then the one that it was promoted after.
	before string
}

// asks are the closed workflows that it is judged by. Only a ramp has two sides: what closed before a promotion and
// what closed since are of different ages.
func (j *judged) asks() []rollout.ClosedAsk {
	if j.phase != rollout.PhaseRamp || j.before == "" {
		return []rollout.ClosedAsk{j.candidate}
	}
	return []rollout.ClosedAsk{j.candidate, {BuildID: j.before, Since: j.candidate.Since}}
}

func (v *View) judged() *judged {
	if v.spec == nil || v.target == nil {
		return nil
	}
	if since := v.actual.MovedAt(); v.actual.HasRamp && v.actual.Ramping != "" && !since.IsZero() {
		return &judged{rollout.PhaseRamp, rollout.ClosedAsk{BuildID: v.actual.Ramping, Since: since}, v.actual.Current}
	}
	since, before := v.actual.CurrentChangedAt, v.promotedAfter()
	if v.actual.HasRamp || v.actual.Current == "" || before == "" || since.IsZero() {
		return nil
	}
	phase := rollout.PhaseWindow
	if v.now.Before(v.bakeEnd()) {
		phase = rollout.PhaseBake
	} else if !v.policyCounts(phase) || !v.mayReturn(before) {
		return nil
	}
	return &judged{phase, rollout.ClosedAsk{BuildID: v.actual.Current, Since: since}, before}
}

// promotedAfter is the version that the current one was promoted after, "" if it did not come by a promotion.
func (v *View) promotedAfter() string {
	n := len(v.promotions)
	if n < 2 || v.promotions[n-1].BuildID != v.actual.Current || v.promotions[n-2].LeftBy != v1alpha1.LeftByPromotion {
		return ""
	}
	return v.promotions[n-2].BuildID
}

// bakeEnd is until when the current version is judged after its promotion; zero: it is not.
func (v *View) bakeEnd() time.Time {
	settings, _ := v.analysisOf()
	if settings.Bake.Duration <= 0 || v.promotedAfter() == "" || v.actual.CurrentChangedAt.IsZero() {
		return time.Time{}
	}
	return v.actual.CurrentChangedAt.Add(settings.Bake.Duration)
}

// canary judges the version that has new traffic.
func (v *View) canary() *rollout.Canary {
	j := v.judged()
	if j == nil || !v.readable() {
		return nil
	}
	out := &rollout.Canary{Phase: j.phase, Candidate: j.candidate.BuildID, Since: j.candidate.Since,
		Stuck: v.stuck(j.candidate.BuildID)}
	var known bool
	if out.CandidateCounts, known = v.counts(j.candidate); !known {
		out.Problem = v.uncounted(j.candidate.BuildID)
		return out
	}
	if asks := j.asks(); len(asks) > 1 {
		out.Against = asks[1].BuildID
		if out.AgainstCounts, known = v.counts(asks[1]); !known {
			out.Problem = v.uncounted(out.Against) // a ceiling needs no other side
		}
	}
	settings, _ := v.analysisOf()
	in := canary.Input{
		Candidate: canary.Arm(out.CandidateCounts), Alpha: settings.Alpha, Stages: len(v.steps()) + 1,
		MinSamples: int64(settings.MinSamples), Ceiling: settings.MaxFailureRate, Tolerance: settings.Tolerance,
	}
	if j.phase == rollout.PhaseRamp {
		in.Current = canary.Arm(out.AgainstCounts)
		in.Share = v.share(j.candidate.BuildID) / 100
	}
	r, err := canary.Compare(in)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Enough, out.Worse, out.AboveCeiling = r.Enough, r.Worse, r.AboveCeiling
	out.Evidence, out.CeilingEvidence, out.Bound = r.Evidence, r.CeilingEvidence, r.Bound
	return out
}

// counts of a version's closed workflows, if they are of the span that is looked at.
func (v *View) counts(ask rollout.ClosedAsk) (rollout.ArmCounts, bool) {
	o := v.obs.Version(ask.BuildID)
	if o == nil || !o.Closed.Known || !o.Closed.Since.Equal(ask.Since) {
		return rollout.ArmCounts{}, false
	}
	settings, _ := v.analysisOf()
	failures := settings.Failures
	if len(failures) == 0 {
		failures = v1alpha1.DefaultFailures()
	}
	c := o.Closed
	n := rollout.ArmCounts{Closed: c.Completed + c.ContinuedAsNew}
	for end, count := range map[v1alpha1.FailedEnd]int64{v1alpha1.EndFailed: c.Failed, v1alpha1.EndTimedOut: c.TimedOut,
		v1alpha1.EndTerminated: c.Terminated, v1alpha1.EndCanceled: c.Canceled} {
		if slices.Contains(failures, end) {
			n.Failed += count
			n.Closed += count
		}
	}
	return n, true
}

func (v *View) uncounted(buildID string) string {
	reason := "they were not asked for"
	if o := v.obs.Version(buildID); o == nil {
		reason = "Temporal does not list it"
	} else if o.Closed.Reason != "" {
		reason = o.Closed.Reason
	}
	return fmt.Sprintf("the closed workflows of %s are not known: %s", buildID, reason)
}

// stuck weighs counts and samples of stuck workflows, each by itself: what is known of one is not lost with the other.
// Reported problems count only beyond those of before the ramp: a workflow that never worked is not the candidate's
// fault. Where it is not known how many there were, none of them is.
func (v *View) stuck(candidate string) rollout.StuckJudgment {
	s := v.obs.Stuck
	var out rollout.StuckJudgment
	add := func(n rollout.Count, sample rollout.Sample, before int64) {
		if !n.Known {
			out.Problem = "the stuck workflows are not known: " + reasonOf(n)
			return
		}
		more := max(n.N-before, 0)
		out.Candidate += min(sample.Candidate, more)
		if out.Workflow == "" {
			out.Workflow = sample.Workflow
		}
		if more > 0 && !v.idleUnversioned(sample) {
			out.Unresolved += max(n.N-sample.Candidate-sample.Others, 0)
		}
	}
	add(s.Unattributed, s.UnattributedSample, 0)
	switch before := v.stuckBefore(candidate); {
	case s.Problems.Unsupported: // first tasks that never complete are all that such a server shows
	case before != nil:
		add(s.Problems, s.ProblemsSample, *before)
	case s.Problems.Known && s.Problems.N > 0:
		out.NoBaseline = true
		if !v.idleUnversioned(s.ProblemsSample) {
			out.Unresolved += max(s.Problems.N-s.ProblemsSample.Others, 0)
		}
	default:
		add(s.Problems, s.ProblemsSample, 0)
	}
	return out
}

// idleUnversioned reports whether a sample shows nothing but workflows that wait for nothing, beside unversioned
// workers: theirs have no version for all of their lives.
func (v *View) idleUnversioned(sample rollout.Sample) bool {
	return v.actual.Current == "" && sample.Others > 0 && sample.Candidate == 0 && sample.Unknown == 0
}

// targetCanary judges the target's ramp; nil: it has none.
func (v *View) targetCanary() *rollout.Canary {
	if c := v.candidate; c != nil && c.Candidate == v.target.BuildID && c.Phase == rollout.PhaseRamp {
		return c
	}
	return nil
}

// evidenceHeld holds a ramp at its step until what it is judged by is there.
func evidenceHeld(v *View) (outcome, bool) {
	c := v.targetCanary()
	if c == nil {
		return outcome{}, false
	}
	settings, asked := v.analysisOf()
	if due := v.actual.PercentageChangedAt.Add(settings.Window.Duration); asked && !v.now.After(due) {
		o := v.ramping(v.targetShare())
		o.due = due
		return o, true
	}
	if why := v.missing(c); why != "" {
		return say(rollout.StaleFacts, "%s", why), true
	}
	if !asked || c.Enough {
		return outcome{}, false
	}
	return v.tooFew(c, settings)
}

// missing says which fact is unknown that has to be known before the ramp is raised; "" if all are known. Stuck
// workflows always hold the ramp while it is unknown whose they are. The rest matters where the spec asks for an
// analysis.
func (v *View) missing(c *rollout.Canary) string {
	settings, asked := v.analysisOf()
	switch {
	case c.Stuck.Unresolved > 0 && c.Stuck.NoBaseline:
		return fmt.Sprintf("there are workflows whose workflow task does not complete, and how many there were "+
			"before %s got traffic is not known. "+
			"Reset or terminate them, or begin again, which counts them first: rampart rollback %s, then rampart "+
			"retry %[2]s", c.Candidate, v.s.Deployment)
	case c.Stuck.Unresolved > 0:
		return "there are workflows whose workflow task does not complete, and it is not known whether that is due " +
			"to " + c.Candidate
	case !asked:
		return ""
	case c.Stuck.Problem != "":
		return c.Stuck.Problem
	case c.Problem != "":
		return c.Problem
	}
	return v.missingMetric(settings.Metrics)
}

// tooFew waits for samples, and then does what the spec says.
func (v *View) tooFew(c *rollout.Canary, settings v1alpha1.Analysis) (outcome, bool) {
	due := v.actual.PercentageChangedAt.Add(settings.MaxWait.Duration)
	few := fmt.Sprintf("fewer than %d closed workflows of %s", settings.MinSamples, c.Candidate)
	if !v.now.After(due) {
		o := say(rollout.StaleFacts, "%s since its ramp changed: waiting for more, for %s at most", few,
			settings.MaxWait)
		o.due = due
		return o, true
	}
	if settings.OnTooFewSamples == v1alpha1.SamplesAdvance && c.Stuck.Candidate == 0 {
		return outcome{}, false
	}
	return stalled(rollout.StaleFacts, "%s within %s. Send it more, or set analysis.onTooFewSamples: Advance", few,
		settings.MaxWait), true
}

// missingMetric names the first metric that cannot be relied on, "" if all can. Its words stay the same while it is
// away.
func (v *View) missingMetric(metrics []v1alpha1.Metric) string {
	for _, m := range metrics {
		f, ok := v.s.Facts[m.Name]
		switch {
		case !ok:
			return fmt.Sprintf("metric %s is not known: the bot reads no metrics", m.Name)
		case f.Error != "":
			return fmt.Sprintf("metric %s could not be read: %s", m.Name, f.Error)
		case !f.Fresh(v.now):
			return fmt.Sprintf("metric %s was observed at %s, which is more than %s ago", m.Name,
				f.ObservedAt.UTC().Format(time.RFC3339), m.MaxAge)
		}
	}
	return ""
}

// baking is what there is to say of a target that was promoted and is still judged.
func baking(v *View) (outcome, bool) {
	if v.target.BuildID != v.actual.Current || !v.now.Before(v.bakeEnd()) {
		return outcome{}, false
	}
	settings, _ := v.analysisOf()
	o := say(rollout.Ramping, "%s is the current version, and judged for %s after its promotion", v.target.BuildID,
		settings.Bake)
	o.due = v.bakeEnd()
	return o, true
}
