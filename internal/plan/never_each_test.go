package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// spoilt is a plan that may be carried out, and what is done to it or to what it was made on.
type spoilt struct {
	name  string
	given change
	spoil func(*rollout.Snapshot, *rollout.Plan)
	// want is what Never says then; "": nothing, still.
	want string
}

// sees changes the routing under a plan that knows it.
func sees(change func(*rollout.RoutingConfig)) func(*rollout.Snapshot, *rollout.Plan) {
	return func(s *rollout.Snapshot, p *rollout.Plan) {
		change(&s.Observation.Routing)
		for _, c := range []*rollout.RoutingCall{p.Raise, p.Lower} {
			if c != nil {
				c.Basis = s.Observation.Routing
			}
		}
	}
}

func observes(change func(*rollout.Observation)) func(*rollout.Snapshot, *rollout.Plan) {
	return func(s *rollout.Snapshot, _ *rollout.Plan) { change(&s.Observation) }
}

func lists(tag string, change func(*rollout.VersionObservation)) func(*rollout.Snapshot, *rollout.Plan) {
	return observes(func(o *rollout.Observation) { change(o.Version(id(tag))) })
}

func records(change func(*v1alpha1.RoutingSpec)) func(*rollout.Snapshot, *rollout.Plan) {
	return func(s *rollout.Snapshot, _ *rollout.Plan) { change(&s.Record.Routing.Spec) }
}

func planned(change func(*rollout.Plan)) func(*rollout.Snapshot, *rollout.Plan) {
	return func(_ *rollout.Snapshot, p *rollout.Plan) { change(p) }
}

func unspoilt(*rollout.Snapshot, *rollout.Plan) {}

func loses(tag string) func(*rollout.Snapshot, *rollout.Plan) {
	return observes(func(o *rollout.Observation) {
		o.Versions = slices.DeleteFunc(o.Versions, func(v rollout.VersionObservation) bool { return v.BuildID == id(tag) })
	})
}

// removalCases take versions away.
func removalCases() []spoilt {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	down := all(old, scaledDown("v1", 80*time.Hour), noPollers("v1"))
	missing := func(tag string) change {
		return func(g *given) { delete(g.Record.Files, layout.VersionFile(id(tag), "deployment.yaml")) }
	}
	wasPromoted := func(left v1alpha1.Time) func(*rollout.Snapshot, *rollout.Plan) {
		return records(func(r *v1alpha1.RoutingSpec) {
			r.Promotions = append([]v1alpha1.Promotion{{BuildID: id("v1"), LeftAt: left, LeftBy: v1alpha1.LeftByPromotion}}, r.Promotions...)
		})
	}
	never := inactive(25 * time.Hour)
	const routed = "it was routed and its drainage is not known"
	return []spoilt{
		{"only its guard goes", old, func(s *rollout.Snapshot, p *rollout.Plan) { s.FirstRead, p.Versions[0].Replicas = nil, replicas(2) }, "no second read"},
		{"its guard is off, and its workers go", old, func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.FirstRead, rollout.FindVersion(s.Record.Routing.Spec.Versions, id("v1")).Guard = nil, v1alpha1.GuardOff
		}, "no second read"},
		{"created at 0", all(asks("v2"), askedFor(replicas(0))), unspoilt, ""},
		{"files of a retired one come back", all(down, missing("v1")), func(s *rollout.Snapshot, _ *rollout.Plan) { s.FirstRead = nil }, ""},
		{"files of one at 0 come back", all(missing("v1"), func(g *given) { g.version("v1").Replicas = replicas(0) }), unspoilt, ""},
		{"another ramps", old, observes(func(o *rollout.Observation) { o.Routing.HasRamp, o.Routing.Ramping = true, id("v3") }), ""},
		{"no ramp, whatever it is called", old, observes(func(o *rollout.Observation) { o.Routing.Ramping = id("v1") }), ""},
		{"current by Git's order", never, wasPromoted(v1alpha1.Time{}), routed},
		{"current by Git's order, since it was made", never, wasPromoted(stamp(ago(24 * time.Hour))), routed},
		{"current by Git's order, before it was made", never, wasPromoted(stamp(ago(26 * time.Hour))), ""},
		{"activated once", never, lists("v1", func(v *rollout.VersionObservation) { v.FirstActivatedAt = ago(time.Hour) }), routed},
		{"current once", never, lists("v1", func(v *rollout.VersionObservation) { v.BecameCurrentAt = ago(time.Hour) }), routed},
		{"deactivated once", never, lists("v1", func(v *rollout.VersionObservation) { v.DeactivatedAt = ago(time.Hour) }), routed},
		{"not in Git, and current by its order", all(down, unlisted("v1"), counted("v1", 0)), records(func(r *v1alpha1.RoutingSpec) { r.Versions = r.Versions[1:] }),
			"it was routed and Temporal does not list it"},
	}
}

