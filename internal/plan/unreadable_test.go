package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// garbled leaves a record that cannot be read, and the one of before in history.
func garbled(g *given) {
	g.Record.LastReadable, g.Record.Routing = g.Record.Routing, nil
	g.Record.RoutingProblem = &rollout.Problem{Reason: rollout.PlanGenerationFailed, Message: "routing.yaml:3: no"}
}

// TestUnreadableRecordLowers: by the last version of a record that can be read traffic is taken back, and nothing else
// happens.
func TestUnreadableRecordLowers(t *testing.T) {
	for _, c := range []struct {
		name  string
		given change
		judge func(rollout.Proposal) rollout.Verdicts
		lower []string
		says  string
	}{
		{name: "a bar, in mid-ramp", given: all(rampsAt(10, time.Minute), barsBuild("v2")), lower: []string{"ClearRamp  0"}, says: "v2 was turned back by canary: too many failures"},
		{name: "a mark, in mid-ramp", given: all(rampsAt(10, time.Minute), func(g *given) { g.listed("v2").TurnedBack = "1 errors" }), lower: []string{"ClearRamp  0"}, says: "v2 was turned back by " + ByMark + ": errors"},
		{name: "a spec that was reverted, in mid-ramp", given: all(rampsAt(10, time.Minute), wants("v1")), lower: []string{"ClearRamp  0"}, says: "the spec asks for v1, not for v2"},
		{name: "a spec that was reverted", given: all(promoted(10*time.Minute), wants("v1")), lower: []string{"SetCurrent v1 0"}, says: "the spec asks for v1 again"},
		{name: "policy, in mid-ramp", given: rampsAt(10, time.Minute), judge: turnsBack, lower: []string{"ClearRamp  0"}, says: "says so"},
		{name: "policy, of a current version", given: promoted(10 * time.Minute), judge: turnsBack, lower: []string{"SetCurrent v1 0"}, says: "says so"},
		{name: "a step's gate", given: all(rampsAt(10, time.Minute), stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateFailed)), lower: []string{"ClearRamp  0"},
			says: "gate Smoke failed"},
		{name: "raised since", given: all(rampsAt(10, time.Minute), routes("v1", "v2", 50, time.Second))},
		{name: "lowered since", given: all(rampsAt(50, time.Minute), routes("v1", "v2", 10, time.Second))},
		{name: "an edit of before", given: all(rampsAt(50, time.Minute), edits("v1", "v2", 10))},
		{name: "a next step", given: rampsAt(10, time.Hour)},
		{name: "another build", given: asks("v2")},
		{name: "a version that may go", given: all(promoted(100*time.Hour), drained("v1", 90*time.Hour))},
		{name: "another's", given: all(rampsAt(10, time.Minute), barsBuild("v2"), foreign())},
	} {
		t.Run(c.name, func(t *testing.T) {
			judge := c.judge
			if judge == nil {
				judge = allowed
			}
			s := of(c.given, garbled)
			p := decide(t, s, judge)
			require.Empty(t, oracle.Forbidden(s, p))
			require.Equal(t, "record-unreadable", p.Row)
			require.Equal(t, c.lower, sayCall(p.Lower))
			require.Nil(t, p.Raise)
			require.Nil(t, p.Record, "the file is for a person to mend")
			require.Empty(t, p.Versions)
			require.Empty(t, p.Gates)
			require.Empty(t, p.Deletions)
			require.False(t, p.Settled)
			require.Contains(t, named(p.Summary[0]), c.says)

			s.Record.LastReadable = nil
			require.Nil(t, decide(t, s, judge).Lower, "nothing moves without any record")
		})
	}
}

// TestUnreadableRecordIsMended: what was lowered meanwhile is held once the file can be read again, and not raised.
func TestUnreadableRecordIsMended(t *testing.T) {
	s := of(rampsAt(10, time.Minute), func(g *given) {
		g.Observation.Routing.HasRamp, g.Observation.Routing.Ramping, g.Observation.Routing.Percentage = false, "", 0
	})
	p := decide(t, s, allowed)
	require.Nil(t, p.Raise)
	require.Equal(t, v1alpha1.HoldDrift, p.Record.Hold.Kind)
}

// TestTakeBackWithUnreadableRecord: a person's command goes by it, too.
func TestTakeBackWithUnreadableRecord(t *testing.T) {
	for name, c := range map[string]struct {
		given change
		lower []string
		now   string
	}{
		"in mid-ramp":       {rampsAt(10, time.Minute), []string{"ClearRamp  0"}, "current v1"},
		"a current version": {promoted(10 * time.Minute), []string{"SetCurrent v1 0"}, "current v1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(c.given, garbled)
			got, err := Look(s).DecideTakeBack(TakeBack{By: "ada", Reason: "timeouts"})
			require.NoError(t, err)
			require.Equal(t, c.lower, sayCall(got.Plan.Lower))
			require.Equal(t, c.now, named(Describe(got.Now())))
			require.NotEmpty(t, got.Plan.Lower.TurnedBack, "a mark tells the next run")
			require.Empty(t, Never(s, got.Plan))
			require.Empty(t, oracle.Forbidden(s, got.Plan))
		})
	}
}

// TestNeverMoreThanLowering: a plan that was made with a record that could be read does nothing else once it cannot.
func TestNeverMoreThanLowering(t *testing.T) {
	breaks := func(s *rollout.Snapshot) {
		s.Record.RoutingProblem, s.Record.LastReadable = &rollout.Problem{Message: "no"}, s.Record.Routing
	}
	for name, given := range map[string]change{"a raise": rampsAt(10, time.Hour), "a version": asks("v2"),
		"a gate": all(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateMissing, 1))} {
		s := of(given)
		p := decide(t, s, allowed)
		breaks(&s)
		require.NotEmpty(t, Never(s, p), name)
		require.NotEmpty(t, oracle.Forbidden(s, p), name)
	}
}
