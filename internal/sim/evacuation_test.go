package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func hours(n float64) v1alpha1.Duration { return minutes(60 * n) }

// Workflows that stay are freed by batch jobs that take their time; what wants approval is approved in routing.yaml.
func TestEvacuationTakesItsTimeAndApprovals(t *testing.T) {
	stages := func(e v1alpha1.Evacuation) func(*Input) {
		return func(in *Input) {
			in.Snapshot.Spec.Spec.Sunset.Evacuate = &e
			in.World.Pushes = []v1alpha1.SimulatedPush{{After: minutes(5), Image: "app:v2"}}
			in.World.Traffic = v1alpha1.SimulatedTraffic{WorkflowsPerMinute: 1, Duration: hours(1000)}
		}
	}
	cancels := v1alpha1.Evacuation{CancelAfter: hours(1), TerminateAfter: hours(2)}
	for name, c := range map[string]struct {
		stages v1alpha1.Evacuation
		script []v1alpha1.SimulatedEvacuation
		answer v1alpha1.ApprovalAnswer
		want   []string // from the end of the rollout on
	}{
		"cancelled": {cancels, nil, v1alpha1.AnswerApprove, []string{
			"1h5m20s cancel workflows on v1 [RolloutComplete]",
			"1h10m20s batch job Cancel of v1: Completed; cancel workflows on v1: Completed, 59 940 of 59 940 workflows [RolloutComplete]",
			"1h11m20s v1 is drained [RolloutComplete]",
			"2h11m30s scale down v1 [RolloutComplete]",
			"25h11m30s delete v1 [RolloutComplete]",
			"25h11m40s remove v1 [RolloutComplete]",
		}},
		"some do not heed it, and are terminated": {cancels,
			[]v1alpha1.SimulatedEvacuation{{Stage: v1alpha1.EvacuateByCancel, Takes: minutes(30), Frees: 90, Outcome: v1alpha1.BatchCompletes}}, v1alpha1.AnswerApprove, []string{
				"1h5m20s cancel workflows on v1 [RolloutComplete]",
				"1h35m20s batch job Cancel of v1: Completed; cancel workflows on v1: Completed, 59 940 of 59 940 workflows [RolloutComplete]",
				"2h5m30s propose to terminate workflows on v1 [RolloutComplete] held by evacuation.approval",
				"2h15m30s approved: the workflows that stay on v1, which has had no traffic since 2026-03-02T09:05:20Z, are terminated; terminate workflows on v1 [RolloutComplete]",
				"2h20m30s batch job Terminate of v1: Completed; terminate workflows on v1: Completed, 5 986 of 5 986 workflows [RolloutComplete]",
				"2h23m20s v1 is drained [RolloutComplete]",
				"3h23m30s scale down v1 [RolloutComplete]",
				"26h23m30s delete v1 [RolloutComplete]",
				"26h23m40s remove v1 [RolloutComplete]",
			}},
		"a job fails, and nobody answers": {cancels, []v1alpha1.SimulatedEvacuation{
			{BuildID: "another", Frees: 100, Outcome: v1alpha1.BatchCompletes}, {Takes: minutes(1), Frees: 100, Outcome: v1alpha1.BatchFails}}, v1alpha1.AnswerNone, []string{
			"1h5m20s cancel workflows on v1 [RolloutComplete]",
			"1h6m20s batch job Cancel of v1: Failed; cancel workflows on v1: Failed, 0 of 59 940 workflows [RolloutComplete]",
			"2h5m30s propose to terminate workflows on v1 [RolloutComplete] held by evacuation.approval",
		}},
		"moved": {v1alpha1.Evacuation{MoveTo: &v1alpha1.EvacuationMove{Target: "Current", After: hours(1)}}, nil, v1alpha1.AnswerApprove, []string{
			"1h5m20s propose to move workflows from v1 to v2 [RolloutComplete] held by evacuation.approval",
			"1h15m20s approved: the workflows that stay on v1, which has had no traffic since 2026-03-02T09:05:20Z, are moved to v2; move workflows from v1 to v2 [RolloutComplete]",
			"1h20m20s batch job Move of v1: Completed; v1 is drained; move workflows from v1 to v2: Completed, 59 930 of 59 930 workflows [RolloutComplete]",
			"2h20m30s scale down v1 [RolloutComplete]",
			"25h20m30s delete v1 [RolloutComplete]",
			"25h20m40s remove v1 [RolloutComplete]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(t, `{strategy: AllAtOnce}`)
			stages(c.stages)(&in)
			in.World.Evacuations, in.World.Approvals.Answer, in.World.For = c.script, c.answer, v1alpha1.Duration{Duration: 48 * time.Hour}
			before := asJSON(t, in)
			out := run(t, in)
			got := told(out)
			require.Equal(t, c.want, got[min(6, len(got)):])
			require.Equal(t, before, asJSON(t, in), "nothing that was given is changed")
			require.Equal(t, asJSON(t, out), asJSON(t, run(t, in)))
		})
	}
}

