package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// calls changes the call of a plan.
func calls(change func(*rollout.RoutingCall)) func(*rollout.Snapshot, *rollout.Plan) {
	return planned(func(p *rollout.Plan) {
		if p.Raise != nil {
			change(p.Raise)
		} else {
			change(p.Lower)
		}
	})
}

func also(changes ...func(*rollout.Snapshot, *rollout.Plan)) func(*rollout.Snapshot, *rollout.Plan) {
	return func(s *rollout.Snapshot, p *rollout.Plan) {
		for _, c := range changes {
			c(s, p)
		}
	}
}

// firstRead changes what was read first alone.
func firstRead(change func(*rollout.Observation)) func(*rollout.Snapshot, *rollout.Plan) {
	return func(s *rollout.Snapshot, _ *rollout.Plan) {
		s.FirstRead.Versions = slices.Clone(s.FirstRead.Versions)
		change(s.FirstRead)
	}
}

func wasHeld(kind v1alpha1.HoldKind, tag string) func(*rollout.Snapshot, *rollout.Plan) {
	return records(func(r *v1alpha1.RoutingSpec) { r.Hold = &v1alpha1.Hold{Kind: kind, BuildID: id(tag)} })
}

// writesSpoilt touch Temporal.
func writesSpoilt() []spoilt {
	raise, lower := candidate(), rampsAt(30, time.Hour)
	down := all(promoted(100*time.Hour), drained("v1", 90*time.Hour), scaledDown("v1", 80*time.Hour), noPollers("v1"))
	gated := all(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateMissing, 1))
	unread := observes(func(o *rollout.Observation) { o.Problem = &rollout.Problem{} })
	others := observes(func(o *rollout.Observation) { o.ManagerIdentity = "another" })
	released := wasHeld(v1alpha1.HoldReleased, "v1")
	out := []spoilt{
		{"not known to be there", raise, observes(func(o *rollout.Observation) { o.Exists = "" }), "touches what was not read"},
		{"nothing touched, and not read", asks("v2"), unread, ""},
		{"nothing touched of what another owns", asks("v2"), others, ""},
		{"nothing touched of what was released", asks("v2"), released, ""},
		{"nobody's, and claimed", raise, also(observes(func(o *rollout.Observation) { o.ManagerIdentity = "" }),
			calls(func(c *rollout.RoutingCall) { c.Claim = rollout.ClaimNeeded })), ""},
		{"lowered though held", lower, wasHeld(v1alpha1.HoldManual, "v2"), ""},
		{"a gate that ended", gated, func(s *rollout.Snapshot, p *rollout.Plan) {
			s.Record.Routing.Spec.Target.Gates = []v1alpha1.RecordedGate{{WorkflowID: p.Gates[0].Gate.WorkflowID(p.Gates[0].TaskQueue)}}
		}, "again"},
		{"another gate than the one that ended", gated, records(func(r *v1alpha1.RoutingSpec) { r.Target.Gates = []v1alpha1.RecordedGate{{WorkflowID: "other"}} }), ""},
		{"both at once", raise, planned(func(p *rollout.Plan) { p.Lower = p.Raise }), "lowers and raises at once"},
		{"no token", raise, calls(func(c *rollout.RoutingCall) { c.Token = nil }), "without the token"},
		{"no token, lowering", lower, calls(func(c *rollout.RoutingCall) { c.Token = nil }), "without the token"},
		{"another basis", raise, calls(func(c *rollout.RoutingCall) { c.Basis.Revision++ }), "without the token"},
		{"claims what it has", raise, calls(func(c *rollout.RoutingCall) { c.Claim = rollout.ClaimNeeded }), "a wrong claim"},
		{"does not claim", raise, observes(func(o *rollout.Observation) { o.ManagerIdentity = "" }), "a wrong claim"},
		{"no steps", raise, calls(func(c *rollout.RoutingCall) { c.Steps = nil }), "without steps"},
	}
	for name, given := range map[string]change{"raise": raise, "lower": lower, "gate": gated, "delete": down, "batch": stays(3)} {
		out = append(out, spoilt{name + ": released", given, released, "touches what was released"},
			spoilt{name + ": another's", given, others, "touches what another owns"}, spoilt{name + ": not read", given, unread, "touches what was not read"})
	}
	return out
}

