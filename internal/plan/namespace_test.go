package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A worker deployment of one name in another Temporal namespace is another one: a version never moves there. It is
// ended where it is, and made anew.

// asksFor is a spec with another Temporal namespace.
func asksFor(namespace string) change {
	return func(g *given) {
		moved := *g.Spec
		moved.Spec.WorkerOptions.TemporalNamespace = namespace
		g.Spec = &moved
	}
}

// cloud is a connection of another name, to another server.
func cloud() *v1alpha1.Connection {
	return &v1alpha1.Connection{Metadata: v1alpha1.ObjectMeta{Name: "cloud"}, Spec: v1alpha1.ConnectionSpec{HostPort: "cloud:7233"}}
}

// asksForCloud is a spec with another Temporal namespace by another connection. last is the one that it had, as it is
// in Git.
func asksForCloud(namespace string, last *v1alpha1.Connection) change {
	return all(asksFor(namespace), func(g *given) {
		g.Spec.Spec.WorkerOptions.ConnectionRef.Name = "cloud"
		g.Connection, g.LastConnection = cloud(), last
	})
}

// namespaces let a world have a Temporal in each namespace of each connection, and give the ones that were used.
func (w *world) namespaces() map[string]*server {
	servers := map[string]*server{"prod": w.server}
	w.after = func(s rollout.Snapshot, p rollout.Plan) { require.Empty(w.t, oracle.Forbidden(s, p), "row %s", p.Row) }
	return servers
}

// runIn lets time pass, in whatever namespace the worker deployment is.
func (w *world) runIn(servers map[string]*server, d time.Duration) {
	for end := w.server.now.Add(d); w.server.now.Before(end); {
		s := w.given.Snapshot
		s.Record = w.record()
		ns := TemporalNamespace(s)
		if c := Look(s).Connection(); c != nil && c.Metadata.Name != "temporal" {
			ns += " in the " + c.Metadata.Name
		} else if c != nil && c.Spec.HostPort == other().Spec.HostPort {
			ns += " elsewhere"
		}
		if servers[ns] == nil {
			servers[ns] = newServer(w.server.now)
		}
		servers[ns].now = w.server.now
		w.server = servers[ns]
		w.run(10 * time.Second)
		if step := d/150 - 10*time.Second; step > 0 {
			w.server.tick(step)
			w.pods()
		}
	}
}

// manifests are the files of versions that are in Git.
func (w *world) manifests() map[string]string {
	out := map[string]string{}
	for path, data := range w.files {
		if strings.Contains(path, "/versions/") {
			out[path] = data
		}
	}
	return out
}

// TestNamespaceChanged: in mid-ramp a push asks for another namespace. What is where it was is kept and turned back
// there; a person retires it; it ends on proof, and is made anew, as new versions: of the same build, and with nothing
// of what the old one was.
func TestNamespaceChanged(t *testing.T) {
	w := rampingV2(t)
	old := w.server
	servers := w.namespaces()
	require.Len(t, w.manifests(), 2)
	asksFor("other")(w.given)
	w.runIn(servers, 30*time.Minute)
	require.Equal(t, "InvalidSpec", w.reason())
	require.Empty(t, old.calls)
	w.judge = turnsBack
	w.runIn(servers, time.Minute)
	w.judge = allowed
	require.Equal(t, []string{"clear"}, old.calls, "lowered where it is")
	require.Len(t, w.routing().Bars, 1)
	require.Contains(t, condition(w.status(), v1alpha1.ConditionReady).Message, "Meanwhile: "+id("v2")+" was turned back")
	require.Equal(t, "prod", w.record().Status.Spec.WorkerOptions.TemporalNamespace)

	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Retire = &v1alpha1.Retire{Current: v1alpha1.UnrouteAnyway, By: "ada", Reason: "moves", At: stamp(w.server.now)}
	})
	w.given.Connection = renewed()
	w.runIn(servers, time.Minute)
	for path, data := range w.manifests() {
		require.Contains(t, data, "value: renewed", path)
		require.Contains(t, data, "value: prod", path)
		require.NotContains(t, data, "value: other", path)
	}
	w.runIn(servers, 60*time.Hour)
	require.Equal(t, []string{"clear", " current"}, old.calls)
	require.Empty(t, old.versions, "nothing is left behind")

	require.Equal(t, []string{"v2 current"}, servers["other"].calls, "the build is not barred there, and a first version")
	require.Len(t, servers, 2)
	require.Equal(t, "RolloutComplete*", w.reason())
	rec := w.routing()
	require.Equal(t, "other", rec.TemporalNamespace)
	require.Empty(t, rec.Bars)
	require.Nil(t, rec.Retire)
	require.Len(t, rec.Promotions, 1)
	require.Equal(t, 1, rec.Target.Attempt)
	require.Equal(t, []string{id("v2")}, recordIDs(rec))
	require.Zero(t, rec.Versions[0].TurnedBack)
	require.Len(t, w.manifests(), 1)
	for path, data := range w.manifests() {
		require.Contains(t, data, "value: other", path)
		require.NotContains(t, data, "value: prod", path)
	}
	w.quiet(20, time.Hour)
}

