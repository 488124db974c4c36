package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Without a record, a first version comes, and the next one after it.
func TestHealthyRolloutsCompleteInOrder(t *testing.T) {
	out := run(t, given(t, twoSteps))
	require.Equal(t, []string{
		"0s create v1 [WaitingForPollers]",
		"20s workers of v1 poll; promote v1 [WaitingForPromotion]",
		"30s RolloutComplete: v1 is the current version [RolloutComplete]",
		"50s push of app:v1-next; create v1-next [WaitingForPollers]",
		"1m10s workers of v1-next poll; ramp v1-next at 10% [Ramping]",
		"11m20s ramp v1-next at 50% [Ramping]",
		"31m30s promote v1-next [Ramping]",
		"31m40s RolloutComplete: v1-next is the current version [RolloutComplete]",
		"34m30s v1 is drained [RolloutComplete]",
		"1h34m40s scale down v1 [RolloutComplete]",
		"24h34m40s delete v1 [RolloutComplete]",
		"24h34m50s remove v1 [RolloutComplete]",
	}, told(out))
	require.Equal(t, "Complete RolloutComplete, current v1-next, ramp false at 0", ended(out))
	require.Equal(t, nine.Add(31*time.Minute+40*time.Second), out.CompletedAt())
	require.Equal(t, out.Entries[len(out.Entries)-1].Routing.Current, out.Target)
}