// callCases move traffic.
func callCases() []spoilt {
	raise, lower, back := candidate(), rampsAt(30, time.Hour), all(promoted(time.Minute), wants("v1"))
	judged := all(rampsAt(10, time.Hour), analysed(errorRate), closed("v1", 1000, 0), closed("v2", 100, 0), observed(0, ""))
	first := all(candidate(), unlisted("v1"), func(g *given) {
		g.rec.Promotions, g.Observation.Routing = nil, rollout.RoutingConfig{}
		desires("", "", 0)(g)
	})
	to := func(kind rollout.RoutingStepKind, build string, percentage float32) func(*rollout.Snapshot, *rollout.Plan) {
		return planned(func(p *rollout.Plan) {
			step := []rollout.RoutingStep{{Kind: kind, BuildID: build, Percentage: percentage}}
			if p.Raise != nil {
				p.Raise.Steps = step
			} else {
				p.Lower.Steps = step
			}
		})
	}
	both := func(a, b func(*rollout.Snapshot, *rollout.Plan)) func(*rollout.Snapshot, *rollout.Plan) {
		return func(s *rollout.Snapshot, p *rollout.Plan) { a(s, p); b(s, p) }
	}
	ramps := func(has bool, tag string, percentage float32) func(*rollout.Snapshot, *rollout.Plan) {
		return sees(func(r *rollout.RoutingConfig) { r.HasRamp, r.Ramping, r.Percentage = has, id(tag), percentage })
	}
	nobody := func(s *rollout.Snapshot, p *rollout.Plan) {
		s.Environment.ManagerIdentity, s.Observation.ManagerIdentity = "", ""
		p.Raise.Identity, p.Raise.Claim = "", rollout.ClaimNeeded
	}
	uncounted := lists("v2", func(v *rollout.VersionObservation) { v.Closed.Known = false })
	atZero := inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.Replicas = replicas(0) })
	const more = "more than one step"
	const unbased = "not known how many workflows are stuck without it"
	const behind = "and that was not approved"
	backlog := func(b rollout.Backlog) func(*rollout.Snapshot, *rollout.Plan) {
		return lists("v1", func(v *rollout.VersionObservation) {
			v.Queues = append(v.Queues, rollout.TaskQueue{Name: receipts.Name, Type: rollout.QueueActivity, Backlog: b})
		})
	}
	receives := backlog(rollout.Backlog{})
	idleWorkflows := lists("v1", func(v *rollout.VersionObservation) { v.Queues[0].Backlog = idleQueue })
	activitiesOnly := lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Type = rollout.QueueActivity })
	callNames := planned(func(p *rollout.Plan) { p.Raise.LeavesBehind = []v1alpha1.RecordedQueue{receipts} })
	proposalNames := func(tag string) func(*rollout.Snapshot, *rollout.Plan) {
		return records(func(r *v1alpha1.RoutingSpec) {
			r.Proposal = &v1alpha1.RecordedProposal{BuildID: id(tag), LeavesBehind: []v1alpha1.RecordedQueue{receipts}}
		})
	}
	noCount := observes(func(o *rollout.Observation) { o.Stuck.Problems = rollout.Count{} })
	noTarget := records(func(r *v1alpha1.RoutingSpec) { r.Target = nil })
	based := func(tag string) func(*rollout.Snapshot, *rollout.Plan) {
		return records(func(r *v1alpha1.RoutingSpec) {
			r.Target = &v1alpha1.RoutingTarget{BuildID: id(tag), StuckBefore: new(int64)}
		})
	}
	goesOn := all(rampsAt(10, time.Hour), closed("v1", 1, 0), closed("v2", 1, 0))
	return []spoilt{
		{"raise: by nobody", raise, nobody, "does not say who makes it"},
		{"raise: not read", raise, observes(func(o *rollout.Observation) { o.Problem = &rollout.Problem{} }), "on facts"},
		{"raise: no spec", raise, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec = nil }, "without a spec"},
		{"raise: not listed", raise, loses("v2"), "task queues are not known"},
		{"raise: pollers not known", raise, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Known = false }), "no fresh poller"},
		{"raise: polled by a clock far ahead", raise, lists("v2", func(v *rollout.VersionObservation) {
			v.Queues[0].Pollers.LastAccess = noon.Add(rollout.ClockTolerance + time.Second)
		}), "no fresh poller"},
		{"raise: a ramp of unversioned workers", raise, to(rollout.SetRamp, "", 5), "not in Git"},
		{"raise: two steps, beside another's ramp", raise, both(ramps(true, "v3", 10), to(rollout.SetRamp, id("v2"), 50)), more},
		{"raise: two steps, after a ramp that is over", raise, both(ramps(false, "v2", 10), to(rollout.SetRamp, id("v2"), 50)), more},
		{"raise: the first version, while it ramps", first, both(ramps(true, "v2", 10), to(rollout.SetCurrent, id("v2"), 0)), more},
		{"raise: the first version, not listed", first, loses("v2"), more},
		{"raise: all at once, with steps left in the spec", all(raise, func(g *given) { g.Spec.Spec.Rollout.Strategy = v1alpha1.AllAtOnce }), unspoilt, ""},
		{"raise: a metric is not there", judged, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Facts = nil }, "metric error_rate is not known"},
		{"raise: a metric is old", judged, func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Facts["error_rate"] = rollout.Fact{Value: json.RawMessage("1"), ObservedAt: ago(3 * time.Minute), MaxAge: 2 * time.Minute}
		}, "metric error_rate is not known"},
		{"raise: not counted", judged, uncounted, "its closed workflows are not known"},
		{"raise: counted from before its ramp", judged, lists("v2", func(v *rollout.VersionObservation) { v.Closed.Since = ago(2 * time.Hour) }), "its closed workflows are not known"},
		{"raise: not listed, and judged", judged, loses("v2"), "its closed workflows are not known"},
		{"raise: not counted, without traffic", judged, both(uncounted, both(ramps(true, "v2", 0), to(rollout.SetRamp, id("v2"), 10))), ""},
		{"raise: not counted, another ramps", judged, both(uncounted, both(ramps(true, "v3", 10), to(rollout.SetRamp, id("v2"), 10))), ""},
		{"raise: not counted, its ramp is over", judged, both(uncounted, both(ramps(false, "v2", 10), to(rollout.SetRamp, id("v2"), 10))), ""},
		{"raise: not counted, and all at once", judged, both(uncounted, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec.Spec.Rollout.Strategy = v1alpha1.AllAtOnce }), ""},
		{"raise: not counted, and nobody asked", all(judged, func(g *given) { g.Spec.Spec.Rollout.Analysis = nil }), uncounted, ""},
		{"raise: no baseline", raise, noCount, unbased},
		{"raise: no baseline, of another build", raise, both(noCount, based("v1")), unbased},
		{"raise: no baseline, and no target in the record", raise, both(noCount, noTarget), unbased},
		{"raise: no baseline, at 0%", raise, both(noCount, ramps(true, "v2", 0)), unbased},
		{"raise: a baseline in the record", raise, both(noCount, based("v2")), ""},
		{"raise: no baseline can be had", raise, observes(func(o *rollout.Observation) { o.Stuck.Problems = rollout.Count{Unsupported: true} }), ""},
		{"raise: no baseline, and it has traffic", goesOn, noCount, ""},
		{"raise: no baseline for the first version", first, noCount, ""},
		{"raise: no baseline beside unversioned workers", first, both(noCount, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Unversioned = rollout.Yes })), unbased},
		{"raise: no baseline beside a ramp", first, both(noCount, both(ramps(true, "v3", 10), to(rollout.SetRamp, id("v2"), 10))), unbased},
		{"raise: leaves a queue behind", raise, receives, behind},
		{"raise: leaves a queue behind that the call names", raise, both(receives, callNames), behind},
		{"raise: leaves a queue behind that a proposal names", raise, both(receives, proposalNames("v2")), behind},
		{"raise: leaves a queue behind that another's proposal names", raise, both(receives, both(callNames, proposalNames("v3"))), behind},
		{"raise: leaves a queue behind as proposed", raise, both(receives, both(callNames, proposalNames("v2"))), ""},
		{"raise: leaves a queue behind as recorded", raise, both(receives, both(callNames, records(func(r *v1alpha1.RoutingSpec) {
			r.Target.LeavesBehind = []v1alpha1.RecordedQueue{receipts}
		}))), ""},
		{"raise: leaves a queue behind as recorded of another", raise, both(receives, both(callNames, records(func(r *v1alpha1.RoutingSpec) {
			r.Target = &v1alpha1.RoutingTarget{BuildID: id("v1"), LeavesBehind: []v1alpha1.RecordedQueue{receipts}}
		}))), behind},
		{"raise: leaves a queue behind, and no target in the record", raise, both(receives, both(callNames, noTarget)), behind},
		{"raise: leaves a queue behind with a backlog", raise, backlog(rollout.Backlog{Known: true, Count: 1}), behind},
		{"raise: leaves a queue behind where tasks come", raise, backlog(rollout.Backlog{Known: true, AddRate: 0.1}), behind},
		{"raise: leaves an idle queue behind", raise, backlog(rollout.Backlog{Known: true}), ""},
		{"raise: serves the name with another type", raise, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Type = rollout.QueueNexus }), behind},
		{"raise: serves no workflows, though they are idle", raise, both(idleWorkflows, activitiesOnly), behind},
		{"raise: serves other workflows than idle ones", raise, both(idleWorkflows, lists("v2", func(v *rollout.VersionObservation) {
			v.Queues[0].Name = "refunds"
		})), ""},
		{"raise: serves another name", raise, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Name = "refunds" }), behind},
		{"lower: no ramp", lower, ramps(false, "v2", 30), "would raise traffic to"},
		{"lower: current stays", back, to(rollout.SetCurrent, id("v2"), 0), "which it was not before"},
		{"rollback: to what Temporal alone knows as current", back, both(records(func(r *v1alpha1.RoutingSpec) { r.Promotions = r.Promotions[1:] }),
			lists("v1", func(v *rollout.VersionObservation) { v.BecameCurrentAt = ago(time.Hour) })), ""},
		{"rollback: to what nobody knows as current", back, records(func(r *v1alpha1.RoutingSpec) { r.Promotions = r.Promotions[1:] }), "which it was not before"},
		{"rollback: to what nobody knows at all", back, both(records(func(r *v1alpha1.RoutingSpec) { r.Promotions = r.Promotions[1:] }), loses("v1")), "which it was not before"},
		{"rollback: at 0, and no spec", back, both(atZero, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec = nil }), "not in Git"},
		{"rollback: at 0, and the spec has no number", back, both(atZero, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec.Spec.Replicas = nil }), "not in Git"},
		{"rollback: at 0, and the spec asks for that", back, both(atZero, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec.Spec.Replicas = replicas(0) }), ""},
	}
}