// TestNamespaceAndConnectionChanged: one push asks for another namespace by another connection. What is where it was is
// looked at and kept by the connection of there, whether that is still in Git or not, until nothing is left of it.
func TestNamespaceAndConnectionChanged(t *testing.T) {
	for name, last := range map[string]*v1alpha1.Connection{"the old one stays": steady().Connection, "the old one is gone": nil, "the old one moved": other()} {
		t.Run(name, func(t *testing.T) {
			w := rampingV2(t)
			old, was := w.server, w.manifests()
			servers := w.namespaces()
			asksForCloud("other", last)(w.given)
			w.runIn(servers, 30*time.Minute)
			require.Equal(t, "InvalidSpec", w.reason())
			require.Contains(t, condition(w.status(), v1alpha1.ConditionReady).Message, "temporalNamespace changed from prod to other")
			require.Empty(t, old.calls)
			w.judge = turnsBack
			w.runIn(servers, time.Minute)
			w.judge = allowed
			require.Equal(t, []string{"clear"}, old.calls, "lowered where it is")
			require.Equal(t, was, w.manifests())
			require.Equal(t, "temporal", w.routing().Connection.Name)

			w.edit(func(r *v1alpha1.RoutingSpec) {
				r.Retire = &v1alpha1.Retire{Current: v1alpha1.UnrouteAnyway, By: "ada", Reason: "moves", At: stamp(w.server.now)}
			})
			w.runIn(servers, time.Minute)
			require.Equal(t, "temporal", w.routing().Connection.Name)
			require.Equal(t, "temporal", w.record().Status.Spec.WorkerOptions.ConnectionRef.Name)
			for path, data := range w.manifests() {
				require.Contains(t, data, "value: prod", path)
				require.NotContains(t, data, "cloud:7233", path)
			}
			w.runIn(servers, 60*time.Hour)
			require.Equal(t, []string{"clear", " current"}, old.calls)
			require.Empty(t, old.versions, "nothing is left behind")

			require.Equal(t, []string{"other in the cloud", "prod"}, sortedKeys(servers))
			require.Equal(t, []string{"v2 current"}, servers["other in the cloud"].calls)
			require.Equal(t, "RolloutComplete*", w.reason())
			require.Equal(t, "cloud", w.routing().Connection.Name)
			require.Equal(t, "other", w.record().Status.Spec.WorkerOptions.TemporalNamespace)
			for path, data := range w.manifests() {
				require.Contains(t, data, "value: other", path)
				require.Contains(t, data, "cloud:7233", path)
			}
			w.quiet(20, time.Hour)
		})
	}
}