// removalsSpoilt take versions away.
func removalsSpoilt() []spoilt {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	down := all(old, scaledDown("v1", 80*time.Hour), noPollers("v1"))
	gone := all(down, unlisted("v1"), counted("v1", 0))
	never := inactive(25 * time.Hour)
	unseen := all(never, unlisted("v1"), counted("v1", 0))
	scales, deletes, removes := "scales "+id("v1")+" down", "deletes "+id("v1"), "removes "+id("v1")
	seen := func(change func(*rollout.VersionObservation)) func(*rollout.Observation) {
		return func(o *rollout.Observation) { change(o.Version(id("v1"))) }
	}
	wasPromoted := func(left v1alpha1.Time) func(*rollout.Snapshot, *rollout.Plan) {
		return records(func(r *v1alpha1.RoutingSpec) {
			r.Promotions = append(r.Promotions, v1alpha1.Promotion{BuildID: id("v1"), LeftAt: left})
		})
	}
	scaled := func(n *int32, guard v1alpha1.Guard) func(*rollout.Snapshot, *rollout.Plan) {
		return also(planned(func(p *rollout.Plan) { p.Versions[0].Replicas, p.Versions[0].Guard = n, guard }), func(s *rollout.Snapshot, _ *rollout.Plan) { s.FirstRead = nil })
	}
	out := []spoilt{
		{"one read", old, func(s *rollout.Snapshot, _ *rollout.Plan) { s.FirstRead = nil }, scales},
		{"the same read twice", old, firstRead(func(o *rollout.Observation) { o.At = noon }), scales},
		{"never routed, and activated", never, observes(seen(func(v *rollout.VersionObservation) { v.FirstActivatedAt = ago(time.Hour) })), scales},
		{"never routed, and current once", never, observes(seen(func(v *rollout.VersionObservation) { v.BecameCurrentAt = ago(time.Hour) })), scales},
		{"never routed, and deactivated", never, observes(seen(func(v *rollout.VersionObservation) { v.DeactivatedAt = ago(time.Hour) })), scales},
		{"never routed, and by Git it was", never, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.RoutedAt = stamp(noon) }), scales},
		{"never routed, and promoted", never, wasPromoted(v1alpha1.Time{}), scales},
		{"never routed, and promoted since it was made", never, wasPromoted(stamp(noon)), scales},
		{"never routed, and promoted before it was made", never, wasPromoted(stamp(ago(400 * time.Hour))), ""},
		{"never routed nor seen, and by Git it was", unseen, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.RoutedAt = stamp(noon) }), scales},
		{"never routed nor seen, and named", unseen, observes(func(o *rollout.Observation) { o.Unlisted[id("v1")] = rollout.Counted(1) }), scales},
		{"never routed nor seen, and not counted", unseen, observes(func(o *rollout.Observation) { o.Unlisted = nil }), scales},
		{"another ramps", old, observes(func(o *rollout.Observation) { o.Routing.HasRamp, o.Routing.Ramping = true, id("v3") }), ""},
		{"to 0, guarded", old, scaled(replicas(0), v1alpha1.GuardOn), scales},
		{"to 0, as asked for", all(old, askedFor(replicas(0))), scaled(replicas(0), v1alpha1.GuardOn), ""},
		{"to 1, guarded", old, scaled(replicas(1), v1alpha1.GuardOn), ""},
		{"its guard alone", old, scaled(replicas(2), v1alpha1.GuardOff), scales},
		{"at 0 as before", all(old, func(g *given) { g.version("v1").Replicas = replicas(0) }), scaled(replicas(0), v1alpha1.GuardOn), ""},
		{"deletes what is gone", down, also(loses("v1"), firstRead(func(o *rollout.Observation) {
			o.Versions, o.Unlisted = nil, map[string]rollout.Count{id("v1"): rollout.Counted(0)}
		}), observes(func(o *rollout.Observation) { o.Unlisted = map[string]rollout.Count{id("v1"): rollout.Counted(0)} })), deletes},
		{"deletes what runs", down, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.Replicas = replicas(1) }), deletes},
		{"deletes what has no number", down, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.Replicas = nil }), deletes},
		{"removes what was not scaled down", gone, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.Guard = v1alpha1.GuardOn }), removes},
		{"removes what has no number", gone, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.Replicas = nil }), removes},
		{"removes what runs", gone, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.Replicas = replicas(1) }), removes},
		{"removes what is listed", gone, observes(func(o *rollout.Observation) { listedOrNew(o) }), removes},
		{"removes what is named", gone, observes(func(o *rollout.Observation) { o.Unlisted = map[string]rollout.Count{id("v1"): rollout.Counted(1)} }), removes},
		{"removes what was not counted", gone, observes(func(o *rollout.Observation) { o.Unlisted = nil }), removes},
		{"removes what Git does not have", gone, records(func(r *v1alpha1.RoutingSpec) { r.Versions = r.Versions[1:] }), removes},
		{"forgets", none, planned(func(p *rollout.Plan) { p.Record.Versions = nil }), "forgets " + id("v1")},
		{"forgets by its order alone", gone, planned(func(p *rollout.Plan) { p.Versions = nil }), ""},
		{"no record", old, planned(func(p *rollout.Plan) { p.Record = nil }), ""},
	}
	for name, spoil := range map[string]func(*rollout.Observation){
		"not read":         func(o *rollout.Observation) { o.Problem = &rollout.Problem{} },
		"not known":        func(o *rollout.Observation) { o.Exists = "" },
		"current":          func(o *rollout.Observation) { o.Routing.Current = id("v1") },
		"ramping":          func(o *rollout.Observation) { o.Routing.HasRamp, o.Routing.Ramping = true, id("v1") },
		"draining":         seen(func(v *rollout.VersionObservation) { v.Drainage = rollout.Draining }),
		"drainage unknown": seen(func(v *rollout.VersionObservation) { v.Drainage = "" }),
		"pinned":           seen(func(v *rollout.VersionObservation) { v.OpenPinned = rollout.Counted(1) }),
		"not counted":      seen(func(v *rollout.VersionObservation) { v.OpenPinned = rollout.Count{} }),
	} {
		out = append(out, spoilt{"scales: " + name, old, observes(spoil), scales}, spoilt{"scales: " + name + " at first", old, firstRead(spoil), scales},
			spoilt{"deletes: " + name, down, observes(spoil), deletes}, spoilt{"deletes: " + name + " at first", down, firstRead(spoil), deletes})
	}
	return out
}

