package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// server is a Temporal that v1 and v2 register with at nine.
func server(script v1alpha1.SimulationSpec) *temporal {
	script.PollersAfter.Duration = 0
	m := &temporal{script: script, start: nine, queue: "checkout", candidate: "v2", versions: map[string]*version{}, gates: map[string]gateRun{}}
	m.apply(nine, []v1alpha1.RecordedVersion{{BuildID: "v1"}, {BuildID: "v2"}})
	return m
}

// route makes routing calls, as somebody who knows the token.
func route(t *testing.T, m *temporal, at time.Time, steps ...rollout.RoutingStep) {
	t.Helper()
	require.NoError(t, m.call(at, rollout.RoutingCall{Basis: m.routing, Token: fmt.Append(nil, m.token), Identity: "me", Steps: steps}))
}

func current(id string) rollout.RoutingStep {
	return rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: id}
}

func ramp(id string, p float32) rollout.RoutingStep {
	return rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: id, Percentage: p}
}

// all asks for everything, with counts of what started since the routing changed last.
func all(m *temporal) rollout.Ask {
	since := m.routing.MovedAt()
	return rollout.Ask{Queues: []string{"v1", "v2"}, OpenPinned: []string{"v1", "v2", "v3"}, Stuck: &rollout.StuckAsk{Candidate: "v2", Since: since},
		Closed: []rollout.ClosedAsk{{BuildID: "v1", Since: since}, {BuildID: "v2", Since: since}}}
}

func TestRoutingKeepsItsTimes(t *testing.T) {
	m := server(v1alpha1.DefaultSimulation())
	route(t, m, nine, current("v1"))
	route(t, m, nine.Add(time.Minute), ramp("v2", 10))
	route(t, m, nine.Add(2*time.Minute), ramp("v2", 50))
	require.Equal(t, rollout.RoutingConfig{Current: "v1", CurrentChangedAt: nine, Ramping: "v2", HasRamp: true, Percentage: 50,
		RampingChangedAt: nine.Add(time.Minute), PercentageChangedAt: nine.Add(2 * time.Minute), Revision: 3}, m.routing)
	route(t, m, nine.Add(3*time.Minute), current("v2"))
	require.Equal(t, rollout.RoutingConfig{Current: "v2", CurrentChangedAt: nine.Add(3 * time.Minute), RampingChangedAt: nine.Add(3 * time.Minute),
		PercentageChangedAt: nine.Add(3 * time.Minute), Revision: 4}, m.routing)

	o := m.observe(nine.Add(4*time.Minute), all(m))
	require.Equal(t, []byte("4"), o.ConflictToken)
	require.Equal(t, "me", o.ManagerIdentity)
	v1, v2 := o.Version("v1"), o.Version("v2")
	require.Equal(t, []any{rollout.Draining, nine, nine, nine.Add(3 * time.Minute)},
		[]any{v1.Drainage, v1.FirstActivatedAt, v1.BecameCurrentAt, v1.DeactivatedAt})
	require.Equal(t, []any{rollout.Drainage(""), nine.Add(time.Minute), nine.Add(3 * time.Minute), time.Time{}},
		[]any{v2.Drainage, v2.FirstActivatedAt, v2.BecameCurrentAt, v2.DeactivatedAt})
	route(t, m, nine.Add(5*time.Minute), ramp("v1", 5), rollout.RoutingStep{Kind: rollout.ClearRamp})
	require.Equal(t, nine.Add(5*time.Minute), m.observe(nine.Add(6*time.Minute), all(m)).Versions[0].DeactivatedAt, "drains anew")

	basis := m.routing
	for name, call := range map[string]rollout.RoutingCall{
		"token":   {Basis: basis, Token: []byte("1"), Identity: "me", Steps: []rollout.RoutingStep{current("v1")}},
		"basis":   {Basis: rollout.RoutingConfig{Current: "v1"}, Token: fmt.Append(nil, m.token), Identity: "me", Steps: []rollout.RoutingStep{current("v1")}},
		"owner":   {Basis: basis, Token: fmt.Append(nil, m.token), Identity: "other", Steps: []rollout.RoutingStep{current("v1")}},
		"unknown": {Basis: basis, Token: fmt.Append(nil, m.token), Identity: "me", Steps: []rollout.RoutingStep{current("v1"), current("v9")}},
	} {
		require.Error(t, m.call(nine.Add(time.Hour), call), name)
		require.Equal(t, basis, m.routing, name)
	}
}