// TestConnectionThere: by which connection a worker deployment is looked at whose spec has another one.
func TestConnectionThere(t *testing.T) {
	for _, c := range []struct {
		name  string
		given change
		want  string
	}{
		{"another namespace", all(recorded, asksForCloud("other", renewed())), "temporal:7233 renewed"},
		{"gone from Git", all(recorded, asksForCloud("other", nil)), "temporal:7233"},
		{"retired", all(recorded, retires(v1alpha1.KeepCurrent, time.Hour), asksForCloud("other", renewed())), "temporal:7233 renewed"},
		{"retired, and gone from Git", all(recorded, retires(v1alpha1.KeepCurrent, time.Hour), asksForCloud("other", nil)), "temporal:7233"},
		{"retired, and none of both", all(recorded, retires(v1alpha1.KeepCurrent, time.Hour), asksForCloud("other", nil), func(g *given) { g.Connection = nil }), "temporal:7233"},
		{"a record without one", all(recorded, asksForCloud("other", steady().Connection), func(g *given) { g.rec.Connection = nil }), "temporal:7233"},
		{"a record without one, gone from Git", all(recorded, asksForCloud("other", nil), func(g *given) { g.rec.Connection = nil }), ""},
		{"one namespace, another server", all(recorded, asksForCloud("prod", renewed())), "temporal:7233 renewed"},
		{"one namespace, another server, the last one moved", all(recorded, asksForCloud("prod", other())), "temporal:7233"},
		{"one namespace, proven to be the same", all(recorded, asksForCloud("prod", renewed()), isThere("cloud:7233", "the-id")), "cloud:7233"},
		{"one namespace, not in Git", all(recorded, asksForCloud("prod", renewed()), func(g *given) { g.Connection = nil }), "temporal:7233 renewed"},
		{"no strategy", all(recorded, asksForCloud("prod", renewed()), func(g *given) { g.Spec.Spec.Rollout = v1alpha1.RolloutStrategy{} }), "temporal:7233 renewed"},
		{"refused", all(recorded, asksForCloud("prod", renewed()), func(g *given) { g.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec}} }), "temporal:7233 renewed"},
		{"made anew", all(recorded, asksForCloud("other", renewed()), func(g *given) { g.rec.Versions = nil }), "cloud:7233"},
		{"made anew, not in Git", all(recorded, asksForCloud("other", renewed()), func(g *given) { g.rec.Versions, g.Connection = nil, nil }), ""},
		{"its spec is gone as it ends", all(recorded, retires(v1alpha1.KeepCurrent, time.Hour), asksForCloud("other", renewed()), specGone, func(g *given) { g.rec.Versions = nil }), "temporal:7233 renewed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(c.given)
			got := ""
			if conn := Look(s).Connection(); conn != nil {
				got = conn.Spec.HostPort
				if conn.Spec.TLS != nil {
					got += " " + conn.Spec.TLS.ServerName
				}
			}
			require.Equal(t, c.want, got)
			p := decide(t, s, allowed)
			if len(s.Record.Routing.Spec.Versions) > 0 && TemporalNamespace(s) != s.Spec.Spec.WorkerOptions.TemporalNamespace {
				for _, w := range p.Versions {
					require.Equal(t, rollout.ReconnectVersion, w.Op)
					require.Equal(t, Look(s).Connection(), p.Connection)
				}
			}
		})
	}
}

// TestNeverElsewhere: a version is not taken away from where its workflows are.
func TestNeverElsewhere(t *testing.T) {
	given := all(recorded, retires(v1alpha1.KeepCurrent, time.Hour), asksForCloud("other", renewed()))
	const moves, forgets = "another Temporal namespace or connection", "forgotten where the versions"
	for _, c := range []struct {
		name  string
		given change
		spoil func(*rollout.Plan)
		want  string
	}{
		{"reconnected", given, func(*rollout.Plan) {}, ""},
		{"reconnected to the other server", given, func(p *rollout.Plan) { p.Connection = cloud() }, moves},
		{"reconnected to nothing", given, func(p *rollout.Plan) { p.Connection = nil }, moves},
		{"rendered", given, func(p *rollout.Plan) { p.Versions[0].Op = rollout.RenderVersion }, moves},
		{"restored", given, func(p *rollout.Plan) { p.Versions[0].Op, p.Connection = rollout.RestoreFiles, nil }, ""},
		{"another namespace in the record", given, func(p *rollout.Plan) { p.Record.TemporalNamespace = "other" }, forgets},
		{"another connection in the record", given, func(p *rollout.Plan) { p.Record.Connection.Name = "cloud" }, forgets},
		{"no connection in the record", given, func(p *rollout.Plan) { p.Record.Connection = nil }, forgets},
		{"where it is asked for", all(given, asksForCloud("prod", renewed()), isThere("cloud:7233", "the-id")), func(*rollout.Plan) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(c.given)
			p := decide(t, s, allowed)
			require.Equal(t, []rollout.WriteOp{rollout.ReconnectVersion}, ops(p))
			c.spoil(&p)
			found, seen := strings.Join(Never(s, p), "\n"), strings.Join(oracle.Forbidden(s, p), "\n")
			if c.want == "" {
				require.Empty(t, found)
				require.Empty(t, seen)
				return
			}
			require.Contains(t, found, c.want)
			require.Contains(t, seen, "elsewhere")
		})
	}
}