// raisesSpoilt give traffic.
func raisesSpoilt() []spoilt {
	raise, back := candidate(), all(promoted(time.Minute), wants("v1"))
	ramp, lower := rampsAt(10, time.Hour), all(rampsAt(30, time.Hour))
	first := all(candidate(), unlisted("v1"), func(g *given) {
		g.rec.Promotions, g.Observation.Routing = nil, rollout.RoutingConfig{}
		desires("", "", 0)(g)
	})
	to := func(steps ...rollout.RoutingStep) func(*rollout.Snapshot, *rollout.Plan) {
		return calls(func(c *rollout.RoutingCall) { c.Steps = steps })
	}
	ramps := func(tag string, percentage float32) rollout.RoutingStep {
		return rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: id(tag), Percentage: percentage}
	}
	current := func(tag string) rollout.RoutingStep {
		return rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: id(tag)}
	}
	clear := rollout.RoutingStep{Kind: rollout.ClearRamp}
	manually := func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec.Spec.Rollout.Strategy = v1alpha1.Manual }
	wished := records(func(r *v1alpha1.RoutingSpec) {
		r.Desired.Ramping = &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: 10}
	})
	written := func(d v1alpha1.DesiredRouting) func(*rollout.Snapshot, *rollout.Plan) {
		return planned(func(p *rollout.Plan) { p.Record.Desired = d })
	}
	noBaseline := planned(func(p *rollout.Plan) { p.Record.Target.StuckBefore = nil })
	receives := lists("v1", func(v *rollout.VersionObservation) {
		v.Queues = append(v.Queues, rollout.TaskQueue{Name: receipts.Name, Type: rollout.QueueActivity})
	})
	idleWorkflows := lists("v1", func(v *rollout.VersionObservation) { v.Queues[0].Backlog = idleQueue })
	activitiesOnly := lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Type = rollout.QueueActivity })
	namedIn := func(approved *v1alpha1.Asked) func(*rollout.Snapshot, *rollout.Plan) {
		return records(func(r *v1alpha1.RoutingSpec) {
			r.Proposal = &v1alpha1.RecordedProposal{BuildID: id("v2"), LeavesBehind: []v1alpha1.RecordedQueue{receipts}, Approved: approved}
		})
	}
	const gives, unserved, held = "lowering gives more", "is not served", "raises though held"
	barred := func(tag, template string) func(*rollout.Snapshot, *rollout.Plan) {
		return func(s *rollout.Snapshot, p *rollout.Plan) {
			s.Record.Routing.Spec.Bars = []v1alpha1.Bar{{BuildID: id(tag), TemplateHash: template}}
			p.Record.Bars = s.Record.Routing.Spec.Bars
		}
	}
	return []spoilt{
		{"lower: higher", lower, to(ramps("v2", 31)), gives},
		{"lower: lower", lower, also(to(ramps("v2", 29)), written(v1alpha1.DesiredRouting{Current: id("v1"),
			Ramping: &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: 29}})), ""},
		{"lower: to what was never current", lower, to(clear, current("v2")), gives},
		{"lower: to another's ramp", lower, to(ramps("v3", 1)), gives},
		{"lower: to what current was before, by a ramp", back, to(ramps("v1", 1)), gives},
		{"lower: to what is not served", back, lists("v1", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Count = 0 }), gives},
		{"raise: not read lately", raise, observes(func(o *rollout.Observation) { o.At = ago(61 * time.Second) }), "raises on an old read"},
		{"raise: no spec", raise, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec = nil }, "raises without a spec"},
		{"raise: a spec that is refused", raise, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Problems = []rollout.Problem{{}} }, "raises without a spec"},
		{"raise: no target", raise, planned(func(p *rollout.Plan) { p.Target = nil }), "raises without a spec"},
		{"raise: another", raise, to(ramps("v3", 10)), "raises " + id("v3") + ", which was not asked for"},
		{"raise: another becomes current", raise, to(current("v3")), "raises " + id("v3") + ", which was not asked for"},
		{"raise: no files", raise, records(func(r *v1alpha1.RoutingSpec) { r.Versions = r.Versions[:1] }), unserved},
		{"raise: no guard", raise, inRecordOf("v2", func(r *v1alpha1.RecordedVersion) { r.Guard = v1alpha1.GuardOff }), unserved},
		{"raise: not listed", raise, loses("v2"), unserved},
		{"raise: queues not known", raise, lists("v2", func(v *rollout.VersionObservation) { v.QueuesKnown = "" }), unserved},
		{"raise: no queue", raise, lists("v2", func(v *rollout.VersionObservation) { v.Queues = nil }), unserved},
		{"raise: pollers not known", raise, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Known = false }), unserved},
		{"raise: no poller", raise, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Count = 0 }), unserved},
		{"raise: an old poller", raise, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.LastAccess = ago(91 * time.Second) }), unserved},
		{"raise: barred", raise, barred("v2", hash("v2")), "raises a barred build"},
		{"raise: another is barred", raise, barred("v3", hash("v2")), ""},
		{"raise: another template is barred", raise, barred("v2", hash("v3")), ""},
		{"raise: two steps", raise, to(ramps("v2", 50)), "raises from 0 to 50"},
		{"raise: to the end", ramp, to(current("v2")), "raises from 10 to 100"},
		{"raise: to the end, all at once", ramp, also(to(current("v2")), written(v1alpha1.DesiredRouting{Current: id("v2")}),
			func(s *rollout.Snapshot, _ *rollout.Plan) { s.Spec.Spec.Rollout.Strategy = v1alpha1.AllAtOnce }), ""},
		{"raise: the first version", first, unspoilt, ""},
		{"raise: the first version, in mid-ramp", first, sees(func(r *rollout.RoutingConfig) { r.HasRamp, r.Ramping, r.Percentage = true, id("v2"), 10 }),
			"raises from 10 to 100"},
		{"raise: without a baseline in the record", raise, noBaseline, "without a count of what is stuck"},
		{"raise: no baseline, and it has traffic", ramp, noBaseline, ""},
		{"raise: no baseline for the first version", first, noBaseline, ""},
		{"raise: no baseline beside unversioned workers", first, also(noBaseline, lists("v2", func(v *rollout.VersionObservation) {
			v.Queues[0].Unversioned = rollout.Yes
		})), "without a count of what is stuck"},
		{"raise: leaves a queue behind", raise, receives, "leaves receipts of"},
		{"raise: serves no workflows, though they are idle", raise, also(idleWorkflows, activitiesOnly), "leaves orders of"},
		{"raise: leaves a queue behind as proposed", raise, also(receives, namedIn(nil)), "leaves receipts of"},
		{"raise: leaves a queue behind as approved", raise, also(receives, namedIn(&v1alpha1.Asked{})), ""},
		{"raise: Manual", raise, manually, "raises though the strategy is Manual"},
		{"raise: Manual, and a person's wish", raise, also(manually, wished), ""},
		{"raise: held", raise, wasHeld(v1alpha1.HoldManual, "v2"), held},
		{"raise: held, and a person's wish", raise, also(wasHeld(v1alpha1.HoldManual, "v2"), wished), ""},
		{"raise: held after drift", raise, wasHeld(v1alpha1.HoldDrift, "v2"), held},
		{"raise: held after drift of another", raise, wasHeld(v1alpha1.HoldDrift, "v1"), ""},
		{"raise: held, manually, of another", raise, wasHeld(v1alpha1.HoldManual, "v1"), held},
		{"raise: held, and the spec asks for another since", raise, also(wasHeld(v1alpha1.HoldDrift, "v2"), records(func(r *v1alpha1.RoutingSpec) { r.Target.BuildID = id("v1") })), ""},
		{"raise: held, and the spec has another template since", raise, also(wasHeld(v1alpha1.HoldDrift, "v2"), records(func(r *v1alpha1.RoutingSpec) { r.Target.TemplateHash = "old" })), ""},
	}
}

