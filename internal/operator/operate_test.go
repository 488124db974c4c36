package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ada  = Person{Name: "ada", Reason: "lunch", At: noon}
)

func stamp(t time.Time) v1alpha1.Time { return v1alpha1.NewTime(t) }

// change changes a snapshot in which v1 is current and v2, the target, ramps at 10%.
type change func(*rollout.Snapshot, *v1alpha1.RoutingSpec)

func of(changes ...change) rollout.Snapshot {
	version := func(id string) v1alpha1.RecordedVersion {
		return v1alpha1.RecordedVersion{BuildID: id, TemplateHash: "hash-" + id, Attempts: 1, Guard: v1alpha1.GuardOn}
	}
	desired := v1alpha1.DesiredRouting{Current: "v1", Ramping: &v1alpha1.DesiredRamp{BuildID: "v2", Percentage: 10}}
	s := rollout.Snapshot{
		Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, SpecPath: "workers/checkout.yaml",
		Environment: v1alpha1.Environment{Name: "prod", ManagerIdentity: "rampart/prod"}, Spec: asking("v2"),
		Record: rollout.Record{Dir: "deploy/payments/checkout", Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{
			Desired: desired, Decided: &desired, Basis: &v1alpha1.RoutingBasis{Current: "v1"},
			Target:   &v1alpha1.RoutingTarget{BuildID: "v2", TemplateHash: "hash-v2", Attempt: 2},
			Versions: []v1alpha1.RecordedVersion{version("v0"), version("v1"), version("v2")},
		}}},
		Observation: rollout.Observation{At: noon, Exists: rollout.Yes, ManagerIdentity: "rampart/prod",
			Routing: rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 33.3, Revision: 4}},
	}
	for _, c := range changes {
		c(&s, &s.Record.Routing.Spec)
	}
	return s
}

func asking(build string) *v1alpha1.WorkerDeployment {
	return &v1alpha1.WorkerDeployment{Spec: v1alpha1.WorkerDeploymentSpec{WorkerOptions: v1alpha1.WorkerOptions{UnsafeCustomBuildID: build}}}
}

// asks is a spec that was pushed after the bot wrote the record.
func asks(build string) change {
	return func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Spec = asking(build) }
}

func held(kind v1alpha1.HoldKind) change {
	return func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
		r.Hold = &v1alpha1.Hold{Kind: kind, BuildID: "v2", By: "bob", Reason: "tea", At: stamp(noon.Add(-time.Hour))}
	}
}

func barred(id string) change {
	return func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
		r.Bars = append(r.Bars, v1alpha1.Bar{BuildID: id, TemplateHash: "hash-" + id, By: "canary", Reason: "failures"})
		r.Desired, r.Decided = v1alpha1.DesiredRouting{Current: "v1"}, &v1alpha1.DesiredRouting{Current: "v1"}
	}
}

func settled(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
	r.Desired, r.Decided = v1alpha1.DesiredRouting{Current: "v1"}, &v1alpha1.DesiredRouting{Current: "v1"}
}

func retired(c v1alpha1.RetireCurrent) change {
	return func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Retire = &v1alpha1.Retire{Current: c, By: "bob"} }
}

func ownedBy(by string) change {
	return func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Observation.ManagerIdentity = by }
}

func proposed(to float64, approved *v1alpha1.Asked) change {
	return func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
		r.Proposal = &v1alpha1.RecordedProposal{BuildID: "v2", TemplateHash: "hash-v2", From: 10, To: to, Since: stamp(noon.Add(-time.Hour)), Approved: approved}
	}
}

// evacuates is a stage that waits for approval.
func evacuates(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
	r.Versions[0].Evacuations = []v1alpha1.RecordedEvacuation{{Stage: v1alpha1.EvacuateByMove, JobID: "a", State: v1alpha1.EvacuationProposed},
		{Stage: v1alpha1.EvacuateByTermination, JobID: "b", State: v1alpha1.EvacuationDeclined}}
}

// expected is what a command makes of a record.
type expected struct {
	name  string
	given []change
	run   func(rollout.Snapshot) (Change, error)
	// want changes the record as the command has to; nil: nothing has to be done.
	want change
	did  string
	note string
	err  string
}

