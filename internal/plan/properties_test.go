package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestProperties lets people, servers and clocks do what they like, and checks each plan with the oracle. Whatever happened, the
// bot comes to rest when the world does.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom([]string{"nothing", "current", "ramping", "promoted", "stranded"}).Draw(t, "start")
		w := map[string]func(require.TestingT) *world{"nothing": newWorld, "current": currentV1, "ramping": rampingV2, "promoted": currentV2, "stranded": strandedOnV1}[start](t)
		w.after = func(s rollout.Snapshot, p rollout.Plan) {
			require.Empty(t, oracle.Forbidden(s, p), "row %s, record %+v", p.Row, s.Record.Routing)
			again(t, w, s, p)
			heldBack(t, s)
		}
		for range rapid.IntRange(5, 40).Draw(t, "events") {
			event(t, w)
			w.cycle()
			w.pods()
			w.server.tick(rapid.SampledFrom([]time.Duration{0, 10 * time.Second, time.Minute, 11 * time.Minute, 2 * time.Hour, 26 * time.Hour}).Draw(t, "pass"))
			w.pods()
		}
		w.dies, w.refusePush = "", false
		w.settle()
		require.Zero(t, w.server.jobs.again, "a batch job is started twice")
	})
}

// again: the same snapshot gives the same plan, also one that was written to a file.
func again(t *rapid.T, w *world, s rollout.Snapshot, p rollout.Plan) {
	var read rollout.Snapshot
	clone(t, s, &read)
	proposal := Propose(read)
	ids := map[string]bool{}
	for _, a := range proposal.Actions {
		require.False(t, ids[a.ID], "two actions %s", a.ID)
		ids[a.ID] = true
	}
	var carried rollout.Proposal
	clone(t, proposal, &carried)
	want, err := json.Marshal(p)
	require.NoError(t, err)
	got, err := json.Marshal(Resolve(read, carried, w.judge(proposal)))
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

// heldBack: policy that holds everything lets nothing be raised, created or removed; that wants approval, nothing be raised.
func heldBack(t *rapid.T, s rollout.Snapshot) {
	for _, e := range []rollout.Effect{rollout.HoldEffect, ""} {
		p := Propose(s)
		v := rollout.Verdicts{Actions: map[string]rollout.Verdict{}}
		for _, a := range p.Actions {
			v.Actions[a.ID] = rollout.Verdict{Effect: e}
		}
		plan := Resolve(s, p, v)
		require.Nil(t, plan.Raise)
		require.Empty(t, plan.Gates)
		require.Empty(t, plan.Deletions)
		require.Empty(t, plan.Batches)
		require.False(t, plan.SecondRead)
		for _, w := range plan.Versions {
			require.Contains(t, []rollout.WriteOp{rollout.EditVersion, rollout.RestoreFiles}, w.Op)
			restored := slices.ContainsFunc(plan.Actions, func(a rollout.Action) bool { return a.Kind == rollout.Restore && a.BuildID == w.BuildID })
			require.True(t, restored || len(w.Resources) == 0, "objects change though policy holds")
			require.Equal(t, v1alpha1.GuardOn, w.Guard)
		}
		lowered := Resolve(s, p, allowed(p)).Lower
		require.True(t, lowered == nil || plan.Lower != nil || slices.ContainsFunc(p.Actions, func(a rollout.Action) bool {
			return a.Drift != nil && a.Drift.Kind == rollout.DriftRouting // a revert is policy's answer
		}), "a retreat is held")
	}
}

// event is one thing that happens.
func event(t *rapid.T, w *world) {
	events := map[string]func(){
		"push": func() { w.push(tag(t)) },
		"custom build ID": func() {
			w.spec().WorkerOptions.UnsafeCustomBuildID = rapid.SampledFrom([]string{"", "mine", id("v2")}).Draw(t, "custom")
		},
		"strategy": func() {
			w.spec().Rollout = steady().Spec.Spec.Rollout
			strategy(rapid.SampledFrom([]v1alpha1.RolloutKind{v1alpha1.Progressive, v1alpha1.AllAtOnce, v1alpha1.Manual}).Draw(t, "strategy"))(w.given)
		},
		"steps": func() {
			strategy(v1alpha1.Progressive)(w.given)
			steps(rapid.SampledFrom(someSteps()).Draw(t, "steps")...)(w.given)
		},
		"gate": func() {
			gate(rapid.SampledFrom([]v1alpha1.OnGateFailure{v1alpha1.GateHold, v1alpha1.GateRollback}).Draw(t, "answer"))(w.given)
		},
		"gates end": func() { endGates(t, w) },
		"pools": func() {
			w.spec().Pools = rapid.SampledFrom([][]v1alpha1.Pool{nil, {{Name: "activities", Replicas: replicas(3), Template: template("a1")}},
				{{Name: "activities", Template: template("a2")}, {Name: "slow", Replicas: replicas(0), Template: template("s1")}}}).Draw(t, "pools")
		},
		"replicas": func() {
			w.spec().Replicas = rapid.SampledFrom([]*int32{nil, replicas(0), replicas(3)}).Draw(t, "replicas")
		},
		"connection": func() {
			w.given.Connection = rapid.SampledFrom([]*v1alpha1.Connection{nil, steady().Connection, other()}).Draw(t, "connection")
		},
		"invalid":   func() { w.given.Spec.Kind = v1alpha1.KindTemporalWorkerDeployment },
		"templates": func() { changeTemplates(t, w) },
		"server":    func() { w.server.down = rapid.Bool().Draw(t, "down") },
		"lie": func() {
			w.server.lies = rapid.SampledFrom(lies(rapid.SampledFrom(tags()).Draw(t, "about"))).Draw(t, "lie")
		},
		"owner":    func() { w.server.manager = rapid.SampledFrom([]string{"", owner, "someone/else"}).Draw(t, "owner") },
		"outside":  func() { outside(t, w) },
		"edit":     func() { editAnything(t, w) },
		"verdicts": func() { w.judge = rapid.SampledFrom(judges()).Draw(t, "verdicts") },
		"die": func() {
			w.dies = rapid.SampledFrom([]site{beforeLower, afterLower, afterDelete, afterCommit}).Draw(t, "site")
		},
		"push race":   func() { w.refusePush = true },
		"lost mark":   func() { w.noMarks = rapid.Bool().Draw(t, "lost") },
		"workers go":  func() { w.server.poll(id(tag(t)), false) },
		"workflows":   func() { openWorkflows(t, w) },
		"evacuation":  func() { evacuateEvents(t, w) },
		"answers":     func() { answerProposals(t, w) },
		"nothing new": func() {},
	}
	events[rapid.SampledFrom(sortedKeys(events)).Draw(t, "event")]()
}

func tags() []string         { return []string{"v1", "v2", "v3"} }
func tag(t *rapid.T) string  { return rapid.SampledFrom(tags()).Draw(t, "tag") }
func someSteps() [][]float64 { return [][]float64{{10, 50}, {0.1, 0.2, 30}, {99}, {5, 25, 75}} }
func other() *v1alpha1.Connection {
	c := steady().Connection
	c.Spec.HostPort = "elsewhere:7233"
	return c
}

func endGates(t *rapid.T, w *world) {
	state := rapid.SampledFrom([]rollout.GateState{rollout.GateCompleted, rollout.GateFailed, rollout.GateUnread}).Draw(t, "end")
	for _, g := range sortedKeys(w.server.gates) {
		w.server.gates[g] = state
	}
}

func openWorkflows(t *rapid.T, w *world) {
	if v := w.server.versions[id(tag(t))]; v != nil {
		v.open = rapid.Int64Range(0, 1).Draw(t, "open")
	}
}

func outside(t *rapid.T, w *world) {
	step := rollout.RoutingStep{Kind: rapid.SampledFrom([]rollout.RoutingStepKind{rollout.SetCurrent, rollout.SetRamp, rollout.ClearRamp}).Draw(t, "move")}
	if step.Kind != rollout.ClearRamp {
		step.BuildID = id(tag(t))
		step.Percentage = rapid.SampledFrom([]float32{0, 0.1, 5, 30, 99, 100}).Draw(t, "percentage")
	}
	_ = w.server.move(step) // what the server refuses is not done
}

func editAnything(t *rapid.T, w *world) {
	if w.record().Routing == nil {
		return
	}
	w.edit(func(r *v1alpha1.RoutingSpec) {
		switch rapid.SampledFrom([]string{"ramp", "current", "no ramp", "resume", "retry", "hold", "release", "retire", "retire one", "unretire"}).Draw(t, "edit") {
		case "ramp":
			r.Desired.Ramping = &v1alpha1.DesiredRamp{BuildID: id(tag(t)), Percentage: rapid.SampledFrom([]float64{0, 0.1, 5, 30, 100}).Draw(t, "to")}
		case "current":
			r.Desired.Current = rapid.SampledFrom([]string{id("v1"), id("v2"), id("v3"), ""}).Draw(t, "to")
		case "no ramp":
			r.Desired.Ramping = nil
		case "resume":
			r.Hold = nil
		case "retry":
			r.Bars = nil
		case "retire":
			r.Retire = &v1alpha1.Retire{Current: rapid.SampledFrom([]v1alpha1.RetireCurrent{v1alpha1.KeepCurrent, v1alpha1.UnrouteProven,
				v1alpha1.UnrouteAnyway}).Draw(t, "current"), By: "ada", At: stamp(w.server.now)}
		case "retire one":
			if ver := find(r.Versions, id(tag(t))); ver != nil {
				ver.Retire = &v1alpha1.Asked{By: "ada", At: stamp(w.server.now)}
			}
		case "unretire":
			r.Retire = nil
		case "release":
			r.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldReleased, By: "ada", Reason: "lunch", At: stamp(w.server.now)}
		case "hold":
			r.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, By: "ada", Reason: "lunch", At: stamp(w.server.now)}
		}
	})
}