// unroutesSpoilt leave a current version without traffic.
func unroutesSpoilt() []spoilt {
	proven := all(retires(v1alpha1.UnrouteProven, 2*time.Hour), used("v1", 0))
	anyway := all(retires(v1alpha1.UnrouteAnyway, 0), used("v1", 7))
	elsewhere := all(retires(v1alpha1.UnrouteProven, 0), used("v1", 7), func(g *given) { g.listed("v1").Queues[0].Unversioned = rollout.Yes })
	const nobody, needed = "unroutes, which was not asked for", "unroutes what may be needed"
	return []spoilt{
		{"unroute: and ramps", proven, calls(func(c *rollout.RoutingCall) {
			c.Steps = append(c.Steps, rollout.RoutingStep{Kind: rollout.SetRamp, BuildID: id("v1"), Percentage: 1})
		}), "unroutes and ramps"},
		{"unroute: not read lately", proven, observes(func(o *rollout.Observation) { o.At = ago(61 * time.Second) }), "unroutes on an old read"},
		{"unroute: nobody asked", proven, records(func(r *v1alpha1.RoutingSpec) { r.Retire = nil }), nobody},
		{"unroute: asked to keep it", proven, records(func(r *v1alpha1.RoutingSpec) { r.Retire.Current = v1alpha1.KeepCurrent }), nobody},
		{"unroute: not listed", proven, loses("v1"), "unroutes a version that is not listed"},
		{"unroute: anyway", anyway, unspoilt, ""},
		{"unroute: anyway, not listed", anyway, loses("v1"), "unroutes a version that is not listed"},
		{"unroute: in use", proven, lists("v1", func(v *rollout.VersionObservation) { v.InUse.N = 1 }), needed},
		{"unroute: use not known", proven, lists("v1", func(v *rollout.VersionObservation) { v.InUse.Known = false }), needed},
		{"unroute: asked just now", proven, records(func(r *v1alpha1.RoutingSpec) { r.Retire.At = stamp(ago(time.Minute)) }), needed},
		{"unroute: to unversioned workers", elsewhere, unspoilt, ""},
		{"unroute: to no unversioned workers", elsewhere, lists("v1", func(v *rollout.VersionObservation) { v.Queues[0].Unversioned = "" }), needed},
		{"unroute: to no queue", elsewhere, lists("v1", func(v *rollout.VersionObservation) { v.Queues = nil }), needed},
		{"unroute: not on every queue", elsewhere, lists("v1", func(v *rollout.VersionObservation) {
			v.Queues = append([]rollout.TaskQueue{polled("refunds")}, v.Queues...)
		}), needed},
	}
}

