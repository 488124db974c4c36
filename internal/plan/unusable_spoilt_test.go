package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// invalid: the spec cannot be used any more when a plan that was made with it is to be carried out.
func invalid(s *rollout.Snapshot, _ *rollout.Plan) {
	s.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}}
}

func noSpec(s *rollout.Snapshot, _ *rollout.Plan)       { s.Spec = nil }
func noConnection(s *rollout.Snapshot, _ *rollout.Plan) { s.Connection = nil }

// unusableSpoilt are plans under which the spec, or its connection, goes.
func unusableSpoilt() []spoilt {
	down := all(promoted(100*time.Hour), drained("v1", 90*time.Hour), scaledDown("v1", 80*time.Hour), noPollers("v1"))
	gated := all(candidate(), gate(v1alpha1.GateHold), gateIs(rollout.GateMissing, 1))
	desires := func(d v1alpha1.DesiredRouting) func(*rollout.Snapshot, *rollout.Plan) {
		return planned(func(p *rollout.Plan) { p.Record.Desired = d })
	}
	return []spoilt{
		{"lowers without a spec", rampsAt(30, time.Hour), noSpec, ""},
		{"raises on an invalid spec", candidate(), invalid, "raises without a spec that can be used"},
		{"raises in an environment that cannot be used", candidate(), func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.EnvironmentProblem = &rollout.Problem{Reason: rollout.InvalidConfiguration}
		}, "raises without a spec that can be used"},
		{"raises without a connection", candidate(), noConnection, "raises without a spec that can be used"},
		{"starts a gate on an invalid spec", gated, invalid, "does more than lowering"},
		{"deletes without a connection", down, noConnection, "does more than lowering"},
		{"starts a batch job without a connection", stays(3), noConnection, "does more than lowering"},
		{"removes all on an invalid spec", all(ended(), specGone), invalid, "does more than lowering"},
		{"creates on an invalid spec", asks("v2"), invalid, "without a spec that can be used"},
		{"clears a ramp and desires it", all(rampsAt(30, time.Hour), wants("v1")), also(records(func(r *v1alpha1.RoutingSpec) { r.Desired.Ramping = nil }),
			desires(v1alpha1.DesiredRouting{Current: id("v1"), Ramping: &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: 30}})), "desires"},
	}
}

// retiredElsewhere: the versions are in another Temporal namespace than the spec asks for, which is retired there.
func retiredElsewhere(s *rollout.Snapshot, p *rollout.Plan) {
	s.Record.Routing.Spec.TemporalNamespace, p.Record.TemporalNamespace = "elsewhere", "elsewhere"
	spec := *s.Spec
	spec.Metadata.Annotations = map[string]string{rollout.AnnotationRetire: "true"}
	s.Spec = &spec
}

// connectedBy: the record knows the connection.
func connectedBy(s *rollout.Snapshot, p *rollout.Plan) {
	c := &v1alpha1.RecordedConnection{Name: "temporal", Spec: v1alpha1.ConnectionSpec{HostPort: "temporal:7233"}}
	s.Record.Routing.Spec.Connection, p.Record.Connection = c, c
}

