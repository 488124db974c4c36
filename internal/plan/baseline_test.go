package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// problems are workflows with reported problems that are running, as many of them seen on v2.
func problems(n, onV2 int64) change {
	return stuck(func(s *rollout.Stuck) {
		s.Problems = rollout.Counted(n)
		s.ProblemsSample = rollout.Sample{Candidate: onV2, Others: n - onV2}
		if onV2 > 0 {
			s.ProblemsSample.Workflow = "poison"
		}
	})
}

func uncounted(unsupported bool) change {
	return stuck(func(s *rollout.Stuck) {
		s.Problems, s.ProblemsSample = rollout.Count{Reason: "visibility is away", Unsupported: unsupported}, rollout.Sample{}
	})
}

// A baseline that is not known is not 0: what is stuck may have been so before the ramp. It turns nothing back, and
// holds.
func TestUnknownBaselineIsNotZero(t *testing.T) {
	ramps := all(rampsAt(10, time.Hour), closed("v1", 100, 0), closed("v2", 100, 0))
	for _, c := range []struct {
		name  string
		given change
		want  rollout.StuckJudgment
	}{
		{"unknown, two on the candidate", problems(2, 2), rollout.StuckJudgment{Unresolved: 2, NoBaseline: true}},
		{"unknown, two of three on others", problems(3, 1), rollout.StuckJudgment{Unresolved: 1, NoBaseline: true}},
		{"unknown, all on others", problems(3, 0), rollout.StuckJudgment{NoBaseline: true}},
		{"unknown, and none", problems(0, 0), rollout.StuckJudgment{}},
		{"known to be none", all(problems(2, 2), stuckBefore(0)), rollout.StuckJudgment{Candidate: 2, Workflow: "poison"}},
		{"as many as before", all(problems(2, 2), stuckBefore(2)), rollout.StuckJudgment{Workflow: "poison"}},
		{"the server cannot count them", uncounted(true), rollout.StuckJudgment{}},
		{"first tasks that never complete have no baseline", all(problems(2, 2), stuck(func(s *rollout.Stuck) {
			s.Unattributed, s.UnattributedSample = rollout.Counted(4), rollout.Sample{Candidate: 3, Others: 1, Workflow: "first"}
		})), rollout.StuckJudgment{Candidate: 3, Workflow: "first", Unresolved: 2, NoBaseline: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Look(of(ramps, c.given)).Propose()
			require.Equal(t, c.want, p.Canary.Stuck)
			if c.want.Unresolved > 0 {
				require.Equal(t, "evidence", p.Row)
				require.Equal(t, rollout.StaleFacts, p.State.Reason)
			} else {
				require.Equal(t, "next-step", p.Row)
			}
		})
	}
	said := Look(of(ramps, problems(2, 2))).Propose().State.Message
	require.Contains(t, said, "how many there were before "+id("v2")+" got traffic is not known")
	require.Contains(t, said, "rampart retry payments/checkout")
}

// The baseline is asked for before any raise, whatever the strategy, and written down with it.
func TestBaselineBeforeAnyRaise(t *testing.T) {
	for _, kind := range []v1alpha1.RolloutKind{v1alpha1.Progressive, v1alpha1.AllAtOnce} {
		for beside, from := range map[string]change{"a current version": all(), "unversioned workers": all(noCurrent, unversionedWorkers)} {
			t.Run(fmt.Sprintf("%s, beside %s", kind, beside), func(t *testing.T) {
				given := all(candidate(), strategy(kind), from)
				require.Equal(t, &rollout.StuckAsk{Candidate: id("v2")}, Look(of(given)).Ask().Stuck)

				waits := decide(t, of(given, uncounted(false)), allowed)
				require.Nil(t, waits.Raise)
				require.Equal(t, "baseline", waits.Row)

				for name, known := range map[string]change{"counted": problems(3, 0), "counted before": all(uncounted(false), stuckBefore(3))} {
					plan := decide(t, of(given, known), allowed)
					require.NotNil(t, plan.Raise, name)
					require.EqualValues(t, 3, *plan.Record.Target.StuckBefore, name)
				}
				old := decide(t, of(given, uncounted(true)), allowed)
				require.NotNil(t, old.Raise, "a server that cannot count them has no baseline")
				require.Nil(t, old.Record.Target.StuckBefore)
			})
		}
	}
}