// recordsSpoilt write down something that is false.
func recordsSpoilt() []spoilt {
	desires := func(d v1alpha1.DesiredRouting) func(*rollout.Snapshot, *rollout.Plan) {
		return planned(func(p *rollout.Plan) { p.Record.Desired = d })
	}
	to := func(tag string, percentage float64) v1alpha1.DesiredRouting {
		return v1alpha1.DesiredRouting{Current: id("v1"), Ramping: &v1alpha1.DesiredRamp{BuildID: id(tag), Percentage: percentage}}
	}
	ramp, lower := rampsAt(10, time.Hour), all(rampsAt(10, time.Hour), wants("v1"))
	noBasis := records(func(r *v1alpha1.RoutingSpec) { r.Basis = nil })
	return []spoilt{
		{"desires another", none, desires(v1alpha1.DesiredRouting{Current: id("v2")}), "desires "},
		{"desires a ramp", none, desires(to("v2", 10)), "desires "},
		{"desires a ramp of another", ramp, desires(to("v3", 50)), "desires "},
		{"desires more than it raises", ramp, desires(to("v2", 51)), "desires "},
		{"desires what it lowers", lower, desires(to("v2", 5)), "desires "},
		{"desires as before", lower, desires(to("v2", 10)), ""},
		{"desires as before, on nothing", none, also(noBasis, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Observation.Routing.Current = id("v2") }), "desires "},
		{"desires nothing yet", none, also(desires(to("v2", 10)), planned(func(p *rollout.Plan) { p.Record.Basis = nil })), ""},
		{"no record", ramp, planned(func(p *rollout.Plan) { p.Record = nil }), ""},
		{"forgets a bar", all(ramp, barsBuild("v1")), planned(func(p *rollout.Plan) { p.Record.Bars = nil }), "forgets the bar of " + id("v1")},
	}
}

