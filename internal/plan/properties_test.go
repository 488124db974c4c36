package plan

import (
	"encoding/json"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const checksFlag = "rapid.checks" // how many worlds, of each start

// TestProperties lets people, servers and clocks do what they like, and lets the bot die between any two writes. It
// checks each plan with the oracle, and whatever happened, the bot comes to rest when the world does. A long run also
// shows that the worlds get everywhere: see tally.
func TestProperties(t *testing.T) {
	gc := debug.SetGCPercent(1600) // many small objects, which do not live long
	t.Cleanup(func() { debug.SetGCPercent(gc) })
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == checksFlag })
	if checks := flag.Lookup(checksFlag); !given {
		require.NoError(t, checks.Value.Set("15"))
		t.Cleanup(func() { require.NoError(t, checks.Value.Set(checks.DefValue)) })
	}
	seen := newTally()
	t.Cleanup(func() { seen.check(t) })
	all := starts(t)
	for i, name := range sortedKeys(all) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				rapid.SliceOfN(rapid.Byte(), i, i).Draw(t, "other events than from another start")
				play(t, all[name].copy(t), seen)
			})
		})
	}
}

func everything(rollout.Plan) bool    { return true }
func nothing(rollout.Plan) bool       { return false }
func nothingRare(p rollout.Plan) bool { return !slices.ContainsFunc(p.Actions, rare) }

func rare(a rollout.Action) bool {
	return slices.Contains([]rollout.ActionKind{rollout.Rollback, rollout.Unroute, rollout.DriftAction, rollout.SetAsideKind, rollout.Restore,
		rollout.DeleteVersion, rollout.SignalWorkflows, rollout.MoveWorkflows, rollout.CancelWorkflows, rollout.TerminateWorkflows}, a.Kind)
}

// starts are the worlds that the others go on from.
func starts(t *testing.T) map[string]*world {
	return map[string]*world{"nothing": newWorld(t), "current": currentV1(t), "ramping": rampingV2(t), "promoted": currentV2(t),
		"gated": gatedV2(t), "stranded": strandedOnV1(t), "proposed": proposedForV1(t)}
}

// gatedV2 is v2 at the first step, whose gate runs and turns it back if it fails.
func gatedV2(t require.TestingT) *world {
	w := currentV1(t)
	stepGate(1, v1alpha1.GateRollback)(w.given)
	w.push("v2")
	w.run(90 * time.Second)
	require.Len(t, w.server.gates, 1)
	require.Equal(t, []string{"v2 10"}, w.server.calls)
	return w
}

// play lets a number of things happen in a world, with a cycle after each.
func play(t *rapid.T, w *world, seen *tally) {
	mine := newTally()
	plans := 0
	w.after = func(s rollout.Snapshot, p rollout.Plan) {
		require.Empty(t, oracle.Forbidden(s, p), "row %s", p.Row)
		mine.rows[p.Row]++
		if plans++; plans%8 == 0 {
			mine.others(s, p)
		}
		if plans%16 == 0 { // these take as long as all the rest
			again(t, w, s, p)
			heldBack(t, s)
		}
	}
	w.died = mine.died
	length := rapid.SampledFrom([]int{200, 5, 200, 20, 210, 60, 100, 200}).Draw(t, "events")
	for range length {
		event(t, w)
		w.dies = rapid.SampledFrom(sites()).Draw(t, "dies")
		w.lives = rapid.SampledFrom(lives).Draw(t, "lives")
		w.cycle()
		w.pods()
		w.server.tick(rapid.SampledFrom(passes).Draw(t, "pass"))
		w.pods()
	}
	w.dies, w.lives, w.refusePush = "", nil, false
	w.settle()
	require.Zero(t, w.server.jobs.again, "a batch job is started twice")
	if rapid.IntRange(0, 7).Draw(t, "rest") == 0 {
		rests(t, w)
	}
	mine.lengths = []int{length}
	seen.add(mine)
}

// rests: once nothing is wrong any more and whatever was under way had its time, nothing is written, however long it
// lasts.
func rests(t *rapid.T, w *world) {
	events["all is well"](t, w)
	w.server.keeps = false
	for range 40 {
		w.cycle()
		w.pods()
		w.server.endBatch(rollout.BatchCompleted, 0)
		for g := range w.server.gates {
			w.server.gates[g] = rollout.GateCompleted
		}
		w.server.tick(5 * 24 * time.Hour) // a version that could not be deleted may rest for two months
		w.pods()
	}
	w.quiet(8, 26*time.Hour)
}