func inRecordOf(tag string, change func(*v1alpha1.RecordedVersion)) func(*rollout.Snapshot, *rollout.Plan) {
	return records(func(r *v1alpha1.RoutingSpec) { change(rollout.FindVersion(r.Versions, id(tag))) })
}

// poolCases raise a version that may lack some of its workers.
func poolCases() []spoilt {
	works := func(p rollout.Pollers) func(*rollout.Snapshot, *rollout.Plan) {
		return func(s *rollout.Snapshot, p2 *rollout.Plan) {
			s.Observation.Version(p2.Target.BuildID).Workers["checkout-v2-activities"] = p
		}
	}
	const without = "without a worker of its pool activities"
	return []spoilt{
		{"pool: nobody", pooled(), works(rollout.Pollers{Known: true, LastAccess: noon}), without},
		{"pool: polled long ago", pooled(), works(rollout.Pollers{Known: true, Count: 1, LastAccess: ago(91 * time.Second)}), without},
		{"pool: wants no workers", pooled(func(p *v1alpha1.Pool) { p.Replicas = replicas(0) }), works(rollout.Pollers{}), ""},
		{"pool: on a queue of its own", all(pooled(onQueues("orders"))), works(rollout.Pollers{}), ""},
		{"pool: not of this version", pooled(), func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Spec.Spec.Pools = append(s.Spec.Spec.Pools, v1alpha1.Pool{Name: "slow"})
		}, ""},
		{"pool: no files", pooled(), records(func(r *v1alpha1.RoutingSpec) { r.Versions = r.Versions[:1] }), "not in Git"},
		{"pool: not listed", pooled(), observes(func(o *rollout.Observation) { o.Versions = o.Versions[:1] }), "task queues are not known"},
	}
}