// peopleSpoilt go against what people moved.
func peopleSpoilt() []spoilt {
	back, lower := all(promoted(50*time.Hour), barsBuild("v2")), all(rampsAt(10, time.Minute), wants("v1"))
	held := wasHeld(v1alpha1.HoldManual, "v1")
	more := records(func(r *v1alpha1.RoutingSpec) {
		r.Desired.Ramping, r.Decided.Ramping, r.Basis = nil, nil, &v1alpha1.RoutingBasis{Current: id("v1")}
	})
	caused := func(c rollout.Cause) func(*rollout.Snapshot, *rollout.Plan) {
		return planned(func(p *rollout.Plan) {
			for i := range p.Actions {
				p.Actions[i].Cause = c
			}
		})
	}
	order := func(promotions ...v1alpha1.Promotion) func(*rollout.Snapshot, *rollout.Plan) {
		return records(func(r *v1alpha1.RoutingSpec) { r.Promotions = promotions })
	}
	was := func(tag string, by v1alpha1.LeftBy) v1alpha1.Promotion {
		p := v1alpha1.Promotion{BuildID: id(tag), At: stamp(ago(60 * time.Hour)), LeftBy: by}
		if by != "" {
			p.LeftAt = stamp(ago(50 * time.Hour))
		}
		return p
	}
	const puts, on = "puts back what people moved", "goes on to "
	promotion, rollback := v1alpha1.LeftByPromotion, v1alpha1.LeftByRollback
	return []spoilt{
		{"held: put back", lower, also(held, more), puts},
		{"held: put back, for a verdict", lower, also(held, more, caused(rollout.CauseVerdict)), ""},
		{"held: put back, for a gate", lower, also(held, more, caused(rollout.CauseGate)), ""},
		{"held: put back, for a mark", lower, also(held, more, caused(rollout.CauseBarred)), ""},
		{"held: put back, for an old bar", all(lower, barsBuild("v2")), also(held, more, caused(rollout.CauseBarred)), puts},
		{"held: put back, from a promotion", back, also(held, order(was("v1", "")), records(func(r *v1alpha1.RoutingSpec) {
			v1 := v1alpha1.DesiredRouting{Current: id("v1")}
			r.Desired, r.Decided, r.Basis = v1, &v1, &v1alpha1.RoutingBasis{Current: id("v1")}
		})), puts},
		{"held: what Git asked for", lower, held, ""},
		{"held: what the bot is about to do", lower, also(held, more, records(func(r *v1alpha1.RoutingSpec) {
			r.Basis.Ramping = &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: 10}
		})), ""},
		{"held: without a basis", lower, also(held, more, records(func(r *v1alpha1.RoutingSpec) { r.Basis = nil })), ""},
		{"held after drift: put back", lower, also(wasHeld(v1alpha1.HoldDrift, "v1"), more), ""},
		{"held: edited", lower, also(held, more, records(func(r *v1alpha1.RoutingSpec) { r.Decided.Current = "another" })), ""},
		{"held: retired", lower, also(held, more, records(func(r *v1alpha1.RoutingSpec) { r.Retire = &v1alpha1.Retire{} })), ""},
		{"back to what was turned back", back, order(was("v1", rollback), was("v2", "")), on},
		{"back to what came after", back, order(was("v2", promotion), was("v1", rollback), was("v2", "")), on},
		{"back over a rollback", back, order(was("v1", promotion), was("v3", rollback), was("v2", "")), ""},
		{"on to what somebody moved away from", back, order(was("v2", promotion), was("v1", "")), on},
		{"back from what somebody promoted", back, order(was("v1", "")), ""},
		{"back from what the bot promoted again", back, also(order(was("v2", promotion), was("v1", "")), records(func(r *v1alpha1.RoutingSpec) {
			r.Basis = &v1alpha1.RoutingBasis{Current: id("v1")}
		})), ""},
		{"back to what came and went", back, also(order(was("v2", "")), observes(func(o *rollout.Observation) { o.Version(id("v1")).BecameCurrentAt = ago(time.Hour) })), ""},
		{"back to what came before", back, also(order(was("v2", "")), observes(func(o *rollout.Observation) { o.Version(id("v1")).BecameCurrentAt = ago(time.Hour) }),
			records(func(r *v1alpha1.RoutingSpec) { r.Basis.CurrentChangedAt = stamp(ago(time.Hour)) })), on},
		{"on to what somebody moved away from, lately", back, also(order(was("v2", promotion), was("v1", "")),
			observes(func(o *rollout.Observation) { o.Version(id("v1")).BecameCurrentAt = ago(time.Hour) })), on},
	}
}