// onlyLowersCases are what Never lets pass of a version's files, and what not, while the spec cannot be used.
func onlyLowersCases() []spoilt {
	writes := func(w rollout.VersionWrite) func(*rollout.Snapshot, *rollout.Plan) {
		return planned(func(p *rollout.Plan) { p.Versions = []rollout.VersionWrite{w} })
	}
	edit := func(tag string, n *int32) rollout.VersionWrite {
		return rollout.VersionWrite{BuildID: id(tag), Op: rollout.EditVersion, Guard: v1alpha1.GuardOn, Replicas: n}
	}
	moves := all(candidate(), func(g *given) { g.Connection = other() })
	return []spoilt{
		{"fewer replicas, and not none", none, also(invalid, writes(edit("v1", replicas(1)))), ""},
		{"none as before", none, also(invalid, records(func(r *v1alpha1.RoutingSpec) { r.Versions[0].Replicas = replicas(0) }), writes(edit("v1", replicas(0)))), ""},
		{"a version that is not recorded", none, also(invalid, writes(edit("v3", replicas(1)))), ""},
		{"another connection", moves, invalid, "would be changed (Reconnect) although the spec is not valid"},
		{"a record that names no namespace", candidate(), records(func(r *v1alpha1.RoutingSpec) { r.TemporalNamespace = "" }), ""},
		{"another namespace", candidate(), records(func(r *v1alpha1.RoutingSpec) { r.TemporalNamespace = "elsewhere" }), "asks for another Temporal namespace"},
		{"another namespace, and it is retired", candidate(), retiredElsewhere, ""},
		{"whose connection is known", candidate(), also(retiredElsewhere, noConnection, connectedBy), ""},
		{"whose connection is in Git", candidate(), also(retiredElsewhere, noConnection, func(s *rollout.Snapshot, _ *rollout.Plan) { s.LastConnection = other() }), ""},
		{"whose connection is not known", candidate(), also(retiredElsewhere, noConnection), "its connection is gone from Git"},
		{"another address there", moves, retiredElsewhere, ""},
		{"nothing is written there", none, also(retiredElsewhere, planned(func(p *rollout.Plan) { p.Record = nil })), ""},
		{"back to what has no replicas, by no recorded spec", all(promoted(time.Minute), barsBuild("v2")),
			also(invalid, records(func(r *v1alpha1.RoutingSpec) { r.Versions[0].Replicas = replicas(0) })), "whose files are not in Git"},
	}
}

// serverMoved is a connection that leads to another address, where the same Temporal namespace is: the versions follow
// it.
func serverMoved() change {
	return all(rampsAt(10, time.Minute), recorded, leadsTo("elsewhere:7233"), isThere("elsewhere:7233", "the-id"))
}

// there changes what was found at the other address.
func there(change func(*rollout.NamespaceThere)) func(*rollout.Snapshot, *rollout.Plan) {
	return func(s *rollout.Snapshot, _ *rollout.Plan) {
		found := *s.NamespaceThere
		change(&found)
		s.NamespaceThere = &found
	}
}

// unproven: it is not known any more what is at the other address.
func unproven(s *rollout.Snapshot, _ *rollout.Plan) { s.NamespaceThere = nil }

// onlyDoes does one thing by the plan's connection, which is not known any more to lead to the server that the versions
// are on.
func onlyDoes(change func(*rollout.Plan)) func(*rollout.Snapshot, *rollout.Plan) {
	return also(unproven, planned(func(p *rollout.Plan) {
		*p = rollout.Plan{Connection: p.Connection}
		change(p)
	}))
}

// serverCases follow a connection to another address, without the proof that the same Temporal namespace is there.
func serverCases() []spoilt {
	moved := serverMoved()
	const follows, changed = "(Reconnect) to those of another server", "another server would be changed"
	return []spoilt{
		{"server: the same namespace is there", moved, unspoilt, ""},
		{"server: nobody asked", moved, unproven, follows},
		{"server: another ID there", moved, there(func(n *rollout.NamespaceThere) { n.ID = "another" }), follows},
		{"server: no ID in either place", moved, also(there(func(n *rollout.NamespaceThere) { n.ID = "" }),
			records(func(r *v1alpha1.RoutingSpec) { r.TemporalNamespaceID = "" })), follows},
		{"server: asked about another namespace", moved, there(func(n *rollout.NamespaceThere) { n.TemporalNamespace = "dev" }), follows},
		{"server: asked at another address", moved, there(func(n *rollout.NamespaceThere) { n.HostPort = "cloud:7233" }), follows},
		{"server: files are made", moved, also(unproven, planned(func(p *rollout.Plan) { p.Versions[0].Op = rollout.RenderVersion })), "(Render) to those of another server"},
		{"server: recorded", moved, also(unproven, planned(func(p *rollout.Plan) { p.Versions = nil })), "forgotten on which server"},
		{"server: no connection recorded", moved, also(unproven, planned(func(p *rollout.Plan) { p.Record.Connection = nil })), follows},
		{"server: a lowering", moved, onlyDoes(func(p *rollout.Plan) { p.Lower = &rollout.RoutingCall{} }), changed},
		{"server: a raise", moved, onlyDoes(func(p *rollout.Plan) { p.Raise = &rollout.RoutingCall{} }), changed},
		{"server: a gate", moved, onlyDoes(func(p *rollout.Plan) { p.Gates = []rollout.GateStart{{}} }), changed},
		{"server: a deletion", moved, onlyDoes(func(p *rollout.Plan) { p.Deletions = []string{id("v1")} }), changed},
		{"server: a batch job", moved, onlyDoes(func(p *rollout.Plan) { p.Batches = []rollout.BatchStart{{BuildID: id("v1")}} }), changed},
	}
}