// objectCases change objects of versions.
func objectCases() []spoilt {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	given := all(templates(tmpl("pdb")), carries("v1", "hpa"))
	const lost, wrong = "would lose what hpa made", "would get an object that no template of pdb says"
	return []spoilt{
		{"object: from no template", given, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources = nil }, wrong},
		{"object: from no template that can be read", given, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources, s.ResourcesProblem = nil, &rollout.Problem{} }, wrong},
		{"object: from one that cannot be used", given, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources[0].Problem = &rollout.Problem{} }, wrong},
		{"object: from another", given, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources[0].Object = json.RawMessage(`{}`) }, wrong},
		{"object: lost with a file that cannot be read", given, func(s *rollout.Snapshot, _ *rollout.Plan) { s.ResourcesProblem = &rollout.Problem{} }, lost},
		{"object: lost though its template is there", given, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources = append(s.Resources, unusable("hpa")) }, lost},
		{"object: not selected any more, beside a file that cannot be read", all(templates(tmpl("pdb", v1alpha1.StateCurrent)), promoted(time.Minute),
			carries("v1", "pdb"), carries("v2", "pdb")), func(s *rollout.Snapshot, _ *rollout.Plan) { s.ResourcesProblem = &rollout.Problem{} }, ""},
		{"object: scaled down, beside a file that cannot be read", all(old, carries("v1", "hpa"), missed()), unspoilt, ""},
		{"object: scaled down, and its template cannot be used", all(old, carries("v1", "hpa"), templates(unusable("hpa"))), unspoilt, ""},
	}
}