var (
	passes = []time.Duration{0, 10 * time.Second, time.Minute, 11 * time.Minute, 2 * time.Hour, 26 * time.Hour}
	// lives: in two of three cycles the bot lives, in one only if it does nothing rare.
	lives = []func(rollout.Plan) bool{everything, nothingRare, nothing}
)

// again: the same snapshot gives the same plan, also one that was written to a file.
func again(t *rapid.T, w *world, s rollout.Snapshot, p rollout.Plan) {
	var read rollout.Snapshot
	clone(t, s, &read)
	proposal := Look(read).Propose()
	ids := map[string]bool{}
	for _, a := range proposal.Actions {
		require.False(t, ids[a.ID], "two actions %s", a.ID)
		ids[a.ID] = true
	}
	var carried rollout.Proposal
	clone(t, proposal, &carried)
	want, err := json.Marshal(p)
	require.NoError(t, err)
	got, err := json.Marshal(Look(read).Resolve(carried, w.judge(proposal)))
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

// heldBack: policy that holds everything lets nothing be raised, created or removed; that wants approval, nothing be
// raised.
func heldBack(t *rapid.T, s rollout.Snapshot) {
	for _, e := range []rollout.Effect{rollout.HoldEffect, ""} {
		p := Look(s).Propose()
		v := rollout.Verdicts{Actions: map[string]rollout.Verdict{}}
		for _, a := range p.Actions {
			v.Actions[a.ID] = rollout.Verdict{Effect: e}
		}
		plan := Look(s).Resolve(p, v)
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
		lowered := Look(s).Resolve(p, allowed(p)).Lower
		require.True(t, lowered == nil || plan.Lower != nil || slices.ContainsFunc(p.Actions, func(a rollout.Action) bool {
			return a.Drift != nil && a.Drift.Kind == rollout.DriftRouting // a revert is policy's answer
		}), "a retreat is held")
	}
}

// events are what may happen, by name. Most of what is bad ends soon, so that rollouts go somewhere.
var events = map[string]func(*rapid.T, *world){
	"push": func(t *rapid.T, w *world) { w.push(tag(t)) },
	"custom build ID": func(t *rapid.T, w *world) {
		w.spec().WorkerOptions.UnsafeCustomBuildID = mostly(t, "", "mine", id("v2"))
	},
	"strategy": func(t *rapid.T, w *world) {
		w.spec().Rollout = steady().Spec.Spec.Rollout
		strategy(mostly(t, v1alpha1.Progressive, v1alpha1.AllAtOnce, v1alpha1.Manual))(w.given)
	},
	"steps": func(t *rapid.T, w *world) {
		strategy(v1alpha1.Progressive)(w.given)
		steps(rapid.SampledFrom(someSteps).Draw(t, "steps")...)(w.given)
	},
	"gate":      someGate,
	"gates end": endGates,
	"receipts": func(t *rapid.T, w *world) {
		more := func(b rollout.Backlog) map[string][]rollout.TaskQueue {
			return map[string][]rollout.TaskQueue{id("v1"): {{Name: "receipts", Type: rollout.QueueActivity, Unversioned: rollout.No, Backlog: b}}}
		}
		w.server.more = mostly(t, nil, more(idleQueue), more(busyQueue), more(rollout.Backlog{}))
	},
	"retention": func(_ *rapid.T, w *world) { w.server.retention() },
	"analysis": func(t *rapid.T, w *world) {
		w.spec().Rollout.Analysis = nil
		if rapid.Bool().Draw(t, "analysis") {
			analysed(rapid.SampledFrom([]func(*v1alpha1.Analysis){baked, func(*v1alpha1.Analysis) {}}).Draw(t, "bake"))(w.given)
		}
	},
	"closed workflows": closeWorkflows,
	"stuck workflows": func(t *rapid.T, w *world) {
		w.server.stuck.Unattributed = mostly(t, rollout.Counted(0), rollout.Counted(2), rollout.Count{Reason: "visibility is away"})
		w.server.stuck.UnattributedSample = rollout.Sample{Candidate: mostly[int64](t, 0, 1), Unknown: mostly[int64](t, 0, 1)}
		w.server.stuck.Problems = mostly(t, rollout.Counted(0), rollout.Counted(3), rollout.Count{Reason: "visibility is away"}, rollout.Count{Unsupported: true})
	},
	"pools": func(t *rapid.T, w *world) {
		w.spec().Pools = mostly(t, nil, []v1alpha1.Pool{{Name: "activities", Replicas: replicas(3), Template: template("a1")}},
			[]v1alpha1.Pool{{Name: "activities", Template: template("a2")}, {Name: "slow", Replicas: replicas(0), Template: template("s1")}})
	},
	"replicas": func(t *rapid.T, w *world) { w.spec().Replicas = mostly(t, replicas(3), nil, replicas(0)) },
	"connection": func(t *rapid.T, w *world) {
		w.given.Connection = mostly(t, steady().Connection, nil, other(), renewed())
		w.given.NamespaceThere = nil
		if id := mostly(t, "the-id", "", "another", "not asked"); id != "not asked" {
			w.given.NamespaceThere = &rollout.NamespaceThere{HostPort: other().Spec.HostPort, TemporalNamespace: "prod", ID: id}
		}
	},
	"kind": func(_ *rapid.T, w *world) { w.given.Spec.Kind = v1alpha1.KindTemporalWorkerDeployment },
	"broken spec": func(t *rapid.T, w *world) {
		w.given.Problems = mostly(t, nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}})
	},
	"broken environment": func(t *rapid.T, w *world) {
		w.given.EnvironmentProblem = mostly(t, nil, &rollout.Problem{Reason: rollout.InvalidConfiguration, Message: "rampart.yaml:5: no"})
	},
	"no spec":   func(t *rapid.T, w *world) { w.specGone = mostly(t, false, true) },
	"no record": func(t *rapid.T, w *world) { w.unreadable = mostly(t, false, true) },
	"templates": changeTemplates,
	"server":    func(t *rapid.T, w *world) { w.server.down = mostly(t, false, true) },
	"lie": func(t *rapid.T, w *world) {
		w.server.lies = mostly(t, nil, lies(rapid.SampledFrom(tags()).Draw(t, "about"))...)
	},
	"owner":     func(t *rapid.T, w *world) { w.server.manager = mostly(t, owner, "", "someone/else") },
	"keeps":     func(t *rapid.T, w *world) { w.server.keeps = mostly(t, false, true) },
	"sharing":   func(t *rapid.T, w *world) { w.server.others = mostly(t, nil, []string{"payments/refunds"}) },
	"outside":   outside,
	"edit":      editAnything,
	"verdicts":  func(t *rapid.T, w *world) { w.judge = mostly(t, allowed, judges()...) },
	"calls":     func(t *rapid.T, w *world) { w.server.fails = mostly(t, "", callRefused, answerLost) },
	"clock":     func(t *rapid.T, w *world) { w.skew = mostly(t, 0, -10*time.Minute, 10*time.Minute) },
	"push race": func(_ *rapid.T, w *world) { w.refusePush = true },
	"lost mark": func(t *rapid.T, w *world) { w.noMarks = rapid.Bool().Draw(t, "lost") },
	"unversioned": func(t *rapid.T, w *world) {
		w.server.unversioned = mostly(t, rollout.No, rollout.Yes, "")
	},
	"workers go": func(t *rapid.T, w *world) { w.server.poll(id(tag(t)), false) },
	"workflows":  openWorkflows,
	"evacuation": evacuateEvents,
	"answers":    answerProposals,
	"resume": func(_ *rapid.T, w *world) {
		if r := w.record().Routing; r != nil && (r.Spec.Hold != nil || r.Spec.Retire != nil) {
			w.edit(func(r *v1alpha1.RoutingSpec) { r.Hold, r.Retire = nil, nil })
		}
	},
	"nothing new": func(*rapid.T, *world) {},
	"all is well": func(_ *rapid.T, w *world) {
		w.unreadable, w.specGone, w.noMarks, w.judge = false, false, false, allowed
		w.skew, w.server.fails = 0, ""
		w.given.Problems, w.given.Connection, w.given.ResourcesProblem, w.given.EnvironmentProblem = nil, steady().Connection, nil, nil
		s := w.server
		s.down, s.lies, s.manager, s.others, s.unversioned = false, nil, owner, nil, rollout.No
		s.stuck.Unattributed, s.stuck.UnattributedSample = rollout.Counted(0), rollout.Sample{}
		s.stuck.Problems, s.more = rollout.Counted(0), nil
	},
}

