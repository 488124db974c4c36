package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// recorded writes down the spec and its connection as they are: the last that could be used.
func recorded(g *given) {
	last := *g.Spec
	g.Record.Status = &last
	g.rec.Connection = &v1alpha1.RecordedConnection{Kind: g.Connection.Ref().Kind, Name: g.Connection.Metadata.Name, Spec: g.Connection.Spec}
}

// condition of a status; its zero value if it has none of that type.
func condition(st *v1alpha1.WorkerDeploymentStatus, kind string) v1alpha1.Condition {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1alpha1.Condition{}
}

// noEnvironment says that the environment cannot be used as it is in Git.
func noEnvironment(g *given) {
	g.EnvironmentProblem = &rollout.Problem{Reason: rollout.InvalidConfiguration, Message: "rampart.yaml:5: no"}
}

type breakage struct {
	change
	reason rollout.Reason
	says   string
}

// breaks are the ways in which a spec stops being one that can be used.
func breaks() map[string]breakage {
	return map[string]breakage{
		"invalid": {all(recorded, func(g *given) {
			g.Spec, g.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3: no"}}
		}), rollout.InvalidSpec, "line 3: no"},
		"refused": {all(recorded, func(g *given) {
			bad := *g.Spec
			bad.Spec.Template = template("v4")
			g.Spec, g.Problems = &bad, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "not allowed"}}
		}), rollout.InvalidSpec, "not allowed"},
		"gone":          {all(recorded, func(g *given) { g.Spec, g.SpecPath = nil, "" }), rollout.InvalidSpec, "is gone from Git"},
		"no connection": {all(recorded, func(g *given) { g.Connection = nil }), rollout.ConnectionNotFound, "connection payments/temporal is not in the repository"},
		"no connection, and none recorded": {all(recorded, func(g *given) { g.Connection, g.rec.Connection = nil, nil }), rollout.ConnectionNotFound,
			"connection payments/temporal is not in the repository"},
		"no connection of the cluster": {all(byCluster, recorded, func(g *given) { g.Connection = nil }), rollout.ConnectionNotFound,
			"ClusterConnection temporal is not in the repository"},
		"another namespace": {all(recorded, func(g *given) {
			moved := *g.Spec
			moved.Spec.WorkerOptions.TemporalNamespace, moved.Spec.Template = "other", template("v4")
			g.Spec = &moved
		}), rollout.InvalidSpec, "temporalNamespace changed from prod to other"},
		"another server": {all(recorded, func(g *given) {
			moved := *g.Spec
			moved.Spec.Template = template("v4")
			g.Spec, g.Connection = &moved, other()
		}), rollout.InvalidSpec, "connection payments/temporal leads to elsewhere:7233, and payments/checkout is at temporal:7233"},
		"no strategy": {all(recorded, func(g *given) {
			bad := *g.Spec
			bad.Spec.Rollout = v1alpha1.RolloutStrategy{}
			g.Spec = &bad
		}), rollout.InvalidSpec, "no strategy"},
		"environment": {all(recorded, noEnvironment), rollout.InvalidConfiguration, "rampart.yaml:5: no"},
	}
}

// newerRecord is a record that wants a newer release: the spec is sound, and it is only lowered all the same.
func newerRecord() breakage {
	return breakage{all(recorded, func(g *given) { g.rec.MinReader = v1alpha1.RecordFormat + 1 }), rollout.PlanGenerationFailed, "wants a release that reads format 2"}
}

// TestNewerRecord: by such a record nothing is raised, made or taken away, and what it says of its release stays.
func TestNewerRecord(t *testing.T) {
	for name, start := range map[string]change{"a next step": rampsAt(10, time.Hour), "another build": asks("v2"),
		"a version that may go": all(promoted(100*time.Hour), drained("v1", 90*time.Hour)), "another namespace": all(asks("v2"), func(g *given) { g.rec.Versions, g.rec.TemporalNamespace = nil, "other" })} {
		s := twice(of(start, func(g *given) { g.rec.MinReader = v1alpha1.RecordFormat }))
		p := decide(t, s, allowed)
		require.True(t, p.Raise != nil || len(p.Versions) > 0, name)
		s.Record.Routing.Spec.MinReader++
		require.NotEmpty(t, Never(s, p), name)
		if name != "a version that may go" { // which the oracle has nothing against
			require.NotEmpty(t, oracle.Forbidden(s, p), name)
		}
		p = decide(t, s, allowed)
		require.Empty(t, oracle.Forbidden(s, p), name)
		require.Nil(t, p.Raise, name)
		require.Empty(t, p.Versions, name)
		require.Equal(t, v1alpha1.RecordFormat+1, p.Record.MinReader, name)
	}
}