func judges() []func(rollout.Proposal) rollout.Verdicts {
	drift := func(a rollout.DriftAnswer) func(rollout.Proposal) rollout.Verdicts {
		return verdictOn(rollout.DriftAction, rollout.Verdict{Effect: rollout.Allow, Drift: a})
	}
	return []func(rollout.Proposal) rollout.Verdicts{
		allowed, turnsBack, drift(rollout.DriftHold), drift(rollout.DriftAdopt), drift(rollout.DriftRevert),
		verdictOn(rollout.Ramp, effect(rollout.RequireApproval)), verdictOn(rollout.Ramp, effect(rollout.HoldEffect)),
		verdictOn(rollout.ScaleDown, effect(rollout.HoldEffect)), verdictOn(rollout.Continue, effect(rollout.RollbackEffect)),
		func(rollout.Proposal) rollout.Verdicts { return rollout.Verdicts{} },
	}
}

// lies are what a server may get wrong about a version.
func lies(tag string) [][]func(*rollout.Observation) {
	about := func(change func(*rollout.VersionObservation)) func(*rollout.Observation) {
		return func(o *rollout.Observation) {
			if v := o.Version(id(tag)); v != nil {
				change(v)
			}
		}
	}
	return [][]func(*rollout.Observation){
		nil,
		{func(o *rollout.Observation) {
			*o = rollout.Observation{At: o.At, Exists: rollout.No, Unlisted: o.Unlisted}
		}},
		{func(o *rollout.Observation) {
			o.Versions = slices.DeleteFunc(o.Versions, func(v rollout.VersionObservation) bool { return v.BuildID == id(tag) })
		}},
		{func(o *rollout.Observation) {
			o.Versions = slices.DeleteFunc(o.Versions, func(v rollout.VersionObservation) bool { return v.BuildID == id(tag) })
			o.Unlisted = map[string]rollout.Count{id(tag): rollout.Counted(1)}
		}},
		{about(func(v *rollout.VersionObservation) { v.Drainage = "" })},
		{about(func(v *rollout.VersionObservation) { v.Drainage, v.DrainageChangedAt = rollout.Drained, time.Time{} })},
		{about(func(v *rollout.VersionObservation) { v.OpenPinned = rollout.Count{Reason: "visibility is away"} })},
		{about(func(v *rollout.VersionObservation) { v.Queues, v.QueuesKnown = nil, "" })},
		{about(func(v *rollout.VersionObservation) { v.Queues = []rollout.TaskQueue{} })},
		{about(func(v *rollout.VersionObservation) {
			v.FirstActivatedAt, v.BecameCurrentAt, v.DeactivatedAt = time.Time{}, time.Time{}, time.Time{}
		})},
		{func(o *rollout.Observation) {
			o.Routing.CurrentChangedAt, o.Routing.PercentageChangedAt = time.Time{}, time.Time{}
		}},
		{func(o *rollout.Observation) { o.At = o.At.Add(-2 * time.Minute) }},
		{func(o *rollout.Observation) { o.Unlisted = nil }},
	}
}