func TestTimetablesOfWorlds(t *testing.T) {
	push := func(after float64, image string) v1alpha1.SimulatedPush {
		return v1alpha1.SimulatedPush{After: minutes(after), Image: image}
	}
	for name, c := range map[string]struct {
		strategy string
		change   func(*Input)
		want     []string // from the first push on
		ended    string
	}{
		"failures turn it back": {twoSteps, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(5, "app:v2")}
			in.World.Failures = []v1alpha1.SimulatedFailures{{Percentage: 50, From: minutes(20)}}
			in.Judge = rules{failed: 20}
		}, []string{
			"5m push of app:v2; create v2 [WaitingForPollers]",
			"5m20s workers of v2 poll; ramp v2 at 10% [Ramping]",
			"15m30s ramp v2 at 50% [Ramping]",
			"20m 50% of the workflows of the candidate fail [Ramping]",
			// Half of 60 a minute, half of them fail: 20 after 1m20s.
			"21m20s take traffic back from v2: failures says so [RolledBack]",
			"24m20s v2 is drained [RolledBack]",
		}, "TurnedBack RolledBack, current v1, ramp false at 0"},
		"of another build they do not": {twoSteps, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(5, "app:v2")}
			in.World.Failures = []v1alpha1.SimulatedFailures{{Percentage: 50, BuildID: "other"}}
			in.World.For = minutes(20)
			in.Judge = rules{failed: 20}
		}, []string{
			"5m push of app:v2; create v2 [WaitingForPollers]",
			"5m20s workers of v2 poll; ramp v2 at 10% [Ramping]",
			"15m30s ramp v2 at 50% [Ramping]",
		}, "TimeIsUp Ramping, current v1, ramp true at 50"},
		"too few samples wait": {`{strategy: Progressive, steps: [{rampPercentage: 1, pauseDuration: 1m}]}`, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(5, "app:v2")}
			in.World.For = minutes(60)
			in.Judge = rules{samples: 10}
		}, []string{
			"5m push of app:v2; create v2 [WaitingForPollers]",
			"5m20s workers of v2 poll; ramp v2 at 1% [Ramping]",
			"6m30s PolicyHold: samples says so [PolicyHold] held by samples",
			// 0.6 a minute, each takes 30s: the tenth has closed 17m10s after the ramp.
			"22m30s promote v2 [Ramping]",
			"22m40s RolloutComplete: v2 is the current version [RolloutComplete]",
			"25m30s v1 is drained [RolloutComplete]",
		}, "Complete RolloutComplete, current v2, ramp false at 0"},
		"a freeze holds": {twoSteps, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(5, "app:v2")}
			in.World.For = minutes(40 * 60)
			from, to := nine.Add(10*time.Minute), nine.Add(33*time.Hour+17*time.Second)
			in.Judge = rules{frozen: func(t time.Time) bool { return !t.Before(from) && t.Before(to) }}
		}, []string{
			"5m push of app:v2; create v2 [WaitingForPollers]",
			"5m20s workers of v2 poll; ramp v2 at 10% [Ramping]",
			"15m30s PolicyHold: freeze says so [PolicyHold] held by freeze",
			"33h0m20s ramp v2 at 50% [Ramping]",
			"33h20m30s promote v2 [Ramping]",
			"33h20m40s RolloutComplete: v2 is the current version [RolloutComplete]",
			"33h23m30s v1 is drained [RolloutComplete]",
			"34h23m40s scale down v1 [RolloutComplete]",
		}, "Complete RolloutComplete, current v2, ramp false at 0"},
		"an outage stops it": {twoSteps, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(5, "app:v2")}
			in.World.For = minutes(45)
			in.World.Outages = []v1alpha1.SimulatedOutage{{From: minutes(10), To: minutes(22)}, {From: minutes(40)}}
		}, []string{
			"5m push of app:v2; create v2 [WaitingForPollers]",
			"5m20s workers of v2 poll; ramp v2 at 10% [Ramping]",
			"10m Temporal cannot be read; TemporalStateFetchFailed: Temporal is away (scripted) [TemporalStateFetchFailed]",
			"22m Temporal can be read again; ramp v2 at 50% [Ramping]",
			"40m Temporal cannot be read; TemporalStateFetchFailed: Temporal is away (scripted) [TemporalStateFetchFailed]",
		}, "Held TemporalStateFetchFailed, current v1, ramp true at 50"},
		"a gate fails": {gated, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(5, "app:v2")}
			in.World.Gates = []v1alpha1.SimulatedGate{{Point: "step-1", Outcome: v1alpha1.GateCompletes}, {Point: "first", Takes: minutes(2), Outcome: v1alpha1.GateFails}}
			in.World.Gates = append([]v1alpha1.SimulatedGate{{BuildID: in.target("app:v1"), Takes: minutes(1), Outcome: v1alpha1.GateCompletes}}, in.World.Gates...)
		}, []string{
			"5m push of app:v2; create v2 [WaitingForPollers]",
			"5m20s workers of v2 poll; start gate Smoke on v2 [GateRunning]",
			"7m20s gate Smoke of v2: Failed; take traffic back from v2: gate Smoke failed on task queue checkout " +
				"(workflow rampart-gate:payments/checkout:v2:first:checkout:1:ad3a152fa0c5) [RolledBack]",
		}, "TurnedBack RolledBack, current v1, ramp false at 0"},
		"people approve": {twoSteps, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(5, "app:v2")}
			in.World.Approvals.After = minutes(3)
			in.World.For = minutes(45)
			in.Judge = rules{approval: rollout.Ramp}
		}, []string{
			"5m push of app:v2; create v2 [WaitingForPollers]",
			"5m20s workers of v2 poll; AwaitingApproval: ramp v2 from 0% to 10%: approval says so [AwaitingApproval] held by approval",
			"8m20s approved: ramp v2 from 0% to 10%; ramp v2 at 10% [Ramping]",
			"18m30s AwaitingApproval: ramp v2 from 10% to 50%: approval says so [AwaitingApproval] held by approval",
			"21m30s approved: ramp v2 from 10% to 50%; ramp v2 at 50% [Ramping]",
			"41m40s promote v2 [Ramping]",
			"41m50s RolloutComplete: v2 is the current version [RolloutComplete]",
			"44m40s v1 is drained [RolloutComplete]",
		}, "Complete RolloutComplete, current v2, ramp false at 0"},
		"nobody approves": {twoSteps, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(5, "app:v2")}
			in.World.Approvals.Answer = v1alpha1.AnswerNone
			in.Snapshot.Environment.Approval.Mode = v1alpha1.PullRequest
		}, nil, "TimeIsUp AwaitingApproval, current , ramp false at 0"},
		"a revert goes back at once": {twoSteps, func(in *Input) {
			in.World.Pushes = []v1alpha1.SimulatedPush{push(50, "app:v1"), push(5, "app:v2")}
			in.World.For = minutes(60)
		}, []string{
			"5m push of app:v2; create v2 [WaitingForPollers]",
			"5m20s workers of v2 poll; ramp v2 at 10% [Ramping]",
			"15m30s ramp v2 at 50% [Ramping]",
			"35m40s promote v2 [Ramping]",
			"35m50s RolloutComplete: v2 is the current version [RolloutComplete]",
			"38m40s v1 is drained [RolloutComplete]",
			"50m push of app:v1; roll back to v1: the spec asks for v1 again, which was current before v2 [WaitingForPromotion]",
			"50m10s RolloutComplete: v1 is the current version [RolloutComplete]",
			"53m v2 is drained [RolloutComplete]",
		}, "Complete RolloutComplete, current v1, ramp false at 0"},
		"workers that never come": {twoSteps, func(in *Input) {
			in.World.PollersAfter = minutes(30 * 24 * 60)
			in.World.For = minutes(60)
		}, nil, "TimeIsUp WaitingForPollers, current , ramp false at 0"},
		"a person promotes": {`{strategy: Manual}`, func(*Input) {}, nil, "Held WaitingForPromotion, current , ramp false at 0"},
		"a custom build ID": {twoSteps, func(in *Input) {
			in.Snapshot.Spec.Spec.WorkerOptions.UnsafeCustomBuildID = "mine"
		}, nil, "Complete RolloutComplete, current mine, ramp false at 0"},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(t, c.strategy)
			c.change(&in)
			out := run(t, in)
			require.Equal(t, c.ended, ended(out), told(out))
			got := told(out)
			if c.want != nil {
				require.GreaterOrEqual(t, len(got), len(c.want))
				require.Equal(t, c.want, got[len(got)-len(c.want):])
			}
			require.Equal(t, asJSON(t, out), asJSON(t, run(t, in)), "twice the same")
		})
	}
}