func TestCommandsChangeTheRecord(t *testing.T) {
	hold := func(s rollout.Snapshot) (Change, error) { return Hold(s, ada) }
	resume := func(s rollout.Snapshot) (Change, error) { return Resume(s, ada) }
	retry := func(build string) func(rollout.Snapshot) (Change, error) {
		return func(s rollout.Snapshot) (Change, error) { return Retry(s, ada, build) }
	}
	retire := func(c v1alpha1.RetireCurrent) func(rollout.Snapshot) (Change, error) {
		return func(s rollout.Snapshot) (Change, error) { return Retire(s, ada, c) }
	}
	unretire := func(s rollout.Snapshot) (Change, error) { return Unretire(s, ada) }
	version := func(build string) func(rollout.Snapshot) (Change, error) {
		return func(s rollout.Snapshot) (Change, error) { return RetireVersion(s, ada, build) }
	}
	approve := func(build string) func(rollout.Snapshot) (Change, error) {
		return func(s rollout.Snapshot) (Change, error) { return Approve(s, ada, Which{Build: build}) }
	}
	reject := func(build string) func(rollout.Snapshot) (Change, error) {
		return func(s rollout.Snapshot) (Change, error) { return Reject(s, ada, Which{Build: build}) }
	}
	meant := func(w Which) func(rollout.Snapshot) (Change, error) {
		return func(s rollout.Snapshot) (Change, error) { return Approve(s, ada, w) }
	}
	to := func(percent float64) *float64 { return &percent }
	said := &v1alpha1.Asked{By: "ada", Reason: "lunch", At: stamp(noon)}
	stageIs := func(state v1alpha1.EvacuationState) change {
		return func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Versions[0].Evacuations[0].State = state }
	}
	rejected := func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
		r.Proposal.Approved, r.Proposal.Withdrawn = nil, true
		r.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldRejected, BuildID: "v2", By: "ada", Reason: "lunch", At: stamp(noon)}
	}
	setHold := func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
		r.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, BuildID: "v2", By: "ada", Reason: "lunch", At: stamp(noon)}
	}
	noHold := func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Hold = nil }
	asItIs := func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Hold, r.Basis = nil, nil } // where people moved traffic meanwhile
	lifted := func(n int) change {
		return func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.Bars, r.Versions[2].TurnedBack = []v1alpha1.Bar{}, n
		}
	}
	ends := func(c v1alpha1.RetireCurrent) change {
		return func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.Retire = &v1alpha1.Retire{Current: c, By: "ada", Reason: "lunch", At: stamp(noon)}
		}
	}
	for _, c := range []expected{
		{name: "hold", run: hold, want: setHold, did: "hold: nothing is raised"},
		{name: "hold after drift", given: []change{held(v1alpha1.HoldDrift)}, run: hold, want: setHold, did: "hold: "},
		{name: "hold twice", given: []change{held(v1alpha1.HoldManual)}, run: hold, note: "held already, by bob since 2026-03-01T11:00:00Z: tea"},
		{name: "hold what was released", given: []change{held(v1alpha1.HoldReleased)}, run: hold, note: "released by bob"},
		{name: "resume", given: []change{held(v1alpha1.HoldManual)}, run: resume, want: asItIs, did: "resume: the hold by bob is gone", note: "it was held for: tea"},
		{name: "resume beside an edit that waits", given: []change{held(v1alpha1.HoldManual), func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.Desired = v1alpha1.DesiredRouting{Current: "v1"}
		}}, run: resume, want: noHold, did: "resume: "},
		{name: "resume after drift", given: []change{held(v1alpha1.HoldDrift)}, run: resume, want: noHold, did: "resume: "},
		{name: "resume a barred target", given: []change{held(v1alpha1.HoldManual), barred("v2")}, run: resume, want: asItIs, did: "resume: ",
			note: "v2 stays barred, by canary: failures; to try it again: rampart retry payments/checkout"},
		{name: "resume nothing", run: resume, note: "not held"},
		{name: "resume what was released", given: []change{held(v1alpha1.HoldReleased)}, run: resume, err: "take its routing back with rampart adopt"},
		{name: "retry", given: []change{barred("v2")}, run: retry(""), want: lifted(2), did: "v2 starts anew, at its first gate and step; barred before by canary (failures)"},
		{name: "retry a mark without a bar", given: []change{settled}, run: retry(""), want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.Versions[2].TurnedBack = 2
		}, did: "v2 starts anew"},
		{name: "retry while held", given: []change{barred("v2"), held(v1alpha1.HoldDrift)}, run: retry(""), want: lifted(2), did: "retry", note: "still held by bob (tea): rampart resume payments/checkout"},
		{name: "retry another one", given: []change{barred("v0")}, run: retry("v0"), want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.Bars, r.Versions[0].TurnedBack = []v1alpha1.Bar{}, 1
		}, did: "v0 starts anew", note: "the spec does not ask for v0 now"},
		{name: "retry one without files", given: []change{barred("v7")}, run: retry("v7"), want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.Bars = []v1alpha1.Bar{}
		}, did: "v7 starts anew"},
		{name: "retry what has traffic", run: retry(""), note: "v2 is not barred, and has traffic; to start it over, take that back first: rampart rollback payments/checkout --build v2"},
		{name: "retry twice", given: []change{settled, func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Versions[2].TurnedBack = 2 }}, run: retry(""), note: "starts anew already"},
		{name: "retry what a newer spec asks for", given: []change{barred("v0"), barred("v2"), asks("v0")}, run: retry(""), want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.Bars, r.Versions[0].TurnedBack = r.Bars[1:], 1
		}, did: "v0 starts anew"},
		{name: "retry what the bot has not seen", given: []change{barred("v2"), asks("v9")}, run: retry(""), note: "the spec asks for v9, which the bot has not seen yet: it starts at its first gate and step without a retry"},
		{name: "retry what the record has while the spec is broken", given: []change{barred("v2"), asks("v9"), func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) {
			s.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec}}
		}}, run: retry(""), want: lifted(2), did: "v2 starts anew"},
		{name: "retry an unknown one", run: retry("v9"), err: `no version "v9" in Git; it has: v0, v1, v2`},
		{name: "retry without a target", given: []change{func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Target = nil }, func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Spec = nil }}, run: retry(""), err: "has no target"},
		{name: "approve a step", given: []change{proposed(50, nil)}, run: approve(""), want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Proposal.Approved = said },
			did: "approve: v2 goes from 10% to 50% of new workflows", note: "decided again"},
		{name: "approve a promotion", given: []change{proposed(100, nil)}, run: approve("v2"), want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Proposal.Approved = said },
			did: "approve: v2 becomes the current version"},
		{name: "approve twice", given: []change{proposed(50, &v1alpha1.Asked{By: "bob", At: stamp(noon)})}, run: approve(""), note: "approved already, by bob since 2026-03-01T12:00:00Z"},
		{name: "approve while held", given: []change{proposed(50, nil), held(v1alpha1.HoldManual)}, run: approve(""), err: "held by bob (tea): rampart resume payments/checkout"},
		{name: "approve nothing", run: approve(""), err: "nothing of payments/checkout waits for approval: rampart status payments/checkout shows its state"},
		{name: "approve another one", given: []change{proposed(50, nil)}, run: approve("v1"), err: "nothing of payments/checkout that waits for approval matches --build, --to and --stage; want one of: v2 goes from 10% to 50%"},
		{name: "approve one of two", given: []change{proposed(50, nil), evacuates}, run: approve(""),
			err: "--build, --to or --stage is required: more than one thing of payments/checkout waits for approval: v2 goes from 10% to 50% of new workflows; stage Move of the evacuation of v0"},
		{name: "approve a stage", given: []change{proposed(50, nil), evacuates}, run: approve("v0"), want: stageIs(v1alpha1.EvacuationApproved), did: "approve: stage Move of the evacuation of v0"},
		{name: "approve what was looked at", given: []change{proposed(50, nil), evacuates}, run: meant(Which{To: to(50)}),
			want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Proposal.Approved = said }, did: "approve: v2 goes from 10% to 50%"},
		{name: "approve what was there before", given: []change{proposed(50, nil), evacuates}, run: meant(Which{To: to(25)}), err: "that waits for approval matches"},
		{name: "approve by stage", given: []change{proposed(50, nil), evacuates}, run: meant(Which{Stage: v1alpha1.EvacuateByMove}), want: stageIs(v1alpha1.EvacuationApproved),
			did: "approve: stage Move of the evacuation of v0"},
		{name: "approve another stage", given: []change{proposed(50, nil), evacuates}, run: meant(Which{Stage: v1alpha1.EvacuateByCancel}), err: "that waits for approval matches"},
		{name: "reject a stage", given: []change{evacuates}, run: reject(""), want: stageIs(v1alpha1.EvacuationDeclined), did: "reject: stage Move of the evacuation of v0"},
		{name: "reject a step", given: []change{proposed(50, nil)}, run: reject(""), want: rejected, did: "reject: v2 goes from 10% to 50%", note: "rampart resume payments/checkout"},
		{name: "reject what was approved", given: []change{proposed(50, said)}, run: reject(""), want: rejected, did: "reject: "},
		{name: "resume what was rejected", given: []change{held(v1alpha1.HoldRejected)}, run: resume, want: noHold, did: "resume: "},
		{name: "retire", run: retire(v1alpha1.KeepCurrent), want: ends(v1alpha1.KeepCurrent), did: "retire: nothing new comes", note: "v1 stays current"},
		{name: "retire more", given: []change{retired(v1alpha1.KeepCurrent)}, run: retire(v1alpha1.UnrouteProven), want: ends(v1alpha1.UnrouteProven), did: "v1 loses its traffic once"},
		{name: "retire without proof", given: []change{retired(v1alpha1.UnrouteProven)}, run: retire(v1alpha1.UnrouteAnyway), want: ends(v1alpha1.UnrouteAnyway),
			did: "v1 loses its traffic at once", note: "wait for unversioned workers"},
		{name: "retire less", given: []change{retired(v1alpha1.UnrouteProven)}, run: retire(v1alpha1.KeepCurrent), note: "retired already, by bob"},
		{name: "retire what was released", given: []change{held(v1alpha1.HoldReleased)}, run: retire(v1alpha1.KeepCurrent), want: ends(v1alpha1.KeepCurrent), did: "retire", note: "rampart adopt"},
		{name: "unretire", given: []change{retired(v1alpha1.UnrouteProven)}, run: unretire, want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Retire = nil },
			did: "taken back (asked for by bob)"},
		{name: "unretire nothing", run: unretire, note: "not retired"},
		{name: "unretire by annotation", given: []change{func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) {
			s.Spec.Metadata.Annotations = map[string]string{rollout.AnnotationRetire: "true"}
		}}, run: unretire, err: "take the annotation rampart.dev/retire out of workers/checkout.yaml"},
		{name: "retire a version", run: version("v0"), want: func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
			r.Versions[0].Retire = &v1alpha1.Asked{By: "ada", Reason: "lunch", At: stamp(noon)}
		}, did: "v0 is scaled down and removed without delay"},
		{name: "retire a version twice", given: []change{func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Versions[0].Retire = &v1alpha1.Asked{By: "bob"} }},
			run: version("v0"), note: "v0 is retired already, by bob"},
		{name: "retire the current version", run: version("v1"), err: "v1 has traffic"},
		{name: "retire the target", run: version("v2"), err: "asks for v2: push another build first"},
		{name: "retire one that ramps", given: []change{func(_ *rollout.Snapshot, r *v1alpha1.RoutingSpec) { r.Target.BuildID = "v3" }}, run: version("v2"), err: "v2 has traffic"},
		{name: "retire an unknown version", run: version("v9"), err: `no version "v9"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, before, wanted := of(c.given...), of(c.given...), of(c.given...)
			got, err := c.run(s)
			if diff := cmp.Diff(before, s); diff != "" {
				t.Errorf("what it was given changed (-was +is):\n%s", diff)
			}
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			if c.want != nil {
				c.want(&wanted, &wanted.Record.Routing.Spec)
			}
			if diff := cmp.Diff(wanted.Record.Routing.Spec, got.Record, equalEmpty); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			require.Equal(t, c.want != nil, got.Did != "")
			require.Contains(t, got.Did, c.did)
			if c.note != "" {
				require.Contains(t, got.Notes[len(got.Notes)-1]+got.Notes[0], c.note)
			}
		})
	}
}

// equalEmpty takes no list for an empty one.
var equalEmpty = cmp.Transformer("bars", func(b []v1alpha1.Bar) map[string]v1alpha1.Bar {
	out := map[string]v1alpha1.Bar{}
	for _, x := range b {
		out[x.BuildID] = x
	}
	return out
})

// TestWithoutARecord: nothing is made up.
func TestWithoutARecord(t *testing.T) {
	none := of(func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Record.Routing = nil })
	broken := of(func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) {
		s.Record.RoutingProblem = &rollout.Problem{Message: "line 3"}
	})
	for name, run := range map[string]func(rollout.Snapshot) error{
		"hold":           func(s rollout.Snapshot) error { _, err := Hold(s, ada); return err },
		"resume":         func(s rollout.Snapshot) error { _, err := Resume(s, ada); return err },
		"retry":          func(s rollout.Snapshot) error { _, err := Retry(s, ada, ""); return err },
		"retire":         func(s rollout.Snapshot) error { _, err := Retire(s, ada, v1alpha1.KeepCurrent); return err },
		"unretire":       func(s rollout.Snapshot) error { _, err := Unretire(s, ada); return err },
		"retire version": func(s rollout.Snapshot) error { _, err := RetireVersion(s, ada, "v1"); return err },
		"approve":        func(s rollout.Snapshot) error { _, err := Approve(s, ada, Which{}); return err },
		"reject":         func(s rollout.Snapshot) error { _, err := Reject(s, ada, Which{}); return err },
		"adopt":          func(s rollout.Snapshot) error { _, err := Adopt(s, ada, nil); return err },
		"release":        func(s rollout.Snapshot) error { _, err := Release(s, ada, ""); return err },
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, run(none), "payments/checkout has no record in deploy/payments/checkout yet")
			require.ErrorContains(t, run(broken), "line 3")
		})
	}
}

func TestAdoptTakesOwnershipAndKeepsTraffic(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name     string
		given    []change
		from     *string
		wantFrom string
		did, err string
	}{
		{name: "from another", given: []change{ownedBy("twc")}, from: text("twc"), wantFrom: "twc", did: `was "twc"'s; it is kept as it is: current v1, v2 ramping at 33.3%`},
		{name: "from nobody", given: []change{ownedBy("")}, did: "was nobody's"},
		{name: "from nobody, as believed", given: []change{ownedBy("")}, from: text(""), did: "was nobody's"},
		{name: "what was released", given: []change{ownedBy(""), held(v1alpha1.HoldReleased)}, did: "was nobody's"},
		{name: "released, and still ours", given: []change{held(v1alpha1.HoldReleased)}, wantFrom: "rampart/prod", did: "adopt: "},
		{name: "ours", wantFrom: "rampart/prod"},
		{name: "from whom?", given: []change{ownedBy("twc")}, err: `belongs to "twc". To take it from there: rampart adopt payments/checkout --from "twc"`},
		{name: "from someone else by now", given: []change{ownedBy("twc")}, from: text("eve"), err: `belongs to "twc", not to "eve": nothing was taken over`},
		{name: "from nobody any more", given: []change{ownedBy("")}, from: text("twc"), err: `belongs to nobody, not to "twc"`},
		{name: "without an identity", given: []change{func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Environment.ManagerIdentity = "" }}, err: "no managerIdentity"},
		{name: "not read", given: []change{func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) {
			s.Observation.Problem = &rollout.Problem{Message: "no key"}
		}}, err: "read Temporal: no key"},
		{name: "nothing there", given: []change{func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Observation.Exists = rollout.No }}, err: "does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Adopt(of(c.given...), ada, c.from)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, [2]string{c.wantFrom, "rampart/prod"}, [2]string{got.From, got.To})
			require.Contains(t, got.Did, c.did)
			require.NotContains(t, got.Did, ada.Reason, "the commit says why in a line of its own")
			require.Equal(t, c.did == "", got.Did == "")
			if got.Did != "" {
				require.Nil(t, got.Record.Hold)
				require.InDelta(t, 33.3, got.Record.Desired.Ramping.Percentage, 1e-9)
				require.Equal(t, got.Record.Desired, *got.Record.Decided)
				require.Equal(t, int64(4), got.Record.Basis.Revision)
			}
		})
	}
	kept, err := Adopt(of(ownedBy(""), held(v1alpha1.HoldManual)), ada, nil)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.HoldManual, kept.Record.Hold.Kind)
	require.Equal(t, []string{"still held by bob (tea): rampart resume payments/checkout"}, kept.Notes)
}