// batchesSpoilt evacuate.
func batchesSpoilt() []spoilt {
	signal := stays(3)
	move := all(stays(3), endedStages(v1alpha1.EvacuateBySignal, v1alpha1.EvacuateByCancel), inRecord(v1alpha1.EvacuateByMove, v1alpha1.EvacuationApproved))
	entry := func(change func(*v1alpha1.RecordedEvacuation)) func(*rollout.Snapshot, *rollout.Plan) {
		return inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { change(&r.Evacuations[len(r.Evacuations)-1]) })
	}
	const counted, traffic, old, yes = "evacuates workflows that were not counted", "evacuates what has traffic", "evacuates on an old read", "a person said nothing of Move"
	return []spoilt{
		{"batch: two", signal, planned(func(p *rollout.Plan) { p.Batches = append(p.Batches, p.Batches[0]) }), "starts 2 jobs"},
		{"batch: not listed", signal, loses("v1"), counted},
		{"batch: not counted", signal, lists("v1", func(v *rollout.VersionObservation) { v.OpenPinned.Known = false }), counted},
		{"batch: none", signal, lists("v1", func(v *rollout.VersionObservation) { v.OpenPinned.N = 0 }), counted},
		{"batch: current", signal, observes(func(o *rollout.Observation) { o.Routing.Current = id("v1") }), traffic},
		{"batch: ramps at 0%", signal, observes(func(o *rollout.Observation) { o.Routing.HasRamp, o.Routing.Ramping = true, id("v1") }), traffic},
		{"batch: asked for", signal, planned(func(p *rollout.Plan) { p.Target = &rollout.Target{BuildID: id("v1")} }), "evacuates what is asked for"},
		{"batch: nothing asked for", signal, planned(func(p *rollout.Plan) { p.Target = nil }), "evacuates what is asked for"},
		{"batch: not read", signal, observes(func(o *rollout.Observation) { o.Problem = &rollout.Problem{} }), old},
		{"batch: not read lately", signal, observes(func(o *rollout.Observation) { o.At = ago(61 * time.Second) }), old},
		{"batch: another's", signal, observes(func(o *rollout.Observation) { o.ManagerIdentity = "another" }), "evacuates what is somebody else's"},
		{"batch: nobody's", signal, observes(func(o *rollout.Observation) { o.ManagerIdentity = "" }), ""},
		{"move: not served", move, lists("v2", func(v *rollout.VersionObservation) { v.Queues[0].Pollers.Count = 0 }), "moves to " + id("v2") + ", which is not served"},
		{"move: only proposed", move, entry(func(e *v1alpha1.RecordedEvacuation) { e.State = v1alpha1.EvacuationProposed }), yes},
		{"move: approved once", move, entry(func(e *v1alpha1.RecordedEvacuation) { e.State, e.ApprovedAt = v1alpha1.EvacuationRunning, stamp(noon) }), ""},
		{"move: another job", move, entry(func(e *v1alpha1.RecordedEvacuation) { e.JobID = "another" }), yes},
		{"move: asked for by nobody", move, inRecordOf("v1", func(r *v1alpha1.RecordedVersion) { r.Evacuations = nil }), yes},
		{"cancel: needs nobody", move, planned(func(p *rollout.Plan) {
			p.Batches[0].Job.Stage, p.Batches[0].Job.JobID = v1alpha1.EvacuateByCancel, "another"
		}), ""},
	}
}