// serverSpoilt are the same for the oracle.
func serverSpoilt() []spoilt {
	moved := serverMoved()
	const touches = "touches another server"
	return []spoilt{
		{"server: the versions follow", moved, unproven, "takes " + id("v1") + " to another server"},
		{"server: files are made", moved, also(unproven, planned(func(p *rollout.Plan) { p.Versions[1].Op = rollout.RenderVersion })),
			"takes " + id("v2") + " to another server"},
		{"server: recorded", moved, also(unproven, planned(func(p *rollout.Plan) { p.Versions = nil })), "records another server"},
		{"server: a lowering", moved, onlyDoes(func(p *rollout.Plan) { p.Lower = &rollout.RoutingCall{} }), touches},
		{"server: a gate", moved, onlyDoes(func(p *rollout.Plan) { p.Gates = []rollout.GateStart{{}} }), touches},
		{"lowers without a record", all(rampsAt(30, time.Hour), wants("v1")), func(s *rollout.Snapshot, _ *rollout.Plan) {
			s.Record.Routing, s.Record.RoutingProblem = nil, &rollout.Problem{}
		}, "lowers without a record"},
	}
}

// TestMarkOfAnAttempt: the mark of a build that is turned back has the attempt that the target is at. That is not the
// one that its files were written in.
func TestMarkOfAnAttempt(t *testing.T) {
	p := decide(t, of(rampsAt(10, time.Minute), func(g *given) { g.rec.Target.Attempt = 3 }), turnsBack)
	require.Equal(t, map[string]string{id("v2"): "3 says so"}, p.Lower.TurnedBack)
}

// TestAdoptedMeanwhile: what policy adopts is said, but for a spec that cannot be used, which is said first.
func TestAdoptedMeanwhile(t *testing.T) {
	adopts := verdictOn(rollout.DriftAction, rollout.Verdict{Effect: rollout.Allow, Drift: rollout.DriftAdopt})
	higher := all(rampsAt(10, time.Minute), routes("v1", "v2", 30, time.Minute))
	p := decide(t, of(higher), adopts)
	require.Equal(t, "RoutingDrift", p.Status.Conditions[0].Reason)
	p = decide(t, of(higher, recorded, func(g *given) { invalid(&g.Snapshot, nil) }), adopts)
	require.Equal(t, "InvalidSpec", p.Status.Conditions[0].Reason)
}

// TestEndOfARetirement: what a person who retired it is told to do.
func TestEndOfARetirement(t *testing.T) {
	by := func(who string) change { return func(g *given) { g.rec.Retire.By = who } }
	message := func(changes ...change) string {
		return decide(t, of(changes...), allowed).Status.Conditions[0].Message
	}
	require.NotContains(t, message(ended(), by("ada")), "annotation")
	annotated := func(g *given) { g.Spec.Metadata.Annotations = map[string]string{rollout.AnnotationRetire: "true"} }
	require.Contains(t, message(ended(), by(byAnnotation), annotated), "without the annotation it is made anew")
	require.True(t, decide(t, of(ended(), by(byAnnotation), annotated, specGone), allowed).Remove)
	require.Contains(t, Look(of(ended(), by(byAnnotation), annotated, specGone)).Propose().State.Message, "nothing of it is left")
}

// TestLostAndAnotherAskedFor: it is said that the target does not become current in the place of what was.
func TestLostAndAnotherAskedFor(t *testing.T) {
	message := func(changes ...change) string { return Look(of(changes...)).Propose().State.Message }
	require.Contains(t, message(rampsAt(10, time.Minute), returns("v1", "v2")), id("v2")+" is not made current in its place")
	require.NotContains(t, message(forgets), "in its place")
}