// retireCases end a worker deployment.
func retireCases() []spoilt {
	proven := all(retires(v1alpha1.UnrouteProven, 2*time.Hour), used("v1", 0))
	elsewhere := all(retires(v1alpha1.UnrouteProven, 0), used("v1", 7), func(g *given) { g.listed("v1").Queues[0].Unversioned = rollout.Yes })
	over := all(ended(), specGone)
	call := &rollout.RoutingCall{}
	return []spoilt{
		{"unroute: no spec", proven, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec = nil }, "nothing is known of it"},
		{"unroute: queues not known", elsewhere, lists("v1", func(v *rollout.VersionObservation) { v.QueuesKnown = "" }), "not known whether it is still needed"},
		{"unroute: no queues", elsewhere, lists("v1", func(v *rollout.VersionObservation) { v.Queues = nil }), "not known whether it is still needed"},
		{"unroute: without proof", all(retires(v1alpha1.UnrouteAnyway, 0), used("v1", 7)), unspoilt, ""},
		{"unroute: to unversioned workers", elsewhere, unspoilt, ""},
		{"the record: its spec is refused", over, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Problems = []rollout.Problem{{}} }, "its spec is there"},
		{"the record: a raise", over, planned(func(p *rollout.Plan) { p.Raise = call }), "there is more to do"},
		{"the record: a lowering", over, planned(func(p *rollout.Plan) { p.Lower = call }), "there is more to do"},
	}
}