// TestUnusableLowers: whatever makes a spec unusable, traffic is taken back as with one that can be used. The status
// says first what is broken.
func TestUnusableLowers(t *testing.T) {
	for _, c := range []struct {
		name  string
		given change
		judge func(rollout.Proposal) rollout.Verdicts
		lower []string
		says  string
		bars  []string
		hold  string
	}{
		{name: "a bar, in mid-ramp", given: all(rampsAt(10, time.Minute), barsBuild("v2")), lower: []string{"ClearRamp  0"}, says: "v2 was turned back by canary: too many failures", bars: []string{"v2 canary"}},
		{name: "a mark, in mid-ramp", given: all(rampsAt(10, time.Minute), func(g *given) { g.listed("v2").TurnedBack = "1 errors" }), lower: []string{"ClearRamp  0"},
			says: "v2 was turned back by " + ByMark + ": errors", bars: []string{"v2 " + ByMark}},
		{name: "a ramp to what is not asked for", given: all(rampsAt(10, time.Minute), wants("v1")), lower: []string{"ClearRamp  0"}, says: "the spec asks for v1, not for v2"},
		{name: "policy, in mid-ramp", given: rampsAt(10, time.Minute), judge: turnsBack, lower: []string{"ClearRamp  0"},
			says: "v2 was turned back by some.rule: says so", bars: []string{"v2 some.rule"}},
		{name: "policy, of a current version", given: promoted(10 * time.Minute), judge: turnsBack, lower: []string{"SetCurrent v1 0"},
			says: "v2 was turned back by some.rule: says so", bars: []string{"v2 some.rule"}},
		{name: "a bar of a current version", given: all(promoted(5*time.Hour), barsBuild("v2")), lower: []string{"SetCurrent v1 0"}, says: "v2 was turned back by canary: too many failures",
			bars: []string{"v2 canary"}},
		{name: "a spec that was reverted before", given: all(promoted(10*time.Minute), wants("v1")), lower: []string{"SetCurrent v1 0"}, says: "the spec asks for v1 again"},
		{name: "a step's gate", given: all(rampsAt(10, time.Minute), stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateFailed)), lower: []string{"ClearRamp  0"},
			says: "v2 was turned back: gate Smoke failed", bars: []string{"v2 gate Smoke"}},
		{name: "an edit", given: all(rampsAt(50, time.Minute), edits("v1", "v2", 10)), lower: []string{"SetRamp v2 10"}, says: "routing.yaml was edited",
			hold: "Manual an edit of routing.yaml: routing.yaml was edited: current v1, v2 ramping at 10%"},
		{name: "an edit, of a promotion", given: all(promoted(5*time.Hour), edits("v1", "", 0)), lower: []string{"SetCurrent v1 0"}, says: "routing.yaml was edited",
			hold: "Manual an edit of routing.yaml: routing.yaml was edited: current v1"},
		{name: "raised outside of Git", given: all(rampsAt(10, time.Minute), routes("v1", "v2", 50, time.Second)), lower: []string{"SetRamp v2 10"}, says: "the routing was changed outside of Git"},
		{name: "promoted outside of Git, and no way back", given: all(candidate(), routes("v2", "", 0, time.Second), noPollers("v1")), says: ": not reverted, since "},
		{name: "retired, in mid-ramp", given: all(rampsAt(10, time.Minute), retires(v1alpha1.UnrouteAnyway, time.Hour)), lower: []string{"ClearRamp  0"}, says: "stays current until the spec can be used"},
		{name: "held", given: all(rampsAt(10, time.Minute), holds(v1alpha1.HoldManual, "v2")), says: "held by ada", hold: "Manual ada: lunch"},
		{name: "turned back before", given: all(candidate(), barsBuild("v2")), says: "v2 was turned back by canary: too many failures. Push another build", bars: []string{"v2 canary"}},
		{name: "lowered outside of Git", given: all(rampsAt(50, time.Minute), routes("v1", "v2", 10, time.Second)), says: "the routing was changed outside of Git",
			hold: "Drift drift: the routing was changed outside of Git: current v1, v2 ramping at 50% is recorded, current v1, v2 ramping at 10% is in Temporal"},
	} {
		ways := breaks()
		ways["a record of a newer release"] = newerRecord()
		for name, b := range ways {
			if strings.HasPrefix(name, "another ") && strings.HasPrefix(c.name, "retired") {
				continue // then it is where it was, and can be used
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				judge := c.judge
				if judge == nil {
					judge = allowed
				}
				s := of(c.given, b.change)
				p := decide(t, s, judge)
				require.Equal(t, "spec-unusable", p.Row)
				require.Equal(t, c.lower, sayCall(p.Lower))
				require.Nil(t, p.Raise)
				require.Empty(t, p.Versions)
				ready := condition(p.Status, v1alpha1.ConditionReady)
				require.Equal(t, string(b.reason), ready.Reason)
				broken, meanwhile, _ := strings.Cut(named(ready.Message), ". Meanwhile: ")
				require.Contains(t, broken, b.says)
				require.Contains(t, meanwhile, c.says)
				require.Equal(t, meanwhile, named(p.Status.Decision.Meanwhile))
				require.Equal(t, v1alpha1.True, condition(p.Status, v1alpha1.ConditionStalled).Status)
				var bars []string
				for _, x := range p.Record.Bars {
					bars = append(bars, named(x.BuildID)+" "+x.By)
				}
				require.Equal(t, c.bars, bars)
				hold := ""
				if h := p.Record.Hold; h != nil {
					hold = named(fmt.Sprintf("%s %s: %s", h.Kind, h.By, h.Reason))
				}
				require.Equal(t, c.hold, hold)
				was := s.Record.Routing.Spec
				if p.Record.Target != nil {
					p.Record.Target.Gates = nil // which are facts, and written down all the same
				}
				require.Equal(t, []any{was.Target, was.SpecPath, was.Connection, was.TemporalNamespace, was.Retire},
					[]any{p.Record.Target, p.Record.SpecPath, p.Record.Connection, p.Record.TemporalNamespace, p.Record.Retire}, "what is asked for is not known")
			})
		}
	}
}

