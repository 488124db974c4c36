package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// anyInput is a worker deployment in any world, for some hours. Its rules change their mind no more often than every
// quarter of an hour.
func anyInput(t *rapid.T) Input {
	in := given(t, rapid.SampledFrom([]string{twoSteps, gated, `{strategy: AllAtOnce}`, `{strategy: Manual}`,
		`{strategy: Progressive, steps: [{rampPercentage: 0.1, pauseDuration: 1s}, {rampPercentage: 99, pauseDuration: 1h}]}`}).Draw(t, "strategy"))
	if rapid.Bool().Draw(t, "custom build ID") {
		in.Snapshot.Spec.Spec.WorkerOptions.UnsafeCustomBuildID = "mine"
	}
	if rapid.Bool().Draw(t, "approval") {
		in.Snapshot.Environment.Approval.Mode = v1alpha1.PullRequest
	}
	in.Snapshot.Spec.Spec.Sunset = v1alpha1.SunsetStrategy{ScaledownDelay: some(t, "scaledown", 30), DeleteDelay: some(t, "delete", 60)}
	w := &in.World
	w.For = minutes(float64(rapid.IntRange(1, 240).Draw(t, "for")))
	w.Interval = v1alpha1.Duration{Duration: time.Duration(rapid.SampledFrom([]int{13, 30, 60, 300}).Draw(t, "interval")) * time.Second}
	w.PollersAfter = some(t, "pollers", 20)
	w.Traffic = v1alpha1.SimulatedTraffic{WorkflowsPerMinute: rapid.SampledFrom([]float64{0, 0.5, 60, 1000}).Draw(t, "traffic"), Duration: some(t, "takes", 90)}
	w.Approvals = v1alpha1.SimulatedApprovals{Answer: rapid.SampledFrom([]v1alpha1.ApprovalAnswer{v1alpha1.AnswerApprove, v1alpha1.AnswerNone}).Draw(t, "answer"), After: some(t, "approved", 30)}
	for range rapid.IntRange(0, 2).Draw(t, "gates") {
		w.Gates = append(w.Gates, v1alpha1.SimulatedGate{Point: rapid.SampledFrom([]string{"", "first"}).Draw(t, "point"), Takes: some(t, "gate", 90),
			Outcome: rapid.SampledFrom([]v1alpha1.GateOutcome{v1alpha1.GateCompletes, v1alpha1.GateFails}).Draw(t, "outcome")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "failures") {
		from := some(t, "from", 200)
		w.Failures = append(w.Failures, v1alpha1.SimulatedFailures{Percentage: rapid.Float64Range(0, 100).Draw(t, "percentage"), From: from, To: until(t, from)})
	}
	for range rapid.IntRange(0, 2).Draw(t, "outages") {
		from := some(t, "from", 200)
		w.Outages = append(w.Outages, v1alpha1.SimulatedOutage{From: from, To: until(t, from)})
	}
	for range rapid.IntRange(0, 4).Draw(t, "pushes") {
		w.Pushes = append(w.Pushes, v1alpha1.SimulatedPush{After: some(t, "push", 300), Image: rapid.SampledFrom([]string{"app:v1", "app:v2", "app:v3"}).Draw(t, "image")})
	}
	in.Judge = anyRules(t)
	return in
}

func anyRules(t *rapid.T) rules {
	r := rules{failed: rapid.SampledFrom([]int64{0, 0, 1, 30}).Draw(t, "failed"), samples: rapid.SampledFrom([]int64{0, 1, 100}).Draw(t, "samples")}
	r.approval = rapid.SampledFrom([]rollout.ActionKind{"", rollout.Ramp, rollout.Promote, rollout.CreateVersion, rollout.ScaleDown}).Draw(t, "asked")
	if rapid.Bool().Draw(t, "freezes") {
		open, shut := time.Duration(rapid.IntRange(15, 90).Draw(t, "open"))*time.Minute, time.Duration(rapid.IntRange(15, 90).Draw(t, "shut"))*time.Minute
		r.frozen = func(at time.Time) bool { return at.Sub(nine)%(open+shut) >= open }
	}
	return r
}

// some is a duration of some seconds or minutes.
func some(t *rapid.T, label string, most int) v1alpha1.Duration {
	return v1alpha1.Duration{Duration: time.Duration(rapid.IntRange(0, most*60).Draw(t, label)) * time.Second}
}

// until is after from, or never.
func until(t *rapid.T, from v1alpha1.Duration) v1alpha1.Duration {
	if rapid.Bool().Draw(t, "forever") {
		return v1alpha1.Duration{}
	}
	return v1alpha1.Duration{Duration: from.Duration + time.Duration(rapid.IntRange(1, 7200).Draw(t, "lasts"))*time.Second}
}

// TestProperties: in any world the simulation ends, without a plan that must not be (which would be an error). It gives
// the same timetable each time, in the order of time, with traffic only for versions that have files.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		in.World.For = minutes(rapid.SampledFrom([]float64{90, 600, 5000}).Draw(t, "longer"))
		out, err := Run(context.Background(), in)
		require.NoError(t, err)
		require.Equal(t, asJSON(t, out), asJSON(t, run(t, in)))
		require.NotEmpty(t, out.Entries)
		last := nine.Add(-1)
		for _, e := range out.Entries {
			require.True(t, e.At.After(last) && !e.At.After(nine.Add(in.World.For.Duration)), e.At)
			require.Equal(t, e.After.Duration, e.At.Sub(nine))
			require.Zero(t, e.After.Duration%in.World.Interval.Duration, "a cycle")
			last = e.At
		}
		require.Equal(t, out.Outcome == rollout.OutcomeComplete, !out.CompletedAt().IsZero())
		if out.Outcome == rollout.OutcomeComplete {
			require.Equal(t, out.Target, out.Entries[len(out.Entries)-1].Routing.Current)
		}
	})
}

// TestJumpsMissNothing: the timetable is that of a bot that goes through every cycle.
func TestJumpsMissNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		jumping, stepping := newSimulation(in), newSimulation(in)
		cycles := 0
		got, err := jumping.play(context.Background(), func(ctx context.Context, at time.Time, d decision) (time.Time, bool) {
			cycles++
			return jumping.next(ctx, at, d)
		})
		require.NoError(t, err)
		want, err := stepping.play(context.Background(), func(_ context.Context, at time.Time, _ decision) (time.Time, bool) {
			cycles--
			return at.Add(in.World.Interval.Duration), true
		})
		require.NoError(t, err)
		require.Equal(t, told(want), told(got))
		require.Equal(t, asJSON(t, want.Entries), asJSON(t, got.Entries))
		require.Equal(t, want.State, got.State)
		require.LessOrEqual(t, cycles, 0, "no more cycles than there are")
	})
}