// evacuationCases start batch jobs.
func evacuationCases() []spoilt {
	signal := stays(3)
	move := all(stays(3), endedStages(v1alpha1.EvacuateBySignal, v1alpha1.EvacuateByCancel), inRecord(v1alpha1.EvacuateByMove, v1alpha1.EvacuationApproved))
	const traffic, stay, queues = "which has traffic or gets it", "not known that any stay", "the task queues of both are not known"
	return []spoilt{
		{"batch: by nobody", signal, func(s *rollout.Snapshot, p *rollout.Plan) {
			s.Environment.ManagerIdentity, s.Observation.ManagerIdentity, p.Batches[0].Identity = "", "", ""
		}, `evacuated by ""`},
		{"batch: no worker deployment", signal, observes(func(o *rollout.Observation) { o.Exists = rollout.No }), "on facts"},
		{"batch: not listed", signal, loses("v1"), stay},
		{"batch: count not known", signal, lists("v1", func(v *rollout.VersionObservation) { v.OpenPinned.Known = false }), stay},
		{"batch: on no version", signal, planned(func(p *rollout.Plan) { p.Batches[0].BuildID = "" }), traffic},
		{"batch: on what is raised", signal, planned(func(p *rollout.Plan) {
			p.Raise = &rollout.RoutingCall{Steps: []rollout.RoutingStep{{Kind: rollout.SetRamp, BuildID: id("v1")}}}
		}), traffic},
		{"batch: on what is lowered to", signal, planned(func(p *rollout.Plan) {
			p.Lower = &rollout.RoutingCall{Steps: []rollout.RoutingStep{{Kind: rollout.SetCurrent, BuildID: id("v1")}}}
		}), traffic},
		{"batch: without a target", signal, planned(func(p *rollout.Plan) { p.Target = nil }), traffic},
		{"batch: another ramps", signal, observes(func(o *rollout.Observation) { o.Routing.HasRamp, o.Routing.Ramping = true, id("v3") }), ""},
		{"batch: its ramp is over", signal, observes(func(o *rollout.Observation) { o.Routing.Ramping = id("v1") }), ""},
		{"move: to itself", move, planned(func(p *rollout.Plan) { p.Batches[0].Job.Target = id("v1") }), "not in Git"},
		{"move: to what is not in Git", move, planned(func(p *rollout.Plan) { p.Batches[0].Job.Target = id("v3") }), "not in Git"},
		{"move: to what is not listed", move, loses("v2"), queues},
		{"move: from what is not listed", move, loses("v1"), queues},
		{"move: to what has no queue", move, lists("v2", func(v *rollout.VersionObservation) { v.Queues = nil }), queues},
		{"move: pollers not known", move, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Known = false }), "no fresh poller"},
		{"move: not in the record", move, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.Evacuations = nil }), "which was not approved"},
	}
}

// TestNeverEach: each part of each check refuses something by itself, and what it lets pass may be done.
func TestNeverEach(t *testing.T) {
	for _, group := range [][]spoilt{removalCases(), callCases(), poolCases(), objectCases(), retireCases(), evacuationCases(), onlyLowersCases(), serverCases()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				s := twice(of(c.given))
				p := decide(t, s, allowed)
				c.spoil(&s, &p)
				found := Never(s, p)
				if c.want == "" {
					require.Empty(t, found)
					return
				}
				require.Contains(t, strings.Join(found, "\n"), c.want)
			})
		}
	}
}
