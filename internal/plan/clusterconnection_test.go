package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// clusterRef names the ClusterConnection, which has the name of the namespace's connection.
var clusterRef = v1alpha1.ConnectionRef{Kind: v1alpha1.KindClusterConnection, Name: "temporal"}

// byCluster lets the spec name the ClusterConnection, which leads where the namespace's connection leads.
func byCluster(g *given) {
	spec := *g.Spec
	spec.Spec.WorkerOptions.ConnectionRef = clusterRef
	g.Spec, g.Connection = &spec, clusterConnection(g.Connection.Spec)
}

func clusterConnection(spec v1alpha1.ConnectionSpec) *v1alpha1.Connection {
	return &v1alpha1.Connection{APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindClusterConnection, Metadata: v1alpha1.ObjectMeta{Name: "temporal"}, Spec: spec}
}

// created lets Temporal say of a version that a call created it, and that no worker polled: it has no task queues.
func created(tag string) change {
	return func(g *given) { o := g.listed(tag); o.Created, o.Queues = true, nil }
}

// TestObservedConnection: the status names the connection that the versions have, with its kind, and the record keeps
// both.
func TestObservedConnection(t *testing.T) {
	namespaced := v1alpha1.ConnectionRef{Kind: v1alpha1.KindConnection, Name: "temporal"}
	for name, c := range map[string]struct {
		given  change
		want   *v1alpha1.ConnectionRef
		record v1alpha1.ConnectionKind
	}{
		"the namespace's":                     {none, &namespaced, ""},
		"the cluster's":                       {byCluster, &clusterRef, v1alpha1.KindClusterConnection},
		"the namespace's, once the cluster's": {func(g *given) { byCluster(g); recorded(g); h := steady(); g.Spec, g.Connection = h.Spec, h.Connection }, &namespaced, ""},
		"the cluster's, once the namespace's": {all(recorded, byCluster), &clusterRef, v1alpha1.KindClusterConnection},
		"it has another name": {func(g *given) { recorded(g); byCluster(g); g.Connection.Metadata.Name = "next" },
			&v1alpha1.ConnectionRef{Kind: v1alpha1.KindClusterConnection, Name: "next"}, v1alpha1.KindClusterConnection},
		"the spec is broken": {all(byCluster, recorded, func(g *given) {
			g.Spec, g.Connection, g.Problems = nil, nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "no"}}
		}), &clusterRef, v1alpha1.KindClusterConnection},
		"the namespace's leads to another server": {all(byCluster, recorded, func(g *given) {
			g.Spec, g.Connection = steady().Spec, other()
		}), &clusterRef, v1alpha1.KindClusterConnection},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(rampsAt(10, time.Hour), c.given)
			p := decide(t, s, allowed)
			require.Empty(t, oracle.Forbidden(s, p))
			require.Equal(t, c.want, p.Status.ObservedConnectionRef)
			require.Equal(t, c.record, p.Record.Connection.Kind)
			require.Equal(t, c.want.Name, p.Record.Connection.Name)
		})
	}
	p := decide(t, of(func(g *given) { g.Connection = nil }), allowed)
	require.Nil(t, p.Status.ObservedConnectionRef, "neither Git nor the record has one")
}

// TestLastConnectionIsOfItsKind: while the spec cannot be used, Temporal is asked by the connection of the recorded
// kind. Another one with its name, which may have other credentials, does not stand in for it.
func TestLastConnectionIsOfItsKind(t *testing.T) {
	was := v1alpha1.ConnectionSpec{HostPort: "temporal:7233"}
	broken := func(g *given) {
		g.Spec, g.Problems = nil, []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "no"}}
	}
	renewed := *renewed()
	renewed.Metadata.Namespace = "payments"
	cluster := clusterConnection(renewed.Spec)
	for name, c := range map[string]struct {
		given change
		want  *v1alpha1.Connection
	}{
		"it is in Git":                    {all(byCluster, recorded, broken, func(g *given) { g.Connection = cluster }), cluster},
		"it is in Git, beside the spec's": {all(byCluster, recorded, broken, func(g *given) { g.Connection, g.LastConnection = &renewed, cluster }), cluster},
		"only the namespace's is in Git":  {all(byCluster, recorded, broken, func(g *given) { g.Connection = &renewed }), clusterConnection(was)},
		"the namespace's was it":          {all(recorded, broken, func(g *given) { g.Connection = &renewed }), &renewed},
		"the namespace's was it, and is not there": {all(recorded, broken, func(g *given) { g.Connection = cluster }),
			&v1alpha1.Connection{APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindConnection, Metadata: v1alpha1.ObjectMeta{Name: "temporal", Namespace: "payments"}, Spec: was}},
		"a record that is older than such names": {all(byCluster, recorded, broken, func(g *given) { g.rec.Connection, g.Connection, g.LastConnection = nil, &renewed, cluster }), cluster},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Look(of(c.given)).Connection())
		})
	}
}

