package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestCanary(t *testing.T) {
	ramps := rampsAt(10, time.Hour)
	moved := ago(time.Hour)
	for _, c := range []struct {
		name  string
		given change
		want  func(*rollout.Canary) bool
	}{
		{"nothing ramps", all(), func(c *rollout.Canary) bool { return c == nil }},
		{"healthy", all(ramps, closed("v1", 990, 10), closed("v2", 99, 1)), func(c *rollout.Canary) bool {
			return c.Phase == rollout.PhaseRamp && c.Enough && !c.Worse && c.Since.Equal(moved) && named(c.Candidate+c.Against) == "v2v1" &&
				c.CandidateCounts == rollout.ArmCounts{Closed: 100, Failed: 1} && c.AgainstCounts == rollout.ArmCounts{Closed: 1000, Failed: 10}
		}},
		{"worse", all(ramps, closed("v1", 990, 10), closed("v2", 70, 30)), func(c *rollout.Canary) bool { return c.Worse && c.Evidence >= c.Bound }},
		{"better", all(ramps, closed("v1", 700, 300), closed("v2", 100, 0)), func(c *rollout.Canary) bool { return !c.Worse && !c.AboveCeiling }},
		{"above a ceiling, as current is", all(ramps, analysed(func(a *v1alpha1.Analysis) { a.MaxFailureRate = 0.1 }), closed("v1", 700, 300), closed("v2", 70, 30)),
			func(c *rollout.Canary) bool { return !c.Worse && c.AboveCeiling }},
		{"timed out ones failed, terminated and canceled ones did not", all(ramps, closed("v1", 990, 10), closed("v2", 50, 1), func(g *given) {
			o := &g.listed("v2").Closed
			o.TimedOut, o.Terminated, o.Canceled, o.ContinuedAsNew = 2, 4, 8, 16
		}), func(c *rollout.Canary) bool { return c.CandidateCounts == rollout.ArmCounts{Closed: 69, Failed: 3} }},
		{"as the spec says", all(ramps, analysed(func(a *v1alpha1.Analysis) { a.Failures = []v1alpha1.FailedEnd{v1alpha1.EndCanceled} }), closed("v1", 990, 10), closed("v2", 50, 1),
			func(g *given) { g.listed("v2").Closed.Canceled = 8 }), func(c *rollout.Canary) bool {
			return c.CandidateCounts == rollout.ArmCounts{Closed: 58, Failed: 8} && c.AgainstCounts == rollout.ArmCounts{Closed: 990}
		}},
		{"not counted", all(ramps, closed("v1", 990, 10)), func(c *rollout.Canary) bool {
			return c.Problem == "the closed workflows of "+id("v2")+" are not known: they were not asked for" && !c.Worse
		}},
		{"nothing to compare with", all(ramps, routes("", "v2", 10, time.Hour), analysed(func(a *v1alpha1.Analysis) { a.MaxFailureRate = 0.1 }), closed("v2", 10, 90)),
			func(c *rollout.Canary) bool { return c.Against == "" && c.Problem == "" && !c.Worse && c.AboveCeiling }},
		{"a ramp to unversioned workers", all(ramps, routes("v1", "", 0, time.Hour), func(g *given) { g.Observation.Routing.HasRamp = true }),
			func(c *rollout.Canary) bool { return c == nil }},
		{"baking, judged by the ceiling alone: what closed before is of another age", all(promoted(time.Minute), analysed(baked, ceiling), closed("v2", 70, 30), closed("v1", 990, 10)), func(c *rollout.Canary) bool {
			return c.Phase == rollout.PhaseBake && !c.Worse && c.AboveCeiling && named(c.Candidate+c.Against) == "v2" && c.AgainstCounts == rollout.ArmCounts{}
		}},
		{"above a ceiling, though current is not known", all(ramps, analysed(ceiling), closed("v2", 0, 100)), func(c *rollout.Canary) bool {
			return c.Problem != "" && c.AboveCeiling && !c.Worse
		}},
		{"baking, the version before not counted", all(promoted(time.Minute), analysed(baked), closed("v2", 70, 30)),
			func(c *rollout.Canary) bool { return c.Problem == "" && !c.Worse && c.Enough }},
		{"in the rollback window", all(promoted(time.Minute)), func(c *rollout.Canary) bool { return c.Phase == rollout.PhaseWindow }},
		{"after it", all(promoted(time.Hour + 1)), func(c *rollout.Canary) bool { return c == nil }},
		{"stuck, with one count that failed", all(ramps, closed("v1", 1, 0), closed("v2", 1, 0), stuck(func(s *rollout.Stuck) {
			s.Unattributed, s.UnattributedSample, s.Problems = rollout.Counted(30), rollout.Sample{Candidate: 20, Workflow: "a"}, rollout.Count{Reason: "away"}
		})), func(c *rollout.Canary) bool {
			return c.Stuck == rollout.StuckJudgment{Problem: "the stuck workflows are not known: away", Candidate: 20, Workflow: "a", Unresolved: 10}
		}},
		{"stuck since before the ramp", all(ramps, closed("v1", 1, 0), closed("v2", 1, 0), stuckBefore(1), stuck(func(s *rollout.Stuck) {
			s.Problems, s.ProblemsSample = rollout.Counted(1), rollout.Sample{Candidate: 1, Workflow: "poison"}
		})), func(c *rollout.Canary) bool { return c.Stuck.Candidate == 0 && c.Stuck.Unresolved == 0 }},
		{"one more than before the ramp", all(ramps, closed("v1", 1, 0), closed("v2", 1, 0), stuckBefore(1), stuck(func(s *rollout.Stuck) {
			s.Problems, s.ProblemsSample = rollout.Counted(2), rollout.Sample{Candidate: 2, Workflow: "poison"}
		})), func(c *rollout.Canary) bool { return c.Stuck.Candidate == 1 && c.Stuck.Unresolved == 0 }},
		{"beside idle workflows of unversioned workers", all(ramps, routes("", "v2", 10, time.Hour), closed("v2", 1, 0), stuck(func(s *rollout.Stuck) {
			s.Unattributed, s.UnattributedSample = rollout.Counted(500), rollout.Sample{Others: 20}
		})), func(c *rollout.Canary) bool { return c.Stuck == rollout.StuckJudgment{} }},
		{"beside unversioned workers, some not known", all(ramps, routes("", "v2", 10, time.Hour), closed("v2", 1, 0), stuck(func(s *rollout.Stuck) {
			s.Unattributed, s.UnattributedSample = rollout.Counted(500), rollout.Sample{Others: 19, Unknown: 1}
		})), func(c *rollout.Canary) bool { return c.Stuck.Unresolved == 481 }},
		{"stuck", all(ramps, closed("v1", 1, 0), closed("v2", 1, 0), stuckBefore(0), stuck(func(s *rollout.Stuck) {
			s.Unattributed, s.UnattributedSample = rollout.Counted(7), rollout.Sample{Candidate: 1, Others: 2, Workflow: "a"}
			s.Problems, s.ProblemsSample = rollout.Counted(5), rollout.Sample{Candidate: 2, Others: 3, Workflow: "b"}
		})), func(c *rollout.Canary) bool {
			return c.Stuck == rollout.StuckJudgment{Candidate: 3, Workflow: "a", Unresolved: 4}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Look(of(c.given)).Propose().Canary
			require.True(t, c.want(got), "%+v", got)
		})
	}
}