// TestUnusableKeeps: nothing is raised, created, started, changed or taken away, which each of these does with a spec
// that can be used.
func TestUnusableKeeps(t *testing.T) {
	proposed := all(stays(3), inRecord(v1alpha1.EvacuateByMove, v1alpha1.EvacuationProposed))
	for name, given := range map[string]change{
		"create":          asks("v2"),
		"first gate":      all(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateMissing, 1)),
		"step gate":       all(rampsAt(10, time.Hour), stepGate(1, v1alpha1.GateRollback), stepGateIs(1, rollout.GateMissing)),
		"first step":      candidate(),
		"next step":       rampsAt(10, time.Hour),
		"promotion":       rampsAt(50, time.Hour),
		"all at once":     all(candidate(), strategy(v1alpha1.AllAtOnce)),
		"an edit upward":  all(rampsAt(10, time.Minute), edits("v1", "v2", 50)),
		"an edit refused": all(rampsAt(10, time.Minute), edits("v2", "v1", 50)),
		"replicas":        func(g *given) { g.Spec.Spec.Replicas = replicas(7) },
		"connection":      func(g *given) { g.version("v1").ConnectionHash = "other" },
		"template":        all(candidate(), func(g *given) { g.version("v2").TemplateHash = "other" }),
		"restore":         all(candidate(), scaledDown("v2", time.Minute)),
		"scale down":      twiceRead(all(promoted(100*time.Hour), drained("v1", 99*time.Hour))),
		"delete":          twiceRead(all(promoted(100*time.Hour), drained("v1", 99*time.Hour), scaledDown("v1", 98*time.Hour), noPollers("v1"))),
		"remove":          twiceRead(all(promoted(100*time.Hour), unlisted("v1"), counted("v1", 0), scaledDown("v1", 98*time.Hour))),
		"evacuate":        stays(3),
		"a proposal":      proposed,
		"objects":         all(rampsAt(10, time.Minute), templates(toAll("hpa"))),
		"unroute":         all(retires(v1alpha1.UnrouteAnyway, time.Hour), used("v1", 0)),
		"end":             ended(),
		"end, spec gone":  all(ended(), specGone),
	} {
		t.Run(name, func(t *testing.T) {
			usable := of(given)
			p := Look(usable).Propose()
			did := Look(usable).Resolve(p, allowed(p))
			if name != "a proposal" && name != "end" {
				require.True(t, did.Raise != nil || len(did.Gates)+len(did.Versions)+len(did.Deletions)+len(did.Batches) > 0 || did.Remove ||
					!cmp.Equal(did.Record.Desired, usable.Record.Routing.Spec.Desired), "nothing happens anyway")
			}
			for kind, b := range breaks() {
				if usable.Record.Routing.Spec.Retire != nil && (strings.HasPrefix(kind, "another ") || kind == "gone" && name == "unroute") {
					continue
				}
				t.Run(kind, func(t *testing.T) {
					s := of(given, b.change)
					ask := Look(s).Ask()
					require.Empty(t, len(ask.OpenPinned)+len(ask.Batches)+len(ask.InUse), "asks for what it does nothing about")
					plan := decide(t, s, allowed)
					require.Equal(t, "spec-unusable", plan.Row)
					require.Nil(t, plan.Lower)
					require.Nil(t, plan.Raise)
					require.False(t, plan.SecondRead)
					require.False(t, plan.Remove)
					require.False(t, plan.Settled && kind != "environment", "it may be complete")
					require.Empty(t, len(plan.Gates)+len(plan.Versions)+len(plan.Deletions)+len(plan.Batches))
					want := s.Record.Routing.Spec
					want.Promotions = plan.Record.Promotions // what was seen is written down
					require.Equal(t, want, *plan.Record)
				})
			}
		})
	}
}