// target is the build ID of an image.
func (in Input) target(image string) string {
	spec, err := withImage(in.Snapshot.Spec, image)
	if err != nil {
		return ""
	}
	id, _ := rollout.BuildIDFor(spec.Spec, nil)
	return id
}

// recorded is what Git has at some time of a simulation, and the spec as it is then.
func recorded(t *testing.T, in Input, after time.Duration) Input {
	t.Helper()
	in.World.For = v1alpha1.Duration{Duration: after}
	s := newSimulation(in)
	_, err := s.play(t.Context(), s.next)
	require.NoError(t, err)
	in.World.At, in.World.For = v1alpha1.NewTime(s.end), v1alpha1.Duration{Duration: v1alpha1.DefaultSimulationFor}
	in.Snapshot.Record, in.Snapshot.Spec, in.World.Pushes = s.snapshot.Record, s.snapshot.Spec, nil
	return in
}

// A rollout goes on from where the record says that it stands.
func TestFromRecord(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  []string
	}{
		// Just committed, and not known to be made: taken as made.
		"ramping": {11*time.Minute + 20*time.Second, []string{
			"0s  [Ramping]",
			"20m10s promote v1-next [Ramping]",
			"20m20s RolloutComplete: v1-next is the current version [RolloutComplete]",
			"23m10s v1 is drained [RolloutComplete]",
			"1h23m20s scale down v1 [RolloutComplete]",
			"24h23m20s delete v1 [RolloutComplete]",
			"24h23m30s remove v1 [RolloutComplete]",
		}},
		"draining": {32 * time.Minute, []string{
			"0s push of app:v1-next-next; create v1-next-next [WaitingForPollers]",
			"20s workers of v1-next-next poll; ramp v1-next-next at 10% [Ramping]",
			"2m30s v1 is drained [Ramping]",
			"10m30s ramp v1-next-next at 50% [Ramping]",
			"30m40s promote v1-next-next [Ramping]",
			"30m50s RolloutComplete: v1-next-next is the current version [RolloutComplete]",
			"33m40s v1-next is drained [RolloutComplete]",
			"1h2m40s scale down v1 [RolloutComplete]",
			"1h33m50s scale down v1-next [RolloutComplete]",
			"24h2m40s delete v1 [RolloutComplete]",
			"24h2m50s remove v1 [RolloutComplete]",
			"24h33m50s delete v1-next [RolloutComplete]",
			"24h34m remove v1-next [RolloutComplete]",
		}},
		"scaled down": {2 * time.Hour, []string{
			"0s push of app:v1-next-next; create v1-next-next [WaitingForPollers]",
			"20s workers of v1-next-next poll; ramp v1-next-next at 10% [Ramping]",
			"10m30s ramp v1-next-next at 50% [Ramping]",
			"30m40s promote v1-next-next [Ramping]",
			"30m50s RolloutComplete: v1-next-next is the current version [RolloutComplete]",
			"33m40s v1-next is drained [RolloutComplete]",
			"1h33m50s scale down v1-next [RolloutComplete]",
			"22h34m40s delete v1 [RolloutComplete]",
			"22h34m50s remove v1 [RolloutComplete]",
			"24h33m50s delete v1-next [RolloutComplete]",
			"24h34m remove v1-next [RolloutComplete]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := recorded(t, given(t, twoSteps), c.after)
			before := asJSON(t, in.Snapshot)
			require.Equal(t, c.want, told(run(t, in)))
			require.Equal(t, before, asJSON(t, in.Snapshot), "nothing that was given is changed")
		})
	}
}