// A batch job reaches one workflow after the other, and its version is left by as many.
func TestBatchProgress(t *testing.T) {
	in := given(t, twoSteps)
	in.World.Traffic = v1alpha1.SimulatedTraffic{WorkflowsPerMinute: 1, Duration: minutes(1000)}
	in.World.Evacuations = []v1alpha1.SimulatedEvacuation{{Takes: minutes(10), Frees: 50, Outcome: v1alpha1.BatchCompletes}}
	m := newTemporal(in)
	left := nine.Add(-time.Minute)
	m.versions["v1"] = &version{VersionObservation: rollout.VersionObservation{BuildID: "v1", CreatedAt: left, DeactivatedAt: left}, share: 100}
	m.startBatch(nine, rollout.BatchStart{BuildID: "v1", Job: rollout.Evacuation{Stage: v1alpha1.EvacuateByCancel, JobID: "a"}})
	m.startBatch(nine, rollout.BatchStart{BuildID: "v1", Job: rollout.Evacuation{Stage: v1alpha1.EvacuateByTermination, JobID: "b"}}) // one at a time
	for _, c := range []struct {
		after float64
		job   rollout.BatchJob
		open  int64
	}{
		{0, rollout.BatchJob{JobID: "a", State: rollout.BatchRunning, Total: 999, StartedAt: nine}, 999},
		{5, rollout.BatchJob{JobID: "a", State: rollout.BatchRunning, Total: 999, Done: 499, StartedAt: nine}, 745},
		{10, rollout.BatchJob{JobID: "a", State: rollout.BatchCompleted, Total: 999, Done: 999, StartedAt: nine, EndedAt: nine.Add(10 * time.Minute)}, 494},
	} {
		at := nine.Add(minutes(c.after).Duration)
		o := m.observe(at, rollout.Ask{Batches: []rollout.BatchAsk{{BuildID: "v1", JobID: "a"}, {BuildID: "v1", JobID: "b"}}})
		require.Equal(t, rollout.Batches{Jobs: []rollout.BatchJob{c.job, {JobID: "b", State: rollout.BatchMissing}}, OthersRun: rollout.No}, o.Batches)
		require.Equal(t, rollout.Counted(c.open), o.Version("v1").OpenPinned)
	}
	other := m.observe(nine, rollout.Ask{Batches: []rollout.BatchAsk{{BuildID: "v1", JobID: "b"}}}).Batches
	require.Equal(t, []any{rollout.Yes, "a"}, []any{other.OthersRun, other.Other})
}

// Metrics are what the script says of them, by name and time; 0 where it says nothing.
func TestMetricsAreWhatTheScriptSays(t *testing.T) {
	in := given(t, `{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 10m}], analysis: {window: 1m, minSamples: 1, `+
		`metrics: [{name: errors, maxAge: 1m, prometheus: {query: errors}}, {name: latency, maxAge: 1m, prometheus: {query: latency}}]}}`)
	in.World.Pushes = []v1alpha1.SimulatedPush{{After: minutes(5), Image: "app:v2"}}
	value := 0.5
	in.World.Metrics = []v1alpha1.SimulatedMetric{{Name: "errors", From: minutes(10), To: minutes(30)}, {Name: "latency", Value: &value, From: minutes(20)}}
	var seen []string
	in.Judge = watching{&seen}
	require.Equal(t, []string{
		"5m push of app:v2; create v2 [WaitingForPollers]",
		"5m20s workers of v2 poll; ramp v2 at 10% [Ramping]",
		"10m metric errors cannot be read [Ramping]",
		"15m30s StaleFacts: metric errors could not be read: it cannot be read (scripted) [StaleFacts]",
		"20m metric latency is 0.5 [StaleFacts]",
		"30m metric errors is 0; promote v2 [Ramping]",
		"30m10s RolloutComplete: v2 is the current version [RolloutComplete]",
		"33m v1 is drained [RolloutComplete]",
		"1h33m10s scale down v1 [RolloutComplete]",
		"24h33m10s delete v1 [RolloutComplete]",
		"24h33m20s remove v1 [RolloutComplete]",
	}, told(run(t, in))[3:])
	require.Contains(t, seen, "errors=0 latency=0.5")
	require.Contains(t, seen, "errors= latency=0.5")
}

// watching notes the metrics that it is asked with.
type watching struct{ seen *[]string }

func (w watching) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	*w.seen = append(*w.seen, fmt.Sprintf("errors=%s latency=%s", s.Facts["errors"].Value, s.Facts["latency"].Value))
	return rules{}.Judge(ctx, s, p)
}