// twiceRead gives a snapshot its first read.
func twiceRead(c change) change {
	return func(g *given) {
		c(g)
		g.Snapshot = twice(g.Snapshot)
	}
}

// TestUnusableStaysCurrent: the message tells of no action that is not carried out.
func TestUnusableStaysCurrent(t *testing.T) {
	for _, wish := range []v1alpha1.RetireCurrent{v1alpha1.UnrouteAnyway, v1alpha1.UnrouteProven} {
		for name, b := range breaks() {
			if strings.HasPrefix(name, "another ") {
				continue // then it is where it was, and can be used
			}
			p := decide(t, of(retires(wish, 2*time.Hour), used("v1", 0), b.change), allowed)
			require.Nil(t, p.Raise)
			_, meanwhile, _ := strings.Cut(condition(p.Status, v1alpha1.ConditionReady).Message, ". Meanwhile: ")
			require.Equal(t, "v1 stays current until the spec can be used", named(meanwhile), "%s, %s", wish, name)
		}
	}
}

// TestUnusableKeepsNeeded: what was written of a version that is needed comes back, also while it is unknown what is
// asked for.
func TestUnusableKeepsNeeded(t *testing.T) {
	for name, b := range breaks() {
		t.Run(name, func(t *testing.T) {
			lost := func(g *given) { delete(g.Record.Files, layout.VersionFile(id("v1"), "deployment.yaml")) }
			p := decide(t, of(rampsAt(10, time.Minute), lost, b.change), allowed)
			require.Equal(t, []rollout.WriteOp{rollout.RestoreFiles}, ops(p))
			down := func(g *given) { g.version("v2").Replicas = replicas(0) }
			p = decide(t, of(rampsAt(10, time.Minute), templates(toAll("hpa")), down, b.change), allowed)
			require.Equal(t, []rollout.WriteOp{rollout.EditVersion}, ops(p))
			require.Equal(t, replicas(2), p.Versions[0].Replicas)
			require.Empty(t, p.Versions[0].Resources)
		})
	}
}

