package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// leadsTo changes the address of the connection in Git, and nothing else.
func leadsTo(hostPort string) change {
	return func(g *given) {
		c := *g.Connection
		c.Spec.HostPort = hostPort
		g.Connection = &c
	}
}

// rotates changes the credentials of the connection in Git, and nothing else.
func rotates(g *given) {
	c := *g.Connection
	c.Spec.MutualTLSSecretRef = &v1alpha1.SecretReference{Name: "renewed"}
	g.Connection = &c
}

// renewed is the connection with another server name, at the same address.
func renewed() *v1alpha1.Connection {
	c := steady().Connection
	c.Spec.TLS = &v1alpha1.ConnectionTLS{ServerName: "renewed"}
	return c
}

// isThere says that the Temporal namespace at an address has an ID, where the recorded one is the-id.
func isThere(hostPort, id string) change {
	return func(g *given) {
		g.rec.TemporalNamespaceID = "the-id"
		g.NamespaceThere = &rollout.NamespaceThere{HostPort: hostPort, TemporalNamespace: "prod", ID: id}
	}
}

// TestAnotherServer: a connection that leads to another server takes no version along, whatever is known of the
// address. Traffic is still taken back where the versions are.
func TestAnotherServer(t *testing.T) {
	const connection = "connection payments/temporal leads to elsewhere:7233, and payments/checkout is at temporal:7233: "
	for _, c := range []struct {
		name  string
		given change
		why   string // "": the versions follow
	}{
		{"nobody asked", none, "which Temporal namespace prod has at elsewhere:7233 was not asked"},
		{"another namespace", isThere("elsewhere:7233", "another"), "Temporal namespace prod has the ID another at elsewhere:7233, expected the-id"},
		{"not known", all(isThere("elsewhere:7233", ""), func(g *given) { g.NamespaceThere.Problem = "no answer" }),
			"the ID of Temporal namespace prod at elsewhere:7233 is not known: no answer"},
		{"asked at another address", isThere("cloud:7233", "the-id"), "which Temporal namespace prod has at elsewhere:7233 was not asked"},
		{"asked about another namespace", all(isThere("elsewhere:7233", "the-id"), func(g *given) { g.NamespaceThere.TemporalNamespace = "dev" }),
			"which Temporal namespace prod has at elsewhere:7233 was not asked"},
		{"nothing to compare with", all(isThere("elsewhere:7233", "the-id"), func(g *given) { g.rec.TemporalNamespaceID = "" }),
			"the record has no ID of Temporal namespace prod that the one at elsewhere:7233 could be compared with"},
		{"the same namespace", isThere("elsewhere:7233", "the-id"), ""},
		{"the same, by what the server said", all(isThere("elsewhere:7233", "the-id"), func(g *given) {
			g.rec.TemporalNamespaceID, g.Observation.NamespaceID = "", "the-id"
		}), ""},
		{"the same address, written otherwise", leadsTo("Temporal:7233"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			leads := leadsTo("elsewhere:7233")
			if c.name == "the same address, written otherwise" {
				leads = none
			}
			s := of(rampsAt(10, time.Minute), recorded, leads, c.given)
			p := decide(t, s, turnsBack)
			require.Empty(t, oracle.Forbidden(s, p))
			require.Equal(t, []string{"ClearRamp  0"}, sayCall(p.Lower), "traffic is taken back in either case")
			p = decide(t, s, allowed)
			require.Empty(t, oracle.Forbidden(s, p))
			if c.why == "" {
				require.Equal(t, s.Connection, Look(s).Connection())
				require.Equal(t, []rollout.WriteOp{rollout.ReconnectVersion, rollout.ReconnectVersion}, ops(p))
				require.Equal(t, s.Connection.Spec.HostPort, p.Record.Connection.Spec.HostPort)
				return
			}
			require.Equal(t, "temporal:7233", Look(s).Connection().Spec.HostPort, "Temporal is asked where the versions are")
			require.Empty(t, p.Versions)
			require.Equal(t, "temporal:7233", p.Record.Connection.Spec.HostPort)
			ready := condition(p.Status, v1alpha1.ConditionReady)
			require.Equal(t, "InvalidSpec", ready.Reason)
			require.Contains(t, ready.Message, connection+c.why+". A version stays on its server")
			require.Contains(t, ready.Message, "rampart retire payments/checkout; start no more workflows at temporal:7233")
		})
	}
}

// TestServerMovedForGood: a worker deployment whose connection leads to another server is ended where it is, and made
// anew there.
func TestServerMovedForGood(t *testing.T) {
	w := rampingV2(t)
	servers, old := w.namespaces(), w.server
	w.given.Connection = other()
	w.given.NamespaceThere = &rollout.NamespaceThere{HostPort: "elsewhere:7233", TemporalNamespace: "prod", ID: "another"}
	w.runIn(servers, 30*time.Minute)
	require.Equal(t, "InvalidSpec", w.reason())
	require.Empty(t, old.calls)
	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Retire = &v1alpha1.Retire{Current: v1alpha1.UnrouteAnyway, By: "ada", Reason: "moves", At: stamp(w.server.now)}
	})
	w.runIn(servers, time.Minute)
	require.Equal(t, "temporal:7233", w.routing().Connection.Spec.HostPort)
	w.runIn(servers, 60*time.Hour)
	require.Equal(t, []string{"clear", " current"}, old.calls)
	require.Empty(t, old.versions, "nothing is left behind")
	require.Equal(t, []string{"prod", "prod elsewhere"}, sortedKeys(servers))
	require.Equal(t, []string{"v2 current"}, servers["prod elsewhere"].calls, "made anew there")
	require.Equal(t, "RolloutComplete*", w.reason())
	require.Equal(t, "elsewhere:7233", w.routing().Connection.Spec.HostPort)
	require.Nil(t, w.routing().Retire)
	for path, data := range w.manifests() {
		require.Contains(t, data, "elsewhere:7233", path)
	}
	w.quiet(20, time.Hour)
}