// A pause, and people's time to answer, go on from when they began; what ended before the start ends with it.
func TestUnderWay(t *testing.T) {
	asked := given(t, twoSteps)
	asked.Judge = rules{approval: rollout.Promote}
	for name, c := range map[string]struct {
		in         Input
		begun, ago time.Duration // how long the rollout goes on until the record is taken, and how long ago that was
		want       string
	}{
		"a pause":                  {given(t, twoSteps), 11*time.Minute + 20*time.Second, 6 * time.Minute, "14m10s promote v1-next [Ramping]"},
		"a pause that is over":     {given(t, twoSteps), 11*time.Minute + 20*time.Second, time.Hour, "0s promote v1-next [Ramping]"},
		"an approval":              {asked, 41*time.Minute + 40*time.Second, 4 * time.Minute, "5m50s approved: the last step is done; promote v1-next [Ramping]"},
		"an approval that is late": {asked, 41*time.Minute + 40*time.Second, time.Hour, "10s approved: the last step is done; promote v1-next [Ramping]"},
	} {
		t.Run(name, func(t *testing.T) {
			in := recorded(t, c.in, c.begun)
			in.World.At = v1alpha1.NewTime(in.World.At.Add(c.ago))
			require.Contains(t, told(run(t, in)), c.want)
		})
	}
}

func TestSimulationThatCannotBeginIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"no spec":    {func(in *Input) { in.Snapshot.Spec = nil }, "simulate payments/checkout: its spec is gone from Git: there is nothing to roll out"},
		"no time":    {func(in *Input) { in.World.At = v1alpha1.Time{} }, "simulate payments/checkout: the time to begin at is missing"},
		"a problem":  {func(in *Input) { in.Snapshot.Problems = []rollout.Problem{{Message: "a.yaml:1: broken"}} }, "simulate payments/checkout: a.yaml:1: broken"},
		"unreadable": {func(in *Input) { in.Snapshot.Record.RoutingProblem = &rollout.Problem{Message: "mend it"} }, "simulate payments/checkout: mend it"},
		"no container": {func(in *Input) {
			in.Snapshot.Spec.Spec.Template.Raw = []byte(`{"spec":{}}`)
			in.World.Pushes = []v1alpha1.SimulatedPush{{Image: "app:v2"}}
		}, "simulate payments/checkout: after 0s: push app:v2: the pod template has no container"},
		"the past": {func(in *Input) {
			*in = recorded(t, *in, time.Hour)
			in.World.At = v1alpha1.NewTime(nine)
		}, "simulate payments/checkout: it cannot begin at 2026-03-02T09:00:00Z: the record in Git has times up to 2026-03-02T09:31:30Z: begin at that time or later"},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(t, twoSteps)
			c.change(&in)
			_, err := Run(t.Context(), in)
			require.EqualError(t, err, c.want)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, given(t, twoSteps))
	require.ErrorIs(t, err, context.Canceled)
}

// A policy that changes its mind in every cycle ends the simulation, not the patience.
func TestChangingVerdictsEndTheSimulation(t *testing.T) {
	in := given(t, twoSteps)
	for i := range 100 {
		in.World.Pushes = append(in.World.Pushes, v1alpha1.SimulatedPush{After: minutes(float64(i)), Image: []string{"app:v2", "app:v3"}[i%2]})
	}
	in.Judge = flipping{}
	_, err := Run(t.Context(), in)
	require.ErrorIs(t, err, ErrRestless)
}

// flipping holds what is created in every other cycle with other words, which are committed.
type flipping struct{ rules }

func (f flipping) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	out := f.rules.Judge(ctx, s, p)
	for id := range out.Actions {
		rule := []string{"tick", "tock"}[s.Now.Unix()/10%2]
		out.Actions[id] = verdict(rollout.HoldEffect, rule)
	}
	return out
}

// requires holds what raises unless a fact of the bot's own is fresh, as a policy with facts.require does.
type requires struct{ rules }

func (r requires) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	v := r.rules.Judge(ctx, s, p)
	for _, a := range p.Actions {
		if a.Raises() && !s.Facts["bundle.org"].Fresh(s.Now) {
			v.Actions[a.ID] = rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{{Package: "rampart.rollout", Rule: "org.fresh",
				Effect: rollout.HoldEffect, Message: "the bundle is not known"}}}
		}
	}
	return v
}

// What the bot knows by itself it goes on knowing, however long a simulation lasts; what it does not know does not
// come.
func TestFactsOfTheBotsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		fact rollout.Fact
		want rollout.Outcome
	}{
		"known":     {rollout.Fact{Value: []byte(`"r1"`), ObservedAt: nine, MaxAge: time.Second}, rollout.OutcomeComplete},
		"not known": {rollout.Fact{Error: "no answer", MaxAge: time.Hour}, rollout.OutcomeTimeIsUp},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(t, twoSteps)
			in.Judge = requires{}
			in.Snapshot.Facts = map[string]rollout.Fact{"bundle.org": c.fact}
			got, err := Run(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, c.want, got.Outcome)
		})
	}
}
