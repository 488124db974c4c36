package gitops

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Where a repository's connections try to lead, and what the bot's own configuration makes of it. That is seen by a
// folder, and by surveys that have only entries of files.
func TestAddressesOfAnEnvironment(t *testing.T) {
	const config = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: dev, specs: ["dev/**"], output: {path: out/dev}, namespace: shop}
    - {name: invented, specs: ["invented/**"], output: {path: out/invented}, namespace: shop}
`
	connection := func(hostPort string) string { return strings.Replace(connectionYAML, "localhost:7233", hostPort, 1) }
	cluster := func(hostPort string) string {
		return strings.Replace(clusterConnectionYAML, "cluster:7233", hostPort, 1)
	}
	spec := specYAML("shop", "a", "x")
	record := func(hostPort string) string {
		return strings.Replace(routingYAML("a", "dev/a.yaml"), "  desired:", "  connection: {name: temporal, spec: {hostPort: \""+hostPort+"\"}}\n  desired:", 1)
	}
	rules := []index.Rule{{Environments: "dev", Allows: "localhost:7233"}, {Environments: "dev", Allows: "*.dev.example.com:*"}}
	const refused = `spec.hostPort: the bot's configuration (--allowed-temporal-addresses) does not let a connection of environment dev lead to "evil:7233"`
	for name, c := range map[string]struct {
		files map[string]string
		leads string // where the connection of shop/a leads; "none": the connection is refused; "no cluster's": the ClusterConnection is refused
		says  []string
	}{
		"allowed":            {map[string]string{"dev/c.yaml": connectionYAML}, "localhost:7233", nil},
		"allowed by a glob":  {map[string]string{"dev/c.yaml": connection("EU.dev.example.com:443")}, "EU.dev.example.com:443", nil},
		"refused":            {map[string]string{"dev/c.yaml": connection("evil:7233")}, "none", []string{"dev/c.yaml:1: " + refused}},
		"refused, once made": {map[string]string{"dev/c.yaml": connection("evil:7233"), "out/dev/shop/a/routing.yaml": record("localhost:7233")}, "none", []string{"dev/c.yaml:1: " + refused}},
		"refused by another environment": {map[string]string{"dev/c.yaml": connectionYAML, "invented/c.yaml": connectionYAML}, "localhost:7233",
			[]string{`does not let a connection of environment invented lead to "localhost:7233"`}},
		"a record": {map[string]string{"dev/c.yaml": connectionYAML, "out/dev/shop/a/routing.yaml": record("evil:7233")}, "",
			[]string{`shop/a: the bot's configuration (--allowed-temporal-addresses) does not let a connection of environment dev lead to "evil:7233": nothing of it is touched`}},
		"a ClusterConnection":          {map[string]string{"dev/c.yaml": cluster("localhost:7233"), "dev/a.yaml": byCluster(spec)}, "localhost:7233", nil},
		"a ClusterConnection, refused": {map[string]string{"dev/c.yaml": cluster("evil:7233"), "dev/a.yaml": byCluster(spec)}, "no cluster's", []string{"dev/c.yaml:1: " + refused}},
		"a ClusterConnection, refused, once made": {map[string]string{"dev/c.yaml": cluster("evil:7233"), "dev/a.yaml": byCluster(spec),
			"out/dev/shop/a/routing.yaml": ofCluster(record("localhost:7233"))}, "no cluster's", []string{"dev/c.yaml:1: " + refused}},
		"a ClusterConnection beside it":   {map[string]string{"dev/c.yaml": connectionYAML, "dev/cc.yaml": cluster("evil:7233")}, "localhost:7233", []string{"dev/cc.yaml:1: " + refused}},
		"a record of a ClusterConnection": {map[string]string{"dev/c.yaml": connectionYAML, "out/dev/shop/a/routing.yaml": ofCluster(record("evil:7233"))}, "", []string{"nothing of it is touched"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.files[layout.Config], c.files["dev/a.yaml"] = config, cmp.Or(c.files["dev/a.yaml"], spec)
			w, err := index.ReadFolder(writeFolder(t, c.files), index.Allow(index.Allowed{TemporalAddresses: rules}))
			require.NoError(t, err)
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: c.files})
			cfg := open(t, r).cfg
			cfg.CacheDir, cfg.Options = t.TempDir(), []index.Option{index.Allow(index.Allowed{TemporalAddresses: rules})}
			repo, err := Open(cfg)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, repo.Close()) })
			for range 3 {
				for _, w := range []rollout.World{w, surveyedWorld(t, repo)} {
					said := slices.DeleteFunc(problems(w), func(p string) bool { return strings.Contains(p, "matches no file") })
					require.Equal(t, c.leads, leadsIn(t, w))
					require.Len(t, said, len(c.says), "%v", said)
					for _, says := range c.says {
						require.Contains(t, strings.Join(said, "\n"), says)
					}
				}
				r.Commit(gittest.Commit{Write: map[string]string{"elsewhere": r.Tip("main")}})
			}
			w, err = index.ReadFolder(writeFolder(t, c.files)) // without the bot's word the repository's counts
			require.NoError(t, err)
			require.NotContains(t, strings.Join(problems(w), "\n"), "allowed-temporal-addresses")
		})
	}
}

// leadsIn is where the connection of shop/a leads; "": there is no such worker deployment. One whose connection is
// refused cannot be used.
func leadsIn(t *testing.T, w rollout.World) string {
	t.Helper()
	all := w.Environments[0].Deployments
	if len(all) == 0 {
		return ""
	}
	if d := all[0]; d.Connection != nil {
		require.Empty(t, d.Problems)
		return d.Connection.Spec.HostPort
	}
	require.Equal(t, rollout.InvalidSpec, all[0].Problems[0].Reason)
	if says := all[0].Problems[0].Message; strings.HasPrefix(says, "ClusterConnection ") {
		require.Contains(t, says, "ClusterConnection temporal: dev/c.yaml:1: spec.hostPort: ")
		return "no cluster's"
	}
	require.Contains(t, all[0].Problems[0].Message, "connection shop/temporal: dev/c.yaml:1: spec.hostPort: ")
	return "none"
}

func TestParseAddressRule(t *testing.T) {
	r, err := index.ParseAddressRule("dev*=*.Dev.example.com:*")
	require.NoError(t, err)
	require.Equal(t, index.Rule{Environments: "dev*", Allows: "*.dev.example.com:*"}, r)
	for _, text := range []string{"", "dev", "=x", "dev=", "de[v=x", "dev=[x"} {
		_, err := index.ParseAddressRule(text)
		require.ErrorContains(t, err, "is not of the form ENVIRONMENT=HOST:PORT", text)
	}
	_, err = index.ParseAddressRule("dev=localhost")
	require.ErrorContains(t, err, "dev=localhost:7233 for one port, dev=localhost:* for any")
}