// Where no policy judges in the rollback window, the version is not judged in it. One that ramps or bakes is, all the
// same: metrics are asked for, and rows look at it.
func TestWindowThatNobodyLooksAt(t *testing.T) {
	for name, c := range map[string]struct {
		given  change
		judged bool
	}{
		"window": {promoted(time.Minute), false},
		"bake":   {all(promoted(time.Minute), analysed(func(a *v1alpha1.Analysis) { a.Bake = lasting(time.Hour) })), true},
		"ramp":   {rampsAt(10, time.Minute), true},
	} {
		require.NotNil(t, Look(of(c.given)).Propose().Canary, name)
		unwatched := all(c.given, analysed(errorRate, baked), uncounting(rollout.CanaryPhases()...))
		if !c.judged {
			unwatched = all(c.given, uncounting(rollout.CanaryPhases()...))
		}
		require.Equal(t, c.judged, Look(of(unwatched)).Propose().Canary != nil, name)
		require.Equal(t, c.judged, Look(of(unwatched)).Ask().Metrics != nil, name)
	}
}

func ceiling(a *v1alpha1.Analysis) { a.MaxFailureRate = 0.1 }

func stuckBefore(n int64) change { return func(g *given) { g.rec.Target.StuckBefore = &n } }

// The problems that there were before the first ramp are written down with it, and stay while the build is the target.
func TestStuckBefore(t *testing.T) {
	first := decide(t, of(candidate(), stuck(func(s *rollout.Stuck) { s.Problems = rollout.Counted(4) })), allowed)
	require.Equal(t, int64(4), *first.Record.Target.StuckBefore)
	unknown := decide(t, of(candidate(), uncounted(false)), allowed)
	require.Nil(t, unknown.Record.Target.StuckBefore)

	four := int64(4)
	later := of(rampsAt(10, time.Hour), closed("v1", 1, 0), closed("v2", 1, 0), stuck(func(s *rollout.Stuck) { s.Problems = rollout.Counted(3) }),
		func(g *given) { g.rec.Target.StuckBefore = &four })
	require.Equal(t, int64(4), *decide(t, later, allowed).Record.Target.StuckBefore)
	other := of(rampsAt(10, time.Hour), func(g *given) { g.rec.Target.StuckBefore = &four }, asks("v3"))
	require.Nil(t, decide(t, other, allowed).Record.Target.StuckBefore)
}

// A version stays while the one after it bakes, and may come back until that is over.
func TestBakeKeepsTheVersionBefore(t *testing.T) {
	long := func(a *v1alpha1.Analysis) { a.Bake = lasting(5 * time.Hour) }
	given := all(promoted(4*time.Hour), analysed(long), drained("v1", 3*time.Hour))
	require.Empty(t, sayAll(Look(of(given)).Propose().Actions))
	require.Equal(t, []string{"ScaleDown v1 x0"}, sayAll(Look(of(promoted(4*time.Hour), drained("v1", 3*time.Hour))).Propose().Actions))
	turned := decide(t, of(given), verdictOn(rollout.Continue, effect(rollout.RollbackEffect)))
	require.Equal(t, []string{"Rollback v1 0->100 Verdict some.rule"}, sayAll(turned.Actions))
}

// Queries may name the version that the candidate is beside, or came after.
func TestMetricsNameTheVersionBefore(t *testing.T) {
	for name, given := range map[string]change{"ramp": rampsAt(10, time.Minute), "bake": promoted(time.Minute)} {
		ask := Look(of(all(given, analysed(baked, func(a *v1alpha1.Analysis) { a.Metrics = []v1alpha1.Metric{{Name: "errors"}} })))).Ask()
		require.Equal(t, &rollout.MetricsAsk{Candidate: id("v2"), Current: id("v1"), Metrics: []v1alpha1.Metric{{Name: "errors"}}}, ask.Metrics, name)
	}
}