// TestOddSnapshots: what no bot wrote and no server said leads to no panic, and to nothing that must not be.
func TestOddSnapshots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := of(rapid.SampledFrom([]change{none, candidate(), rampsAt(10, time.Hour), promoted(time.Minute), inactive(time.Hour),
			all(rampsAt(10, time.Hour), templates(tmpl("hpa"), tmpl("pdb", v1alpha1.StateCurrent)), carries("v1", "pdb"))}).Draw(t, "start"))
		var fields map[string]any
		data, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &fields))
		for range rapid.IntRange(1, 6).Draw(t, "cuts") {
			cut(t, fields)
		}
		data, err = json.Marshal(fields)
		require.NoError(t, err)
		var odd rollout.Snapshot
		if json.Unmarshal(data, &odd) != nil {
			t.Skip("no snapshot")
		}
		_ = Ask(odd)
		p := Propose(odd)
		plan := Resolve(odd, p, allowed(p))
		require.Empty(t, Never(odd, plan), "%s", fmt.Sprint(plan.Row))
	})
}

// cut takes a random field out of a random object.
func cut(t *rapid.T, in map[string]any) {
	for {
		key := rapid.SampledFrom(sortedKeys(in)).Draw(t, "field")
		var next map[string]any
		switch v := in[key].(type) {
		case map[string]any:
			next = v
		case []any:
			if len(v) > 0 {
				next, _ = v[rapid.IntRange(0, len(v)-1).Draw(t, "item")].(map[string]any)
			}
		}
		if len(next) == 0 || rapid.IntRange(0, 3).Draw(t, "here") == 0 {
			delete(in, key)
			return
		}
		in = next
	}
}