// TestNamespaceIDRecorded: the ID of the Temporal namespace is written with another change, never by itself.
func TestNamespaceIDRecorded(t *testing.T) {
	knows := func(g *given) { g.Observation.NamespaceID = "the-id" }
	require.True(t, Look(of(recorded)).Ask().NamespaceID)
	require.False(t, Look(of(recorded, func(g *given) { g.rec.TemporalNamespaceID = "the-id" })).Ask().NamespaceID)
	require.True(t, Look(of(recorded, knows)).Ask().NamespaceID, "the second read of a cycle takes the place of the first")
	s := of(recorded, knows)
	require.Equal(t, s.Record.Routing.Spec, *decide(t, s, allowed).Record)
	require.Equal(t, "the-id", decide(t, of(recorded, knows, asks("v2")), allowed).Record.TemporalNamespaceID)
}

// TestCredentialsFollow: new credentials reach every version that has workers, whatever keeps the rollout where it is.
func TestCredentialsFollow(t *testing.T) {
	for name, held := range map[string]change{
		"held":      holds(v1alpha1.HoldManual, "v2"),
		"barred":    barsBuild("v2"),
		"drift":     routes("v2", "v1", 5, time.Second),
		"foreign":   foreign(),
		"the spec":  asks("v3"),
		"nothing":   none,
		"an edit":   edits("v2", "v1", 20),
		"a limit":   func(g *given) { asks("v3")(g); g.Limits.MaxVersions = 1 },
		"a retired": retires(v1alpha1.KeepCurrent, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			s := of(promoted(2*time.Hour), recorded, held, rotates)
			for _, e := range []rollout.Effect{rollout.Allow, rollout.RequireApproval} {
				p := decide(t, s, verdictOn(rollout.UpdateVersion, effect(e)))
				written := map[string]bool{}
				for _, w := range p.Versions {
					written[named(w.BuildID)] = true
				}
				require.True(t, written["v1"] && written["v2"], "%s: %v", e, written)
				require.Empty(t, oracle.Forbidden(s, p))
			}
		})
	}
}

// TestSecretNotKnown: a Secret that may not be sent, or is missing, turns no build back: whether its gate failed is not
// known.
func TestSecretNotKnown(t *testing.T) {
	for name, in := range map[string]rollout.GateInput{"refused": {Problem: "no TLS"}, "missing": {}} {
		t.Run(name, func(t *testing.T) {
			s := of(rampsAt(50, time.Minute), stepGate(2, v1alpha1.GateRollback), stepGateIs(2, rollout.GateFailed), secretInput(), hasInput(in))
			p := decide(t, s, allowed)
			require.Nil(t, p.Lower)
			require.Empty(t, p.Record.Bars)
			require.NotEqual(t, string(rollout.GateHasFailed), condition(p.Status, v1alpha1.ConditionReady).Reason)
		})
	}
}

// TestAskNamespace asks only where the address changed and nothing else is wrong: the answer decides whether the
// versions follow.
func TestAskNamespace(t *testing.T) {
	leads := leadsTo("elsewhere:7233")
	for name, c := range map[string]struct {
		given change
		asks  bool
	}{
		"another address":                     {leads, true},
		"the same address":                    {none, false},
		"the same address, written otherwise": {leadsTo("Temporal:7233"), false},
		"other credentials":                   {rotates, false},
		"no connection in the record":         {all(leads, func(g *given) { g.rec.Connection = nil }), false},
		"another Temporal namespace":          {all(leads, func(g *given) { g.Spec.Spec.WorkerOptions.TemporalNamespace = "dev" }), false},
		"no connection in Git":                {func(g *given) { g.Connection = nil }, false},
		"no spec in Git":                      {all(leads, func(g *given) { g.Spec = nil }), false},
		"a spec that is not valid":            {all(leads, func(g *given) { g.Problems = []rollout.Problem{{Message: "no image"}} }), false},
		"no record":                           {all(leads, func(g *given) { g.Record.Routing = nil }), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(recorded, c.given)
			conn, namespace := Look(s).AskNamespace()
			if !c.asks {
				require.Nil(t, conn)
				require.Empty(t, namespace)
				return
			}
			require.Equal(t, s.Connection, conn)
			require.Equal(t, "prod", namespace)
		})
	}
}

// TestOneWrite: what writes the files of a version lets it follow its connection, too. What only moves its traffic does
// not.
func TestOneWrite(t *testing.T) {
	follow := func(tag string) rollout.Action {
		return rollout.Action{Kind: rollout.UpdateVersion, Update: rollout.UpdateConnection, BuildID: id(tag)}
	}
	for kind, writes := range map[rollout.ActionKind]bool{
		rollout.CreateVersion: true, rollout.UpdateVersion: true, rollout.Restore: true, rollout.ScaleVersion: true, rollout.ScaleDown: true,
		rollout.RemoveFiles: true, rollout.DriftAction: true, rollout.Ramp: false, rollout.Promote: false, rollout.Continue: false,
	} {
		t.Run(string(kind), func(t *testing.T) {
			other := rollout.Action{Kind: kind, BuildID: id("v1")}
			want := []rollout.Action{other, follow("v2")}
			if !writes {
				want = []rollout.Action{follow("v1"), other, follow("v2")}
			}
			for _, taken := range [][]rollout.Action{{follow("v1"), other, follow("v2")}, {other, follow("v1"), follow("v2")}} {
				r := &resolver{taken: taken}
				r.oneWrite()
				require.ElementsMatch(t, want, r.taken)
			}
		})
	}
}