func ops(p rollout.Plan) []rollout.WriteOp {
	var out []rollout.WriteOp
	for _, w := range p.Versions {
		out = append(out, w.Op)
	}
	return out
}

// TestUnusableWithoutReplicas: who asked for no workers gets its traffic back to a version without any, whatever the
// broken spec asks for. No version of it goes to 0 because of what a broken one asks for.
func TestUnusableWithoutReplicas(t *testing.T) {
	asksFor := func(was, is int32, b change) change {
		return all(promoted(10*time.Minute), barsBuild("v2"), func(g *given) {
			g.Spec.Spec.Replicas = replicas(was)
			g.version("v1").Replicas, g.version("v2").Replicas = replicas(was), replicas(was)
		}, recorded, b, func(g *given) {
			if g.Spec != nil && g.Connection != nil && g.EnvironmentProblem == nil {
				changed := *g.Spec
				changed.Spec.Replicas = replicas(is)
				g.Spec = &changed
			}
		})
	}
	for name, b := range breaks() {
		t.Run(name, func(t *testing.T) {
			s := of(asksFor(0, 2, b.change))
			p := decide(t, s, allowed)
			require.Equal(t, []string{"SetCurrent v1 0"}, sayCall(p.Lower))
			require.Empty(t, oracle.Forbidden(s, p))

			s = of(asksFor(2, 0, b.change))
			p = decide(t, s, allowed)
			p.Versions = append(p.Versions, rollout.VersionWrite{BuildID: id("v2"), Op: rollout.EditVersion, Guard: v1alpha1.GuardOn, Replicas: replicas(0)})
			require.Contains(t, strings.Join(Never(s, p), "\n"), "would be scaled to 0, which was not asked for")
			require.Contains(t, strings.Join(oracle.Forbidden(s, p), "\n"), "scales "+id("v2")+" down")
		})
	}
}

// TestUnusableUnjudged: without Temporal, without a spec that could be used once, or under another owner nothing is
// lowered. The status says all the same what is broken.
func TestUnusableUnjudged(t *testing.T) {
	failing := all(rampsAt(10, time.Minute), barsBuild("v2"))
	unread := func(g *given) {
		g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: rollout.AuthSecretInvalid, Message: "no key"}}
	}
	forgotten := func(g *given) { g.Record.Status, g.rec.Connection = nil, nil }
	for name, b := range breaks() {
		for _, c := range []struct {
			name  string
			given change
			says  string
			reads bool
		}{
			{"Temporal cannot be read", unread, ". Meanwhile: Temporal could not be read: no key", true},
			{"Temporal was not asked", func(g *given) { g.Observation = rollout.Observation{} }, "", true},
			{"owned by another", foreign(), "", true},
			{"released", holds(v1alpha1.HoldReleased, "v2"), "", true},
			{"none recorded", forgotten, "", false},
		} {
			if c.name == "none recorded" && (strings.HasPrefix(name, "no connection") || name == "environment" || name == "another server") {
				continue // the spec is there, or nothing says that it is another server
			}
			t.Run(name+"/"+c.name, func(t *testing.T) {
				s := of(failing, b.change, c.given)
				require.Equal(t, c.reads && name != "no connection, and none recorded", Look(s).Connection() != nil)
				p := decide(t, s, allowed)
				require.Equal(t, "spec-unusable", p.Row)
				require.Nil(t, p.Lower)
				if p.Status != nil {
					ready := condition(p.Status, v1alpha1.ConditionReady)
					require.Equal(t, string(b.reason), ready.Reason)
					require.Contains(t, ready.Message, b.says)
					require.Contains(t, ready.Message, c.says)
				}
				require.Equal(t, s.Record.Routing.Spec.Desired, p.Record.Desired)
			})
		}
	}
}