// objectsSpoilt change objects.
func objectsSpoilt() []spoilt {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour), carries("v1", "pdb"))
	has := all(templates(tmpl("pdb")), carries("v1", "pdb"))
	next := func(change func(*v1alpha1.RecordedVersion)) func(*rollout.Snapshot, *rollout.Plan) {
		return planned(func(p *rollout.Plan) { change(rollout.FindVersion(p.Record.Versions, id("v1"))) })
	}
	carried := func(name string, scales bool) func(*v1alpha1.RecordedVersion) {
		return func(r *v1alpha1.RecordedVersion) {
			r.Resources = []v1alpha1.RecordedResource{{Template: name, Scales: scales}}
		}
	}
	drops := next(func(r *v1alpha1.RecordedVersion) { r.Resources = nil })
	loses := id("v1") + " loses pdb"
	const keeps, both = "is scaled down and keeps its objects", "has a number of replicas and a scaler"
	return []spoilt{
		{"objects: kept at a scale-down", old, next(carried("pdb", false)), keeps},
		{"objects: kept at 1", old, next(func(r *v1alpha1.RecordedVersion) { carried("pdb", false)(r); r.Replicas = replicas(1) }), ""},
		{"objects: kept after a scale-down", all(old, scaledDown("v1", 80*time.Hour), noPollers("v1")), next(carried("pdb", false)), ""},
		{"objects: a scaler of a new version", asks("v2"), planned(func(p *rollout.Plan) { carried("hpa", true)(rollout.FindVersion(p.Record.Versions, id("v2"))) }), both},
		{"objects: no scaler of a new version", asks("v2"), planned(func(p *rollout.Plan) { carried("pdb", false)(rollout.FindVersion(p.Record.Versions, id("v2"))) }), ""},
		{"objects: a scaler that comes", none, next(carried("hpa", true)), "gets a scaler while it runs"},
		{"objects: a scaler that comes, of no template", templates(toAll("pdb")), next(carried("hpa", true)), "gets a scaler while it runs"},
		{"objects: a scaler that comes to all", templates(toAll("hpa")), next(carried("hpa", true)), ""},
		{"objects: a scaler that comes to one without a number", func(g *given) { g.version("v1").Replicas = nil }, next(carried("hpa", true)), ""},
		{"objects: a number that goes", none, next(func(r *v1alpha1.RecordedVersion) { r.Replicas = nil }), "loses its number of replicas"},
		{"objects: a number that goes, with a scaler", all(templates(toAll("hpa")), carries("v1", "hpa"), numbered("v1")),
			next(func(r *v1alpha1.RecordedVersion) { r.Replicas = nil }), ""},
		{"objects: the Deployment's name", none, next(carried("deployment", false)), "in the Deployment's place"},
		{"objects: lost, gone", has, also(drops, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources = nil }), ""},
		{"objects: lost, not selected", has, drops, ""},
		{"objects: lost, not readable", has, also(drops, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources[0].Problem = &rollout.Problem{} }), loses},
		{"objects: lost, missed", has, also(drops, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources, s.ResourcesProblem = nil, &rollout.Problem{} }), loses},
		{"objects: lost, another missed", has, also(drops, func(s *rollout.Snapshot, _ *rollout.Plan) { s.ResourcesProblem = &rollout.Problem{} }), ""},
		{"objects: kept, missed", has, func(s *rollout.Snapshot, _ *rollout.Plan) { s.Resources, s.ResourcesProblem = nil, &rollout.Problem{} }, ""},
	}
}

// TestTheOracleBites: the oracle of the properties finds what it looks for, in plans that are well but for that. It
// lets pass what may be done.
func TestTheOracleBites(t *testing.T) {
	for _, group := range [][]spoilt{writesSpoilt(), removalsSpoilt(), raisesSpoilt(), unroutesSpoilt(), recordsSpoilt(), peopleSpoilt(), batchesSpoilt(), objectsSpoilt(), unusableSpoilt(), serverSpoilt()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				s := twice(of(c.given))
				p := decide(t, s, allowed)
				require.Empty(t, oracle.Forbidden(s, p))
				c.spoil(&s, &p)
				found := oracle.Forbidden(s, p)
				if c.want == "" {
					require.Empty(t, found)
					return
				}
				require.Contains(t, strings.Join(found, "\n"), c.want)
			})
		}
	}
}