func TestReleaseGivesOwnershipAway(t *testing.T) {
	for _, c := range []struct {
		name             string
		given            []change
		to               string
		wantFrom, wantTo string
		did, err         string
	}{
		{name: "to nobody", wantFrom: "rampart/prod", did: "belongs to nobody"},
		{name: "to someone", to: "twc", wantFrom: "rampart/prod", wantTo: "twc", did: `belongs to "twc"`},
		{name: "what nobody owns", given: []change{ownedBy("")}, did: "release: "},
		{name: "what they have already", given: []change{ownedBy("twc")}, to: "twc", wantFrom: "twc", wantTo: "twc", did: "release: "},
		{name: "cut short before", given: []change{held(v1alpha1.HoldReleased)}, wantFrom: "rampart/prod", did: "release: "},
		{name: "twice", given: []change{ownedBy(""), held(v1alpha1.HoldReleased)}},
		{name: "what is not there", given: []change{ownedBy(""), func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Observation.Exists = rollout.No }}, to: "", did: "release: "},
		{name: "what is not ours", given: []change{ownedBy("twc")}, err: `belongs to "twc", not to "rampart/prod"`},
		{name: "to ourselves", to: "rampart/prod", err: "own identity"},
		{name: "not read", given: []change{func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) {
			s.Observation.Problem = &rollout.Problem{Message: "no key"}
		}}, err: "no key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Release(of(c.given...), ada, c.to)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, [2]string{c.wantFrom, c.wantTo}, [2]string{got.From, got.To})
			require.Contains(t, got.Did, c.did)
			require.Equal(t, c.did == "", got.Did == "")
			require.Equal(t, v1alpha1.HoldReleased, got.Record.Hold.Kind)
		})
	}
}