var someEvent = rapid.SampledFrom(slices.Concat(sortedKeys(events), slices.Repeat([]string{"nothing new", "all is well"}, 12),
	slices.Repeat([]string{"push", "resume", "workflows", "evacuation", "answers", "gates end", "keeps"}, 3)))

// event is one thing that happens.
func event(t *rapid.T, w *world) { events[someEvent.Draw(t, "event")](t, w) }

// mostly draws the first in two of three cases, else one of the others.
func mostly[T any](t *rapid.T, first T, others ...T) T {
	return rapid.SampledFrom(append(slices.Repeat([]T{first}, 2*len(others)), others...)).Draw(t, "which")
}

func someGate(t *rapid.T, w *world) {
	answer := rapid.SampledFrom([]v1alpha1.OnGateFailure{v1alpha1.GateHold, v1alpha1.GateRollback}).Draw(t, "answer")
	switch rapid.SampledFrom([]string{"none", "first", "step", "input"}).Draw(t, "which") {
	case "none":
		w.spec().Rollout.Gate = nil
	case "first":
		gate(answer)(w.given)
	case "step":
		if len(w.spec().Rollout.Steps) > 0 {
			stepGate(1, answer)(w.given)
		}
	case "input":
		gate(answer)(w.given)
		w.spec().Rollout.Gate.InputFrom = &v1alpha1.GateInputSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "smoke"}, Key: "in"}}
		ref := rollout.InputOf(w.given.Deployment.Namespace, w.spec().Rollout.Gate).String()
		w.given.GateInputs = map[string]rollout.GateInput{ref: mostly(t, rollout.GateInput{Digest: "abc"}, rollout.GateInput{Problem: "no such file"})}
	}
}