// TestUnusableFirstCommit: nothing is recorded, so Temporal is not asked, and nothing is written but that a connection
// is missing.
func TestUnusableFirstCommit(t *testing.T) {
	first := func(g *given) {
		g.Record, g.Observation = rollout.Record{Dir: g.Record.Dir}, rollout.Observation{}
	}
	for name, b := range breaks() {
		if strings.HasPrefix(name, "another ") {
			continue // there is no other
		}
		t.Run(name, func(t *testing.T) {
			s := of(b.change, first)
			require.Nil(t, Look(of(b.change, first, func(g *given) { g.Connection = nil })).Connection())
			p := decide(t, s, allowed)
			require.Equal(t, "spec-unusable", p.Row)
			require.Empty(t, p.Versions)
			require.Equal(t, strings.HasPrefix(name, "no connection"), p.Record != nil && p.Status != nil)
		})
	}
}

// TestJudgedByTheLastGoodSpec: steps, settings of the canary and what policy sees are those of the last spec that could
// be used.
func TestJudgedByTheLastGoodSpec(t *testing.T) {
	for name, b := range breaks() {
		t.Run(name, func(t *testing.T) {
			s := of(rampsAt(10, time.Minute), analysed(func(a *v1alpha1.Analysis) { a.MinSamples = 77 }), closed("v1", 100, 0), closed("v2", 1, 30), b.change)
			judged := Look(s).JudgedBy()
			require.EqualValues(t, 77, judged.Spec.Spec.Rollout.Analysis.MinSamples)
			require.Equal(t, template("v2"), judged.Spec.Spec.Template)
			canary := Look(s).Propose().Canary
			require.NotNil(t, canary)
			require.True(t, canary.Worse)
			ask := Look(s).Ask()
			require.Equal(t, "prod", ask.TemporalNamespace)
			require.Len(t, ask.Closed, 2)
			require.Contains(t, ask.Queues, id("v2"))
			plan := decide(t, s, allowed)
			require.Equal(t, template("v2"), plan.Spec.Spec.Template, "status.yaml keeps it")
			require.Equal(t, "prod", plan.Spec.Spec.WorkerOptions.TemporalNamespace)
		})
	}
}

// TestLastGoodSpecIsKept: a spec whose connection is missing is judged by, but does not become the last that could be
// used.
func TestLastGoodSpecIsKept(t *testing.T) {
	w := rampingV2(t)
	good := w.record().Status.Spec
	w.given.Connection = nil
	w.push("v3")
	w.run(time.Minute)
	require.Equal(t, "ConnectionNotFound", w.reason())
	require.Contains(t, named(condition(w.status(), v1alpha1.ConditionReady).Message), "the spec asks for v3, not for v2")
	require.Equal(t, good, w.record().Status.Spec)
	require.Equal(t, w.given.Spec.Digest(), w.status().Decision.SpecDigest, "it is what the status is about")
	w.spoils("invalid")
	s := w.look()
	require.Equal(t, template("v2"), Look(s).JudgedBy().Spec.Spec.Template)
}

// TestConnectionOf: the connection in Git counts; where it is gone, the one that was recorded.
func TestConnectionOf(t *testing.T) {
	s := of(recorded)
	require.Equal(t, s.Connection, Look(s).Connection())
	require.Equal(t, renewed(), Look(of(recorded, func(g *given) { g.Connection = renewed() })).Connection())
	gone := Look(of(recorded, func(g *given) { g.Connection = nil })).Connection()
	require.Equal(t, v1alpha1.Connection{APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindConnection,
		Metadata: v1alpha1.ObjectMeta{Name: "temporal", Namespace: "payments"}, Spec: v1alpha1.ConnectionSpec{HostPort: "temporal:7233"}}, *gone)
	require.Nil(t, Look(of(func(g *given) { g.Connection = nil })).Connection())
}