func TestDrainageLooksEveryThreeMinutes(t *testing.T) {
	for duration, want := range map[time.Duration]time.Duration{0: 3 * time.Minute, time.Minute: 3 * time.Minute, 3 * time.Minute: 3 * time.Minute,
		4 * time.Minute: 6 * time.Minute, time.Hour + time.Second: 63 * time.Minute} {
		script := v1alpha1.DefaultSimulation()
		script.Traffic.Duration.Duration = duration
		m := server(script)
		route(t, m, nine, current("v1"))
		left := nine.Add(10 * time.Minute)
		route(t, m, left, current("v2"))
		at := func(d time.Duration) rollout.VersionObservation { return m.observe(left.Add(d), all(m)).Versions[0] }
		require.Equal(t, rollout.Draining, at(want-1).Drainage, duration)
		require.Equal(t, left, at(want-1).DrainageChangedAt)
		require.Equal(t, rollout.Drained, at(want).Drainage, duration)
		require.Equal(t, left.Add(want), at(want+time.Hour).DrainageChangedAt)
		require.Equal(t, rollout.Counted(0), at(duration).OpenPinned, "the last workflow has ended")
		if duration > 0 {
			require.Positive(t, at(duration-1).OpenPinned.N, "it has not")
			require.Equal(t, int64(duration.Minutes()*60), at(0).OpenPinned.N)
		}
	}
}

func TestPollersAndRemoval(t *testing.T) {
	script := v1alpha1.DefaultSimulation()
	m := server(script)
	m.script.PollersAfter.Duration = 20 * time.Second
	two, zero := int32(2), int32(0)
	versions := []v1alpha1.RecordedVersion{{BuildID: "v1"}, {BuildID: "v2"}, {BuildID: "v3", Replicas: &two}}
	m.apply(nine, versions)
	require.Len(t, m.observe(nine.Add(20*time.Second-1), all(m)).Versions, 2)
	require.Equal(t, map[string]rollout.Count{"v3": rollout.Counted(0)}, m.observe(nine, all(m)).Unlisted)
	came := nine.Add(20 * time.Second)
	o := m.observe(came, rollout.Ask{Queues: []string{"v3"}})
	require.Equal(t, []rollout.TaskQueue{
		{Name: "checkout", Type: rollout.QueueActivity, Unversioned: rollout.No, Pollers: rollout.Pollers{Known: true, Count: 2, LastAccess: came}},
		{Name: "checkout", Type: rollout.QueueWorkflow, Unversioned: rollout.No, Pollers: rollout.Pollers{Known: true, Count: 2, LastAccess: came}},
	}, o.Version("v3").Queues)
	require.Empty(t, o.Version("v1").QueuesKnown, "not asked for")
	require.Equal(t, came, o.Version("v3").CreatedAt)

	went := nine.Add(time.Hour)
	versions[2].Replicas = &zero
	m.apply(went, versions)
	pollers := func(at time.Time) rollout.Pollers {
		return m.observe(at, rollout.Ask{Queues: []string{"v3"}}).Versions[2].Queues[0].Pollers
	}
	require.Equal(t, rollout.Pollers{Known: true, Count: 2, LastAccess: went}, pollers(went.Add(pollersListed-1)))
	require.Equal(t, rollout.Pollers{Known: true}, pollers(went.Add(pollersListed)))
	require.Equal(t, "it has pollers", m.remove(went.Add(pollersListed-1), "v3"))
	require.Empty(t, m.remove(went.Add(pollersListed), "v3"))
	require.Empty(t, m.remove(went.Add(pollersListed), "v3"), "gone already")

	route(t, m, went, current("v1"))
	m.apply(went, nil)
	require.Equal(t, "it is routed or draining", m.remove(went.Add(time.Hour), "v1"))
	route(t, m, went, current("v2"))
	require.Equal(t, "it is routed or draining", m.remove(went.Add(3*time.Minute-1), "v1"))
	require.Equal(t, "it has pollers", m.remove(went.Add(3*time.Minute), "v1"))

	// Files that go before their workers came leave nothing.
	m.apply(went, []v1alpha1.RecordedVersion{{BuildID: "v4"}})
	m.apply(went.Add(time.Second), nil)
	require.NotContains(t, m.versions, "v4")
}

func TestClosedWorkflowsFollowTheScript(t *testing.T) {
	script := v1alpha1.DefaultSimulation() // 60 a minute, each takes 30s
	script.Failures = []v1alpha1.SimulatedFailures{
		{Percentage: 10, From: minutes(10), To: minutes(20)}, {Percentage: 50, From: minutes(15), To: minutes(16)}, {Percentage: 100, BuildID: "v1", From: minutes(30)}}
	m := server(script)
	route(t, m, nine, current("v1"))
	closed := func(id string, after float64) []int64 {
		o := m.observe(nine.Add(minutes(after).Duration), all(m))
		c := o.Version(id).Closed
		require.True(t, c.Known)
		require.Equal(t, m.routing.MovedAt(), c.Since)
		return []int64{c.Completed, c.Failed}
	}
	require.Equal(t, []int64{0, 0}, closed("v1", 0.5))
	require.Equal(t, []int64{30, 0}, closed("v1", 1))
	route(t, m, nine.Add(5*time.Minute), ramp("v2", 50))
	require.Equal(t, []int64{0, 0}, closed("v2", 5.5), "counted since the ramp")
	require.Equal(t, []int64{135, 0}, closed("v2", 10))
	require.Equal(t, []int64{135 + 27, 3}, closed("v2", 11))
	require.Equal(t, []int64{135 + 5*27, 15}, closed("v2", 15))
	require.Equal(t, []int64{135 + 5*27 + 15, 15 + 15}, closed("v2", 16), "the later entry counts")
	require.Equal(t, []int64{135 + 9*27 + 15 + 300, 9*3 + 15}, closed("v2", 30))
	require.Equal(t, []int64{735, 0}, closed("v1", 30))
	require.Equal(t, []int64{735, 30}, closed("v1", 31))
	require.Equal(t, rollout.Stuck{Since: nine.Add(5 * time.Minute), Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)},
		m.observe(nine.Add(time.Hour), all(m)).Stuck)
}