func closeWorkflows(t *rapid.T, w *world) {
	if v := w.server.versions[id(tag(t))]; v != nil {
		v.closed = mostly(t, rollout.ClosedCounts{Known: true, Completed: 1000}, rollout.ClosedCounts{Known: true, Completed: 10},
			rollout.ClosedCounts{Known: true, Completed: 60, Failed: 40}, rollout.ClosedCounts{Reason: "visibility is away"})
	}
}

func tags() []string        { return []string{"v1", "v2", "v3"} }
func tag(t *rapid.T) string { return rapid.SampledFrom(tags()).Draw(t, "tag") }

var someSteps = [][]float64{{10, 50}, {0.1, 0.2, 30}, {99}, {5, 25, 75}}

func other() *v1alpha1.Connection {
	c := steady().Connection
	c.Spec.HostPort = "elsewhere:7233"
	return c
}

func endGates(t *rapid.T, w *world) {
	state := rapid.SampledFrom([]rollout.GateState{rollout.GateFailed, rollout.GateCompleted, rollout.GateUnread}).Draw(t, "end")
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
	if bars := w.routing().Bars; len(bars) > 0 && rapid.Bool().Draw(t, "barred") {
		_ = w.server.move(rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: bars[0].BuildID})
		return
	}
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
		switch rapid.SampledFrom([]string{"ramp", "current", "no ramp", "resume", "retry", "hold", "release", "retire", "retire one", "unretire", "unretire", "resume", "retry", "done"}).Draw(t, "edit") {
		case "ramp":
			r.Desired.Ramping = &v1alpha1.DesiredRamp{BuildID: id(tag(t)), Percentage: rapid.SampledFrom([]float64{0, 0.1, 5, 30, 100}).Draw(t, "to")}
		case "current":
			r.Desired.Current = rapid.SampledFrom([]string{id("v1"), id("v2"), id("v3"), ""}).Draw(t, "to")
		case "done":
			r.Desired = v1alpha1.DesiredRouting{Current: w.server.routing.Current}
			if w.server.routing.HasRamp {
				r.Desired.Ramping = &v1alpha1.DesiredRamp{BuildID: w.server.routing.Ramping, Percentage: rollout.AsWritten(w.server.routing.Percentage)}
			}
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
			if ver := rollout.FindVersion(r.Versions, id(tag(t))); ver != nil {
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
		_ = Look(odd).Ask()
		p := Look(odd).Propose()
		plan := Look(odd).Resolve(p, allowed(p))
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