// TestConnectionIsRecorded: the connection is recorded with the first change, and does not cause a change by itself.
func TestConnectionIsRecorded(t *testing.T) {
	require.Nil(t, decide(t, of(), allowed).Record.Connection)
	p := decide(t, of(asks("v2")), allowed)
	require.Equal(t, &v1alpha1.RecordedConnection{Name: "temporal", Spec: v1alpha1.ConnectionSpec{HostPort: "temporal:7233"}}, p.Record.Connection)
	p = decide(t, of(recorded, func(g *given) { g.Connection = renewed() }), allowed)
	require.Equal(t, renewed().Spec, p.Record.Connection.Spec)
}

// TestTakeBackUnusable: a person takes traffic back, whatever became of the spec.
func TestTakeBackUnusable(t *testing.T) {
	for name, b := range breaks() {
		t.Run(name, func(t *testing.T) {
			s := of(rampsAt(10, time.Minute), b.change)
			w := TakeBack{By: "Ada", Reason: "timeouts"}
			require.Contains(t, Look(s).AskTakeBack(w).Queues, id("v2"))
			got, err := Look(s).DecideTakeBack(w)
			require.NoError(t, err)
			require.Empty(t, Never(s, got.Plan))
			require.Equal(t, []string{"ClearRamp  0"}, sayCall(got.Plan.Lower))
			next := got.Record(s.Record.Routing.Spec)
			require.Equal(t, id("v2"), next.Bars[0].BuildID)
			require.Nil(t, next.Desired.Ramping)

			s = of(promoted(10*time.Minute), b.change)
			got, err = Look(s).DecideTakeBack(w)
			require.NoError(t, err)
			require.Empty(t, Never(s, got.Plan))
			require.Equal(t, []string{"SetCurrent v1 0"}, sayCall(got.Plan.Lower))

			_, err = Look(of(rampsAt(10, time.Minute), b.change, foreign())).DecideTakeBack(w)
			require.ErrorContains(t, err, "belongs to")
		})
	}
}

// TestNeverWhileUnusable: what a defect could do while the spec cannot be used.
func TestNeverWhileUnusable(t *testing.T) {
	for what, spoil := range map[string]func(*rollout.Plan){
		"traffic would be raised":       func(p *rollout.Plan) { p.Raise = &rollout.RoutingCall{} },
		"a gate would start":            func(p *rollout.Plan) { p.Gates = []rollout.GateStart{{}} },
		"workflows would be evacuated":  func(p *rollout.Plan) { p.Batches = []rollout.BatchStart{{}} },
		"a version would be deleted":    func(p *rollout.Plan) { p.Deletions = []string{"x"} },
		"the record would be removed":   func(p *rollout.Plan) { p.Remove = true },
		"would be changed (Render)":     writes(rollout.VersionWrite{Op: rollout.RenderVersion}),
		"would be changed (Reconnect)":  writes(rollout.VersionWrite{Op: rollout.ReconnectVersion}),
		"would be changed (Resources)":  writes(rollout.VersionWrite{Op: rollout.WriteResources}),
		"would be changed (Remove)":     writes(rollout.VersionWrite{Op: rollout.RemoveVersion}),
		"would be changed (Edit)":       writes(rollout.VersionWrite{Op: rollout.EditVersion, Guard: v1alpha1.GuardOff}),
		"would be changed (Edit) ":      writes(rollout.VersionWrite{Op: rollout.EditVersion, Guard: v1alpha1.GuardOn, Replicas: replicas(0)}),
		"would be changed (RestoreOld)": writes(rollout.VersionWrite{Op: rollout.RestoreFiles, Resources: []rollout.ResourceWrite{{}}}),
	} {
		for name, b := range breaks() {
			t.Run(what+"/"+name, func(t *testing.T) {
				s := of(rampsAt(10, time.Minute), b.change)
				p := decide(t, s, allowed)
				spoil(&p)
				require.True(t, slices.ContainsFunc(Never(s, p), func(why string) bool {
					return strings.Contains(why, strings.TrimSpace(what)) && strings.Contains(why, "although ")
				}), "%v", Never(s, p))
				usable := of(rampsAt(10, time.Minute))
				for _, why := range Never(usable, p) {
					require.NotContains(t, why, "although ")
				}
			})
		}
	}
}