func TestGatesTakeTheirTimeAndOutcome(t *testing.T) {
	script := v1alpha1.DefaultSimulation()
	script.Gates = []v1alpha1.SimulatedGate{{Point: "step-2", Takes: minutes(3), Outcome: v1alpha1.GateFails}, {BuildID: "v9", Outcome: v1alpha1.GateCancels}}
	m := server(script)
	state := func(g rollout.GateSpec, at time.Time) rollout.GateState {
		return m.observe(at, rollout.Ask{Gate: &g}).Gates[0].State
	}
	for _, c := range []struct {
		gate  rollout.GateSpec
		takes time.Duration
		want  rollout.GateState
	}{
		{rollout.GateSpec{Point: "first", BuildID: "v2"}, time.Minute, rollout.GateCompleted},
		{rollout.GateSpec{Point: "step-2", BuildID: "v2", Timeout: time.Hour}, 3 * time.Minute, rollout.GateFailed},
		{rollout.GateSpec{Point: "step-2", BuildID: "v2", Attempt: 2, Timeout: time.Minute}, time.Minute, rollout.GateTimedOut},
		{rollout.GateSpec{Point: "first", BuildID: "v9"}, 0, rollout.GateCanceled},
	} {
		require.Equal(t, rollout.GateMissing, state(c.gate, nine))
		m.startGate(nine, rollout.GateStart{Gate: c.gate, TaskQueue: "checkout"})
		m.startGate(nine.Add(10*time.Second), rollout.GateStart{Gate: c.gate, TaskQueue: "checkout"}) // there is one already
		if c.takes > 0 {
			require.Equal(t, rollout.GateRunning, state(c.gate, nine.Add(c.takes-1)))
		}
		require.Equal(t, c.want, state(c.gate, nine.Add(c.takes)))
	}
}

func TestOutageFailsReadsAndCalls(t *testing.T) {
	script := v1alpha1.DefaultSimulation()
	script.Outages = []v1alpha1.SimulatedOutage{{From: minutes(1), To: minutes(2)}}
	m := server(script)
	route(t, m, nine, current("v1"))
	for after, want := range map[time.Duration]bool{0: false, time.Minute - 1: false, time.Minute: true, 2*time.Minute - 1: true, 2 * time.Minute: false} {
		at := nine.Add(after)
		o := m.observe(at, all(m))
		require.Equal(t, want, o.Problem != nil, after)
		if !want {
			continue
		}
		require.Equal(t, rollout.Observation{At: at, Problem: o.Problem}, o)
		require.Error(t, m.call(at, rollout.RoutingCall{Basis: m.routing, Token: fmt.Append(nil, m.token), Identity: "me", Steps: []rollout.RoutingStep{current("v2")}}))
		m.startGate(at, rollout.GateStart{TaskQueue: "checkout"})
		require.Empty(t, m.gates)
		require.Equal(t, "Temporal is away", m.remove(at, "v2"))
	}
}

func TestNextImageHasAnotherTag(t *testing.T) {
	digest := "@sha256:5e6e9a2a04f0cd9a1f9a9ad0b0a3a1a97b3c1bfaeb4a0d3e9f8b0c1d2e3f4a5b"
	for image, want := range map[string]string{
		"app": "app:next", "app:v1": "app:v1-next", "localhost:5000/app": "localhost:5000/app:next", "localhost:5000/app:v1": "localhost:5000/app:v1-next",
		"app" + digest:    "app@sha256:6cee9e57c277d4e9df7d934f163453db96f4f7d5b038aee13f6a9a5eaa7e2fc1",
		"app:v1" + digest: "app:v1-next@sha256:6cee9e57c277d4e9df7d934f163453db96f4f7d5b038aee13f6a9a5eaa7e2fc1",
	} {
		require.Equal(t, want, nextImage(image))
	}
	spec := given(t, twoSteps).Snapshot.Spec
	next, err := withImage(spec, "app:v2")
	require.NoError(t, err)
	require.Equal(t, v1alpha1.PodTemplate{FirstImage: "app:v2", Raw: []byte(`{"spec":{"containers":[{"image":"app:v2","name":"worker"}]}}`)}, next.Spec.Template)
	require.Equal(t, "app:v1", spec.Spec.Template.FirstImage, "the one before stays")
	back, err := withImage(next, "app:v1")
	require.NoError(t, err)
	require.Equal(t, spec, back)
}