// A version that came between two reads of one cycle was not asked about: it is not raised, and that is not worth a
// commit.
func TestBaselineOfAVersionThatJustCame(t *testing.T) {
	given := all(candidate(), func(g *given) { g.Observation.Stuck = rollout.Stuck{} })
	p := decide(t, of(given), allowed)
	require.Nil(t, p.Raise)
	require.Equal(t, "WaitingForPollers", p.Status.Conditions[0].Reason)
	require.Equal(t, "workers of "+id("v2")+" have to start", p.Status.Conditions[0].Message)
}

func unversionedWorkers(g *given) { g.listed("v2").Queues[0].Unversioned = rollout.Yes }

// TestFirstVersionNeedsNoBaseline: a first version takes traffic from no other worker and is never judged: it does not
// wait for a count.
func TestFirstVersionNeedsNoBaseline(t *testing.T) {
	given := all(candidate(), noCurrent, uncounted(false))
	require.NotNil(t, Look(of(given)).Ask().Stuck)
	require.NotNil(t, decide(t, of(given), allowed).Raise)
}

// Only a version without any ramp is a first one: a ramp at 0% waits for the count before it grows.
func TestRampAtZeroNeedsABaseline(t *testing.T) {
	given := all(candidate(), noCurrent, routes("", "v2", 0, time.Hour), desires("", "v2", 0))
	waits := decide(t, of(given, uncounted(false)), allowed)
	require.Equal(t, "baseline", waits.Row)
	require.Nil(t, waits.Raise)
	require.NotEqual(t, "baseline", decide(t, of(given, problems(0, 0)), allowed).Row)
}

func TestBaselineUnderManual(t *testing.T) {
	given := all(candidate(), strategy(v1alpha1.Manual), uncounted(false))
	require.Equal(t, "manual", Look(of(given)).Propose().Row, "a person moves traffic")
	edited := decide(t, of(given, edits("v2", "", 0)), allowed)
	require.Equal(t, "baseline", edited.Row)
	require.Nil(t, edited.Raise)
	require.Nil(t, edited.Record.Hold, "the wish waits")
	require.NotNil(t, decide(t, of(given, edits("v2", "", 0), problems(0, 0)), allowed).Raise)
}

// The workflows that were stuck before an AllAtOnce promotion with a bake are not the new version's.
func TestAllAtOnceWithABakeKeepsAHealthyBuild(t *testing.T) {
	w := newWorld(t)
	strategy(v1alpha1.AllAtOnce)(w.given)
	analysed(baked)(w.given)
	w.startV1()
	w.server.stuck.Problems, w.server.stuck.ProblemsSample = rollout.Counted(2), rollout.Sample{Candidate: 2, Workflow: "poison"}
	w.judge = canaryRule
	w.push("v2")
	w.run(5 * time.Minute)
	require.Equal(t, []string{"v2 current"}, w.server.calls)

	w.server.stuck.Problems = rollout.Counted(3)
	w.run(time.Minute)
	require.Equal(t, []string{"v2 current", "v1 current"}, w.server.calls, "one more is its own")
}

// canaryRule turns back whatever has stuck workflows, as the default policies do.
func canaryRule(p rollout.Proposal) rollout.Verdicts {
	if p.Canary != nil && p.Canary.Stuck.Candidate > 0 {
		return verdictOn(rollout.Continue, effect(rollout.RollbackEffect))(p)
	}
	return allowed(p)
}