func recordIDs(rec v1alpha1.RoutingSpec) []string {
	var out []string
	for _, v := range rec.Versions {
		out = append(out, v.BuildID)
	}
	return out
}

// TestNamespaceKept: no row gives a version another namespace, whatever is rendered of it.
func TestNamespaceKept(t *testing.T) {
	for name, given := range map[string]change{
		"another connection": func(g *given) { g.version("v1").ConnectionHash = "another" },
		"another template":   func(g *given) { g.version("v1").TemplateHash = "another" },
		"replicas":           func(g *given) { g.version("v1").Replicas = replicas(9) },
		"another build":      asks("v2"),
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(t, of(given), allowed)
			require.NotEmpty(t, p.Versions)
			require.Equal(t, "prod", p.Record.TemporalNamespace)
			p = decide(t, of(recorded, given, asksFor("other")), allowed)
			require.Empty(t, p.Versions)
			require.Equal(t, "prod", p.Record.TemporalNamespace)
			p = decide(t, of(recorded, given, retires(v1alpha1.KeepCurrent, time.Hour), asksFor("other")), allowed)
			require.Equal(t, "prod", p.Record.TemporalNamespace, "also while it is retired")
			for _, w := range p.Versions {
				require.NotEqual(t, rollout.RenderVersion, w.Op)
			}
		})
	}
}

// TestMadeAnew: what was recorded of the old namespace says nothing of the new one. A person's hold is about both.
func TestMadeAnew(t *testing.T) {
	anew := func(changes ...change) rollout.Snapshot {
		return of(all(retires(v1alpha1.UnrouteAnyway, time.Hour), barsBuild("v1"), asksFor("other")), all(changes...), func(g *given) {
			g.rec.Versions = nil
			g.Observation = rollout.Observation{At: noon, Exists: rollout.No}
		})
	}
	s := anew()
	require.Equal(t, "other", TemporalNamespace(s))
	p := decide(t, s, allowed)
	require.Equal(t, "create", p.Row)
	require.Equal(t, []string{id("v1")}, recordIDs(*p.Record))
	require.Empty(t, p.Record.Bars)
	require.Empty(t, p.Record.Promotions)
	require.Nil(t, p.Record.Retire)
	require.Equal(t, "other", p.Record.TemporalNamespace)

	require.Nil(t, decide(t, anew(holds(v1alpha1.HoldDrift, "v1")), allowed).Record.Hold)
	for _, kind := range []v1alpha1.HoldKind{v1alpha1.HoldManual, v1alpha1.HoldReleased} {
		require.Equal(t, kind, decide(t, anew(holds(kind, "v1")), allowed).Record.Hold.Kind)
	}

	s = anew(annotated("true"))
	p = decide(t, s, allowed)
	require.Equal(t, "retire", p.Row)
	require.Contains(t, condition(p.Status, v1alpha1.ConditionReady).Message, "without the annotation it is made anew")

	// The spec was deleted while it ended: it ends, and nothing is made anew.
	s = anew(specGone, func(g *given) { g.Record.Files = map[string]rollout.File{"routing.yaml": {}} })
	require.Equal(t, "prod", TemporalNamespace(s))
	p = decide(t, s, allowed)
	require.Equal(t, "retire", p.Row)
	require.True(t, p.Remove)
}