// TestClusterConnectionIsNamed: what is said of a ClusterConnection has its kind, and no namespace.
func TestClusterConnectionIsNamed(t *testing.T) {
	says := func(given ...change) string {
		return condition(decide(t, of(append([]change{byCluster}, given...)...), allowed).Status, v1alpha1.ConditionReady).Message
	}
	gone := func(g *given) { g.Connection = nil }
	moves := func(g *given) { g.Spec.Spec.WorkerOptions.TemporalNamespace = "other" }
	require.Equal(t, "ClusterConnection temporal is not in the repository", says(gone))
	require.Contains(t, says(gone, retires(v1alpha1.KeepCurrent, time.Hour)), "ClusterConnection temporal is not in the repository: payments/checkout is retired by ")
	require.Contains(t, says(gone, moves, retires(v1alpha1.KeepCurrent, time.Hour)),
		"ClusterConnection temporal, by which payments/checkout is in Temporal namespace prod, is not in the repository: ")
	require.Contains(t, says(recorded, leadsTo("elsewhere:7233")), "ClusterConnection temporal leads to elsewhere:7233, and payments/checkout is at temporal:7233: ")

	for want, s := range map[string]rollout.Snapshot{
		"ClusterConnection temporal changed": of(byCluster, recorded, rotates), "connection payments/temporal changed": of(recorded, rotates),
	} {
		var says []string
		for _, a := range Look(s).Propose().Actions {
			if a.Update == rollout.UpdateConnection {
				says = append(says, a.Reason)
			}
		}
		require.Equal(t, []string{want}, says)
	}
}

// TestNeverAnotherKind: versions are in another Temporal namespace than the spec's. Then a plan that takes a connection
// of another kind for theirs is one that must never be.
func TestNeverAnotherKind(t *testing.T) {
	s := of(byCluster, recorded, func(g *given) { g.Spec.Spec.WorkerOptions.TemporalNamespace = "other" }, rotates)
	p := decide(t, s, allowed)
	require.Empty(t, Never(s, p))
	require.Empty(t, oracle.Forbidden(s, p))
	record := *p.Record
	record.Connection = &v1alpha1.RecordedConnection{Name: "temporal", Spec: record.Connection.Spec}
	p.Record = &record
	require.Contains(t, Never(s, p), "it would be forgotten where the versions of payments/checkout are")
	require.NotEmpty(t, oracle.Forbidden(s, p))

	p = decide(t, s, allowed)
	p.Connection = steady().Connection
	p.Versions = []rollout.VersionWrite{{BuildID: id("v1"), Op: rollout.ReconnectVersion, Replicas: replicas(2), Guard: v1alpha1.GuardOn}}
	require.Contains(t, Never(s, p), "the files of "+id("v1")+" would be changed (Reconnect) to those of another Temporal namespace or connection")
	require.Contains(t, oracle.Forbidden(s, p), "connects "+id("v1")+" elsewhere")
}

// TestCreatedVersion: a version that a call created, and that no worker polled, gets no traffic, and goes as an
// inactive one goes.
func TestCreatedVersion(t *testing.T) {
	s := of(candidate(), created("v2"))
	require.Equal(t, rollout.StatusCreated, Look(s).status(id("v2")))
	p := decide(t, s, allowed)
	require.Nil(t, p.Raise)
	require.Equal(t, "Created", p.Status.TargetVersion.Status)
	ready := condition(p.Status, v1alpha1.ConditionReady)
	require.Equal(t, string(rollout.WaitingForPollers), ready.Reason)

	for age, want := range map[time.Duration][]string{23 * time.Hour: nil, 25 * time.Hour: {"ScaleDown v1 x0"}} {
		idle := twice(of(inactive(age)))
		require.Equal(t, want, sayAll(Look(idle).Propose().Actions), "inactive for %s", age)
		s := twice(of(inactive(age), created("v1")))
		require.Equal(t, want, sayAll(Look(s).Propose().Actions), "created %s ago", age)
		require.Empty(t, oracle.Forbidden(s, decide(t, s, allowed)))
	}

	s = of(candidate(), created("v2"), func(g *given) { g.listed("v2").FirstActivatedAt = ago(time.Hour) })
	require.Equal(t, rollout.StatusUnknown, Look(s).status(id("v2")), "one that had traffic is kept, whatever Temporal calls it")
	s = of(rampsAt(10, time.Minute), created("v2"))
	require.Equal(t, rollout.StatusRamping, Look(s).status(id("v2")))
}
