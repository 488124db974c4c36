package gitops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestClusterConnection: worker deployments of all namespaces get the ClusterConnection that they name, read in full
// and partial. A connection of the same name in their namespace is another one.
func TestClusterConnection(t *testing.T) {
	r := gittest.NewBareRepo(t)
	const routing = "/routing.yaml"
	r.Commit(gittest.Commit{Write: map[string]string{"c.yaml": connectionYAML, "cluster.yaml": clusterConnectionYAML,
		"own.yaml": specYAML("shop", "own", "i:1"), "deploy/shop/own" + routing: routingYAML("own", "own.yaml"),
		"named.yaml": byCluster(specYAML("shop", "named", "i:1")), "deploy/shop/named" + routing: routingYAML("named", "named.yaml"),
		"other.yaml": byCluster(specYAML("far", "named", "i:1")),
		// Both were at the one, and now name the other.
		"left.yaml": specYAML("shop", "left", "i:1"), "deploy/shop/left" + routing: ofCluster(recordedConnection(routingYAML("left", "left.yaml"), "cluster.yaml", "cluster:7233")),
		"came.yaml": byCluster(specYAML("shop", "came", "i:1")), "deploy/shop/came" + routing: recordedConnection(routingYAML("came", "came.yaml"), "c.yaml", "localhost:7233")}})
	own := v1alpha1.Connection{APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindTemporalConnection,
		Metadata: v1alpha1.ObjectMeta{Name: "temporal", Namespace: "shop"}, Spec: v1alpha1.ConnectionSpec{HostPort: "localhost:7233"}}
	cluster := v1alpha1.Connection{APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindClusterConnection,
		Metadata: v1alpha1.ObjectMeta{Name: "temporal"}, Spec: v1alpha1.ConnectionSpec{HostPort: "cluster:7233"}}
	type uses struct {
		connection, last *v1alpha1.Connection
		path             string
	}
	want := map[string]uses{
		"shop/own": {&own, nil, "c.yaml"}, "shop/named": {&cluster, nil, "cluster.yaml"}, "far/named": {&cluster, nil, "cluster.yaml"},
		"shop/left": {&own, &cluster, "c.yaml"}, "shop/came": {&cluster, &own, "cluster.yaml"},
	}
	repo := open(t, r)
	w := read(t, repo)
	require.Empty(t, problems(w))
	used := func(all []rollout.Snapshot) map[string]uses {
		out := map[string]uses{}
		for _, d := range all {
			require.Empty(t, d.Problems)
			out[d.Deployment.String()] = uses{d.Connection, d.LastConnection, d.ConnectionPath}
		}
		return out
	}
	require.Equal(t, want, used(w.Environments[0].Deployments))

	for range 3 { // what was decoded is partial after the next commit
		r.Commit(gittest.Commit{Write: map[string]string{"elsewhere": r.Tip("main")}})
		survey, load, err := repo.Survey(t.Context())
		require.NoError(t, err)
		env := survey.World.Environments[0]
		all, err := load(t.Context(), survey.Snapshots(env.Environment.Name, env.Entries))
		require.NoError(t, err)
		require.Equal(t, want, used(all))
	}
	survey, _, err := repo.Survey(t.Context())
	require.NoError(t, err)
	partial := 0
	for _, k := range survey.World.Environments[0].Entries {
		if k.Full == nil {
			partial++
			require.Equal(t, want[k.Deployment.String()], uses{k.Connection, k.LastConnection, k.ConnectionPath})
		}
	}
	require.Equal(t, 4, partial, "all but the one without a record")
}

// TestConnectionWithoutNamespace: such a connection is not a ClusterConnection, also where nothing gives it a
// namespace.
func TestConnectionWithoutNamespace(t *testing.T) {
	const nameless = "apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: temporal}\nspec: {hostPort: \"evil:7233\"}\n"
	const says = "c.yaml:1: metadata.namespace: is missing, and the environment default has no default namespace: no spec can name this connection"
	for name, c := range map[string]struct {
		files map[string]string
		want  string // address of the connection; "": there is none
	}{
		"a ClusterConnection is missing": {map[string]string{"x.yaml": byCluster(specYAML("shop", "x", "i:1")), "c.yaml": nameless}, ""},
		"beside a ClusterConnection": {map[string]string{"x.yaml": byCluster(specYAML("shop", "x", "i:1")), "c.yaml": nameless,
			"cluster.yaml": clusterConnectionYAML}, "cluster:7233"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := index.ReadFolder(writeFolder(t, c.files))
			require.NoError(t, err)
			require.Equal(t, []string{says}, problems(w))
			got, d := "", w.Environments[0].Deployments[0]
			if d.Connection != nil {
				got = d.Connection.Spec.HostPort
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestStandsOnClusterConnection: a spec stands on all equal copies of the ClusterConnection that it names, if none
// of them is recorded.
func TestStandsOnClusterConnection(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": byCluster(specYAML("shop", "x", "i:1")), "c.yaml": connectionYAML,
		"a/cluster.yaml": clusterConnectionYAML, "b/cluster.yaml": clusterConnectionYAML}})
	var beside []string
	for _, f := range read(t, open(t, r)).Environments[0].Deployments[0].Git.Beside {
		beside = append(beside, f.Path)
	}
	require.Equal(t, []string{"a/cluster.yaml", "b/cluster.yaml"}, beside)
}

// TestRefusedClusterConnectionIsReadInFull: while a ClusterConnection leads where it may not, what names it is never
// partial.
func TestRefusedClusterConnectionIsReadInFull(t *testing.T) {
	for address, refused := range map[string]bool{"cluster:7233": false, "allowed:7233": true} {
		r := gittest.NewBareRepo(t)
		r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": byCluster(specYAML("shop", "x", "i:1")), "cluster.yaml": clusterConnectionYAML,
			"deploy/shop/x/routing.yaml": routingYAML("x", "x.yaml")}})
		cfg := open(t, r).cfg
		cfg.CacheDir, cfg.Options = t.TempDir(), []index.Option{index.Allow(index.Allowed{TemporalAddresses: []index.Rule{{Environments: "*", Allows: address}}})}
		repo, err := Open(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, repo.Close()) })
		surveyedWorld(t, repo)
		r.Commit(gittest.Commit{Write: map[string]string{"elsewhere": "x"}})
		survey, _, err := repo.Survey(t.Context())
		require.NoError(t, err)
		require.Equal(t, refused, survey.World.Environments[0].Entries[0].Full != nil, address)
	}
}