func writes(w rollout.VersionWrite) func(*rollout.Plan) {
	return func(p *rollout.Plan) {
		w.BuildID = id("v2")
		p.Versions = []rollout.VersionWrite{w}
	}
}

// spoils breaks the spec of a world in mid-ramp, and gives what mends it.
func (w *world) spoils(how string) (mend func()) {
	good := *w.given
	switch how {
	case "invalid":
		w.given.Spec, w.given.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3: no"}}
	case "gone":
		w.given.Spec, w.given.SpecPath = nil, ""
	case "no connection":
		w.given.Connection = nil
	case "environment":
		noEnvironment(w.given)
	case "another namespace":
		moved := *w.given.Spec
		moved.Spec.WorkerOptions.TemporalNamespace = "other"
		w.given.Spec = &moved
	}
	return func() { *w.given = good }
}

// TestUnusableStory: in mid-ramp a push breaks the spec, the candidate fails and is turned back. When the spec is
// mended, the build stays barred and another one goes its way.
func TestUnusableStory(t *testing.T) {
	for _, how := range []string{"invalid", "gone", "no connection", "another namespace", "environment"} {
		for _, dies := range []site{"", beforeLower, afterLower, afterCommit} {
			t.Run(how+string(dies), func(t *testing.T) {
				w := rampingV2(t)
				mend := w.spoils(how)
				w.run(time.Hour)
				require.Empty(t, w.server.calls, "nothing is raised")
				require.Len(t, w.commits, 1, "and what is broken is said once")
				w.judge, w.dies = turnsBack, dies
				w.run(time.Minute)
				w.judge = allowed
				w.run(time.Hour)
				require.Equal(t, []string{"clear"}, w.server.calls)
				ready := condition(w.status(), v1alpha1.ConditionReady)
				require.Contains(t, []string{"InvalidSpec", "ConnectionNotFound", "InvalidConfiguration"}, ready.Reason)
				require.Contains(t, named(ready.Message), "Meanwhile: v2 was turned back")
				w.settle()
				w.quiet(20, time.Minute)

				mend()
				w.run(time.Hour)
				require.Equal(t, "RolledBack", w.reason())
				require.Equal(t, []string{"clear"}, w.server.calls)
				w.push("v3")
				w.run(time.Hour)
				require.Equal(t, []string{"clear", "v3 10", "v3 50", "v3 current"}, w.server.calls)
			})
		}
	}
}

// TestUnusableAndMended: a rollout goes on where it was.
func TestUnusableAndMended(t *testing.T) {
	for _, how := range []string{"invalid", "gone", "no connection", "another namespace"} {
		t.Run(how, func(t *testing.T) {
			w := rampingV2(t)
			was := w.routing()
			mend := w.spoils(how)
			w.run(30 * time.Minute)
			require.Equal(t, was, w.routing())
			mend()
			w.run(30 * time.Minute)
			require.Equal(t, []string{"v2 50", "v2 current"}, w.server.calls)
			require.Equal(t, "RolloutComplete*", w.reason())
		})
	}
}

// TestUnusableHolds: a hold after drift outlasts a push that names a connection which is not there, and is reverted.
func TestUnusableHolds(t *testing.T) {
	w := currentV2(t)
	w.server.routing.Current, w.server.routing.CurrentChangedAt = id("v1"), w.server.now
	w.run(time.Minute)
	held := w.routing().Hold
	require.Equal(t, v1alpha1.HoldDrift, held.Kind)
	w.given.Connection = nil
	w.push("v3")
	w.run(10 * time.Minute)
	require.Equal(t, "ConnectionNotFound", w.reason())
	w.given.Connection = steady().Connection
	w.push("v2")
	w.run(time.Hour)
	require.Equal(t, held, w.routing().Hold)
	require.Equal(t, "ManualHold", w.reason())
	require.Empty(t, w.server.calls)
	w.push("v3")
	w.run(time.Hour)
	require.Nil(t, w.routing().Hold, "what is asked for is another build")
	require.Equal(t, []string{"v3 10", "v3 50", "v3 current"}, w.server.calls)
}
